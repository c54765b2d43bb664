//! Exit codes (F12), signals, and several processes for one run.

use crate::project::{Output, Project, finish, hangups_are_ignored, lives, program, signal, until, user, without_terminal};
use rustix::process::Signal;
use snapbox::{assert_data_eq, str};
use std::process::Stdio;

const TINY: &str = "name: tiny\nphases: [{ id: a, tasks: [{ id: t, pass: true }] }]\n";

/// A task that prints its process id, and runs until it is stopped.
const SLOW: &str = "
name: slow
phases:
  - id: work
    tasks:
      - { id: first, run: 'echo first >> ran' }
      - { id: wait, needs: [first], run: 'echo $$ > pid; echo wait >> ran; while [ ! -e go ]; do sleep 0.02; done', on_interrupt: ask }
";

#[test]
fn a_complete_run_exits_with_0() {
    let project = Project::with(TINY);
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), ""), "stdout is for data: {output:?}");
}

#[test]
fn a_failed_run_exits_with_1_and_shows_the_last_lines_of_output() {
    let project = Project::with("name: f\nphases: [{ id: a, tasks: [{ id: t, run: 'echo before; echo oops >&2; exit 7' }] }]\n");
    let output = project.run(&["run", "flow.yaml"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 1
--- stdout
--- stderr
run [RUN]: f
phase a
  a/t started
  a/t failed after [TOOK]: it ended with exit code 7
    │ before
    │ oops
run [RUN] failed: a/t failed: it ended with exit code 7
  fix the cause, then continue: lockgate resume [RUN]

"#]]
    );
    let status = project.json(1, &["run", "flow.yaml", "--json"]);
    assert_eq!(status["status"], "failed");
    assert_eq!(status["error"], "a/t failed: it ended with exit code 7");
    assert_eq!(status["phases"][0]["status"], "failed");
}

#[test]
fn bad_usage_exits_with_4_and_help_with_0() {
    let project = Project::with(TINY);
    for arguments in [
        &["walk"][..],
        &[],
        &["run"],
        &["run", "flow.yaml", "--no-such"],
        &["run", "missing.yaml"],
        &["run", "flow.yaml", "--var", "nothing"],
        &["status"],
        &["status", "nobody"],
        &["validate"],
    ] {
        let output = project.run(arguments);
        assert_eq!((output.code, output.stdout.as_str()), (Some(4), ""), "{arguments:?}: {output:?}");
        assert!(!output.stderr.is_empty());
    }
    for arguments in
        [&["--help"][..], &["--version"], &["run", "--help"], &["answer", "-h", "--no-resume"], &["help"], &["help", "answer"]]
    {
        let output = project.run(arguments);
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{arguments:?}: {output:?}");
        assert!(!output.stdout.is_empty());
    }
    assert!(!project.run(&["--help"]).stdout.contains("script-worker"));
}

#[test]
fn an_ended_run_cannot_be_resumed() {
    let project = Project::with(TINY);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    let run = project.newest();
    let output = project.run(&["resume", &run]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 4
--- stdout
--- stderr
error[run-ended]: run [RUN] is complete: all its phases are done; there is nothing to resume
help: see what it did with `lockgate log [RUN]`, or start a new run

"#]]
    );
    let output = project.run(&["cancel", &run]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains(&format!("run {run} is already complete")), "{output:?}");
    assert!(output.stderr.contains(&format!("lockgate log {run}")), "{output:?}");
}

#[test]
fn invalid_settings_are_reported_with_their_position() {
    let project = Project::with(TINY);
    project.write(".lockgate/config.yaml", "people:\n  require_terminl: false\n");
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("config.yaml:2:3") && output.stderr.contains("did you mean"), "{output:?}");
}

#[test]
fn a_damaged_or_newer_database_is_reported_and_left_unchanged() {
    let project = Project::with(TINY);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    let database = project.path(".lockgate/lockgate.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.pragma_update(None, "user_version", 9999).unwrap();
    drop(connection);
    for arguments in [&["runs"][..], &["run", "flow.yaml"]] {
        let output = project.run(arguments);
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains("newer release"), "{output:?}");
    }
    std::fs::write(&database, "this text is not a database, but it is long enough to be inspected as one".repeat(20)).unwrap();
    for name in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(project.path(&format!(".lockgate/lockgate.db{name}")));
    }
    let before = std::fs::read(&database).unwrap();
    let output = project.run(&["runs"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(std::fs::read(&database).unwrap(), before);
}

#[test]
fn a_database_locked_by_another_process_is_reported() {
    let project = Project::with(TINY);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    let connection = rusqlite::Connection::open(project.path(".lockgate/lockgate.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("locked"), "{output:?}");
    connection.execute_batch("ROLLBACK").unwrap();
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    assert_eq!(project.run(&["db", "verify"]).code, Some(0));
}

/// Starts the slow workflow and waits until its second task runs. Also returns the process of that task.
fn start_slow_task(project: &Project) -> (std::process::Child, String) {
    let child = project.start(&["run", "flow.yaml", "job"]);
    until("the task", || project.read("pid").ends_with('\n'));
    (child, project.read("pid"))
}

fn interrupted(by: Signal, code: i32) -> (Project, Output) {
    let project = Project::with(SLOW);
    let (child, task) = start_slow_task(&project);
    signal(&child, by);
    let output = finish(child);
    assert_eq!(output.code, Some(code), "{output:?}");
    assert!(!lives(&task), "the started task has ended");
    (project, output)
}

#[test]
fn ctrl_c_stops_the_tasks_saves_the_state_and_prints_the_resume_command() {
    let (project, output) = interrupted(Signal::INT, 130);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 130
--- stdout
--- stderr
run [RUN]: slow (job)
phase work
  work/first started
  work/first done in [TOOK]
  work/wait started
  work/wait was interrupted
run [RUN] was interrupted; its state is saved
  continue: lockgate resume [RUN]

"#]]
    );
    assert_eq!(project.status("job")["status"], "interrupted");
    let output = project.run(&["resume", "job"]);
    assert_eq!(output.code, Some(3), "it asks what becomes of the task: {output:?}");
    assert_eq!(project.status("job")["holds"][0]["kind"], "interrupted");
    project.write("go", "");
    let output = project.run(&["resume", "job", "--rerun"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(project.read("ran"), "first\nwait\nwait\n", "only the interrupted task runs again");
    assert_eq!(project.events(&project.newest(), "answered")[0]["option"], "rerun");
}

#[test]
fn sigterm_and_sighup_exit_with_143() {
    interrupted(Signal::TERM, 143);
    if !hangups_are_ignored() {
        interrupted(Signal::HUP, 143);
    }
}

#[test]
fn a_program_started_with_nohup_survives_the_terminal() {
    let project = Project::with(SLOW);
    let mut command = std::process::Command::new("nohup");
    command.arg(program()).args(["run", "flow.yaml", "job"]).current_dir(project.root());
    without_terminal(&mut command);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the task", || project.read("pid").ends_with('\n'));
    signal(&child, Signal::HUP);
    project.write("go", "");
    let output = finish(child);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(project.events(&project.newest(), "interrupted"), Vec::<serde_json::Value>::new());
}

#[test]
fn repeated_ctrl_c_kills_tasks_that_ignore_it() {
    let project = Project::with(&SLOW.replace("echo $$ > pid;", "trap \"\" TERM INT; echo $$ > pid;"));
    let (mut child, task) = start_slow_task(&project);
    until("the end", || {
        signal(&child, Signal::INT);
        child.try_wait().unwrap().is_some()
    });
    let output = finish(child);
    assert_eq!(output.code, Some(130), "{output:?}");
    assert!(!lives(&task));
    assert_eq!(project.status("job")["status"], "interrupted");
}

#[test]
fn resuming_a_run_driven_by_another_process_is_refused_and_names_the_driver() {
    let project = Project::with(SLOW);
    let (child, _) = start_slow_task(&project);
    let output = project.run(&["resume", "job"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.contains(&format!("is driven by process {} on ", child.id())), "{output:?}");
    assert!(output.stderr.contains("since 20"), "{output:?}");
    project.write("go", "");
    assert_eq!(finish(child).code, Some(0));
    assert_eq!(project.read("ran"), "first\nwait\n");
}

#[test]
fn one_of_two_concurrent_resumes_drives_the_run() {
    let project = Project::with(SLOW);
    let (child, _) = start_slow_task(&project);
    signal(&child, Signal::KILL);
    finish(child);
    let start = || project.start(&["resume", "job", "--rerun"]);
    let (one, other) = (start(), start());
    until("the task again", || project.read("ran").matches("wait").count() == 2);
    until("the takeover by another process", || {
        project.kinds(&project.newest()).iter().filter(|kind| *kind == "resumed").count() == 1
    });
    project.write("go", "");
    let (one, other) = (finish(one), finish(other));
    let mut codes = [one.code, other.code];
    codes.sort();
    let resumed = project.events(&project.newest(), "resumed").len();
    // If the other process has already exited, the run is complete.
    assert!(codes == [Some(0), Some(3)] || codes == [Some(0), Some(4)], "{one:?} {other:?}");
    assert_eq!(resumed, 1, "{one:?} {other:?}");
    assert_eq!(project.read("ran"), "first\nwait\nwait\n", "no task ran twice at the same time");
}

#[test]
fn no_orphan_of_a_killed_program_runs_alongside_its_successor() {
    let project = Project::with(&SLOW.replace("on_interrupt: ask", "on_interrupt: rerun"));
    let (child, task) = start_slow_task(&project);
    signal(&child, Signal::KILL);
    finish(child);
    assert!(lives(&task), "the orphan works on");
    project.write("pid", "");
    let child = project.start(&["resume", "job"]);
    until("the new attempt", || project.read("pid").ends_with('\n'));
    assert!(!lives(&task), "the orphan ended before its successor started");
    project.write("go", "");
    assert_eq!(finish(child).code, Some(0));
    assert_eq!(project.run(&["db", "verify"]).code, Some(0));
}

#[test]
fn cancelling_stops_a_run_that_another_process_drives() {
    let project = Project::with(SLOW);
    let (child, task) = start_slow_task(&project);
    let output = project.run(&["cancel", "job", "--reason", "no longer needed"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let output = finish(child);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(!lives(&task));
    let run = project.newest();
    assert_eq!(project.events(&run, "cancelled")[0]["reason"], "no longer needed");
    let again = project.json(0, &["cancel", &run, "--reason", "another", "--json"]);
    assert_eq!(again["recorded"], false, "repeating it is not an error");
    assert_eq!(again["cancelled"]["reason"], "no longer needed", "the recorded reason is kept");
    assert_eq!(project.run(&["resume", &run]).code, Some(4));
}

#[test]
fn every_view_shows_who_cancelled_a_run_and_why() {
    let project = Project::with(SLOW);
    let (child, _) = start_slow_task(&project);
    let cancelled = project.json(0, &["cancel", "job", "--reason", "no longer needed", "--json"]);
    finish(child);
    let run = project.newest();
    assert_eq!((&cancelled["run"], &cancelled["recorded"]), (&run.as_str().into(), &true.into()));
    assert_eq!(cancelled["cancelled"]["by"]["name"], user());
    for command in ["status", "why", "summary"] {
        let reported = project.run(&[command, &run]).stdout;
        let by = format!("ancelled by {} by command: no longer needed", user());
        assert!(reported.contains(&by), "{command}: {reported}");
    }
    for command in ["status", "summary"] {
        assert_eq!(project.json(0, &[command, &run, "--json"])["cancelled"], cancelled["cancelled"]);
    }
    let summary = project.json(0, &["summary", &run, "--json"]);
    assert!(!summary["phases"].to_string().contains("\"running\""), "nothing runs in a run that has ended: {summary}");
}

#[test]
fn an_answer_reaches_the_driving_process() {
    let flow = "
name: both
phases:
  - id: work
    tasks:
      - { id: broken, run: 'test -e fixed', on_fail: ask }
      - { id: long, run: 'touch began; while [ ! -e go ]; do sleep 0.02; done' }
";
    let project = Project::with(flow);
    let child = project.start(&["run", "flow.yaml"]);
    until("both tasks", || project.path("began").exists() && project.run(&["inbox"]).stdout.contains("@1"));
    project.write("fixed", "");
    let hold = project.waiting_hold();
    let output = project.run(&["answer", &hold, "rerun", "--foreground"]);
    assert_eq!(output.code, Some(0), "recorded, and carried out elsewhere: {output:?}");
    assert!(output.stderr.contains("is answered: \"Run again\""), "{output:?}");
    assert!(output.stderr.contains(&format!("note: process {} on ", child.id())), "{output:?}");
    assert!(!output.stderr.contains("error"), "{output:?}");
    let again = project.json(0, &["answer", &hold, "rerun", "--foreground", "--json"]);
    assert_eq!((&again["recorded"], &again["continues"]), (&false.into(), &"elsewhere".into()), "{again}");
    let run = project.newest();
    until("the rerun", || project.events(&run, "task_finished").len() == 1);
    project.write("go", "");
    let output = finish(child);
    assert_eq!(output.code, Some(0), "{output:?}");
}
