//! The spans that log events belong to: the run, and the task, gate or hold in it.
//!
//! Spans carry only ids, addresses and counts. Prompts, commands, values and output may hold secrets and are never logged.
//! Spans are enabled at every level so that even a single error names its run; without a subscriber none is created.

use lockgate_engine::id::RunId;
use lockgate_engine::run::command::{CommandKind, TaskOutcome};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::FailureKind;
use tracing::{Span, error_span};

/// The span of a run. It has no parent, so that a log line names the run only once.
pub(crate) fn run(id: &RunId) -> Span {
    error_span!(parent: None, "run", %id)
}

pub(crate) fn effect(run: &Span, effect: &Effect) -> Span {
    match effect {
        Effect::Task { key, attempt } => error_span!(parent: run, "task", address = %key.address(), attempt),
        Effect::Gate { phase, iteration, gate, attempt } => error_span!(parent: run, "gate", %phase, iteration, %gate, attempt),
        Effect::Evaluate { phase, iteration } => error_span!(parent: run, "condition", %phase, iteration),
        Effect::Show { phase, iteration } => error_span!(parent: run, "checkpoint", %phase, iteration),
        Effect::Recheck { hold, revision } | Effect::Check { hold, revision } => {
            error_span!(parent: run, "hold", id = %hold, revision)
        }
        Effect::DiffBase { phase, iteration } => error_span!(parent: run, "diff_base", %phase, iteration),
        Effect::When { key } => error_span!(parent: run, "when", address = %key.address()),
        Effect::Gaps { phase, iteration, round } => error_span!(parent: run, "gap_check", %phase, iteration, round),
        Effect::QueryAgent { number, .. } => error_span!(parent: run, "agent_query", number),
        Effect::Finalize => error_span!(parent: run, "finalization"),
        Effect::Artifacts { key } => error_span!(parent: run, "artifacts", address = %key.address()),
        Effect::Wake { timer, .. } => error_span!(parent: run, "timer", id = %timer),
    }
}

/// The span of a command about a run: the hold that it answers, or the run.
pub(crate) fn command(id: &RunId, kind: &CommandKind) -> Span {
    let run = run(id);
    match kind {
        CommandKind::Answer { hold, revision, .. } => error_span!(parent: &run, "hold", id = %hold, revision),
        CommandKind::TaskEnded { .. }
        | CommandKind::GateEnded { .. }
        | CommandKind::ConditionEvaluated { .. }
        | CommandKind::Shown { .. }
        | CommandKind::Rechecked { .. }
        | CommandKind::DiffBaseRecorded { .. }
        | CommandKind::Checked { .. }
        | CommandKind::WhenEvaluated { .. }
        | CommandKind::GapsChecked { .. }
        | CommandKind::AgentQueryAnswered { .. }
        | CommandKind::Finalized { .. }
        | CommandKind::SessionNamed { .. }
        | CommandKind::TakeOver { .. }
        | CommandKind::AcceptDefinition { .. }
        | CommandKind::ChangeAgent { .. }
        | CommandKind::ChangeAnswer(_)
        | CommandKind::TimerDue { .. }
        | CommandKind::Advance
        | CommandKind::PresetAnswers { .. }
        | CommandKind::Interrupt { .. }
        | CommandKind::Cancel { .. }
        | CommandKind::RetryTask { .. }
        | CommandKind::SkipTask { .. }
        | CommandKind::RecordRefusal(_)
        | CommandKind::Pipeline(_)
        | CommandKind::Rewind(_)
        | CommandKind::Team(_) => run,
    }
}

/// How an effect ended, as one word, and the kind of failure if it failed.
pub(crate) fn outcome(kind: &CommandKind) -> (&'static str, Option<FailureKind>) {
    match kind {
        CommandKind::TaskEnded { outcome, .. } => match outcome {
            TaskOutcome::Finished { .. } => ("finished", None),
            TaskOutcome::Failed(failure) => ("failed", Some(failure.kind)),
            TaskOutcome::Again { .. } => ("to be repeated", None),
            TaskOutcome::Items(_) | TaskOutcome::Agents(_) => ("fanned out", None),
            TaskOutcome::QueriesAgent(_) => ("asks an agent", None),
            TaskOutcome::Asks(_) => ("asks a person", None),
            TaskOutcome::Unauthenticated { .. } => ("not authenticated", None),
            TaskOutcome::HandsOver(_) => ("handed over", None),
            TaskOutcome::CommitsMissing(_) => ("commits missing", None),
        },
        CommandKind::GateEnded { failure, .. } | CommandKind::Checked { failure, .. } => match failure {
            None => ("passed", None),
            Some(failure) => ("failed", Some(failure.kind)),
        },
        CommandKind::AgentQueryAnswered { text: Err(failure), .. } => ("failed", Some(failure.kind)),
        CommandKind::Finalized { made: Err(_) } => ("failed", None),
        // The effect was no longer wanted.
        CommandKind::Advance => ("stopped", None),
        CommandKind::AgentQueryAnswered { text: Ok(_), .. }
        | CommandKind::Finalized { made: Ok(_) }
        | CommandKind::ConditionEvaluated { .. }
        | CommandKind::Shown { .. }
        | CommandKind::Rechecked { .. }
        | CommandKind::DiffBaseRecorded { .. }
        | CommandKind::WhenEvaluated { .. }
        | CommandKind::GapsChecked { .. }
        | CommandKind::SessionNamed { .. }
        | CommandKind::TakeOver { .. }
        | CommandKind::AcceptDefinition { .. }
        | CommandKind::ChangeAgent { .. }
        | CommandKind::ChangeAnswer(_)
        | CommandKind::TimerDue { .. }
        | CommandKind::Answer { .. }
        | CommandKind::PresetAnswers { .. }
        | CommandKind::Interrupt { .. }
        | CommandKind::Cancel { .. }
        | CommandKind::RetryTask { .. }
        | CommandKind::SkipTask { .. }
        | CommandKind::RecordRefusal(_)
        | CommandKind::Pipeline(_)
        | CommandKind::Rewind(_)
        | CommandKind::Team(_) => ("done", None),
    }
}
