//! Tests of the runner from outside, against real folders and processes.

mod agent;
mod files;
mod fleet;
mod nobody;
mod process;
mod projection;
mod refused;
mod script;
mod simulation;
mod two_drivers;
mod worktrees;
