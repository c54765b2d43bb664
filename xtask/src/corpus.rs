//! `cargo xtask corpus DIR`: files that people really wrote are read and run as they are. Nothing of them is copied.
//!
//! Every workflow in `DIR/workflows` validates and runs to its end, with a scripted agent and `--answer` for each checkpoint; each checkpoint
//! must show the options of its own phase. What lies in `invalid/` and `successor/` must be refused, with a place and the right code.
//! Of every plan in `DIR/plans`, all tasks and checkpoints are read (`plans`). State files in `DIR/pipelines` have the findings that are expected of
//! them (`pipelines`); what lies in `DIR/specs` becomes workflows (`specs`).

mod pipelines;
mod plans;
mod specs;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A run that takes longer hangs.
const LIMIT_SECONDS: &str = "120";

/// A workflow that still asks after so many answers goes round.
const MOST_ANSWERS: usize = 40;

/// Does what an agent is asked to do, as far as files and exit codes go.
const AGENT: &str = "\
#!/bin/sh
cat >/dev/null
echo \"# $LOCKGATE_TASK\"
echo
echo \"Stand-in for the work of $LOCKGATE_TASK in phase $LOCKGATE_PHASE, attempt $LOCKGATE_ATTEMPT.\"
";

/// Runs the command; false when a file was not treated as it must be.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    let (folder, binary) = match arguments {
        [folder] => (PathBuf::from(folder), None),
        [folder, flag, binary] if flag == "--binary" => (PathBuf::from(folder), Some(PathBuf::from(binary))),
        _ => return Err("usage: cargo xtask corpus DIR [--binary FILE]".to_owned()),
    };
    let folder = folder.canonicalize().map_err(|error| format!("{} cannot be read: {error}", folder.display()))?;
    let lockgate = match binary {
        Some(binary) => binary.canonicalize().map_err(|error| format!("{} cannot be found: {error}", binary.display()))?,
        None => built()?,
    };
    let mut report = CorpusReport::default();
    workflows(&lockgate, &folder.join("workflows"), &mut report);
    plans::check(&lockgate, &folder.join("plans"), &mut report);
    pipelines::check(&lockgate, &folder.join("pipelines"), &mut report);
    specs::check(&lockgate, &folder.join("specs"), &mut report);
    let is_known = |name: &String| matches!(name.as_str(), "workflows" | "plans" | "pipelines" | "specs");
    let (known, others): (Vec<_>, Vec<_>) = folders_in(&folder).into_iter().partition(is_known);
    report.others.extend(others);
    if known.is_empty() {
        let known = "`workflows`, `plans`, `pipelines` and `specs`";
        return Err(format!("{} holds nothing that is known here; {known} are", folder.display()));
    }
    println!("{}", report.summary());
    Ok(report.failed == 0)
}

fn built() -> Result<PathBuf, String> {
    // The same selection as the tests have, so that nothing is compiled twice.
    let programs = crate::cargo::build(&["build", "--workspace", "--bins"])?;
    let lockgate = programs.into_iter().find(|product| product.target == "lockgate").map(|product| product.program);
    lockgate.ok_or_else(|| "cargo built no program `lockgate`".to_owned())
}

/// What was looked at, and what came of it.
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
        let others = if others.is_empty() { String::new() } else { format!("; not looked at: {}", others.join(", ")) };
        let verdict = if *failed == 0 { "ok".to_owned() } else { format!("FAILED, {failed} files") };
        format!(
            "corpus: {verdict}: {ran} workflows ran to their end with {answers} answers, {refused} invalid ones were refused, {named} named as \
             of the successor's format; {tasks} tasks were found in {plans} plans; {pipelines} state files had the findings that are expected, {specs} \
             specs became workflows or named their fault{others}"
        )
    }

    /// Tells what came of a file, and counts it.
    fn count(&mut self, file: &Path, came: Result<String, String>, counted: fn(&mut Self)) {
        match came {
            Ok(told) => {
                println!("ok      {}: {told}", file.display());
                counted(self);
            }
            Err(why) => {
                println!("FAILED  {}: {why}", file.display());
                self.failed += 1;
            }
        }
    }
}

fn workflows(lockgate: &Path, folder: &Path, report: &mut CorpusReport) {
    for file in files_in(folder) {
        let came = runs(lockgate, &file).map(|answers| {
            report.answers += answers;
            format!("ran to its end with {answers} answers")
        });
        report.count(&file, came, |report| report.ran += 1);
    }
    for file in files_in(&folder.join("invalid")) {
        report.count(&file, refused(lockgate, &file, None), |report| report.refused += 1);
    }
    for file in files_in(&folder.join("successor")) {
        report.count(&file, refused(lockgate, &file, Some("successor-format")), |report| report.named += 1);
    }
    let known = ["invalid", "successor", "templates", "subagents"];
    let others = folders_in(folder).into_iter().filter(|name| !known.contains(&name.as_str()));
    report.others.extend(others.map(|name| format!("workflows/{name}")));
}

/// Validates a workflow and runs it to its end, beginning anew with one more answer whenever it asks; gives how many it needed.
fn runs(lockgate: &Path, file: &Path) -> Result<usize, String> {
    let checked = call(lockgate, None, &["validate", "--json", &file.to_string_lossy()])?;
    if checked.status.code() != Some(0) {
        return Err(format!("it is not valid: {}", said(&checked)));
    }
    let source = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let mut answers: Vec<String> = Vec::new();
    loop {
        let root = root()?;
        let file = file.to_string_lossy();
        let mut arguments = vec!["run", &*file, "corpus", "--json", "--agent", "./agent.sh"];
        arguments.extend(answers.iter().flat_map(|answer| ["--answer", answer.as_str()]));
        let output = call(lockgate, Some(root.path()), &arguments)?;
        let view: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", said(&output)))?;
        match output.status.code() {
            Some(0) if view["status"] == "complete" => return Ok(answers.len()),
            Some(3) if answers.len() < MOST_ANSWERS => {}
            Some(3) => return Err(format!("it still asks after {MOST_ANSWERS} answers: {}", answers.join(", "))),
            _ => return Err(format!("{}: {}", output.status, said(&output))),
        }
        let open = view["holds"].as_array().into_iter().flatten().filter(|hold| hold["state"] == "open");
        let before = answers.len();
        for hold in open {
            answers.push(answer(hold, &source)?);
        }
        if answers.len() == before {
            return Err(format!("it waits and asks nothing: {}", said(&output)));
        }
    }
}

/// The answer that goes on at a hold, once its options are those of its own phase.
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
            return Err(format!("the checkpoint of {phase} shows {labels:?}, and the file says {expected:?}"));
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

/// The options that the file gives a phase, by label and action: read line by line, so that it does not depend on what it checks.
fn written_options(source: &str, phase: &str) -> Vec<(String, String)> {
    let plain = |text: &str| text.trim().trim_matches(|quote| quote == '"' || quote == '\'').to_owned();
    let mut options: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    let mut indent = None;
    for line in source.lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if let Some(id) = text.strip_prefix("- id:") {
            // The phases are the outermost list of things with ids.
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

/// Whether a file is refused with a place, and with this code where one is wanted.
fn refused(lockgate: &Path, file: &Path, code: Option<&str>) -> Result<String, String> {
    let output = call(lockgate, None, &["validate", "--json", &file.to_string_lossy()])?;
    let view: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", said(&output)))?;
    if output.status.code() != Some(4) {
        return Err(format!("it was not refused: {}", said(&output)));
    }
    let problems = view[0]["problems"].as_array().into_iter().flatten();
    let mut errors = problems.filter(|problem| problem["severity"] == "error" && problem["line"].as_u64() >= Some(1));
    let Some(found) = errors.find(|problem| code.is_none_or(|code| problem["code"] == code)) else {
        return Err(format!("no error with a place says {}: {}", code.unwrap_or("what is wrong"), said(&output)));
    };
    Ok(format!("refused: {}:{} {}", found["line"], found["column"], found["message"].as_str().unwrap_or_default()))
}

/// A root of its own, where no terminal is needed, with the agent in it.
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

fn said(output: &Output) -> String {
    let text = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    String::from_utf8_lossy(text).trim_end().to_owned()
}

/// The YAML files in a folder, sorted.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file() && is_yaml(path)).collect();
    files.sort();
    files
}

/// The names of the folders in a folder, sorted.
fn folders_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir());
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
