//! Logins in the settings: how to detect a missing one, how to log in, and how to probe it.

use crate::auth_gate::{Tool, check_pattern};
use lockgate_engine::spec::document::{Entry, Value};
use lockgate_engine::spec::problem::Problem;

const EXAMPLE: &str = "{ acme: { pattern: 'session expired', login: acme login, probe: acme whoami } }";
const KEYS: [&str; 3] = ["pattern", "login", "probe"];

pub(super) fn read(value: &Value<'_>) -> Result<Vec<Tool>, Problem> {
    let entries = value.entries().ok_or_else(|| value.problem(format!("`logins` must be a map such as `{EXAMPLE}`"), None))?;
    entries.into_iter().map(|Entry { key, value, .. }| tool(key, &value)).collect()
}

fn tool(name: String, value: &Value<'_>) -> Result<Tool, Problem> {
    let mut tool = Tool { name, ..Tool::default() };
    for Entry { key, value, .. } in value.fields("a login", "{ login: acme login }", &KEYS)? {
        let text = value.text().map(str::trim).filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| value.problem(format!("`{key}` must be text"), None))?.to_owned();
        match key.as_str() {
            "pattern" => {
                check_pattern(&text)
                    .map_err(|why| value.problem(format!("`pattern` is not a valid regular expression: {why}"), None))?;
                tool.pattern = Some(text);
            }
            "login" => tool.login = Some(text),
            _ => tool.probe = Some(text),
        }
    }
    Ok(tool)
}
