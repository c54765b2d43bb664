//! The state machine of a run: `decide` turns a command into events, `apply` adds events to the state, `pending` derives the work
//! that remains.

mod actor;
mod advance;
pub mod agent;
pub mod apply;
pub mod budget;
pub mod command;
pub mod context;
pub mod decide;
pub mod effect;
pub mod event;
mod fork;
pub mod handover;
pub mod hash_chain;
pub mod history;
pub mod index;
pub mod issue;
pub mod outbox;
mod pending;
pub mod phase;
pub mod pipeline;
mod recover;
mod references;
pub mod refusal;
pub mod state;
pub mod team;

#[cfg(test)]
mod tests;

pub use decide::{
    Consequences, RewindConsequences, VoidedAnswer, consequences, create, decide, fire_deadlines, handle, rewind_consequences,
};
pub use fork::{Fork, ForkAs, fork};
pub use recover::{Recovered, recover};
pub use refusal::{Refusal, ReplacedBy};
pub use state::{End, Run, Status};
