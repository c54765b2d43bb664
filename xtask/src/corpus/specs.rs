//! EXECUTION-SPEC files: each must become a workflow with every workstream and complete a dry run, or have an error that names its fault with the
//! position.

use super::{CorpusReport, call, messages, refused, root};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Programs that the gates of real specs call; here they do nothing.
const TOOLS: [&str; 5] = ["npm", "npx", "node", "rg", "supabase"];

/// Programs that are available as they are. Nothing else can be called, so that a gate in a file does no harm.
const REAL: [&str; 2] = ["sh", "cat"];

/// Checks all files in a directory.
pub(super) fn check(lockgate: &Path, directory: &Path, report: &mut CorpusReport) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    files.sort();
    for file in files {
        report.count(&file, becomes_a_workflow(lockgate, &file), |report| report.specs += 1);
    }
}

fn becomes_a_workflow(lockgate: &Path, file: &Path) -> Result<String, String> {
    let path = file.to_string_lossy();
    let output = call(lockgate, None, &["validate", "--json", &path])?;
    let view: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", messages(&output)))?;
    let view = &view[0];
    if view["format"] != "execution-spec" {
        return Err(format!("it was read as {}", view["format"]));
    }
    if output.status.code() != Some(0) {
        // YAML errors say nothing about a workstream, and every file here is valid YAML.
        let is_yaml = view["problems"].as_array().into_iter().flatten().any(|problem| problem["code"] == "invalid-yaml");
        return if is_yaml {
            Err(format!("its YAML was not parsed: {}", messages(&output)))
        } else {
            refused(lockgate, file, None)
        };
    }
    let source = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let written = written_workstreams(&source);
    let tasks: Vec<&str> = view["tasks"].as_array().into_iter().flatten().filter_map(|task| task["id"].as_str()).collect();
    let warned = |id: &str| said_about(view, id);
    if let Some(lost) = written.iter().find(|id| !tasks.contains(id) && !warned(id)) {
        return Err(format!("workstream {lost} was dropped without a warning"));
    }
    let walked = call(lockgate, None, &["run", &path, "--dry-run", "--json"])?;
    if walked.status.code() != Some(0) {
        return Err(format!("a dry run ended with {}: {}", walked.status, messages(&walked)));
    }
    let ended = runs(lockgate, &path, view)?;
    let count = |key: &str| view[key].as_array().map_or(0, Vec::len);
    Ok(format!("{} workstreams in {} phases with {} gates; {ended}", tasks.len(), count("phases"), count("gates")))
}

/// Runs a spec with a scripted agent and stubs for the tools of its gates. Gates may fail because the files they check do not exist. In any case,
/// the state file must follow the rules and agree with the spec; only its name may break the pattern.
fn runs(lockgate: &Path, path: &str, view: &Value) -> Result<String, String> {
    let root = root()?;
    let tools = root.path().join("tools");
    std::fs::create_dir(&tools).map_err(|error| error.to_string())?;
    for (tool, program) in TOOLS.map(|tool| (tool, "true")).into_iter().chain(REAL.map(|tool| (tool, tool))) {
        std::os::unix::fs::symlink(format!("/bin/{program}"), tools.join(tool)).map_err(|error| error.to_string())?;
    }
    std::fs::write(root.path().join("tools.sh"), "PATH=$PWD/tools exec \"$@\"\n").map_err(|error| error.to_string())?;
    let phases = view["phases"].as_array().into_iter().flatten().filter(|phase| phase["checkpoint"] == true);
    let answers: Vec<String> = phases.map(|phase| format!("{}=Continue", phase["id"].as_str().unwrap_or_default())).collect();
    let program = lockgate.to_string_lossy();
    let mut arguments = vec!["tools.sh", &*program, "run", path, "--agent", "./agent.sh", "--json"];
    arguments.extend(answers.iter().flat_map(|answer| ["--answer", answer.as_str()]));
    let output = call(Path::new("sh"), Some(root.path()), &arguments)?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        return Err(format!("it ended with {}: {}", output.status, messages(&output)));
    }
    let directory = root.path().join(".claude/skills/build-pipeline/checkpoints");
    let written =
        std::fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path()).find(|path| path.is_file());
    let written = written.ok_or_else(|| format!("no state file in {}", directory.display()))?;
    let checked = call(lockgate, None, &["pipeline", "check", "--json", "--spec", path, &written.to_string_lossy()])?;
    let view: Value = serde_json::from_slice(&checked.stdout).map_err(|error| format!("{error}: {}", messages(&checked)))?;
    let findings = view[0]["findings"].as_array().into_iter().flatten().filter(|finding| finding["rule"] != "prd-pattern");
    match findings.map(Value::to_string).next() {
        Some(finding) => Err(format!("the written state file violates a rule: {finding}")),
        None if output.status.code() == Some(0) => Ok("completed, and its state file is clean".to_owned()),
        None => Ok("a gate failed without real work, and its state file is clean".to_owned()),
    }
}

fn said_about(view: &Value, id: &str) -> bool {
    let mut problems = view["problems"].as_array().into_iter().flatten().filter_map(|problem| problem["message"].as_str());
    problems.any(|message| message.contains(&format!("`{id}`")))
}

/// The ids under `workstreams`, read line by line, so that the check does not depend on the parser.
fn written_workstreams(source: &str) -> Vec<&str> {
    let inside = source.lines().skip_while(|line| line.trim_end() != "workstreams:").skip(1);
    let inside = inside.take_while(|line| line.is_empty() || line.starts_with([' ', '#', '\r']));
    let id = |line: &'_ str| line.starts_with("  ") && !line[2..].starts_with([' ', '#', '-']);
    inside.filter(|line| id(line)).filter_map(|line| line.split_once(':')).map(|(id, _)| id.trim()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_line_by_line() {
        let source = "---\nprd: x\nworkstreams:\n  WS1:\n    name: a\n\n  # note\n  WS2: {}\nexecution_phases:\n  WS3: no\n";
        assert_eq!(written_workstreams(source), ["WS1", "WS2"]);
    }
}
