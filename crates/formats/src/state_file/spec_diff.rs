//! Compares the workstreams and gates of a state file with those of its EXECUTION-SPEC.

use super::check::{Names, named};
use super::rule::{Findings, Rule};
use crate::json::Placed;
use lockgate_engine::spec::workflow::{Pipeline, Workflow};
use std::collections::{BTreeMap, BTreeSet};

/// A workflow read from an EXECUTION-SPEC.
type Spec<'w> = (&'w Workflow, &'w Pipeline);

/// Checks that the three lists together contain every workstream of the spec.
pub(super) fn workstreams(found: &mut Findings<'_>, root: &Placed, (_, pipeline): Spec<'_>, lists: &[&Names<'_>; 3]) {
    let listed: Vec<(&str, &Placed)> = lists.iter().flat_map(|list| list.names.iter().copied()).collect();
    let ids = pipeline.workstreams.iter().map(|stream| stream.id.as_str());
    let known: BTreeSet<&str> = ids.clone().chain(pipeline.deferred.iter().map(|id| id.as_str())).collect();
    let names: BTreeSet<&str> = listed.iter().map(|(name, _)| *name).collect();
    let absent: Vec<&str> = ids.filter(|id| !names.contains(id)).collect();
    let strange: Vec<(&str, &Placed)> = listed.iter().copied().filter(|(name, _)| !known.contains(name)).collect();
    let mut differences = Vec::new();
    if !absent.is_empty() {
        differences.push(format!("not in any of the three lists: {}", named(absent.iter().copied())));
    }
    if !strange.is_empty() {
        differences.push(format!("not in the EXECUTION-SPEC: {}", named(strange.iter().map(|(name, _)| *name))));
    }
    if !differences.is_empty() {
        let pending = lists[2].entry.map(|entry| &entry.key_span);
        let span = strange.first().map(|(_, place)| &place.span).or(pending).unwrap_or(&root.span);
        let help = "list every workstream of the EXECUTION-SPEC as completed, in progress or pending";
        found.add(Rule::SpecWorkstreams, span, differences.join("; "), help);
    }
}

/// Checks that the two lists together contain every gate of the spec. `lint (WS3)` is the gate of a workstream; an entry without a suffix matches by
/// name.
pub(super) fn gates(found: &mut Findings<'_>, root: &Placed, (workflow, pipeline): Spec<'_>, lists: &[&Names<'_>; 2]) {
    let titles = workflow.phases.iter().flat_map(|phase| phase.gates.iter().map(|gate| gate.title()));
    let titles: Vec<&str> = titles.chain(pipeline.manual_gates.iter().map(|gate| gate.title.as_str())).collect();
    let listed: Vec<(&str, &Placed)> = lists.iter().flat_map(|list| list.names.iter().copied()).collect();
    let mut entries: BTreeMap<&str, Owners<'_>> = BTreeMap::new();
    for (entry, _) in &listed {
        let (name, owners) = parts(entry);
        let known = entries.entry(name).or_default();
        known.shared |= owners.is_empty();
        known.workstreams.extend(owners);
    }
    let is_there = |title: &&str| {
        let (name, owners) = parts(title);
        entries.get(name).is_some_and(|found| found.shared || owners.iter().all(|owner| found.workstreams.contains(owner)))
    };
    let absent: Vec<&str> = titles.iter().copied().filter(|title| !is_there(title)).collect();
    let unused = pipeline.unused_gates.iter().map(String::as_str);
    let defined: BTreeSet<&str> = titles.iter().map(|title| parts(title).0).chain(unused).collect();
    let streams: BTreeSet<&str> = pipeline.workstreams.iter().map(|stream| stream.id.as_str()).collect();
    let known = |entry: &str| {
        let (name, owners) = parts(entry);
        defined.contains(name) && (owners.is_empty() || owners.iter().any(|owner| streams.contains(owner)))
    };
    // The verdict `ship_with_gates` adds gates of its own, which stay when a person overrides the review later.
    let review = root.get("adversarial_review").and_then(|review| review.get("verdict")).and_then(Placed::text);
    let strange: Vec<(&str, &Placed)> = match review {
        Some("ship_with_gates" | "overridden") => Vec::new(),
        Some(_) | None => listed.iter().copied().filter(|(entry, _)| !known(entry)).collect(),
    };
    let mut differences = Vec::new();
    if !absent.is_empty() {
        differences.push(format!("neither passed nor pending: {}", named(absent.iter().copied())));
    }
    if !strange.is_empty() {
        differences.push(format!("not in the EXECUTION-SPEC: {}", named(strange.iter().map(|(entry, _)| *entry))));
    }
    if !differences.is_empty() {
        let pending = lists[1].entry.map(|entry| &entry.key_span);
        let span = strange.first().map(|(_, place)| &place.span).or(pending).unwrap_or(&root.span);
        found.add(Rule::SpecGates, span, differences.join("; "), "list every gate of the EXECUTION-SPEC as passed or pending");
    }
}

/// The workstreams that the entries of one gate belong to.
#[derive(Default)]
struct Owners<'f> {
    /// An entry names no workstream, so it covers all of them.
    shared: bool,
    workstreams: BTreeSet<&'f str>,
}

/// The name of a gate, and its workstreams: `lint (WS2+WS3)`.
fn parts(entry: &str) -> (&str, Vec<&str>) {
    let split = entry.strip_suffix(')').and_then(|inner| inner.rsplit_once(" ("));
    split.map_or((entry, Vec::new()), |(name, owners)| (name, owners.split(['+', ',', '/']).map(str::trim).collect()))
}
