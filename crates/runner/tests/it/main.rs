//! Integration tests of the runner with real directories and processes.

mod agent;
mod diff;
mod files;
mod fleet;
mod no_effects;
mod outbox;
mod process;
mod refused_attempts;
mod restored_runs;
mod script;
mod simulation;
mod state_file;
mod two_drivers;
mod worktrees;
