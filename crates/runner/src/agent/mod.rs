//! Speaking to the command-line program of a coding agent: how it is called, and what its output says.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `presets/` | what is known about each program, as data |
//! | `preset` | the form of that data |
//! | `path` | what leads to a value in a line of output |
//! | `select` | which agent works |
//! | `call` | from a prompt to a command |
//! | `error` | why it cannot be called |
//! | `reader`, `output` | from what it prints to what it said, used and failed at |

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
