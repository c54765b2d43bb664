//! Plans that people wrote: every task and checkpoint must be found, and a dry run of each plan and of each directory must complete.
//!
//! The result is compared with a plain count of tags that only knows code fences and comments, so that it does not depend on the parser.

use super::{CorpusReport, call, directories_in, messages, root};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Checks every plan in a directory and its subdirectories.
pub(super) fn check(lockgate: &Path, directory: &Path, report: &mut CorpusReport) {
    for file in files_in(directory) {
        let outcome = found(lockgate, &file).map(|(tasks, summary)| {
            report.tasks += tasks;
            summary
        });
        report.count(&file, outcome, |report| report.plans += 1);
    }
    if !files_in(directory).is_empty() {
        report.count(
            directory,
            walked(lockgate, directory).map(|()| "dry run of the whole directory completed".to_owned()),
            |_| {},
        );
    }
    for name in directories_in(directory) {
        check(lockgate, &directory.join(name), report);
    }
}

/// The number of tasks in a plan, if all of them were found, and a summary.
fn found(lockgate: &Path, file: &Path) -> Result<(usize, String), String> {
    let source = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let output = call(lockgate, None, &["validate", "--json", &file.to_string_lossy()])?;
    let view: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", messages(&output)))?;
    let summary = compared(&source, &view[0])?;
    walked(lockgate, file)?;
    match output.status.code() {
        Some(0) => Ok(summary),
        _ => Err(format!("it is not valid: {}", messages(&output))),
    }
}

/// Dry-runs a plan or a directory of plans.
fn walked(lockgate: &Path, plans: &Path) -> Result<(), String> {
    let root = root()?;
    let output = call(lockgate, Some(root.path()), &["run", "--dry-run", &plans.to_string_lossy()])?;
    if output.status.code() == Some(0) { Ok(()) } else { Err(format!("dry run: {}: {}", output.status, messages(&output))) }
}

/// Compares the tasks found in a plan with its tags.
fn compared(source: &str, read: &Value) -> Result<(usize, String), String> {
    if read["format"] != "plan" {
        return Err(format!("it was read as {}", read["format"]));
    }
    // Additional tasks, such as a decision before a task that cannot be undone, are called `task-2-start`.
    let is_own = |task: &&Value| {
        let number = task["id"].as_str().and_then(|id| id.rsplit("task-").next());
        number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let tasks = read["tasks"].as_array().into_iter().flatten().filter(is_own);
    let kinds: Vec<&str> = tasks.filter_map(|task| task["kind"].as_str()).collect();
    let written = written_kinds(source);
    if kinds != written {
        return Err(format!("the tags are {written:?}, but the tasks are {kinds:?}"));
    }
    let mut summary = kinds.join(", ");
    for problem in read["problems"].as_array().into_iter().flatten() {
        summary +=
            &format!("\n        {}:{} {}", problem["line"], problem["column"], problem["message"].as_str().unwrap_or_default());
    }
    Ok((written.len(), summary))
}

/// The expected kind of each task, from its tag: `agent` for work, otherwise the kind of checkpoint. A person verifies unknown kinds.
fn written_kinds(source: &str) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    let (mut in_fence, mut in_comment) = (false, false);
    for line in source.lines() {
        let text = line.trim_start();
        if !in_comment && (text.starts_with("```") || text.starts_with("~~~")) {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        let mut rest = line;
        loop {
            if in_comment {
                let Some((_, after)) = rest.split_once("-->") else { break };
                (in_comment, rest) = (false, after);
            }
            let (seen, comment) = rest.split_once("<!--").map_or((rest, None), |(seen, comment)| (seen, Some(comment)));
            kinds.extend(seen.split("<task").skip(1).filter(|tag| tag.starts_with([' ', '>', '/']) || tag.is_empty()).map(kind));
            let Some(comment) = comment else { break };
            (in_comment, rest) = (true, comment);
        }
    }
    kinds
}

fn kind(tag: &str) -> &'static str {
    let written = tag.split('>').next().unwrap_or_default();
    let written = written.split_once("type=").map(|(_, value)| value.trim_start_matches(['"', '\'']));
    match written.and_then(|value| value.split(['"', '\'', ' ']).next()) {
        Some("auto" | "tracer") | None => "agent",
        Some("checkpoint:decision") => "checkpoint:decision",
        Some("checkpoint:human-action") => "checkpoint:action",
        Some(_) => "checkpoint:verify",
    }
}

/// The Markdown files in a directory, sorted.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.is_file() && path.extension().is_some_and(|ending| ending == "md")).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SOURCE: &str = "\
<tasks>
<task type=\"auto\" tdd=\"true\">
```xml
<task type=\"auto\">
```
</task>
<!-- <task type=\"auto\">
--> <task type='checkpoint:human-verify' gate=\"blocking\"> <task type=\"checkpoint:decision\">
<task type=\"checkpoint:human-action\">
<task type=\"new\">
";

    #[test]
    fn tags_are_counted_outside_code_and_comments() {
        let expected = ["agent", "checkpoint:verify", "checkpoint:decision", "checkpoint:action", "checkpoint:verify"];
        assert_eq!(written_kinds(SOURCE), expected);
    }

    #[test]
    fn a_dropped_task_is_a_failure() {
        let task = |(at, kind): (usize, &&str)| json!({"id": format!("task-{}", at + 1), "kind": kind});
        let read = |kinds: &[&str]| {
            let around = json!({"id": "task-1-start", "kind": "checkpoint:decision"});
            let tasks: Vec<Value> = kinds.iter().enumerate().map(task).chain([around]).collect();
            json!({"format": "plan", "tasks": tasks, "problems": []})
        };
        let source = "<task type=\"auto\">\n<task type=\"checkpoint:decision\">\n";
        assert_eq!(compared(source, &read(&["agent", "checkpoint:decision"])).map(|(tasks, _)| tasks), Ok(2));
        assert!(compared(source, &read(&["agent"])).is_err());
        assert!(compared(source, &read(&["agent", "checkpoint:verify"])).is_err());
    }
}
