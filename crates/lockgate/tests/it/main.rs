//! The library as an embedding program uses it.

mod authority;
mod many_runs;
mod ownership;
mod reading;
mod resuming_pipelines;
