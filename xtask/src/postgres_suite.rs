//! The end-to-end suite on PostgreSQL: the same tests once more, save those that are about the file of SQLite.

use crate::cargo::Product;
use crate::suite::{self, Report};
use crate::test;
use std::time::Duration;

/// Names the tests that are about the file of SQLite, each with its reason. A suite that has this file runs on both stores.
const SQLITE_ONLY: &str = "tests/it/sqlite_only.txt";

/// How long the suite may take there, on two slow cores.
const BUDGET: Duration = Duration::from_secs(15 * 60);

/// Runs a suite on PostgreSQL, if it is one that runs on both.
pub(crate) fn on_postgresql(product: &Product) -> Option<Result<Report, String>> {
    if product.kind != "test" {
        return None;
    }
    let listed = std::fs::read_to_string(product.folder.join(SQLITE_ONLY)).ok()?;
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
    report.lines.push(format!("{} tests are about the file of SQLite and ran there only: {SQLITE_ONLY}", sqlite_only.len()));
    Ok(report)
}

/// The tests that a list names, all of which must be there.
fn read<'a>(listed: &'a str, names: &[String]) -> Result<Vec<&'a str>, String> {
    let mut tests = Vec::new();
    for line in listed.lines() {
        match line.split_once(": ") {
            Some((test, reason)) if names.iter().any(|name| name == test) && !reason.trim().is_empty() => tests.push(test),
            Some((test, _)) => return Err(format!("{SQLITE_ONLY}: there is no test {test}, or it lacks its reason")),
            None => return Err(format!("{SQLITE_ONLY}: {line:?} is not TEST: REASON")),
        }
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_excluded_only_by_name_and_with_a_reason() {
        let names = ["trouble::full".to_owned(), "trouble::locked".to_owned()];
        assert_eq!(read("trouble::full: the file cannot grow\n", &names), Ok(vec!["trouble::full"]));
        for wrong in ["trouble::gone: renamed\n", "trouble::full\n", "trouble::full: \n", "trouble: all of them\n"] {
            assert!(read(wrong, &names).is_err(), "{wrong}");
        }
    }
}
