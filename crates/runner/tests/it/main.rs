//! Tests of the runner from outside, against real folders and processes.

mod agent;
mod files;
mod fleet;
mod nobody;
mod process;
mod projection;
mod script;
mod simulation;
