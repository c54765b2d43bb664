//! Agents in the settings, with the same keys as in a workflow file.

use crate::agent::{PromptBy, Setting};
use lockgate_engine::spec::document::{Entry, Value};
use lockgate_engine::spec::problem::Problem;
use std::collections::BTreeMap;

const EXAMPLE: &str = "{ default: claude }";
const KEYS: [&str; 7] = ["preset", "command", "args", "model", "env", "secrets", "prompt"];

pub(super) fn read(value: &Value<'_>) -> Result<BTreeMap<String, Setting>, Problem> {
    let entries = value.entries().ok_or_else(|| value.problem(format!("`agents` must be a map such as `{EXAMPLE}`"), None))?;
    entries.into_iter().map(|Entry { key, value, .. }| Ok((key, setting(&value)?))).collect()
}

fn setting(value: &Value<'_>) -> Result<Setting, Problem> {
    if let Some(command) = value.text() {
        return Ok(Setting { command: Some(filled(command, value, "an agent")?), ..Setting::default() });
    }
    let mut setting = Setting::default();
    for Entry { key, value, .. } in value.fields("an agent", "{ preset: claude }", &KEYS)? {
        match key.as_str() {
            "preset" => setting.preset = Some(known_preset(&value)?),
            "command" => setting.command = Some(text(&value, "`command`")?),
            "model" => setting.model = Some(text(&value, "`model`")?),
            "args" => setting.args = texts(&value, "`args`")?,
            "secrets" => setting.secrets = texts(&value, "`secrets`")?,
            "env" => {
                let entries = value.entries().ok_or_else(|| value.problem("`env` must be a map of names and values", None))?;
                for Entry { key, value, .. } in entries {
                    setting.env.insert(key, value.text().unwrap_or_default().to_owned());
                }
            }
            _ => setting.prompt_by = prompt_by(&value)?,
        }
    }
    if setting.preset.is_none() && setting.command.is_none() {
        return Err(value.problem("an agent needs a `preset` or a `command`", Some("write `{ preset: claude }`".to_owned())));
    }
    Ok(setting)
}

fn known_preset(value: &Value<'_>) -> Result<String, Problem> {
    let name = text(value, "`preset`")?;
    match crate::agent::preset(&name) {
        Ok(_) => Ok(name),
        Err(why) => Err(value.problem(why.to_string(), None)),
    }
}

fn prompt_by(value: &Value<'_>) -> Result<PromptBy, Problem> {
    match value.text() {
        Some("stdin") => Ok(PromptBy::Stdin),
        Some("argument") => Ok(PromptBy::Argument),
        Some("file") => Ok(PromptBy::File),
        Some(_) | None => Err(value
            .problem("`prompt` must say how the agent gets its prompt", Some("write `stdin`, `argument` or `file`".to_owned()))),
    }
}

fn text(value: &Value<'_>, what: &str) -> Result<String, Problem> {
    let text = value.text().ok_or_else(|| value.problem(format!("{what} must be text"), None))?;
    filled(text, value, what)
}

fn filled(text: &str, value: &Value<'_>, what: &str) -> Result<String, Problem> {
    match text.trim() {
        "" => Err(value.problem(format!("{what} is empty"), None)),
        text => Ok(text.to_owned()),
    }
}

fn texts(value: &Value<'_>, what: &str) -> Result<Vec<String>, Problem> {
    match value.items() {
        Some(items) => items.iter().map(|item| text(item, what)).collect(),
        None => Ok(vec![text(value, what)?]),
    }
}
