//! The core of Lockgate: workflows, runs, and the rules by which a run changes.
//!
//! Nothing here reads a clock, a file or the environment. Time, ids and the results of work come in with commands;
//! events and the list of remaining work go out.
//!
//! | module | contents |
//! | --- | --- |
//! | [`spec`] | parses and checks a workflow file, and reports all its problems together |
//! | [`run`] | commands, events, effects; `decide`, `apply`, `pending`; the context; index rows |
//! | [`template`] | text with `{{path}}` in it |
//! | [`hold`] | holds: questions, options, answers |
//! | [`snapshot`] | saved states of a run: what causes one, and which are kept |
//! | `messagepack` | reads stored events and states |
//! | [`id`], [`time`], [`digest`], [`stored_value`], [`code`], [`plural`] | small types and functions that the other modules use |

pub mod code;
pub mod digest;
pub mod hold;
pub mod id;
mod messagepack;
pub mod plural;
pub mod run;
pub mod snapshot;
pub mod spec;
pub mod stored_value;
pub mod template;
pub mod time;
