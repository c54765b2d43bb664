//! The tasks of one plan, its gates, and what a person verifies at the end.

use super::super::{PlanFile, PlanGate, PlanTask, PlanTaskKind, Rating};
use super::prompt::{PromptContext, prompt};
use super::shell::Pipes;
use super::{CHECK_LIMIT, commits, line_span, must_haves, non_empty, question, shell};
use lockgate_engine::id::{PhaseId, TaskId};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Report, settle_redo};
use lockgate_engine::spec::workflow::{AgentWork, Commit, Gate, Prompt, Task, Until, UntilCondition, Work};

/// The number of attempts for a task whose checks fail.
const ROUNDS: u32 = 3;

/// The parts of a plan.
pub(super) struct Steps {
    /// One for each task of the plan; each needs the previous one.
    pub(super) tasks: Vec<Task>,
    /// What must be true when the tasks are done.
    pub(super) gates: Vec<Gate>,
    /// What no person has been asked about yet.
    pub(super) owed: Owed,
}

/// What only a person can verify.
#[derive(Default)]
pub(super) struct Owed {
    pub(super) names: Vec<String>,
    /// How to verify it.
    pub(super) steps: Vec<String>,
}

/// Creates the tasks of a plan, with ids that start with `prefix`.
pub(super) fn steps(source: &str, plan: &PlanFile, id: &str, phase: &PhaseId, prefix: &str, report: &mut Report) -> Steps {
    let (gates, unchecked) = must_haves::gates(plan, prefix);
    let last_verify = plan.tasks.iter().rposition(|task| task.kind == PlanTaskKind::Verify);
    let (mut tasks, mut owed) = (Vec::<Task>::new(), Owed::default());
    for (index, task) in plan.tasks.iter().enumerate() {
        warn_about_pipes(source, task, report);
        let work = match task.kind {
            PlanTaskKind::Auto => {
                owe(&mut owed, task);
                None
            }
            PlanTaskKind::Decision | PlanTaskKind::Action => Some(question::checkpoint(source, task, Vec::new(), report)),
            PlanTaskKind::Verify => {
                let mut found = std::mem::take(&mut owed).steps;
                if last_verify == Some(index) {
                    found.extend(of_the_whole(plan, &unchecked));
                }
                Some(question::checkpoint(source, task, found, report))
            }
        };
        if let Some(undoing) = task.reversibility.as_ref().filter(|undoing| undoing.rating == Rating::OneWay) {
            let asked = question::before_one_way(task, &undoing.text);
            let id = extra_id(prefix, task, "start");
            follow(&mut tasks, format!("Before: {}", task.name), Task::new(id, Work::Checkpoint(Box::new(asked))), None);
        }
        let is_work = work.is_none();
        let made = match work {
            Some(checkpoint) => Task::new(task_id(prefix, task), Work::Checkpoint(Box::new(checkpoint))),
            None => agent(plan, task, id, phase, prefix),
        };
        follow(&mut tasks, task.name.clone(), made, None);
        if is_work {
            after_work(source, task, prefix, &mut tasks, &mut owed, report);
        }
    }
    if last_verify.is_none() {
        owed.steps.extend(of_the_whole(plan, &unchecked));
    }
    Steps { tasks, gates, owed }
}

/// Appends a task that needs the previous one. Issues found at a question redo the task `again`, or else the nearest work.
fn follow(tasks: &mut Vec<Task>, name: String, task: Task, again: Option<TaskId>) {
    let needs = tasks.last().map(|before| before.id.clone()).into_iter().collect();
    tasks.push(Task { name: Some(name), needs, ..task });
    let last = tasks.len() - 1;
    settle_redo(tasks, last, again.into_iter().collect(), None);
}

/// Adds tasks after an agent's task: the checks of a tracer again, because the other tasks build on it, and a person if the plan requires
/// one.
fn after_work(source: &str, task: &PlanTask, prefix: &str, tasks: &mut Vec<Task>, owed: &mut Owed, report: &mut Report) {
    if task.tracer {
        for (number, check) in (1..).zip(task.verify.commands.iter().chain(&task.verification.commands)) {
            let Some(run) = shell::all_of([check.command.as_str()]) else { continue };
            let id = extra_id(prefix, task, &format!("tracer-{number}"));
            let again = Task { timeout: Some(CHECK_LIMIT), ..Task::new(id, Work::Run(run)) };
            follow(tasks, format!("{}: check again", task.name), again, None);
        }
    }
    if task.gate == PlanGate::BlockingHuman {
        let found = std::mem::take(owed).steps;
        let asked = question::after_work(source, task, found, report);
        let looked = Task::new(extra_id(prefix, task, "look"), Work::Checkpoint(Box::new(asked)));
        follow(tasks, format!("{}: review by a person", task.name), looked, Some(task_id(prefix, task)));
    }
}

fn extra_id(prefix: &str, task: &PlanTask, what: &str) -> TaskId {
    TaskId::new(format!("{prefix}task-{}-{what}", task.number))
}

/// What a person verifies about the plan as a whole.
fn of_the_whole(plan: &PlanFile, unchecked: &[String]) -> Vec<String> {
    let must = &plan.frontmatter.must_haves;
    let mut steps: Vec<String> = must.truths.iter().chain(unchecked).cloned().collect();
    let exporting = must.artifacts.iter().filter(|artifact| !artifact.exports.is_empty());
    steps.extend(exporting.map(|artifact| format!("{} exports {}", artifact.path, artifact.exports.join(", "))));
    steps.extend(non_empty(&plan.verification).map(|text| format!("Verification of the plan: {text}")));
    steps.extend(non_empty(&plan.success_criteria).map(|text| format!("Success criteria of the plan: {text}")));
    steps
}

/// Warns about commands whose exit status does not depend on what they check.
fn warn_about_pipes(source: &str, task: &PlanTask, report: &mut Report) {
    for check in task.verify.commands.iter().chain(&task.verification.commands) {
        let (last, message) = match shell::pipes(&check.command) {
            Pipes::Plain | Pipes::ShortenOnly => continue,
            Pipes::Mixed(last) => {
                (last, "this check fails if any command in its pipe fails, including a `grep` without a match".to_owned())
            }
            Pipes::Endless(last) => {
                (last, format!("this check succeeds whenever `{last}` succeeds, even if a command before it fails"))
            }
        };
        report
            .warning(ProblemCode::InvalidValue, &line_span(source, check.place.line), message)
            .help(format!("remove `| {last}`, or check the result in a separate command"));
    }
}

fn task_id(prefix: &str, task: &PlanTask) -> TaskId {
    TaskId::new(format!("{prefix}task-{}", task.number))
}

/// What the plan says about a task and no command checks.
fn owe(owed: &mut Owed, task: &PlanTask) {
    let costly = task.reversibility.as_ref().filter(|undoing| undoing.rating == Rating::Costly);
    let costly = costly.map(|undoing| format!("costly to undo: {}", undoing.text));
    let said = [non_empty(&task.done), non_empty(&task.verify.prose), non_empty(&task.verification.prose), costly];
    let steps: Vec<String> = said.into_iter().flatten().map(|text| format!("{}: {text}", task.name)).collect();
    if !steps.is_empty() {
        owed.names.push(task.name.clone());
        owed.steps.extend(steps);
    }
}

fn agent(plan: &PlanFile, task: &PlanTask, id: &str, phase: &PhaseId, prefix: &str) -> Task {
    let next = plan.tasks.get(task.number).filter(|next| next.kind == PlanTaskKind::Verify);
    let for_next = next.into_iter().flat_map(|next| &next.verify.commands);
    let own = task.verify.commands.iter().chain(&task.verification.commands);
    let checks: Vec<&str> = own.chain(for_next).map(|check| check.command.as_str()).collect();
    let follows = next.filter(|next| !next.action.is_empty());
    let context = PromptContext { plan, id, phase, prefix, follows, checks: &checks };
    let work = AgentWork { prompt: Prompt::Document(prompt(task, &context)), ..AgentWork::default() };
    let until = shell::all_of(checks.iter().copied());
    Task {
        until: until.map(|run| Until {
            condition: UntilCondition::Run(run),
            limit: ROUNDS,
            timeout: Some(CHECK_LIMIT),
            checks: checks.iter().map(|check| (*check).to_owned()).collect(),
        }),
        commit: commits(&plan.frontmatter).then(Commit::default),
        ..Task::new(task_id(prefix, task), Work::Agent(Box::new(work)))
    }
}
