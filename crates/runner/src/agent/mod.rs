//! Speaking to the command-line program of a coding agent: how it is called, and what its output says.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `presets/` | what is known about each program, as data |
//! | `preset` | the form of that data |
//! | `path` | what leads to a value in a line of output |
//! | `choose` | which agent works |
//! | `call` | from a prompt to a command |
//! | `error` | why it cannot be called |
//! | `reader`, `facts` | from what it prints to what it said, used and failed at |

mod call;
#[cfg(test)]
mod calls;
mod choose;
mod error;
mod facts;
mod path;
mod preset;
mod reader;
#[cfg(test)]
mod streams;

pub use call::{Ask, Invocation, SessionAsk, call};
pub use choose::{Chosen, Configured};
pub use error::AgentError;
pub use facts::Told;
pub use preset::{Ability, Preset, preset, preset_names};
pub use reader::Reader;

pub use lockgate_engine::spec::workflow::{AgentSetting as Setting, PromptBy};
