//! Tests of the runner from outside, against real folders and processes.

mod agent;
mod files;
mod process;
mod script;
mod simulation;
