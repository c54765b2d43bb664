//! The only code outside the engine that knows every event that people may be notified of.

use super::{AgentQuery, Answer, GapCheck, Kind, Note, PhaseEnd, Retry, RunEnd, Skip, StepOutcome, Warning};
use crate::root::Step;
use lockgate_engine::id::{GateId, HoldId, OptionId, PhaseId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::agent::AgentReport;
use lockgate_engine::run::event::{ConditionOutcome, Entry, Event};
use lockgate_engine::run::team::TeamEvent;

/// The notification for an event. Durations and labels depend on earlier events and are added by the reporter.
pub(super) fn kind<'e>(run: &'e Run, entry: &'e Entry) -> Kind<'e> {
    match &entry.event {
        Event::Created(_) => Kind::RunStarted { workflow: &run.workflow.name, feature: run.feature.as_deref() },
        Event::Resumed { .. } => Kind::RunResumed,
        Event::Interrupted { .. } => Kind::RunInterrupted,
        Event::Completed => Kind::RunEnded(RunEnd::Completed),
        Event::Failed { .. } => Kind::RunEnded(RunEnd::Failed),
        Event::Aborted { .. } => Kind::RunEnded(RunEnd::Aborted),
        Event::Cancelled { reason } => Kind::RunEnded(RunEnd::Cancelled { reason: reason.as_deref() }),

        Event::PhaseStarted { phase, iteration, feedback } => {
            Kind::PhaseStarted { phase, iteration: *iteration, feedback: feedback.as_deref() }
        }
        Event::PhaseSkipped { phase } => Kind::PhaseEnded { phase, end: PhaseEnd::Skipped },
        Event::PhaseCompleted { phase, iteration } => {
            Kind::PhaseEnded { phase, end: PhaseEnd::Completed { iteration: *iteration } }
        }
        Event::PhaseRepeated { from, target, feedback, by_failure, carry, .. } => Kind::PhaseEnded {
            phase: from,
            end: PhaseEnd::Repeated { target, feedback: feedback.as_deref(), by_failure: *by_failure, carry },
        },
        Event::TasksPlanned { phase, iteration, tasks } => Kind::TasksPlanned { phase, iteration: *iteration, tasks },

        Event::TaskStarted { key, attempt, reason, .. } => {
            Kind::StepStarted { step: Step::Task(key), attempt: *attempt, reason: Some(*reason) }
        }
        Event::TaskFinished { key, attempt, outputs, agent, commit, .. } => {
            ended(key, *attempt, StepOutcome::Done { outputs, commit: commit.as_deref() }, agent.as_deref())
        }
        Event::TaskRepeated { key, attempt, outputs, agent, .. } => {
            ended(key, *attempt, StepOutcome::Repeated { outputs }, agent.as_deref())
        }
        Event::TaskFannedOut { key, attempt, tasks } => ended(key, *attempt, StepOutcome::FannedOut { tasks }, None),
        Event::HandedOver { key, attempt, handover, agent } => {
            ended(key, *attempt, StepOutcome::HandedOver(handover), agent.as_deref())
        }
        Event::TaskFailed { key, attempt, failure, agent } => {
            ended(key, *attempt, StepOutcome::Failed(failure), agent.as_deref())
        }
        Event::TaskInterrupted { key, attempt } => ended(key, *attempt, StepOutcome::Interrupted, None),
        Event::TaskStopped { key, attempt, reason, agent, .. } => {
            ended(key, *attempt, StepOutcome::Stopped { reason }, agent.as_deref())
        }
        Event::TaskSkipped { key, reason } => skipped(key, Skip::CountsAsDone { reason }),
        Event::TaskOmitted { key, reason, .. } => skipped(key, Skip::Omitted { reason }),
        Event::FailureTolerated { key } => skipped(key, Skip::Tolerated),
        Event::RetryScheduled { key, due, .. } => {
            Kind::StepRetry { step: Step::Task(key), retry: Retry::Scheduled { due: *due } }
        }
        Event::RetryRequested { key } => Kind::StepRetry { step: Step::Task(key), retry: Retry::Requested },
        Event::ReworkRequested { keys, by, issues, stale, .. } => {
            Kind::ReworkRequested { tasks: keys, stale, question: by, issues }
        }

        Event::GateStarted { phase, iteration, gate, attempt } => {
            Kind::StepStarted { step: gate_step(phase, *iteration, gate), attempt: *attempt, reason: None }
        }
        Event::GatePassed { phase, iteration, gate, attempt } => {
            gate_ended(gate_step(phase, *iteration, gate), *attempt, StepOutcome::Passed)
        }
        Event::GateFailed { phase, iteration, gate, attempt, failure } => {
            gate_ended(gate_step(phase, *iteration, gate), *attempt, StepOutcome::Failed(failure))
        }
        Event::GateWaived { phase, iteration, gate, reason } => {
            // A gate that had passed before its run was imported has a reason but no actor.
            let by_person = reason.is_none() || entry.actor.is_some();
            let skip = Skip::Waived { reason: reason.as_deref(), by_person };
            Kind::StepSkipped { step: gate_step(phase, *iteration, gate), skip }
        }
        Event::GateRetryRequested { phase, iteration, gate } => {
            Kind::StepRetry { step: gate_step(phase, *iteration, gate), retry: Retry::Requested }
        }

        Event::AgentQueryStarted { requester, .. } => Kind::AgentQuery { by: requester, query: AgentQuery::Started },
        Event::AgentQueryAnswered { requester, agent, .. } => {
            Kind::AgentQuery { by: requester, query: AgentQuery::Answered { agent: agent.as_deref() } }
        }
        Event::GapsChecked(checked) => Kind::GapCheck(GapCheck::Ended(checked)),
        Event::GapsWaived { phase, iteration } => Kind::GapCheck(GapCheck::Waived { phase, iteration: *iteration }),

        Event::HoldOpened(opened) => Kind::HoldOpened(opened),
        Event::Answered { hold, option, feedback, revision } => {
            Kind::HoldAnswered { answer: answer(hold, option, feedback.as_deref()), revision: *revision }
        }
        Event::AnswerChanged { hold, option, feedback } => Kind::AnswerChanged(answer(hold, option, feedback.as_deref())),
        Event::HoldReopened { hold, revision, differences, by_check, restored, .. } => {
            Kind::HoldReopened { hold, revision: *revision, differences, by_check: *by_check, restored: *restored }
        }
        Event::HoldVoided { hold, reason } => Kind::HoldVoided { hold, reason },

        Event::ConditionEvaluated { phase, iteration, outcome } => match outcome {
            ConditionOutcome::True => Kind::Recorded { task: None },
            ConditionOutcome::False => Kind::Note(Note::CheckpointSkipped { phase, iteration: *iteration }),
            ConditionOutcome::Error(error) => Kind::Warning(Warning::ConditionFailed { phase, iteration: *iteration, error }),
        },
        Event::CheckPassed { .. } => Kind::Note(Note::CheckPassed),
        Event::DeadlinePassed { hold, then } => Kind::Note(Note::DeadlinePassed { hold, then }),
        Event::Reminded { hold, .. } => Kind::Note(Note::Reminder { hold }),
        Event::BudgetRaised { scope } => Kind::Note(Note::BudgetRaised { scope }),
        Event::Finalized { file } => Kind::Note(Note::Finalized { file }),
        Event::Team(team_event) => match &**team_event {
            TeamEvent::HandedOff { key, attempt, agent, .. } => {
                ended(key, *attempt, StepOutcome::Stopped { reason: "another agent continues" }, agent.as_deref())
            }
            TeamEvent::MessagesDelivered { key, .. } | TeamEvent::KnowledgeInjected { key, .. } => {
                Kind::Recorded { task: Some(key) }
            }
            TeamEvent::MessageSent(_)
            | TeamEvent::MessageAcknowledged { .. }
            | TeamEvent::ConflictOpened(_)
            | TeamEvent::Voted { .. }
            | TeamEvent::RoundStarted { .. }
            | TeamEvent::ConflictEscalated { .. }
            | TeamEvent::ConflictResolved { .. }
            | TeamEvent::KnowledgeCaptured(_) => Kind::Note(Note::Team(team_event)),
        },
        Event::Pipeline(pipeline_event) => Kind::Note(Note::Pipeline(pipeline_event)),
        Event::AgentChanged { agent } => Kind::Note(Note::AgentChanged { agent }),
        Event::DefinitionAccepted { .. } => Kind::Note(Note::DefinitionAccepted),
        Event::Rewound(rewound) => Kind::Note(Note::Rewound(rewound)),
        Event::PhasesSkipListed { phases } => Kind::Note(Note::PhasesSkipListed { phases }),
        Event::AttemptRefused(refused) => Kind::Warning(Warning::AttemptRefused(refused)),

        Event::TaskAdmitted { key } | Event::RetryDue { key } | Event::SessionNamed { key, .. } => {
            Kind::Recorded { task: Some(key) }
        }
        Event::AnswersPreset { .. } | Event::TasksBlocked { .. } | Event::HoldSettled { .. } | Event::DiffBaseRecorded { .. } => {
            Kind::Recorded { task: None }
        }
    }
}

fn ended<'e>(key: &'e TaskKey, attempt: u32, outcome: StepOutcome<'e>, agent: Option<&'e AgentReport>) -> Kind<'e> {
    Kind::StepEnded { step: Step::Task(key), attempt, took: None, outcome, agent }
}

fn gate_ended<'e>(step: Step<'e>, attempt: u32, outcome: StepOutcome<'e>) -> Kind<'e> {
    Kind::StepEnded { step, attempt, took: None, outcome, agent: None }
}

fn skipped<'e>(key: &'e TaskKey, skip: Skip<'e>) -> Kind<'e> {
    Kind::StepSkipped { step: Step::Task(key), skip }
}

fn gate_step<'e>(phase: &'e PhaseId, iteration: u32, gate: &'e GateId) -> Step<'e> {
    Step::Gate { phase, iteration, gate }
}

fn answer<'e>(hold: &'e HoldId, option: &'e OptionId, feedback: Option<&'e str>) -> Answer<'e> {
    Answer { hold, option, label: option.to_string(), feedback }
}
