//! Plans that people really wrote: every task and checkpoint of each is found, and each can be walked to its end, as can a folder of them.
//!
//! What is found is held against a plain count of tags that knows nothing but code fences and comments, so that it does not depend on what it checks.

use super::{CorpusReport, call, folders_in, root, said};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Looks at every plan in a folder and the folders in it.
pub(super) fn check(lockgate: &Path, folder: &Path, report: &mut CorpusReport) {
    for file in files_in(folder) {
        let came = found(lockgate, &file).map(|(tasks, told)| {
            report.tasks += tasks;
            told
        });
        report.count(&file, came, |report| report.plans += 1);
    }
    if !files_in(folder).is_empty() {
        report.count(folder, walked(lockgate, folder).map(|()| "walked as a whole".to_owned()), |_| {});
    }
    for name in folders_in(folder) {
        check(lockgate, &folder.join(name), report);
    }
}

/// How many tasks a plan has, when all of them were found, and what is told of it.
fn found(lockgate: &Path, file: &Path) -> Result<(usize, String), String> {
    let source = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let output = call(lockgate, None, &["validate", "--json", &file.to_string_lossy()])?;
    let view: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", said(&output)))?;
    let told = compared(&source, &view[0])?;
    walked(lockgate, file)?;
    match output.status.code() {
        Some(0) => Ok(told),
        _ => Err(format!("it is not valid: {}", said(&output))),
    }
}

/// Walks a plan or a folder of them without doing anything.
fn walked(lockgate: &Path, plans: &Path) -> Result<(), String> {
    let root = root()?;
    let output = call(lockgate, Some(root.path()), &["run", "--dry-run", &plans.to_string_lossy()])?;
    if output.status.code() == Some(0) { Ok(()) } else { Err(format!("its dry run: {}: {}", output.status, said(&output))) }
}

/// Holds what was read of a plan against its tags.
fn compared(source: &str, read: &Value) -> Result<(usize, String), String> {
    if read["format"] != "plan" {
        return Err(format!("it was taken for {}", read["format"]));
    }
    // What a plan asks for around a task, such as a decision before one that cannot be undone, is called `task-2-start`.
    let is_own = |task: &&Value| {
        let number = task["id"].as_str().and_then(|id| id.rsplit("task-").next());
        number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let tasks = read["tasks"].as_array().into_iter().flatten().filter(is_own);
    let kinds: Vec<&str> = tasks.filter_map(|task| task["kind"].as_str()).collect();
    let written = written_kinds(source);
    if kinds != written {
        return Err(format!("its tasks are {written:?}, and {kinds:?} were read"));
    }
    let mut told = kinds.join(", ");
    for problem in read["problems"].as_array().into_iter().flatten() {
        told +=
            &format!("\n        {}:{} {}", problem["line"], problem["column"], problem["message"].as_str().unwrap_or_default());
    }
    Ok((written.len(), told))
}

/// What each task must be read as, by its tag: `agent` for work, else the kind of checkpoint; what is not known is verified by a person.
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

/// The Markdown files in a folder, sorted.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
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
