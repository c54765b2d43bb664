//! Subagents: tasks of agents that are listed in a file, or named by a script at run time.

use super::workflow::{AgentWork, Prompt, Task, Work};
use crate::id::TaskId;
use crate::time::parse_duration;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subagent {
    pub kind: String,
    pub config: BTreeMap<String, Value>,
}

/// The maximum number of agents that a script may start.
pub const MAX_SUBAGENTS: usize = 1_000;

/// Why the return value of a script does not name agents.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SubagentError {
    #[error("it must return a list of agents such as [{{ type: 'reviewer', config: {{}} }}]")]
    NotAList,
    #[error("it names {named} agents; the maximum is {MAX_SUBAGENTS}")]
    TooMany { named: usize },
    #[error("an agent needs a `type`: {0}")]
    NoType(Value),
    #[error("the `config` of agent `{kind}` must be a map of keys and values, not {found}")]
    ConfigNotAMap { kind: String, found: Value },
    /// The output path leads out of the output directory.
    #[error("the output path `{path}` of agent `{kind}` leads out of the output directory")]
    OutputOutside { kind: String, path: String },
}

impl Subagent {
    /// Reads the return value of a script: a list of `{type, config}` or of types.
    pub fn list(value: &Value) -> Result<Vec<Self>, SubagentError> {
        let items = match value {
            Value::Null => return Ok(Vec::new()),
            Value::Array(items) => items,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => return Err(SubagentError::NotAList),
        };
        if items.len() > MAX_SUBAGENTS {
            return Err(SubagentError::TooMany { named: items.len() });
        }
        items.iter().map(Self::one).collect()
    }

    fn one(value: &Value) -> Result<Self, SubagentError> {
        let (kind, config) = match value {
            Value::String(kind) => (Some(kind.as_str()), None),
            Value::Object(fields) => (fields.get("type").and_then(Value::as_str), fields.get("config")),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => (None, None),
        };
        let kind = kind.map(str::trim).filter(|kind| !kind.is_empty());
        let kind = kind.ok_or_else(|| SubagentError::NoType(value.clone()))?;
        let config = match config {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(Value::Object(config)) => config.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            Some(other) => return Err(SubagentError::ConfigNotAMap { kind: kind.to_owned(), found: other.clone() }),
        };
        if let Some(path) = config.get("output_path").and_then(Value::as_str)
            && (path.starts_with('/') || path.split('/').any(|part| part == ".."))
        {
            return Err(SubagentError::OutputOutside { kind: kind.to_owned(), path: path.to_owned() });
        }
        Ok(Self { kind: kind.to_owned(), config })
    }

    /// The task for this agent.
    pub fn task(&self, id: TaskId, prompts: &BTreeMap<String, String>) -> Task {
        let mut config = self.config.clone();
        let mut text = |key: &str| match config.get(key) {
            Some(Value::String(text)) => {
                let text = text.clone();
                config.remove(key);
                Some(text)
            }
            Some(_) | None => None,
        };
        let (output_path, model, own) = (text("output_path"), text("model"), text("prompt"));
        let timeout = text("timeout").and_then(|timeout| parse_duration(&timeout).ok());
        let prompt = match (own, prompts.get(&self.kind)) {
            (Some(own), _) => Prompt::Document(own),
            (None, Some(document)) => Prompt::Document(document.clone()),
            (None, None) => Prompt::Phase,
        };
        let work = AgentWork { agent: Some(self.kind.clone()), prompt, output_path, model, config, ..AgentWork::default() };
        Task { timeout, ..Task::new(id, Work::Agent(Box::new(work))) }
    }
}

/// An id for a subagent: its type if that is a valid id and free, otherwise with a number.
pub fn free_id(kind: &str, taken: &mut BTreeSet<String>) -> TaskId {
    let plain: String =
        kind.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' }).take(80).collect();
    let plain =
        if plain.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_') { plain } else { format!("a{plain}") };
    let numbered = (2..).map(|number| format!("{plain}-{number}"));
    let id = std::iter::once(plain.clone()).chain(numbered).find(|id| !taken.contains(id)).unwrap_or(plain);
    taken.insert(id.clone());
    TaskId::new(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn agents_named_by_a_script_are_parsed_or_reported() {
        let read =
            Subagent::list(&json!(["scout", {"type": "reviewer", "config": {"output_path": "r.md", "depth": 2}}])).unwrap();
        assert_eq!(read[0].kind, "scout");
        let task = read[1].task(TaskId::from("reviewer"), &BTreeMap::new());
        let work = task.agent().unwrap();
        assert_eq!((work.output_path.as_deref(), work.config.get("depth")), (Some("r.md"), Some(&json!(2))));
        assert_eq!(Subagent::list(&json!(null)).unwrap(), []);
        for bad in [
            json!("scout"),
            json!([1]),
            json!([{}]),
            json!([{"type": "x", "config": 3}]),
            json!([{"type": "x", "config": {"output_path": "../x"}}]),
        ] {
            assert!(Subagent::list(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn subagent_ids_are_valid_and_unused() {
        let mut taken = BTreeSet::new();
        let ids: Vec<String> = ["a b", "a b", "-x", "ok"].iter().map(|kind| free_id(kind, &mut taken).0).collect();
        assert_eq!(ids, ["a-b", "a-b-2", "a-x", "ok"]);
    }
}
