//! Checks that the licences of dependencies are compatible with "MIT OR Apache-2.0", and that none of them is known to cost more build time than it is worth.

use crate::suite::Report;
use crate::{cargo, docs};
use serde_json::Value;
use std::time::Instant;

/// Licences that require no more than a notice.
const ACCEPTED: &[&str] = &[
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The beginnings of the names of packages that must not return, and why.
const REFUSED: &[(&str, &str)] = &[("icu_", "it makes a cold build longer; see docs/design/building.md")];

/// Checks every package in the lock file.
pub(crate) fn check() -> Report {
    let started = Instant::now();
    let (checks, problems) = match packages() {
        Err(error) => (1, vec![error]),
        Ok(packages) => {
            let refused = packages.iter().filter(|(_, licence)| !accepted(licence));
            let problems = refused.map(|(name, licence)| {
                format!("{name} has the licence {licence:?}, which is not accepted; see xtask/src/licences.rs")
            });
            let problems = problems.chain(packages.iter().filter_map(|(name, _)| unwanted(name)));
            (packages.len() as u64, problems.collect())
        }
    };
    docs::report("licences of dependencies", started, checks, problems)
}

fn unwanted(name: &str) -> Option<String> {
    let (_, why) = REFUSED.iter().find(|(beginning, _)| name.starts_with(beginning))?;
    Some(format!("{name} is a dependency, but {why}; find out what needs it with `cargo tree --invert {name}`"))
}

fn packages() -> Result<Vec<(String, String)>, String> {
    let output = cargo::cargo().args(["metadata", "--format-version", "1", "--locked"]).output();
    let output = output.map_err(|error| format!("cannot start cargo: {error}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("`cargo metadata --locked` failed: {error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let packages = metadata["packages"].as_array().ok_or("`cargo metadata` lists no packages")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(packages.iter().map(|package| (text(&package["name"]), text(&package["license"]))).collect())
}

/// Whether accepted licences alone satisfy an expression such as `(MIT OR Apache-2.0) AND Unicode-3.0`.
fn accepted(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) && rest.is_empty()
}

fn any_of(rest: &mut &[&str]) -> bool {
    let mut met = all_of(rest);
    while let ["OR", more @ ..] = *rest {
        *rest = more;
        met |= all_of(rest);
    }
    met
}

fn all_of(rest: &mut &[&str]) -> bool {
    let mut met = one(rest);
    while let ["AND", more @ ..] = *rest {
        *rest = more;
        met &= one(rest);
    }
    met
}

fn one(rest: &mut &[&str]) -> bool {
    match *rest {
        ["(", more @ ..] => {
            *rest = more;
            let met = any_of(rest);
            if let [")", more @ ..] = *rest {
                *rest = more;
            }
            met
        }
        [licence, "WITH", exception, more @ ..] => {
            *rest = more;
            ACCEPTED.contains(&format!("{licence} WITH {exception}").as_str())
        }
        [licence, more @ ..] => {
            *rest = more;
            ACCEPTED.contains(licence)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_accepted_alternative_is_enough() {
        assert!(accepted("MIT OR LGPL-2.1-or-later"));
        assert!(accepted("MIT/Apache-2.0"));
        assert!(accepted("Apache-2.0 WITH LLVM-exception OR GPL-3.0"));
    }

    #[test]
    fn all_conjunctive_licences_must_be_accepted() {
        assert!(accepted("(MIT OR GPL-3.0) AND Unicode-3.0"));
        assert!(!accepted("(MIT OR Apache-2.0) AND GPL-3.0"));
    }

    #[test]
    fn unwanted_dependencies_are_named_with_the_reason() {
        assert!(unwanted("icu_segmenter").is_some_and(|problem| problem.contains("building.md")));
        assert_eq!(unwanted("serde"), None);
    }

    #[test]
    fn unknown_and_missing_licences_are_refused() {
        assert!(!accepted("GPL-3.0"));
        assert!(!accepted(""));
    }
}
