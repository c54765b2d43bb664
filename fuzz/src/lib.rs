//! Claims about hostile input. Each target is a function from any bytes that panics when a claim is broken.
//!
//! | module | what goes in | what is claimed |
//! | --- | --- | --- |
//! | [`spec`] | a workflow file | problems with places inside the file, or a workflow that can be frozen |
//! | [`execution_spec`] | an EXECUTION-SPEC | the same, and its parts fit together |
//! | [`state_file`] | a pipeline's state file | a refusal with its place, or findings and a reading that loses nothing |
//! | [`script`] | a script or a condition | the same, and the text arrives unchanged |
//! | [`plan`] | a plan | every task is found, in its place; warnings with places inside the file |
//! | [`handover`] | what an agent printed | a block that reads back as it was, or none; nothing breaks out of the block for the next agent |
//! | [`template`], [`shell`] | a template and a value | in a shell command the value is data, whatever it holds |
//! | [`settings`] | the settings file, durations | a value or an error with its place; no password is told |
//! | [`hash_chain`] | stored commits | an error or a value with an equal stored form; the chain shows every change; folding never panics |
//! | [`state`] | folded states and definitions | the same |
//! | [`state_import`] | a state file of another tool, or what a tool printed | it is exported with every key and value; places are in the text |
//! | [`play`] | commands to a run | whatever comes in which order, the history gives the state again |
//! | [`database`] | changes of a database file | whatever was changed is an error or a finding |
//!
//! `tests/it` replays the kept inputs of `corpus/` and the [seeds](Target::seeds); `guided.rs` searches for new ones.

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

/// A claim, or several about the same input.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it is called; also the folder of its kept inputs.
    pub name: &'static str,
    /// Panics when these bytes break a claim.
    pub run: fn(&[u8]),
    /// Inputs to begin with that are made, not kept.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
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

/// Writes the inputs to begin with into a folder.
pub fn write_seeds(target: &Target, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (number, seed) in (target.seeds)().iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number:03}")), seed)?;
    }
    Ok(())
}
