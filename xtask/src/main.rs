//! Project tasks: `cargo xtask test`, `cargo xtask bench`, `cargo xtask soak` and others.
//!
//! | file | purpose |
//! | --- | --- |
//! | `test.rs` | everything that a change must pass |
//! | `soak.rs`, `fuzz.rs` | the long versions of the durability tests; fuzzing |
//! | `agents.rs`, `agents/` | tests of the presets with real agent programs, installed outside the tree |
//! | `mutants.rs` | mutation tests of the engine's decisions |
//! | `suite.rs` | runs one test program within a time limit and reads its summary |
//! | `postgres_suite.rs` | the end-to-end suite on PostgreSQL |
//! | `cargo.rs` | runs cargo builds, and finds the programs they produce |
//! | `packages.rs` | system packages that the tests need |
//! | `docs.rs`, `conformance.rs`, `examples.rs` | checks of documents and examples |
//! | `fixtures/` | records stores and JSON schemas that later releases must still support |
//! | `corpus.rs` | reads and runs files that people wrote |
//! | `licences.rs` | licences of dependencies, and dependencies that must not return |
//! | `dist/` | the files of a release |
//! | `linux_only.rs` | a test that system calls of Linux are in one module per crate |
//! | `bench/` | benchmarks: raw SQLite, a baseline and Lockgate, interleaved |

mod agents;
mod bench;
mod cargo;
mod conformance;
mod corpus;
mod dist;
mod docs;
mod examples;
mod fixtures;
mod fuzz;
mod licences;
#[cfg(test)]
mod linux_only;
mod mutants;
mod packages;
mod postgres_suite;
mod soak;
mod suite;
mod test;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

    test [--only CRATE]      run everything that a change must pass; --only runs the tests of one crate
    agents [--all|NAME…]     test the presets with real agent programs: codex, opencode and gemini; --all adds qwen, claude and copilot
    docs                     write the generated pages and pictures of docs/
    fixtures [NAME]          record a store with a run of every kind and the JSON schema, for tests of later releases
    corpus DIR               check files that people wrote: valid workflows must complete, invalid ones must be refused
        --binary FILE            use this lockgate instead of building one
    mutants [FILE…]          mutate the engine's decisions; its own tests must notice
        --shard K/N              run only part K of N, counted from 0
    soak [--minutes N]       run the long versions of the durability tests, fuzzing (60 minutes by default), and all mutants
    bench [NAME…]            measure speed and size: w1 to w5, pg, or all of them
    --quick                  fewer rounds and shorter histories
        --baselines              only the raw and baseline programs
        --write                  write the table to docs/benchmarks.md
    --binary FILE            measure this lockgate instead of building one
    dist                     write the files of a release to target/dist: program, Debian package, tar archive, manual pages, completions
        --binary FILE            package this lockgate instead of building one";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    let outcome = match command {
        "test" => test::command(rest),
        "agents" => agents::command(rest),
        "docs" => docs::command(rest),
        "fixtures" => fixtures::command(rest),
        "corpus" => corpus::command(rest),
        "mutants" => mutants::command(rest),
        "soak" => soak::command(rest),
        "bench" => bench::command(rest),
        "dist" => dist::command(rest),
        // Internal: the programs that the benchmark compares Lockgate with, each in its own process.
        "baseline" => bench::baseline::command(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(true)
        }
        other => Err(format!("unknown command {other:?}\n\n{USAGE}")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(4)
        }
    }
}

/// The root directory of the workspace.
fn root() -> PathBuf {
    // Set by `cargo run`; its parent is the workspace. The fallback is where xtask was compiled.
    let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&manifest).parent().map(Path::to_path_buf).unwrap_or(PathBuf::from("."))
}
