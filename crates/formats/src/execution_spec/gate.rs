//! Gates of an EXECUTION-SPEC: names, commands and criteria.

use super::{Fields, Name, cut, is_too_many, map, names, text, without_remark};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Checker, Content, Node, shown};
use lockgate_engine::spec::suggest;
use lockgate_engine::time::parse_duration;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// Keys for the command of a gate, in order of preference.
pub(super) const COMMAND_KEYS: [&str; 4] = ["command", "run", "cmd", "commands"];

/// Keys for the criteria of a gate, in order of preference.
const CRITERIA_KEYS: [&str; 5] = ["success_criteria", "pass_criteria", "criteria", "assertions", "description"];

/// The maximum length of a gate's command. It is repeated for every phase and workstream that names the gate.
const MAX_COMMAND: usize = 16 << 10;

/// Words that are used in place of a command and mean none.
const NO_COMMAND: [&str; 5] = ["manual", "none", "n/a", "tbd", "human"];

/// Gates that files name without defining them, because all specs of a project share their commands.
const CONVENTIONS: [&str; 5] = ["type-check", "lint", "test-pass", "schema-validation", "build"];

pub(super) struct Definition {
    /// The command; `None` if a person decides.
    pub(super) run: Option<String>,
    pub(super) criteria: Option<String>,
    pub(super) timeout: Option<Duration>,
    /// Whether the file names the gate by convention, without defining it.
    pub(super) by_convention: bool,
    span: Range<usize>,
    /// Whether a phase or a workstream names it.
    used: bool,
}

/// The gates that a file defines, by name.
#[derive(Default)]
pub(super) struct Definitions {
    known: BTreeMap<String, Definition>,
    order: Vec<String>,
}

impl Definitions {
    /// Reads a map of gates by name, or a list of gates with a name each.
    pub(super) fn read(checker: &mut Checker<'_, '_>, top: Fields<'_, '_>) -> Self {
        let mut definitions = Self::default();
        let Some(node) = top.first(&["gates", "validation_gates"]) else { return definitions };
        let count = match &*node.content {
            Content::Map(entries) => entries.len(),
            Content::List(items) => items.len(),
            Content::Scalar(_) => 0,
        };
        if is_too_many(checker, &node.span, count, "`gates`") {
            return definitions;
        }
        match &*node.content {
            Content::Map(entries) => {
                for entry in entries {
                    definitions.add(checker, &entry.key, &entry.key_span, Some(&entry.value));
                }
            }
            Content::List(items) => {
                for item in items {
                    let name = map(item).and_then(|fields| fields.first(&["id", "name", "gate"])).unwrap_or(item);
                    if let Some(text) = checker.filled(name, "the name of a gate") {
                        let body = (!std::ptr::eq(name, item)).then_some(item);
                        definitions.add(checker, text.trim(), &name.span, body);
                    }
                }
            }
            Content::Scalar(_) => {
                checker.wrong_kind(node, "`gates`", "a map of gates by name");
            }
        }
        definitions
    }

    fn add(&mut self, checker: &mut Checker<'_, '_>, name: &str, span: &Range<usize>, node: Option<&Node<'_>>) {
        let mut definition =
            Definition { run: None, criteria: None, timeout: None, by_convention: false, span: span.clone(), used: false };
        match node.map(|node| (node, map(node))) {
            None => {}
            Some((node, None)) => definition.run = commands(checker, node),
            Some((_, Some(fields))) => {
                let run = fields.first(&COMMAND_KEYS).and_then(|node| commands(checker, node));
                definition.run = with_files(checker, fields, run);
                definition.criteria =
                    fields.first(&CRITERIA_KEYS).map(|node| cut(&words(node))).filter(|words| !words.is_empty());
                let timeout = fields.get("timeout").and_then(text);
                definition.timeout = timeout.and_then(|text| parse_duration(text).ok()).filter(|timeout| !timeout.is_zero());
            }
        }
        if definition.run.as_ref().is_some_and(|run| run.len() > MAX_COMMAND) {
            let message = format!("the command of gate `{}` is longer than {MAX_COMMAND} bytes", shown(name));
            checker.error(ProblemCode::TooLarge, span, message).help("move it to a script and run the script");
        }
        if let Some(first) = self.known.get(name) {
            checker.repeated("gate", span, name, first.span.start);
            return;
        }
        self.order.push(name.to_owned());
        self.known.insert(name.to_owned(), definition);
    }

    /// The gates that a phase or a workstream names; undefined ones are reported and left out.
    pub(super) fn named<'n>(&mut self, checker: &mut Checker<'_, '_>, fields: Fields<'n, '_>) -> Vec<Name<'n>> {
        let mut named: Vec<Name<'n>> = Vec::new();
        for key in ["gate", "gates"] {
            let Some(node) = fields.get(key) else { continue };
            self.define_in_place(checker, node);
            for name in names(checker, node, &format!("`{key}`")) {
                if matches!(name.text.to_ascii_lowercase().as_str(), "none" | "n/a")
                    || named.iter().any(|known| known.text == name.text)
                {
                    continue;
                }
                // Some files name the kind of gate, and the gate itself under `gate_detail`.
                let detail = fields.get("gate_detail").and_then(text).filter(|detail| self.known.contains_key(*detail));
                let plain = without_remark(name.text);
                let meant = match self.known.contains_key(name.text) {
                    true => name.text,
                    false if self.known.contains_key(plain) => plain,
                    false => detail.unwrap_or(name.text),
                };
                if !self.known.contains_key(meant) && self.is_conventional(name.text) {
                    for part in parts(name.text) {
                        if !named.iter().any(|known| known.text == part) {
                            self.name_by_convention(checker, part, &name.span);
                            named.push(Name { text: part, span: name.span.clone() });
                        }
                    }
                    continue;
                }
                match self.known.get_mut(meant) {
                    Some(definition) => {
                        definition.used = true;
                        named.push(Name { text: meant, span: name.span });
                    }
                    None => {
                        let message = format!("gate `{}` is not defined under `gates`", shown(name.text));
                        let known = self.order.iter().map(String::as_str);
                        let meant = if checker.report.is_full() { None } else { suggest::meant_or_known(name.text, known) };
                        let help =
                            meant.unwrap_or_else(|| format!("define it: `gates: {{{}: {{command: …}}}}`", shown(name.text)));
                        checker.error(ProblemCode::UnknownGate, &name.span, message).help(help);
                    }
                }
            }
        }
        named
    }

    /// Whether every part of `lint + test-pass` is a conventional gate or one that the file defines.
    fn is_conventional(&self, name: &str) -> bool {
        let mut parts = parts(name).peekable();
        parts.peek().is_some() && parts.all(|part| CONVENTIONS.contains(&part) || self.known.contains_key(part))
    }

    /// Adds a conventional gate: the settings may have a command for it, otherwise a person decides.
    fn name_by_convention(&mut self, checker: &mut Checker<'_, '_>, name: &str, span: &Range<usize>) {
        if let Some(definition) = self.known.get_mut(name) {
            definition.used = true;
            return;
        }
        let message = format!(
            "gate `{name}` is not defined under `gates`; it runs the command under `pipelines.gates` in the settings, or a person decides"
        );
        let help = format!(
            "define it in this file: `gates: {{{name}: {{command: …}}}}`, or in the settings: `pipelines: {{gates: {{{name}: …}}}}`"
        );
        checker.report.warning(ProblemCode::UnknownGate, span, message).help(help);
        let definition =
            Definition { run: None, criteria: None, timeout: None, by_convention: true, span: span.clone(), used: true };
        self.known.insert(name.to_owned(), definition);
    }

    /// Adds gates that are defined where they are named: `gates: [{ name: lint, command: make lint }]`.
    fn define_in_place(&mut self, checker: &mut Checker<'_, '_>, node: &Node<'_>) {
        for item in checker.one_or_more(node) {
            let Some(fields) = map(item).filter(|fields| fields.first(&COMMAND_KEYS).is_some()) else { continue };
            if let Some((node, name)) = fields.first(&["id", "name", "gate"]).and_then(|node| Some((node, text(node)?)))
                && !self.known.contains_key(name)
                && !is_too_many(checker, &node.span, self.order.len() + 1, "`gates`")
            {
                self.add(checker, name, &node.span, Some(item));
            }
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Definition> {
        self.known.get(name)
    }

    /// Warns about gates that never run.
    pub(super) fn warn_of_unused(&self, checker: &mut Checker<'_, '_>) {
        for name in self.unused() {
            let message = format!("gate `{}` never runs: no phase or workstream names it", shown(name));
            let help = "list it under `gates` of a phase, or remove it";
            checker.report.warning(ProblemCode::UnusedKey, &self.known[name].span, message).help(help);
        }
    }

    pub(super) fn unused(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(String::as_str).filter(|name| !self.known[*name].used)
    }

    /// The criteria of all gates, by gate name.
    pub(super) fn criteria(&self) -> BTreeMap<String, String> {
        let criteria = |(name, definition): (&String, &Definition)| Some((name.clone(), definition.criteria.clone()?));
        self.known.iter().filter(|(_, definition)| definition.used).filter_map(criteria).collect()
    }
}

/// The names in `lint + test-pass`, each without its remark.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split('+').map(|part| without_remark(part.trim())).filter(|part| !part.is_empty())
}

/// One command, or several that must all succeed; `None` if the text is one of `NO_COMMAND`.
pub(super) fn commands(checker: &mut Checker<'_, '_>, node: &Node<'_>) -> Option<String> {
    let mut commands = Vec::new();
    for item in checker.one_or_more(node) {
        if item.is_null() || text(item).is_some_and(|text| NO_COMMAND.contains(&text.to_ascii_lowercase().as_str())) {
            continue;
        }
        commands.extend(checker.command(item, "the command"));
    }
    match &commands[..] {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(several.iter().map(|command| format!("{{ {command}\n}}")).collect::<Vec<_>>().join(" && ")),
    }
}

/// The command, preceded by a check that the required files exist.
fn with_files(checker: &mut Checker<'_, '_>, fields: Fields<'_, '_>, run: Option<String>) -> Option<String> {
    let Some(node) = fields.first(&["files_required", "required_files"]) else { return run };
    let mut lines = String::new();
    for name in names(checker, node, "`files_required`") {
        let quoted = format!("'{}'", name.text.replace('\'', "'\\''"));
        lines += &format!("test -e {quoted} || {{ printf '%s is missing\\n' {quoted} >&2; exit 1; }}\n");
    }
    Some(lines + run.as_deref().unwrap_or("true"))
}

/// A value as text, with one line for each of its parts.
fn words(node: &Node<'_>) -> String {
    match &*node.content {
        Content::Scalar(scalar) => scalar.text.trim().to_owned(),
        Content::List(items) => items.iter().map(words).collect::<Vec<_>>().join("; "),
        Content::Map(entries) => {
            entries.iter().map(|entry| format!("{}: {}", entry.key, words(&entry.value))).collect::<Vec<_>>().join("; ")
        }
    }
}
