//! The end of a session: signals while tasks do not react to them, and the session timeout.

use crate::project::{Project, finish, lives, signal, until};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// A task that ignores signals, and leaves a process in another session that does the same.
const STUBBORN: &str = r#"
name: stubborn
phases:
  - id: work
    tasks:
      - { id: first, run: 'echo first >> ran' }
      - id: wait
        needs: [first]
        on_interrupt: rerun
        run: |
          test ! -e go || exit 0
          trap '' TERM INT HUP
          setsid sh -c 'echo $$ > other; exec sleep 60' &
          until test -s other; do sleep 0.02; done
          echo $$ > pid
          sleep 60
          echo end >> ran
"#;

/// Between the two seconds that are promised and the five that a task gets when it is stopped for other reasons, because the
/// machine may be busy.
const SOON: Duration = Duration::from_secs(4);

fn stubborn() -> (Project, std::process::Child, [String; 2]) {
    let project = Project::with(STUBBORN);
    let child = project.start(&["run", "flow.yaml", "job"]);
    until("the task", || project.read("pid").ends_with('\n'));
    let tasks = [project.read("pid"), project.read("other")];
    (project, child, tasks)
}

#[test]
fn an_interruption_is_recorded_soon_although_tasks_ignore_the_signal() {
    for (by, name, code) in [(Signal::INT, "SIGINT", 130), (Signal::TERM, "SIGTERM", 143)] {
        let (project, child, tasks) = stubborn();
        let run = project.newest();
        let sent = Instant::now();
        signal(&child, by);
        until("the interruption", || !project.events(&run, "interrupted").is_empty());
        assert!(sent.elapsed() < SOON, "{name}: {:?}", sent.elapsed());
        assert_eq!(project.events(&run, "interrupted")[0]["signal"], name);
        let output = finish(child);
        assert_eq!(output.code, Some(code), "{output:?}");
        assert!(tasks.iter().all(|task| !lives(task)), "nothing of the task is left");
        project.write("go", "");
        let output = project.run(&["resume", "job"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(project.read("ran"), "first\n");
    }
}

#[test]
fn a_second_ctrl_c_loses_no_event() {
    let (project, child, tasks) = stubborn();
    let run = project.newest();
    signal(&child, Signal::INT);
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!(output.code, Some(130), "{output:?}");
    assert!(tasks.iter().all(|task| !lives(task)), "nothing of the task is left");
    assert_eq!(project.events(&run, "interrupted").len(), 1);
    assert_eq!(project.events(&run, "task_finished").len(), 1, "{:?}", project.kinds(&run));
    assert_eq!(project.run(&["db", "verify"]).code, Some(0));
    project.write("go", "");
    assert_eq!(project.run(&["resume", "job"]).code, Some(0));
    assert_eq!(project.read("ran"), "first\n");
}

/// Waits until a file `go` exists.
const PATIENT: &str = "
name: patient
phases:
  - id: work
    tasks: [{ id: wait, on_interrupt: rerun, run: 'until test -e go; do sleep 0.02; done' }]
";

const ONE_SECOND: &str = "people: { require_terminal: false }\ncheckpoint: { session_timeout: 1s }\n";

#[test]
fn the_session_timeout_stops_a_run_as_sigterm_does() {
    let project = Project::with(PATIENT);
    project.write(".lockgate/config.yaml", ONE_SECOND);
    let output = project.run(&["run", "flow.yaml", "job"]);
    assert_eq!(output.code, Some(143), "{output:?}");
    let run = project.newest();
    assert!(output.stderr.contains("was interrupted by the session timeout; its state is saved"), "{output:?}");
    assert!(output.stderr.contains(&format!("continue: lockgate resume {run}")), "{output:?}");
    assert_eq!(project.events(&run, "interrupted")[0]["signal"], "session timeout");
    project.write("go", "");
    let output = project.run(&["resume", "job"]);
    assert_eq!(output.code, Some(0), "a new session has its own time: {output:?}");
}

#[test]
fn the_session_timeout_stops_a_worker() {
    let project = Project::with(PATIENT);
    project.write(".lockgate/config.yaml", ONE_SECOND);
    let run = project.json(0, &["run", "flow.yaml", "--detach", "--json"])["run"].as_str().unwrap().to_owned();
    until("the interruption", || !project.events(&run, "interrupted").is_empty());
    assert_eq!(project.events(&run, "interrupted")[0]["signal"], "session timeout");
    // The background process may not have ended yet, and only one process drives the detached runs.
    until("the end of the background process", || !lives(&project.read(".lockgate/background.lock")));
    let output = project.run(&["worker"]);
    assert_eq!(output.code, Some(143), "{output:?}");
    assert!(output.stderr.contains("continue the interrupted runs with `lockgate worker`"), "{output:?}");
    project.write("go", "");
    assert_eq!(project.run(&["worker"]).code, Some(0));
    assert_eq!(project.status(&run)["status"], "complete");
}
