//! Tests of the store, on every backend.

mod conformance;
mod damage;
mod differential;
mod faults;
mod processes;
mod troubles;
