//! The inputs of a workflow.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A value that is given when a run starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub description: Option<String>,
    pub kind: InputKind,
    /// The value if none is given.
    pub default: Option<Value>,
    /// Whether a run cannot start without it.
    pub required: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    String,
    Number,
    Boolean,
    List,
    Choice(Vec<String>),
}

/// Why a value is not valid for an input. Completes "the input `size` …".
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InputError {
    #[error("must be a number, not {0}")]
    NotANumber(Value),
    #[error("must be true or false, not {0}")]
    NotABoolean(Value),
    #[error("must be a list, not {0}")]
    NotAList(Value),
    #[error("must be one of {choices}, not {given}")]
    NotAChoice { choices: String, given: Value },
}
