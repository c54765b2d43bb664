//! The outbox: which events people are notified of, and through which channels.
//!
//! A row for each notice and channel rides in the commit of its event, so that a notice is delivered at least once, also after the process
//! that committed was killed. Rows are written only for subscribed notices: the settings are an input here, like the clock.

use crate::hold::{Hold, HoldState};
use crate::id::{HoldId, OptionId, PhaseId, RunId};
use crate::run::actor::Actor;
use crate::run::event::{Entry, Event};
use crate::run::index::{HoldRow, NamedVariants, OpenEnum, OutboxRow};
use crate::run::state::{Run, Status};
use crate::spec::workflow::OnDeadline;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A hold waits for an answer.
    HoldOpened,
    /// A hold waits again, because what it showed has changed or its check failed.
    HoldReopened,
    /// A hold still waits.
    HoldReminder,
    /// No one answered a hold before its deadline, and its deadline escalates.
    HoldEscalated,
    /// A hold was answered, or its answer was changed.
    HoldAnswered,
    /// A run is complete, failed, was aborted or was cancelled.
    RunEnded,
}

impl NamedVariants for NoticeKind {
    const ALL: &'static [Self] =
        &[Self::HoldOpened, Self::HoldReopened, Self::HoldReminder, Self::HoldEscalated, Self::HoldAnswered, Self::RunEnded];

    fn as_str(self) -> &'static str {
        match self {
            Self::HoldOpened => "hold_opened",
            Self::HoldReopened => "hold_reopened",
            Self::HoldReminder => "hold_reminder",
            Self::HoldEscalated => "hold_escalated",
            Self::HoldAnswered => "hold_answered",
            Self::RunEnded => "run_ended",
        }
    }
}

/// How a notice reaches people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeChannel {
    /// A command that reads it from its standard input.
    Command,
}

impl NamedVariants for NoticeChannel {
    const ALL: &'static [Self] = &[Self::Command];

    fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
        }
    }
}

/// Which notices go through which channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subscriptions(BTreeMap<NoticeChannel, BTreeSet<NoticeKind>>);

impl Subscriptions {
    /// Nothing is subscribed to.
    pub const NONE: Self = Self(BTreeMap::new());

    /// Notices of these kinds go through this channel.
    pub fn subscribe(&mut self, channel: NoticeChannel, kinds: impl IntoIterator<Item = NoticeKind>) {
        self.0.entry(channel).or_default().extend(kinds);
    }

    /// Whether nothing is subscribed to.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(BTreeSet::is_empty)
    }

    fn channels(&self, kind: NoticeKind) -> impl Iterator<Item = NoticeChannel> + '_ {
        self.0.iter().filter(move |(_, kinds)| kinds.contains(&kind)).map(|(channel, _)| *channel)
    }
}

/// Which notice it is: one event of one run. It stays the same however often the notice is delivered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoticeId {
    /// The run.
    pub run: RunId,
    /// The number of the event in the history of the run, counted from 1.
    pub seq: u64,
}

impl std::fmt::Display for NoticeId {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(text, "{}-{}", self.run, self.seq)
    }
}

/// What people are notified of, as it was when its event was committed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// What it is about.
    pub kind: OpenEnum<NoticeKind>,
    /// When that happened.
    pub at: Timestamp,
    /// The name of the workflow.
    pub workflow: String,
    /// What the run is about.
    pub feature: Option<String>,
    /// The status of the run after the commit.
    pub status: OpenEnum<Status>,
    /// The phase that the run is in.
    pub phase: Option<PhaseId>,
    /// The hold, where it is about one.
    pub hold: Option<HoldRow>,
    /// The answer, where the hold was answered.
    pub answer: Option<NoticeAnswer>,
    /// How the shown files or diff have changed, for people, if the hold was reopened.
    pub differences: Vec<String>,
    /// Why the run failed or was cancelled, where that is known.
    pub reason: Option<String>,
}

/// An answer, as a notice shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoticeAnswer {
    /// The option.
    pub option: OptionId,
    /// What people read on the option.
    pub label: String,
    /// The feedback given with it.
    pub feedback: Option<String>,
    /// Who answered.
    pub actor: Actor,
}

/// What an event means for the people who are notified.
struct Subject<'e> {
    kind: NoticeKind,
    hold: Option<&'e HoldId>,
    answer: Option<(&'e OptionId, Option<&'e str>)>,
    differences: &'e [String],
    reason: Option<&'e str>,
}

impl<'e> Subject<'e> {
    fn new(kind: NoticeKind, hold: Option<&'e HoldId>) -> Self {
        Self { kind, hold, answer: None, differences: &[], reason: None }
    }

    fn of(event: &'e Event) -> Option<Self> {
        use NoticeKind::{HoldAnswered, HoldEscalated, HoldOpened, HoldReminder, HoldReopened, RunEnded};
        match event {
            Event::HoldOpened(opened) => Some(Self::new(HoldOpened, Some(&opened.hold))),
            Event::HoldReopened { hold, differences, .. } => Some(Self { differences, ..Self::new(HoldReopened, Some(hold)) }),
            Event::Reminded { hold, .. } => Some(Self::new(HoldReminder, Some(hold))),
            Event::DeadlinePassed { hold, then: OnDeadline::Escalate(_) } => Some(Self::new(HoldEscalated, Some(hold))),
            Event::Answered { hold, option, feedback, .. } | Event::AnswerChanged { hold, option, feedback } => {
                Some(Self { answer: Some((option, feedback.as_deref())), ..Self::new(HoldAnswered, Some(hold)) })
            }
            Event::Failed { message } => Some(Self { reason: Some(message), ..Self::new(RunEnded, None) }),
            Event::Cancelled { reason } => Some(Self { reason: reason.as_deref(), ..Self::new(RunEnded, None) }),
            Event::Aborted { hold } => Some(Self::new(RunEnded, Some(hold))),
            Event::Completed => Some(Self::new(RunEnded, None)),
            // A deadline that answers or aborts has an event of its own for that.
            Event::DeadlinePassed { then: OnDeadline::Answer(_) | OnDeadline::Abort, .. } => None,
            Event::Created(_)
            | Event::AnswersPreset { .. }
            | Event::Resumed { .. }
            | Event::Interrupted { .. }
            | Event::PhaseSkipped { .. }
            | Event::PhaseStarted { .. }
            | Event::TasksPlanned { .. }
            | Event::TaskStarted { .. }
            | Event::TaskFinished { .. }
            | Event::TaskFailed { .. }
            | Event::RetryScheduled { .. }
            | Event::RetryDue { .. }
            | Event::SessionNamed { .. }
            | Event::TaskInterrupted { .. }
            | Event::TaskSkipped { .. }
            | Event::GateStarted { .. }
            | Event::GatePassed { .. }
            | Event::GateFailed { .. }
            | Event::GateWaived { .. }
            | Event::ConditionEvaluated { .. }
            | Event::HoldSettled { .. }
            | Event::HoldVoided { .. }
            | Event::AttemptRefused(_)
            | Event::PhaseCompleted { .. }
            | Event::PhaseRepeated { .. }
            | Event::PhasesSkipListed { .. }
            | Event::TaskStopped { .. }
            | Event::RetryRequested { .. }
            | Event::GateRetryRequested { .. }
            | Event::TaskAdmitted { .. }
            | Event::TaskOmitted { .. }
            | Event::FailureTolerated { .. }
            | Event::TaskFannedOut { .. }
            | Event::TaskRepeated { .. }
            | Event::AgentQueryStarted { .. }
            | Event::AgentQueryAnswered { .. }
            | Event::GapsChecked(_)
            | Event::GapsWaived { .. }
            | Event::BudgetRaised { .. }
            | Event::TasksBlocked { .. }
            | Event::Finalized { .. }
            | Event::DefinitionAccepted { .. }
            | Event::AgentChanged { .. }
            | Event::CheckPassed { .. }
            | Event::ReworkRequested { .. }
            | Event::HandedOver { .. }
            | Event::DiffBaseRecorded { .. }
            | Event::Pipeline(_)
            | Event::Rewound(_)
            | Event::Team(_) => None,
        }
    }

    /// Whether it asks people for an answer, which is pointless where the same commit has brought one.
    fn asks(&self) -> bool {
        match self.kind {
            NoticeKind::HoldOpened | NoticeKind::HoldReopened | NoticeKind::HoldReminder | NoticeKind::HoldEscalated => true,
            NoticeKind::HoldAnswered | NoticeKind::RunEnded => false,
        }
    }
}

impl Run {
    /// The outbox rows for events that were applied and are not sealed yet.
    pub(in crate::run) fn outbox_rows(&self, entries: &[Entry], subscriptions: &Subscriptions) -> Vec<OutboxRow> {
        let mut rows = Vec::new();
        for (seq, entry) in (self.next_seq..).zip(entries) {
            let Some(subject) = Subject::of(&entry.event) else { continue };
            let mut channels = subscriptions.channels(subject.kind).peekable();
            if channels.peek().is_none() {
                continue;
            }
            let hold = subject.hold.and_then(|hold| self.hold_in_commit(hold));
            if subject.asks() && hold.is_none_or(|hold| hold.state != HoldState::Open) {
                continue;
            }
            let notice = self.notice(&subject, entry, hold);
            let payload = serde_json::to_string(&notice).expect("notices always have a JSON form");
            let notice = NoticeId { run: self.id.clone(), seq };
            let row = |channel: NoticeChannel| OutboxRow {
                notice: notice.clone(),
                channel: channel.into(),
                at: entry.at,
                payload: payload.clone(),
            };
            rows.extend(channels.map(row));
        }
        rows
    }

    /// A hold that is open or being settled, or that the commit which is being made has closed.
    fn hold_in_commit(&self, hold: &HoldId) -> Option<&Hold> {
        self.holds.get(hold).or_else(|| self.touched.closed.iter().rev().find(|closed| closed.id == *hold))
    }

    fn notice(&self, subject: &Subject<'_>, entry: &Entry, hold: Option<&Hold>) -> Notice {
        let answer = subject.answer.map(|(option, feedback)| NoticeAnswer {
            option: option.clone(),
            label: hold.and_then(|hold| hold.choice(option)).map_or_else(|| option.to_string(), |choice| choice.label.clone()),
            feedback: feedback.map(str::to_owned),
            actor: entry.actor.as_deref().cloned().unwrap_or_else(Actor::driver),
        });
        Notice {
            kind: subject.kind.into(),
            at: entry.at,
            workflow: self.workflow.name.clone(),
            feature: self.feature.clone(),
            status: self.status().into(),
            phase: self.current.as_ref().map(|phase| phase.id.clone()),
            hold: hold.map(|hold| self.hold_row(hold)),
            answer,
            differences: subject.differences.to_vec(),
            reason: subject.reason.map(str::to_owned),
        }
    }
}
