//! Gap checks of phases, and the finalization document.

use super::Shared;
use super::command::failure;
use super::script::{CollectError, EvalError, EvalOptions, collect, evaluate, keep_log, mask_json, masked, prepare};
use super::values::{FillError, Renderer, TaskValues};
use crate::files::{Refused, write_output};
use crate::process::Stop;
use crate::root::Step;
use crate::runtime::Performed;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::hold::GAP_CHECK;
use lockgate_engine::id::{PhaseId, TaskId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{CommandKind, GapsFound};
use lockgate_engine::run::event::{FailureKind, OutputFile, Requester};
use lockgate_engine::spec::subagent::Subagent;
use lockgate_engine::spec::workflow::{Finalization, GapAction, GapCheck, Phase};
use lockgate_engine::stored_value::StoredValue;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// Checks whether the work of a phase is complete.
pub(super) fn check(
    shared: Arc<Shared>,
    run: &Run,
    (phase_id, iteration): (&PhaseId, u32),
    round: u32,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let declared = run.workflow.phase(phase_id.as_str()).and_then(|phase| Some((phase, phase.gap_check.as_ref()?)));
    let phase_id = phase_id.clone();
    let Some((phase, gap_check)) = declared else {
        let found = GapsFound::Error("the definition has no such gap check".into());
        return futures::future::ready(CommandKind::GapsChecked { phase: phase_id, iteration, round, found }.into()).boxed();
    };
    let evaluation = GapEvaluation::of(&shared, run, phase, gap_check, iteration);
    let key = TaskKey { phase: phase_id.clone(), iteration, task: TaskId::from(GAP_CHECK), item: None };
    let log = shared.root.log_file(&run.id, Step::Task(&key), round);
    let run = run.id.clone();
    async move {
        let (found, values) = match evaluation {
            GapEvaluation::Criteria(criteria) => (criteria_hold(&shared, criteria, &stop).await, Vec::new()),
            GapEvaluation::Script(prepared) => match evaluate(&shared, *prepared, &stop).await {
                Ok(returned) => {
                    keep_log(&shared, &run, &key, &returned.log, &log);
                    (read(&shared, &returned.json), Vec::new())
                }
                Err(EvalError { wants: Some(prompt), .. }) => {
                    let (stored_value, stored) =
                        StoredValue::keep(&Value::String(shared.masks().mask_text(&prompt).into_owned()));
                    (GapsFound::QueriesAgent(stored_value), stored.into_iter().collect())
                }
                Err(eval_error) => {
                    keep_log(&shared, &run, &key, &eval_error.log, &log);
                    (GapsFound::Error(masked(&shared, &eval_error).message), Vec::new())
                }
            },
        };
        Performed { command: CommandKind::GapsChecked { phase: phase_id, iteration, round, found }, values }
    }
    .boxed()
}

/// What to evaluate, captured when the check starts.
enum GapEvaluation {
    Criteria(Vec<(String, super::script::Prepared)>),
    Script(Box<super::script::Prepared>),
}

impl GapEvaluation {
    fn of(shared: &Shared, run: &Run, phase: &Phase, check: &GapCheck, iteration: u32) -> Self {
        match &check.script {
            Some(script) => {
                let requester = Requester::Gaps { phase: phase.id.clone(), iteration };
                let options = EvalOptions::script(shared, Some(&requester), TaskValues::default());
                Self::Script(Box::new(prepare(shared, run, phase, script, options)))
            }
            None => {
                let one = |criterion: &lockgate_engine::spec::workflow::Criterion| {
                    let options = EvalOptions::condition(shared, true, TaskValues::default());
                    (criterion.name.clone(), prepare(shared, run, phase, &criterion.check, options))
                };
                Self::Criteria(check.criteria.iter().map(one).collect())
            }
        }
    }
}

/// Evaluates all criteria; one that cannot be evaluated counts as a gap.
async fn criteria_hold(shared: &Shared, criteria: Vec<(String, super::script::Prepared)>, stop: &Stop) -> GapsFound {
    let mut gaps = Vec::new();
    for (name, prepared) in criteria {
        match evaluate(shared, prepared, stop).await {
            Ok(returned) if returned.truthy => {}
            Ok(_) => gaps.push(name),
            Err(eval_error) if eval_error.kind == FailureKind::Stopped => return GapsFound::Error("it was stopped".into()),
            Err(eval_error) => gaps.push(format!("{name}: {}", masked(shared, &eval_error).message)),
        }
    }
    if gaps.is_empty() {
        return GapsFound::Whole { status: "complete".into(), message: None };
    }
    GapsFound::Gaps { status: "incomplete".into(), gaps, action: None, agents: Vec::new(), message: None }
}

/// Parses a script's result: `{ status, gaps, action, additionalAgents, message }`.
fn read(shared: &Shared, json: &str) -> GapsFound {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    // All of it is stored, so everything is masked.
    let fields = match serde_json::from_str(&mask_json(json, &shared.masks())) {
        Ok(Value::Object(fields)) => fields,
        Ok(Value::Bool(true)) => return GapsFound::Whole { status: "complete".into(), message: None },
        Ok(Value::Bool(false)) => {
            return GapsFound::Gaps {
                status: "incomplete".into(),
                gaps: Vec::new(),
                action: None,
                agents: Vec::new(),
                message: None,
            };
        }
        Ok(_) | Err(_) => {
            return GapsFound::Error(
                "its script must return { status, gaps, action }; `status: 'complete'` means that the work is complete".into(),
            );
        }
    };
    let gaps: Vec<String> = match fields.get("gaps") {
        Some(Value::Array(gaps)) => gaps.iter().map(text).collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(other) => vec![text(other)],
    };
    let status = fields.get("status").and_then(Value::as_str).map(str::to_owned);
    let message = fields.get("message").filter(|message| !message.is_null()).map(text);
    let whole = match status.as_deref() {
        Some(status) => matches!(status, "complete" | "passed" | "pass" | "ok"),
        None => gaps.is_empty() && fields.contains_key("gaps"),
    };
    if whole {
        return GapsFound::Whole { status: status.unwrap_or_else(|| "complete".into()), message };
    }
    let action = match fields.get("action") {
        None | Some(Value::Null) => None,
        Some(named) => match GapAction::ALL.into_iter().find(|action| Some(action.as_str()) == named.as_str()) {
            Some(action) => Some(action),
            None => {
                let known = GapAction::ALL.map(GapAction::as_str).join(", ");
                return GapsFound::Error(format!("its script returned the unknown action {named}; use one of {known}"));
            }
        },
    };
    let named = fields.get("additionalAgents").or_else(|| fields.get("additional_agents")).unwrap_or(&Value::Null);
    match Subagent::list(named) {
        Ok(agents) => GapsFound::Gaps { status: status.unwrap_or_else(|| "incomplete".into()), gaps, action, agents, message },
        Err(why) => GapsFound::Error(format!("additionalAgents: {why}")),
    }
}

/// Generates the finalization document after all phases are done.
pub(super) fn finalize(shared: Arc<Shared>, run: &Run) -> BoxFuture<'static, Performed> {
    let Some(finalization) = run.workflow.finalization.clone() else {
        return futures::future::ready(
            CommandKind::Finalized { made: Err(failure(FailureKind::Start, "the definition has no finalization")) }.into(),
        )
        .boxed();
    };
    let run_dirs = shared.run_dirs(run);
    let nowhere = Phase::new(PhaseId::from(""));
    let templates = [finalization.template.as_str(), finalization.output.as_str()];
    let renderer = Renderer::of(run, &nowhere, Path::new(&run.output_dir), TaskValues::default(), templates);
    async move {
        match make(&shared, renderer, &finalization, run_dirs).await {
            Ok((file, values)) => Performed { command: CommandKind::Finalized { made: Ok(file) }, values },
            Err(why) => CommandKind::Finalized { made: Err(failure(FailureKind::Output, why)) }.into(),
        }
    }
    .boxed()
}

/// Why the finalization document could not be generated.
#[derive(Debug, thiserror::Error)]
enum FinalizeError {
    #[error(transparent)]
    Fill(#[from] FillError),
    #[error(transparent)]
    Write(#[from] Refused),
    #[error(transparent)]
    Collect(#[from] CollectError),
    #[error("no document was written")]
    Nothing,
}

type Made = (OutputFile, Vec<(lockgate_engine::digest::Digest, Vec<u8>)>);

async fn make(
    shared: &Shared,
    renderer: Renderer,
    finalization: &Finalization,
    run_dirs: crate::files::RunDirs,
) -> Result<Made, FinalizeError> {
    let ready = renderer.ready(shared).await?;
    let masks = shared.masks();
    let text = masks.mask_text(&ready.document(&finalization.template).map_err(FillError::from)?).into_owned();
    let output = masks.mask_text(&ready.text(&finalization.output).map_err(FillError::from)?).into_owned();
    let path = write_output(&run_dirs, &output, text.as_bytes())?;
    let keep = shared.config.limits.stored_outputs_bytes();
    let (files, values) = collect(run_dirs, vec![path], keep, masks).await?;
    let file = files.into_iter().next().ok_or(FinalizeError::Nothing)?;
    Ok((file, values))
}
