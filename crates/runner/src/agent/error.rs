//! Why an agent cannot be called.

use super::preset_names;
use lockgate_engine::template::TemplateError;

/// Why an agent cannot be called.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AgentError {
    /// Nothing says which agent works.
    #[error(
        "no agent is configured{}; write `agents: {{ default: claude }}` into the workflow or into .lockgate/config.yaml, or begin a run with \
         --agent COMMAND ({} are known, any other command gets the prompt on its standard input)",
        .wanted.as_ref().map(|name| format!(" for `{name}`")).unwrap_or_default(),
        preset_names().join(", ")
    )]
    NotConfigured {
        /// The agent that was asked for, unless it is the default one.
        wanted: Option<String>,
    },
    /// A setting names a preset that is not there.
    #[error("there is no agent preset {0:?}; there are {names}", names = preset_names().join(", "))]
    NoPreset(String),
    /// The file of a preset cannot be read.
    #[error("the preset {name:?} cannot be read: {detail}")]
    UnreadablePreset {
        /// Its name.
        name: String,
        /// Why.
        detail: String,
    },
    /// The settings name neither a preset nor a command.
    #[error("an agent needs a `preset` or a `command`")]
    NoProgram,
    /// The command cannot be one.
    #[error("the agent's `command` is no command")]
    NotACommand,
    /// The name of a model or tool cannot be one.
    #[error("{name:?} is no name of a {what}")]
    NotAName {
        /// The name.
        name: String,
        /// `model` or `tool`.
        what: &'static str,
    },
    /// The id of a session cannot be one.
    #[error("{0:?} is no id of a session")]
    NotASession(String),
    /// The program of the preset cannot do what is asked for.
    #[error("the agent preset {preset:?} has no way to {what}")]
    PresetCannot {
        /// The preset.
        preset: String,
        /// What it cannot do, and what to do instead.
        what: &'static str,
    },
    /// The program of the preset reads no prompt from a file.
    #[error("the agent preset {0:?} takes no prompt from a file; leave out `prompt`")]
    PromptFile(String),
    /// A command that is no preset cannot do what is asked for.
    #[error("a plain command has no way to {0}; use an agent preset")]
    CommandCannot(&'static str),
    /// The command would not hear of the model.
    #[error("the agent's command is not told the model; put `{{model}}` into its `args`")]
    ModelNotPassed,
    /// The command wants a model.
    #[error("the agent's `args` ask for `{{model}}`, and no model is set; set `model`")]
    ModelNotSet,
    /// The command wants the prompt as an argument.
    #[error("the agent's `args` ask for `{{prompt}}`, which comes on standard input; set `prompt: argument`")]
    PromptOnStdin,
    /// The prompt does not fit into an argument.
    #[error("the prompt is too long for an argument ({bytes} bytes); set `prompt: stdin`")]
    PromptTooLong {
        /// How long it is.
        bytes: usize,
    },
    /// No argument can hold a NUL.
    #[error("an argument of the agent's command has a NUL in it")]
    Nul,
    /// An argument cannot be quoted.
    #[error(transparent)]
    Unquotable(#[from] TemplateError),
}
