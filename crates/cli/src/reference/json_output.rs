//! `json.md`: what commands print with `--json`.

use super::table::{self, Style};
use serde_json::Value;

const BEGINNING: &str = "\
# JSON output

<!-- Made by `cargo xtask docs` from json.schema.json; what is changed here by hand is lost. -->

With `--json` a command prints JSON on stdout and nothing else; what it tells people goes to stderr. [json.schema.json](json.schema.json) has the same shapes
as JSON Schema, and the tests hold all that the commands print against it: a key that is not documented fails them.

What programs may rely on: keys, their types and their meanings stay as they are within a major version. New keys, new commands and new words in lists of
words may come with any version, so pass over keys that you do not know. Messages, helps and other texts for people may be worded differently at any time; codes
are stable. Absent things are absent or `null` as the tables say. Moments are UTC with milliseconds: `2026-01-31T12:00:00.000Z`. Exit codes are those of
[cli.md](cli.md).

";

/// The page.
pub(super) fn page(schema: &Value) -> String {
    let mut text = BEGINNING.to_owned();
    text += "## Commands\n\n| command | prints | |\n| --- | --- | --- |\n";
    let mut commands: Vec<(&String, &Value)> = schema["properties"].as_object().into_iter().flatten().collect();
    commands.sort_by_key(|(name, _)| *name);
    for (name, shape) in commands {
        let about = shape["description"].as_str().unwrap_or_default();
        text.push_str(&format!("| `{name}` | {} | {about} |\n", table::kind(shape, Style::Output)));
    }
    text += "| any of them | [error](#error) | Where it could not do what was asked. |\n\n";
    text += "The command that [notifications](../guide/notifications.md) start gets a [notice](#notice).\n\n";
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        let about = definition["description"].as_str().unwrap_or_default();
        text.push_str(&format!("## {name}\n\n{about}\n\n"));
        match definition.get("properties") {
            Some(_) => text += &table::keys(definition, Style::Output),
            None => text += &format!("{}\n", table::kind(definition, Style::Output)),
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

#[cfg(test)]
mod tests {
    use crate::cli;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn documented() -> Value {
        serde_json::from_str(include_str!("../../../../docs/reference/json.schema.json")).unwrap()
    }

    /// The names of all commands with `--json`, those of nested ones with the commands above them.
    fn collect_with_json(command: &clap::Command, above: &str, found: &mut BTreeSet<String>) {
        for below in command.get_subcommands() {
            let name = format!("{above}{}", below.get_name());
            collect_with_json(below, &format!("{name} "), found);
            if below.get_arguments().any(|argument| argument.get_long() == Some("json")) {
                found.insert(name);
            }
        }
    }

    #[test]
    fn every_command_with_json_has_a_documented_shape() {
        let mut commands = BTreeSet::new();
        collect_with_json(&cli::definition(), "", &mut commands);
        let documented: BTreeSet<String> = documented()["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(commands, documented);
    }

    #[test]
    fn every_shape_is_closed_described_and_used() {
        let schema = documented();
        let text = schema.to_string();
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            assert!(definition["description"].is_string(), "{name}");
            assert!(
                name == "error" || name == "notice" || text.contains(&format!("\"#/$defs/{name}\"")),
                "{name} is used nowhere"
            );
            if let Some(keys) = definition["properties"].as_object() {
                assert_eq!(definition["additionalProperties"], false, "{name}");
                assert!(keys.iter().all(|(_, key)| key.get("description").is_some() || key.get("$ref").is_some()), "{name}");
            }
        }
    }
}
