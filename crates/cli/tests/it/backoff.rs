//! Retries whose backoff ends while the task cannot start: the run still ends, handles signals, and blocks nothing else.

use crate::project::{Output, Project, finish, signal, until};
use rustix::process::Signal;
use std::process::Child;

/// One task waits for its retry, one fails permanently, and one is still running.
const DRAINING: &str = "
name: draining
phases:
  - id: p
    tasks: [{ id: t1, run: 'sleep 0.5; exit 1', retry: 2 }, { id: t2, run: 'exit 1' }, { id: t3, run: 'sleep 2' }]
";

/// Waits for a process that must exit on its own.
fn ends(mut child: Child) -> Output {
    until("the end of the process", || child.try_wait().unwrap().is_some());
    finish(child)
}

#[test]
fn a_backoff_that_ends_while_the_phase_drains_does_not_prevent_failure_and_resuming_retries() {
    let project = Project::with(DRAINING);
    let output = ends(project.start(&["run", "flow.yaml"]));
    assert_eq!(output.code, Some(1), "{output:?}");
    let run = project.newest();
    let starts = |project: &Project| project.events(&run, "task_started").len();
    assert_eq!(starts(&project), 3, "nothing starts once a task has failed for good");
    assert_eq!(project.events(&run, "retry_due").len(), 1);
    project.write("flow.yaml", DRAINING.replace("exit 1", "true"));
    let output = ends(project.start(&["resume", &run, "--changed", "accept"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(starts(&project), 5, "t1 and t2 run again, t3 is done");
}

#[test]
fn sigterm_stops_a_run_whose_backoff_ended_while_the_phase_drains() {
    let project = Project::with(&DRAINING.replace("'sleep 2'", "'while true; do sleep 0.05; done', on_interrupt: rerun"));
    let child = project.start(&["run", "flow.yaml", "job"]);
    until("the end of the backoff", || project.run(&["log", "job"]).stdout.contains("backoff of task p/t1 is over"));
    signal(&child, Signal::TERM);
    let output = ends(child);
    assert_eq!(output.code, Some(143), "{output:?}");
    assert_eq!(project.status("job")["status"], "interrupted");
}

/// A task whose retry is due while another task occupies the only slot.
const NO_ROOM: &str = "
name: room
max_parallel: 1
phases:
  - id: p
    tasks:
      - { id: a, run: 'echo a >> ran; test -e b', retry: { attempts: 2, backoff: 100ms } }
      - { id: b, run: 'sleep 1; touch b' }
";

/// Like `NO_ROOM`, for the items of a list.
const NO_ROOM_IN_THE_LIST: &str = "
name: room
phases:
  - id: p
    tasks:
      - id: t
        for_each: { in: [a, b], max_parallel: 1 }
        retry: { attempts: 2, backoff: 100ms }
        run: 'echo $LOCKGATE_ITEM >> ran; if [ $LOCKGATE_ITEM = b ]; then sleep 1; touch b; else test -e b; fi'
";

#[test]
fn a_task_whose_backoff_ended_waits_for_a_free_slot() {
    for flow in [NO_ROOM, NO_ROOM_IN_THE_LIST] {
        let project = Project::with(flow);
        let output = ends(project.start(&["run", "flow.yaml"]));
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(project.read("ran").lines().filter(|line| *line == "a").count(), 2, "{flow}");
    }
}

#[test]
fn a_backoff_that_ends_while_the_phase_drains_does_not_delay_other_background_runs() {
    let waits = DRAINING.replace("'sleep 2'", "'while [ ! -e go ]; do sleep 0.05; done'");
    let project = Project::with(&waits);
    project.write("other.yaml", "name: other\nphases: [{ id: p, tasks: [{ id: t, run: 'echo done > other' }] }]\n");
    let first = project.json(0, &["run", "flow.yaml", "first", "--detach", "--json"]);
    until("the end of the backoff", || project.run(&["log", "first"]).stdout.contains("backoff of task p/t1 is over"));
    project.json(0, &["run", "other.yaml", "second", "--detach", "--json"]);
    until("the other run", || project.read("other") == "done\n");
    project.write("go", "");
    assert_eq!(project.run(&["wait", first["run"].as_str().unwrap()]).code, Some(1));
}
