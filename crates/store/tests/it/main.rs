//! Tests of the store, on every backend.

mod change_feed;
mod conformance;
mod corruption;
mod differential;
mod disk_errors;
mod lost_commits;
mod memory_faults;
mod postgres;
mod processes;
mod read_only;
mod removal;
mod tls;
