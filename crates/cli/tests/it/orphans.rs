//! Orphans of a killed Lockgate process are ended before anything else runs, regardless of the history, and no task runs
//! alongside an earlier attempt of itself.

use crate::project::{Project, lives, signal, until};
use rustix::process::Signal;

/// Ignores requests to end, and regularly records that it is alive.
const STUBBORN: &str =
    r#"trap '' TERM; echo $$ >> pids; exec 9>>stubborn.lock; flock -n 9 || echo overlap >> overlaps; sleep "$SLEEP" 9>&9"#;

fn flow(on_fail: &str) -> String {
    format!(
        "name: stubborn
phases:
  - id: p
    fail_fast: true
    tasks:
      - {{ id: bad, on_interrupt: rerun, on_fail: {on_fail}, run: 'until test -s pids; do sleep 0.02; done; test -f fixed' }}
      - {{ id: slow, on_interrupt: rerun, env: {{ SLEEP: '{{{{vars.sleep}}}}' }}, run: {STUBBORN:?} }}
vars: {{ sleep: '30' }}
"
    )
}

fn pids(project: &Project) -> Vec<String> {
    project.read("pids").lines().map(str::to_owned).collect()
}

#[test]
fn tasks_that_fail_fast_was_stopping_at_a_kill_are_stopped_on_resume() {
    let project = Project::with(&flow("fail"));
    let mut first = project.start(&["run", "flow.yaml"]);
    until("the run has failed", || project.run(&["runs", "--json"]).stdout.contains("failed"));
    first.kill().unwrap();
    first.wait().unwrap();
    let old = pids(&project);
    assert!(lives(&old[0]), "it ignores the signal, and no process is left to kill it");
    project.write("fixed", "");
    let second = project.start(&["resume", &project.newest()]);
    until("it runs again", || pids(&project).len() == 2);
    assert!(!lives(&old[0]), "the old one was ended first");
    assert_eq!(project.read("overlaps"), "");
    signal(&second, Signal::INT);
    signal(&second, Signal::INT);
    crate::project::finish(second);
}

#[test]
fn a_repeated_phase_waits_until_tasks_of_the_previous_execution_have_stopped() {
    let project = Project::with(&flow("repeat"));
    let run = project.start(&["run", "flow.yaml", "--var", "sleep=1"]);
    until("the phase is repeated", || pids(&project).len() >= 2);
    project.write("fixed", "");
    assert_eq!(crate::project::finish(run).code, Some(0));
    assert_eq!(project.read("overlaps"), "");
}

#[test]
fn cancelling_stops_tasks_that_a_killed_lockgate_was_stopping() {
    let project = Project::with(&flow("fail").replace("fail_fast: true", "fail_fast: false"));
    let mut driver = project.start(&["run", "flow.yaml"]);
    until("it runs", || !pids(&project).is_empty());
    assert_eq!(project.run(&["cancel", &project.newest()]).code, Some(0));
    driver.kill().unwrap();
    driver.wait().unwrap();
    let old = pids(&project);
    assert_eq!(project.run(&["cancel", &project.newest()]).code, Some(0));
    assert!(!lives(&old[0]));
}
