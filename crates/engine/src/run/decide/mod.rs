//! Deciding a command: the events that follow from it, or a refusal.

mod answer;
mod answer_change;
mod backoff;
mod conditions;
mod conflicts;
mod definition;
mod fan_out;
mod gaps;
mod lifecycle;
mod outcomes;
mod overrides;
mod pipeline;
mod rewind;
mod team;
mod timers;

pub(in crate::run) use answer_change::change_answer;
pub use answer_change::{Consequences, consequences};
pub(in crate::run) use conflicts::{ask_about_open_conflict, conflict_answered};
pub(in crate::run) use lifecycle::void_others;
pub(in crate::run) use outcomes::failed;
pub(in crate::run) use rewind::restored;
pub use rewind::{RewindConsequences, VoidedAnswer, rewind_consequences};
pub(in crate::run) use team::escalation_answered;

use crate::id::IdSource;
use crate::run::advance::{self, Step};
use crate::run::command::{Actor, Channel, Command, CommandKind, Create, Envelope};
use crate::run::event::{Entry, Event, RefusedAttempt};
use crate::run::refusal::Refusal;
use crate::run::state::{Run, keeps_refused_attempt};
use crate::spec::workflow::Workflow;
use crate::time::Timestamp;
use std::sync::Arc;

/// Starts a run: its state and its first events.
pub fn create(envelope: &Envelope, create: &Create, workflow: Arc<Workflow>) -> Result<(Run, Vec<Entry>), Refusal> {
    if !create.presets.is_empty() {
        envelope.caller.may_decide("answer in advance")?;
    }
    let created = create.created.clone();
    let mut run = Run::start(&created, workflow, envelope.at);
    let mut entries = vec![entry(envelope, Event::Created(Box::new(created)))];
    if !create.presets.is_empty() {
        let given = entry(envelope, Event::AnswersPreset { presets: create.presets.clone() });
        apply(&mut run, &given);
        entries.push(given);
    }
    if let Some(event) = pipeline::as_imported(&run) {
        let entry = entry(envelope, event);
        apply(&mut run, &entry);
        entries.push(entry);
    }
    if envelope.driving {
        advance(&mut run, envelope, &mut entries);
    }
    Ok((run, entries))
}

/// Handles a command: decides it, applies the events and, if the sender drives the run, advances the run. The state is then ahead
/// of the store by these events. If they cannot be stored, the state must be loaded again.
pub fn handle(run: &mut Run, command: &Command) -> Result<Vec<Entry>, Refusal> {
    let mut events = decide(run, command)?;
    let envelope = &command.envelope;
    let mut entries: Vec<Entry> = Vec::with_capacity(events.len() + 1);
    if let CommandKind::AcceptDefinition { definition, workflow, .. } = &command.kind {
        apply_answers(run, envelope, &mut entries);
        // There is nothing left to accept if an answer ended the run.
        events = decide(run, command).unwrap_or_default();
        run.offer(*definition, workflow.clone());
    }
    if let CommandKind::Rewind(rewind) = &command.kind {
        run.offer_state(rewind.state, (*rewind.base).clone());
    }
    // A process that fires timers only carries out what the workflow says.
    let by_clock = matches!(command.kind, CommandKind::TimerDue { .. }).then(|| Actor::automatic("deadline", Channel::Deadline));
    for event in events {
        let entry = match &by_clock {
            Some(clock) => entry_by(Some(clock.clone()), envelope, event),
            None => entry(envelope, event),
        };
        apply(run, &entry);
        entries.push(entry);
    }
    if envelope.driving {
        advance(run, envelope, &mut entries);
    }
    Ok(entries)
}

/// Fires the deadlines that passed before a command was sent. An answer after its deadline is too late, whether or not any
/// process watched the clock. The fired deadlines become part of the history even if the command is refused.
pub fn fire_deadlines(run: &mut Run, at: Timestamp) -> Vec<Entry> {
    let mut entries = Vec::new();
    while let Some(events) = timers::next_deadline(run, at) {
        for event in events {
            let actor = Some(Box::new(Actor::automatic("deadline", Channel::Deadline)));
            let entry = Entry { at, actor, cause: None, event };
            apply(run, &entry);
            entries.push(entry);
        }
    }
    entries
}

/// The direct events of a command, or a refusal.
pub fn decide(run: &Run, command: &Command) -> Result<Vec<Event>, Refusal> {
    let ended = |run: &Run| run.end.is_some();
    let envelope = &command.envelope;
    match &command.kind {
        CommandKind::TakeOver { driver, detached } => lifecycle::take_over(run, driver, *detached, envelope),
        CommandKind::TaskEnded { .. }
        | CommandKind::GateEnded { .. }
        | CommandKind::SessionNamed { .. }
        | CommandKind::WhenEvaluated { .. }
        | CommandKind::GapsChecked { .. }
        | CommandKind::AgentQueryAnswered { .. }
        | CommandKind::Finalized { .. }
        | CommandKind::DiffBaseRecorded { .. }
            if ended(run) || run.stopping =>
        {
            Ok(Vec::new())
        }
        CommandKind::TaskEnded { key, attempt, outcome, agent, commit } => {
            let mut ids = IdSource::new(envelope.seed);
            let mut events = outcomes::task_ended(run, (key, *attempt), outcome, agent.clone(), envelope.at, &mut ids);
            if let (Some(Event::TaskFinished { commit: kept, .. }), Some(_)) = (events.first_mut(), commit) {
                *kept = commit.clone();
            }
            Ok(events)
        }
        CommandKind::SessionNamed { key, attempt, session, dir } => {
            Ok(outcomes::session_named(run, (key, *attempt), session, dir.as_deref()))
        }
        CommandKind::WhenEvaluated { key, outcome } => Ok(conditions::when_evaluated(run, key, outcome)),
        CommandKind::GapsChecked { phase, iteration, round, found } => Ok(gaps::checked(run, (phase, *iteration), *round, found)),
        CommandKind::AgentQueryAnswered { requester, text, agent } => {
            let mut ids = IdSource::new(envelope.seed);
            Ok(gaps::agent_query_answered(run, requester, text, agent.clone(), envelope.at, &mut ids))
        }
        CommandKind::Finalized { made } => Ok(gaps::finalized(run, made)),
        CommandKind::AcceptDefinition { definition, workflow, files } => {
            envelope.caller.may_decide("accept a changed definition")?;
            definition::accept(run, *definition, workflow, files)
        }
        CommandKind::ChangeAgent { agent } => {
            envelope.caller.may_decide("choose another agent")?;
            let changed = run.agent.as_deref() != Some(agent);
            Ok(changed.then(|| Event::AgentChanged { agent: agent.clone() }).into_iter().collect())
        }
        CommandKind::GateEnded { phase, iteration, gate, attempt, failure } => {
            Ok(outcomes::gate_ended(run, (phase, *iteration), gate, *attempt, failure.as_ref()))
        }
        CommandKind::ConditionEvaluated { phase, iteration, outcome } => {
            let expected = run.current.as_ref().is_some_and(|current| {
                current.id == *phase && current.iteration == *iteration && current.checkpoint.condition.is_none()
            });
            let event = Event::ConditionEvaluated { phase: phase.clone(), iteration: *iteration, outcome: outcome.clone() };
            Ok(if expected && !ended(run) { vec![event] } else { Vec::new() })
        }
        CommandKind::Shown { phase, iteration, shown } => {
            let mut ids = IdSource::new(envelope.seed);
            Ok(answer::shown(run, (phase, *iteration), shown, envelope.at, &mut ids))
        }
        CommandKind::Rechecked { hold, revision, files, diff, differences } => {
            let (mut ids, now) = (IdSource::new(envelope.seed), (files.as_slice(), diff.as_deref()));
            Ok(answer::rechecked(run, (hold, *revision), now, differences, envelope.at, &mut ids))
        }
        CommandKind::DiffBaseRecorded { phase, iteration, base } => {
            Ok(outcomes::diff_base_recorded(run, (phase, *iteration), base))
        }
        CommandKind::Checked { hold, revision, failure } => {
            let mut ids = IdSource::new(envelope.seed);
            Ok(answer::checked(run, (hold, *revision), failure.as_ref(), envelope.at, &mut ids))
        }
        CommandKind::TimerDue { timer } => Ok(timers::timer_due(run, timer, envelope.at, &mut IdSource::new(envelope.seed))),
        CommandKind::Advance => Ok(Vec::new()),
        CommandKind::ChangeAnswer(change) => change_answer(run, envelope, change),
        CommandKind::Answer { hold, revision, option, feedback } => {
            answer::answer(run, envelope, hold, *revision, option, feedback.clone())
        }
        CommandKind::PresetAnswers { presets } => {
            envelope.caller.may_decide("answer in advance")?;
            Ok(vec![Event::AnswersPreset { presets: presets.clone() }])
        }
        CommandKind::Interrupt { signal } => Ok(lifecycle::interrupt(run, signal, envelope)),
        CommandKind::Cancel { reason } => {
            envelope.caller.may_decide("cancel a run")?;
            lifecycle::cancel(run, reason.clone())
        }
        CommandKind::RetryTask { step, cut_off } => overrides::retry(run, envelope, step, *cut_off),
        CommandKind::SkipTask { step, reason, cut_off } => overrides::skip(run, envelope, step, reason, *cut_off),
        CommandKind::RecordRefusal(refused) => {
            let number = refused.number.max(run.refused_attempts.saturating_add(1));
            let kept = keeps_refused_attempt(run.refused_attempts, number);
            let refused = kept.then(|| RefusedAttempt { number, ..refused.clone() });
            Ok(refused.map(Event::AttemptRefused).into_iter().collect())
        }
        CommandKind::Pipeline(pipeline_command) => pipeline::pipeline_command(run, envelope, pipeline_command),
        CommandKind::Rewind(rewind) => {
            envelope.caller.may_decide("resume from an earlier snapshot")?;
            rewind::rewind(run, rewind, envelope)
        }
        CommandKind::Team(team_command) => team::team_command(run, envelope, team_command),
    }
}

fn advance(run: &mut Run, envelope: &Envelope, entries: &mut Vec<Entry>) {
    advance_with(run, envelope, entries, advance::next);
}

/// Recorded answers take effect under the definition for which they were given, whether or not a process drives the run.
fn apply_answers(run: &mut Run, envelope: &Envelope, entries: &mut Vec<Entry>) {
    advance_with(run, envelope, entries, |run, at, ids| {
        advance::recorded(run, at, ids).into_iter().flatten().map(Step::from).collect()
    });
}

/// Advances the run until nothing more follows.
fn advance_with(
    run: &mut Run,
    envelope: &Envelope,
    entries: &mut Vec<Entry>,
    next: impl Fn(&Run, Timestamp, &mut IdSource) -> Vec<Step>,
) {
    let mut ids = IdSource::new(envelope.seed);
    // Direct events may have used ids of this seed; the events that follow must use others.
    ids.skip_to(entries.len() as u32 + 1_000);
    loop {
        let steps = next(run, envelope.at, &mut ids);
        if steps.is_empty() {
            return;
        }
        for Step { actor, event } in steps {
            let entry = Entry { at: envelope.at, actor: actor.map(Box::new), cause: envelope.id.clone(), event };
            apply(run, &entry);
            entries.push(entry);
        }
    }
}

/// An entry of the caller. An entry without an actor is Lockgate's own.
fn entry(envelope: &Envelope, event: Event) -> Entry {
    let actor = envelope.caller.actor();
    entry_by((*actor != Actor::driver()).then(|| actor.clone()), envelope, event)
}

fn entry_by(actor: Option<Actor>, envelope: &Envelope, event: Event) -> Entry {
    Entry { at: envelope.at, actor: actor.map(Box::new), cause: envelope.id.clone(), event }
}

fn apply(run: &mut Run, entry: &Entry) {
    run.apply(entry).expect("events apply to the state on which they were decided");
}
