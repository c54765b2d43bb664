//! `cargo xtask test`: everything that a change must pass.

use crate::cargo::{self, Product};
use crate::suite::{self, Report, Tally};
use crate::{agents, conformance, dist, docs, examples, licences, packages, postgres_suite};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The time limit of a package's suite, on two slow cores; five minutes if it is not listed.
const BUDGETS: &[(&str, u64)] = &[("lockgate-cli", 15 * 60), ("lockgate-runner", 10 * 60), ("lockgate-store", 8 * 60)];

/// Runs the command; returns false if something failed.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    let only = match arguments {
        [] => None,
        [flag, named] if flag == "--only" => Some(cargo::find_package(named)?),
        _ => return Err("usage: cargo xtask test [--only CRATE]".to_owned()),
    };
    packages::ensure()?;
    let selection = match &only {
        Some(package) => vec!["--package", package.as_str()],
        None => vec!["--workspace"],
    };
    println!("== building");
    let started = Instant::now();
    let built = build(&selection, only.is_none());
    let Built { suites, programs } = match built {
        Ok(built) => built,
        Err(message) => {
            let tally = Tally { failed: 1, ..Tally::default() };
            return Ok(conclude(&[Report { title: "building".into(), tally, lines: vec![message], took: started.elapsed() }]));
        }
    };
    println!("built in {} s", started.elapsed().as_secs());
    let mut reports = Vec::new();
    if let Some(Programs { lockgate, reference }) = programs {
        reports.push(licences::check());
        reports.push(docs::check());
        reports.push(docs::check_api_documentation());
        let agents = agents::build()?;
        reports.push(conformance::check(&[test_names(&suites)?, names(&agents)?].concat()));
        reports.push(examples::check(&lockgate));
        reports.push(dist::check::check(&lockgate, &reference));
    }
    for product in &suites {
        reports.push(suite::run(&product.title(), program(product), budget(&product.package)));
        reports.extend(postgres_suite::on_postgresql(product).transpose()?);
    }
    reports.push(examples_in_documentation(&selection));
    Ok(conclude(&reports))
}

/// The built programs.
struct Built {
    suites: Vec<Product>,
    /// If everything is tested.
    programs: Option<Programs>,
}

struct Programs {
    lockgate: PathBuf,
    /// The example target that writes manual pages.
    reference: PathBuf,
}

fn build(selection: &[&str], everything: bool) -> Result<Built, String> {
    let products = cargo::build(&[["test", "--no-run"].as_slice(), selection].concat())?;
    let suites = products.into_iter().filter(|product| product.test).collect();
    if !everything {
        return Ok(Built { suites, programs: None });
    }
    // The same selection as for the tests, so that features match and nothing is compiled twice.
    let programs = cargo::build(&["build", "--workspace", "--bins", "--example", "reference"])?;
    let find = |name: &str| {
        let found = programs.iter().find(|product| product.target == name).map(|product| product.program.clone());
        found.ok_or_else(|| format!("cargo built no program `{name}`"))
    };
    Ok(Built { suites, programs: Some(Programs { lockgate: find("lockgate")?, reference: find("reference")? }) })
}

/// A test program, started as cargo starts it.
pub(crate) fn program(product: &Product) -> Command {
    let mut command = Command::new(&product.program);
    command.current_dir(&product.directory).env("CARGO_MANIFEST_DIR", &product.directory);
    command
}

fn budget(package: &str) -> Duration {
    let listed = BUDGETS.iter().find(|(name, _)| *name == package);
    Duration::from_secs(listed.map_or(5 * 60, |(_, seconds)| *seconds))
}

/// The names of all tests, with their modules.
fn test_names(suites: &[Product]) -> Result<Vec<String>, String> {
    Ok(suites.iter().map(names).collect::<Result<Vec<_>, _>>()?.concat())
}

/// The names of the tests of one program, with their modules.
pub(crate) fn names(product: &Product) -> Result<Vec<String>, String> {
    let output = program(product).args(["--list", "--format", "terse"]).output();
    let output = output.map_err(|error| format!("cannot start {}: {error}", product.program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// The examples in the documentation of library crates.
fn examples_in_documentation(selection: &[&str]) -> Report {
    if let ["--package", package] = selection
        && !has_library(package)
    {
        return Report {
            title: "documentation examples".into(),
            tally: Tally::default(),
            lines: vec!["no library".into()],
            took: Duration::ZERO,
        };
    }
    let mut command = cargo::cargo();
    command.args(["test", "--quiet", "--doc"]).args(selection);
    suite::run("documentation examples", command, Duration::from_secs(5 * 60))
}

fn has_library(package: &str) -> bool {
    cargo::package_directories()
        .unwrap_or_default()
        .iter()
        .any(|directory| cargo::package_name(directory).as_deref() == Some(package) && directory.join("src/lib.rs").is_file())
}

/// Prints the summaries and, on the last line, the total.
pub(crate) fn conclude(reports: &[Report]) -> bool {
    let mut sum = Tally::default();
    println!("\n== summary");
    for report in reports {
        sum = sum.plus(&report.tally);
        let verdict = if report.tally.good() { "" } else { "FAILED: " };
        println!("-- {verdict}{} [{:.1} s]", report.title, report.took.as_secs_f64());
        report.lines.iter().for_each(|line| println!("{line}"));
    }
    if sum.ignored > 0 {
        println!("{} tests were ignored: remove or enable them, because an ignored test proves nothing", sum.ignored);
    }
    println!("{} passed, {} failed", sum.passed, sum.failed + sum.ignored);
    sum.good()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: u64, failed: u64, ignored: u64) -> Report {
        Report { title: "t".into(), tally: Tally { passed, failed, ignored }, lines: Vec::new(), took: Duration::ZERO }
    }

    #[test]
    fn one_failure_fails_the_whole_run() {
        assert!(conclude(&[report(3, 0, 0), report(1, 0, 0)]));
        assert!(!conclude(&[report(3, 0, 0), report(0, 1, 0)]));
    }

    #[test]
    fn an_ignored_test_does_not_count_as_passed() {
        assert!(!conclude(&[report(3, 0, 1)]));
    }
}
