//! `cargo xtask mutants`: mutates the engine's decisions, and checks that its own tests notice.
//!
//! cargo-mutants makes the changes and runs the tests. Two limits apply to the result: no mutant may survive where the engine decides about
//! answers, holds, policies and gates, and few elsewhere. `crates/engine/mutants.toml` lists mutants that are equivalent to the code, each with
//! a reason.

use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "usage: cargo xtask mutants [--shard K/N] [FILE…]";

/// The files that are mutated.
const SEARCHED: [&str; 2] = ["crates/engine/src/run/**/*.rs", "crates/engine/src/hold/**/*.rs"];

/// Tests are not mutated.
const LEFT_OUT: &str = "crates/engine/src/run/tests/**";

/// The code that decides about answers, holds, policies and gates: no mutant may survive here.
const STRICT: &[&str] = &[
    "crates/engine/src/hold/",
    "crates/engine/src/run/actor.rs",
    "crates/engine/src/run/refusal.rs",
    "crates/engine/src/run/apply/holds.rs",
    "crates/engine/src/run/decide/answer.rs",
    "crates/engine/src/run/decide/answer_change.rs",
    "crates/engine/src/run/decide/overrides.rs",
    "crates/engine/src/run/advance/answers.rs",
    "crates/engine/src/run/advance/questions.rs",
    "crates/engine/src/run/phase/gates.rs",
];

/// The percentage of mutants that may survive elsewhere.
const PERCENT_ELSEWHERE: usize = 5;

/// The time limit for the tests with one mutant, in seconds; a mutant that never ends counts as noticed.
const SECONDS_EACH: &str = "120";

/// Runs the command; returns false if too many mutants survived.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    let (shard, files) = match arguments {
        [flag, shard, files @ ..] if flag == "--shard" => (Some(checked(shard)?), files),
        files => (None, files),
    };
    if files.iter().any(|file| file.starts_with('-')) {
        return Err(USAGE.to_owned());
    }
    ensure()?;
    let directory = tempfile::tempdir().map_err(|error| format!("cannot create a directory: {error}"))?;
    search(directory.path(), shard, files)?;
    let found = Found::read(&directory.path().join("mutants.out"))?;
    println!("{}", found.summary());
    Ok(found.is_good())
}

/// `K/N`, with K from 0 to N-1.
fn checked(shard: &str) -> Result<&str, String> {
    let numbers = shard.split_once('/').and_then(|(one, all)| Some((one.parse::<u32>().ok()?, all.parse::<u32>().ok()?)));
    match numbers {
        Some((one, all)) if one < all => Ok(shard),
        Some(_) | None => Err(format!("{shard:?} is not a shard: write K/N with K from 0 to N-1\n{USAGE}")),
    }
}

/// Installs cargo-mutants if it is missing.
fn ensure() -> Result<(), String> {
    let there = || Command::new("cargo").args(["mutants", "--version"]).output().is_ok_and(|output| output.status.success());
    if there() {
        return Ok(());
    }
    let install = ["install", "cargo-mutants", "--locked"];
    eprintln!("installing cargo-mutants");
    let installed = Command::new("cargo").args(install).current_dir(std::env::temp_dir()).status();
    if installed.is_ok_and(|status| status.success()) && there() {
        return Ok(());
    }
    Err(format!("cargo-mutants is missing\ninstall it: cargo {}", install.join(" ")))
}

fn search(directory: &Path, shard: Option<&str>, files: &[String]) -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.current_dir(crate::root()).args(["mutants", "--package", "lockgate-engine", "--no-shuffle", "--colors", "never"]);
    // Every mutant is built, and no test needs debug information.
    command.env("CARGO_PROFILE_DEV_DEBUG", "none");
    command.args(["--config", "crates/engine/mutants.toml", "--timeout", SECONDS_EACH, "--exclude", LEFT_OUT]);
    command.arg("--output").arg(directory);
    let searched: Vec<&str> = if files.is_empty() { SEARCHED.to_vec() } else { files.iter().map(String::as_str).collect() };
    for files in searched {
        command.args(["--file", files]);
    }
    if let Some(shard) = shard {
        command.args(["--shard", shard]);
    }
    let status = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    match status.code() {
        // All mutants were noticed, some survived, or some timed out.
        Some(0 | 2 | 3) => Ok(()),
        _ => Err(format!("cargo-mutants failed ({status})")),
    }
}

/// The outcome of all mutants.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// The number that the tests noticed, in files where some may survive.
    noticed_elsewhere: usize,
    /// The number that they noticed where none may survive.
    noticed: usize,
    /// The mutants that survived, each with its position.
    survived: Vec<String>,
}

impl Found {
    fn read(directory: &Path) -> Result<Self, String> {
        let lines = |name: &str| -> Result<Vec<String>, String> {
            let path: PathBuf = directory.join(name);
            let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        let noticed = [lines("caught.txt")?, lines("timeout.txt")?].concat();
        let (strict, elsewhere): (Vec<String>, Vec<String>) = noticed.into_iter().partition(|mutant| is_strict(mutant));
        Ok(Self { noticed: strict.len(), noticed_elsewhere: elsewhere.len(), survived: lines("missed.txt")? })
    }

    fn survived(&self, strict: bool) -> Vec<&str> {
        self.survived.iter().map(String::as_str).filter(|mutant| is_strict(mutant) == strict).collect()
    }

    fn is_good(&self) -> bool {
        let elsewhere = self.survived(false).len();
        self.survived(true).is_empty() && elsewhere * 100 <= PERCENT_ELSEWHERE * (elsewhere + self.noticed_elsewhere)
    }

    fn summary(&self) -> String {
        let (strict, elsewhere) = (self.survived(true), self.survived(false));
        let mut lines: Vec<String> = strict.iter().map(|mutant| format!("survived in decision code: {mutant}")).collect();
        lines.extend(elsewhere.iter().map(|mutant| format!("survived: {mutant}")));
        lines.push(format!("decision code: {} noticed, {} survived (limit: 0)", self.noticed, strict.len()));
        lines.push(format!(
            "elsewhere: {} noticed, {} survived (limit: {PERCENT_ELSEWHERE} %)",
            self.noticed_elsewhere,
            elsewhere.len()
        ));
        lines.join("\n")
    }
}

fn is_strict(mutant: &str) -> bool {
    STRICT.iter().any(|place| mutant.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(noticed_elsewhere: usize, survived: &[&str]) -> Found {
        Found { noticed: 10, noticed_elsewhere, survived: survived.iter().map(|&mutant| mutant.to_owned()).collect() }
    }

    #[test]
    fn no_mutant_may_survive_in_decision_code() {
        assert!(found(0, &[]).is_good());
        assert!(!found(1000, &["crates/engine/src/hold/mod.rs:1:1: replace is_declared"]).is_good());
        assert!(!found(1000, &["crates/engine/src/run/refusal.rs:1:1: replace may_decide"]).is_good());
    }

    #[test]
    fn elsewhere_five_percent_may_survive() {
        assert!(found(19, &["crates/engine/src/run/budget.rs:1:1: x"]).is_good());
        assert!(!found(18, &["crates/engine/src/run/budget.rs:1:1: x"]).is_good());
    }

    #[test]
    fn a_shard_selects_one_part() {
        assert_eq!(checked("0/4"), Ok("0/4"));
        for wrong in ["4/4", "1", "a/b", "1/0"] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_named_paths_exist() {
        for place in STRICT {
            assert!(crate::root().join(place).exists(), "{place}");
        }
    }
}
