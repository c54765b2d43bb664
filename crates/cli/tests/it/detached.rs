//! Detached runs: the background process starts on demand, drives runs concurrently, and exits when idle.

use crate::project::{Output, Project, finish, lives, signal, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const FLOW: &str = r#"
name: flow
phases:
  - id: build
    tasks:
      - { id: first, on_interrupt: rerun, run: echo first >> trace }
    checkpoint:
      prompt: Go on?
      options:
        - { label: Continue, on_select: { action: continue } }
        - { label: Stop, on_select: { action: abort } }
  - id: ship
    tasks:
      - { id: second, on_interrupt: rerun, run: echo second >> trace }
"#;

/// Waits until a file `go` exists.
const PATIENT: &str = r#"
name: patient
phases:
  - id: work
    tasks:
      - { id: before, run: echo before >> trace }
      - { id: wait, needs: [before], on_interrupt: rerun, run: "echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; echo after >> trace" }
"#;

/// Settings that keep the idle background process only briefly.
fn project(flow: &str, stay: &str) -> Project {
    let project = Project::with(flow);
    project.write(
        ".lockgate/config.yaml",
        format!("people: {{ require_terminal: false }}\nbackground: {{ idle_timeout: {stay} }}\n"),
    );
    project
}

fn detached(project: &Project, arguments: &[&str]) -> Value {
    project.json(0, &[&["run", "flow.yaml", "--detach", "--json"], arguments].concat())
}

/// The background process, if one is running.
fn background(project: &Project) -> Option<String> {
    let pid = project.read(".lockgate/background.lock");
    (!pid.is_empty() && lives(&pid)).then_some(pid)
}

fn stop(pid: &str, how: Signal) {
    kill_process(Pid::from_raw(pid.trim().parse().unwrap()).unwrap(), how).unwrap();
}

fn until_gone(project: &Project) {
    until("the end of the process in the background", || background(project).is_none());
}

fn well(output: &Output) -> &Output {
    assert_eq!(output.code, Some(0), "{output:?}");
    output
}

#[test]
fn a_detached_run_continues_after_an_answer_and_the_idle_process_ends() {
    let project = project(FLOW, "1s");
    let view = detached(&project, &[]);
    let run = view["run"].as_str().unwrap();
    assert_eq!(view["detached"], true);
    assert_eq!(project.run(&["wait", run]).code, Some(3));
    until_gone(&project);
    assert_eq!(project.read("trace"), "first\n");

    // The background process has exited, so the answer itself must start one.
    let hold = project.waiting_hold();
    let answered = project.run(&["answer", &hold, "Continue", "--no-resume"]);
    assert!(well(&answered).stderr.contains("in the background"), "{answered:?}");
    assert_eq!(project.run(&["wait", run]).code, Some(0));
    assert_eq!(project.read("trace"), "first\nsecond\n");
    well(&project.run(&["db", "verify"]));
    until_gone(&project);
    let log = project.read(".lockgate/background.log");
    assert!(log.contains("waits for a person") && log.contains("complete"), "{log}");
}

#[test]
fn one_background_process_drives_all_detached_runs_and_receives_answers() {
    let project = project(FLOW, "20s");
    let runs: Vec<String> = (0..8).map(|_| detached(&project, &[])["run"].as_str().unwrap().to_owned()).collect();
    let pid = background(&project).expect("a process in the background");
    for run in &runs {
        assert_eq!(project.run(&["wait", run]).code, Some(3));
    }
    for hold in project.json(0, &["inbox", "--json"]).as_array().unwrap() {
        well(&project.run(&["answer", hold["id"].as_str().unwrap(), "Continue", "--no-resume"]));
    }
    for run in &runs {
        assert_eq!(project.run(&["wait", run]).code, Some(0));
    }
    assert_eq!(background(&project), Some(pid.clone()), "it was another process");
    well(&project.run(&["db", "verify"]));
    stop(&pid, Signal::TERM);
    until_gone(&project);
}

/// The drivers that took over a run, according to its history. While it waits, no process has claimed it.
fn drivers_of(project: &Project, run: &Value) -> Vec<String> {
    let log = well(&project.run(&["log", run["run"].as_str().unwrap(), "--json"])).stdout.clone();
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["type"] == "resumed").map(|event| event["driver"].to_string()).collect()
}

#[test]
fn runs_detached_concurrently_share_one_process() {
    let project = project(FLOW, "3s");
    let starts: Vec<_> = (0..6).map(|_| project.start(&["run", "flow.yaml", "--detach"])).collect();
    for start in starts {
        well(&finish(start));
    }
    until("a pause of all runs", || {
        project.json(0, &["runs", "--json"]).as_array().unwrap().iter().all(|run| run["status"] == "waiting")
    });
    let runs = project.json(0, &["runs", "--json"]);
    let drivers: std::collections::BTreeSet<String> =
        runs.as_array().unwrap().iter().flat_map(|run| drivers_of(&project, run)).collect();
    assert_eq!(drivers.len(), 1, "more than one process drives: {drivers:?}");
    assert!(background(&project).is_some());
    until_gone(&project);
}

#[test]
fn a_second_background_process_drives_nothing() {
    let project = project(PATIENT, "1s");
    detached(&project, &[]);
    let pid = background(&project).expect("a process in the background");
    let second = project.run(&["worker"]);
    assert_eq!(second.code, Some(3), "{second:?}");
    assert!(second.stderr.contains(&format!("process {pid} already drives")), "{second:?}");
    project.write("go", "");
    until_gone(&project);
}

#[test]
fn a_killed_background_process_loses_nothing_and_status_reports_it() {
    let project = project(PATIENT, "1s");
    let view = detached(&project, &[]);
    let run = view["run"].as_str().unwrap();
    until("the second task", || !project.read("pid").is_empty());
    stop(&background(&project).expect("a process in the background"), Signal::KILL);
    until_gone(&project);
    assert_eq!(project.status(run)["status"], "interrupted");
    let why = project.run(&["why", run]);
    assert!(why.stdout.contains("it is detached") && why.stdout.contains("lockgate worker"), "{why:?}");

    let orphan = project.read("pid");
    let drive = project.start(&["worker"]);
    until("the second task again", || project.read("pid") != orphan);
    assert!(!lives(&orphan), "it runs alongside its orphan");
    project.write("go", "");
    well(&finish(drive));
    assert_eq!(project.status(run)["status"], "complete");
    assert_eq!(project.read("trace"), "before\nafter\n", "a finished task ran again");
    well(&project.run(&["db", "verify"]));
}

#[test]
fn a_terminated_background_process_saves_the_state_and_the_next_one_continues() {
    let project = project(PATIENT, "1s");
    let view = detached(&project, &[]);
    let run = view["run"].as_str().unwrap();
    until("the second task", || !project.read("pid").is_empty());
    stop(&background(&project).expect("a process in the background"), Signal::TERM);
    until_gone(&project);
    assert!(project.kinds(run).contains(&"interrupted".to_owned()));
    project.write("go", "");
    let resumed = project.run(&["resume", run, "--detach"]);
    assert!(well(&resumed).stderr.contains("in the background"), "{resumed:?}");
    assert_eq!(project.run(&["wait", run]).code, Some(0));
    assert_eq!(project.read("trace"), "before\nafter\n");
    until_gone(&project);
}

#[test]
fn interrupted_tasks_rerun_in_the_background() {
    let ask = PATIENT.replace("on_interrupt: rerun", "on_interrupt: ask");
    for asked_before in [false, true] {
        let project = project(&ask, "1s");
        let view = detached(&project, &[]);
        let run = view["run"].as_str().unwrap();
        until("the second task", || !project.read("pid").is_empty());
        stop(&background(&project).expect("a process in the background"), Signal::KILL);
        until_gone(&project);
        if asked_before {
            assert_eq!(project.run(&["resume", run]).code, Some(3), "it asks what becomes of the task");
        }
        // The next claim ends processes that the killed driver left behind; otherwise they would keep running.
        well(&project.run(&["resume", run, "--rerun", "--detach"]));
        project.write("go", "");
        let waited = project.run(&["wait", run]);
        assert_eq!(well(&waited).code, Some(0));
        assert_eq!(project.read("trace"), "before\nafter\n", "only the interrupted task ran again");
        assert!(project.status(run)["detached"].as_bool().unwrap());
        until_gone(&project);
        well(&project.run(&["db", "verify"]));
    }
}

#[test]
fn a_pipeline_that_may_continue_does_so_in_the_background() {
    let project = project(FLOW, "1s");
    project.write("spec.md", crate::pipelines::SPEC);
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    well(&project.run(&["resume", "PRD-009", "--continue", "--detach"]));
    assert_eq!(project.run(&["wait", "PRD-009"]).code, Some(3));
    let view = project.status("PRD-009");
    assert_eq!((&view["phases"][0]["status"], &view["phases"][1]["status"]), (&"complete".into(), &"waiting".into()), "{view}");
    until_gone(&project);
}

#[test]
fn a_frozen_background_process_continues_after_thawing() {
    let project = project(PATIENT, "1s");
    let view = detached(&project, &[]);
    until("the second task", || !project.read("pid").is_empty());
    let pid = background(&project).expect("a process in the background");
    stop(&pid, Signal::STOP);
    project.write("go", "");
    assert_eq!(project.status(view["run"].as_str().unwrap())["status"], "running");
    stop(&pid, Signal::CONT);
    assert_eq!(project.run(&["wait", view["run"].as_str().unwrap()]).code, Some(0));
    until_gone(&project);
}

#[test]
fn when_the_root_is_moved_the_process_ends_and_the_run_continues_at_the_new_location() {
    let outer = tempfile::tempdir().unwrap();
    let (old, new) = (outer.path().join("old"), outer.path().join("new"));
    std::fs::create_dir_all(old.join(".lockgate")).unwrap();
    std::fs::write(old.join("flow.yaml"), PATIENT).unwrap();
    let project = Project::new();
    let run = |dir: &std::path::Path, arguments: &[&str]| {
        let dir = dir.to_str().unwrap();
        project.run(&[&["--root", dir], arguments].concat())
    };
    let flow = old.join("flow.yaml");
    well(&run(&old, &["run", flow.to_str().unwrap(), "--detach"]));
    let pid = std::fs::read_to_string(old.join(".lockgate/background.lock")).unwrap();
    let task = || std::fs::read_to_string(old.join("pid")).unwrap_or_default();
    until("the second task", || !task().is_empty());
    let task = task();
    std::fs::rename(&old, &new).unwrap();
    until("the end of the process in the background", || !lives(&pid));
    assert!(!lives(&task), "the task kept running");
    let log = std::fs::read_to_string(new.join(".lockgate/background.log")).unwrap();
    assert!(log.contains("no longer drives its runs"), "{log}");
    std::fs::write(new.join("go"), "").unwrap();
    well(&run(&new, &["worker"]));
    assert_eq!(std::fs::read_to_string(new.join("trace")).unwrap(), "before\nafter\n");
    well(&run(&new, &["db", "verify"]));
}

#[test]
fn when_the_root_is_deleted_the_process_and_its_tasks_end() {
    let project = project(PATIENT, "1s");
    detached(&project, &[]);
    until("the second task", || !project.read("pid").is_empty());
    let (pid, task) = (background(&project).expect("a process in the background"), project.read("pid"));
    std::fs::remove_dir_all(project.path(".lockgate")).unwrap();
    until("the end of the process in the background", || !lives(&pid) && !lives(&task));
}

#[test]
fn a_background_process_reports_a_full_disk_and_retries() {
    let project = project(PATIENT, "1s");
    let view = detached(&project, &[]);
    until("the second task", || !project.read("pid").is_empty());
    stop(&background(&project).expect("a process in the background"), Signal::KILL);
    until_gone(&project);
    let mut command = std::process::Command::new("sh");
    // The database can be opened, but its log cannot grow.
    let blocks = std::fs::metadata(project.path(".lockgate/lockgate.db-wal")).unwrap().len().div_ceil(512);
    let script = format!("(ulimit -f {blocks}; exec \"$LOCKGATE\" worker) 2>&1 | cat > stderr.txt");
    command.args(["-c", &script]).current_dir(project.root()).env("LOCKGATE", crate::project::program());
    crate::project::without_terminal(&mut command);
    let child = command.spawn().unwrap();
    until("two tries", || project.read("stderr.txt").matches("no space left").count() > 1);
    assert!(project.read("stderr.txt").contains("retrying in"), "{}", project.read("stderr.txt"));
    stop(&background(&project).expect("a process that drives"), Signal::TERM);
    finish(child);
    project.write("go", "");
    well(&project.run(&["worker"]));
    assert_eq!(project.status(view["run"].as_str().unwrap())["status"], "complete");
    well(&project.run(&["db", "verify"]));
}

#[test]
fn a_full_disk_is_reported_and_detached_runs_continue_later() {
    let project = project(FLOW, "1s");
    let view = detached(&project, &[]);
    let run = view["run"].as_str().unwrap();
    assert_eq!(project.run(&["wait", run]).code, Some(3));
    until_gone(&project);
    let hold = project.waiting_hold();
    // The new process may not enlarge files, so it cannot record anything.
    let mut command = std::process::Command::new("sh");
    let script = format!("ulimit -f 1; exec \"$LOCKGATE\" answer {hold} Continue");
    command.args(["-c", &script]).current_dir(project.root()).env("LOCKGATE", crate::project::program());
    crate::project::without_terminal(&mut command);
    let refused = command.output().unwrap();
    assert_ne!(refused.status.code(), Some(0), "{refused:?}");
    let reported = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(reported.contains("no space left"), "{reported}");
    assert_eq!(project.status(run)["status"], "waiting", "half an answer was recorded");
    well(&project.run(&["answer", &hold, "Continue", "--no-resume"]));
    assert_eq!(project.run(&["wait", run]).code, Some(0));
    until_gone(&project);
}

#[test]
fn a_run_resumed_at_a_terminal_is_no_longer_detached() {
    let project = project(FLOW, "300ms");
    let view = detached(&project, &[]);
    let run = view["run"].as_str().unwrap();
    assert_eq!(project.run(&["wait", run]).code, Some(3));
    until_gone(&project);
    assert_eq!(project.run(&["resume", run]).code, Some(3));
    assert_eq!(project.status(run)["detached"], false);
    let hold = project.waiting_hold();
    let answered = project.run(&["answer", &hold, "Continue", "--no-resume"]);
    assert!(answered.stderr.contains(&format!("continue it with `lockgate resume {run}`")), "{answered:?}");
    well(&project.run(&["worker"]));
    assert_eq!(project.status(run)["status"], "interrupted", "it was driven anyway");
}

#[test]
fn a_task_cannot_start_a_process_that_outlives_it() {
    let outer = r#"
name: outer
phases:
  - id: work
    tasks:
      - { id: inner, run: '"$LOCKGATE" --root . run inner.yaml --detach' }
"#;
    let project = project(outer, "300ms");
    project.write("inner.yaml", FLOW);
    well(&project.run(&["run", "flow.yaml"]));
    assert_eq!(background(&project), None);
    let runs = project.json(0, &["runs", "--json"]);
    let inner = runs.as_array().unwrap().iter().find(|run| run["workflow"] == "flow").expect("the inner run");
    assert_eq!(inner["status"], "interrupted");
    let logs = project.run(&["logs", runs[1]["run"].as_str().unwrap(), "inner"]);
    assert!(logs.stdout.contains("start one outside the task"), "{logs:?}");
    let driven = project.run(&["worker", "--json"]);
    let reported: Vec<Value> = well(&driven).stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(reported.iter().map(|reported| &reported["kind"]).collect::<Vec<_>>(), ["started", "waiting"], "{driven:?}");
    assert!(reported.iter().all(|reported| reported["run"] == inner["run"]), "{driven:?}");
    assert!(driven.stderr.contains("waits for a person"), "people are informed too: {driven:?}");
    assert_eq!(project.read("trace"), "first\n");
}

#[test]
fn an_idle_background_process_waits_for_new_runs_until_terminated() {
    let project = project(FLOW, "1s");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let child = project.start(&["worker", "--idle-timeout", "never"]);
    until("the process in the background", || background(&project).is_some());
    let view = detached(&project, &[]);
    assert_eq!(project.run(&["wait", view["run"].as_str().unwrap()]).code, Some(3));
    signal(&child, Signal::TERM);
    assert_eq!(finish(child).code, Some(143));
}

#[test]
fn the_printed_answer_command_keeps_a_run_detached() {
    let project = project(FLOW, "300ms");
    let view = detached(&project, &[]);
    let run = view["run"].as_str().unwrap();
    let waited = project.run(&["wait", run]);
    until_gone(&project);
    for reported in [waited, project.run(&["inbox"]), project.run(&["why", run]), project.run(&["status", run])] {
        let text = format!("{}{}", reported.stdout, reported.stderr);
        assert!(text.contains("lockgate answer") && !text.contains("--resume"), "{reported:?}");
    }
}

#[test]
fn answering_with_resume_leaves_a_detached_run_in_the_background() {
    let project = project(FLOW, "20s");
    let view = detached(&project, &[]);
    let run = view["run"].as_str().unwrap();
    assert_eq!(project.run(&["wait", run]).code, Some(3));
    let pid = background(&project).expect("a process in the background");
    // The background process that the answer wakes and the answering process must not both continue the run.
    let answered = project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]);
    assert!(!well(&answered).stderr.contains("second"), "nothing is driven here: {answered:?}");
    assert_eq!(project.run(&["wait", run]).code, Some(0));
    assert_eq!(project.json(0, &["status", run, "--json"])["detached"], true);
    assert_eq!(project.read("trace"), "first\nsecond\n");
    assert_eq!(drivers_of(&project, &view).len(), 1, "the process that drove it before continued it");
    stop(&pid, Signal::TERM);
    until_gone(&project);
}
