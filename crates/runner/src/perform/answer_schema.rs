//! Validates an agent's answer against its JSON Schema.

use serde_json::Value;

const MAX_SCHEMA_ERRORS: usize = 5;

#[derive(Debug, thiserror::Error)]
#[error("`output_schema` is not a valid JSON Schema: {0}")]
pub(super) struct SchemaError(Box<jsonschema::ValidationError<'static>>);

pub(super) struct Schema {
    validator: jsonschema::Validator,
}

/// The result of validating an answer.
pub(super) enum Answer {
    /// Valid, as JSON text.
    Fits(String),
    /// Invalid, with the reason.
    Wrong(String),
}

impl Schema {
    pub(super) fn new(schema: &Value) -> Result<Self, SchemaError> {
        let validator = jsonschema::validator_for(schema).map_err(|error| SchemaError(Box::new(error)))?;
        Ok(Self { validator })
    }

    /// Validates an answer. The JSON may be surrounded by prose or a code fence.
    pub(super) fn answer(&self, said: Option<&str>) -> Answer {
        let Some(said) = said else { return Answer::Wrong("there was no answer".into()) };
        let Some(value) = json_in(said) else { return Answer::Wrong("the answer is not JSON".into()) };
        let faults: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(MAX_SCHEMA_ERRORS)
            .map(|error| match error.instance_path().as_str() {
                "" => error.to_string(),
                place => format!("{place}: {error}"),
            })
            .collect();
        if faults.is_empty() { Answer::Fits(value.to_string()) } else { Answer::Wrong(faults.join("; ")) }
    }
}

/// The JSON value in a text: the text itself, its last fenced block, or the part from its first brace to its last.
fn json_in(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let fenced = text.rsplit("```").nth(1).map(|inside| inside.split_once('\n').map_or(inside, |(_, rest)| rest));
    let braced = |open: char, close: char| Some(&text[text.find(open)?..=text.rfind(close)?]);
    [fenced, braced('{', '}'), braced('[', ']')].into_iter().flatten().find_map(|part| serde_json::from_str(part.trim()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reply_is_extracted_from_text_and_validated_against_its_schema() {
        let schema = Schema::new(&json!({"type": "object", "required": ["verdict"]})).unwrap();
        let fits = |said: &str| matches!(schema.answer(Some(said)), Answer::Fits(json) if json == r#"{"verdict":"ship"}"#);
        assert!(fits(r#"{"verdict": "ship"}"#));
        assert!(fits("Here it is:\n```json\n{\"verdict\": \"ship\"}\n```\nDone."));
        assert!(fits("I think {\"verdict\": \"ship\"} is right"));
        let Answer::Wrong(why) = schema.answer(Some("{}")) else { panic!("it does not fit") };
        assert!(why.contains("verdict"), "{why}");
        assert!(matches!(schema.answer(Some("no")), Answer::Wrong(_)));
        assert!(matches!(schema.answer(None), Answer::Wrong(_)));
        assert!(Schema::new(&json!({"type": 3})).is_err());
    }
}
