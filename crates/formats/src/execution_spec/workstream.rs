//! One workstream: executor, dependencies, outputs.

use super::gate::{self, Definitions};
use super::output::{OUTPUT_KEYS, outputs};
use super::{Fields, Name, cut, is_too_many, map, names, text};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Checker, Content, Node};
use lockgate_engine::spec::workflow::Output;
use std::collections::BTreeMap;
use std::ops::Range;

/// Keys for the executor, in order of preference.
const EXECUTOR_KEYS: [&str; 3] = ["executor", "agent", "skill"];

/// Keys for the command of a workstream without an agent.
const RUN_KEYS: [&str; 2] = ["command", "run"];

/// Keys for the dependencies, in order of preference.
const NEEDS_KEYS: [&str; 3] = ["depends_on", "dependencies", "needs"];

/// Keys that the prompt does not list again, because it words them itself or leaves them out.
pub(super) const NOT_LISTED_IN_PROMPT: [&str; 14] = [
    "id",
    "name",
    "title",
    "description",
    "executor",
    "agent",
    "skill",
    "executor_type",
    "depends_on",
    "dependencies",
    "needs",
    "gate",
    "gates",
    "timeout",
];

/// A workstream as written in the file.
pub(super) struct RawWorkstream<'n, 'a> {
    pub(super) id: Name<'n>,
    pub(super) fields: Fields<'n, 'a>,
    pub(super) name: String,
    pub(super) executor: Option<String>,
    /// The command of a workstream without an agent.
    pub(super) run: Option<String>,
    /// The workstreams that must complete first.
    pub(super) needs: Vec<Name<'n>>,
    pub(super) gates: Vec<Name<'n>>,
    pub(super) outputs: Vec<Output>,
    /// Whether the workstream is not part of this pipeline, so it may have no phase.
    pub(super) deferred: bool,
    /// The position in the phase that lists it.
    pub(super) placed: Option<Range<usize>>,
}

/// The workstreams of a file: a map by id, or a list of maps with an `id` each.
pub(super) fn workstreams<'n, 'a>(
    checker: &mut Checker<'_, '_>,
    top: Fields<'n, 'a>,
    span: &Range<usize>,
    gates: &mut Definitions,
) -> Vec<RawWorkstream<'n, 'a>> {
    let Some(node) = top.get("workstreams") else {
        checker.error(ProblemCode::MissingKey, span, "an EXECUTION-SPEC needs `workstreams`");
        return Vec::new();
    };
    let mut found: Vec<(Name<'n>, &'n Node<'a>)> = Vec::new();
    match &*node.content {
        Content::Map(entries) => {
            for entry in entries {
                let id: &'n str = &entry.key;
                if checker.is_id(id, &entry.key_span, "the id of a workstream") {
                    found.push((Name { text: id, span: entry.key_span.clone() }, &entry.value));
                }
            }
        }
        Content::List(items) => {
            for item in items {
                let Some(id) = map(item).and_then(|fields| fields.first(&["id", "workstream"])) else {
                    checker.error(ProblemCode::MissingKey, &item.span, "a workstream needs `id`");
                    continue;
                };
                if let Some(text) = checker.id(id, "the id of a workstream") {
                    found.push((Name { text, span: id.span.clone() }, item));
                }
            }
        }
        Content::Scalar(_) => {
            checker.wrong_kind(node, "`workstreams`", "a map of workstreams by id");
        }
    }
    if is_too_many(checker, &node.span, found.len(), "`workstreams`") {
        return Vec::new();
    }
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut workstreams = Vec::new();
    for (id, node) in found {
        if let Some(first) = seen.get(id.text) {
            checker.repeated("workstream", &id.span, id.text, *first);
            continue;
        }
        seen.insert(id.text, id.span.start);
        match map(node) {
            Some(fields) => workstreams.push(workstream(checker, id, fields, gates)),
            None => {
                checker.wrong_kind(node, &format!("workstream `{}`", id.text), "a map of keys and values");
            }
        }
    }
    if workstreams.is_empty() && !checker.report.has_error() {
        checker
            .error(ProblemCode::EmptyValue, &node.span, "`workstreams` is empty")
            .help("a pipeline needs at least one workstream");
    }
    workstreams
}

fn workstream<'n, 'a>(
    checker: &mut Checker<'_, '_>,
    id: Name<'n>,
    fields: Fields<'n, 'a>,
    gates: &mut Definitions,
) -> RawWorkstream<'n, 'a> {
    let known: Vec<&str> = [
        &EXECUTOR_KEYS[..],
        &NEEDS_KEYS,
        &OUTPUT_KEYS,
        &RUN_KEYS,
        &["gate", "gates", "name", "title", "description", "deferred"],
    ]
    .concat();
    fields.warn_of_misspellings(checker, "a workstream", &known);
    let name = fields.first(&["name", "title"]).and_then(text).map_or_else(|| id.text.to_owned(), cut);
    let executor =
        fields.first(&EXECUTOR_KEYS).and_then(|node| checker.filled(node, "`executor`")).map(|text| text.trim().to_owned());
    let run = fields.first(&RUN_KEYS).and_then(|node| gate::commands(checker, node));
    let needs = match fields.first(&NEEDS_KEYS) {
        Some(node) => names(checker, node, "`depends_on`"),
        None => Vec::new(),
    };
    let needs = needs.into_iter().filter(|need| !need.text.eq_ignore_ascii_case("none")).collect();
    let gates = gates.named(checker, fields);
    let outputs = outputs(checker, fields);
    RawWorkstream { id, fields, name, executor, run, needs, gates, outputs, deferred: fields.is_true("deferred"), placed: None }
}
