//! What a run is and may become: `decide` turns a command into events, `apply` folds events into the state, `pending` says what remains to be done.

pub mod command;
pub mod commit;
pub mod effect;
pub mod event;
pub mod index;
