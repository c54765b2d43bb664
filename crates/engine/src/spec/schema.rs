//! The format of workflow files as JSON Schema, for editors. It is generated from the tables of the checks, so it has exactly
//! their keys and words. Rules that involve several parts of a file (needs, targets, scripts, templates) are only in the checks.

use super::check::{Format, Key, Presence, Rule, Shape, WORKFLOW};
use super::workflow::Shell;
use serde_json::{Map, Value, json};

/// The types of a scalar. Each of them is read as the text that was written.
const SCALARS: [&str; 3] = ["string", "number", "boolean"];

/// The shell's syntax for variable names.
const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// The syntax of ids in [`super::read`].
const ID: &str = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$";

/// A command with `{0}` for the script file, after the program.
const SHELL_COMMAND: &str = r#"^[^'"\\]*[^'"\\\s]\s[^'"\\]*\{0\}[^'"\\]*$"#;

/// Text with more than white space.
const FILLED: &str = "\\S";

/// The schema of workflow files, in the 2020-12 dialect. Everything that the checks accept is valid under it.
pub fn schema() -> Value {
    let mut definitions = Map::new();
    let root = map(&WORKFLOW, &mut definitions);
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".into(), json!("Lockgate workflow"));
    schema.insert("description".into(), json!("Phases in order, each with tasks, gates and perhaps a checkpoint."));
    if let Value::Object(root) = root {
        schema.extend(root);
    }
    schema.insert("$defs".into(), Value::Object(definitions));
    Value::Object(schema)
}

fn map(format: &Format, definitions: &mut Map<String, Value>) -> Value {
    let properties: Map<String, Value> =
        format.known.iter().map(|known| (known.name.to_owned(), key(known, definitions))).collect();
    let required: Vec<&str> = format.known.iter().filter(|key| key.presence == Presence::Required).map(|key| key.name).collect();
    let mut schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    if let (Some(rule), Value::Object(schema)) = (format.rule, &mut schema) {
        schema.extend(between(rule));
    }
    schema
}

/// A rule that involves several keys.
fn between(rule: Rule) -> Map<String, Value> {
    let required = |names: &[&str]| names.iter().map(|name| json!({"required": [name]})).collect::<Vec<Value>>();
    let rule = match rule {
        Rule::OneOf(names) => json!({"oneOf": required(names)}),
        Rule::OneGroup(groups) => {
            let group = |names: &&[&str]| match names {
                [name] => json!({"required": [name]}),
                _ => json!({"anyOf": required(names)}),
            };
            json!({"oneOf": groups.iter().map(group).collect::<Vec<Value>>()})
        }
        Rule::AnyOf(names) => json!({"anyOf": required(names)}),
        Rule::Unless(name, other, words) => {
            let any_case = |word: &&str| -> String {
                word.chars().map(|letter| format!("[{}{}]", letter.to_ascii_uppercase(), letter.to_ascii_lowercase())).collect()
            };
            let words: Vec<String> = words.iter().map(any_case).collect();
            let pattern = format!("^\\s*({})\\s*$", words.join("|"));
            json!({"if": {"properties": {other: {"not": {"pattern": pattern}}}}, "then": {"required": [name]}})
        }
        Rule::Needs(key, word, other) => {
            json!({"if": {"properties": {key: {"const": word}}, "required": [key]}, "then": {"required": [other], "properties": {other: {"not": {"type": "null"}}}}})
        }
    };
    match rule {
        Value::Object(rule) => rule,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn key(key: &Key, definitions: &mut Map<String, Value>) -> Value {
    let described = |schema: Value| {
        let mut described = Map::new();
        described.insert("description".into(), json!(key.about));
        if let Some(default) = key.default {
            described.insert("default".into(), serde_json::from_str(default).unwrap_or_else(|_| json!(default)));
        }
        if let Value::Object(schema) = schema {
            described.extend(schema);
        }
        Value::Object(described)
    };
    match key.presence {
        Presence::Required | Presence::Valued => described(shape(&key.shape, definitions)),
        Presence::Optional => described(or_nothing(shape(&key.shape, definitions))),
    }
}

/// Also allows null, because a key without a value counts as absent.
fn or_nothing(schema: Value) -> Value {
    let Value::Object(mut fields) = schema else { return schema };
    if let Some(Value::Array(words)) = fields.get_mut("enum") {
        words.push(Value::Null);
        return Value::Object(fields);
    }
    match fields.get_mut("type") {
        Some(Value::Array(types)) => types.push(json!("null")),
        Some(one) => *one = json!([*one, "null"]),
        None => match fields.get_mut("anyOf") {
            Some(Value::Array(either)) => either.push(json!({"type": "null"})),
            Some(_) | None => return json!({"anyOf": [fields, {"type": "null"}]}),
        },
    }
    Value::Object(fields)
}

fn shape(shape: &Shape, definitions: &mut Map<String, Value>) -> Value {
    let one_or_more = |one: Value| json!({"anyOf": [one, {"type": "array", "items": one}]});
    match shape {
        Shape::Text => json!({"type": SCALARS}),
        Shape::Filled => json!({"type": SCALARS, "pattern": FILLED}),
        Shape::Id => json!({"type": SCALARS, "pattern": ID, "maxLength": 100}),
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::True => json!({"const": true}),
        Shape::Count(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Shape::Duration => json!({"type": "string", "pattern": "[0-9]", "examples": ["30s", "5m", "1h 30m", "2d", "PT30M"]}),
        Shape::Words(words) => json!({"enum": words}),
        Shape::Texts => one_or_more(json!({"type": SCALARS})),
        Shape::Variables => one_or_more(json!({"type": SCALARS, "pattern": VARIABLE})),
        Shape::Variable => json!({"type": SCALARS, "pattern": VARIABLE}),
        Shape::Environment => {
            json!({"type": "object", "propertyNames": {"pattern": VARIABLE}, "additionalProperties": {"type": SCALARS}})
        }
        Shape::Values => json!({"type": "object"}),
        Shape::Secrets(format) => {
            let source = or_nothing(reference(format, definitions));
            let names = json!({"type": "array", "items": {"type": SCALARS, "pattern": VARIABLE}});
            let sources = json!({"type": "object", "propertyNames": {"pattern": VARIABLE}, "additionalProperties": source});
            json!({"anyOf": [sources, names]})
        }
        Shape::Map(format) => reference(format, definitions),
        Shape::List(format, least) => {
            json!({"type": "array", "items": reference(format, definitions), "minItems": least})
        }
        Shape::CountOrMap(least, most, format) => {
            let count = json!({"type": "integer", "minimum": least, "maximum": most});
            json!({"anyOf": [count, reference(format, definitions)]})
        }
        Shape::Number => json!({"type": "number", "exclusiveMinimum": 0}),
        Shape::Items => json!({"anyOf": [{"type": "array"}, {"type": SCALARS, "pattern": FILLED}]}),
        Shape::Shell => json!({"anyOf": [{"enum": Shell::WORDS}, {"type": "string", "pattern": SHELL_COMMAND}]}),
        Shape::Any => json!({}),
        Shape::AnyOf(shapes) => {
            let either: Vec<Value> = shapes.iter().map(|one| self::shape(one, definitions)).collect();
            json!({"anyOf": either})
        }
        Shape::ListOf(one) => json!({"type": "array", "items": self::shape(one, definitions)}),
        Shape::MapOf(one) => json!({"type": "object", "additionalProperties": or_nothing(self::shape(one, definitions))}),
    }
}

fn reference(format: &Format, definitions: &mut Map<String, Value>) -> Value {
    if !definitions.contains_key(format.name) {
        let schema = map(format, definitions);
        definitions.insert(format.name.to_owned(), schema);
    }
    json!({"$ref": format!("#/$defs/{}", format.name)})
}

#[cfg(test)]
mod tests;
