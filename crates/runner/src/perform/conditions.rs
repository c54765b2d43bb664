//! Conditions: `when` of a task, and the condition of a checkpoint.

use super::Shared;
use super::script::{EvalError, EvalOptions, evaluate, masked, prepare};
use super::values::TaskValues;
use crate::process::Stop;
use crate::runtime::Performed;
use crate::script::Returned;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::id::{PhaseId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::CommandKind;
use lockgate_engine::run::event::ConditionOutcome;
use std::sync::Arc;

/// Evaluates a task's `when`.
pub(super) fn when(shared: Arc<Shared>, run: &Run, key: &TaskKey, stop: Stop) -> BoxFuture<'static, Performed> {
    let found = run.workflow.phase(key.phase.as_str()).zip(run.declared(key)).zip(run.task_run(key));
    let condition = found.and_then(|((phase, task), state)| Some((phase, task.when.as_ref()?, state)));
    let key = key.clone();
    let Some((phase, condition, state)) = condition else {
        let outcome = ConditionOutcome::Error("the definition has no such condition".into());
        return futures::future::ready(CommandKind::WhenEvaluated { key, outcome }.into()).boxed();
    };
    let task = TaskValues {
        id: Some((key.task.as_str(), state.attempts + 1)),
        item: key.item.as_deref().zip(state.value.as_ref()),
        ..TaskValues::default()
    };
    let prepared = prepare(&shared, run, phase, condition, EvalOptions::condition(&shared, true, task));
    async move {
        let outcome = truth(&shared, evaluate(&shared, prepared, &stop).await);
        CommandKind::WhenEvaluated { key, outcome }.into()
    }
    .boxed()
}

/// Evaluates the condition of a checkpoint.
pub(super) fn checkpoint(
    shared: Arc<Shared>,
    run: &Run,
    phase: &PhaseId,
    iteration: u32,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let declared = run.workflow.phase(phase.as_str());
    let condition = declared.and_then(|phase| Some((phase, phase.checkpoint.as_ref()?.condition.as_ref()?)));
    let phase = phase.clone();
    let Some((declared, condition)) = condition else {
        let outcome = ConditionOutcome::Error("the definition has no such condition".into());
        return futures::future::ready(CommandKind::ConditionEvaluated { phase, iteration, outcome }.into()).boxed();
    };
    let prepared = prepare(&shared, run, declared, condition, EvalOptions::condition(&shared, false, TaskValues::default()));
    async move {
        let outcome = truth(&shared, evaluate(&shared, prepared, &stop).await);
        CommandKind::ConditionEvaluated { phase, iteration, outcome }.into()
    }
    .boxed()
}

/// The result of a condition.
pub(super) fn truth(shared: &Shared, evaluated: Result<Returned, EvalError>) -> ConditionOutcome {
    match evaluated {
        Ok(Returned { truthy: true, .. }) => ConditionOutcome::True,
        Ok(Returned { truthy: false, .. }) => ConditionOutcome::False,
        Err(eval_error) => ConditionOutcome::Error(masked(shared, &eval_error).message),
    }
}
