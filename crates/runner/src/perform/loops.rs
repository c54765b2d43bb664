//! Loops: evaluates the `until` of a task after each round.

use super::script::{self, EvalOptions, evaluate, masked, prepare};
use super::values::{FillError, Renderer};
use super::{Shared, TaskCall, command, shell, worktree};
use crate::process::Stop;
use lockgate_engine::digest::Digest;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::{Failure, FailureKind};
use lockgate_engine::spec::workflow::{Until as Declared, UntilCondition};
use lockgate_engine::stored_value::StoredValue;

/// The `until` of a task, captured when its attempt starts.
pub(super) enum Until {
    Condition(Box<script::Prepared>),
    Run(Box<UntilCommand>),
}

pub(super) struct UntilCommand {
    prepared: command::Prepared,
    renderer: Renderer,
    command: String,
    until: Declared,
    tree: Option<worktree::Wanted>,
}

impl Until {
    pub(super) fn new(shared: &Shared, run: &Run, call: TaskCall<'_>, until: &Declared) -> Self {
        match &until.condition {
            UntilCondition::Condition(script) => {
                let options = EvalOptions::condition(shared, true, call.values());
                Self::Condition(Box::new(prepare(shared, run, call.phase, script, options)))
            }
            UntilCondition::Run(command) => {
                let process_spec = command::ProcessSpec { timeout: until.timeout.or(call.task.timeout), ..call.process_spec() };
                let mut prepared = command::prepare(shared, run, call.phase, process_spec);
                prepared.at.address += "-until";
                let renderer = command::renderer(run, call.phase, &prepared, call.values(), &[command]);
                let tree = worktree::wanted(run, call.key, call.task);
                Self::Run(Box::new(UntilCommand { prepared, renderer, command: command.clone(), until: until.clone(), tree }))
            }
        }
    }
}

/// Whether the `until` condition is met and, if a command checked it, what is still wrong.
pub(super) enum Verdict {
    Met,
    Not {
        why: String,
        /// The index of the check that failed, if there are several.
        failed_check: Option<usize>,
    },
}

#[derive(Debug, thiserror::Error)]
pub(super) enum UntilError {
    #[error("{}", .0.message)]
    Failed(Failure),
    #[error(transparent)]
    Fill(#[from] FillError),
}

/// Evaluates an `until` condition.
pub(super) async fn evaluate_until(
    shared: &Shared,
    until: Until,
    result: Option<&StoredValue>,
    values: &[(Digest, Vec<u8>)],
    stop: &Stop,
) -> Result<Verdict, UntilError> {
    match until {
        Until::Condition(prepared) => {
            let output = match result {
                None => "null".to_owned(),
                Some(StoredValue::Inline(text)) => text.clone(),
                Some(StoredValue::Stored { digest, .. }) => {
                    // The value is about to be stored together with this outcome.
                    let bytes = values.iter().find(|(known, _)| known == digest).map(|(_, bytes)| bytes.clone());
                    String::from_utf8(bytes.unwrap_or_default()).unwrap_or_else(|_| "null".to_owned())
                }
            };
            let returned = evaluate(shared, prepared.with("output", output), stop).await;
            let verdict =
                |truthy: bool| if truthy { Verdict::Met } else { Verdict::Not { why: String::new(), failed_check: None } };
            returned
                .map(|returned| verdict(returned.truthy))
                .map_err(|eval_error| UntilError::Failed(masked(shared, &eval_error)))
        }
        Until::Run(run) => {
            let UntilCommand { mut prepared, renderer, command, until, tree } = *run;
            worktree::enter(shared, &mut prepared, tree, stop).await.map_err(UntilError::Failed)?;
            let ready = renderer.ready(shared).await?;
            match shell::execute(shared, &prepared, &ready, &command, stop).await {
                Ok(()) => Ok(Verdict::Met),
                Err(failure) => match failure.kind {
                    FailureKind::Exit(status) => {
                        Ok(Verdict::Not { why: check_feedback(&until, &failure), failed_check: until.failed_check(status) })
                    }
                    // The timeout belongs to the check, not to the task.
                    FailureKind::Timeout if until.timeout.is_some() => {
                        Ok(Verdict::Not { why: check_feedback(&until, &failure), failed_check: None })
                    }
                    _ => Err(UntilError::Failed(failure)),
                },
            }
        }
    }
}

/// Why a check failed, as feedback for the next attempt.
fn check_feedback(until: &Declared, failure: &Failure) -> String {
    let check = match until.checks.as_slice() {
        [one] => format!("{one}: "),
        [] | [_, ..] => String::new(),
    };
    format!("A check after it failed: {check}{}\n{}", failure.message, failure.tail).trim_end().to_owned()
}
