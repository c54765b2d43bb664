//! Refusals: what the rules say no to. They are results, not errors; nothing has changed when one comes back.

use crate::hold::{Choice, Scope};
use crate::id::{GateId, HoldId, PhaseId, TaskKey};
use crate::run::command::Actor;
use crate::run::state::{Decision, Run, Status, StepStatus, Superseded};
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Answers need a person.
    #[error("only a person may {what}, and {} is not a person", .actor.name)]
    PersonRequired {
        what: String,
        actor: Actor,
    },
    /// What runs inside a task may not decide about runs.
    #[error("this command runs inside task {task}; commands inside a task may not {what}")]
    InsideTask {
        what: String,
        task: String,
    },
    /// A person is believed only at a terminal.
    #[error("there is no controlling terminal, and this project requires one to {what}")]
    TerminalRequired {
        what: String,
    },
    /// A changed definition lacks what the run has done.
    #[error("the changed definition has no phase {phase}, which this run has reached")]
    PhaseVanished {
        phase: PhaseId,
    },
    /// A changed definition has what the run has done in another order.
    #[error("the changed definition moves the completed phase {phase} after the current phase")]
    PhaseMoved {
        phase: PhaseId,
    },
    /// A changed definition would take back a question whose answer has still to be checked.
    #[error(
        "the answer to hold {hold} has not taken effect yet, and the changed definition no longer asks this question in the same way"
    )]
    AnswerUnchecked {
        hold: HoldId,
    },
    /// There is no such hold in this run.
    #[error("there is no hold {hold} in this run")]
    HoldNotFound {
        hold: HoldId,
    },
    /// The question was taken back.
    #[error("hold {hold} was voided at {at}: {reason}{}", replaced_by_text(.now))]
    HoldVoided {
        hold: HoldId,
        reason: String,
        at: Timestamp,
        /// What took its place.
        now: Option<ReplacedBy>,
    },
    /// The answer no longer counts, because an earlier one was changed.
    #[error("the answer to hold {hold} no longer counts: the answer to hold {by} was changed at {at}{}", replaced_by_text(.now))]
    AnswerSuperseded {
        hold: HoldId,
        /// The hold whose answer was changed.
        by: HoldId,
        at: Timestamp,
        /// What took its place.
        now: Option<ReplacedBy>,
    },
    /// The hold no longer matters.
    #[error("hold {hold} is no longer open: the run has ended")]
    RunEnded {
        hold: HoldId,
    },
    /// The same answer was given before: nothing to do.
    #[error("this answer was already given by {} at {at}", .by.name)]
    AlreadyAnswered {
        by: Actor,
        at: Timestamp,
    },
    /// Another answer was given before.
    #[error("{} answered \"{recorded}\" at {at}; \"{given}\" came later and was not recorded", .by.name)]
    AnswerConflict {
        /// The label of the recorded answer.
        recorded: String,
        /// The option that was given now.
        given: String,
        /// Who gave the recorded one.
        by: Actor,
        at: Timestamp,
    },
    /// What was seen is no longer what is there.
    #[error("hold {hold} was reopened: you answered revision {given}, but revision {current} is open")]
    StaleRevision {
        hold: HoldId,
        /// The revision that was seen.
        given: u32,
        /// The revision that waits.
        current: u32,
    },
    /// The answer does not say what was seen.
    #[error("hold {hold} shows files, so the answer must name the revision that you saw: {hold}@{current}")]
    RevisionRequired {
        hold: HoldId,
        /// The revision that waits.
        current: u32,
    },
    /// The hold has no such option.
    #[error("\"{given}\" is not an option of hold {hold}")]
    OptionNotFound {
        hold: HoldId,
        /// The revision that waits, where it was to be answered.
        revision: Option<u32>,
        given: String,
        options: Vec<Choice>,
    },
    /// The option means nothing without words.
    #[error("\"{label}\" at hold {hold} requires feedback: describe what you found")]
    FeedbackRequired {
        hold: HoldId,
        label: String,
    },
    /// A person gave the answer, and that stands.
    #[error("{} gave this answer, so it is final; only automatic answers can be changed", .by.name)]
    AnsweredByPerson {
        by: Actor,
    },
    /// The run is complete, so nothing of it can be changed.
    #[error("the run is complete, so its answers can no longer be changed in place")]
    ChangeNeedsFork,
    /// The task or gate is not part of what the run does now.
    #[error("{address} is not in the current phase{}", .current.as_ref().map(|phase| format!(" ({phase})")).unwrap_or_default())]
    NotInCurrentPhase {
        address: String,
        /// The phase under way.
        current: Option<PhaseId>,
    },
    /// An attempt is under way, and whoever drives the run decides about it.
    #[error("{address} is running; a running task or gate cannot be retried or skipped")]
    StepRunning {
        address: String,
    },
    /// There is nothing left to decide about the task or gate.
    #[error("{address} is already {state}")]
    StepDone {
        address: String,
        state: StepStatus,
    },
    /// The task or gate has not run, so there is no attempt that could be repeated.
    #[error("{address} has not run yet, so there is nothing to retry")]
    NotStarted {
        address: String,
    },
    /// The task or gate will be tried again in any case: nothing to do.
    #[error("{address} is already scheduled to run again")]
    RetryPending {
        address: String,
    },
    /// Whoever skips something says why.
    #[error("skipping {address} requires a reason")]
    ReasonRequired {
        address: String,
    },
    /// Only pipelines have reviews, notes and workstreams.
    #[error("the run is not a pipeline: it was not started from an EXECUTION-SPEC")]
    NotAPipeline,
    /// The review of a pipeline lets nothing begin.
    #[error("the review says do_not_ship, so the pipeline does not start")]
    NotReviewed,
    /// A review counts only before anything has begun.
    #[error("the pipeline has already started; file a review before it starts")]
    ReviewTooLate,
    /// A review has let the pipeline begin, and another one of the kind says nothing new.
    #[error("the filed review says {verdict}, which allows the pipeline to start; only a do_not_ship review or a person can change that")]
    ReviewStands {
        verdict: &'static str,
    },
    /// No more reviews may be filed.
    #[error("{attempts} reviews were filed, which is the limit; a person can override them")]
    ReviewsSpent {
        attempts: u32,
    },
    /// Whoever overrides a review says why.
    #[error("overriding a review requires a reason")]
    NoOverrideReason,
    /// A review that asks for gates names them.
    #[error("the verdict is ship_with_gates, but no gate is named")]
    NoGatesNamed,
    /// A gate that a review asks for is there already.
    #[error("gate {gate} already exists")]
    GateKnown {
        gate: GateId,
    },
    /// The run has ended, and that cannot be changed.
    #[error("the run is already {status}")]
    Ended {
        status: Status,
    },
}

/// What took the place of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplacedBy {
    /// The same is asked in this hold, which is open.
    Open(HoldId),
    /// The same was asked in this hold, which has its answer.
    Answered(HoldId),
}

fn replaced_by_text(now: &Option<ReplacedBy>) -> String {
    match now {
        Some(ReplacedBy::Open(hold)) => format!("; hold {hold} asks the same question now"),
        Some(ReplacedBy::Answered(hold)) => format!("; hold {hold} asked the same question later and was answered"),
        None => String::new(),
    }
}

/// Why there is no open hold of this id: it was taken back, or its answer no longer counts, or it never was.
pub(super) fn gone(run: &Run, hold: &HoldId) -> Refusal {
    if let Some(voided) = run.voided.iter().rfind(|voided| voided.hold == *hold) {
        let now = replacement(run, hold, &voided.scope);
        return Refusal::HoldVoided { hold: hold.clone(), reason: voided.reason.clone(), at: voided.at, now };
    }
    let decision = run.decisions.iter().rfind(|decision| decision.hold == *hold);
    match decision.and_then(|decision| decision.superseded.as_ref().map(|superseded| (decision, superseded))) {
        Some((decision, Superseded { by, at })) => {
            let scope = match (&decision.task, &decision.phase) {
                (Some(task), _) => Scope::Tasks(vec![task.clone()]),
                (None, Some(phase)) => Scope::Phase { phase: phase.clone(), iteration: 0 },
                (None, None) => Scope::Run,
            };
            let now = replacement(run, hold, &scope);
            Refusal::AnswerSuperseded { hold: hold.clone(), by: by.clone(), at: *at, now }
        }
        None => Refusal::HoldNotFound { hold: hold.clone() },
    }
}

/// The hold that asks the same as one that is gone: about the same tasks or gate of a phase, in whatever execution of it.
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
    /// Whether it is about who asks, so that the attempt is kept in the history; else it is about what was asked.
    pub fn concerns_caller(&self) -> bool {
        match self {
            Self::PersonRequired { .. } | Self::InsideTask { .. } | Self::TerminalRequired { .. } => true,
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
            | Self::Ended { .. } => false,
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
