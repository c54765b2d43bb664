//! The library as an embedding program uses it.

mod many_runs;
mod ownership;
