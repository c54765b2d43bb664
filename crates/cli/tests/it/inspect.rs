//! Inspecting runs: status, runs, inbox, why, log, validate, verify (F9).

use crate::project::{Project, finish, signal, until, user};
use rustix::process::Signal;
use serde_json::Value;
use snapbox::{assert_data_eq, str};

const FLOW: &str = "
name: flow
phases:
  - id: plan
    name: The plan
    tasks: [{ id: draft, pass: true }]
    checkpoint: { prompt: Good plan?, show_files: [notes.md, missing.md] }
  - id: build
    tasks: [{ id: make, pass: true }]
";

fn waiting() -> Project {
    let project = Project::with(FLOW);
    project.write("notes.md", "notes\n");
    assert_eq!(project.run(&["run", "flow.yaml", "login"]).code, Some(3));
    project
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn status_as_json_has_every_documented_key() {
    let project = waiting();
    let status = project.status("login");
    for key in ["run", "workflow", "feature", "status", "current_phase", "phases", "holds", "warnings", "context"] {
        assert!(keys(&status).contains(&key), "{key} is missing: {status}");
    }
    assert_eq!(status["status"], "waiting");
    assert_eq!(status["current_phase"], "plan");
    assert_eq!(status["phases"][0]["id"], "plan");
    assert_eq!(status["phases"][0]["name"], "The plan");
    assert_eq!(status["phases"][0]["status"], "waiting");
    assert_eq!(status["phases"][0]["iteration"], 1);
    assert_eq!(status["phases"][1]["status"], "pending");
    assert_eq!(status["phases"][1]["iteration"], 0);
    assert_eq!(status["tasks"][0]["status"], "done");
    let hold = &status["holds"][0];
    for key in ["id", "kind", "phase", "prompt", "options", "files", "revision", "since", "notes"] {
        assert!(keys(hold).contains(&key), "{key} is missing: {hold}");
    }
    assert_eq!(hold["options"][0]["label"], "Continue");
    assert_eq!(hold["files"][0]["path"], "notes.md");
    assert!(hold["files"][1]["digest"].is_null(), "a missing file has no digest");
    assert!(status.get("driver").is_none(), "no process drives it");
}

#[test]
fn status_is_readable_for_people() {
    let project = waiting();
    assert_data_eq!(
        project.snapshot(&project.run(&["status", "login"])),
        str![[r#"
exit 0
--- stdout
[RUN] flow (login)  waiting
  waiting     plan
    done        draft
  pending     build
[HOLD]@1 checkpoint in phase plan waits since [TIME] ([AGO])
  Good plan?
  ! missing.md does not exist
  file notes.md (6 B)
  │ notes
  file missing.md (missing)
  lockgate answer [HOLD]@1 Continue
  lockgate answer [HOLD]@1 Abort
snapshot [SNAPSHOT]
--- stderr

"#]]
    );
}

#[test]
fn the_inbox_lists_open_holds_of_all_runs() {
    let project = waiting();
    assert_eq!(project.run(&["run", "flow.yaml", "other"]).code, Some(3));
    let inbox = project.json(0, &["inbox", "--json"]);
    let about: Vec<&str> = inbox.as_array().unwrap().iter().map(|hold| hold["feature"].as_str().unwrap()).collect();
    assert_eq!(about, ["login", "other"], "who waits longest comes first");
    assert_eq!(inbox[0]["options"][1]["label"], "Abort");
    assert_eq!(inbox[0]["files"][0]["path"], "notes.md");
    assert_eq!(inbox[0]["notes"][0], "missing.md does not exist");
    assert_eq!(inbox[0]["options"][0]["with_feedback"], false);
    let text = project.run(&["inbox"]).stdout;
    assert!(text.contains("flow (login), phase plan, checkpoint") && text.contains("@1 Continue\n"), "{text}");
    assert!(text.contains("! missing.md does not exist") && text.contains("see details: lockgate why "), "{text}");
    for feature in ["login", "other"] {
        assert_eq!(project.run(&["cancel", feature]).code, Some(0));
    }
    let output = project.run(&["inbox"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 0
--- stdout
--- stderr
Nothing waits for a person.

"#]]
    );
    assert_eq!(project.json(0, &["inbox", "--json"]), serde_json::json!([]));
}

#[test]
fn runs_are_listed_newest_first() {
    let project = waiting();
    assert_eq!(project.run(&["run", "flow.yaml", "second", "--answer", "plan=1"]).code, Some(0));
    let runs = project.json(0, &["runs", "--json"]);
    let listed: Vec<(&str, &str)> =
        runs.as_array().unwrap().iter().map(|run| (run["feature"].as_str().unwrap(), run["status"].as_str().unwrap())).collect();
    assert_eq!(listed, [("second", "complete"), ("login", "waiting")]);
    for key in ["run", "workflow", "phase", "created_at"] {
        assert!(keys(&runs[0]).contains(&key));
    }
    let text = project.run(&["runs"]).stdout;
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.lines().next().unwrap().contains("complete     flow (second)"), "{text}");
}

#[test]
fn why_shows_what_a_run_waits_for_since_when_and_who_can_continue_it() {
    let project = waiting();
    assert_data_eq!(
        project.snapshot(&project.run(&["why", "login"])),
        str![[r#"
exit 0
--- stdout
run [RUN] is waiting
  it waits for an answer to hold [HOLD]@1 in phase plan: Good plan?
  ! missing.md does not exist
  file notes.md (6 B)
  │ notes
  file missing.md (missing)
  since [TIME] ([AGO])
  who can unblock it: a person
    lockgate answer [HOLD]@1 Continue
    lockgate answer [HOLD]@1 Abort
--- stderr

"#]]
    );
    let why = project.json(0, &["why", "login", "--json"]);
    assert_eq!(why["reasons"][0]["who"], "a person");
    assert!(why["reasons"][0]["since"].is_string());
    let run = project.newest();
    let hold = project.waiting_hold();
    assert_eq!(project.run(&["answer", &hold, "Continue", "--no-resume"]).code, Some(0));
    assert_eq!(project.run(&["resume", &run]).code, Some(0));
    assert!(project.run(&["why", &run]).stdout.contains("it is complete"));
}

#[test]
fn why_explains_failed_running_and_interrupted_runs() {
    let flow = "
name: slow
phases:
  - id: work
    tasks: [{ id: wait, run: 'touch began; while [ ! -e go ]; do sleep 0.02; done; exit 9', on_interrupt: rerun }]
";
    let project = Project::with(flow);
    let child = project.start(&["run", "flow.yaml"]);
    until("the task", || project.path("began").exists());
    let run = project.newest();
    let why = project.run(&["why", &run]).stdout;
    assert!(why.contains("is running") && why.contains(&format!("process {}", child.id())) && why.contains("wait"), "{why}");
    assert_eq!(project.status(&run)["status"], "running");
    assert_eq!(project.status(&run)["driver"]["pid"], child.id());
    signal(&child, Signal::KILL);
    finish(child);
    assert_eq!(project.status(&run)["status"], "interrupted");
    assert_eq!(project.json(0, &["runs", "--json"])[0]["status"], "interrupted");
    let why = project.run(&["why", &run]).stdout;
    assert!(why.contains("interrupted") && why.contains(&format!("lockgate resume {run}")), "{why}");
    project.write("go", "");
    assert_eq!(project.run(&["resume", &run]).code, Some(1));
    let why = project.run(&["why", &run]).stdout;
    assert!(why.contains("work/wait failed: it ended with exit code 9") && why.contains("lockgate resume"), "{why}");
}

#[test]
fn tasks_running_when_the_driver_was_killed_are_shown_as_interrupted_with_help() {
    let work = "touch began; while [ ! -e go ]; do sleep 0.02; done";
    for (steps, name, is_gate) in [
        (format!("tasks: [{{ id: slow, run: '{work}', on_interrupt: rerun }}]"), "slow", false),
        (format!("tasks: [{{ id: slow, for_each: [x], run: '{work}', on_interrupt: rerun }}]"), "slow[x]", false),
        (format!("tasks: [{{ id: first, pass: true }}]\n    gates: [{{ id: check, run: '{work}' }}]"), "check", true),
    ] {
        let project = Project::with(&format!("name: f\nphases:\n  - id: work\n    {steps}\n"));
        let child = project.start(&["run", "flow.yaml"]);
        until("the work", || project.path("began").exists());
        let run = project.newest();
        signal(&child, Signal::KILL);
        finish(child);
        let view = project.status(&run);
        let steps = view[if is_gate { "gates" } else { "tasks" }].as_array().unwrap();
        let status = |wanted: &str| steps.iter().find(|step| step["id"] == wanted).unwrap()["status"].clone();
        assert_eq!(status(name), "interrupted", "{view}");
        let text = project.run(&["status", &run]).stdout;
        assert!(!text.contains("running") && text.contains(&format!("continue: lockgate resume {run}")), "{text}");
        let why = project.run(&["why", &run]).stdout;
        assert!(why.contains(&format!("interrupted during {name}")), "{why}");
        for command in ["summary", "graph"] {
            let reported = project.run(&[command, &run]).stdout;
            assert!(reported.contains("interrupted") && !reported.contains("running"), "{command}: {reported}");
        }
        project.write("go", "");
        assert_eq!(project.run(&["resume", &run]).code, Some(0));
    }
}

#[test]
fn the_log_has_one_event_per_line_with_sequence_time_type_actor_and_hash() {
    let project = waiting();
    let hold = project.waiting_hold();
    assert_eq!(project.run(&["answer", &hold, "Continue", "--foreground"]).code, Some(0));
    let log = project.log(&project.newest());
    for (at, event) in log.iter().enumerate() {
        assert_eq!(event["seq"], at + 1);
        for key in ["at", "type", "hash"] {
            assert!(event[key].is_string(), "{event}");
        }
        assert!(event["actor"]["name"].is_string());
        assert!(!event.as_object().unwrap().values().any(Value::is_null), "absent things are absent: {event}");
    }
    assert_eq!(log[0]["type"], "created");
    assert_eq!(log[0]["actor"]["name"], user());
    let started = log.iter().find(|event| event["type"] == "task_started").unwrap();
    assert_eq!((started["phase"].as_str(), started["task"].as_str()), (Some("plan"), Some("draft")));
    assert_eq!(log.last().unwrap()["type"], "completed");
    let text = project.run(&["log", &project.newest()]).stdout;
    assert_eq!(text.lines().count(), log.len());
    assert!(text.lines().last().unwrap().contains("the run is complete"));
}

#[test]
fn an_intact_store_verifies_and_a_modified_one_does_not() {
    let project = waiting();
    let output = project.run(&["db", "verify"]);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
    assert_eq!(project.run(&["db", "verify", "login"]).code, Some(0));
    project.change(
        "UPDATE commits SET payload = CAST(payload || x'00' AS BLOB)",
        "UPDATE lockgate.commits SET payload = payload || '\\x00'",
    );
    let output = project.run(&["db", "verify"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stdout.contains("commit 1"), "{output:?}");
}

#[test]
fn validate_reports_all_problems_with_positions_and_accepts_warnings() {
    let project = Project::new();
    project.write("good.yaml", FLOW);
    project.write("warned.yaml", "name: w\nphases: [{ id: a, tasks: [{ id: t, pass: true }], checkpoint: { show_files: [x], approval_required: false } }]\n");
    project.write("bad.yaml", "name: bad\nphases:\n  - id: one\n    taks: []\n    tasks: [{ id: t, run: x, script: y }]\n");
    let output = project.run(&["validate", "good.yaml"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 0
--- stdout
good.yaml: valid workflow
--- stderr

"#]]
    );
    let output = project.run(&["validate", "warned.yaml"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.stderr.contains("warning[disabled-checkpoint]: ") && output.stderr.contains("warned.yaml: 1 warning"),
        "{output:?}"
    );
    let output = project.run(&["validate", "good.yaml", "bad.yaml", "missing.yaml"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("bad.yaml:4:5") && output.stderr.contains("did you mean `tasks`?"), "{output:?}");
    assert!(output.stderr.contains("bad.yaml:5:"), "all problems together: {output:?}");
    assert!(output.stderr.contains("missing.yaml cannot be read"), "{output:?}");
    assert_eq!(output.stdout, "good.yaml: valid workflow\nbad.yaml: invalid workflow\nmissing.yaml: cannot be read\n");
    let files = project.json(4, &["validate", "--json", "good.yaml", "bad.yaml", "missing.yaml"]);
    assert_eq!(files[0]["valid"], true);
    assert_eq!((&files[1]["problems"][0]["line"], &files[1]["problems"][0]["column"]), (&4.into(), &5.into()));
    assert!(files[2]["error"]["code"] == "unreadable-file");
}

#[test]
fn the_root_is_found_in_a_parent_directory_or_given_explicitly() {
    let project = waiting();
    std::fs::create_dir_all(project.path("deep/er")).unwrap();
    let mut command = project.command(&["runs", "--json"]);
    let output = command.current_dir(project.path("deep/er")).output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"[\n"), "{output:?}");
    let elsewhere = tempfile::tempdir().unwrap();
    let root = project.root();
    let mut command = project.command(&["--root", root.to_str().unwrap(), "status", "login"]);
    assert!(command.current_dir(elsewhere.path()).output().unwrap().status.success());
    let mut command = project.command(&["runs"]);
    let output = command.current_dir(elsewhere.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no .lockgate in"), "{output:?}");
    assert!(std::fs::read_dir(elsewhere.path()).unwrap().next().is_none(), "opening creates nothing");
}

#[test]
fn a_closed_stdout_pipe_is_not_an_error() {
    let project = waiting();
    let mut child = project.command(&["log", "login", "--json"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_closed_stderr_does_not_stop_a_run() {
    let project = Project::with("name: tiny\nphases: [{ id: a, tasks: [{ id: t, run: 'echo done > ran' }] }]\n");
    let mut child = project.command(&["run", "flow.yaml"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(project.read("ran"), "done\n");
    assert_eq!(project.status(&project.newest())["status"], "complete");
}

#[test]
fn long_lists_are_paged_and_name_the_next_page() {
    let project = Project::with(
        "name: flow\nphases: [{id: a, checkpoint: {prompt: Go?, options: [{label: Go, on_select: {action: continue}}]}}]",
    );
    for _ in 0..5 {
        assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    }
    for (command, id) in [("runs", "run"), ("inbox", "id")] {
        let whole = project.json(0, &[command, "--json"]);
        let ids: Vec<&str> = whole.as_array().unwrap().iter().map(|entry| entry[id].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 5);
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut arguments = vec![command, "--json", "--limit", "2"];
            arguments.extend(after.iter().flat_map(|after| ["--after", after.as_str()]));
            let output = project.run(&arguments);
            let part: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
            seen.extend(part.iter().map(|entry| entry[id].as_str().unwrap().to_owned()));
            let last = seen.last().unwrap().clone();
            let reported = output.stderr.contains(&format!("continue with `lockgate {command} --limit 2 --after {last}`"));
            assert_eq!(reported, seen.len() < 5, "{output:?}");
            if !reported {
                break;
            }
            after = Some(last);
        }
        assert_eq!(seen, ids);
    }
    let run = project.newest();
    let events = project.log(&run);
    let part = project.run(&["log", &run, "--json", "--after", "1", "--limit", "2"]);
    let part: Vec<Value> = part.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(part, events[1..3]);
}

#[test]
fn the_inbox_shows_notes_and_feedback_without_loading_the_runs() {
    let project = Project::with(
        "name: flow\nphases: [{id: a, tasks: [{id: t, run: exit 1, on_fail: ask}], checkpoint: {prompt: Go?, options: \
         [{label: Again, with_feedback: true, on_select: {action: repeat_phase, target: current}}]}}]",
    );
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let run = project.newest();
    let (listed, status) = (project.json(0, &["inbox", "--json"]), project.status(&run));
    let mut listed = listed[0].clone();
    for own in ["run", "workflow", "feature"] {
        listed.as_object_mut().unwrap().remove(own);
    }
    assert_eq!(listed, status["holds"][0], "a hold looks different in a list");
    assert!(!listed["notes"].as_array().unwrap().is_empty());
}
