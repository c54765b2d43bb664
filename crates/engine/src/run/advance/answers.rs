//! The effects of answers, and automatic answers.

use super::rework::{redo, rounds, some_again, too_often};
use super::{Step, steps};
use crate::hold::{Action, Hold, HoldKind, HoldState, Scope, Topic};
use crate::id::{IdSource, TaskKey};
use crate::run::apply::said;
use crate::run::command::{Actor, Channel};
use crate::run::decide::{conflict_answered, escalation_answered, failed, void_others};
use crate::run::event::{Event, Failure, FailureKind};
use crate::run::state::Run;
use crate::spec::workflow::Automatic;
use crate::time::Timestamp;

/// Applies answers that need no further check, and uses preset answers.
pub(super) fn holds(run: &Run, at: Timestamp, ids: &mut IdSource) -> Option<Vec<Step>> {
    if let Some(events) = recorded(run, at, ids) {
        return Some(steps(events));
    }
    let mut open = run.holds.values().filter(|hold| hold.state == HoldState::Open);
    open.find_map(|hold| preset(run, hold).or_else(|| by_policy_or_default(run, hold))).map(|step| vec![step])
}

/// The effect of the next recorded answer. Answers that repeat work come last, because they void the questions about that work,
/// whose answers must have taken effect by then.
pub(in crate::run) fn recorded(run: &Run, at: Timestamp, ids: &mut IdSource) -> Option<Vec<Event>> {
    let repeats = |hold: &&Hold| hold.chosen().is_some_and(|choice| choice.action.repeats());
    let hold = run.holds.values().filter(|hold| takes_effect_at_once(hold)).min_by_key(repeats)?;
    Some(settle(run, hold, at, ids))
}

/// Whether an answer is recorded that nothing outside has to confirm.
pub(in crate::run) fn takes_effect_at_once(hold: &Hold) -> bool {
    hold.state == HoldState::Checking && !hold.needs_check() && !needs_recheck(hold)
}

/// A preset answer was given without seeing anything, so it never answers a reopened hold.
fn preset(run: &Run, hold: &Hold) -> Option<Step> {
    if hold.revision > 1 || hold.terms.person_only {
        return None;
    }
    let given = run.presets.iter().find(|given| hold.is_selected_by(&given.preset.selector))?;
    let choice = hold.option(&given.preset.option)?;
    // The phase would be repeated forever.
    if hold.kind == HoldKind::Failed && matches!(choice.action, Action::RepeatPhase(_)) {
        return None;
    }
    if choice.requires_feedback && given.preset.feedback.as_deref().is_none_or(|words| words.trim().is_empty()) {
        return None;
    }
    let event = Event::Answered {
        hold: hold.id.clone(),
        option: choice.id.clone(),
        feedback: given.preset.feedback.clone(),
        revision: hold.revision,
    };
    Some(Step { actor: Some(Actor { channel: Channel::Preset, ..given.actor.clone() }), event })
}

/// The automatic answer by policy or default, if the hold allows one. Reopened holds are left to people.
fn by_policy_or_default(run: &Run, hold: &Hold) -> Option<Step> {
    if hold.revision > 1 || hold.terms.person_only {
        return None;
    }
    let kind = hold.kind.policy()?;
    // A question with notes goes to a person, and so does one that a person has answered before.
    let by_person = |decision: &&crate::run::state::Decision| {
        decision.task.as_ref().map(TaskKey::address) == hold.scope.addresses().first().cloned()
            && decision.phase.as_ref() == hold.scope.phase()
            && !decision.actor.channel.is_automatic()
    };
    let for_people = !hold.notes.is_empty() || run.decisions.iter().any(|decision| by_person(&decision));
    let in_a_row = |rule: &Automatic| rule.max_consecutive.is_none_or(|most| run.consecutive_automatic.of(kind) < most);
    let allowed = !for_people && run.workflow.policy.rule(kind).is_some_and(in_a_row);
    let (option, actor) = match (&hold.terms.automatic, &hold.terms.default) {
        (Some(option), _) if allowed => (option, Actor::automatic("policy", Channel::Policy)),
        (_, Some(option)) => (option, Actor::automatic("default", Channel::Default)),
        (_, None) => return None,
    };
    let event = Event::Answered { hold: hold.id.clone(), option: option.clone(), feedback: None, revision: hold.revision };
    Some(Step { actor: Some(actor), event })
}

/// Whether the files of an answered hold must be digested again, and its git change read again, before its answer takes effect.
pub(in crate::run) fn needs_recheck(hold: &Hold) -> bool {
    hold.shows_content() && hold.chosen().is_some_and(|choice| choice.action.continues())
}

pub(in crate::run) fn settle(run: &Run, hold: &Hold, at: Timestamp, ids: &mut IdSource) -> Vec<Event> {
    let Some(choice) = hold.chosen() else { return Vec::new() };
    let feedback = hold.answers.last().and_then(|answer| answer.feedback.clone()).filter(|text| !text.is_empty());
    let mut events = vec![Event::HoldSettled { hold: hold.id.clone() }];
    if let (Scope::Phase { phase, .. }, true) = (&hold.scope, hold.found_issues())
        && run.phase_issues >= rounds(run.workflow.phase(phase.as_str()).and_then(|phase| phase.checkpoint.as_ref()))
    {
        let message = too_often(run.phase_issues, feedback.as_deref().unwrap_or_default());
        events.push(Event::Failed { message: format!("{phase} failed: {message}") });
        return events;
    }
    match &choice.action {
        Action::Continue => match &hold.scope {
            Scope::Tasks(_) => events.extend(task_answered(run, hold)),
            Scope::Run | Scope::Phase { .. } | Scope::Gate { .. } | Scope::Gaps { .. } => events.extend(complete_phase(run)),
        },
        Action::SkipPhases(phases) => {
            events.push(Event::PhasesSkipListed { phases: phases.clone() });
            events.extend(complete_phase(run));
        }
        Action::RepeatPhase(target) => {
            let from = run.current.as_ref().map_or_else(|| target.clone(), |phase| phase.id.clone());
            events.extend(void_others(run, Some(&hold.id), "the phase runs again"));
            events.push(Event::PhaseRepeated {
                from,
                target: target.clone(),
                feedback: with_what_was_found(hold, feedback),
                by_failure: false,
                gaps: false,
                carry: Vec::new(),
                restores: choice.restores.clone(),
            });
        }
        Action::Abort => {
            events.extend(void_others(run, Some(&hold.id), "the run was aborted"));
            events.push(Event::Aborted { hold: hold.id.clone() });
        }
        // Settling the hold makes its tasks wait again; they start when their turn comes.
        Action::Rerun | Action::RerunRest => {}
        Action::CountAsDone => events.extend(count_as_done(run, hold)),
        Action::RaiseBudget(scope) => events.push(Event::BudgetRaised { scope: scope.clone() }),
        Action::Redo(tasks) => match &hold.scope {
            Scope::Phase { phase, .. } => {
                events.extend(void_others(run, Some(&hold.id), "the phase runs again"));
                events.push(some_again(run, phase, tasks, feedback));
            }
            Scope::Tasks(_) | Scope::Run | Scope::Gate { .. } | Scope::Gaps { .. } => {
                events.extend(redo(run, hold, tasks, feedback.unwrap_or_default()));
            }
        },
        Action::Fail => events.extend(counts_as_failed(run, hold, feedback, at, ids)),
        Action::Reply => events.extend(replied(run, hold, at, ids)),
    }
    events
}

/// The feedback for the rework: what a gate found, and what a person said.
fn with_what_was_found(hold: &Hold, feedback: Option<String>) -> Option<String> {
    if hold.kind != HoldKind::Failed {
        return feedback;
    }
    let found: Vec<&str> = hold.notes.iter().map(String::as_str).chain(feedback.as_deref()).collect();
    Some(format!("{} failed: {}", hold.scope.addresses().join(", "), found.join("\n")))
}

/// The question of a task was answered, so the task is done.
fn task_answered(run: &Run, hold: &Hold) -> Option<Event> {
    let (Scope::Tasks(keys), Some(answer)) = (&hold.scope, hold.answers.last()) else { return None };
    let key = keys.first()?.clone();
    let attempt = run.task_run(&key)?.attempts;
    Some(Event::TaskFinished { key, attempt, result: Some(said(hold, answer)), outputs: Vec::new(), agent: None, commit: None })
}

/// The answer to a question of the team goes back to its members.
fn replied(run: &Run, hold: &Hold, at: Timestamp, ids: &mut IdSource) -> Vec<Event> {
    let mut events = conflict_answered(run, hold, at, ids);
    events.extend(escalation_answered(run, hold, at, ids));
    events
}

/// A person decided that the subject of a question has failed.
fn counts_as_failed(run: &Run, hold: &Hold, said: Option<String>, at: Timestamp, ids: &mut IdSource) -> Vec<Event> {
    let (Scope::Tasks(keys), Some(phase)) = (&hold.scope, &run.current) else { return Vec::new() };
    let Some(index) = keys.first().and_then(|key| phase.find(key)) else { return Vec::new() };
    let failure = match hold.question.as_ref().map(|asked| &asked.topic) {
        Some(Topic::Authentication(missing)) => {
            Failure { kind: FailureKind::Authentication, message: missing.message.clone(), tail: missing.tail.clone() }
        }
        Some(Topic::Question(_) | Topic::Handover(_)) | None => Failure {
            kind: FailureKind::Issues,
            message: format!("a person found issues: {}", said.unwrap_or_default()),
            tail: String::new(),
        },
    };
    failed(run, index, &failure, None, at, ids)
}

fn complete_phase(run: &Run) -> Option<Event> {
    let phase = run.current.as_ref()?;
    Some(Event::PhaseCompleted { phase: phase.id.clone(), iteration: phase.iteration })
}

fn count_as_done(run: &Run, hold: &Hold) -> Vec<Event> {
    match &hold.scope {
        Scope::Run | Scope::Phase { .. } => Vec::new(),
        Scope::Gaps { phase, iteration } => vec![Event::GapsWaived { phase: phase.clone(), iteration: *iteration }],
        Scope::Tasks(asked) => {
            let reason = "a person marked it as done";
            // Further tasks may wait for the same answer since the question was asked.
            let waiting = run.current.iter().flat_map(|phase| phase.asked_about(&hold.id));
            let mut keys = asked.clone();
            keys.extend(waiting.filter(|key| !asked.contains(key)));
            keys.iter().map(|key| Event::TaskSkipped { key: key.clone(), reason: reason.to_owned() }).collect()
        }
        Scope::Gate { phase, iteration, gate } => {
            vec![Event::GateWaived { phase: phase.clone(), iteration: *iteration, gate: gate.clone(), reason: None }]
        }
    }
}
