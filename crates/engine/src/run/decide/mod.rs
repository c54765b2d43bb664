//! What a command means for a run: the events that follow from it, or a refusal.

mod answer;
mod change;
mod definition;
mod end;
mod gaps;
mod people;
mod pipeline;
mod spread;
mod work;

pub(in crate::run) use change::change_in_fork;
pub use change::{Consequences, consequences};
pub(in crate::run) use end::void_others;
pub(in crate::run) use work::failed;

use crate::id::IdSource;
use crate::run::command::{Actor, Channel, Command, CommandKind};
use crate::run::event::{Entry, Event, RefusedAttempt};
use crate::run::follow::{self, Step};
use crate::run::refusal::{Refusal, may_decide};
use crate::run::state::{End, Run, keeps_refused_attempt};
use crate::spec::workflow::Workflow;
use crate::time::Timestamp;
use std::sync::Arc;

/// Begins a run: its state and its first events.
pub fn create(command: &Command, workflow: Arc<Workflow>) -> Result<(Run, Vec<Entry>), Refusal> {
    let CommandKind::Create(create) = &command.kind else { unreachable!("only `Create` begins a run") };
    if !create.presets.is_empty() {
        may_decide(&command.actor, command.require_terminal, "answer in advance")?;
    }
    let created = create.created.clone();
    let mut run = Run::begin(&created, workflow, command.at);
    let mut entries = vec![entry(command, Event::Created(Box::new(created)))];
    if !create.presets.is_empty() {
        let given = entry(command, Event::PresetsGiven { presets: create.presets.clone() });
        apply(&mut run, &given);
        entries.push(given);
    }
    if let Some(event) = pipeline::as_imported(&run) {
        let entry = entry(command, event);
        apply(&mut run, &entry);
        entries.push(entry);
    }
    if command.driving {
        follow(&mut run, command, &mut entries);
    }
    Ok((run, entries))
}

/// Carries out a command: decides, folds what was decided into the state and, for whoever drives, lets follow what follows.
/// The state is then ahead of the store by these events; if they cannot be stored, it must be loaded anew.
pub fn handle(run: &mut Run, command: &Command) -> Result<Vec<Entry>, Refusal> {
    let mut events = decide(run, command)?;
    let mut entries: Vec<Entry> = Vec::with_capacity(events.len() + 1);
    if let CommandKind::AcceptDefinition { definition, workflow, .. } = &command.kind {
        apply_answers(run, command, &mut entries);
        // Nothing is left to accept where an answer has ended the run.
        events = decide(run, command).unwrap_or_default();
        run.offer(*definition, workflow.clone());
    }
    for event in events {
        let entry = entry(command, event);
        apply(run, &entry);
        entries.push(entry);
    }
    if command.driving {
        follow(run, command, &mut entries);
    }
    Ok(entries)
}

/// Fires the deadlines that passed before a command was sent: an answer that comes after its deadline has lost, whether or not
/// anybody watched the clock. What is fired is part of the history even where the command itself is refused.
pub fn fire_deadlines(run: &mut Run, command: &Command) -> Vec<Entry> {
    let mut entries = Vec::new();
    while let Some(events) = answer::next_deadline(run, command.at) {
        for event in events {
            let actor = Some(Box::new(Actor::automatic("deadline", Channel::Deadline)));
            let entry = Entry { at: command.at, actor, cause: None, event };
            apply(run, &entry);
            entries.push(entry);
        }
    }
    entries
}

/// What a command means for a run, by itself: the direct events, or a refusal.
pub fn decide(run: &Run, command: &Command) -> Result<Vec<Event>, Refusal> {
    let ended = |run: &Run| run.end.is_some();
    match &command.kind {
        CommandKind::Create(_) => Err(Refusal::Ended { status: "under way" }),
        CommandKind::TakeOver { driver, detached } => end::take_over(run, driver, *detached, command),
        CommandKind::TaskEnded { .. }
        | CommandKind::GateEnded { .. }
        | CommandKind::SessionNamed { .. }
        | CommandKind::WhenEvaluated { .. }
        | CommandKind::GapsChecked { .. }
        | CommandKind::Thought { .. }
        | CommandKind::Finalized { .. }
            if ended(run) || run.stopping =>
        {
            Ok(Vec::new())
        }
        CommandKind::TaskEnded { key, attempt, outcome, agent, commit } => {
            let mut ids = IdSource::new(command.seed);
            let mut events = work::task_ended(run, (key, *attempt), outcome, agent.clone(), command.at, &mut ids);
            if let (Some(Event::TaskFinished { commit: kept, .. }), Some(_)) = (events.first_mut(), commit) {
                *kept = commit.clone();
            }
            Ok(events)
        }
        CommandKind::SessionNamed { key, attempt, session, dir } => {
            Ok(work::session_named(run, (key, *attempt), session, dir.as_deref()))
        }
        CommandKind::WhenEvaluated { key, outcome } => Ok(spread::when_evaluated(run, key, outcome)),
        CommandKind::GapsChecked { phase, iteration, round, found } => Ok(gaps::checked(run, (phase, *iteration), *round, found)),
        CommandKind::Thought { thinker, text, agent } => {
            let mut ids = IdSource::new(command.seed);
            Ok(gaps::thought(run, thinker, text, agent.clone(), command.at, &mut ids))
        }
        CommandKind::Finalized { made } => Ok(gaps::finalized(run, made)),
        CommandKind::AcceptDefinition { definition, workflow, files } => {
            may_decide(&command.actor, command.require_terminal, "accept a changed definition")?;
            definition::accept(run, *definition, workflow, files)
        }
        CommandKind::ChangeAgent { agent } => {
            may_decide(&command.actor, command.require_terminal, "choose another agent")?;
            let changed = run.agent.as_deref() != Some(agent);
            Ok(changed.then(|| Event::AgentChanged { agent: agent.clone() }).into_iter().collect())
        }
        CommandKind::GateEnded { phase, iteration, gate, attempt, failure } => {
            Ok(work::gate_ended(run, (phase, *iteration), gate, *attempt, failure.as_ref()))
        }
        CommandKind::ConditionEvaluated { phase, iteration, outcome } => {
            let expected = run.current.as_ref().is_some_and(|current| {
                current.id == *phase && current.iteration == *iteration && current.checkpoint.condition.is_none()
            });
            let event = Event::ConditionEvaluated { phase: phase.clone(), iteration: *iteration, outcome: outcome.clone() };
            Ok(if expected && !ended(run) { vec![event] } else { Vec::new() })
        }
        CommandKind::Shown { phase, iteration, shown } => {
            let mut ids = IdSource::new(command.seed);
            Ok(answer::shown(run, (phase, *iteration), shown, command.at, &mut ids))
        }
        CommandKind::Rechecked { hold, revision, files, differences } => {
            let mut ids = IdSource::new(command.seed);
            Ok(answer::rechecked(run, (hold, *revision), files, differences, command.at, &mut ids))
        }
        CommandKind::Checked { hold, revision, failure } => {
            let mut ids = IdSource::new(command.seed);
            Ok(answer::checked(run, (hold, *revision), failure.as_ref(), command.at, &mut ids))
        }
        CommandKind::TimerDue { timer } => Ok(answer::timer_due(run, timer, command.at, &mut IdSource::new(command.seed))),
        CommandKind::Look => Ok(Vec::new()),
        CommandKind::ChangeAnswer { hold, option, feedback } => {
            may_decide(&command.actor, command.require_terminal, "change an answer")?;
            change::change(run, hold, option, feedback.clone())
        }
        CommandKind::Answer { hold, revision, option, feedback } => {
            answer::answer(run, command, hold, *revision, option, feedback.clone())
        }
        CommandKind::GivePresets { presets } => {
            may_decide(&command.actor, command.require_terminal, "answer in advance")?;
            Ok(vec![Event::PresetsGiven { presets: presets.clone() }])
        }
        CommandKind::Interrupt { signal } => Ok(end::interrupt(run, signal, command)),
        CommandKind::Cancel { reason } => {
            may_decide(&command.actor, command.require_terminal, "cancel a run")?;
            end::cancel(run, reason.clone())
        }
        CommandKind::RetryTask { step, cut_off } => people::retry(run, command, step, *cut_off),
        CommandKind::SkipTask { step, reason, cut_off } => people::skip(run, command, step, reason, *cut_off),
        CommandKind::RecordRefusal(refused) => {
            let number = refused.number.max(run.refused_attempts.saturating_add(1));
            let kept = keeps_refused_attempt(run.refused_attempts, number);
            let refused = kept.then(|| RefusedAttempt { number, ..refused.clone() });
            Ok(refused.map(Event::AttemptRefused).into_iter().collect())
        }
        CommandKind::Pipeline(wish) => pipeline::wish(run, command, wish),
    }
}

fn follow(run: &mut Run, command: &Command, entries: &mut Vec<Entry>) {
    follow_with(run, command, entries, follow::next);
}

/// Recorded answers take effect under the definition that they were given to, whether or not a process drives the run.
fn apply_answers(run: &mut Run, command: &Command, entries: &mut Vec<Entry>) {
    follow_with(run, command, entries, |run, at, ids| {
        follow::recorded(run, at, ids).into_iter().flatten().map(Step::from).collect()
    });
}

/// Applies steps until there are none.
fn follow_with(
    run: &mut Run,
    command: &Command,
    entries: &mut Vec<Entry>,
    next: impl Fn(&Run, Timestamp, &mut IdSource) -> Vec<Step>,
) {
    let mut ids = IdSource::new(command.seed);
    // Direct events may have used ids of this seed; those that follow must differ.
    ids.skip_to(entries.len() as u32 + 1_000);
    loop {
        let steps = next(run, command.at, &mut ids);
        if steps.is_empty() {
            return;
        }
        for Step { actor, event } in steps {
            let entry = Entry { at: command.at, actor: actor.map(Box::new), cause: command.id.clone(), event };
            apply(run, &entry);
            entries.push(entry);
        }
    }
}

fn entry(command: &Command, event: Event) -> Entry {
    // Whoever looks at the clock only carries out what was agreed.
    let by_clock = matches!(command.kind, CommandKind::TimerDue { .. }).then(|| Actor::automatic("deadline", Channel::Deadline));
    let actor = by_clock.or_else(|| (command.actor != Actor::driver()).then(|| command.actor.clone())).map(Box::new);
    Entry { at: command.at, actor, cause: command.id.clone(), event }
}

fn apply(run: &mut Run, entry: &Entry) {
    run.apply(entry).expect("what was decided fits the state that it was decided on");
}

pub(super) fn status_word(end: &End) -> &'static str {
    match end {
        End::Complete => "complete",
        End::Failed(_) => "failed",
        End::Aborted => "aborted",
        End::Cancelled => "cancelled",
    }
}
