//! Properties that must hold for hostile input. Each target is a function of arbitrary bytes that panics if a property is violated.
//!
//! | module | input | property |
//! | --- | --- | --- |
//! | [`spec`] | a workflow file | problems with positions inside the file, or a workflow that can be frozen |
//! | [`execution_spec`] | an EXECUTION-SPEC | the same, and the workflow is consistent |
//! | [`state_file`] | a pipeline's state file | an error with a position, or findings and a lossless reading |
//! | [`script`] | a script or a condition | the same, and the text arrives unchanged |
//! | [`plan`] | a plan | every task is found at its position; warnings have positions inside the file |
//! | [`handover`] | the output of an agent | a block that round-trips, or none; nothing escapes from the block for the next agent |
//! | [`template`], [`shell`] | a template and a value | in a shell command, the value is always data |
//! | [`settings`] | the settings file, durations | a value or an error with a position; no password is shown |
//! | [`hash_chain`] | stored commits | an error, or a value with an equal stored form; the chain detects every change; applying commits never panics |
//! | [`state`] | materialized states and definitions | the same |
//! | [`state_import`] | a state file of another tool, or the output of a tool | the export has every key and value; positions are in the text |
//! | [`play`] | commands to a run | in any order of commands, the history reproduces the state |
//! | [`database`] | changes to a database file | every change is an error or a finding |
//!
//! `tests/it` replays the inputs in `corpus/` and the [seeds](Target::seeds); `guided.rs` searches for new ones.

pub mod database;
pub mod execution_spec;
pub mod handover;
pub mod hash_chain;
pub mod plan;
pub mod play;
pub mod script;
pub mod settings;
pub mod shell;
pub mod spec;
pub mod state;
pub mod state_file;
pub mod state_import;
pub mod template;

use std::path::Path;

/// One or more properties for the same kind of input.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name, which is also the directory of its corpus.
    pub name: &'static str,
    /// Panics if these bytes violate a property.
    pub run: fn(&[u8]),
    /// Generated inputs to start with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

pub const TARGETS: &[Target] = &[
    Target { name: "spec", run: spec::run, seeds: spec::seeds },
    Target { name: "execution_spec", run: execution_spec::run, seeds: execution_spec::seeds },
    Target { name: "state_file", run: state_file::run, seeds: state_file::seeds },
    Target { name: "script", run: script::run, seeds: script::seeds },
    Target { name: "template", run: template::run, seeds: template::seeds },
    Target { name: "settings", run: settings::run, seeds: settings::seeds },
    Target { name: "commit", run: hash_chain::run, seeds: hash_chain::seeds },
    Target { name: "state", run: state::run, seeds: state::seeds },
    Target { name: "state_import", run: state_import::run, seeds: state_import::seeds },
    Target { name: "play", run: play::run, seeds: play::seeds },
    Target { name: "plan", run: plan::run, seeds: plan::seeds },
    Target { name: "handover", run: handover::run, seeds: handover::seeds },
    Target { name: "database", run: database::run, seeds: database::seeds },
];

/// Writes the seeds to a directory.
pub fn write_seeds(target: &Target, directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for (number, seed) in (target.seeds)().iter().enumerate() {
        std::fs::write(directory.join(format!("seed-{number:03}")), seed)?;
    }
    Ok(())
}
