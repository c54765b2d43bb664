//! Checks that examples are valid, pass their tests and run as their headers say, and that complete workflows in documents are valid.
//!
//! A line `#   $ lockgate run examples/…` in an example is run in a new project root. It must exit with 0, or with the code in a comment at its
//! end: `# exits with 2`.

use crate::docs;
use crate::suite::Report;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// An example that takes longer hangs.
const LIMIT_SECONDS: &str = "120";

/// Checks all examples with this program.
pub(crate) fn check(lockgate: &Path) -> Report {
    let root = crate::root();
    let started = Instant::now();
    let mut problems = Vec::new();
    let mut checks = 0;
    for example in examples(&root) {
        let name = example.strip_prefix(&root).unwrap_or(&example).display().to_string();
        checks += 1;
        problems.extend(refuted(validate(lockgate, &root, &name), 0, &format!("{name} is not valid")));
        let text = std::fs::read_to_string(&example).unwrap_or_default();
        let commands = commands(&text);
        if commands.is_empty() {
            problems.push(format!("{name}: add a line `#   $ lockgate run …` that shows how to run it"));
        }
        for (command, code) in commands {
            checks += 1;
            problems.extend(refuted(run(lockgate, &root, command), code, &format!("{name}: `{command}`")));
        }
    }
    checks += 1;
    problems.extend(refuted(run_tests(lockgate, &root), 0, "`lockgate test examples`"));
    // Error pages show invalid workflows; tests of the CLI compare them with the reported errors.
    let errors = root.join("docs/errors");
    for document in docs::documents(&root).into_iter().filter(|document| !document.starts_with(&errors)) {
        let text = std::fs::read_to_string(&document).unwrap_or_default();
        let name = document.strip_prefix(&root).unwrap_or(&document).display().to_string();
        for (line, workflow) in workflows(&text) {
            checks += 1;
            let outcome = tempfile::tempdir().map_err(|error| error.to_string()).and_then(|directory| {
                std::fs::write(directory.path().join("workflow.yaml"), workflow).map_err(|error| error.to_string())?;
                validate(lockgate, directory.path(), "workflow.yaml")
            });
            problems.extend(refuted(outcome, 0, &format!("{name}:{line}: this workflow is not valid")));
        }
    }
    docs::report("examples are valid and run", started, checks, problems)
}

/// All examples: workflows, and Markdown files that can be run. Their test files are not examples themselves.
fn examples(root: &Path) -> Vec<PathBuf> {
    let files = ["yaml", "md"].into_iter().flat_map(|ending| docs::files_under(&root.join("examples"), ending));
    files.filter(|path| !path.to_string_lossy().ends_with(".test.yaml")).collect()
}

/// Describes the problem if the exit code differs from the expected one.
fn refuted(outcome: Result<Output, String>, code: i32, what: &str) -> Option<String> {
    match outcome {
        Err(error) => Some(format!("{what}: {error}")),
        Ok(output) if output.status.code() == Some(code) => None,
        Ok(output) => {
            let printed = [output.stdout, output.stderr].concat();
            Some(format!("{what}: {}, not {code}\n{}", output.status, String::from_utf8_lossy(&printed).trim_end()))
        }
    }
}

fn validate(lockgate: &Path, directory: &Path, file: &str) -> Result<Output, String> {
    let mut command = Command::new(lockgate);
    command.args(["validate", file]).current_dir(directory).stdin(Stdio::null());
    command.output().map_err(|error| format!("cannot start {}: {error}", lockgate.display()))
}

/// Runs the test files of the examples.
fn run_tests(lockgate: &Path, root: &Path) -> Result<Output, String> {
    let mut command = Command::new(lockgate);
    command.args(["test", "examples"]).current_dir(root).stdin(Stdio::null());
    command.output().map_err(|error| format!("cannot start {}: {error}", lockgate.display()))
}

fn run(lockgate: &Path, root: &Path, command: &str) -> Result<Output, String> {
    let text = |error: std::io::Error| error.to_string();
    let directory = tempfile::tempdir().map_err(text)?;
    std::fs::create_dir_all(directory.path().join(".lockgate")).map_err(text)?;
    std::fs::write(directory.path().join(".lockgate/config.yaml"), "people: { require_terminal: false }\n").map_err(text)?;
    for file in examples(root) {
        let copy = directory.path().join(file.strip_prefix(root).unwrap_or(&file));
        std::fs::create_dir_all(copy.parent().unwrap_or(directory.path())).map_err(text)?;
        std::fs::copy(&file, copy).map_err(text)?;
    }
    let mut path = vec![lockgate.parent().map(Path::to_path_buf).unwrap_or_default()];
    path.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect::<Vec<PathBuf>>());
    let path = std::env::join_paths(path).map_err(|error| error.to_string())?;
    let mut limited = Command::new("timeout");
    limited.args(["--kill-after=5", LIMIT_SECONDS, "sh", "-c", command]);
    limited.current_dir(directory.path()).env("PATH", path).stdin(Stdio::null()).output().map_err(text)
}

/// The commands in the comments of an example, each with its expected exit code.
fn commands(text: &str) -> Vec<(&str, i32)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix('#')?.trim_start().strip_prefix("$ "));
    lines
        .map(|command| {
            let code = command.split("# exits with ").nth(1).and_then(|code| code.trim().parse().ok());
            (command, code.unwrap_or(0))
        })
        .collect()
}

/// Complete workflows in a document: fenced YAML that starts with a name and has phases, each with its line.
fn workflows(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut block: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut block, line.trim_end()) {
            (None, "```yaml") => block = Some((index + 2, String::new())),
            (Some(_), "```") => found.extend(block.take()),
            (Some((_, body)), line) => {
                body.push_str(line);
                body.push('\n');
            }
            (None, _) => {}
        }
    }
    found.retain(|(_, body)| body.starts_with("name:") && body.contains("\nphases:"));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_comments_with_their_exit_codes() {
        let text = "# Title\n#   $ lockgate run examples/a.yaml\n#   $ lockgate run examples/b.yaml # exits with 2\nname: a\n";
        let found = commands(text);
        assert_eq!(found[0], ("lockgate run examples/a.yaml", 0));
        assert_eq!(found[1].1, 2);
    }

    #[test]
    fn only_complete_workflows_are_extracted_from_a_document() {
        let text = "a\n```yaml\nname: x\nphases:\n  - id: a\n```\n```yaml\ncheckpoint: {}\n```\n```sh\nname: y\n```\n";
        assert_eq!(workflows(text), [(3, "name: x\nphases:\n  - id: a\n".to_owned())]);
    }
}
