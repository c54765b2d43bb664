//! EXECUTION-SPEC files: Markdown whose frontmatter defines workstreams, phases and gates, read as workflows.
//!
//! | module | purpose |
//! | --- | --- |
//! | `workstream` | one workstream: executor, dependencies, outputs |
//! | `gate` | names and commands of gates |
//! | `phase` | the phases that the file lists, and their workstreams |
//! | `assign_phases` | the phase of every workstream, and the order within a phase |
//! | `checkpoints` | checkpoints between phases, and commands from the settings for conventional gates |
//! | `output` | the files that a workstream must leave behind, found in free text |
//! | `prompt` | the prompt of a workstream's agent |
//! | `assemble` | the resulting workflow |
//!
//! Real files have many keys of their own. Keys without a meaning here go into the prompt unchanged.

mod assemble;
mod assign_phases;
mod checkpoints;
mod gate;
mod output;
mod phase;
mod prompt;
mod workstream;

use super::frontmatter;
pub use checkpoints::with_gate_commands;
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::includes::Includes;
use lockgate_engine::spec::reader::{Checker, Content, Entry, Node, Report, Roots, Scalar, parse, shown};
use lockgate_engine::spec::suggest;
use lockgate_engine::spec::{MAX_BYTES, Read};
use std::collections::BTreeSet;
use std::ops::Range;

/// The maximum number of workstreams, phases, gates, and names in a list.
const MOST: usize = 1_000;

/// The maximum number of characters of a name, note or criterion in the prompts of other workstreams.
const MAX_REPEATED: usize = 1_000;

/// Keys for the id of the pipeline, in order of preference.
const PRD_KEYS: [&str; 6] = ["prd", "prd_id", "exec_id", "exec_spec_id", "spec_id", "id"];

/// Keys for the title of the pipeline, in order of preference.
const TITLE_KEYS: [&str; 3] = ["prd_title", "title", "name"];

/// Keys for the list of phases.
const PHASES_KEYS: [&str; 2] = ["execution_phases", "phases"];

/// Reads an EXECUTION-SPEC and reports everything that is wrong with it.
pub fn read_with_includes(source: &str, includes: &mut dyn Includes) -> Read {
    let mut report = Report::default();
    if source.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; the limit for an EXECUTION-SPEC is {MAX_BYTES}", source.len());
        report.error(ProblemCode::TooLarge, &(0..0), message).help("move large data to separate files");
        return Read { workflow: None, problems: report.finish("") };
    }
    let (yaml, body) = frontmatter::split(source).map_or((source, ""), |front| (front.yaml, front.body));
    let workflow = parse(yaml, &mut report)
        .and_then(|root| assemble::workflow(&mut Checker::new(yaml, &mut report, includes, 0), &root, body))
        .filter(|_| !report.has_error());
    Read { workflow, problems: report.finish(source) }
}

/// A map of the file. Only known keys are read.
#[derive(Clone, Copy)]
struct Fields<'n, 'a> {
    entries: &'n [Entry<'a>],
}

impl<'n, 'a> Fields<'n, 'a> {
    /// The value of the first of these keys that is present.
    fn first(self, keys: &[&str]) -> Option<&'n Node<'a>> {
        keys.iter().find_map(|key| self.entry(key)).map(|entry| &entry.value)
    }

    fn get(self, key: &str) -> Option<&'n Node<'a>> {
        self.first(&[key])
    }

    /// The entry of a key that is present and not null.
    fn entry(self, key: &str) -> Option<&'n Entry<'a>> {
        self.entries.iter().find(|entry| entry.key == key && !entry.value.is_null())
    }

    /// Whether the value of a key is `true`.
    fn is_true(self, key: &str) -> bool {
        self.get(key).and_then(scalar).is_some_and(|scalar| scalar.boolean() == Some(true))
    }

    /// Whether a key makes something mandatory: `true` or `required`.
    fn asks_for(self, key: &str) -> bool {
        self.is_true(key) || self.get(key).and_then(text).is_some_and(|word| word.eq_ignore_ascii_case("required"))
    }

    /// Warns about keys that look like a misspelling of a known one.
    fn warn_of_misspellings(self, checker: &mut Checker<'_, '_>, what: &str, known: &[&str]) {
        for Entry { key, key_span, .. } in self.entries {
            let key: &str = key;
            if known.contains(&key) || checker.report.is_full() {
                continue;
            }
            if let Some(meant) = suggest::typo_of(key, known.iter().copied()) {
                let message = format!("unknown key `{}` on {what}", shown(key));
                checker.report.warning(ProblemCode::UnknownKey, key_span, message).help(format!("did you mean `{meant}`?"));
            }
        }
    }
}

fn map<'n, 'a>(node: &'n Node<'a>) -> Option<Fields<'n, 'a>> {
    match &*node.content {
        Content::Map(entries) => Some(Fields { entries }),
        Content::Scalar(_) | Content::List(_) => None,
    }
}

fn scalar<'n, 'a>(node: &'n Node<'a>) -> Option<&'n Scalar<'a>> {
    match &*node.content {
        Content::Scalar(scalar) if !scalar.is_null() => Some(scalar),
        Content::Scalar(_) | Content::List(_) | Content::Map(_) => None,
    }
}

/// The text of a scalar; `None` for other values and for empty text.
fn text<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    scalar(node).map(|scalar| scalar.text.trim()).filter(|text| !text.is_empty())
}

#[derive(Clone)]
struct Name<'n> {
    text: &'n str,
    span: Range<usize>,
}

/// Names given as one value, as a list, or as maps with an `id` each.
fn names<'n>(checker: &mut Checker<'_, '_>, node: &'n Node<'_>, what: &str) -> Vec<Name<'n>> {
    let mut names: Vec<Name<'n>> = Vec::new();
    let mut seen: BTreeSet<&'n str> = BTreeSet::new();
    let items = checker.one_or_more(node);
    if is_too_many(checker, &node.span, items.len(), what) {
        return names;
    }
    for item in items {
        let inner = map(item).and_then(|fields| fields.first(&["id", "name", "gate", "workstream"])).unwrap_or(item);
        let Some(text) = checker.filled(inner, what).map(str::trim) else { continue };
        if seen.insert(text) {
            names.push(Name { text, span: inner.span.clone() });
        }
    }
    names
}

/// The name before a remark: `WS1` in `WS1 (schema)` and in `WS1: schema`.
fn without_remark(text: &str) -> &str {
    let end = [" (", ": ", " - ", " — ", " #"].iter().filter_map(|sign| text.find(sign)).min().unwrap_or(text.len());
    text[..end].trim()
}

/// Reports an error if there are more items than a pipeline may have. The number is limited because prompts repeat the items of other
/// workstreams.
fn is_too_many(checker: &mut Checker<'_, '_>, span: &Range<usize>, count: usize, what: &str) -> bool {
    let is_too_many = count > MOST;
    if is_too_many {
        checker.error(ProblemCode::TooLarge, span, format!("{what}: the limit is {MOST}, found {count}"));
    }
    is_too_many
}

/// Cuts a text that is repeated in several prompts.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_REPEATED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The top-level keys: identity of the pipeline and options for the whole run.
struct Head {
    prd: Option<String>,
    title: Option<String>,
    on_complete: Option<String>,
    state_file: Option<String>,
    max_parallel: Option<u32>,
    fail_fast: bool,
}

/// The pipeline id in the name of the file: `EXEC-009` in `EXEC-009-cashier.md`, or the whole name if it has no number.
fn prd_of_file(checker: &mut Checker<'_, '_>, span: &Range<usize>) -> Option<String> {
    let help = "add the id of the pipeline, such as `prd: PRD-009`";
    let name = checker.file_name();
    let stem = name.as_deref().map(|name| name.strip_suffix(".md").unwrap_or(name));
    let fits = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
    let is_id = |id: &&str| id.starts_with(|first: char| first.is_ascii_alphanumeric()) && id.len() <= 64 && id.chars().all(fits);
    let known = stem.map(numbered_id).filter(is_id);
    match known {
        Some(id) => {
            let message = format!("`prd` is missing; using `{id}` from the file name");
            checker.report.warning(ProblemCode::MissingKey, span, message).help(help);
            Some(id.to_owned())
        }
        None => {
            checker.error(ProblemCode::MissingKey, span, "an EXECUTION-SPEC needs `prd`").help(help);
            None
        }
    }
}

/// `EXEC-009` in `EXEC-009-cashier`; the whole name if it has no such number.
fn numbered_id(stem: &str) -> &str {
    let mut parts = stem.match_indices('-').map(|(at, _)| at).chain([stem.len()]);
    let is_number = |end: &usize| {
        let last = stem[..*end].rsplit('-').next().unwrap_or_default();
        last.starts_with(|first: char| first.is_ascii_digit()) && stem[..*end].contains('-')
    };
    parts.find(is_number).map_or(stem, |end| &stem[..end])
}

fn head(checker: &mut Checker<'_, '_>, top: Fields<'_, '_>, span: &Range<usize>) -> Head {
    // Some files have a path under `prd`, and the id under another key.
    let is_name = |node: &&Node<'_>| text(node).is_some_and(|text| !text.contains(['/', ' ']));
    let prd = PRD_KEYS.iter().filter_map(|key| top.get(key)).find(is_name).or(top.first(&PRD_KEYS));
    let prd = match prd {
        Some(node) => checker.id(node, "`prd`, which names the state file,").map(str::to_owned),
        None => prd_of_file(checker, span),
    };
    let on_complete = top.get("on_complete");
    let on_complete = on_complete.map(|node| map(node).and_then(|fields| fields.first(&gate::COMMAND_KEYS)).unwrap_or(node));
    Head {
        prd,
        title: top.first(&TITLE_KEYS).and_then(text).map(cut),
        fail_fast: top.is_true("fail_fast"),
        on_complete: on_complete.and_then(|node| checker.filled(node, "`on_complete`").map(str::to_owned)),
        state_file: top.get("state_file").and_then(|node| {
            let path = checker.path(node, "`state_file`", Roots::OutputDir)?;
            let first = path.split('/').find(|part| !matches!(*part, "" | "."));
            if first.is_some_and(|first| [".lockgate", ".git"].iter().any(|own| first.eq_ignore_ascii_case(own))) {
                let message = "`state_file` is inside a directory of Lockgate or Git";
                checker
                    .error(ProblemCode::PathTraversal, &node.span, message)
                    .help("choose a path outside `.lockgate` and `.git`");
                return None;
            }
            Some(path)
        }),
        max_parallel: top.get("max_parallel").and_then(|node| checker.count(node, "`max_parallel`", 1..=1000)),
    }
}
