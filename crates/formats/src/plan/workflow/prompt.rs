//! What an agent is told: all that a plan says about its task, as a document of Markdown.

use super::super::{PlanFile, PlanTask, PlanTaskKind, Rating, Section};
use super::{commits, told};
use lockgate_engine::id::PhaseId;
use lockgate_engine::template::escaped;
use std::fmt::Write as _;

/// What is said about a task elsewhere.
pub(super) struct PromptContext<'t> {
    pub(super) plan: &'t PlanFile,
    pub(super) id: &'t str,
    pub(super) phase: &'t PhaseId,
    pub(super) prefix: &'t str,
    /// The checkpoint that follows at once, where the agent has something to do for it.
    pub(super) follows: Option<&'t PlanTask>,
    /// All commands that must succeed afterwards.
    pub(super) checks: &'t [&'t str],
}

/// The whole prompt: a document in which only the answers of people are filled in.
pub(super) fn prompt(task: &PlanTask, context: &PromptContext<'_>) -> String {
    let PromptContext { plan, id, follows, checks, .. } = context;
    let total = plan.tasks.len();
    let mut told = format!("# {}\n\nThis is task {} of {total} of plan {id}.", task.name, task.number);
    told += " The tasks before it are done; those after it are not yours.\n";
    section(&mut told, "Objective of the plan", &plan.objective);
    list(&mut told, "Requirements that the plan serves", &plan.frontmatter.requirements);
    list(&mut told, "Gaps that the plan closes", &plan.frontmatter.gap_ids);
    section(&mut told, "Context", &plan.context);
    for Section { tag, text } in &plan.others {
        section(&mut told, &format!("{} of the plan", heading(tag)), text);
    }
    if !task.precondition.is_empty() {
        let what = format!(
            "This must hold before you start: {}\n\nCheck it first. If it does not hold, change nothing, stop, and hand over to a person as described at the end.",
            task.precondition
        );
        section(&mut told, "Precondition", &what);
    }
    if let Some(undoing) = &task.reversibility {
        let how = match undoing.rating {
            Rating::Reversible => "What you do here can be undone.",
            Rating::Costly => "What you do here is costly to undo, so make sure before you do it.",
            Rating::OneWay => "What you do here cannot be undone. A person allowed it.",
        };
        section(&mut told, "Reversibility", format!("{how} {}", undoing.text).trim());
    }
    if task.tracer {
        let what = "This is the leading slice through everything. Keep it thin and whole: the other tasks build on it, and its checks run once more before they start.";
        section(&mut told, "Tracer", what);
    }
    list(&mut told, "Files", &task.files);
    section(&mut told, "Read first", &task.read_first);
    if task.tdd {
        section(&mut told, "Tests come first", "Write the tests that fail, then what makes them pass.");
    }
    section(&mut told, "What the tests expect", &task.behavior);
    section(&mut told, "What to do", &task.action);
    section(&mut told, "More about it", &task.text);
    for Section { tag, text } in &task.others {
        section(&mut told, &heading(tag), text);
    }
    if let Some(next) = follows {
        let what = format!("After this task a person verifies: {}. Prepare that:\n\n{}", next.name, next.action);
        section(&mut told, "Prepare what follows", &what);
    }
    section(&mut told, "Acceptance criteria", &task.acceptance_criteria);
    section(&mut told, "How it is verified", &task.verify.prose);
    section(&mut told, "How it is verified too", &task.verification.prose);
    if !checks.is_empty() {
        let commands = checks.iter().map(|command| format!("```sh\n{command}\n```")).collect::<Vec<_>>().join("\n\n");
        section(&mut told, "Commands that must succeed afterwards", &commands);
    }
    section(&mut told, "Done when", &task.done);
    list(&mut told, "What must be true when the whole plan is done", &plan.frontmatter.must_haves.truths);
    section(&mut told, "How the whole plan is verified", &plan.verification);
    section(&mut told, "When the whole plan has succeeded", &plan.success_criteria);
    let setup: Vec<String> = plan.frontmatter.user_setup.iter().map(ToString::to_string).collect();
    list(&mut told, "What people set up outside", &setup);
    if commits(&plan.frontmatter) {
        section(&mut told, "Commits", "Do not commit: what you change is committed when the task is done.");
    }
    section(&mut told, "Where you need a person", WHERE_A_PERSON_IS_NEEDED);
    escaped(&told) + &decided(task, context)
}

/// Told in words: an agent that repeats what it was told has reached no checkpoint.
const WHERE_A_PERSON_IS_NEEDED: &str = "\
Where you cannot go on without a person (something must be looked at, decided, or done that no program can do), stop, and \
end your answer with a block of Markdown. You, or another agent, will be told what the person said. It has these parts:

- the heading `## CHECKPOINT REACHED`
- `**Type:**` human-verify, decision or human-action; `**Plan:**` the plan; `**Progress:**` such as 1/3 tasks complete
- the heading `### Completed Tasks` with a table: Task, Name, Commit, Files
- the heading `### Current Task` with `**Task N:**` its name, `**Status:**` blocked, awaiting verification or awaiting \
decision, and `**Blocked by:**` why
- the heading `### Checkpoint Details`: what the person must know: what was built and how to look at it, or the options \
with what speaks for and against each, or what to do
- the heading `### Awaiting`: what you need from the person";

/// What people decided before this task. What they said is known only when the run is there.
fn decided(task: &PlanTask, context: &PromptContext<'_>) -> String {
    let earlier = context.plan.tasks.iter().filter(|other| other.number < task.number);
    let asked = earlier.filter(|other| matches!(other.kind, PlanTaskKind::Decision | PlanTaskKind::Action));
    let mut told = String::new();
    for other in asked {
        let answer = format!("outputs['{}']['{}task-{}']", context.phase, context.prefix, other.number);
        let question = escaped(&other.name);
        let _ = write!(
            told,
            "{{{{#if {answer}}}}}\n\nA person was asked: {question}\nThe answer: {{{{{answer}.option}}}} \
             ({{{{{answer}.label}}}}) {{{{{answer}.feedback}}}}\n{{{{/if}}}}"
        );
    }
    told
}

fn section(text: &mut String, title: &str, body: &str) {
    if let Some(body) = told(body) {
        let _ = write!(text, "\n## {title}\n\n{body}\n");
    }
}

fn list(text: &mut String, title: &str, items: &[String]) {
    section(text, title, &items.iter().map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n"));
}

/// `known_risks` as `Known risks`.
fn heading(tag: &str) -> String {
    let words = tag.replace(['_', '-'], " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
