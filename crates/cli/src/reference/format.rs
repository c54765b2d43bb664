//! `format.md`: every key of a workflow file, from the tables that the checks use.

use super::table::{self, Style};
use serde_json::Value;

const BEGINNING: &str = "\
# Keys of workflow files

<!-- Made by `cargo xtask docs` from the tables that the checks use; what is changed here by hand is lost. -->

One YAML document, up to 4 MB. Unknown keys are errors, with a suggestion. `lockgate schema` prints the same as JSON Schema, for editors;
[workflow.md](workflow.md) says what templates, scripts and conditions can do.

Text may be any single value: a number or `yes` is read as it is written. Durations are `30s`, `5m`, `1h 30m`, `2d` or `PT30M`; a number without a unit is
refused. Ids hold letters, digits, `-`, `_` and `.`, begin with a letter, a digit or `_`, and have at most 100 characters.

";

/// The page.
pub(super) fn page() -> String {
    let schema = lockgate_engine::spec::schema::schema();
    let mut text = BEGINNING.to_owned();
    part(&mut text, "workflow", &schema);
    let mut told = vec![];
    parts(&mut text, &mut told, &schema, &schema["$defs"]);
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// The maps that the keys of a map lead to: first those of its own keys, then what these lead to.
fn parts(text: &mut String, told: &mut Vec<String>, from: &Value, definitions: &Value) {
    let mut led = Vec::new();
    for (_, key) in from["properties"].as_object().into_iter().flatten() {
        references(key, &mut led);
    }
    led.retain(|name| !told.contains(name));
    for name in &led {
        part(text, name, &definitions[name]);
        told.push(name.clone());
    }
    for name in &led {
        parts(text, told, &definitions[name], definitions);
    }
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
                    Some(name) if key == "$ref" && !found.iter().any(|known| known == name) => found.push(name.to_owned()),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn part(text: &mut String, name: &str, schema: &Value) {
    text.push_str(&format!("## {name}\n\n{}\n", table::keys(schema, Style::Format)));
    for (rule, word) in [("oneOf", "Exactly one"), ("anyOf", "At least one")] {
        let names: Vec<String> = schema[rule]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| {
                let several = one["anyOf"].as_array().map_or_else(|| vec![one], |several| several.iter().collect());
                let names = several.into_iter().filter_map(|one| one["required"][0].as_str()).map(table::code);
                names.collect::<Vec<_>>().join(" with or without ")
            })
            .filter(|names| !names.is_empty())
            .collect();
        if !names.is_empty() {
            text.push_str(&format!("{word} of {} is needed.\n\n", names.join(", ")));
        }
    }
}
