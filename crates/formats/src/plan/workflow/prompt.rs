//! The prompt of an agent: everything that a plan says about its task, as Markdown.

use super::super::{PlanFile, PlanTask, PlanTaskKind, Rating, Section};
use super::{commits, non_empty};
use lockgate_engine::id::PhaseId;
use lockgate_engine::template::escaped;
use std::fmt::Write as _;

/// What the rest of the plan says about a task.
pub(super) struct PromptContext<'t> {
    pub(super) plan: &'t PlanFile,
    pub(super) id: &'t str,
    pub(super) phase: &'t PhaseId,
    pub(super) prefix: &'t str,
    /// The checkpoint right after the task, if the agent prepares it.
    pub(super) follows: Option<&'t PlanTask>,
    pub(super) checks: &'t [&'t str],
}

/// The whole prompt: a template in which only answers from people are filled in.
pub(super) fn prompt(task: &PlanTask, context: &PromptContext<'_>) -> String {
    let PromptContext { plan, id, follows, checks, .. } = context;
    let total = plan.tasks.len();
    let mut prompt = format!("# {}\n\nThis is task {} of {total} of plan {id}.", task.name, task.number);
    prompt += " Earlier tasks are complete; do not start later ones.\n";
    section(&mut prompt, "Objective of the plan", &plan.objective);
    list(&mut prompt, "Requirements that the plan covers", &plan.frontmatter.requirements);
    list(&mut prompt, "Gaps that the plan closes", &plan.frontmatter.gap_ids);
    section(&mut prompt, "Context", &plan.context);
    for Section { tag, text } in &plan.others {
        section(&mut prompt, &format!("{} of the plan", heading(tag)), text);
    }
    if !task.precondition.is_empty() {
        let what = format!(
            "This must be true before you start: {}\n\nCheck it first. If it is not true, change nothing, stop, and hand over to a person as described at the end.",
            task.precondition
        );
        section(&mut prompt, "Precondition", &what);
    }
    if let Some(undoing) = &task.reversibility {
        let how = match undoing.rating {
            Rating::Reversible => "What you do here can be undone.",
            Rating::Costly => "What you do here is costly to undo, so check carefully before you do it.",
            Rating::OneWay => "What you do here cannot be undone. A person has approved it.",
        };
        section(&mut prompt, "Reversibility", format!("{how} {}", undoing.text).trim());
    }
    if task.tracer {
        let what = "This is a thin slice through the whole system. Keep it small and complete: the other tasks build on it, and its checks run again before they start.";
        section(&mut prompt, "Tracer", what);
    }
    list(&mut prompt, "Files", &task.files);
    section(&mut prompt, "Read first", &task.read_first);
    if task.tdd {
        section(&mut prompt, "Write tests first", "Write failing tests, then the code that makes them pass.");
    }
    section(&mut prompt, "What the tests expect", &task.behavior);
    section(&mut prompt, "What to do", &task.action);
    section(&mut prompt, "Notes", &task.text);
    for Section { tag, text } in &task.others {
        section(&mut prompt, &heading(tag), text);
    }
    if let Some(next) = follows {
        let what = format!("After this task a person verifies: {}. Prepare this:\n\n{}", next.name, next.action);
        section(&mut prompt, "Prepare the next step", &what);
    }
    section(&mut prompt, "Acceptance criteria", &task.acceptance_criteria);
    section(&mut prompt, "Verification", &task.verify.prose);
    section(&mut prompt, "Further verification", &task.verification.prose);
    if !checks.is_empty() {
        let commands = checks.iter().map(|command| format!("```sh\n{command}\n```")).collect::<Vec<_>>().join("\n\n");
        section(&mut prompt, "Commands that must succeed afterwards", &commands);
    }
    section(&mut prompt, "Done when", &task.done);
    list(&mut prompt, "What must be true when the whole plan is complete", &plan.frontmatter.must_haves.truths);
    section(&mut prompt, "Verification of the whole plan", &plan.verification);
    section(&mut prompt, "Success criteria of the whole plan", &plan.success_criteria);
    let setup: Vec<String> = plan.frontmatter.user_setup.iter().map(ToString::to_string).collect();
    list(&mut prompt, "What people set up themselves", &setup);
    if commits(&plan.frontmatter) {
        section(&mut prompt, "Commits", "Do not commit: Lockgate commits your changes when the task is complete.");
    }
    section(&mut prompt, "If you need a person", CHECKPOINT_INSTRUCTIONS);
    escaped(&prompt) + &decided(task, context)
}

/// The format is described in words, because an agent that repeats its prompt must not produce a checkpoint block.
const CHECKPOINT_INSTRUCTIONS: &str = "\
If you cannot continue without a person (something must be reviewed, decided, or done that no program can do), stop, and \
end your answer with a Markdown block. You, or another agent, will receive the person's answer. The block has these parts:

- the heading `## CHECKPOINT REACHED`
- `**Type:**` human-verify, decision or human-action; `**Plan:**` the plan; `**Progress:**` such as 1/3 tasks complete
- the heading `### Completed Tasks` with a table: Task, Name, Commit, Files
- the heading `### Current Task` with `**Task N:**` its name, `**Status:**` blocked, awaiting verification or awaiting \
decision, and `**Blocked by:**` why
- the heading `### Checkpoint Details`: what the person needs to know: what was built and how to review it, or the options \
with pros and cons of each, or what to do
- the heading `### Awaiting`: what you need from the person";

/// Earlier decisions by people. Their answers are only known during the run, so they are template expressions.
fn decided(task: &PlanTask, context: &PromptContext<'_>) -> String {
    let earlier = context.plan.tasks.iter().filter(|other| other.number < task.number);
    let decisions = earlier.filter(|other| matches!(other.kind, PlanTaskKind::Decision | PlanTaskKind::Action));
    let mut text = String::new();
    for other in decisions {
        let answer = format!("outputs['{}']['{}task-{}']", context.phase, context.prefix, other.number);
        let question = escaped(&other.name);
        let _ = write!(
            text,
            "{{{{#if {answer}}}}}\n\nA person was asked: {question}\nThe answer: {{{{{answer}.option}}}} \
             ({{{{{answer}.label}}}}) {{{{{answer}.feedback}}}}\n{{{{/if}}}}"
        );
    }
    text
}

fn section(text: &mut String, title: &str, body: &str) {
    if let Some(body) = non_empty(body) {
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
