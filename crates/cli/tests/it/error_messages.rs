//! Messages say what to do next, and programs get them as JSON.

use crate::project::{Project, user, without_terminal};
use serde_json::Value;
use snapbox::{assert_data_eq, str};

const TINY: &str = "name: tiny\nphases: [{ id: a, tasks: [{ id: t, pass: true }] }]\n";

#[test]
fn a_missing_workflow_file_or_a_directory_is_reported_with_suggestions() {
    let project = Project::with(TINY);
    for (file, said) in [("nofile.yaml", "nofile.yaml cannot be read: there is no such file"), (".", ". is a directory")] {
        let output = project.run(&["run", file]);
        assert_eq!(output.code, Some(4), "{output:?}");
        assert!(output.stderr.contains(said), "{output:?}");
        assert!(output.stderr.contains("help: YAML files there: flow.yaml"), "{output:?}");
    }
}

#[test]
fn special_files_are_never_opened() {
    let project = Project::with(TINY);
    let mut make = std::process::Command::new("mkfifo");
    assert!(make.arg(project.path("pipe.yaml")).status().unwrap().success());
    for file in ["pipe.yaml", "/dev/zero"] {
        for command in ["validate", "run"] {
            // No process ever writes to the pipe, so opening it would block forever.
            let output = project.run(&[command, file]);
            assert_eq!(output.code, Some(4), "{output:?}");
            assert!(output.stderr.contains("is not a regular file"), "{output:?}");
        }
    }
}

#[test]
fn an_empty_feature_is_refused() {
    let project = Project::with(TINY);
    for feature in ["", "  "] {
        let output = project.run(&["run", "flow.yaml", feature]);
        assert_eq!(output.code, Some(4), "{output:?}");
        assert!(output.stderr.contains("name the feature, or leave it out"), "{output:?}");
    }
}

#[test]
fn a_failure_caused_by_the_workflow_file_suggests_a_new_run() {
    let project = Project::with("name: f\nphases: [{ id: a, tasks: [{ id: t, script: \"throw new Error('one\\\\ntwo')\" }] }]\n");
    let output = project.run(&["run", "flow.yaml", "login"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 1
--- stdout
--- stderr
run [RUN]: f (login)
phase a
  a/t started
  a/t failed after [TOOK]: Error: one
    two (line 2 of the workflow file)
run [RUN] failed: a/t failed: Error: one
    two (line 2 of the workflow file)
  fix the cause, then continue: lockgate resume [RUN]
  if you change flow.yaml: the run keeps its original definition, unless you accept the changed file when you resume it
  start a new run: lockgate run flow.yaml login

"#]]
    );
    project.write("flow.yaml", TINY);
    let output = project.run(&["resume", "login", "--changed", "keep"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let reported = output.stderr.find("have changed since it started: flow.yaml; the run keeps its original definition");
    assert!(reported.unwrap() < output.stderr.find("a/t started").unwrap(), "before anything is retried: {output:?}");
}

#[test]
fn a_failure_is_shown_with_its_last_lines_and_its_log() {
    let project = Project::with("name: f\nphases: [{ id: a, tasks: [{ id: t, run: 'seq 30; exit 7' }], gates: [] }]\n");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(1));
    let run = project.newest();
    let status = project.status(&run);
    let log = status["tasks"][0]["log"].as_str().unwrap().to_owned();
    assert!(std::fs::read_to_string(&log).unwrap().contains("\n30\n"), "{log}");
    assert!(
        status["tasks"][0]["tail"].as_str().unwrap().ends_with("30\n")
            || status["tasks"][0]["tail"].as_str().unwrap().ends_with("30")
    );
    for command in ["status", "why"] {
        let text = project.run(&[command, &run]).stdout;
        assert!(text.contains("│ 30\n") && !text.contains("│ 5\n"), "the last lines only: {text}");
        assert!(text.contains(&format!("log: {log}")), "{text}");
    }
    let why = project.json(0, &["why", &run, "--json"]);
    assert_eq!(why["reasons"][0]["failures"][0]["log"], log.as_str(), "{why}");
}

#[test]
fn a_question_about_a_failed_task_shows_how_it_failed() {
    let project = Project::with("name: f\nphases: [{ id: a, tasks: [{ id: t, run: 'echo oops; exit 7', on_fail: ask }] }]\n");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let run = project.newest();
    for command in ["status", "why"] {
        let text = project.run(&[command, &run]).stdout;
        assert!(text.contains("│ oops\n") && text.contains("log: /"), "{text}");
    }
}

#[test]
fn refused_preset_answers_say_that_nothing_was_started() {
    let project = Project::with_terminal_required();
    project.write(
        "flow.yaml",
        "name: w\nphases: [{ id: a, tasks: [{ id: t, pass: true }], checkpoint: { approval_required: true } }]\n",
    );
    let output = project.run(&["run", "flow.yaml", "--answer", "a=Continue"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.contains("no run was started"), "{output:?}");
    assert!(!project.path(".lockgate/runs").exists() && !project.path(".lockgate/lockgate.db").exists());
    let help = project.run(&["--help"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("refused because only a person may do it"), "{help}");
}

fn error_of(project: &Project, code: i32, arguments: &[&str]) -> Value {
    let value = project.json(code, arguments);
    let error = value["error"].clone();
    assert_eq!(error["exit"], code, "{value}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()) && error["help"].is_array(), "{value}");
    let code = error["code"].as_str().unwrap();
    assert_eq!(project.run(&["explain", code]).code, Some(0), "{value}");
    error
}

#[test]
fn with_json_errors_are_printed_as_json() {
    let project = Project::with(TINY);
    let error = error_of(&project, 4, &["run", "missing.yaml", "--json"]);
    assert!(error["help"][0].as_str().unwrap().contains("flow.yaml"), "{error}");
    error_of(&project, 4, &["run", "flow.yaml", "--json", "--no-such"]);
    project.write("bad.yaml", "name: bad\nphases: []\ntaks: 1\n");
    let error = error_of(&project, 4, &["run", "bad.yaml", "--json"]);
    assert!(error["message"].as_str().unwrap().contains("bad.yaml is not a valid workflow"), "{error}");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    for command in [&["status", "nobody", "--json"][..], &["why", "nobody", "--json"], &["log", "nobody", "--json"]] {
        error_of(&project, 4, command);
    }
    error_of(&project, 4, &["answer", "nothing", "1", "--json", "--no-resume"]);
    error_of(&project, 4, &["resume", &project.newest(), "--json"]);
    let plain = project.run(&["status", "nobody"]);
    assert_eq!(plain.stdout, "", "only with the flag");
    let flag = project.run(&["run", "missing.yaml", "--", "--json"]);
    assert_eq!(flag.stdout, "", "a flag of the workflow is not a flag of Lockgate");
}

#[test]
fn the_log_describes_events_in_sentences() {
    let flow = "
name: f
phases:
  - id: a
    tasks: [{ id: t, run: 'touch \"$LOCKGATE_OUTPUT_DIR/x\"', outputs: [x] }]
    checkpoint: { prompt: Good?, options: [{ label: Fine, on_select: { action: continue } }] }
";
    let project = Project::with(flow);
    assert_eq!(project.run(&["run", "flow.yaml", "login", "--answer", "a=Fine"]).code, Some(0));
    let text = project.run(&["log", &project.newest()]).stdout;
    for part in [
        &format!("the run started for \"login\" from flow.yaml  (by {} by command)", user()),
        "phase a started",
        "task a/t started",
        "task a/t finished in ",
        ", wrote x",
        "(checkpoint in phase a) asks: Good?",
        &format!("was answered \"Fine\"  (by {} in advance)", user()),
        "the run is complete",
    ] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    assert!(!text.contains('{') && !text.contains("task_started"), "no raw fields: {text}");
}

#[test]
fn help_describes_only_existing_features() {
    let project = Project::new();
    let mut command = project.command(&["help"]);
    without_terminal(&mut command);
    let help = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(help.contains("workflows of agents and commands") && !help.contains("serve"), "{help}");
}
