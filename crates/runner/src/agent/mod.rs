//! Speaking to the command-line program of a coding agent: how it is called, and what its output says.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `presets/` | what is known about each program, as data |
//! | `preset` | the form of that data |
//! | `path` | what leads to a value in a line of output |
//! | `call` | from a prompt to a command |
//! | `reader`, `facts` | from what it prints to what it said, used and failed at |

mod call;
#[cfg(test)]
mod calls;
mod facts;
mod path;
mod preset;
mod reader;
#[cfg(test)]
mod streams;

pub use call::{Ask, Invocation, SessionAsk, call};
pub use facts::Told;
pub use preset::{Ability, Preset, preset, preset_names};
pub use reader::Reader;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How somebody describes an agent. With a command alone it is a plain program, whose output is its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// The preset that tells how to speak to it.
    pub preset: Option<String>,
    /// The command that starts it, as a shell reads it; in the place of the preset's program where there is a preset.
    pub command: Option<String>,
    /// Arguments of its own. For a plain program `{prompt}` and `{model}` in them stand for the prompt (or its file) and the model.
    pub args: Vec<String>,
    /// The model, where a task does not say another.
    pub model: Option<String>,
    /// Variables that are set for it.
    pub env: BTreeMap<String, String>,
    /// Secrets that it is given.
    pub secrets: Vec<String>,
    /// How it gets the prompt. With a preset, [`PromptBy::Stdin`] means the preset's own way.
    pub prompt: PromptBy,
}

/// How a program gets its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptBy {
    /// On its standard input.
    #[default]
    Stdin,
    /// As an argument, which everybody on the machine can see, and which may not be long.
    Argument,
    /// In a file whose path is an argument; the file is gone when the program has ended, unless it had to be killed.
    File,
}
