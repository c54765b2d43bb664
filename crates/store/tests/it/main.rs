//! Tests of the store, on every backend.

mod changes;
mod conformance;
mod damage;
mod differential;
mod faults;
mod head;
mod postgres;
mod processes;
mod tls;
mod troubles;
mod unwritable;
