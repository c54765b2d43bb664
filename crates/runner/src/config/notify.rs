//! Notification settings: for a person at the terminal, and through channels that work without one.

use lockgate_engine::run::index::NamedVariants;
use lockgate_engine::run::outbox::{NoticeChannel, NoticeKind, Subscriptions};
use lockgate_engine::spec::document::{Entry, Value};
use lockgate_engine::spec::problem::Problem;
use std::collections::BTreeSet;
use std::time::Duration;

const EXAMPLE: &str = "{ terminal: bell, command: ./notify.sh }";
const COMMAND_EXAMPLE: &str = "{ run: ./notify.sh, on: [hold_opened, run_ended], timeout: 30s }";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notifications {
    /// How a person at the terminal is notified of an open question.
    pub terminal: Notify,
    pub command: Option<NotifyCommand>,
}

/// How a person at a terminal is notified of an open question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// The terminal bell.
    #[default]
    Bell,
    /// A desktop notification if the terminal or the desktop supports it, otherwise the bell.
    Desktop,
    Off,
}

/// A command that receives notices as JSON on stdin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyCommand {
    /// The shell command.
    pub run: String,
    /// The notices it receives.
    pub on: BTreeSet<NoticeKind>,
    pub timeout: Duration,
}

impl NotifyCommand {
    fn new(run: String) -> Self {
        Self { run, on: NoticeKind::ALL.iter().copied().collect(), timeout: Duration::from_secs(30) }
    }
}

impl Notifications {
    /// Which notices go to which channels.
    pub fn subscriptions(&self) -> Subscriptions {
        let mut subscriptions = Subscriptions::NONE;
        if let Some(command) = &self.command {
            subscriptions.subscribe(NoticeChannel::Command, command.on.iter().copied());
        }
        subscriptions
    }

    pub(super) fn of(value: &Value<'_>) -> Result<Self, Problem> {
        if value.text().is_some() {
            return Ok(Self { terminal: terminal(value, "notify")?, command: None });
        }
        let mut notifications = Self::default();
        for Entry { key, value, .. } in value.fields("`notify`", EXAMPLE, &["terminal", "command"])? {
            match key.as_str() {
                "terminal" => notifications.terminal = terminal(&value, "terminal")?,
                _ => notifications.command = Some(command(&value)?),
            }
        }
        Ok(notifications)
    }
}

fn terminal(value: &Value<'_>, key: &str) -> Result<Notify, Problem> {
    match value.text() {
        Some("bell") => Ok(Notify::Bell),
        Some("desktop") => Ok(Notify::Desktop),
        Some("off") => Ok(Notify::Off),
        Some(_) | None => Err(value.problem(
            format!("`{key}` must say how a person at the terminal is notified of an open question"),
            Some("write `bell`, `desktop` or `off`".to_owned()),
        )),
    }
}

fn command(value: &Value<'_>) -> Result<NotifyCommand, Problem> {
    if value.text().is_some() {
        return Ok(NotifyCommand::new(shell_command(value, "`command`")?));
    }
    let mut command = NotifyCommand::new(String::new());
    for Entry { key, value, .. } in value.fields("`command`", COMMAND_EXAMPLE, &["run", "on", "timeout"])? {
        match key.as_str() {
            "run" => command.run = shell_command(&value, "`run`")?,
            "on" => command.on = kinds(&value)?,
            _ => command.timeout = value.duration("`timeout`")?,
        }
    }
    match command.run.is_empty() {
        true => Err(value.problem("`command` needs `run`, the command itself", Some(format!("write `{COMMAND_EXAMPLE}`")))),
        false => Ok(command),
    }
}

fn shell_command(value: &Value<'_>, what: &str) -> Result<String, Problem> {
    let text = value.text().filter(|text| !text.trim().is_empty());
    let problem = || value.problem(format!("{what} must be a shell command"), Some("write it as `./notify.sh`".to_owned()));
    Ok(text.ok_or_else(problem)?.to_owned())
}

fn kinds(value: &Value<'_>) -> Result<BTreeSet<NoticeKind>, Problem> {
    let all = || NoticeKind::ALL.iter().map(|kind| format!("`{}`", kind.as_str())).collect::<Vec<_>>().join(", ");
    let kind = |value: &Value<'_>| {
        let known = value.text().and_then(|text| NoticeKind::ALL.iter().find(|kind| kind.as_str() == text));
        let problem =
            || value.problem("`on` must list the notices that the command receives", Some(format!("available: {}", all())));
        known.copied().ok_or_else(problem)
    };
    match value.items() {
        Some(items) if items.is_empty() => {
            Err(value.problem("`on` is empty, so the command would never run", Some(format!("available: {}", all()))))
        }
        Some(items) => items.iter().map(kind).collect(),
        None => Ok(BTreeSet::from([kind(value)?])),
    }
}
