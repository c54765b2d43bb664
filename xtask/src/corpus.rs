//! `cargo xtask corpus DIR`: reads and runs files that people wrote, without copying any of them.
//!
//! Every workflow in `DIR/workflows` must validate and run to its end, with a scripted agent and `--answer` for each checkpoint; each checkpoint
//! must show the options of its own phase. Files in `invalid/` and `successor/` must be refused with a position and the right code.
//! For every plan in `DIR/plans`, all tasks and checkpoints must be found (`plans`). State files in `DIR/pipelines` must have exactly the expected
//! findings (`pipelines`), and files in `DIR/specs` must become workflows (`specs`).

mod pipelines;
mod plans;
mod specs;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A run that takes longer hangs.
const LIMIT_SECONDS: &str = "120";

/// A workflow that still asks after this many answers loops.
const MOST_ANSWERS: usize = 40;

/// A scripted agent that writes files and exits like a real one.
const AGENT: &str = "\
#!/bin/sh
cat >/dev/null
echo \"# $LOCKGATE_TASK\"
echo
echo \"Stand-in for the work of $LOCKGATE_TASK in phase $LOCKGATE_PHASE, attempt $LOCKGATE_ATTEMPT.\"
";

/// Runs the command; returns false if a file was not handled correctly.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    let (directory, binary) = match arguments {
        [directory] => (PathBuf::from(directory), None),
        [directory, flag, binary] if flag == "--binary" => (PathBuf::from(directory), Some(PathBuf::from(binary))),
        _ => return Err("usage: cargo xtask corpus DIR [--binary FILE]".to_owned()),
    };
    let directory = directory.canonicalize().map_err(|error| format!("{} cannot be read: {error}", directory.display()))?;
    let lockgate = match binary {
        Some(binary) => binary.canonicalize().map_err(|error| format!("{} cannot be found: {error}", binary.display()))?,
        None => built()?,
    };
    let mut report = CorpusReport::default();
    workflows(&lockgate, &directory.join("workflows"), &mut report);
    plans::check(&lockgate, &directory.join("plans"), &mut report);
    pipelines::check(&lockgate, &directory.join("pipelines"), &mut report);
    specs::check(&lockgate, &directory.join("specs"), &mut report);
    let is_known = |name: &String| matches!(name.as_str(), "workflows" | "plans" | "pipelines" | "specs");
    let (known, others): (Vec<_>, Vec<_>) = directories_in(&directory).into_iter().partition(is_known);
    report.others.extend(others);
    if known.is_empty() {
        let known = "`workflows`, `plans`, `pipelines` and `specs`";
        return Err(format!("{} contains none of the known directories: {known}", directory.display()));
    }
    println!("{}", report.summary());
    Ok(report.failed == 0)
}

fn built() -> Result<PathBuf, String> {
    // The same selection as for the tests, so that nothing is compiled twice.
    let programs = crate::cargo::build(&["build", "--workspace", "--bins"])?;
    let lockgate = programs.into_iter().find(|product| product.target == "lockgate").map(|product| product.program);
    lockgate.ok_or_else(|| "cargo built no program `lockgate`".to_owned())
}

/// The number of files by outcome.
#[derive(Default)]
struct CorpusReport {
    ran: usize,
    answers: usize,
    refused: usize,
    named: usize,
    plans: usize,
    tasks: usize,
    pipelines: usize,
    specs: usize,
    failed: usize,
    others: Vec<String>,
}

impl CorpusReport {
    fn summary(&self) -> String {
        let Self { ran, answers, refused, named, plans, tasks, pipelines, specs, failed, others } = self;
        let others = if others.is_empty() { String::new() } else { format!("; not checked: {}", others.join(", ")) };
        let verdict = if *failed == 0 { "ok".to_owned() } else { format!("FAILED, {failed} files") };
        format!(
            "corpus: {verdict}: {ran} workflows completed with {answers} answers, {refused} invalid ones were refused, {named} were recognized as \
             successor format; {tasks} tasks were found in {plans} plans; {pipelines} state files had the expected findings, {specs} \
             specs became workflows or had errors{others}"
        )
    }

    /// Prints the result of a file, and counts it.
    fn count(&mut self, file: &Path, outcome: Result<String, String>, counted: fn(&mut Self)) {
        match outcome {
            Ok(summary) => {
                println!("ok      {}: {summary}", file.display());
                counted(self);
            }
            Err(why) => {
                println!("FAILED  {}: {why}", file.display());
                self.failed += 1;
            }
        }
    }
}

fn workflows(lockgate: &Path, directory: &Path, report: &mut CorpusReport) {
    for file in files_in(directory) {
        let outcome = runs(lockgate, &file).map(|answers| {
            report.answers += answers;
            format!("completed with {answers} answers")
        });
        report.count(&file, outcome, |report| report.ran += 1);
    }
    for file in files_in(&directory.join("invalid")) {
        report.count(&file, refused(lockgate, &file, None), |report| report.refused += 1);
    }
    for file in files_in(&directory.join("successor")) {
        report.count(&file, refused(lockgate, &file, Some("successor-format")), |report| report.named += 1);
    }
    let known = ["invalid", "successor", "templates", "subagents"];
    let others = directories_in(directory).into_iter().filter(|name| !known.contains(&name.as_str()));
    report.others.extend(others.map(|name| format!("workflows/{name}")));
}

/// Validates a workflow and runs it, starting over with one more answer whenever it asks; returns the number of answers.
fn runs(lockgate: &Path, file: &Path) -> Result<usize, String> {
    let checked = call(lockgate, None, &["validate", "--json", &file.to_string_lossy()])?;
    if checked.status.code() != Some(0) {
        return Err(format!("it is not valid: {}", messages(&checked)));
    }
    let source = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let mut answers: Vec<String> = Vec::new();
    loop {
        let root = root()?;
        let file = file.to_string_lossy();
        let mut arguments = vec!["run", &*file, "corpus", "--json", "--agent", "./agent.sh"];
        arguments.extend(answers.iter().flat_map(|answer| ["--answer", answer.as_str()]));
        let output = call(lockgate, Some(root.path()), &arguments)?;
        let view: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", messages(&output)))?;
        match output.status.code() {
            Some(0) if view["status"] == "complete" => return Ok(answers.len()),
            Some(3) if answers.len() < MOST_ANSWERS => {}
            Some(3) => return Err(format!("it still asks after {MOST_ANSWERS} answers: {}", answers.join(", "))),
            _ => return Err(format!("{}: {}", output.status, messages(&output))),
        }
        let open = view["holds"].as_array().into_iter().flatten().filter(|hold| hold["state"] == "open");
        let before = answers.len();
        for hold in open {
            answers.push(answer(hold, &source)?);
        }
        if answers.len() == before {
            return Err(format!("it waits without an open hold: {}", messages(&output)));
        }
    }
}

/// The answer that continues at a hold, after checking that its options are those of its own phase.
fn answer(hold: &Value, source: &str) -> Result<String, String> {
    let phase = hold["phase"].as_str().unwrap_or_default();
    let options: Vec<&Value> = hold["options"].as_array().into_iter().flatten().collect();
    let labels: Vec<&str> = options.iter().filter_map(|option| option["label"].as_str()).collect();
    if hold["kind"] == "checkpoint" {
        let written = written_options(source, phase);
        let expected: Vec<&str> = match written.is_empty() {
            true => vec!["Continue", "Abort"],
            false => written.iter().map(|(label, _)| label.as_str()).collect(),
        };
        if labels != expected {
            return Err(format!("the checkpoint of {phase} shows {labels:?}, but the file has {expected:?}"));
        }
        let onward = written.iter().find(|(_, action)| action == "continue").map(|(label, _)| label.clone());
        let label = onward.or(labels.first().map(|label| (*label).to_owned())).unwrap_or_default();
        return Ok(format!("{phase}={label}"));
    }
    let onward = options.iter().find(|option| option["id"] == "continue" || option["id"] == "count-as-done");
    let id = onward.or(options.first()).and_then(|option| option["id"].as_str()).unwrap_or_default();
    let address = hold["tasks"][0].as_str().unwrap_or(phase);
    Ok(format!("{address}={id}"))
}

/// The options of a phase, by label and action. They are read line by line, so that the check does not depend on the code it checks.
fn written_options(source: &str, phase: &str) -> Vec<(String, String)> {
    let plain = |text: &str| text.trim().trim_matches(|quote| quote == '"' || quote == '\'').to_owned();
    let mut options: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    let mut indent = None;
    for line in source.lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if let Some(id) = text.strip_prefix("- id:") {
            // The phases are the outermost list of items with ids.
            if *indent.get_or_insert(depth) == depth {
                inside = plain(id) == phase;
            }
        } else if let (true, Some(label)) = (inside, text.strip_prefix("- label:")) {
            options.push((plain(label), "continue".to_owned()));
        } else if let (true, Some((_, action)), Some(last)) = (inside, text.split_once("action:"), options.last_mut()) {
            last.1 = plain(action.split([',', '}']).next().unwrap_or(action));
        }
    }
    options
}

/// Whether a file is refused with a position, and with this code if one is given.
fn refused(lockgate: &Path, file: &Path, code: Option<&str>) -> Result<String, String> {
    let output = call(lockgate, None, &["validate", "--json", &file.to_string_lossy()])?;
    let view: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", messages(&output)))?;
    if output.status.code() != Some(4) {
        return Err(format!("it was not refused: {}", messages(&output)));
    }
    let problems = view[0]["problems"].as_array().into_iter().flatten();
    let mut errors = problems.filter(|problem| problem["severity"] == "error" && problem["line"].as_u64() >= Some(1));
    let Some(found) = errors.find(|problem| code.is_none_or(|code| problem["code"] == code)) else {
        return Err(format!("no error with a position and {}: {}", code.unwrap_or("any code"), messages(&output)));
    };
    Ok(format!("refused: {}:{} {}", found["line"], found["column"], found["message"].as_str().unwrap_or_default()))
}

/// A new project root with the agent in it, in which no terminal is needed.
fn root() -> Result<tempfile::TempDir, String> {
    use std::os::unix::fs::PermissionsExt;
    let text = |error: std::io::Error| error.to_string();
    let root = tempfile::tempdir().map_err(text)?;
    std::fs::create_dir(root.path().join(".lockgate")).map_err(text)?;
    std::fs::write(root.path().join(".lockgate/config.yaml"), "people: { require_terminal: false }\n").map_err(text)?;
    let agent = root.path().join("agent.sh");
    std::fs::write(&agent, AGENT).map_err(text)?;
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).map_err(text)?;
    Ok(root)
}

fn call(lockgate: &Path, root: Option<&Path>, arguments: &[&str]) -> Result<Output, String> {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", LIMIT_SECONDS]).arg(lockgate).args(arguments).stdin(Stdio::null());
    if let Some(root) = root {
        command.current_dir(root);
    }
    command.env_remove("LOCKGATE_DATABASE_URL");
    command.output().map_err(|error| format!("cannot start {}: {error}", lockgate.display()))
}

fn messages(output: &Output) -> String {
    let text = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    String::from_utf8_lossy(text).trim_end().to_owned()
}

/// The YAML files in a directory, sorted.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file() && is_yaml(path)).collect();
    files.sort();
    files
}

/// The names of the subdirectories of a directory, sorted.
fn directories_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SOURCE: &str = "\
phases:
  - id: plan
    checkpoint: { approval_required: true }
  - id: review
    tasks:
      - id: plan
    checkpoint:
      options:
        - label: \"Once more\"
          on_select: { action: repeat_phase, target: current }
        - label: Go on
          on_select:
            action: continue
  - id: ship
";

    fn hold(phase: &str, labels: &[&str]) -> Value {
        let options: Vec<Value> = labels.iter().map(|label| json!({"id": label.to_lowercase(), "label": label})).collect();
        json!({"kind": "checkpoint", "phase": phase, "tasks": [], "options": options})
    }

    #[test]
    fn a_checkpoint_is_answered_with_its_first_continuing_option() {
        assert_eq!(answer(&hold("review", &["Once more", "Go on"]), SOURCE), Ok("review=Go on".to_owned()));
        assert_eq!(answer(&hold("plan", &["Continue", "Abort"]), SOURCE), Ok("plan=Continue".to_owned()));
        let gaps = json!({"kind": "gaps", "phase": "ship", "tasks": ["ship/gap_check"], "options": [{"id": "retry"}, {"id": "continue"}]});
        assert_eq!(answer(&gaps, SOURCE), Ok("ship/gap_check=continue".to_owned()));
    }

    #[test]
    fn options_of_another_phase_are_a_failure() {
        assert!(answer(&hold("review", &["Continue", "Abort"]), SOURCE).is_err());
        assert!(answer(&hold("plan", &["Once more", "Go on"]), SOURCE).is_err());
    }
}
