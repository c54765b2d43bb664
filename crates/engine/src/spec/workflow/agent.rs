//! What a workflow says about agents: who does a task, with which words, within which bounds.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The name of the agent that works where nothing else is said.
pub const DEFAULT_AGENT: &str = "default";

/// How often an agent is asked, at most, for an answer that fits its schema.
pub const MAX_ASKS: u32 = 3;

/// Work for an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentWork {
    /// Who: a name under `agents`, or the type of a subagent. The default agent works where none is configured under it.
    pub agent: Option<String>,
    pub prompt: Prompt,
    /// The file in the output directory that its work becomes; a template.
    pub output_path: Option<String>,
    /// The model it should be.
    pub model: Option<String>,
    pub session: Session,
    /// Tools that it may use.
    pub tools: Tools,
    /// The JSON Schema that its answer must fit.
    pub output_schema: Option<Value>,
    /// How often it is asked, at most, for an answer that fits.
    pub max_asks: Option<u32>,
    /// What a subagent is configured with, told to it as it is.
    pub config: BTreeMap<String, Value>,
    /// How long it may be silent.
    pub idle_timeout: Option<Duration>,
}

/// What an agent is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    /// What the phase is for.
    #[default]
    Phase,
    /// A template of the workflow file, whose paths must lead somewhere.
    Text(String),
    /// A document beside the workflow file, whose paths may lead nowhere.
    Document(String),
}

/// Which session an agent works in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Session {
    /// A new one for each attempt.
    #[default]
    Fresh,
    /// The one in which the same agent worked last in this run.
    Same,
    /// A later attempt of the task goes on in the session of the one before.
    Resume,
}

/// Tools that an agent may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tools {
    /// Only these, when there are any.
    pub allow: Vec<String>,
    /// Not these.
    pub deny: Vec<String>,
}

/// How an agent is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSetting {
    /// A known program, whose output can be read.
    pub preset: Option<String>,
    /// The command; the preset's own program when absent.
    pub command: Option<String>,
    /// Further arguments. For a plain program `{prompt}` and `{model}` in them stand for the prompt (or its file) and the model.
    pub args: Vec<String>,
    /// The model it should be, where a task does not say.
    pub model: Option<String>,
    /// Environment variables for it.
    pub env: BTreeMap<String, String>,
    /// Names of the secrets that reach it.
    pub secrets: Vec<String>,
    /// How it gets the prompt. With a preset, [`PromptBy::Stdin`] means the preset's own way.
    pub prompt_by: PromptBy,
}

/// How a program gets the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptBy {
    /// It reads it.
    #[default]
    Stdin,
    /// As an argument, which everybody on the machine can see, and which may not be long.
    Argument,
    /// In a file whose path is an argument; the file is gone when the program has ended, unless it had to be killed.
    File,
}

/// How much may be used before a person is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Cost in millionths of a US dollar.
    pub max_cost_micros: Option<u64>,
    /// Tokens, read and written.
    pub max_tokens: Option<u64>,
    /// Time that agents work.
    pub max_time: Option<Duration>,
}

impl Budget {
    /// Whether it bounds anything.
    pub fn is_some(&self) -> bool {
        *self != Self::default()
    }
}
