//! Asks an agent once: calls its program, reads what it reports, and adds its usage to the report.

use super::Shared;
use super::command::{Prepared, explain, failure, start};
use super::values::Ready;
use crate::agent::{Ability, AgentError, AgentOutput, AgentRequest, Reader, SelectedAgent, SessionMode, call};
use crate::driver::record;
use crate::dry_run::{AgentPrompt, Stubs};
use crate::process::{self, Ended, ExitReason, Stop};
use lockgate_engine::id::{RunId, TaskKey};
use lockgate_engine::run::agent::{AgentReport, Usage};
use lockgate_engine::run::command::CommandKind;
use lockgate_engine::run::event::{Failure, FailureKind, SessionStart};
use lockgate_engine::spec::workflow::{AgentSetting, Tools};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;

/// The limits of the work, and the session it belongs to.
pub(super) struct Limits {
    pub(super) model: Option<String>,
    pub(super) session: Option<SessionStart>,
    pub(super) tools: Tools,
    pub(super) cost_micros: Option<u64>,
    /// Whether the remaining time comes from the budget rather than the task's timeout.
    pub(super) by_budget: bool,
    /// The session's usage before this attempt resumed it.
    pub(super) used_before: Option<Usage>,
    /// Whether the program itself reported that session.
    pub(super) named: bool,
    /// The attempt that the session is recorded for, if it is recorded.
    pub(super) attempt: Option<Attempt>,
}

pub(super) struct Attempt {
    pub(super) run: RunId,
    pub(super) key: TaskKey,
    pub(super) number: u32,
}

/// The maximum length of a command in the record.
const KEPT_OF_COMMAND: usize = 2_000;

/// A dry run asks no agent, so none need be configured.
pub(super) fn require_agent(shared: &Shared, chosen: Result<SelectedAgent, AgentError>) -> Result<SelectedAgent, AgentError> {
    match chosen {
        Err(_) if shared.stubs.is_some() => {
            Ok(SelectedAgent { name: String::new(), setting: AgentSetting::default(), preset: None })
        }
        Ok(chosen) => {
            // For an agent given on the command line, the name is the command itself, which may contain anything.
            let name = Some(&chosen.name).filter(|name| chosen.setting.command.as_ref() != Some(*name));
            tracing::debug!(agent = name, preset = chosen.preset.map(|preset| preset.name.as_str()), "agent chosen");
            Ok(chosen)
        }
        Err(error) => Err(error),
    }
}

/// The stub that replaces asking the agent once.
pub(super) fn call_stub(
    stubs: &Stubs,
    prepared: &Prepared,
    ready: &Ready,
    chosen: &SelectedAgent,
    asked: AgentPrompt<'_>,
    report: &mut AgentReport,
) -> Result<AgentOutput, Failure> {
    prepared.check_templates(ready)?;
    report.asks += 1;
    let agent = Some(chosen.name.as_str()).filter(|name| !name.is_empty());
    let text = stubs.agent(&prepared.at, &AgentPrompt { agent, ..asked }, &prepared.run_dirs)?;
    report.session.get_or_insert_with(uuid);
    Ok(AgentOutput { text: Some(text), usage: Usage::NOTHING, ..AgentOutput::default() })
}

/// Asks the agent once, and adds its usage to the report.
#[expect(clippy::too_many_arguments, reason = "a struct for them would be built in only two places")]
pub(super) async fn ask(
    shared: &Shared,
    prepared: &mut Prepared,
    ready: &Ready,
    chosen: &SelectedAgent,
    prompt: &str,
    limits: &Limits,
    report: &mut AgentReport,
    stop: &Stop,
) -> Result<AgentOutput, Failure> {
    let can = |ability| chosen.preset.is_some_and(|preset| preset.can(ability));
    let fresh = uuid();
    if limits.session.as_ref().is_some_and(|session| session.resume) && !can(Ability::Resume) {
        prepared.emit_line(shared, "this agent cannot resume a session, so it starts a new one");
    }
    let session = match &limits.session {
        // A session that the program never reported does not exist, even if we chose its id.
        Some(session) if session.resume && can(Ability::Resume) && limits.named => SessionMode::Resume { id: &session.id },
        Some(session) if !session.resume => SessionMode::Fresh { id: &session.id },
        Some(_) | None => SessionMode::Fresh { id: &fresh },
    };
    let policy = process::policy_file(&prepared.lock);
    let invocation = call(
        &chosen.setting,
        chosen.preset,
        &AgentRequest {
            prompt,
            model: limits.model.as_deref(),
            session,
            tools_allow: &limits.tools.allow,
            tools_deny: &limits.tools.deny,
            max_cost_micros: limits.cost_micros.filter(|_| can(Ability::LimitCost)),
            policy: &policy.to_string_lossy(),
        },
    )
    .map_err(start)?;
    let command: String = shared.masks().mask_text(&invocation.command).chars().take(KEPT_OF_COMMAND).collect();
    let job = prepared.job(shared, ready, invocation.command, invocation.stdin).await?;
    if let Some(text) = &invocation.policy {
        process::write_policy_file(&prepared.lock, text)
            .map_err(|error| start(format!("the file of allowed tools cannot be written: {error}")))?;
    }
    report.command = Some(command);
    report.dir = job.dir.strip_prefix(&prepared.run_dirs.root).ok().map(|dir| dir.to_string_lossy().into_owned());
    let reader = Mutex::new(Reader::new(chosen.preset));
    let reading_it = || reader.lock().unwrap_or_else(PoisonError::into_inner);
    let (run, address) = (prepared.run.clone(), prepared.address.clone());
    // Lines come from stderr, and from the reader, which derives them from stdout.
    let made_by_reader = AtomicBool::new(false);
    let mut on_line = |line: &str| {
        if !made_by_reader.load(Ordering::Relaxed) {
            reading_it().error_line(line);
        }
        (shared.on_line)(&run, &address, line);
    };
    let (tell, named) = mpsc::unbounded_channel();
    let mut last = None;
    let reading = async {
        let mut on_output = |bytes: &[u8], on_line: &mut dyn FnMut(&str)| {
            made_by_reader.store(true, Ordering::Relaxed);
            let mut reader = reading_it();
            reader.feed(bytes, on_line);
            made_by_reader.store(false, Ordering::Relaxed);
            if let Some(id) = reader.session().filter(|id| last.as_deref() != Some(*id)) {
                last = Some(id.to_owned());
                if tell.send(id.to_owned()).is_err() {
                    tracing::debug!("cannot record the session: the recorder has ended");
                }
            }
        };
        let ended = process::run_with_output(job, stop.clone(), &mut on_line, &mut on_output).await;
        drop(tell);
        ended
    };
    let (ended, ()) = tokio::join!(reading, record_sessions(shared, limits.attempt.as_ref(), report.dir.as_deref(), named));
    prepared.ended(shared, &ended);
    let mut reader = reader.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let ExitReason::Exit(code) = ended.reason {
        reader.exited(code);
    }
    let output = reader.finish();
    report.asks += 1;
    let whole_session = chosen.preset.is_some_and(|preset| preset.usage_covers_session());
    let resumed = matches!(session, SessionMode::Resume { .. });
    let before = report.session_usage.or(limits.used_before).filter(|_| resumed && whole_session);
    report.session_usage = whole_session.then_some(output.usage);
    report.usage = report.usage.plus(before.map_or(output.usage, |before| output.usage.minus(before)));
    report.session = output.session.clone().or(invocation.session.filter(|_| resumed)).or(report.session.take());
    report.model = output.model.clone().or(report.model.take());
    for tool in output.denied.iter().filter(|tool| !report.denied.contains(tool)).cloned().collect::<Vec<_>>() {
        report.denied.push(shared.masks().mask_text(&tool).into_owned());
    }
    report.version = output.version.clone().or(report.version.take());
    // A program that knows its limit ends by itself when it reaches it.
    let left = limits.cost_micros.filter(|_| can(Ability::LimitCost));
    let used_up = left.zip(output.usage.cost_micros).is_some_and(|(left, used)| used >= left);
    went_well(shared, ended, &output, limits).map_err(|failed| match used_up {
        true => failure(FailureKind::Budget, "its budget is used up"),
        false => failed,
    })?;
    Ok(output)
}

/// Records each session that an agent reports while it works, so that a later attempt can resume it even after a crash.
async fn record_sessions(
    shared: &Shared,
    attempt: Option<&Attempt>,
    dir: Option<&str>,
    mut named: mpsc::UnboundedReceiver<String>,
) {
    while let Some(session) = named.recv().await {
        let Some(Attempt { run, key, number }) = attempt else { continue };
        let command = CommandKind::SessionNamed { key: key.clone(), attempt: *number, session, dir: dir.map(str::to_owned) };
        if let Err(error) = record(&*shared.store, &shared.subscriptions(), run, command, &[]).await {
            (shared.on_line)(run, &key.address(), &format!("its session could not be recorded: {error}"));
        }
    }
}

fn went_well(shared: &Shared, ended: Ended, output: &AgentOutput, limits: &Limits) -> Result<(), Failure> {
    if let (Some(login), ExitReason::Exit(_)) = (&output.login, &ended.reason) {
        let message = shared.masks().mask_text(login).into_owned();
        return Err(Failure { kind: FailureKind::Authentication, message, tail: ended.tail });
    }
    if let Some((kind, message)) = explain(&ended) {
        let said = output.error.as_deref().map(|error| format!("{message}: {error}")).unwrap_or(message);
        let message = shared.masks().mask_text(&said).into_owned();
        return Err(match kind {
            FailureKind::Timeout if limits.by_budget => failure(FailureKind::Budget, "the time in its budget is used up"),
            _ => Failure { kind, message, tail: ended.tail },
        });
    }
    match &output.error {
        Some(error) => {
            let message = format!("the agent reported an error: {}", shared.masks().mask_text(error));
            Err(Failure { kind: FailureKind::Agent, message, tail: ended.tail })
        }
        None => Ok(()),
    }
}

pub(super) fn uuid() -> String {
    lockgate_engine::id::IdSource::new(rand::random()).next_uuid()
}
