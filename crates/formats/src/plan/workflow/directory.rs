//! Several plans as one workflow: a phase for each wave, in which plans run side by side unless one needs another.

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

/// A plan of a folder.
#[derive(Clone, Copy, Debug)]
pub struct PlanText<'t> {
    /// What its file is called.
    pub name: &'t str,
    /// Its text.
    pub source: &'t str,
    /// Whether it is done, so that it does not run and what depends on it need not wait.
    pub is_done: bool,
}

/// A plan among others.
struct Member<'t> {
    file: PlanText<'t>,
    plan: PlanFile,
    id: String,
    /// The phase that it belongs to, as a number that can be compared: `07.2` comes between `07` and `08`.
    stage: Vec<u64>,
    wave: u32,
    /// Which plans it waits for.
    needs: Vec<usize>,
    report: Report,
    problems: Vec<Problem>,
}

/// Reads the plans of a folder as one workflow called `name`, and says everything that is odd about each.
pub fn read_directory(name: &str, files: &[PlanText<'_>]) -> Read {
    let (done, open): (Vec<&PlanText<'_>>, Vec<&PlanText<'_>>) = files.iter().partition(|file| file.is_done);
    let done: Vec<String> = done.into_iter().map(|file| member(file).id).collect();
    let mut members: Vec<Member<'_>> = open.into_iter().map(member).collect();
    members.sort_by(|one, other| one.stage.cmp(&other.stage).then_with(|| by_name(one, other)));
    tell_of_namesakes(&mut members);
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

/// By the numbers of the plans, then by the names of the files.
fn by_name(one: &Member<'_>, other: &Member<'_>) -> Ordering {
    let number = |member: &Member<'_>| member.plan.frontmatter.plan.as_deref().and_then(|plan| plan.trim().parse::<u64>().ok());
    (number(one), one.file.name).cmp(&(number(other), other.file.name))
}

/// Two plans with one id would share their tasks.
fn tell_of_namesakes(members: &mut [Member<'_>]) {
    for index in 1..members.len() {
        let id = members[index].id.clone();
        if let Some(first) = members[..index].iter().find(|member| member.id == id).map(|member| member.file.name.to_owned()) {
            let span = line_of_key(&members[index], "plan");
            let message = format!("this is plan {id}, and so is {}", shown(&first));
            members[index].report.error(ProblemCode::DuplicateId, &span, message).help("give each a number of its own");
        }
    }
}

/// Finds the plans that each one waits for. Those of other folders are taken for done.
fn find_needs(members: &mut [Member<'_>], done: &[String]) {
    let ids: Vec<String> = members.iter().map(|member| member.id.clone()).collect();
    for (index, member) in members.iter_mut().enumerate() {
        let span = line_of_key(member, "depends_on");
        let mut elsewhere = Vec::new();
        for wanted in &member.plan.frontmatter.depends_on {
            let name = wanted.trim().trim_end_matches(".md");
            let name = safe(name.strip_suffix("-PLAN").unwrap_or(name));
            // Within a phase the number of the plan is enough.
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
            let message = format!("this plan depends on {names}, which this folder does not hold; it is taken for done");
            let help = "run it before, or put it into this folder";
            member.report.warning(ProblemCode::UnknownTask, &span, message).help(help);
        }
    }
}

/// Gives each plan the wave after those that it needs where it says none, and tells of orders that cannot be kept.
fn settle_waves(members: &mut [Member<'_>]) {
    for index in 0..members.len() {
        if let Some(round) = cycle(members, index) {
            let span = line_of_key(&members[index], "depends_on");
            let names: Vec<&str> = round.iter().map(|at| members[*at].id.as_str()).collect();
            let message = format!("these plans wait for each other: {}", names.join(" → "));
            members[index].report.error(ProblemCode::DependencyCycle, &span, message).help("remove one of the dependencies");
            return;
        }
    }
    // Without a cycle this ends after as many rounds as there are plans.
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
            let message = format!("plan {id}, on which this one depends, is in a later wave");
            members[index].report.error(ProblemCode::PhaseOrder, &span, message).help("give this plan a later `wave`");
        }
    }
}

fn place<'m>(member: &'m Member<'_>) -> (&'m [u64], u32) {
    (&member.stage, member.wave)
}

/// The way from a plan back to itself, where there is one.
fn cycle(members: &[Member<'_>], start: usize) -> Option<Vec<usize>> {
    let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        for need in &members[at].needs {
            if *need == start {
                let mut way = vec![start];
                let mut here = at;
                while here != start {
                    way.insert(1, here);
                    here = came_from[&here];
                }
                way.push(start);
                return Some(way);
            }
            if !came_from.contains_key(need) {
                came_from.insert(*need, at);
                open.push(*need);
            }
        }
    }
    None
}

/// Plans of one wave that change the same files, or whose changes are committed, follow each other.
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
                let message = format!("plan {id} of the same wave changes {} too; this one waits for it", shown(&file));
                members[index].report.warning(ProblemCode::InvalidValue, &span, message).help("put them into different waves");
            }
            members[index].needs.push(before);
        }
    }
}

/// Whether one plan waits for another, over others too.
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

/// The waves in order, each with the phase that it becomes.
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
    // A plan may end with more than its last task: a check once more, or a person who looks.
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

/// The line of the frontmatter that a key stands on; the first line where it has none.
fn line_of_key(member: &Member<'_>, key: &str) -> std::ops::Range<usize> {
    let is_it = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let line = member.file.source.lines().position(is_it).map_or(1, |line| line + 1);
    line_span(member.file.source, line)
}
