//! Agent tasks: sends a prompt to a program, and collects its reply and its files.

use super::answer_schema::{Answer, Schema};
use super::ask_agent::{Attempt, Limits, ask, call_stub, require_agent};
use super::command::{Prepared, ProcessSpec, failure, prepare, renderer, start};
use super::prompt::PromptContext;
use super::team::TeamContext;
use super::values::{Renderer, TaskValues};
use super::{Shared, TaskCall, auth_gate, handover, script, worktree};
use crate::agent::{Ability, AgentError, AgentSources, SelectedAgent};
use crate::dry_run::AgentPrompt;
use crate::files::{RunDirs, create_output_parents, read_output, resolve_output_path, write_output};
use crate::process::Stop;
use crate::runtime::Performed;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::plural::counted;
use lockgate_engine::run::Run;
use lockgate_engine::run::agent::{AgentReport, Usage};
use lockgate_engine::run::command::TaskOutcome;
use lockgate_engine::run::event::{Failure, FailureKind, SessionStart};
use lockgate_engine::run::handover::Handover;
use lockgate_engine::spec::workflow::{AgentWork, DEFAULT_AGENT, MAX_ASKS, Phase};
use lockgate_engine::stored_value::StoredValue;
use lockgate_formats::handover::parse as parse_handover;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

const MAX_ANSWER_BYTES: u64 = 4 * 1024 * 1024;

/// What an agent's work needs from the run, captured when it starts.
struct Work {
    prepared: Prepared,
    renderer: Renderer,
    prompt_context: PromptContext,
    team: Option<TeamContext>,
    chosen: Result<SelectedAgent, AgentError>,
    kind: Option<String>,
    output_path: Option<String>,
    outputs: Vec<String>,
    schema: Option<Value>,
    max_asks: u32,
    limits: Limits,
}

pub(super) fn task(
    shared: Arc<Shared>,
    run: &Run,
    call: TaskCall<'_>,
    work: &AgentWork,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    // A task that was handed off is done by another agent than the declared one.
    let name = run.agent_of(call.key).filter(|name| work.agent.is_some() || *name != DEFAULT_AGENT).map(str::to_owned);
    let chosen = configured(&shared, run).select(name.as_deref());
    let tree = worktree::wanted(run, call.key, call.task);
    let preset = chosen.as_ref().ok().and_then(|chosen| chosen.preset);
    let work = Work { kind: name, ..gather(&shared, run, call, work, chosen) };
    let mut ending = call.ending(&shared, run, stop.clone());
    let commits = call.state.exchange.as_deref().map(handover::commits).unwrap_or_default();
    async move {
        let mut report = AgentReport { usage: Usage::NOTHING, ..AgentReport::default() };
        let mut work = work;
        let came = match worktree::enter(&shared, &mut work.prepared, tree, &stop).await {
            Err(failure) => Err(failure),
            Ok(()) => {
                let missing = handover::missing(&work.prepared.base, commits).await;
                if !missing.is_empty() && shared.stubs.is_none() {
                    return ending.end(TaskOutcome::CommitsMissing(missing), Vec::new(), None).await;
                }
                match ending.start().await {
                    Err(failure) => Err(failure),
                    Ok(()) => work.carry_out(&shared, &mut report, &stop).await,
                }
            }
        };
        let attempted = report.command.clone().unwrap_or_default();
        let report = (report.asks > 0).then(|| Box::new(report));
        match came {
            Err(failure) => {
                let outcome = match preset {
                    Some(preset) => auth_gate::agent_failed(&shared, &attempted, preset, failure),
                    None => auth_gate::failed_or_unauthenticated(&shared, &attempted, failure),
                };
                ending.end(outcome, Vec::new(), report).await
            }
            Ok(Outcome::HandedOver(handed)) => ending.end(TaskOutcome::HandsOver(handed), Vec::new(), report).await,
            Ok(Outcome::Completed((result, outputs, values))) => {
                ending.end(TaskOutcome::Finished { result, outputs }, values, report).await
            }
        }
    }
    .boxed()
}

pub(super) fn configured(shared: &Shared, run: &Run) -> AgentSources {
    AgentSources { instead: run.agent.clone(), workflow: run.workflow.agents.clone(), project: shared.config.agents.clone() }
}

fn gather(shared: &Shared, run: &Run, call: TaskCall<'_>, work: &AgentWork, chosen: Result<SelectedAgent, AgentError>) -> Work {
    let time_left = run.time_left(&call.key.phase, call.task);
    let timeout = [call.task.timeout, time_left].into_iter().flatten().min();
    let process_spec = ProcessSpec { timeout, ..call.process_spec() };
    let mut prepared = with_setting(shared, run, call.phase, process_spec, chosen.as_ref().ok());
    prepared.idle_timeout = work.idle_timeout;
    prepared.set_item(call.values().item);
    let values = TaskValues { config: Some(&work.config), output_path: work.output_path.as_deref(), ..call.values() };
    let prompt_context = PromptContext::new(run, call.phase, work, call.state);
    let others: Vec<&str> =
        work.output_path.iter().chain(&call.task.outputs).map(String::as_str).chain([prompt_context.template()]).collect();
    let renderer = renderer(run, call.phase, &prepared, values, &others);
    let model = work.model.clone();
    Work {
        renderer,
        prompt_context,
        team: TeamContext::new(run, call.key, call.attempt, call.task),
        kind: work.agent.clone(),
        output_path: work.output_path.clone(),
        outputs: call.task.outputs.clone(),
        schema: work.output_schema.clone(),
        max_asks: work.max_asks.unwrap_or(MAX_ASKS),
        limits: Limits {
            model,
            session: call.state.session.clone(),
            tools: work.tools.clone(),
            cost_micros: run.cost_left(&call.key.phase, call.task),
            attempt: Some(Attempt { run: run.id.clone(), key: call.key.clone(), number: call.attempt }),
            named: call.state.session.as_ref().is_some_and(|session| run.session_known(&session.id).is_some()),
            by_budget: time_left.is_some() && timeout == time_left,
            used_before: call
                .state
                .session
                .as_ref()
                .filter(|session| session.resume)
                .and_then(|session| run.session_known(&session.id)?.usage),
        },
        prepared,
        chosen,
    }
}

/// The process, with additions from the agent's settings.
pub(super) fn with_setting(
    shared: &Shared,
    run: &Run,
    phase: &Phase,
    process_spec: ProcessSpec<'_>,
    chosen: Option<&SelectedAgent>,
) -> Prepared {
    let mut prepared = prepare(shared, run, phase, process_spec);
    // An agent's program is not a command of the workflow, so `shell` does not apply to it.
    prepared.shell = None;
    if let Some(chosen) = chosen {
        for (name, value) in &chosen.setting.env {
            prepared.env.entry(name.clone()).or_insert_with(|| value.clone());
        }
        for name in &chosen.setting.secrets {
            if !prepared.secrets.iter().any(|(known, _)| known == name) {
                prepared.secrets.push((name.clone(), run.workflow.secrets.get(name).cloned()));
            }
        }
    }
    prepared
}

type Completed = (Option<StoredValue>, Vec<lockgate_engine::run::event::OutputFile>, Vec<(Digest, Vec<u8>)>);

enum Outcome {
    Completed(Completed),
    HandedOver(Box<Handover>),
}

impl Work {
    /// Asks the agent until its answer is valid or it has been asked the maximum number of times.
    async fn carry_out(self, shared: &Arc<Shared>, report: &mut AgentReport, stop: &Stop) -> Result<Outcome, Failure> {
        let Self {
            mut prepared,
            renderer,
            mut prompt_context,
            team,
            chosen,
            kind,
            output_path,
            outputs,
            schema,
            max_asks,
            mut limits,
        } = self;
        let chosen = require_agent(shared, chosen).map_err(start)?;
        report.agent = chosen.name.clone();
        report.preset = chosen.preset.map(|preset| preset.name.clone());
        let shape = schema;
        let schema = shape.as_ref().map(Schema::new).transpose().map_err(start)?;
        let ready = renderer.ready(shared).await.map_err(start)?;
        let mut outputs = ready.texts(&outputs).map_err(start)?;
        let output_path = output_path.map(|path| ready.text(&path)).transpose().map_err(start)?;
        let place = output_path.as_deref().map(|path| resolve_output_path(&prepared.run_dirs, path)).transpose();
        let place = place.map_err(start)?;
        let place_text = place.as_ref().map(|place| place.to_string_lossy().into_owned());
        if let Some(text) = &place_text {
            prepared.ours.push(("LOCKGATE_OUTPUT_PATH".to_owned(), text.clone()));
        }
        if let Some(team) = team {
            prompt_context.team = team.text(shared).await.map_err(start)?;
        }
        let whole = prompt_context.text(&ready, kind.as_deref(), place_text.as_deref()).map_err(start)?;
        if let Some(path) = &output_path {
            create_output_parents(&prepared.run_dirs, path).map_err(start)?;
        }
        let mut prompt = whole.clone();
        loop {
            let before = place.as_deref().and_then(stamp);
            let output = match &shared.stubs {
                None => ask(shared, &mut prepared, &ready, &chosen, &prompt, &limits, report, stop).await?,
                Some(stubs) => {
                    let asked =
                        AgentPrompt { agent: None, prompt: &prompt, schema: shape.as_ref(), output_path: output_path.as_deref() };
                    let output = call_stub(stubs, &prepared, &ready, &chosen, asked, report)?;
                    stubs.leave(&prepared.address, &prepared.run_dirs, &outputs)?;
                    output
                }
            };
            let text =
                output.text.map(|text| shared.masks().mask_text(&text).into_owned()).filter(|text| !text.trim().is_empty());
            if let (None, Some(handed)) = (&schema, text.as_deref().and_then(parse_handover)) {
                return Ok(Outcome::HandedOver(Box::new(handed)));
            }
            let written = place.as_deref().and_then(stamp).filter(|now| Some(now) != before.as_ref()).is_some();
            let said = match (&output_path, written) {
                (Some(path), true) => read_text(shared, &prepared.run_dirs, path).or(text.clone()),
                (Some(_), false) | (None, _) => text.clone(),
            };
            if let Some(schema) = &schema {
                match schema.answer(said.as_deref()) {
                    Answer::Fits(json) => {
                        if let (Some(path), false) = (&output_path, written) {
                            write(&prepared.run_dirs, path, &json)?;
                        }
                        outputs.extend(output_path.clone());
                        return completed(shared, &prepared, Some(json), outputs).await.map(Outcome::Completed);
                    }
                    Answer::Wrong(why) if report.asks < max_asks => {
                        prepared.emit_line(shared, &format!("its answer is invalid, asking again: {why}"));
                        prompt = retry_prompt(&chosen, &whole, said.as_deref(), &why, report, &mut limits);
                        continue;
                    }
                    Answer::Wrong(why) => {
                        let message =
                            format!("its answer does not match `output_schema` after {}: {why}", counted(report.asks, "ask"));
                        return Err(Failure { kind: FailureKind::Agent, message, tail: said.unwrap_or_default() });
                    }
                }
            }
            match (&output_path, written, &text) {
                (Some(path), false, Some(text)) => write(&prepared.run_dirs, path, text)?,
                (Some(path), false, None) => {
                    let message = format!("it succeeded, but neither wrote {path} nor replied");
                    return Err(failure(FailureKind::Output, message));
                }
                (None, _, None) => prepared.emit_line(shared, "it succeeded without a reply"),
                (Some(_), true, _) | (None, _, Some(_)) => {}
            }
            outputs.extend(output_path.filter(|path| !outputs.contains(path)));
            let result = text.map(|text| Value::String(text).to_string());
            return completed(shared, &prepared, result, outputs).await.map(Outcome::Completed);
        }
    }
}

/// Identifies the state of a file: if none of this changed, the file was not written.
fn stamp(path: &Path) -> Option<(SystemTime, u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = path.symlink_metadata().ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

/// An agent's output file with secrets masked, because parts of it are reported and stored if it is invalid.
fn read_text(shared: &Shared, run_dirs: &RunDirs, path: &str) -> Option<String> {
    let read = read_output(run_dirs, path, MAX_ANSWER_BYTES);
    let bytes = read.inspect_err(|error| tracing::debug!(?error, path, "cannot read the output of an agent")).ok()??;
    Some(shared.masks().mask_text(&String::from_utf8_lossy(&bytes)).into_owned())
}

fn write(run_dirs: &RunDirs, path: &str, text: &str) -> Result<(), Failure> {
    let ended = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    let written = write_output(run_dirs, path, ended.as_bytes());
    written.map(drop).map_err(|refused| failure(FailureKind::Output, refused))
}

async fn completed(
    shared: &Shared,
    prepared: &Prepared,
    json: Option<String>,
    outputs: Vec<String>,
) -> Result<Completed, Failure> {
    let masks = shared.masks();
    let (mut files, mut values) = (Vec::new(), Vec::new());
    if !outputs.is_empty() {
        let keep = shared.config.limits.stored_outputs_bytes();
        let collected = script::collect(prepared.run_dirs.clone(), outputs, keep, masks.clone()).await;
        (files, values) = collected.map_err(|why| failure(FailureKind::Output, why))?;
    }
    let result = json.map(|json| {
        let (stored_value, stored) = StoredValue::keep_text(script::mask_json(&json, &masks));
        values.extend(stored);
        stored_value
    });
    Ok((result, files, values))
}

/// The prompt after an invalid answer: only the correction if the session can be resumed, otherwise the whole prompt again.
fn retry_prompt(
    chosen: &SelectedAgent,
    whole: &str,
    said: Option<&str>,
    why: &str,
    report: &AgentReport,
    limits: &mut Limits,
) -> String {
    let again = format!("Your answer does not match the JSON Schema: {why}\nAnswer again, with JSON alone.");
    match (&report.session, chosen.preset) {
        (Some(id), Some(preset)) if preset.can(Ability::Resume) => {
            limits.session = Some(SessionStart { id: id.clone(), resume: true });
            limits.named = true;
            again
        }
        (Some(_) | None, _) => {
            limits.session = None;
            format!("{whole}\n\n---\nYou answered this before:\n{}\n\n{again}", said.unwrap_or("(nothing)"))
        }
    }
}
