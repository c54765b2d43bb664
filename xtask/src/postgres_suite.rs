//! Runs the end-to-end suite on PostgreSQL, except for the tests of the SQLite file.

use crate::cargo::Product;
use crate::suite::{self, Report};
use crate::test;
use std::time::Duration;

/// The list of tests that need the SQLite file, each with its reason. A suite with this list runs on both stores.
const SQLITE_ONLY: &str = "tests/it/sqlite_only.txt";

/// The time limit of the suite on PostgreSQL, on two slow cores.
const BUDGET: Duration = Duration::from_secs(15 * 60);

/// Runs a suite on PostgreSQL, if it has the list.
pub(crate) fn on_postgresql(product: &Product) -> Option<Result<Report, String>> {
    if product.kind != "test" {
        return None;
    }
    let listed = std::fs::read_to_string(product.directory.join(SQLITE_ONLY)).ok()?;
    Some(test::names(product).and_then(|names| run(product, &listed, &names)))
}

fn run(product: &Product, listed: &str, names: &[String]) -> Result<Report, String> {
    let sqlite_only = read(listed, names)?;
    let mut command = test::program(product);
    command.env("LOCKGATE_TEST_STORE", "postgresql").arg("--exact");
    for test in &sqlite_only {
        command.args(["--skip", test]);
    }
    let mut report = suite::run(&format!("{} on PostgreSQL", product.title()), command, BUDGET);
    report.lines.push(format!("{} tests ran on SQLite only; see {SQLITE_ONLY}", sqlite_only.len()));
    Ok(report)
}

/// The tests in the list, all of which must exist.
fn read<'a>(listed: &'a str, names: &[String]) -> Result<Vec<&'a str>, String> {
    let mut tests = Vec::new();
    for line in listed.lines() {
        match line.split_once(": ") {
            Some((test, reason)) if names.iter().any(|name| name == test) && !reason.trim().is_empty() => tests.push(test),
            Some((test, _)) => return Err(format!("{SQLITE_ONLY}: test {test} does not exist or has no reason")),
            None => return Err(format!("{SQLITE_ONLY}: {line:?} does not have the form TEST: REASON")),
        }
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_excluded_only_by_name_and_with_a_reason() {
        let names = ["storage_errors::full".to_owned(), "storage_errors::locked".to_owned()];
        assert_eq!(read("storage_errors::full: the file cannot grow\n", &names), Ok(vec!["storage_errors::full"]));
        for wrong in [
            "storage_errors::gone: renamed\n",
            "storage_errors::full\n",
            "storage_errors::full: \n",
            "storage_errors: all of them\n",
        ] {
            assert!(read(wrong, &names).is_err(), "{wrong}");
        }
    }
}
