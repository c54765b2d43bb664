//! The library as an embedding program uses it.

mod authority;
mod lists_and_histories;
mod many_runs;
mod ownership;
mod pipelines_resume;
mod removal;
