//! Questions: those of the workflow, and those about interruptions, failures, gaps, budgets and logins.

use super::rework::person_answered;
use crate::hold::{
    Action, Answer, Authentication, Choice, Due, HoldKind, HoldQuestion, Remind, Scope, Terms, Topic, authentication_options,
    budget_options, commit_options, gap_options, handover_options, recovered_task_options, task_options,
};
use crate::id::{HoldId, IdSource, OptionId, PhaseId, TaskKey, TimerId};
use crate::run::budget::BudgetScope;
use crate::run::command::Presentation;
use crate::run::event::{Event, Failure, HoldOpened};
use crate::run::handover::Handover;
use crate::run::state::{Decision, Run};
use crate::spec::workflow::question::MAX_AUTOMATIC_REPEATS;
use crate::spec::workflow::{Check, Checkpoint, Deadline, OnDeadline, Question, WaitSettings};
use crate::time::Timestamp;

/// How many tasks a question about a budget names.
const NAMED: usize = 8;

pub(in crate::run) fn ask_about_interrupted(run: &Run, keys: Vec<TaskKey>, ids: &mut IdSource) -> Event {
    let names: Vec<String> = keys.iter().map(TaskKey::address).collect();
    if keys.iter().any(|key| run.may_have_run(key)) {
        let prompt = match names.as_slice() {
            [name] => {
                format!("{name} may already have run, because this run was recovered from a snapshot. What should happen to it?")
            }
            _ => format!(
                "{} tasks may already have run, because this run was recovered from a snapshot: {}. What should happen to them?",
                names.len(),
                names.join(", ")
            ),
        };
        return question(HoldKind::Interrupted, Scope::Tasks(keys), prompt, Vec::new(), recovered_task_options(), ids);
    }
    let prompt = match names.as_slice() {
        [name] => format!("{name} was interrupted before it finished. What should happen to it?"),
        _ => format!(
            "{} tasks were interrupted before they finished: {}. What should happen to them?",
            names.len(),
            names.join(", ")
        ),
    };
    question(HoldKind::Interrupted, Scope::Tasks(keys), prompt, Vec::new(), task_options(), ids)
}

pub(super) fn ask_about_failed(scope: Scope, what: &str, failure: &Failure, options: Vec<Choice>, ids: &mut IdSource) -> Event {
    let mut notes = vec![failure.message.clone()];
    if !failure.tail.is_empty() {
        notes.push(failure.tail.clone());
    }
    question(HoldKind::Failed, scope, format!("{what} failed. What should happen?"), notes, options, ids)
}

pub(super) fn ask_about_gaps(phase: &PhaseId, iteration: u32, notes: &[String], ids: &mut IdSource) -> Event {
    let prompt = format!("The work of phase {phase} is incomplete. What should happen?");
    let scope = Scope::Gaps { phase: phase.clone(), iteration };
    question(HoldKind::Gaps, scope, prompt, notes.to_vec(), gap_options(phase), ids)
}

pub(super) fn ask_about_budget(keys: Vec<TaskKey>, scope: BudgetScope, why: String, ids: &mut IdSource) -> Event {
    let mut names: Vec<String> = keys.iter().take(NAMED).map(TaskKey::address).collect();
    if keys.len() > NAMED {
        names.push(format!("{} more", keys.len() - NAMED));
    }
    let names = names.join(", ");
    let prompt = format!(
        "The budget of {} does not allow more work. Raise it by the same amount, so that {names} can continue?",
        scope.title()
    );
    let options = budget_options(&scope);
    question(HoldKind::Budget, Scope::Tasks(keys), prompt, vec![why], options, ids)
}

fn question(kind: HoldKind, scope: Scope, prompt: String, notes: Vec<String>, options: Vec<Choice>, ids: &mut IdSource) -> Event {
    Event::HoldOpened(Box::new(HoldOpened {
        hold: HoldId::new(ids.next_id()),
        kind,
        scope,
        prompt,
        files: Vec::new(),
        options,
        notes,
        blocking: true,
        quorum: 1,
        question: None,
        terms: Terms::default(),
        previous: None,
        diff: None,
    }))
}

/// Opens the hold of a declared checkpoint that is ready to be shown.
pub(in crate::run) fn ask(
    run: &Run,
    scope: Scope,
    checkpoint: &Checkpoint,
    presentation: &Presentation,
    at: Timestamp,
    ids: &mut IdSource,
) -> Event {
    let title = match &scope {
        Scope::Tasks(keys) => keys.first().and_then(|key| run.declared(key)).map(|task| task.title().to_owned()),
        Scope::Run | Scope::Phase { .. } | Scope::Gate { .. } | Scope::Gaps { .. } => None,
    };
    let hold = HoldId::new(ids.next_id());
    let tired = match &scope {
        Scope::Phase { phase, .. } => run.automatic_repeats.get(phase).is_some_and(|count| *count >= MAX_AUTOMATIC_REPEATS),
        Scope::Run | Scope::Tasks(_) | Scope::Gate { .. } | Scope::Gaps { .. } => false,
    };
    let (waits, notes) = if tired { for_a_person(checkpoint) } else { (checkpoint.waits.clone(), None) };
    let notes: Vec<String> = presentation.notes.iter().cloned().chain(notes).collect();
    let mut terms = terms(run, checkpoint, &waits, presentation, at, ids);
    let asked_before = match &scope {
        Scope::Tasks(keys) => keys.first(),
        Scope::Run | Scope::Phase { .. } | Scope::Gate { .. } | Scope::Gaps { .. } => None,
    };
    // If a person has answered before, no default overrides them.
    if asked_before.is_some_and(|key| person_answered(run, key)) {
        terms.default = None;
    }
    let previous = asked_before.and_then(|key| previous(run, key, checkpoint));
    Event::HoldOpened(Box::new(HoldOpened {
        hold,
        kind: HoldKind::of(presentation.question.as_ref()),
        prompt: presentation.prompt.clone(),
        files: presentation.files.clone(),
        options: checkpoint.options.clone(),
        notes,
        blocking: terms.default.is_none(),
        quorum: 1,
        question: presentation.question.clone().map(|question| {
            let signal = checkpoint.options.iter().find_map(|choice| choice.signals.first().cloned());
            Box::new(HoldQuestion { signal, ..hold_question(run, title, Topic::Question(question)) })
        }),
        terms,
        previous,
        diff: presentation.diff.clone(),
        scope,
    }))
}

/// The settings of a checkpoint after automatic answers have repeated a phase too often: it waits for a person.
fn for_a_person(checkpoint: &Checkpoint) -> (WaitSettings, Option<String>) {
    let repeats = |option: &OptionId| {
        let chosen = checkpoint.options.iter().find(|choice| choice.id == *option);
        chosen.is_some_and(|choice| choice.action.repeats())
    };
    let WaitSettings { default, deadline, remind, person_only, proposed } = checkpoint.waits.clone();
    let default = default.filter(|option| !repeats(option));
    let deadline = deadline.map(|deadline| match &deadline.then {
        OnDeadline::Answer(option) if repeats(option) => Deadline { then: OnDeadline::Escalate(None), ..deadline },
        OnDeadline::Answer(_) | OnDeadline::Escalate(_) | OnDeadline::Abort => deadline,
    });
    let note = format!(
        "this was answered {MAX_AUTOMATIC_REPEATS} times in a row without a person, and the phase was repeated each time, so a person decides"
    );
    (WaitSettings { default, deadline, remind, person_only, proposed }, Some(note))
}

/// The answer to the same question of a task, when it was asked before.
fn previous(run: &Run, key: &TaskKey, checkpoint: &Checkpoint) -> Option<Box<Answer>> {
    let of_key = |decision: &&Decision| decision.task.as_ref().is_some_and(|task| task.address() == key.address());
    let decision = run.decisions.iter().filter(of_key).rfind(|decision| decision.checkpoint)?;
    checkpoint.options.iter().find(|choice| choice.id == decision.option)?;
    let (option, feedback, actor) = (decision.option.clone(), decision.feedback.clone(), decision.actor.clone());
    Some(Box::new(Answer { option, feedback, actor, at: decision.at }))
}

fn terms(
    run: &Run,
    checkpoint: &Checkpoint,
    WaitSettings { default, deadline, remind, person_only, proposed }: &WaitSettings,
    presentation: &Presentation,
    at: Timestamp,
    ids: &mut IdSource,
) -> Terms {
    let rule = HoldKind::of(checkpoint.question.as_ref()).policy().and_then(|kind| run.workflow.policy.rule(kind));
    let first = || checkpoint.options.iter().find(|choice| choice.action == Action::Continue).map(|choice| choice.id.clone());
    // Policy replaces a person who would let the run continue. It never repeats or ends anything.
    let declared = proposed.as_ref().or(default.as_ref());
    let declared = declared.filter(|id| checkpoint.options.iter().any(|choice| choice.id == **id && choice.action.continues()));
    let check = match &presentation.question {
        Some(Question::Action(action)) => action.check.clone(),
        Some(Question::Verify(_) | Question::Decision(_)) | None => None,
    };
    let mut timer = || TimerId::new(ids.next_id());
    Terms {
        check,
        checked: false,
        default: default.clone().filter(|_| !person_only),
        person_only: *person_only,
        automatic: rule.filter(|_| presentation.automatic && !person_only).and_then(|_| declared.cloned().or_else(first)),
        deadline: deadline.as_ref().map(|deadline| Due {
            timer: timer(),
            at: at.plus(deadline.after),
            then: deadline.then.clone(),
            over: false,
        }),
        remind: remind.map(|every| Remind { timer: timer(), at: at.plus(every), every, sent: 0 }),
    }
}

/// Asks a person for a missing login. Tasks that need it wait.
pub(in crate::run) fn ask_for_login(
    run: &Run,
    key: &TaskKey,
    missing: &Authentication,
    probe: Option<&Check>,
    ids: &mut IdSource,
) -> Event {
    let title = run.declared(key).map(|task| task.title().to_owned());
    let prompt = format!("{} needs a login: {}", key.address(), missing.error);
    let mut opened = HoldOpened {
        hold: HoldId::new(ids.next_id()),
        kind: HoldKind::Authentication,
        scope: Scope::Tasks(vec![key.clone()]),
        prompt,
        files: Vec::new(),
        options: authentication_options(),
        notes: Vec::new(),
        blocking: true,
        quorum: 1,
        question: Some(Box::new(hold_question(run, title, Topic::Authentication(missing.clone())))),
        terms: Terms::default(),
        previous: None,
        diff: None,
    };
    opened.terms.check = probe.cloned();
    Event::HoldOpened(Box::new(opened))
}

/// Asks a person the question of an agent at a checkpoint. The agent continues with the answer.
pub(in crate::run) fn ask_for_agent(run: &Run, key: &TaskKey, handover: &Handover, ids: &mut IdSource) -> Event {
    let topic = Topic::Handover(Box::new(handover.clone()));
    let prompt = match handover.details.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("{} asks: {line}", key.address()),
        None => format!("{} asks: {}", key.address(), handover.awaiting.trim()),
    };
    about_handover(run, key, topic.kind(), prompt, (handover_options(handover), Vec::new()), Some(topic), ids)
}

/// Asks a person whether an agent should continue although commits named by the previous one do not exist.
pub(in crate::run) fn ask_about_commits(
    run: &Run,
    key: &TaskKey,
    handover: &Handover,
    commits: &[String],
    ids: &mut IdSource,
) -> Event {
    let mut names = commits.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if commits.len() > NAMED {
        names += &format!(" and {} more", commits.len() - NAMED);
    }
    let prompt = format!("{} builds on commits that do not exist in git: {names}. Continue anyway?", key.address());
    let note =
        "the previous agent reported that it committed this work; if it did not, the work is lost or was never done".to_owned();
    let work: Vec<String> = handover
        .completed
        .iter()
        .filter(|done| done.commit.as_ref().is_some_and(|commit| commits.contains(commit)))
        .take(NAMED)
        .map(|done| {
            format!("task {} ({}) was reported as commit {}", done.number, done.name, done.commit.as_deref().unwrap_or_default())
        })
        .collect();
    let notes = std::iter::once(note).chain(work).collect();
    about_handover(run, key, HoldKind::Handover, prompt, (commit_options(), notes), None, ids)
}

fn about_handover(
    run: &Run,
    key: &TaskKey,
    kind: HoldKind,
    prompt: String,
    (options, notes): (Vec<Choice>, Vec<String>),
    topic: Option<Topic>,
    ids: &mut IdSource,
) -> Event {
    let title = run.declared(key).map(|task| task.title().to_owned());
    let question = topic.map(|topic| Box::new(hold_question(run, title, topic)));
    let (files, terms, previous, diff) = (Vec::new(), Terms::default(), None, None);
    let (hold, scope) = (HoldId::new(ids.next_id()), Scope::Tasks(vec![key.clone()]));
    let opened = HoldOpened {
        hold,
        kind,
        scope,
        prompt,
        files,
        options,
        notes,
        blocking: true,
        quorum: 1,
        question,
        terms,
        previous,
        diff,
    };
    Event::HoldOpened(Box::new(opened))
}

/// The question, with the progress of the run.
fn hold_question(run: &Run, title: Option<String>, topic: Topic) -> HoldQuestion {
    let (done, total) = run.progress();
    let phase = || run.current.as_ref().map(|phase| run.workflow.phases[phase.position].title().to_owned());
    HoldQuestion { task: title.or_else(phase).unwrap_or_default(), done, total, topic, signal: None }
}
