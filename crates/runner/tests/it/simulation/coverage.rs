//! Coverage: which facts occurred while plans were executed, alone and in combination.

use super::invariants::{HistoryStep, Watch};
use lockgate_engine::id::PhaseId;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::event::{Entry, Event, FailureKind};
use lockgate_engine::run::phase::PhaseRun;
use lockgate_engine::run::state::TaskState;
use lockgate_engine::spec::workflow::{Join, OnDeadline};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    Backoff,
    MaxParallelReached,
    ItemLimitReached,
    SeveralFailed,
    FailFast,
    Redo,
    AnswerChanged,
    PhaseSkipped,
    PhaseRepeated,
    DefaultAnswered,
    DeadlinePassed,
    FailureTolerated,
    JoinOfFailed,
    DefinitionChanged,
    BackoffEndedWithoutRoom,
    BackoffEndedWhileDraining,
    IssuesTooOften,
    SkippedPhaseRepeated,
    RepeatedByItself,
    DefaultRepeats,
    DeadlineAnswered,
    DeadlineEscalated,
    DeadlineAborted,
    LateAnswer,
    Reminded,
    PolicyAnswered,
    PresetUsed,
    WhenFalse,
    UntilAgain,
    UntilGivenUp,
    HoldReopened,
    HoldVoided,
    GateFailed,
    GapsFound,
    TaskSkippedByPerson,
    RetriedByPerson,
    Interrupted,
    ResumedAfterFailure,
}

/// Each of these must occur together with each other one.
const COMBINED: &[Fact] = &[
    Fact::Backoff,
    Fact::MaxParallelReached,
    Fact::ItemLimitReached,
    Fact::SeveralFailed,
    Fact::FailFast,
    Fact::Redo,
    Fact::AnswerChanged,
    Fact::PhaseSkipped,
    Fact::PhaseRepeated,
    Fact::DefaultAnswered,
    Fact::DeadlinePassed,
    Fact::FailureTolerated,
    Fact::JoinOfFailed,
    Fact::DefinitionChanged,
];

/// Each of these must occur.
const ALONE: &[Fact] = &[
    Fact::BackoffEndedWithoutRoom,
    Fact::BackoffEndedWhileDraining,
    Fact::IssuesTooOften,
    Fact::SkippedPhaseRepeated,
    Fact::RepeatedByItself,
    Fact::DefaultRepeats,
    Fact::DeadlineAnswered,
    Fact::DeadlineEscalated,
    Fact::DeadlineAborted,
    Fact::LateAnswer,
    Fact::Reminded,
    Fact::PolicyAnswered,
    Fact::PresetUsed,
    Fact::WhenFalse,
    Fact::UntilAgain,
    Fact::UntilGivenUp,
    Fact::HoldReopened,
    Fact::HoldVoided,
    Fact::GateFailed,
    Fact::GapsFound,
    Fact::TaskSkippedByPerson,
    Fact::RetriedByPerson,
    Fact::Interrupted,
    Fact::ResumedAfterFailure,
];

#[derive(Debug, Default)]
pub(super) struct Coverage {
    plans: u64,
    alone: BTreeMap<Fact, u64>,
    pairs: BTreeMap<(Fact, Fact), u64>,
}

impl Coverage {
    pub(super) fn add(&mut self, facts: &BTreeSet<Fact>) {
        self.plans += 1;
        for fact in facts {
            *self.alone.entry(*fact).or_default() += 1;
            let later = facts.range(fact..).filter(|other| *other != fact);
            later.for_each(|other| *self.pairs.entry((*fact, *other)).or_default() += 1);
        }
    }

    pub(super) fn plans(&self) -> u64 {
        self.plans
    }

    /// Required facts that never occurred.
    pub(super) fn missing(&self) -> Vec<String> {
        let alone = ALONE.iter().filter(|fact| !self.alone.contains_key(fact)).map(|fact| format!("{fact:?}"));
        let pairs = pairs().filter(|pair| !self.pairs.contains_key(pair)).map(|(one, other)| format!("{one:?} × {other:?}"));
        alone.chain(pairs).collect()
    }

    /// A table for people: a row for each fact with the number of plans in which it occurred, alone and with each other one.
    pub(super) fn table(&self) -> String {
        let mut table = format!("in how many of {} plans each occurred\n", self.plans);
        for fact in ALONE {
            let _ = writeln!(table, "{:>28} {:>6}", format!("{fact:?}"), self.alone.get(fact).unwrap_or(&0));
        }
        let _ = writeln!(table, "in combination; the columns are in the order of the rows");
        for (row, fact) in COMBINED.iter().enumerate() {
            let _ = write!(table, "{:>28} {:>6} |", format!("{fact:?}"), self.alone.get(fact).unwrap_or(&0));
            for other in &COMBINED[..row] {
                let _ = write!(table, " {:>5}", self.pairs.get(&(*other, *fact)).unwrap_or(&0));
            }
            table.push('\n');
        }
        table
    }
}

fn pairs() -> impl Iterator<Item = (Fact, Fact)> {
    let facts = COMBINED.iter().enumerate();
    facts.flat_map(|(place, one)| COMBINED[place + 1..].iter().map(move |other| (*one, *other)))
}

pub(super) fn facts(history: &[HistoryStep], watch: &Watch) -> BTreeSet<Fact> {
    let mut facts = BTreeSet::new();
    let mut skipped = BTreeSet::new();
    facts.extend((watch.late > 0).then_some(Fact::LateAnswer));
    for HistoryStep { entries, had_failed, .. } in history {
        for entry in entries {
            let channel = entry.actor.as_ref().map(|actor| actor.channel);
            facts.extend(of_event(&entry.event, channel));
            facts.extend(of_skipped(&entry.event, &mut skipped));
        }
        let defaults = entries.iter().any(|entry| {
            matches!(entry.event, Event::Answered { .. })
                && entry.actor.as_ref().is_some_and(|actor| actor.channel == Channel::Default)
        });
        let repeats = entries.iter().any(|entry| matches!(entry.event, Event::PhaseRepeated { .. }));
        facts.extend((defaults && repeats).then_some(Fact::DefaultRepeats));
        let resumed = entries.iter().any(|entry| matches!(entry.event, Event::Resumed { .. }));
        facts.extend((resumed && *had_failed).then_some(Fact::ResumedAfterFailure));
    }
    facts
}

fn of_skipped(event: &Event, skipped: &mut BTreeSet<PhaseId>) -> Option<Fact> {
    match event {
        Event::PhaseSkipped { phase } => {
            skipped.insert(phase.clone());
            Some(Fact::PhaseSkipped)
        }
        Event::PhaseStarted { phase, .. } if skipped.contains(phase) => Some(Fact::SkippedPhaseRepeated),
        _ => None,
    }
}

fn of_event(event: &Event, channel: Option<Channel>) -> Vec<Fact> {
    match event {
        Event::RetryScheduled { .. } => vec![Fact::Backoff],
        Event::TaskStopped { .. } => vec![Fact::FailFast],
        Event::ReworkRequested { .. } => vec![Fact::Redo],
        Event::PhaseRepeated { by_failure, carry, .. } => {
            let redo = (!carry.is_empty()).then_some(Fact::Redo);
            let by_failure = by_failure.then_some(Fact::RepeatedByItself);
            std::iter::once(Fact::PhaseRepeated).chain(redo).chain(by_failure).collect()
        }
        Event::AnswerChanged { .. } => vec![Fact::AnswerChanged],
        Event::Answered { .. } => match channel {
            Some(Channel::Default) => vec![Fact::DefaultAnswered],
            Some(Channel::Policy) => vec![Fact::PolicyAnswered],
            Some(Channel::Preset) => vec![Fact::PresetUsed],
            Some(Channel::Deadline | Channel::Prompt | Channel::Command | Channel::Program | Channel::Driver) | None => {
                Vec::new()
            }
        },
        Event::DeadlinePassed { then, .. } => vec![
            Fact::DeadlinePassed,
            match then {
                OnDeadline::Answer(_) => Fact::DeadlineAnswered,
                OnDeadline::Escalate(_) => Fact::DeadlineEscalated,
                OnDeadline::Abort => Fact::DeadlineAborted,
            },
        ],
        Event::Reminded { .. } => vec![Fact::Reminded],
        Event::FailureTolerated { .. } => vec![Fact::FailureTolerated],
        Event::TaskOmitted { failed, .. } => vec![if *failed { Fact::JoinOfFailed } else { Fact::WhenFalse }],
        Event::TaskRepeated { .. } => vec![Fact::UntilAgain],
        Event::TaskFailed { failure, .. } => match failure.kind {
            FailureKind::Until => vec![Fact::UntilGivenUp],
            FailureKind::Issues => vec![Fact::IssuesTooOften],
            _ => Vec::new(),
        },
        Event::DefinitionAccepted { .. } => vec![Fact::DefinitionChanged],
        Event::HoldReopened { .. } => vec![Fact::HoldReopened],
        Event::HoldVoided { .. } => vec![Fact::HoldVoided],
        Event::GateFailed { .. } => vec![Fact::GateFailed],
        Event::GapsChecked(_) => vec![Fact::GapsFound],
        Event::TaskSkipped { .. } => vec![Fact::TaskSkippedByPerson],
        Event::RetryRequested { .. } => vec![Fact::RetriedByPerson],
        Event::Interrupted { .. } => vec![Fact::Interrupted],
        _ => Vec::new(),
    }
}

/// The facts that a state shows after these events.
pub(super) fn of_state(entries: &[Entry], run: &Run) -> Vec<Fact> {
    let Some(phase) = &run.current else { return Vec::new() };
    let mut facts = Vec::new();
    let count = |is: fn(&TaskState) -> bool| phase.tasks.iter().filter(|task| is(&task.state)).count();
    let failed = count(|state| matches!(state, TaskState::Failed(_)));
    let running = count(|state| *state == TaskState::Running);
    if failed + count(|state| matches!(state, TaskState::Backoff { .. })) > 1 {
        facts.push(Fact::SeveralFailed);
    }
    let waits = phase.ready().next().is_some();
    if waits && run.workflow.max_parallel.is_some_and(|limit| running >= limit as usize) {
        facts.push(Fact::MaxParallelReached);
    }
    facts.extend(item_limit_reached(run, phase).then_some(Fact::ItemLimitReached));
    let due = entries.iter().find_map(|entry| match &entry.event {
        Event::RetryDue { key } => phase.find(key),
        _ => None,
    });
    if due.is_some_and(|index| phase.tasks[index].state == TaskState::Waiting) {
        let drains = failed > 0 && running > 0;
        facts.push(if drains { Fact::BackoffEndedWhileDraining } else { Fact::BackoffEndedWithoutRoom });
    }
    let declared = &run.workflow.phases[phase.position];
    let bad = |state: &TaskState| matches!(state, TaskState::Tolerated(_) | TaskState::Omitted { failed: true, .. });
    let joins = phase.running().filter_map(|index| phase.declared(declared, index)).any(|task| {
        let needs_bad = |task: &&lockgate_engine::run::phase::TaskRun| bad(&task.state);
        task.join != Join::All
            && phase.tasks.iter().filter(|known| task.needs.contains(&known.task)).any(|known| needs_bad(&known))
    });
    facts.extend(joins.then_some(Fact::JoinOfFailed));
    facts
}

/// Whether an item of a list waits only because of the limit for parallel items.
fn item_limit_reached(run: &Run, phase: &PhaseRun) -> bool {
    let declared = &run.workflow.phases[phase.position];
    phase.ready().any(|index| {
        let task = &phase.tasks[index];
        let limit = declared.task(task.task.as_str()).and_then(|task| task.for_each.as_ref()?.max_parallel);
        let others = phase.tasks.iter().filter(|other| other.task == task.task && other.item.is_some());
        let running = others.filter(|other| other.state == TaskState::Running).count();
        task.item.is_some() && limit.is_some_and(|limit| running >= limit as usize)
    })
}
