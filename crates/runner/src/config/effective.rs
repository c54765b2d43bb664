//! Every setting with its value and where the value comes from.

#[cfg(test)]
mod tests;

use super::notify::{Notifications, Notify, NotifyCommand};
use super::{
    Background, CheckpointSettings, CheckpointStorage, CheckpointTriggers, Config, ConfigError, DATABASE_VARIABLE,
    DEFAULT_LOCATION, DatabaseUrl, Limits, People, Pipelines, Retention, Script, SettingsFile,
};
use crate::auth_gate::Tool;
use crate::projection::DEFAULT_DIR;
use crate::root::Root;
use lockgate_engine::run::index::NamedVariants as _;
use lockgate_engine::snapshot::retention::RetentionPolicy;
use lockgate_engine::spec::document::{self, Value as Document};
use lockgate_engine::spec::workflow::{AgentSetting, Automatic, Commit, Policy, Shell};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A setting as it applies.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveSetting {
    /// Its key, with the keys above it: `script.timeout`.
    pub key: &'static str,
    /// Its value, without passwords; null if nothing is set and nothing is the default.
    pub value: Value,
    /// Where the value comes from.
    pub source: SettingSource,
}

/// Where the value of a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingSource {
    /// It is the default.
    Default,
    /// A settings file, at this line.
    File {
        file: SettingsFile,
        /// The line, counted from 1.
        line: usize,
    },
    /// This environment variable.
    Environment(&'static str),
}

/// Lists all settings. `database` is the value of [`DATABASE_VARIABLE`], which overrides the file.
pub fn effective_settings(root: &Root, database: Option<&str>) -> Result<Vec<EffectiveSetting>, ConfigError> {
    let config = Config::read(root)?;
    let mut texts = Vec::new();
    for file in SettingsFile::ALL {
        texts.extend(file.read(root)?.map(|text| (file, text)));
    }
    // They were parsed just now, so they can be read.
    let documents: Vec<(SettingsFile, Document<'_>)> =
        texts.iter().filter_map(|(file, text)| Some((*file, document::read(text).ok()?))).collect();
    let from_file = |(key, value)| {
        let found = documents.iter().rev().find_map(|(file, document)| Some((*file, line_of(document, key)?)));
        let source = found.map_or(SettingSource::Default, |(file, line)| SettingSource::File { file, line });
        EffectiveSetting { key, value, source }
    };
    let mut settings: Vec<EffectiveSetting> = values(&config).into_iter().map(from_file).collect();
    if let Some(url) = database.filter(|url| !url.is_empty())
        && let Some(setting) = settings.iter_mut().find(|setting| setting.key == "database")
    {
        setting.value = json!(without_password(url));
        setting.source = SettingSource::Environment(DATABASE_VARIABLE);
    }
    Ok(settings)
}

/// The line of a key in the file, if the file sets it.
fn line_of(document: &Document<'_>, key: &str) -> Option<usize> {
    let mut within = document.clone();
    let mut line = None;
    for part in key.split('.') {
        let Some(entries) = within.entries() else {
            // `notify: bell` is short for `notify: { terminal: bell }`.
            return line.filter(|_| key == "notify.terminal");
        };
        let entry = entries.into_iter().find(|entry| entry.key == part && !entry.value.is_nothing())?;
        line = Some(entry.problem("", None).line);
        within = entry.value;
    }
    line
}

/// The keys of `docs/reference/settings.md`, in its order. The patterns name every field, so that no setting is forgotten here.
fn values(config: &Config) -> Vec<(&'static str, Value)> {
    let Config {
        people: People { require_terminal },
        max_parallel,
        script: Script { timeout, condition_timeout, memory_mb },
        limits: Limits { stored_outputs_mb, log_mb },
        background: Background { idle_timeout, max_runs },
        retention: Retention { finished, keep },
        checkpoint,
        notify: Notifications { terminal, command },
        agents,
        database,
        logins,
        policy,
        pipelines: Pipelines { dir, review, on_complete, auto_continue, gates },
        shell,
        commit: Commit { message, hooks },
    } = config;
    let agents: Map<String, Value> = agents.iter().map(|(name, setting)| (name.clone(), agent(setting))).collect();
    let logins: Map<String, Value> = logins.iter().map(|tool| (tool.name.clone(), login(tool))).collect();
    let mut values = vec![
        ("people.require_terminal", json!(require_terminal)),
        ("max_parallel", json!(max_parallel)),
        ("shell", json!(shell.as_ref().map(Shell::text))),
        ("commit.message", json!(message)),
        ("commit.hooks", json!(hooks.unwrap_or(true))),
        ("script.timeout", json!(duration_text(*timeout))),
        ("script.condition_timeout", json!(duration_text(*condition_timeout))),
        ("script.memory_mb", json!(memory_mb)),
        ("limits.stored_outputs_mb", json!(stored_outputs_mb)),
        ("limits.log_mb", json!(log_mb)),
        ("background.idle_timeout", json!(duration_text(*idle_timeout))),
        ("background.max_runs", json!(max_runs)),
        ("retention.finished", json!(finished.map(duration_text))),
        ("retention.keep", json!(keep)),
    ];
    values.extend(checkpoint_values(checkpoint));
    values.extend([
        ("notify.terminal", json!(terminal_word(*terminal))),
        ("notify.command", command.as_ref().map_or(Value::Null, notify_command)),
        ("agents", Value::Object(agents)),
        ("logins", Value::Object(logins)),
        ("pipelines.dir", json!(dir.as_deref().unwrap_or(DEFAULT_DIR))),
        ("pipelines.review", json!(review)),
        ("pipelines.approve", json!(if *auto_continue { "auto" } else { "ask" })),
        ("pipelines.gates", json!(gates)),
        ("pipelines.on_complete", json!(on_complete)),
        ("policy", policy_value(policy)),
        ("database", json!(database.as_ref().map(DatabaseUrl::without_password))),
    ]);
    values
}

fn checkpoint_values(settings: &CheckpointSettings) -> Vec<(&'static str, Value)> {
    let CheckpointSettings { enabled, auto_checkpoint, triggers, retention, storage, session_timeout } = settings;
    let CheckpointTriggers { phase_transition, batch_complete, agent_complete, conflict_events, user_interrupt, session_end } =
        triggers;
    let CheckpointStorage { location, compress, max_size_mb } = storage;
    let location = location.as_ref().map_or(DEFAULT_LOCATION, |location| &location.template);
    let mut values = vec![
        ("checkpoint.enabled", json!(enabled)),
        ("checkpoint.auto_checkpoint", json!(auto_checkpoint)),
        ("checkpoint.checkpoint_triggers.phase_transition", json!(phase_transition)),
        ("checkpoint.checkpoint_triggers.batch_complete", json!(batch_complete)),
        ("checkpoint.checkpoint_triggers.agent_complete", json!(agent_complete)),
        ("checkpoint.checkpoint_triggers.conflict_events", json!(conflict_events)),
        ("checkpoint.checkpoint_triggers.user_interrupt", json!(user_interrupt)),
        ("checkpoint.checkpoint_triggers.session_end", json!(session_end)),
    ];
    values.extend(retention_values(retention));
    values.extend([
        ("checkpoint.storage.location", json!(location)),
        ("checkpoint.storage.compress", json!(compress)),
        ("checkpoint.storage.max_size_mb", max_size_mb.map_or(json!(-1), |megabytes| json!(megabytes))),
        ("checkpoint.session_timeout", json!(session_timeout.map(duration_text))),
    ]);
    values
}

fn retention_values(policy: &RetentionPolicy) -> [(&'static str, Value); 8] {
    let RetentionPolicy {
        phase_transition,
        batch_complete,
        agent_complete,
        conflict_start,
        conflict_resolved,
        user_interrupt,
        session_end,
        manual,
    } = policy;
    [
        ("checkpoint.retention.phase_transition", phase_transition),
        ("checkpoint.retention.batch_complete", batch_complete),
        ("checkpoint.retention.agent_complete", agent_complete),
        ("checkpoint.retention.conflict_start", conflict_start),
        ("checkpoint.retention.conflict_resolved", conflict_resolved),
        ("checkpoint.retention.user_interrupt", user_interrupt),
        ("checkpoint.retention.session_end", session_end),
        ("checkpoint.retention.manual", manual),
    ]
    .map(|(key, keep)| (key, json!(keep.number())))
}

fn terminal_word(terminal: Notify) -> &'static str {
    match terminal {
        Notify::Bell => "bell",
        Notify::Desktop => "desktop",
        Notify::Off => "off",
    }
}

fn notify_command(command: &NotifyCommand) -> Value {
    let NotifyCommand { run, on, timeout } = command;
    let on: Vec<&str> = on.iter().map(|kind| kind.as_str()).collect();
    json!({ "run": run, "on": on, "timeout": duration_text(*timeout) })
}

/// Environment variables may hold secrets, so only their names are listed.
fn agent(setting: &AgentSetting) -> Value {
    let AgentSetting { preset, command, args, model, env, secrets, prompt_by } = setting;
    let env: Vec<&String> = env.keys().collect();
    let all = json!({
        "preset": preset, "command": command, "args": args, "model": model, "env": env, "secrets": secrets, "prompt": prompt_by,
    });
    without_empty(all)
}

fn login(tool: &Tool) -> Value {
    let Tool { name: _, pattern, login, probe } = tool;
    without_empty(json!({ "pattern": pattern, "login": login, "probe": probe }))
}

fn policy_value(policy: &Policy) -> Value {
    let Policy { checkpoint, verify, decision, collect_phase } = policy;
    let rule = |rule: &Option<Automatic>| match rule {
        None => json!("ask"),
        Some(Automatic { max_consecutive: Some(most), .. }) => json!({ "max_consecutive": most }),
        Some(Automatic { max_consecutive: None, .. }) => json!("auto"),
    };
    let collect = if *collect_phase { "phase" } else { "no" };
    json!({ "checkpoint": rule(checkpoint), "verify": rule(verify), "decision": rule(decision), "collect": collect })
}

/// An object without the keys that are null or empty lists.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(mut fields) => {
            fields.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()));
            Value::Object(fields)
        }
        other => other,
    }
}

/// A duration as the settings file writes it.
fn duration_text(duration: Duration) -> String {
    const DAY: u128 = 86_400_000;
    let mut rest = duration.as_millis();
    if rest > 0 && rest.is_multiple_of(DAY) {
        return format!("{}d", rest / DAY);
    }
    let mut parts = Vec::new();
    for (unit, millis) in [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)] {
        if rest >= millis {
            parts.push(format!("{}{unit}", rest / millis));
            rest %= millis;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// The address of a database without its password. An address in another form than a URL is not shown at all.
pub(super) fn without_password(url: &str) -> String {
    const MASK: &str = "***";
    let Some((scheme, rest)) = url.split_once("://") else { return MASK.to_owned() };
    // The last `@`, because a password may contain others.
    let rest = match rest.rsplit_once('@') {
        Some((login, place)) => match login.split_once(':') {
            Some((user, _)) => format!("{user}:{MASK}@{place}"),
            None => rest.to_owned(),
        },
        None => rest.to_owned(),
    };
    let Some((place, parameters)) = rest.split_once('?') else { return format!("{scheme}://{rest}") };
    let shown = parameters.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, _)) if name.to_ascii_lowercase().contains("password") => format!("{name}={MASK}"),
        Some(_) | None => parameter.to_owned(),
    });
    format!("{scheme}://{place}?{}", shown.collect::<Vec<_>>().join("&"))
}
