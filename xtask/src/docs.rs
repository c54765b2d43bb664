//! Checks that documents name only existing files: in backticks, in commands and in links. Also `cargo xtask docs`, which generates pages from the code.

use crate::suite::{Report, Tally};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Paths that start with one of these are in the repository.
const TOP_LEVEL: &[&str] = &["crates/", "docs/", "examples/", "fuzz/", "xtask/", ".ci/", ".cargo/"];

/// Writes generated pages and pictures. An example target of the program generates them, and its tests compare them.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask docs".to_owned());
    }
    let mut command = crate::cargo::cargo();
    command.args(["run", "--quiet", "--package", "lockgate-cli", "--example", "reference"]);
    let status = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    Ok(status.success())
}

pub(crate) fn check() -> Report {
    let root = crate::root();
    let started = Instant::now();
    let documents = documents(&root);
    let mut problems = Vec::new();
    for document in &documents {
        let text = std::fs::read_to_string(document).unwrap_or_default();
        let directory = document.parent().unwrap_or(&root);
        for (line, path) in named_paths(&text) {
            if !exists(&root, directory, &path) {
                let shown = document.strip_prefix(&root).unwrap_or(document).display();
                problems.push(format!("{shown}:{line}: {path} does not exist; fix the document or add the file"));
            }
        }
    }
    let checks = documents.len() as u64;
    report("documents name existing files", started, checks, problems)
}

/// Builds the documentation of all crates; every warning, such as a broken link, is a problem.
pub(crate) fn check_api_documentation() -> Report {
    let started = Instant::now();
    let mut command = crate::cargo::cargo();
    command.args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    let problems = match command.output() {
        Ok(output) if output.status.success() => Vec::new(),
        Ok(output) => vec![String::from_utf8_lossy(&output.stderr).into_owned()],
        Err(error) => vec![format!("cannot start cargo: {error}")],
    };
    report("the API documentation has no warnings", started, 1, problems)
}

/// Creates a report in which each problem is a failure.
pub(crate) fn report(title: &str, started: Instant, checks: u64, problems: Vec<String>) -> Report {
    println!("\n== {title}");
    problems.iter().for_each(|problem| println!("{problem}"));
    let failed = problems.len() as u64;
    // A check counts as one test, however many files it covers, so that the total stays a number of tests.
    let tally = Tally { passed: u64::from(failed == 0), failed, ignored: 0 };
    let summary = format!("{}: {} checked, {failed} problems", if failed == 0 { "ok" } else { "FAILED" }, checks);
    println!("{summary}");
    Report { title: title.to_owned(), tally, lines: problems.into_iter().chain([summary]).collect(), took: started.elapsed() }
}

/// The Markdown files of the repository.
pub(crate) fn documents(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    for directory in ["docs", "examples", "crates", "fuzz", "xtask"] {
        found.extend(files_under(&root.join(directory), "md"));
    }
    found.sort();
    found
}

/// All files under a directory with this extension.
pub(crate) fn files_under(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        for path in std::fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn exists(root: &Path, directory: &Path, path: &str) -> bool {
    root.join(path).exists() || directory.join(path).exists()
}

/// The paths in a document, with their lines: in backticks, in fenced commands, in links.
fn named_paths(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let words: Vec<&str> = if fenced {
            line.split(|c: char| c.is_whitespace() || "\"'`,;()".contains(c)).collect()
        } else {
            line.split('`').skip(1).step_by(2).flat_map(str::split_whitespace).collect()
        };
        found.extend(words.into_iter().filter_map(repository_path).map(|path| (index + 1, path)));
        if !fenced {
            found.extend(links(line).into_iter().map(|path| (index + 1, path)));
        }
    }
    found
}

/// Names of files that users have, which are not in the repository.
const OF_USERS: [&str; 3] = ["PLAN.md", "SUMMARY.md", "SPEC.md"];

/// The path in a word, if it refers to a file of the repository.
fn repository_path(word: &str) -> Option<String> {
    let word = word.trim_end_matches(['.', ':', ',']);
    if OF_USERS.contains(&word) {
        return None;
    }
    if word.contains(['*', '<', '{', '$', '…']) {
        return None;
    }
    let top_level_file = !word.contains('/')
        && [".md", ".toml"].iter().any(|end| word.ends_with(end))
        && word.chars().next().is_some_and(char::is_uppercase)
        && word.chars().filter(|c| c.is_alphabetic()).take(3).all(char::is_uppercase);
    (top_level_file || TOP_LEVEL.iter().any(|top| word.starts_with(top))).then(|| word.to_owned())
}

fn links(line: &str) -> Vec<String> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with('#') && !target.starts_with("mailto:"));
    local.filter_map(|target| target.split('#').next()).filter(|path| !path.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        named_paths(text).into_iter().map(|(_, path)| path).collect()
    }

    #[test]
    fn paths_are_found_in_backticks_commands_and_links() {
        let text = "see `crates/engine/src/lib.rs` and [this](guide/x.md#part)\n```\nlockgate run examples/a.yaml\n```\n";
        assert_eq!(paths(text), ["crates/engine/src/lib.rs", "guide/x.md", "examples/a.yaml"]);
    }

    #[test]
    fn files_created_by_a_run_are_not_repository_paths() {
        assert!(
            paths("`PLAN.md`, `plan.md`, `.lockgate/config.yaml`, `phase/task`, `examples/*.yaml`, [x](https://a.b/c)")
                .is_empty()
        );
    }

    #[test]
    fn a_top_level_document_is_a_path() {
        assert_eq!(paths("`README.md` and `CHANGELOG.md:`"), ["README.md", "CHANGELOG.md"]);
    }
}
