//! EXECUTION-SPEC files: Markdown whose frontmatter says workstreams, phases and gates, as workflows that can be run.
//!
//! | module | what it does |
//! | --- | --- |
//! | `workstream` | one workstream: who works, what it needs, what it leaves behind |
//! | `gate` | what gates are called and run |
//! | `phase` | which workstreams the file lists together |
//! | `assign_phases` | the phase of every workstream, and the order within it |
//! | `checkpoints` | what a person is asked between phases, and gates that the settings have commands for |
//! | `output` | files that a workstream is to leave behind, out of what people write |
//! | `prompt` | what an agent is told: all that the file says about its workstream |
//! | `assemble` | the workflow that comes of it |
//!
//! Keys that mean nothing here are told to the agents as they are; real files have many of their own.

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

/// There may be so many workstreams, phases, gates, and names in a list.
const MOST: usize = 1_000;

/// So many characters of a name, a note or a criterion are told to those whom it is not about.
const LONGEST_TOLD: usize = 1_000;

/// Where a file says what it is known by, best first.
const PRD_KEYS: [&str; 6] = ["prd", "prd_id", "exec_id", "exec_spec_id", "spec_id", "id"];

/// Where a file says what people call it, best first.
const TITLE_KEYS: [&str; 3] = ["prd_title", "title", "name"];

/// Where a file says its phases.
const PHASES_KEYS: [&str; 2] = ["execution_phases", "phases"];

/// Reads the text of an EXECUTION-SPEC and says everything that is wrong with it.
pub fn read_with_includes(source: &str, includes: &mut dyn Includes) -> Read {
    let mut report = Report::default();
    if source.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; an EXECUTION-SPEC may have {MAX_BYTES}", source.len());
        report.error(ProblemCode::TooLarge, &(0..0), message).help("keep large data in files of its own");
        return Read { workflow: None, problems: report.finish("") };
    }
    let (yaml, body) = frontmatter::split(source).map_or((source, ""), |front| (front.yaml, front.body));
    let workflow = parse(yaml, &mut report)
        .and_then(|root| assemble::workflow(&mut Checker::new(yaml, &mut report, includes, 0), &root, body))
        .filter(|_| !report.has_error());
    Read { workflow, problems: report.finish(source) }
}

/// A map of the file, whose keys are read as far as they mean something here.
#[derive(Clone, Copy)]
struct Fields<'n, 'a> {
    entries: &'n [Entry<'a>],
}

impl<'n, 'a> Fields<'n, 'a> {
    /// The value of the first of these keys that has one.
    fn first(self, keys: &[&str]) -> Option<&'n Node<'a>> {
        keys.iter().find_map(|key| self.entry(key)).map(|entry| &entry.value)
    }

    fn get(self, key: &str) -> Option<&'n Node<'a>> {
        self.first(&[key])
    }

    /// A key that has a value, with its place.
    fn entry(self, key: &str) -> Option<&'n Entry<'a>> {
        self.entries.iter().find(|entry| entry.key == key && !entry.value.is_null())
    }

    /// Whether a key says yes.
    fn is_true(self, key: &str) -> bool {
        self.get(key).and_then(scalar).is_some_and(|scalar| scalar.boolean() == Some(true))
    }

    /// Whether a key says that something must be: `true` or `required`.
    fn asks_for(self, key: &str) -> bool {
        self.is_true(key) || self.get(key).and_then(text).is_some_and(|word| word.eq_ignore_ascii_case("required"))
    }

    /// Warns of keys that are a slip of the pen away from one that means something.
    fn warn_of_slips(self, checker: &mut Checker<'_, '_>, what: &str, known: &[&str]) {
        for Entry { key, key_span, .. } in self.entries {
            let key: &str = key;
            if known.contains(&key) || checker.report.is_full() {
                continue;
            }
            if let Some(meant) = suggest::misspelt(key, known.iter().copied()) {
                let message = format!("`{}` means nothing on {what}", shown(key));
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

/// The text of a single value; nothing where it is something else or empty.
fn text<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    scalar(node).map(|scalar| scalar.text.trim()).filter(|text| !text.is_empty())
}

/// A name with its place.
#[derive(Clone)]
struct Name<'n> {
    text: &'n str,
    span: Range<usize>,
}

/// Names that stand as one value, as a list, or as maps with an `id` each.
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

/// The name before a remark: `WS1` of `WS1 (schema)` and of `WS1: schema`.
fn without_remark(text: &str) -> &str {
    let end = [" (", ": ", " - ", " — ", " #"].iter().filter_map(|sign| text.find(sign)).min().unwrap_or(text.len());
    text[..end].trim()
}

/// Whether there is more of something than a pipeline may have; if so, that is told. What belongs to one thing is repeated for others, so what there
/// may be of each is bounded.
fn is_too_many(checker: &mut Checker<'_, '_>, span: &Range<usize>, count: usize, what: &str) -> bool {
    let is_too_many = count > MOST;
    if is_too_many {
        checker.error(ProblemCode::TooLarge, span, format!("{what}: there may be {MOST}, and here are {count}"));
    }
    is_too_many
}

/// The beginning of a text that is told in several places.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TOLD) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What stands above the parts: what the pipeline is known by, and what becomes of it.
struct Head {
    prd: Option<String>,
    title: Option<String>,
    on_complete: Option<String>,
    state_file: Option<String>,
    max_parallel: Option<u32>,
    fail_fast: bool,
}

/// What the name of the file says that the pipeline is known by: `EXEC-009` of `EXEC-009-cashier.md`, or all of a plain name.
fn prd_of_file(checker: &mut Checker<'_, '_>, span: &Range<usize>) -> Option<String> {
    let help = "write what it is known by, such as `prd: PRD-009`";
    let name = checker.file_name();
    let stem = name.as_deref().map(|name| name.strip_suffix(".md").unwrap_or(name));
    let fits = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
    let is_id = |id: &&str| id.starts_with(|first: char| first.is_ascii_alphanumeric()) && id.len() <= 64 && id.chars().all(fits);
    let known = stem.map(numbered_id).filter(is_id);
    match known {
        Some(id) => {
            let message = format!("`prd` is missing; the name of the file says `{id}`");
            checker.report.warning(ProblemCode::MissingKey, span, message).help(help);
            Some(id.to_owned())
        }
        None => {
            checker.error(ProblemCode::MissingKey, span, "an EXECUTION-SPEC needs `prd`").help(help);
            None
        }
    }
}

/// `EXEC-009` of `EXEC-009-cashier`; all of a name without such a number.
fn numbered_id(stem: &str) -> &str {
    let mut parts = stem.match_indices('-').map(|(at, _)| at).chain([stem.len()]);
    let is_number = |end: &usize| {
        let last = stem[..*end].rsplit('-').next().unwrap_or_default();
        last.starts_with(|first: char| first.is_ascii_digit()) && stem[..*end].contains('-')
    };
    parts.find(is_number).map_or(stem, |end| &stem[..end])
}

fn head(checker: &mut Checker<'_, '_>, top: Fields<'_, '_>, span: &Range<usize>) -> Head {
    // Some files have a path under `prd`, and what they are known by under another key.
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
                let message = "`state_file` lies among the files of Lockgate or Git";
                checker.error(ProblemCode::PathTraversal, &node.span, message).help("name another place");
                return None;
            }
            Some(path)
        }),
        max_parallel: top.get("max_parallel").and_then(|node| checker.count(node, "`max_parallel`", 1..=1000)),
    }
}
