//! Refusals: commands that the rules do not allow. They are results, not errors, and leave the run unchanged.

use crate::hold::{Choice, Scope};
use crate::id::{GateId, HoldId, PhaseId, RunId, SnapshotId, TaskKey};
use crate::run::command::Actor;
use crate::run::state::{Decision, Run, Status, StepStatus, Superseded};
use crate::run::team::TeamRefusal;
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("only a person may {what}, and {} is not a person", .actor.name)]
    PersonRequired { what: String, actor: Actor },
    /// Commands sent from within a task may not decide about runs.
    #[error("this command runs inside task {task}; commands inside a task may not {what}")]
    InsideTask { what: String, task: String },
    /// The project requires a terminal as proof that a person decides.
    #[error("there is no controlling terminal, and this project requires one to {what}")]
    TerminalRequired { what: String },
    /// The changed definition lacks a phase that the run has reached.
    #[error("the changed definition has no phase {phase}, which this run has reached")]
    PhaseVanished { phase: PhaseId },
    /// The changed definition reorders phases that the run has reached.
    #[error("the changed definition moves the completed phase {phase} after the current phase")]
    PhaseMoved { phase: PhaseId },
    /// The changed definition would void a hold whose answer still has to be checked.
    #[error(
        "the answer to hold {hold} has not taken effect yet, and the changed definition no longer asks this question in the same way"
    )]
    AnswerUnchecked { hold: HoldId },
    #[error("there is no hold {hold} in this run")]
    HoldNotFound { hold: HoldId },
    #[error("hold {hold} was voided at {at}: {reason}{}", replaced_by_text(.now))]
    HoldVoided {
        hold: HoldId,
        reason: String,
        at: Timestamp,
        /// The hold that replaces it.
        now: Option<ReplacedBy>,
    },
    /// The answer no longer counts, because an earlier one was changed.
    #[error("the answer to hold {hold} no longer counts: the answer to hold {by} was changed at {at}{}", replaced_by_text(.now))]
    AnswerSuperseded {
        hold: HoldId,
        by: HoldId,
        at: Timestamp,
        /// The hold that replaces it.
        now: Option<ReplacedBy>,
    },
    #[error("hold {hold} is no longer open: the run has ended")]
    RunEnded { hold: HoldId },
    /// The same answer was given before, so there is nothing to do.
    #[error("this answer was already given by {} at {at}", .by.name)]
    AlreadyAnswered { by: Actor, at: Timestamp },
    /// A different answer was given before.
    #[error("{} answered \"{recorded}\" at {at}; \"{given}\" came later and was not recorded", .by.name)]
    AnswerConflict {
        /// The label of the recorded answer.
        recorded: String,
        given: String,
        by: Actor,
        at: Timestamp,
    },
    /// The hold was reopened after the caller saw it.
    #[error("hold {hold} was reopened: you answered revision {given}, but revision {current} is open")]
    StaleRevision {
        hold: HoldId,
        given: u32,
        /// The open revision.
        current: u32,
    },
    /// The answer does not name the revision that was seen.
    #[error("hold {hold} shows files, so the answer must name the revision that you saw: {hold}@{current}")]
    RevisionRequired {
        hold: HoldId,
        /// The open revision.
        current: u32,
    },
    #[error("\"{given}\" is not an option of hold {hold}")]
    OptionNotFound {
        hold: HoldId,
        /// The open revision, if the hold is open.
        revision: Option<u32>,
        given: String,
        options: Vec<Choice>,
    },
    /// The option requires feedback.
    #[error("\"{label}\" at hold {hold} requires feedback: describe what you found")]
    FeedbackRequired { hold: HoldId, label: String },
    /// A person gave the answer, so it is final.
    #[error("{} gave this answer, so it is final; only automatic answers can be changed", .by.name)]
    AnsweredByPerson { by: Actor },
    /// The run is complete, so none of its answers can change.
    #[error("the run is complete, so its answers can no longer be changed in place")]
    ChangeNeedsFork,
    #[error("{address} is not in the current phase{}", .current.as_ref().map(|phase| format!(" ({phase})")).unwrap_or_default())]
    NotInCurrentPhase { address: String, current: Option<PhaseId> },
    /// An attempt is running, and its driver decides about it.
    #[error("{address} is running; a running task or gate cannot be retried or skipped")]
    StepRunning { address: String },
    /// The task or gate has already ended.
    #[error("{address} is already {state}")]
    StepDone { address: String, state: StepStatus },
    /// There is no attempt that could be repeated.
    #[error("{address} has not run yet, so there is nothing to retry")]
    NotStarted { address: String },
    /// The task or gate will run again anyway, so there is nothing to do.
    #[error("{address} is already scheduled to run again")]
    RetryPending { address: String },
    /// Skipping requires a reason.
    #[error("skipping {address} requires a reason")]
    ReasonRequired { address: String },
    #[error("the run is not a pipeline: it was not started from an EXECUTION-SPEC")]
    NotAPipeline,
    /// The review does not allow the pipeline to start.
    #[error("the review says do_not_ship, so the pipeline does not start")]
    NotReviewed,
    /// A review counts only before the pipeline starts.
    #[error("the pipeline has already started; file a review before it starts")]
    ReviewTooLate,
    /// A review already allows the pipeline to start, and another one like it would change nothing.
    #[error(
        "the filed review says {verdict}, which allows the pipeline to start; only a do_not_ship review or a person can change that"
    )]
    ReviewStands { verdict: &'static str },
    #[error("{attempts} reviews were filed, which is the limit; a person can override them")]
    ReviewsSpent { attempts: u32 },
    #[error("overriding a review requires a reason")]
    NoOverrideReason,
    /// A review with the verdict `ship_with_gates` must name gates.
    #[error("the verdict is ship_with_gates, but no gate is named")]
    NoGatesNamed,
    #[error("gate {gate} already exists")]
    GateKnown { gate: GateId },
    #[error("the run is already {status}")]
    Ended { status: Status },
    #[error("snapshot {snapshot} is of run {run}")]
    SnapshotOfOtherRun { snapshot: SnapshotId, run: RunId },
    /// The snapshot shows a state that this history never had.
    #[error("snapshot {snapshot} is not from the history of this run")]
    SnapshotOfOtherHistory { snapshot: SnapshotId },
    #[error(transparent)]
    Team(#[from] TeamRefusal),
}

/// The hold that replaces a voided one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplacedBy {
    /// The same question is open in this hold.
    Open(HoldId),
    /// The same question was answered in this hold.
    Answered(HoldId),
}

fn replaced_by_text(now: &Option<ReplacedBy>) -> String {
    match now {
        Some(ReplacedBy::Open(hold)) => format!("; hold {hold} asks the same question now"),
        Some(ReplacedBy::Answered(hold)) => format!("; hold {hold} asked the same question later and was answered"),
        None => String::new(),
    }
}

/// Why there is no open hold with this id: it was voided, its answer no longer counts, or it never existed.
pub(super) fn gone(run: &Run, hold: &HoldId) -> Refusal {
    if let Some(voided) = run.voided.iter().rfind(|voided| voided.hold == *hold) {
        let now = replacement(run, hold, &voided.scope);
        return Refusal::HoldVoided { hold: hold.clone(), reason: voided.reason.clone(), at: voided.at, now };
    }
    let decision = run.decisions.iter().rfind(|decision| decision.hold == *hold);
    match decision.and_then(|decision| decision.superseded.as_ref().map(|superseded| (decision, superseded))) {
        Some((decision, Superseded { by, at })) => {
            let now = replacement(run, hold, &scope_of(decision));
            Refusal::AnswerSuperseded { hold: hold.clone(), by: by.clone(), at: *at, now }
        }
        None => Refusal::HoldNotFound { hold: hold.clone() },
    }
}

/// The subject of an answered hold, in any execution of its phase.
pub(super) fn scope_of(decision: &Decision) -> Scope {
    match (&decision.task, &decision.phase) {
        (Some(task), _) => Scope::Tasks(vec![task.clone()]),
        (None, Some(phase)) => Scope::Phase { phase: phase.clone(), iteration: 0 },
        (None, None) => Scope::Run,
    }
}

/// The hold that asks the same question as a closed one: about the same tasks or gate of a phase, in any execution of the phase.
fn replacement(run: &Run, gone: &HoldId, scope: &Scope) -> Option<ReplacedBy> {
    let same = |other: &Scope| other.phase() == scope.phase() && other.addresses() == scope.addresses();
    let open = run.open_holds().into_iter().rfind(|hold| same(&hold.scope)).map(|hold| ReplacedBy::Open(hold.id.clone()));
    let about = |decision: &&Decision| {
        let addresses: Vec<String> = decision.task.iter().map(TaskKey::address).collect();
        decision.phase.as_ref() == scope.phase() && addresses == scope.addresses() && !decision.void && decision.hold != *gone
    };
    open.or_else(|| run.decisions.iter().rfind(about).map(|decision| ReplacedBy::Answered(decision.hold.clone())))
}

impl Refusal {
    /// Whether the refusal is about the caller, so that the history records the attempt. Otherwise it is about the request.
    pub fn concerns_caller(&self) -> bool {
        self.refused_action().is_some()
    }

    /// What the caller may not do, as it completes "may not …"; only where something was refused because of who asks.
    pub fn refused_action(&self) -> Option<&str> {
        match self {
            Self::PersonRequired { what, .. } | Self::InsideTask { what, .. } | Self::TerminalRequired { what } => Some(what),
            Self::HoldNotFound { .. }
            | Self::HoldVoided { .. }
            | Self::AnswerSuperseded { .. }
            | Self::RunEnded { .. }
            | Self::AlreadyAnswered { .. }
            | Self::AnswerConflict { .. }
            | Self::StaleRevision { .. }
            | Self::RevisionRequired { .. }
            | Self::OptionNotFound { .. }
            | Self::FeedbackRequired { .. }
            | Self::AnsweredByPerson { .. }
            | Self::ChangeNeedsFork
            | Self::NotInCurrentPhase { .. }
            | Self::StepRunning { .. }
            | Self::StepDone { .. }
            | Self::NotStarted { .. }
            | Self::RetryPending { .. }
            | Self::ReasonRequired { .. }
            | Self::PhaseVanished { .. }
            | Self::PhaseMoved { .. }
            | Self::AnswerUnchecked { .. }
            | Self::NotAPipeline
            | Self::NotReviewed
            | Self::ReviewTooLate
            | Self::ReviewStands { .. }
            | Self::ReviewsSpent { .. }
            | Self::NoOverrideReason
            | Self::NoGatesNamed
            | Self::GateKnown { .. }
            | Self::Ended { .. }
            | Self::SnapshotOfOtherRun { .. }
            | Self::SnapshotOfOtherHistory { .. }
            | Self::Team(_) => None,
        }
    }
}

pub(super) fn already_settled(decision: &Decision, option: &str, feedback: Option<&str>) -> Refusal {
    let option = option.trim();
    let same = decision.option.as_str() == option
        || decision.label.to_lowercase() == option.to_lowercase()
        || option.parse() == Ok(decision.number);
    let said_the_same = feedback.is_none() || feedback == decision.feedback.as_deref();
    if same && said_the_same {
        return Refusal::AlreadyAnswered { by: decision.actor.clone(), at: decision.at };
    }
    Refusal::AnswerConflict {
        recorded: decision.label.clone(),
        given: option.to_owned(),
        by: decision.actor.clone(),
        at: decision.at,
    }
}
