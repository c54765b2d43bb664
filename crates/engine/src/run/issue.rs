//! The issue that a run works on, as it was when the run started.

use crate::stored_value::StoredValue;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// Absent for a local file that has none.
    pub number: Option<u64>,
    /// Identifies the issue in paths: its number, or the name of its file.
    pub name: String,
    pub title: String,
    /// JSON text.
    pub body: StoredValue,
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    /// Where it was read from.
    pub source: String,
}
