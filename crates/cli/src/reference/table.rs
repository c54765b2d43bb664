//! The keys of a JSON Schema as a Markdown table.

use serde_json::Value;

/// The kind of document that a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// YAML that people write: a key without a value counts as absent, and any scalar is accepted as a string.
    Format,
    /// JSON that programs read.
    Output,
}

/// Formats a word as inline code.
pub(super) fn code(word: &str) -> String {
    format!("`{word}`")
}

/// A table of the keys of an object.
pub(super) fn keys(schema: &Value, style: Style) -> String {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = match style {
        Style::Format => "| key | value | default | meaning |\n| --- | --- | --- | --- |\n".to_owned(),
        Style::Output => "| key | value | meaning |\n| --- | --- | --- |\n".to_owned(),
    };
    for (name, key) in schema["properties"].as_object().into_iter().flatten() {
        let needed = required.contains(&name.as_str());
        let about = key["description"].as_str().unwrap_or_default().replace('|', "\\|");
        let kind = kind(key, style);
        match style {
            Style::Format => {
                let default =
                    key.get("default").map(|default| code(&default.as_str().map_or(default.to_string(), str::to_owned)));
                let default = if needed { "required".to_owned() } else { default.unwrap_or_default() };
                text.push_str(&format!("| `{name}` | {kind} | {default} | {about} |\n"));
            }
            Style::Output => {
                let optional = if needed { "" } else { " (optional)" };
                text.push_str(&format!("| `{name}`{optional} | {kind} | {about} |\n"));
            }
        }
    }
    text
}

/// The type of a value, in words.
pub(super) fn kind(schema: &Value, style: Style) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return format!("[{name}](#{name})");
    }
    if let Some(either) = schema["anyOf"].as_array() {
        let shown = either.iter().filter(|one| style == Style::Output || one["type"] != "null");
        return shown.map(|one| kind(one, style)).collect::<Vec<_>>().join(" or ");
    }
    if let Some(words) = schema["enum"].as_array() {
        let shown = words.iter().filter(|word| style == Style::Output || !word.is_null());
        return shown.map(|word| code(word.as_str().unwrap_or("null"))).collect::<Vec<_>>().join(", ");
    }
    if let Some(only) = schema.get("const") {
        return code(&only.to_string());
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return "any value".to_owned(),
    };
    let is_string = style == Style::Format && kinds.contains(&"string");
    let shown = kinds.iter().filter(|kind| match style {
        Style::Format => **kind != "null" && (!is_string || **kind == "string"),
        Style::Output => true,
    });
    shown.map(|kind| one(kind, schema, style)).collect::<Vec<_>>().join(" or ")
}

fn one(kind: &str, schema: &Value, style: Style) -> String {
    let (array, object) = match style {
        Style::Format => ("list", "map"),
        Style::Output => ("array", "object"),
    };
    match kind {
        "string" if schema["format"] == "date-time" => "timestamp".to_owned(),
        "string" if schema.get("examples").is_some() => "duration".to_owned(),
        "string" if schema.get("maxLength").is_some() => "id".to_owned(),
        "integer" => match (schema.get("minimum"), schema.get("maximum")) {
            (Some(least), Some(most)) => format!("integer from {least} to {most}"),
            _ => "integer".to_owned(),
        },
        "array" if schema.get("items").is_some() => format!("{array} of {}", self::kind(&schema["items"], style)),
        "array" => array.to_owned(),
        "object" => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("{object} of {}", self::kind(values, style)),
            _ => object.to_owned(),
        },
        "null" => "`null`".to_owned(),
        other => other.to_owned(),
    }
}
