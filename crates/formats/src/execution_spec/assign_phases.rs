//! Assigns every workstream to a phase, and finds the dependencies within each phase.
//!
//! Real files leave workstreams out of their phases, or list them before their dependencies. Both are moved to a phase where they can run, with a
//! warning.

use super::phase::{Placed, RawPhase};
use super::without_remark;
use super::workstream::RawWorkstream;
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Checker, cycle_text, cycles, shown};
use lockgate_engine::spec::suggest;
use std::collections::BTreeMap;

/// For each workstream, its dependencies, each with its position in the `depends_on` list.
type Needs = Vec<Vec<(usize, usize)>>;

/// Assigns every workstream to a phase, and reports dependency cycles.
pub(super) fn assign_phases(
    checker: &mut Checker<'_, '_>,
    workstreams: &mut [RawWorkstream<'_, '_>],
    phases: &mut [RawPhase<'_>],
) -> Placed {
    let mut phase_of = vec![None; workstreams.len()];
    for (number, phase) in phases.iter().enumerate() {
        phase.members.iter().for_each(|member| phase_of[*member] = Some(number));
    }
    let needs = resolved(checker, workstreams);
    place_missing(checker, workstreams, phases, &needs, &mut phase_of);
    move_later(checker, workstreams, phases, &needs, &mut phase_of);
    let within = within_phases(checker, workstreams, &needs, &phase_of);
    for cycle in cycles(&within) {
        let first = &workstreams[cycle[0]];
        let path = cycle_text(cycle.iter().chain(cycle.first()).map(|position| workstreams[*position].id.text));
        let span = first.needs.first().map_or(&first.id.span, |need| &need.span);
        checker
            .error(ProblemCode::DependencyCycle, span, format!("these workstreams depend on each other: {path}"))
            .help("remove one of these dependencies");
    }
    Placed { phase_of, needs: within }
}

/// Resolves dependencies to positions; undefined ones are reported and left out.
fn resolved(checker: &mut Checker<'_, '_>, workstreams: &[RawWorkstream<'_, '_>]) -> Needs {
    let positions: BTreeMap<&str, usize> =
        workstreams.iter().enumerate().map(|(position, workstream)| (workstream.id.text, position)).collect();
    let mut needs = Vec::with_capacity(workstreams.len());
    for workstream in workstreams {
        let mut needed = Vec::new();
        for (index, need) in workstream.needs.iter().enumerate() {
            let Some(&other) = positions.get(need.text).or_else(|| positions.get(without_remark(need.text))) else {
                let message =
                    format!("workstream `{}` depends on `{}`, which is not defined", workstream.id.text, shown(need.text));
                let others = positions.keys().copied().filter(|other| *other != workstream.id.text);
                let meant = if checker.report.is_full() { None } else { suggest::did_you_mean(need.text, others) };
                let help = meant.unwrap_or_else(|| "list work of other pipelines under `external_dependencies`".into());
                checker.error(ProblemCode::UnknownTask, &need.span, message).help(help);
                continue;
            };
            needed.push((other, index));
        }
        needs.push(needed);
    }
    needs
}

/// Workstreams without a phase run in the phase of their last dependency; deferred ones do not run.
fn place_missing(
    checker: &mut Checker<'_, '_>,
    workstreams: &mut [RawWorkstream<'_, '_>],
    phases: &mut [RawPhase<'_>],
    needs: &Needs,
    phase_of: &mut [Option<usize>],
) {
    for workstream in workstreams.iter().zip(phase_of.iter()).filter(|(stream, phase)| stream.deferred && phase.is_none()) {
        let message = format!("workstream `{}` is deferred and not in any phase, so it does not run", workstream.0.id.text);
        checker
            .report
            .warning(ProblemCode::UnscheduledTask, &workstream.0.id.span, message)
            .help("add it to a phase under `execution_phases` to run it");
    }
    let Some(last) = phases.len().checked_sub(1) else { return };
    let mut missing: Vec<usize> =
        (0..workstreams.len()).filter(|position| phase_of[*position].is_none() && !workstreams[*position].deferred).collect();
    while !missing.is_empty() {
        let is_ready = |position: &usize| {
            needs[*position].iter().all(|(other, _)| phase_of[*other].is_some() || workstreams[*other].deferred)
        };
        let (mut ready, waiting): (Vec<usize>, Vec<usize>) = missing.iter().copied().partition(is_ready);
        // Members of a cycle are placed anywhere; the cycle itself is reported.
        let in_cycle = ready.is_empty();
        if in_cycle {
            ready.clone_from(&missing);
        }
        for position in ready {
            let after = needs[position].iter().filter_map(|(other, _)| Some((phase_of[*other]?, *other))).max();
            let target = if in_cycle { last } else { after.map_or(0, |(phase, _)| phase) };
            let stream = &workstreams[position];
            let because = after.map(|(_, other)| format!(", after `{}`", workstreams[other].id.text)).unwrap_or_default();
            let message = format!(
                "workstream `{}` is not in any phase; it runs in phase `{}`{because}",
                stream.id.text,
                shown(&phases[target].name)
            );
            checker
                .report
                .warning(ProblemCode::UnscheduledTask, &stream.id.span, message)
                .help("add it to a phase under `execution_phases`, or mark it with `deferred: true`");
            phase_of[position] = Some(target);
            phases[target].members.push(position);
            workstreams[position].placed = Some(workstreams[position].id.span.clone());
        }
        missing = if in_cycle { Vec::new() } else { waiting };
    }
}

/// A workstream that depends on one in a later phase moves to that phase, and so do its dependents.
fn move_later(
    checker: &mut Checker<'_, '_>,
    workstreams: &[RawWorkstream<'_, '_>],
    phases: &mut [RawPhase<'_>],
    needs: &Needs,
    phase_of: &mut [Option<usize>],
) {
    let mut dependents: Vec<Vec<(usize, usize)>> = vec![Vec::new(); workstreams.len()];
    for (position, needed) in needs.iter().enumerate() {
        needed.iter().for_each(|(other, index)| dependents[*other].push((position, *index)));
    }
    let mut order: Vec<usize> = (0..workstreams.len()).filter(|position| phase_of[*position].is_some()).collect();
    // Starting with the last phase, each workstream is first reached from the latest phase that it depends on.
    order.sort_by_key(|position| std::cmp::Reverse(phase_of[*position]));
    let mut seen = vec![false; workstreams.len()];
    for start in order {
        let Some(target) = phase_of[start].filter(|_| !std::mem::replace(&mut seen[start], true)) else { continue };
        let mut ahead = vec![start];
        while let Some(position) = ahead.pop() {
            for (dependent, index) in &dependents[position] {
                let Some(own) = phase_of[*dependent].filter(|_| !std::mem::replace(&mut seen[*dependent], true)) else {
                    continue;
                };
                ahead.push(*dependent);
                if own < target {
                    let (id, need) = (workstreams[*dependent].id.text, &workstreams[*dependent].needs[*index]);
                    let (from, to) = (shown(&phases[own].name), shown(&phases[target].name));
                    let message = format!(
                        "workstream `{id}` of phase `{from}` depends on `{}`, so it runs in the later phase `{to}`",
                        need.text
                    );
                    let help = format!("list `{id}` under phase `{to}`, or move its dependency to an earlier phase");
                    checker.report.warning(ProblemCode::PhaseOrder, &need.span, message).help(help);
                    phases[own].members.retain(|member| member != dependent);
                    phases[target].members.push(*dependent);
                    phase_of[*dependent] = Some(target);
                }
            }
        }
    }
}

/// The dependencies within each phase. Those on earlier phases need no record, because phases run in order.
fn within_phases(
    checker: &mut Checker<'_, '_>,
    workstreams: &[RawWorkstream<'_, '_>],
    needs: &Needs,
    phase_of: &[Option<usize>],
) -> Vec<Vec<usize>> {
    let mut within = Vec::with_capacity(workstreams.len());
    for (position, workstream) in workstreams.iter().enumerate() {
        let mut needed = Vec::new();
        for (other, index) in &needs[position] {
            match (phase_of[position], phase_of[*other]) {
                (Some(_), None) if workstreams[*other].deferred => {
                    let need = &workstream.needs[*index];
                    let message = format!(
                        "workstream `{}` depends on `{}`, which is deferred and not in any phase",
                        workstream.id.text, need.text
                    );
                    checker
                        .error(ProblemCode::UnscheduledTask, &need.span, message)
                        .help("add it to a phase, or remove the dependency");
                }
                (Some(own), Some(others)) if others != own => {}
                (Some(_) | None, Some(_) | None) => needed.push(*other),
            }
        }
        within.push(needed);
    }
    within
}
