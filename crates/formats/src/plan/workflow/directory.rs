//! Several plans as one workflow: one phase per wave, in which plans run in parallel unless one depends on another.

use super::super::{self as plan, PlanFile};
use super::{assembled, commits, line_span, plan_id, safe, steps, with_parts};
use lockgate_engine::id::{PhaseId, TaskId};
use lockgate_engine::spec::Read;
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::reader::{Report, shown};
use lockgate_engine::spec::workflow::{Phase, Workflow};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A plan in a directory.
#[derive(Clone, Copy, Debug)]
pub struct PlanText<'t> {
    /// The name of its file.
    pub name: &'t str,
    pub source: &'t str,
    /// Whether the plan is complete. It does not run then, and plans that depend on it need not wait.
    pub is_done: bool,
}

/// A plan and its position among the others.
struct Member<'t> {
    file: PlanText<'t>,
    plan: PlanFile,
    id: String,
    /// The number of its phase, in a comparable form: `07.2` is between `07` and `08`.
    stage: Vec<u64>,
    wave: u32,
    /// The plans that it waits for.
    needs: Vec<usize>,
    report: Report,
    problems: Vec<Problem>,
}

/// Reads the plans of a directory as one workflow called `name`, and reports everything unusual about each.
pub fn read_directory(name: &str, files: &[PlanText<'_>]) -> Read {
    let (done, open): (Vec<&PlanText<'_>>, Vec<&PlanText<'_>>) = files.iter().partition(|file| file.is_done);
    let done: Vec<String> = done.into_iter().map(|file| member(file).id).collect();
    let mut members: Vec<Member<'_>> = open.into_iter().map(member).collect();
    members.sort_by(|one, other| one.stage.cmp(&other.stage).then_with(|| by_name(one, other)));
    report_duplicates(&mut members);
    find_needs(&mut members, &done);
    settle_waves(&mut members);
    keep_apart(&mut members);
    let waves = waves(&members);
    let mut workflow = Workflow { name: name.to_owned(), ..Workflow::default() };
    for (phase, wave) in &waves {
        workflow.phases.push(phase_of(phase, wave, &mut members));
    }
    let mut problems = Vec::new();
    for member in &mut members {
        let more = std::mem::take(&mut member.report).finish(member.file.source);
        let mut own = std::mem::take(&mut member.problems);
        own.extend(more);
        own.sort_by_key(|problem| (problem.line, problem.column));
        problems.extend(own.into_iter().map(|problem| Problem { file: Some(member.file.name.to_owned()), ..problem }));
    }
    let parts = members.iter().map(|member| (member.id.clone(), Some(member.file.name.to_owned()), &member.plan)).collect();
    with_parts(workflow, parts, problems)
}

fn member<'t>(file: &PlanText<'t>) -> Member<'t> {
    let plan::Read { plan, problems } = plan::read(file.source);
    let id = plan_id(&plan.frontmatter, Some(file.name));
    let phase = plan.frontmatter.phase.as_deref().unwrap_or(file.name);
    let number: String = phase.trim().chars().take_while(|sign| sign.is_ascii_digit() || *sign == '.').collect();
    let stage = number.split('.').filter(|part| !part.is_empty()).map(|part| part.parse().unwrap_or(u64::MAX)).collect();
    let wave = plan.frontmatter.wave.unwrap_or(0);
    Member { file: *file, plan, id, stage, wave, needs: Vec::new(), report: Report::default(), problems }
}

/// Compares plans by number, then by file name.
fn by_name(one: &Member<'_>, other: &Member<'_>) -> Ordering {
    let number = |member: &Member<'_>| member.plan.frontmatter.plan.as_deref().and_then(|plan| plan.trim().parse::<u64>().ok());
    (number(one), one.file.name).cmp(&(number(other), other.file.name))
}

/// Reports plans with the same id, because they would share tasks.
fn report_duplicates(members: &mut [Member<'_>]) {
    for index in 1..members.len() {
        let id = members[index].id.clone();
        if let Some(first) = members[..index].iter().find(|member| member.id == id).map(|member| member.file.name.to_owned()) {
            let span = line_of_key(&members[index], "plan");
            let message = format!("plan id {id} is also used by {}", shown(&first));
            members[index].report.error(ProblemCode::DuplicateId, &span, message).help("give each plan a unique number");
        }
    }
}

/// Finds the plans that each one waits for. Plans outside this directory are assumed to be complete.
fn find_needs(members: &mut [Member<'_>], done: &[String]) {
    let ids: Vec<String> = members.iter().map(|member| member.id.clone()).collect();
    for (index, member) in members.iter_mut().enumerate() {
        let span = line_of_key(member, "depends_on");
        let mut elsewhere = Vec::new();
        for wanted in &member.plan.frontmatter.depends_on {
            let name = wanted.trim().trim_end_matches(".md");
            let name = safe(name.strip_suffix("-PLAN").unwrap_or(name));
            // Within a phase, the number of the plan is enough.
            let stage = member.id.rsplit_once('-').map(|(stage, _)| format!("{stage}-{name}"));
            match ids.iter().position(|id| *id == name || Some(id) == stage.as_ref()) {
                Some(other) if other == index => {
                    let message = "this plan depends on itself";
                    member.report.error(ProblemCode::DependencyCycle, &span, message).help("remove it from `depends_on`");
                }
                Some(other) => member.needs.push(other),
                None if done.iter().any(|id| *id == name || Some(id) == stage.as_ref()) => {}
                None => elsewhere.push(shown(wanted)),
            }
        }
        if !elsewhere.is_empty() {
            let names = elsewhere.join(", ");
            let message = format!("this plan depends on {names}, not found in this directory; assuming it is complete");
            let help = "run it first, or move it to this directory";
            member.report.warning(ProblemCode::UnknownTask, &span, message).help(help);
        }
    }
}

/// Assigns a wave to each plan without one, after its dependencies, and reports impossible orders.
fn settle_waves(members: &mut [Member<'_>]) {
    for index in 0..members.len() {
        if let Some(round) = cycle(members, index) {
            let span = line_of_key(&members[index], "depends_on");
            let names: Vec<&str> = round.iter().map(|at| members[*at].id.as_str()).collect();
            let message = format!("these plans depend on each other: {}", names.join(" → "));
            members[index].report.error(ProblemCode::DependencyCycle, &span, message).help("remove one of the dependencies");
            return;
        }
    }
    // Without a cycle, this converges after at most one round per plan.
    for _ in 0..members.len() {
        for index in 0..members.len() {
            let stage = &members[index].stage;
            let before = members[index].needs.iter().filter(|need| members[**need].stage == *stage);
            let after = before.map(|need| members[*need].wave.max(1) + 1).max().unwrap_or(1);
            if members[index].plan.frontmatter.wave.is_none() {
                members[index].wave = after;
            }
        }
    }
    for index in 0..members.len() {
        let late = members[index].needs.iter().copied().find(|need| place(&members[*need]) > place(&members[index]));
        if let Some(late) = late {
            let (span, id) = (line_of_key(&members[index], "depends_on"), members[late].id.clone());
            let message = format!("this plan depends on plan {id}, which is in a later wave");
            members[index].report.error(ProblemCode::PhaseOrder, &span, message).help("give this plan a later `wave`");
        }
    }
}

fn place<'m>(member: &'m Member<'_>) -> (&'m [u64], u32) {
    (&member.stage, member.wave)
}

/// The path from a plan back to itself, if there is one.
fn cycle(members: &[Member<'_>], start: usize) -> Option<Vec<usize>> {
    let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for need in &members[at].needs {
            if *need == start {
                let mut path = vec![start];
                let mut here = at;
                while here != start {
                    path.insert(1, here);
                    here = came_from[&here];
                }
                path.push(start);
                return Some(path);
            }
            if !came_from.contains_key(need) {
                came_from.insert(*need, at);
                open.push(*need);
            }
        }
    }
    None
}

/// Plans of one wave that change the same files, or whose changes are committed, run one after another.
fn keep_apart(members: &mut [Member<'_>]) {
    for index in 0..members.len() {
        for before in 0..index {
            if place(&members[before]) != place(&members[index]) || waits_for(members, before, index) {
                continue;
            }
            let (one, other) = (&members[before].plan.frontmatter, &members[index].plan.frontmatter);
            let shared = one.files_modified.iter().find(|file| other.files_modified.contains(file)).cloned();
            if shared.is_none() && !commits(one) && !commits(other) {
                continue;
            }
            let id = members[before].id.clone();
            if let Some(file) = shared {
                let span = line_of_key(&members[index], "files_modified");
                let message = format!("plan {id} in the same wave also changes {}; this plan waits for it", shown(&file));
                members[index].report.warning(ProblemCode::InvalidValue, &span, message).help("move one of them to another wave");
            }
            members[index].needs.push(before);
        }
    }
}

/// Whether one plan waits for another, directly or indirectly.
fn waits_for(members: &[Member<'_>], one: usize, other: usize) -> bool {
    let (mut open, mut seen) = (vec![one], vec![one]);
    while let Some(at) = open.pop() {
        for need in &members[at].needs {
            if *need == other {
                return true;
            }
            if !seen.contains(need) {
                seen.push(*need);
                open.push(*need);
            }
        }
    }
    false
}

/// The waves in order, each with its phase.
fn waves(members: &[Member<'_>]) -> Vec<(PhaseId, Vec<usize>)> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by(|one, other| place(&members[*one]).cmp(&place(&members[*other])).then(one.cmp(other)));
    let several = members.iter().any(|member| member.stage != members[0].stage);
    let mut waves: Vec<(PhaseId, Vec<usize>)> = Vec::new();
    for index in order {
        let member = &members[index];
        let stage = member.id.rsplit_once('-').map_or(member.id.as_str(), |(stage, _)| stage);
        let id = if several { format!("{stage}-wave-{}", member.wave) } else { format!("wave-{}", member.wave) };
        match waves.last_mut() {
            Some((_, wave)) if place(&members[wave[0]]) == place(member) => wave.push(index),
            Some(_) | None => waves.push((PhaseId::new(id), vec![index])),
        }
    }
    waves
}

fn phase_of(phase: &PhaseId, wave: &[usize], members: &mut [Member<'_>]) -> Phase {
    let mut made: Vec<(usize, steps::Steps)> = Vec::new();
    for index in wave.iter().copied() {
        let member = &mut members[index];
        let prefix = format!("{}-", member.id);
        made.push((index, steps::steps(member.file.source, &member.plan, &member.id, phase, &prefix, &mut member.report)));
    }
    // After its last task, a plan may have another check or a verification by a person.
    let last = |made: &[(usize, steps::Steps)], plan: usize| {
        let steps = made.iter().find(|(index, _)| *index == plan).map(|(_, steps)| steps)?;
        steps.tasks.last().map(|task| task.id.clone())
    };
    for position in 0..made.len() {
        let needs = &members[made[position].0].needs;
        let waits: Vec<TaskId> = needs.iter().filter_map(|need| last(&made, *need)).collect();
        if let Some(first) = made[position].1.tasks.first_mut() {
            first.needs.extend(waits);
        }
    }
    let plans = made.into_iter().map(|(index, steps)| (members[index].id.clone(), &members[index].plan, steps)).collect();
    let names: Vec<&str> = wave.iter().map(|index| members[*index].id.as_str()).collect();
    Phase { name: Some(format!("{phase}: {}", names.join(", "))), ..assembled(phase.clone(), plans) }
}

/// The line of a key in the frontmatter; the first line if it has none.
fn line_of_key(member: &Member<'_>, key: &str) -> std::ops::Range<usize> {
    let is_it = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let line = member.file.source.lines().position(is_it).map_or(1, |line| line + 1);
    line_span(member.file.source, line)
}
