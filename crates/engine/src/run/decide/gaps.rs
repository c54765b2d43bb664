//! Gap checks, replies of agents to scripts, and the finalization.

use super::{fan_out, outcomes};
use crate::id::{IdSource, PhaseId};
use crate::run::agent::AgentReport;
use crate::run::command::GapsFound;
use crate::run::event::{Event, Failure, GapsChecked, OutputFile, Requester};
use crate::run::phase::PhaseRun;
use crate::run::state::{GapState, Run};
use crate::spec::workflow::{GapAction, GapCheck};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;

/// Records the result of a gap check, and what happens next.
pub(super) fn checked(run: &Run, (phase, iteration): (&PhaseId, u32), round: u32, found: &GapsFound) -> Vec<Event> {
    let Some(current) = &run.current else { return Vec::new() };
    let declared = run.workflow.phases[current.position].gap_check.as_ref();
    let expected = current.id == *phase && current.iteration == iteration && round == run.gap_rounds + 1;
    let waits = current.gap.state == GapState::Waiting && current.tasks_done();
    let (true, true, Some(check)) = (expected, waits, declared) else { return Vec::new() };
    let mut record = GapsChecked {
        phase: phase.clone(),
        iteration,
        round,
        status: "complete".into(),
        gaps: Vec::new(),
        action: None,
        message: None,
        agents: Vec::new(),
    };
    match found {
        GapsFound::QueriesAgent(prompt) => {
            let requester = Requester::Gaps { phase: phase.clone(), iteration };
            return vec![Event::AgentQueryStarted { requester, prompt: prompt.clone() }];
        }
        GapsFound::Whole { status, message } => {
            record.status = status.clone();
            record.message = message.clone();
        }
        // If the check itself fails, a person decides. The phase does not pass.
        GapsFound::Error(error) => {
            record.status = "error".into();
            record.action = Some(GapAction::Escalate);
            record.message = Some(format!("the gap check failed: {error}"));
        }
        GapsFound::Gaps { status, gaps, action, agents, message } => {
            record.status = status.clone();
            record.gaps = gaps.clone();
            record.message = message.clone().or_else(|| check.message.clone());
            record.agents = fan_out::planned(&run.workflow, current, agents, None);
            settle(run, current, check, action.unwrap_or(check.on_failure), &mut record);
        }
    }
    vec![Event::GapsChecked(Box::new(record))]
}

/// Determines what happens about gaps: what the check requests, up to a maximum number of rounds.
fn settle(run: &Run, phase: &PhaseRun, check: &GapCheck, action: GapAction, record: &mut GapsChecked) {
    if action == GapAction::SpawnAdditional && record.agents.is_empty() {
        let taken = |id: &str| phase.tasks.iter().any(|task| task.task.as_str() == id);
        // The same agents are started again under other names.
        let numbered = |task: &crate::spec::workflow::Task| {
            let ids = std::iter::once(task.id.to_string()).chain((2..).map(|number| format!("{}-{number}", task.id)));
            let mut task = task.clone();
            task.id = crate::id::TaskId::new(ids.into_iter().find(|id| !taken(id)).unwrap_or_default());
            fan_out::plan(task, None)
        };
        record.agents = check.additional.iter().map(numbered).collect();
    }
    let no_agents = action == GapAction::SpawnAdditional && record.agents.is_empty();
    let too_often = run.gap_rounds + 1 >= check.max_iterations;
    record.action = Some(match action {
        GapAction::Retry | GapAction::SpawnAdditional if too_often || no_agents => GapAction::Escalate,
        GapAction::Retry | GapAction::SpawnAdditional | GapAction::Escalate | GapAction::Abort => action,
    });
    if record.action != Some(GapAction::SpawnAdditional) {
        record.agents.clear();
    }
}

/// An agent replied to the query of a script that waits for it.
pub(super) fn agent_query_answered(
    run: &Run,
    requester: &Requester,
    text: &Result<StoredValue, Failure>,
    agent: Option<Box<AgentReport>>,
    at: Timestamp,
    ids: &mut IdSource,
) -> Vec<Event> {
    let Some(phase) = &run.current else { return Vec::new() };
    if phase.open_query(requester).is_none() {
        return Vec::new();
    }
    match (text, requester) {
        (Ok(text), _) => vec![Event::AgentQueryAnswered { requester: requester.clone(), text: text.clone(), agent }],
        (Err(failure), Requester::Task(key)) => match phase.find(key) {
            Some(index) => outcomes::failed(run, index, failure, agent, at, ids),
            None => Vec::new(),
        },
        (Err(failure), Requester::Gaps { phase, iteration }) => {
            checked(run, (phase, *iteration), run.gap_rounds + 1, &GapsFound::Error(failure.message.clone()))
        }
    }
}

/// The finalization wrote its file, or failed.
pub(super) fn finalized(run: &Run, made: &Result<OutputFile, Failure>) -> Vec<Event> {
    if run.finalized.is_some() || run.current.is_some() || run.position < run.workflow.phases.len() {
        return Vec::new();
    }
    vec![match made {
        Ok(file) => Event::Finalized { file: file.clone() },
        Err(failure) => Event::Failed { message: format!("the finalization failed: {}", failure.message) },
    }]
}
