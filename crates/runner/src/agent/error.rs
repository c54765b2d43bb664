//! Why an agent cannot be called.

use super::preset_names;
use lockgate_engine::template::TemplateError;

/// Why an agent cannot be called.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AgentError {
    #[error(
        "no agent is configured{}; write `agents: {{ default: claude }}` into the workflow or into .lockgate/config.yaml, or start a run with \
         --agent COMMAND ({} are known, any other command gets the prompt on its standard input)",
        .wanted.as_ref().map(|name| format!(" for `{name}`")).unwrap_or_default(),
        preset_names().join(", ")
    )]
    NotConfigured {
        /// The requested agent, unless it is the default.
        wanted: Option<String>,
    },
    #[error("there is no agent preset {0:?}; available: {names}", names = preset_names().join(", "))]
    NoPreset(String),
    #[error("the preset {name:?} cannot be read: {detail}")]
    UnreadablePreset { name: String, detail: String },
    #[error("an agent needs a `preset` or a `command`")]
    NoProgram,
    #[error("the agent's `command` is not a valid command")]
    NotACommand,
    #[error("{name:?} is not a valid {what} name")]
    NotAName {
        name: String,
        /// `model` or `tool`.
        what: &'static str,
    },
    #[error("{0:?} is not a valid session id")]
    NotASession(String),
    /// The program of the preset does not support this.
    #[error("the agent preset {preset:?} cannot {what}")]
    PresetCannot { preset: String, what: &'static str },
    #[error("the agent preset {0:?} cannot read its prompt from a file; remove `prompt`")]
    PromptFile(String),
    /// A plain command does not support this.
    #[error("a plain command cannot {0}; use an agent preset")]
    CommandCannot(&'static str),
    /// The command does not receive the model.
    #[error("the agent's command does not receive the model; add `{{model}}` to its `args`")]
    ModelNotPassed,
    #[error("the agent's `args` use `{{model}}`, but no model is set; set `model`")]
    ModelNotSet,
    #[error("the agent's `args` use `{{prompt}}`, but the prompt is passed on stdin; set `prompt: argument`")]
    PromptOnStdin,
    #[error("the prompt is too long for an argument ({bytes} bytes); set `prompt: stdin`")]
    PromptTooLong {
        /// How long it is.
        bytes: usize,
    },
    #[error("an argument of the agent's command contains a NUL")]
    Nul,
    #[error(transparent)]
    Unquotable(#[from] TemplateError),
}
