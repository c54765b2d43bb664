//! The phases of an EXECUTION-SPEC, and the order of the workstreams in each.

use super::gate::Definitions;
use super::workstream::RawWorkstream;
use super::{Fields, Name, PHASES_KEYS, cut, is_too_many, map, names, scalar, text, without_remark};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Checker, Content, Node, line_of, shown};
use std::collections::BTreeMap;
use std::ops::Range;

/// Keys for the workstreams of a phase, in order of preference. `parallel` may also be a boolean: whether they run in parallel.
const MEMBER_KEYS: [&str; 4] = ["parallel", "workstreams", "sequential", "tasks"];

/// Keys for notes to people, in the order in which they are shown.
const NOTE_KEYS: [&str; 5] = ["description", "note", "notes", "blocker", "goal"];

/// A phase as written in the file.
pub(super) struct RawPhase<'n> {
    pub(super) name: String,
    pub(super) span: Range<usize>,
    /// Positions in the list of all workstreams.
    pub(super) members: Vec<usize>,
    /// The gates listed on the phase itself.
    pub(super) gates: Vec<Name<'n>>,
    pub(super) notes: Vec<String>,
    /// Whether the first failure cancels running workstreams.
    pub(super) fail_fast: bool,
}

/// The result of assigning workstreams to phases.
pub(super) struct Placed {
    /// The phase of each workstream; `None` if it has no phase.
    pub(super) phase_of: Vec<Option<usize>>,
    /// For each workstream, its dependencies in the same phase.
    pub(super) needs: Vec<Vec<usize>>,
}

/// The phases of a file: a list, or a map by name.
pub(super) fn phases<'n, 'a>(
    checker: &mut Checker<'_, '_>,
    top: Fields<'n, 'a>,
    span: &Range<usize>,
    workstreams: &mut [RawWorkstream<'n, 'a>],
    gates: &mut Definitions,
) -> Vec<RawPhase<'n>> {
    let Some(node) = top.first(&PHASES_KEYS) else {
        checker
            .error(ProblemCode::MissingKey, span, "an EXECUTION-SPEC needs `execution_phases`")
            .help("list the phases in order, each with `name` and the ids of its workstreams under `parallel`");
        return Vec::new();
    };
    let parts: Vec<(Option<&'n str>, &'n Node<'a>)> = match &*node.content {
        Content::List(items) => items.iter().map(|item| (None, item)).collect(),
        Content::Map(entries) => entries.iter().map(|entry| (Some(&*entry.key), &entry.value)).collect(),
        Content::Scalar(_) => {
            checker.wrong_kind(node, "`execution_phases`", "a list of phases");
            return Vec::new();
        }
    };
    if is_too_many(checker, &node.span, parts.len(), "`execution_phases`") {
        return Vec::new();
    }
    let positions: BTreeMap<String, usize> =
        workstreams.iter().enumerate().map(|(position, workstream)| (workstream.id.text.to_owned(), position)).collect();
    let mut phases = Vec::new();
    for (number, (key, node)) in parts.into_iter().enumerate() {
        phases.push(phase(checker, number, key, node, workstreams, &positions, gates));
    }
    if phases.is_empty() {
        checker
            .error(ProblemCode::EmptyValue, &node.span, "`execution_phases` is empty")
            .help("a pipeline needs at least one phase");
    }
    phases
}

fn phase<'n, 'a>(
    checker: &mut Checker<'_, '_>,
    number: usize,
    key: Option<&'n str>,
    node: &'n Node<'a>,
    workstreams: &mut [RawWorkstream<'n, 'a>],
    positions: &BTreeMap<String, usize>,
    gates: &mut Definitions,
) -> RawPhase<'n> {
    let fields = map(node);
    let said = fields.and_then(|fields| fields.first(&["name", "title", "label"])).and_then(text).or(key);
    let counted = || {
        format!(
            "Phase {}",
            fields
                .and_then(|fields| fields.first(&["phase", "id"]))
                .and_then(text)
                .map_or_else(|| (number + 1).to_string(), str::to_owned)
        )
    };
    let mut phase = RawPhase {
        name: said.map_or_else(counted, cut),
        span: node.span.clone(),
        members: Vec::new(),
        gates: Vec::new(),
        notes: Vec::new(),
        fail_fast: fields.is_some_and(|fields| fields.is_true("fail_fast")),
    };
    let list = match fields {
        None => Some(node),
        Some(fields) => MEMBER_KEYS.iter().find_map(|key| fields.get(key).filter(|node| !is_boolean(node))),
    };
    let mut in_order = false;
    if let Some(fields) = fields {
        let known: Vec<&str> = [&MEMBER_KEYS[..], &["gate", "gates", "name", "title", "blocked"], &NOTE_KEYS].concat();
        fields.warn_of_misspellings(checker, "a phase", &known);
        in_order = list.is_some_and(|list| fields.get("sequential").is_some_and(|other| std::ptr::eq(other, list)))
            || fields.get("parallel").and_then(scalar).is_some_and(|scalar| scalar.boolean() == Some(false));
        phase.gates = gates.named(checker, fields);
        phase.notes = NOTE_KEYS.iter().filter_map(|key| fields.get(key)).filter_map(text).map(cut).collect();
        match mode(checker, fields) {
            Some("sequential") => in_order = true,
            Some("parallel") | None => {}
            Some(other) => phase.notes.push(format!("This phase is marked as `{other}`.")),
        }
        if fields.is_true("blocked") {
            let message = format!("phase `{}` is marked as blocked, but still runs when its turn comes", shown(&phase.name));
            let help = "the checkpoint before it shows the note; answer it when the phase may start";
            checker.report.warning(ProblemCode::UnusedKey, &node.span, message).help(help);
            phase.notes.push("This phase is marked as blocked.".to_owned());
        }
    }
    let Some(list) = list else { return phase };
    for name in names(checker, list, "a workstream") {
        let Some(&position) = positions.get(name.text).or_else(|| positions.get(without_remark(name.text))) else {
            let message = format!("workstream `{}` is not defined under `workstreams`", shown(name.text));
            checker.none_of(ProblemCode::UnknownTask, &name.span, message, name.text, positions.keys().map(String::as_str));
            continue;
        };
        if in_order && let Some(before) = phase.members.last().map(|before| workstreams[*before].id.clone()) {
            let needs = &mut workstreams[position].needs;
            if !needs.iter().any(|need| need.text == before.text) {
                needs.push(Name { text: before.text, span: name.span.clone() });
            }
        }
        let workstream = &mut workstreams[position];
        match workstream.placed.replace(name.span.clone()) {
            None => phase.members.push(position),
            Some(first) => {
                let message = format!("workstream `{}` is in two phases", workstream.id.text);
                let help = format!("it is also listed on line {}; keep one of them", line_of(checker.source(), first.start));
                workstream.placed = Some(first);
                checker.error(ProblemCode::DuplicateId, &name.span, message).help(help);
            }
        }
    }
    phase
}

fn is_boolean(node: &Node<'_>) -> bool {
    scalar(node).is_some_and(|scalar| scalar.boolean().is_some())
}

/// The `execution_mode` of a phase; an unknown one gets a warning.
fn mode<'n>(checker: &mut Checker<'_, '_>, fields: Fields<'n, '_>) -> Option<&'n str> {
    let node = fields.get("execution_mode")?;
    let word = text(node)?;
    if !matches!(word, "parallel" | "sequential") {
        let message =
            format!("`execution_mode` must be parallel or sequential; `{}` is ignored, and the phase runs", shown(word));
        checker.report.warning(ProblemCode::InvalidValue, &node.span, message).help("remove the phase if it should not run");
    }
    Some(word)
}

/// Whether a gate named by workstreams of a phase runs after all work of the phase: every workstream names the gate or is a dependency of one
/// that does.
pub(super) fn covers(members: &[usize], needs: &[Vec<usize>], naming: &[usize]) -> bool {
    if naming.is_empty() {
        return false;
    }
    let mut seen = vec![false; needs.len()];
    let mut ahead: Vec<usize> = naming.to_vec();
    while let Some(position) = ahead.pop() {
        if !std::mem::replace(&mut seen[position], true) {
            ahead.extend(&needs[position]);
        }
    }
    members.iter().all(|member| seen[*member])
}
