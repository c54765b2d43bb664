//! Checks `docs/conformance.md`: every requirement has one row, with existing tests or marked as open.

use crate::docs;
use crate::suite::Report;
use std::collections::BTreeSet;
use std::time::Instant;

/// The sections of the requirements, and the number of requirements in each.
const SECTIONS: &[(char, u32)] = &[('A', 16), ('B', 10), ('C', 8), ('D', 9), ('E', 12), ('F', 13), ('G', 5)];

/// Checks the table against the names of all built tests.
pub(crate) fn check(tests: &[String]) -> Report {
    let started = Instant::now();
    let text = std::fs::read_to_string(crate::root().join("docs/conformance.md")).unwrap_or_default();
    let problems = problems(&text, tests);
    docs::report("conformance table names existing tests", started, ids().len() as u64, problems)
}

fn ids() -> Vec<String> {
    SECTIONS.iter().flat_map(|(section, count)| (1..=*count).map(move |number| format!("{section}{number}"))).collect()
}

fn problems(text: &str, tests: &[String]) -> Vec<String> {
    let known: BTreeSet<&str> = tests.iter().map(|path| path.rsplit("::").next().unwrap_or(path)).collect();
    let ids = ids();
    let mut missing: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(row) = row(line) else { continue };
        let place = format!("docs/conformance.md:{}", index + 1);
        if !ids.iter().any(|id| id == row.id) {
            problems.push(format!("{place}: unknown requirement {}", row.id));
        } else if !missing.remove(row.id) {
            problems.push(format!("{place}: duplicate row for {}", row.id));
        }
        if row.place == "open" {
            if !row.tests.is_empty() {
                problems.push(format!(
                    "{place}: {} is open but names tests; fill in where it is implemented, or remove the tests",
                    row.id
                ));
            }
            continue;
        }
        if row.place.is_empty() || row.tests.is_empty() {
            problems.push(format!("{place}: {} needs a location and a test, or the mark `open`", row.id));
        }
        for test in row.tests.iter().filter(|test| !known.contains(*test)) {
            problems.push(format!("{place}: {}: no test {test}", row.id));
        }
    }
    problems.extend(missing.iter().map(|id| format!("docs/conformance.md: {id} has no row")));
    problems
}

struct Row<'a> {
    id: &'a str,
    place: &'a str,
    tests: Vec<&'a str>,
}

/// A row of the table: `| id | where | tests |`.
fn row(line: &str) -> Option<Row<'_>> {
    let cells: Vec<&str> = line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let [id, place, tests] = cells.as_slice() else { return None };
    let named = id.len() >= 2 && id.starts_with(|c: char| c.is_ascii_uppercase()) && id[1..].chars().all(|c| c.is_ascii_digit());
    named.then(|| Row { id, place, tests: tests.split('`').skip(1).step_by(2).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &str) -> String {
        let given: Vec<&str> = rows.lines().filter_map(row).map(|row| row.id).collect();
        let rest: String =
            ids().iter().filter(|id| !given.contains(&id.as_str())).map(|id| format!("| {id} | open | |\n")).collect();
        format!("| id | where | tests |\n| --- | --- | --- |\n{rows}\n{rest}")
    }

    #[test]
    fn an_open_row_and_a_row_with_its_tests_are_accepted() {
        let text = table("| A1 | `crates/engine` | `asks_to_continue`, `aborts` |");
        assert_eq!(problems(&text, &["a::asks_to_continue".into(), "aborts".into()]), Vec::<String>::new());
    }

    #[test]
    fn a_test_that_does_not_exist_is_found() {
        let text = table("| A1 | `crates/engine` | `asks_to_continue` |");
        assert_eq!(problems(&text, &["something_else".into()]), ["docs/conformance.md:3: A1: no test asks_to_continue"]);
    }

    #[test]
    fn a_row_without_a_test_that_is_not_marked_open_is_found() {
        assert_eq!(problems(&table("| A1 | `crates/engine` | |"), &[]).len(), 1);
    }

    #[test]
    fn a_missing_row_a_second_row_and_an_unknown_id_are_found() {
        let text = table("").replace("| F12 | open | |\n", "| F11 | open | |\n| H1 | open | |\n");
        assert_eq!(problems(&text, &[]).len(), 3);
    }
}
