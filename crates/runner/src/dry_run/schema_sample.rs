//! Generates a value that matches a JSON Schema, for the keywords that are common in schemas of answers.

use serde_json::{Map, Value, json};

/// The depth limit for recursive schemas.
const DEEPEST: usize = 16;

/// The smallest value that matches a schema.
pub(super) fn schema_sample(schema: &Value) -> Value {
    of(schema, schema, 0)
}

fn of(schema: &Value, whole: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    let deeper = |schema: &Value| of(schema, whole, depth + 1);
    for known in ["const", "default"] {
        if let Some(value) = schema.get(known) {
            return value.clone();
        }
    }
    for list in ["enum", "examples"] {
        if let Some(value) = schema.get(list).and_then(|values| values.get(0)) {
            return value.clone();
        }
    }
    if let Some(place) = schema.get("$ref").and_then(Value::as_str) {
        return place.strip_prefix('#').and_then(|place| whole.pointer(place)).map_or(Value::Null, deeper);
    }
    for either in ["anyOf", "oneOf"] {
        if let Some(first) = schema.get(either).and_then(|schemas| schemas.get(0)) {
            return deeper(first);
        }
    }
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        let mut together = Map::new();
        for part in parts {
            match deeper(part) {
                Value::Object(fields) => together.extend(fields),
                other => return other,
            }
        }
        return Value::Object(together);
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or("null"),
        _ if schema.get("properties").is_some() || schema.get("required").is_some() => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    };
    match kind {
        "object" => object(schema, &deeper),
        "array" => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
            (0..least.min(100)).map(|_| deeper(items)).collect()
        }
        "integer" | "number" => {
            let least = schema.get("minimum").cloned();
            let above = schema.get("exclusiveMinimum").and_then(Value::as_f64).map(|number| json!(number.floor() as i64 + 1));
            let most = schema.get("maximum").filter(|most| most.as_f64().is_some_and(|most| most < 0.0)).cloned();
            least.or(above).or(most).unwrap_or(json!(0))
        }
        "boolean" => json!(true),
        "null" => Value::Null,
        _ => {
            let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0) as usize;
            json!(format!("{:-<width$}", "sample", width = least.min(10_000)))
        }
    }
}

fn object(schema: &Value, deeper: &dyn Fn(&Value) -> Value) -> Value {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let fields = required.map(|name| {
        let shape = schema.get("properties").and_then(|properties| properties.get(name));
        (name.to_owned(), shape.map_or(json!("sample"), deeper))
    });
    Value::Object(fields.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_valid_against_its_schema() {
        for schema in [
            json!({"type": "object", "required": ["verdict", "notes", "score"], "properties": {
                "verdict": {"enum": ["ship", "hold"]},
                "notes": {"type": "array", "minItems": 2, "items": {"type": "string", "minLength": 9}},
                "score": {"type": "integer", "minimum": 3},
                "more": {"type": "object"}
            }}),
            json!({"$defs": {"a": {"type": "number", "exclusiveMinimum": 4}}, "$ref": "#/$defs/a"}),
            json!({"anyOf": [{"type": "null"}, {"type": "string"}]}),
            json!({"allOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"type": "boolean"}}}]}),
            json!({"type": ["integer", "null"], "maximum": -2}),
            json!({"const": [1, 2]}),
            json!({}),
        ] {
            let validator = jsonschema::validator_for(&schema).unwrap();
            let schema_sample = schema_sample(&schema);
            assert!(validator.is_valid(&schema_sample), "{schema} and {schema_sample}");
        }
    }

    #[test]
    fn sampling_a_recursive_schema_terminates() {
        let endless = json!({"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#"}}});
        assert!(schema_sample(&endless).is_object());
    }
}
