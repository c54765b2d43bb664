//! The project's own chores: `cargo xtask test`, `cargo xtask bench`, `cargo xtask soak`.
//!
//! | file | what it does |
//! | --- | --- |
//! | `test.rs` | all that a change must pass |
//! | `soak.rs`, `fuzz.rs` | the long versions of the durability tests; the search for inputs that break claims |
//! | `agents.rs`, `agents/` | the presets with real agent programs, which are installed outside the tree |
//! | `mutants.rs` | small changes of the rules about people, which the tests must notice |
//! | `suite.rs` | runs one test program within a time budget and reads its summary |
//! | `postgres_suite.rs` | the end-to-end suite on PostgreSQL |
//! | `cargo.rs` | asks cargo to build, and says where the products are |
//! | `packages.rs` | system packages that the tests need |
//! | `docs.rs`, `conformance.rs`, `examples.rs` | documents say what is so; examples run |
//! | `fixtures/` | records stores and JSON shapes that later releases must still read and print |
//! | `corpus.rs` | files that people really wrote, read and run as they are |
//! | `licences.rs` | dependencies carry accepted licences |
//! | `bench/` | raw, baseline and ours, interleaved |

mod agents;
mod bench;
mod cargo;
mod conformance;
mod corpus;
mod docs;
mod examples;
mod fixtures;
mod fuzz;
mod licences;
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

  test [--only CRATE]      all that a change must pass; --only runs the tests of one crate
  agents [--all|NAME…]     the presets with real agent programs: codex, opencode and gemini; --all adds qwen, claude and copilot
  docs                     write the pages and pictures of docs/ that follow from the code
  fixtures [NAME]          record a store with a run of every kind, and the shapes of the JSON output, for later releases to be tested against
    --before-freeze          overwrite those that are there
  corpus DIR               files that people really wrote: workflows run to their end, invalid ones are refused
    --binary FILE            with this lockgate instead of building one
  mutants [FILE…]          changes the rules about people in small ways: the engine's own tests must notice
    --shard K/N              only one part of N, counted from 0
  soak [--minutes N]       the long versions of the durability tests, fuzzing (60 minutes unless told otherwise), and all mutants
  bench [NAME…]            speed and size: w1 to w5, pg, or all of them
    --quick                  fewer rounds and shorter histories
    --baselines                 only the raw and baseline programs
    --write                  put the table into docs/benchmarks.md
    --binary FILE            measure this lockgate instead of building one";

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
        // Not for people: the programs that the bench measures Lockgate against, each in a process of its own.
        "baseline" => bench::baseline::command(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(true)
        }
        other => Err(format!("there is no command {other:?}\n\n{USAGE}")),
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

/// The folder of the workspace.
fn root() -> PathBuf {
    // Set by `cargo run`; the folder above is the workspace. Falls back on where xtask was compiled from.
    let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&manifest).parent().map(Path::to_path_buf).unwrap_or(PathBuf::from("."))
}
