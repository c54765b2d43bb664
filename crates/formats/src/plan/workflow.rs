//! Plans as workflows.
//!
//! A plan becomes a phase with sequential tasks: one for each `<task>`, either work for an agent or a question to a person.
//! The plans of a directory are grouped by wave.
//!
//! | module | produces |
//! | --- | --- |
//! | `steps` | the tasks of one plan, its gates, and the final verification |
//! | `question` | checkpoints: verification, decision, action |
//! | `prompt` | the prompt of an agent |
//! | `must_haves` | gates from the `must_haves` of a plan |
//! | `shell` | shell commands from a plan |
//! | `directory` | the order of several plans |

mod directory;
mod must_haves;
mod prompt;
mod question;
mod shell;
mod steps;

pub use directory::{PlanText, read_directory};

use super::{Frontmatter, PlanFile};
use lockgate_engine::hold::Action;
use lockgate_engine::id::{PhaseId, TaskId};
use lockgate_engine::spec::Read;
use lockgate_engine::spec::problem::{Problem, Severity};
use lockgate_engine::spec::reader::{Report, question_checkpoint, question_options};
use lockgate_engine::spec::workflow::question::{DEFAULT_ROUNDS, Verify};
use lockgate_engine::spec::workflow::{Checkpoint, Phase, PlanPart, Question, WaitSettings, Workflow};
use lockgate_engine::template::escaped;
use serde_json::Value;
use std::ops::Range;
use std::time::Duration;
use steps::{Owed, Steps};

/// The timeout of a check in a plan.
const CHECK_LIMIT: Duration = Duration::from_secs(10 * 60);

/// The maximum length of an id derived from text.
const MAX_ID: usize = 60;

/// Reads a plan as a workflow and reports everything unusual about it.
pub fn read_workflow(source: &str) -> Read {
    let super::Read { plan, mut problems } = super::read(source);
    let mut report = Report::default();
    let id = plan_id(&plan.frontmatter, None);
    let phase = PhaseId::new(id.clone());
    let steps = steps::steps(source, &plan, &id, &phase, "", &mut report);
    let workflow = Workflow {
        name: plan.frontmatter.phase.as_ref().map_or_else(|| id.clone(), |phase| format!("{phase} plan {id}")),
        description: non_empty(&plan.objective),
        phases: vec![Phase { description: non_empty(&plan.objective), ..assembled(phase, vec![(id, &plan, steps)]) }],
        ..Workflow::default()
    };
    problems.extend(report.finish(source));
    problems.sort_by_key(|problem| (problem.line, problem.column));
    with_parts(workflow, vec![(plan_id(&plan.frontmatter, None), None, &plan)], problems)
}

/// The final result: no workflow if there are errors.
fn with_parts(mut workflow: Workflow, parts: Vec<(String, Option<String>, &PlanFile)>, problems: Vec<Problem>) -> Read {
    workflow.plans = parts.into_iter().map(|(id, file, plan)| part(&workflow, id, file, plan)).collect();
    let workflow = problems.iter().all(|problem| problem.severity == Severity::Warning).then_some(workflow);
    Read { workflow, problems }
}

/// Records which tasks of the workflow come from a plan.
fn part(workflow: &Workflow, id: String, file: Option<String>, plan: &PlanFile) -> PlanPart {
    let prefix = if file.is_some() { format!("{id}-") } else { String::new() };
    let is_ours = |task: &str| task.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with("task-"));
    let phase = workflow.phases.iter().find(|phase| phase.tasks.iter().any(|task| is_ours(task.id.as_str())));
    let tasks = phase.into_iter().flat_map(|phase| &phase.tasks).map(|task| task.id.clone());
    PlanPart {
        tasks: tasks.filter(|task| is_ours(task.as_str())).collect(),
        phase: phase.map_or_else(|| PhaseId::new(id.clone()), |phase| phase.id.clone()),
        summary: summary_path(&plan.output),
        purpose: purpose(plan).unwrap_or_default().to_owned(),
        id,
        file,
    }
}

/// The phase that plans form together: a single plan, or all plans of a wave.
fn assembled(phase: PhaseId, plans: Vec<(String, &PlanFile, Steps)>) -> Phase {
    let mut made = Phase::new(phase.clone());
    let several = plans.len() > 1;
    let at_end = plans.iter().all(|(_, plan, _)| plan.frontmatter.verify_at_end);
    let (mut built, mut steps, mut blocking) = (Vec::new(), Vec::new(), false);
    let mut again: Vec<TaskId> = Vec::new();
    for (id, plan, Steps { tasks, gates, owed }) in plans {
        if !owed.steps.is_empty() {
            again.extend(tasks.iter().rev().find(|task| task.agent().is_some()).map(|task| task.id.clone()));
            blocking |= plan.frontmatter.autonomous != Some(true);
            built.push(said_of(&id, plan, &owed));
            steps.extend(owed.steps.into_iter().map(|step| if several { format!("{id}: {step}") } else { step }));
        }
        made.tasks.extend(tasks);
        made.gates.extend(gates);
    }
    let issues = if again.is_empty() { Action::RepeatPhase(phase) } else { Action::Redo(again) };
    if at_end {
        lockgate_engine::spec::reader::verify_last(&mut made);
    }
    made.checkpoint = (!steps.is_empty()).then(|| at_the_end(&issues, &built, &steps, blocking));
    made
}

/// The checkpoint after all tasks, for everything that no command checks.
fn at_the_end(issues: &Action, built: &[String], steps: &[String], blocking: bool) -> Checkpoint {
    let steps = steps.iter().map(|step| escaped(step)).collect();
    let question =
        Question::Verify(Verify { built: escaped(&built.join("\n")), steps, redo: Vec::new(), rounds: DEFAULT_ROUNDS });
    let options = question_options(&question, issues, None);
    let first = options.first().map(|choice| choice.id.clone());
    let waits = WaitSettings { default: first.filter(|_| !blocking), ..WaitSettings::default() };
    question_checkpoint(question, options, Vec::new(), waits)
}

fn said_of(id: &str, plan: &PlanFile, owed: &Owed) -> String {
    let done = owed.names.join(", ");
    match (purpose(plan), done.is_empty()) {
        (Some(purpose), false) => format!("Plan {id}: {purpose} ({done})"),
        (Some(purpose), true) => format!("Plan {id}: {purpose}"),
        (None, false) => format!("Plan {id}: {done}"),
        (None, true) => format!("Plan {id}"),
    }
}

/// The purpose of a plan, in one line.
fn purpose(plan: &PlanFile) -> Option<&str> {
    plan.objective.lines().map(str::trim).find(|line| !line.is_empty())
}

/// The id of a plan: the number of its phase and its own, such as `07.2-05`; otherwise derived from its file name.
fn plan_id(frontmatter: &Frontmatter, file: Option<&str>) -> String {
    let number = |text: &str| text.chars().take_while(|part| part.is_ascii_digit() || *part == '.').collect::<String>();
    let phase = frontmatter.phase.as_deref().map(|phase| {
        let number = number(phase.trim());
        let number = number.trim_end_matches('.');
        if number.is_empty() { safe(phase) } else { number.to_owned() }
    });
    let plan = frontmatter.plan.as_deref().map(safe).filter(|plan| !plan.is_empty());
    let named = match (phase, plan) {
        (Some(phase), Some(plan)) if !plan.contains('-') => format!("{phase}-{plan}"),
        (_, Some(plan)) => plan,
        (phase, None) => {
            let file = file.map(|file| file.strip_suffix(".md").unwrap_or(file));
            let file = file.map(|file| safe(file.trim_end_matches("-PLAN").trim_end_matches("-plan")));
            file.or(phase).unwrap_or_default()
        }
    };
    let named = safe(&named);
    if named.is_empty() { "plan".to_owned() } else { named }
}

/// Removes characters that are not allowed in an id.
fn safe(text: &str) -> String {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '.' | '-');
    let plain: String = text.trim().chars().map(|sign| if is_sign(sign) { sign } else { '-' }).take(MAX_ID).collect();
    plain.trim_matches(['-', '.']).to_owned()
}

/// The path of the summary that the plan names, if it is inside the root.
fn summary_path(output: &str) -> Option<String> {
    let words = output.split(|sign: char| sign.is_whitespace() || matches!(sign, '`' | '"' | '\'' | '(' | ')' | ','));
    let mut paths = words.map(|word| word.trim_end_matches('.')).filter(|word| word.ends_with("SUMMARY.md"));
    paths.find(|path| shell::is_under_root(path)).map(str::to_owned)
}

/// The names that the summary of a plan can have: from its file, its number, and its `<output>`.
pub fn summary_names(file: &str, source: &str) -> Vec<String> {
    let plan = super::read(source).plan;
    let stem = file.strip_suffix(".md").unwrap_or(file);
    let by_file = match stem.strip_suffix("PLAN") {
        Some(before) => format!("{before}SUMMARY.md"),
        None => format!("{stem}-SUMMARY.md"),
    };
    let by_id = format!("{}-SUMMARY.md", plan_id(&plan.frontmatter, Some(file)));
    let said = summary_path(&plan.output).and_then(|path| path.rsplit('/').next().map(str::to_owned));
    let mut names = vec![by_file, by_id];
    names.extend(said);
    names
}

/// Whether Lockgate commits the changes of each agent task.
fn commits(frontmatter: &Frontmatter) -> bool {
    frontmatter.rest.iter().any(|(key, value)| {
        key == "commits" && (*value == Value::Bool(true) || value.as_str().is_some_and(|word| word.eq_ignore_ascii_case("true")))
    })
}

fn non_empty(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// The bytes of a line of the file, counted from 1.
fn line_span(source: &str, line: usize) -> Range<usize> {
    let start = source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let length = source[start..].lines().next().map_or(0, |line| line.trim_end().len());
    start..start + length
}

#[cfg(test)]
mod tests;
