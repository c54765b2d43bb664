//! Runs the command-line programs of coding agents: how to call them, and how to read their output.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `presets/` | the data for each known program |
//! | `preset` | the format of that data |
//! | `path` | paths and patterns for values in a line of output |
//! | `select` | which agent is used |
//! | `call` | builds the command for a prompt |
//! | `error` | why an agent cannot be called |
//! | `reader`, `output` | parse the output: text, usage, errors |

mod call;
#[cfg(test)]
mod call_tests;
mod error;
mod output;
mod path;
mod preset;
mod reader;
mod select;
#[cfg(test)]
mod stream_tests;

pub use call::{AgentRequest, Invocation, SessionMode, call};
pub use error::AgentError;
pub use output::AgentOutput;
pub use preset::{Ability, Preset, preset, preset_names};
pub use reader::Reader;
pub use select::{AgentSources, SelectedAgent};

pub use lockgate_engine::spec::workflow::{AgentSetting as Setting, PromptBy};
