//! Whether a state file and its EXECUTION-SPEC speak of the same workstreams and gates.

use super::check::{Names, named};
use super::rule::{Findings, Rule};
use crate::json::Placed;
use lockgate_engine::spec::workflow::{Pipeline, Workflow};
use std::collections::{BTreeMap, BTreeSet};

/// A workflow that was an EXECUTION-SPEC.
type Spec<'w> = (&'w Workflow, &'w Pipeline);

/// The three lists together hold every workstream of the spec.
pub(super) fn workstreams(found: &mut Findings<'_>, root: &Placed, (_, pipeline): Spec<'_>, lists: &[&Names<'_>; 3]) {
    let listed: Vec<(&str, &Placed)> = lists.iter().flat_map(|list| list.names.iter().copied()).collect();
    let ids = pipeline.workstreams.iter().map(|stream| stream.id.as_str());
    let known: BTreeSet<&str> = ids.clone().chain(pipeline.deferred.iter().map(|id| id.as_str())).collect();
    let names: BTreeSet<&str> = listed.iter().map(|(name, _)| *name).collect();
    let absent: Vec<&str> = ids.filter(|id| !names.contains(id)).collect();
    let strange: Vec<(&str, &Placed)> = listed.iter().copied().filter(|(name, _)| !known.contains(name)).collect();
    let mut said = Vec::new();
    if !absent.is_empty() {
        said.push(format!("{} of the EXECUTION-SPEC stand in none of the three lists", named(absent.iter().copied())));
    }
    if !strange.is_empty() {
        said.push(format!("{} are no workstreams of the EXECUTION-SPEC", named(strange.iter().map(|(name, _)| *name))));
    }
    if !said.is_empty() {
        let pending = lists[2].entry.map(|entry| &entry.key_span);
        let span = strange.first().map(|(_, place)| &place.span).or(pending).unwrap_or(&root.span);
        let help = "completed, in progress and pending workstreams together are all of the EXECUTION-SPEC";
        found.add(Rule::SpecWorkstreams, span, said.join("; "), help);
    }
}

/// The two lists together hold every gate of the spec. `lint (WS3)` is the gate of a workstream; where a suffix is absent, names are compared.
pub(super) fn gates(found: &mut Findings<'_>, root: &Placed, (workflow, pipeline): Spec<'_>, lists: &[&Names<'_>; 2]) {
    let titles = workflow.phases.iter().flat_map(|phase| phase.gates.iter().map(|gate| gate.title()));
    let titles: Vec<&str> = titles.chain(pipeline.manual_gates.iter().map(|gate| gate.title.as_str())).collect();
    let listed: Vec<(&str, &Placed)> = lists.iter().flat_map(|list| list.names.iter().copied()).collect();
    let mut entries: BTreeMap<&str, Owners<'_>> = BTreeMap::new();
    for (entry, _) in &listed {
        let (name, owners) = parts(entry);
        let known = entries.entry(name).or_default();
        known.nobody |= owners.is_empty();
        known.some.extend(owners);
    }
    let is_there = |title: &&str| {
        let (name, owners) = parts(title);
        entries.get(name).is_some_and(|found| found.nobody || owners.iter().all(|owner| found.some.contains(owner)))
    };
    let absent: Vec<&str> = titles.iter().copied().filter(|title| !is_there(title)).collect();
    let unused = pipeline.unused_gates.iter().map(String::as_str);
    let defined: BTreeSet<&str> = titles.iter().map(|title| parts(title).0).chain(unused).collect();
    let streams: BTreeSet<&str> = pipeline.workstreams.iter().map(|stream| stream.id.as_str()).collect();
    let known = |entry: &str| {
        let (name, owners) = parts(entry);
        defined.contains(name) && (owners.is_empty() || owners.iter().any(|owner| streams.contains(owner)))
    };
    // A review that ships with gates adds gates of its own, and they stay when a person overrides it later.
    let review = root.get("adversarial_review").and_then(|review| review.get("verdict")).and_then(Placed::text);
    let strange: Vec<(&str, &Placed)> = match review {
        Some("ship_with_gates" | "overridden") => Vec::new(),
        Some(_) | None => listed.iter().copied().filter(|(entry, _)| !known(entry)).collect(),
    };
    let mut said = Vec::new();
    if !absent.is_empty() {
        said.push(format!("{} of the EXECUTION-SPEC are neither passed nor pending", named(absent.iter().copied())));
    }
    if !strange.is_empty() {
        said.push(format!("{} are no gates of the EXECUTION-SPEC", named(strange.iter().map(|(entry, _)| *entry))));
    }
    if !said.is_empty() {
        let pending = lists[1].entry.map(|entry| &entry.key_span);
        let span = strange.first().map(|(_, place)| &place.span).or(pending).unwrap_or(&root.span);
        found.add(Rule::SpecGates, span, said.join("; "), "passed and pending gates together are all of the EXECUTION-SPEC");
    }
}

/// To whom the entries of one gate belong.
#[derive(Default)]
struct Owners<'f> {
    /// An entry names no workstream.
    nobody: bool,
    /// The workstreams that entries name.
    some: BTreeSet<&'f str>,
}

/// The name of a gate, and the workstreams that it belongs to: `lint (WS2+WS3)`.
fn parts(entry: &str) -> (&str, Vec<&str>) {
    let split = entry.strip_suffix(')').and_then(|inner| inner.rsplit_once(" ("));
    split.map_or((entry, Vec::new()), |(name, owners)| (name, owners.split(['+', ',', '/']).map(str::trim).collect()))
}
