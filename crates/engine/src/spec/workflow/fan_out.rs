//! Fan-out over a list (`for_each`) and joins (`join`).

use super::Script;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Runs a task once per item of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForEach {
    pub over: ItemSource,
    /// How many items may run in parallel; unlimited if absent.
    pub max_parallel: Option<u32>,
}

/// The source of the items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemSource {
    List(Vec<Value>),
    /// The list with this name in `vars`.
    Var(String),
    Script(Script),
    /// A template for a file in the output directory or the root. Its non-empty lines are the items.
    Lines(String),
}

/// When a task with several dependencies may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// When all of them are done. The task is left out if one of them failed.
    #[default]
    All,
    /// As soon as one of them is done. The task is left out if none of them is done in the end.
    Any,
    /// When all of them have ended, in any way.
    Done,
}
