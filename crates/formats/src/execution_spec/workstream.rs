//! One workstream: who works, what it needs, what it leaves behind.

use super::gate::{self, Definitions};
use super::output::{OUTPUT_KEYS, outputs};
use super::{Fields, Name, cut, is_too_many, map, names, text};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Checker, Content, Node};
use lockgate_engine::spec::workflow::Output;
use std::collections::BTreeMap;
use std::ops::Range;

/// Where a workstream says who works, best first.
const EXECUTOR_KEYS: [&str; 3] = ["executor", "agent", "skill"];

/// Where a workstream says what it runs, where no agent works.
const RUN_KEYS: [&str; 2] = ["command", "run"];

/// Where a workstream says what must be done first, best first.
const NEEDS_KEYS: [&str; 3] = ["depends_on", "dependencies", "needs"];

/// Keys that are told in words of their own, or not at all.
pub(super) const TOLD_ELSEWHERE: [&str; 14] = [
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

/// A workstream as the file says it.
pub(super) struct RawWorkstream<'n, 'a> {
    /// Its id.
    pub(super) id: Name<'n>,
    /// What the file says about it.
    pub(super) fields: Fields<'n, 'a>,
    /// What people call it.
    pub(super) name: String,
    /// Who works.
    pub(super) executor: Option<String>,
    /// What it runs, where no agent works.
    pub(super) run: Option<String>,
    /// What must be done first.
    pub(super) needs: Vec<Name<'n>>,
    /// Its own gates.
    pub(super) gates: Vec<Name<'n>>,
    /// What it leaves behind.
    pub(super) outputs: Vec<Output>,
    /// Whether it is not part of this pipeline, and so may stand in no phase.
    pub(super) deferred: bool,
    /// Where it stands in a phase.
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
            checker.wrong_kind(node, "`workstreams`", "a map of workstreams by their ids");
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
        checker.error(ProblemCode::EmptyValue, &node.span, "`workstreams` is empty").help("a pipeline has at least one");
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
    fields.warn_of_slips(checker, "a workstream", &known);
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
