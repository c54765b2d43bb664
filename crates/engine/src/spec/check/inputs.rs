//! The inputs of a workflow, and converting given values to their types.

use super::Checker;
use super::fields::{Fields, Format, Key, Rule, Shape, words};
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use crate::spec::scalar;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{Input, InputError, InputKind};
use serde_json::Value;
use std::collections::BTreeMap;

const KINDS: [(&str, Kind); 5] = [
    ("string", Kind::String),
    ("number", Kind::Number),
    ("boolean", Kind::Boolean),
    ("list", Kind::List),
    ("choice", Kind::Choice),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    String,
    Number,
    Boolean,
    List,
    Choice,
}

pub(super) static INPUT: Format = Format {
    name: "input",
    what: "an input",
    known: &[
        Key::optional("type", Shape::Words(&words(&KINDS)), "The type; `choice` if there are `choices`.").default("string"),
        Key::optional("description", Shape::Text, "Shown to people who are asked for the value."),
        Key::optional("default", Shape::Any, "The value if none is given."),
        Key::optional("choices", Shape::Texts, "The allowed values."),
        Key::optional(
            "required",
            Shape::Boolean,
            "Whether a run cannot start without it. By default, true if there is no `default`.",
        ),
    ],
    later: &["pattern", "secret", "min", "max"],
    rule: Some(Rule::Needs("type", "choice", "choices")),
};

impl Checker<'_, '_> {
    /// Reads the inputs of a workflow.
    pub(super) fn inputs(&mut self, fields: &Fields<'_, '_>) -> BTreeMap<String, Input> {
        let mut inputs = BTreeMap::new();
        for entry in fields.get("inputs").and_then(|node| self.entries(node, "`inputs`")).unwrap_or_default() {
            if let Some(input) = self.input(&entry.value, &entry.key) {
                inputs.insert(entry.key.to_string(), input);
            }
        }
        inputs
    }

    fn input(&mut self, node: &Node<'_>, name: &str) -> Option<Input> {
        if node.is_null() {
            return Some(Input { description: None, kind: InputKind::String, default: None, required: true });
        }
        if let Content::Scalar(_) = &*node.content {
            let kind = self.word(node, "the type of an input", &KINDS)?;
            return Some(Input {
                description: None,
                kind: self.input_kind(kind, Vec::new(), node)?,
                default: None,
                required: true,
            });
        }
        let fields = self.fields(node, &INPUT)?;
        let choices = self.names(&fields, "choices");
        let kind = fields.get("type").and_then(|node| self.word(node, "`type`", &KINDS));
        let kind = kind.unwrap_or(if choices.is_empty() { Kind::String } else { Kind::Choice });
        let description = fields.get("description").and_then(|node| self.text(node, "`description`")).map(str::to_owned);
        let default_node = fields.get("default");
        let mut refused = Vec::new();
        let default = default_node.map(|node| scalar::to_json(node, &mut refused));
        let required = fields.get("required").and_then(|node| self.boolean(node, "`required`"));
        let kind = self.input_kind(kind, choices, node)?;
        if let (Some(node), Some(default)) = (default_node, &default)
            && let Err(why) = kind.read(default)
        {
            self.error(ProblemCode::InvalidValue, &node.span, format!("the default of `{}` {why}", shown(name)));
        }
        let required = required.unwrap_or(default.is_none());
        Some(Input { description, kind, default, required })
    }

    fn input_kind(&mut self, kind: Kind, choices: Vec<String>, node: &Node<'_>) -> Option<InputKind> {
        Some(match kind {
            Kind::String => InputKind::String,
            Kind::Number => InputKind::Number,
            Kind::Boolean => InputKind::Boolean,
            Kind::List => InputKind::List,
            Kind::Choice if choices.is_empty() => {
                self.error(ProblemCode::MissingKey, &node.span, "a `choice` needs `choices`")
                    .help("write `choices: [small, large]`");
                return None;
            }
            Kind::Choice => InputKind::Choice(choices),
        })
    }
}

impl InputKind {
    /// Converts a given value to this type, or says why it is not valid.
    pub fn read(&self, given: &Value) -> Result<Value, InputError> {
        let text = match given {
            Value::String(text) => Some(text.as_str()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let parsed = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let value = parsed.as_ref().unwrap_or(given);
        match self {
            Self::String => Ok(match given {
                Value::String(_) => given.clone(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    Value::String(given.to_string())
                }
            }),
            Self::Number if value.is_number() => Ok(value.clone()),
            Self::Number => Err(InputError::NotANumber(given.clone())),
            Self::Boolean if value.is_boolean() => Ok(value.clone()),
            Self::Boolean => Err(InputError::NotABoolean(given.clone())),
            Self::List if value.is_array() => Ok(value.clone()),
            Self::List => match text {
                Some(text) => Ok(text.split(',').map(|item| Value::String(item.trim().to_owned())).collect()),
                None => Err(InputError::NotAList(given.clone())),
            },
            Self::Choice(choices) => {
                let plain = text.map_or_else(|| given.to_string(), str::to_owned);
                if choices.contains(&plain) {
                    return Ok(Value::String(plain));
                }
                Err(InputError::NotAChoice { choices: choices.join(", "), given: given.clone() })
            }
        }
    }
}
