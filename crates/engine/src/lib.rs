//! The pure heart of Lockgate: what a workflow says, what a run is, what may become of it.
//!
//! Nothing here reads a clock, a file or the environment. Time, ids and the results of work come in with commands;
//! events and the list of what remains to be done go out.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`spec`] | from the text of a workflow file to a checked workflow, all problems at once |
//! | [`run`] | commands, events, effects; `decide`, `apply`, `pending`; the context; index rows |
//! | [`template`] | text with `{{path}}` in it |
//! | [`hold`] | questions that wait, options, answers |
//! | [`id`], [`time`], [`digest`], [`stored_value`], [`code`], [`words`] | the small things that all of these are made of |

pub mod code;
pub mod digest;
pub mod hold;
pub mod id;
pub mod run;
pub mod spec;
pub mod stored_value;
pub mod template;
pub mod time;
pub mod words;
