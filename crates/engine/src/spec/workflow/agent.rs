//! Agents in a workflow: who does a task, with which prompt, within which limits.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The name of the agent that is used by default.
pub const DEFAULT_AGENT: &str = "default";

/// How many times an agent is prompted at most for an answer that matches its schema.
pub const MAX_ASKS: u32 = 3;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentWork {
    /// A name under `agents`, or the type of a subagent. The default agent is used if none has that name.
    pub agent: Option<String>,
    pub prompt: Prompt,
    /// A template for the file in the output directory that receives the answer.
    pub output_path: Option<String>,
    pub model: Option<String>,
    pub session: Session,
    pub tools: Tools,
    /// The JSON Schema that the answer must match.
    pub output_schema: Option<Value>,
    /// How many times it is prompted at most for an answer that matches.
    pub max_asks: Option<u32>,
    /// The configuration of a subagent, passed to it as is.
    pub config: BTreeMap<String, Value>,
    /// How long it may print nothing.
    pub idle_timeout: Option<Duration>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    /// The description of the phase.
    #[default]
    Phase,
    /// A template in the workflow file. Its paths must exist.
    Text(String),
    /// A document next to the workflow file. Its paths may be missing.
    Document(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Session {
    /// A new session for each attempt.
    #[default]
    Fresh,
    /// The session in which the same agent last worked in this run.
    Same,
    /// A later attempt of the task resumes the session of the previous one.
    Resume,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tools {
    /// If not empty, only these tools are allowed.
    pub allow: Vec<String>,
    pub deny: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSetting {
    /// A known program whose output Lockgate can read.
    pub preset: Option<String>,
    /// The command; the program of the preset if absent.
    pub command: Option<String>,
    /// Further arguments. For a plain program, `{prompt}` and `{model}` are replaced by the prompt (or its file) and the model.
    pub args: Vec<String>,
    /// The model for tasks that do not set one.
    pub model: Option<String>,
    pub env: BTreeMap<String, String>,
    /// The names of the secrets that it receives.
    pub secrets: Vec<String>,
    /// How the prompt is passed. With a preset, [`PromptBy::Stdin`] means the preset's own method.
    pub prompt_by: PromptBy,
}

/// How the prompt is passed to a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptBy {
    /// On standard input.
    #[default]
    Stdin,
    /// As an argument. It is visible to everyone on the machine, and its length is limited.
    Argument,
    /// In a file whose path is an argument. The file is removed when the program ends, unless it had to be killed.
    File,
}

/// How much may be used before a person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Cost in millionths of a US dollar.
    pub max_cost_micros: Option<u64>,
    pub max_tokens: Option<u64>,
    pub max_time: Option<Duration>,
}

impl Budget {
    /// Whether it sets any limit.
    pub fn is_some(&self) -> bool {
        *self != Self::default()
    }
}
