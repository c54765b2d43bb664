//! `thinkHard`: a script asks an agent.

use super::Shared;
use super::agent::{configured, with_setting};
use super::ask_agent::{Limits, ask, call_stub, require_agent};
use super::command::{Prepared, ProcessSpec, failure, renderer, start};
use super::values::{Renderer, TaskValues};
use crate::agent::{AgentError, SelectedAgent};
use crate::dry_run::AgentPrompt;
use crate::process::Stop;
use crate::root::Step;
use crate::runtime::Performed;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::hold::GAP_CHECK;
use lockgate_engine::id::{TaskId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::agent::{AgentReport, Usage};
use lockgate_engine::run::command::CommandKind;
use lockgate_engine::run::event::{Failure, FailureKind, Requester};
use lockgate_engine::spec::workflow::Tools;
use lockgate_engine::stored_value::StoredValue;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Asks an agent on behalf of a script that called `thinkHard`.
pub(super) fn query_agent(
    shared: Arc<Shared>,
    run: &Run,
    requester: &Requester,
    number: u32,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let (phase_id, iteration, name) = match requester {
        Requester::Task(key) => (&key.phase, key.iteration, format!("{}-thinks-{number}", key.task)),
        Requester::Gaps { phase, iteration } => (phase, *iteration, format!("{GAP_CHECK}-thinks-{number}")),
    };
    let asked = run.current.as_ref().and_then(|phase| Some(phase.open_query(requester)?.1.prompt.clone()));
    let phase = run.workflow.phase(phase_id.as_str());
    let requester = requester.clone();
    let (Some(prompt), Some(phase)) = (asked, phase) else {
        let text = Err(failure(FailureKind::Start, "no script is waiting for this agent query"));
        return futures::future::ready(CommandKind::AgentQueryAnswered { requester, text, agent: None }.into()).boxed();
    };
    let chosen = configured(&shared, run).select(None);
    let key = TaskKey { phase: phase.id.clone(), iteration, task: TaskId::new(name.clone()), item: None };
    let (dir, env) = (None, BTreeMap::new());
    let process_spec = ProcessSpec {
        name: &name,
        address: key.address(),
        step: Step::Task(&key),
        attempt: 1,
        dir: &dir,
        env: &env,
        secrets: &[],
        timeout: None,
        shell: None,
        feedback: None,
    };
    let prepared = with_setting(&shared, run, phase, process_spec, chosen.as_ref().ok());
    let renderer = renderer(run, phase, &prepared, TaskValues::default(), &[]);
    async move {
        let mut report = AgentReport { usage: Usage::NOTHING, ..AgentReport::default() };
        let said = thought(&shared, prepared, renderer, chosen, &prompt, &mut report, &stop).await;
        let agent = (report.asks > 0).then(|| Box::new(report));
        match said {
            Err(failure) => CommandKind::AgentQueryAnswered { requester, text: Err(failure), agent }.into(),
            Ok(text) => {
                let (stored_value, stored) = StoredValue::keep(&Value::String(text));
                Performed {
                    command: CommandKind::AgentQueryAnswered { requester, text: Ok(stored_value), agent },
                    values: stored.into_iter().collect(),
                }
            }
        }
    }
    .boxed()
}

async fn thought(
    shared: &Shared,
    mut prepared: Prepared,
    renderer: Renderer,
    chosen: Result<SelectedAgent, AgentError>,
    prompt: &StoredValue,
    report: &mut AgentReport,
    stop: &Stop,
) -> Result<String, Failure> {
    let chosen = require_agent(shared, chosen).map_err(|why| start(format!("thinkHard: {why}")))?;
    report.agent = chosen.name.clone();
    report.preset = chosen.preset.map(|preset| preset.name.clone());
    let prompt = shared.value(prompt).await.map_err(start)?;
    let ready = renderer.ready(shared).await.map_err(start)?;
    let limits = Limits {
        model: None,
        session: None,
        tools: Tools::default(),
        cost_micros: None,
        by_budget: false,
        used_before: None,
        named: false,
        attempt: None,
    };
    let prompt = prompt.as_str().unwrap_or_default();
    let output = match &shared.stubs {
        None => ask(shared, &mut prepared, &ready, &chosen, prompt, &limits, report, stop).await?,
        Some(stubs) => {
            let asked = AgentPrompt { agent: None, prompt, schema: None, output_path: None };
            call_stub(stubs, &prepared, &ready, &chosen, asked, report)?
        }
    };
    Ok(shared.masks().mask_text(&output.text.unwrap_or_default()).into_owned())
}
