//! Shell tasks and gates: a command in its own session, with its secrets, log and declared outputs.

use super::command::{Prepared, ProcessSpec, explain, failure, prepare, renderer, start};
use super::values::TaskValues;
use super::{Shared, TaskCall, auth_gate, dir_lock, failed, script, worktree};
use crate::process::{self, Stop};
use crate::root::Step;
use crate::runtime::Performed;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::id::{GateId, PhaseId};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{CommandKind, TaskOutcome};
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::spec::workflow::{Gate, Shell};
use lockgate_engine::template;
use std::sync::Arc;

pub(super) fn task(
    shared: Arc<Shared>,
    run: &Run,
    call: TaskCall<'_>,
    command: &str,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let mut prepared = prepare(&shared, run, call.phase, call.process_spec());
    prepared.set_item(call.values().item);
    let others: Vec<&str> = std::iter::once(command).chain(call.task.outputs.iter().map(String::as_str)).collect();
    let renderer = renderer(run, call.phase, &prepared, call.values(), &others);
    let tree = worktree::wanted(run, call.key, call.task);
    let (mut ending, outputs, command) = (call.ending(&shared, run, stop.clone()), call.task.outputs.clone(), command.to_owned());
    async move {
        let outcome = async {
            worktree::enter(&shared, &mut prepared, tree, &stop).await?;
            ending.start().await?;
            let ready = renderer.ready(&shared).await.map_err(start)?;
            let outputs = ready.texts(&outputs).map_err(start)?;
            execute(&shared, &prepared, &ready, &command, &stop).await?;
            if let Some(stubs) = &shared.stubs {
                stubs.leave(&prepared.address, &prepared.run_dirs, &outputs)?;
            }
            Ok::<_, Failure>(outputs)
        };
        match outcome.await {
            Err(failure) => {
                let outcome = auth_gate::failed_or_unauthenticated(&shared, &command, failure);
                ending.end(outcome, Vec::new(), None).await
            }
            Ok(outputs) if outputs.is_empty() => {
                ending.end(TaskOutcome::Finished { result: None, outputs: Vec::new() }, Vec::new(), None).await
            }
            Ok(outputs) => {
                let keep = shared.config.limits.stored_outputs_bytes();
                match script::collect(prepared.run_dirs, outputs, keep, shared.masks()).await {
                    Err(why) => ending.end(failed(FailureKind::Output, why), Vec::new(), None).await,
                    Ok((outputs, values)) => ending.end(TaskOutcome::Finished { result: None, outputs }, values, None).await,
                }
            }
        }
    }
    .boxed()
}

pub(super) fn gate(
    shared: Arc<Shared>,
    run: &Run,
    (phase_id, iteration): (&PhaseId, u32),
    gate_id: &GateId,
    attempt: u32,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let (phase_id, gate_id) = (phase_id.clone(), gate_id.clone());
    let declared = run.workflow.phase(phase_id.as_str()).and_then(|phase| Some((phase, run.gate_of(phase, gate_id.as_str())?)));
    let ended = move |failure: Option<Failure>| {
        Performed::from(CommandKind::GateEnded { phase: phase_id.clone(), iteration, gate: gate_id.clone(), attempt, failure })
    };
    let Some((phase, gate)) = declared else {
        return futures::future::ready(ended(Some(failure(FailureKind::Start, "the definition has no such gate")))).boxed();
    };
    let Gate { run: command, dir, env, secrets, timeout, id, shell, .. } = gate;
    let step = Step::Gate { phase: &phase.id, iteration, gate: id };
    let address = format!("{}/{id}", phase.id);
    let shell = shell.as_ref();
    let process_spec =
        ProcessSpec { name: id.as_str(), address, step, attempt, dir, env, secrets, timeout: *timeout, shell, feedback: None };
    let prepared = prepare(&shared, run, phase, process_spec);
    let values = TaskValues { id: Some((id.as_str(), attempt)), ..TaskValues::default() };
    let renderer = renderer(run, phase, &prepared, values, &[command.as_str()]);
    let (tree, command) = (worktree::of_gate(run, phase, iteration, gate), command.clone());
    let turn = dir_lock::Wanted::of_gate(run, phase, prepared.address.clone(), tree.as_ref());
    let judged = async move {
        let mut prepared = prepared;
        worktree::enter(&shared, &mut prepared, tree, &stop).await?;
        let _turn = match turn.filter(|_| shared.stubs.is_none()) {
            Some(turn) => Some(turn.take(&shared, &stop).await?),
            None => None,
        };
        let ready = renderer.ready(&shared).await.map_err(start)?;
        execute(&shared, &prepared, &ready, &command, &stop).await
    };
    judged.map(move |judged| ended(judged.err())).boxed()
}

/// Runs a command; returns the failure, if it failed.
pub(super) async fn execute(
    shared: &Shared,
    prepared: &Prepared,
    ready: &super::values::Ready,
    command: &str,
    stop: &Stop,
) -> Result<(), Failure> {
    refuse_unquotable(prepared.shell.as_ref(), command).map_err(start)?;
    let command = ready.shell(command).map_err(start)?;
    execute_rendered(shared, prepared, ready, command, stop).await
}

/// A value cannot be inserted into a command for a shell with unknown quoting rules.
#[derive(Debug, thiserror::Error)]
#[error("the value of `{path}` cannot be quoted for `{shell}`; give it a name under `env` and read that variable")]
struct Unquotable {
    path: String,
    shell: String,
}

/// A shell from the settings is not known when a workflow is validated, so its commands are checked here.
fn refuse_unquotable(shell: Option<&Shell>, command: &str) -> Result<(), Unquotable> {
    let Some(shell) = shell.filter(|shell| !shell.is_posix()) else { return Ok(()) };
    match template::tags(command).first() {
        None => Ok(()),
        Some((path, _)) => Err(Unquotable { path: path.to_string(), shell: shell.text().to_string() }),
    }
}

/// Like [`execute`], with a command that is already rendered.
pub(super) async fn execute_rendered(
    shared: &Shared,
    prepared: &Prepared,
    ready: &super::values::Ready,
    command: String,
    stop: &Stop,
) -> Result<(), Failure> {
    if let Some(stubs) = &shared.stubs {
        prepared.check_templates(ready)?;
        return stubs.command(&prepared.at, command, process::shell_text(prepared.shell.as_ref()), &prepared.run_dirs);
    }
    let job = prepared.job(shared, ready, command, None).await?;
    let mut on_line = |line: &str| prepared.emit_line(shared, line);
    let ended = process::run(job, stop.clone(), &mut on_line).await;
    prepared.ended(shared, &ended);
    match explain(&ended) {
        None => Ok(()),
        Some((kind, message)) => Err(Failure { kind, message, tail: ended.tail }),
    }
}
