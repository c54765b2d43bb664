//! Lost state: a write-ahead log that is damaged or deleted after a crash, and a `.lockgate` that is removed or moved during a
//! run.

use crate::project::{Project, finish, until};
use std::fs;
use std::process::Child;

/// Two tasks are done when the third one waits.
const FLOW: &str = "
name: flow
phases:
  - id: build
    tasks:
      - { id: one, run: 'echo one >> ran' }
      - { id: two, needs: [one], run: 'echo two >> ran' }
      - { id: wait, needs: [two], on_interrupt: rerun, run: 'echo wait >> ran; until test -e go || ! test -e flow.yaml; do sleep 0.05; done' }
";

fn sqlite() -> Project {
    let project = Project::on_sqlite();
    project.write("flow.yaml", FLOW);
    project
}

/// A project whose Lockgate process was killed while the third task ran. Also returns the run.
fn killed() -> (Project, String) {
    let project = sqlite();
    let mut child = project.start(&["run", "flow.yaml", "login"]);
    until("the third task starts", || project.read("ran").ends_with("wait\n"));
    child.kill().unwrap();
    child.wait().unwrap();
    let run = project.newest();
    (project, run)
}

#[test]
fn a_deleted_log_is_detected_and_nothing_runs_until_a_person_accepts_the_loss() {
    let (project, run) = killed();
    // The run starts in the database file, and continues in a log that is then deleted.
    let log = project.path(".lockgate/lockgate.db-wal");
    let resumed = project.start(&["resume", "login"]);
    until("the third task starts again", || project.read("ran").matches("wait\n").count() == 2);
    let mut resumed = resumed;
    resumed.kill().unwrap();
    resumed.wait().unwrap();
    fs::remove_file(&log).unwrap();

    let refused = project.run(&["resume", &run]);
    assert!(refused.code == Some(1) && refused.stderr.contains("error[commits-missing]"), "{refused:?}");
    assert!(refused.stderr.contains(&format!("of run {run}")) && refused.stderr.contains("--accept-missing"), "{refused:?}");
    assert_eq!(project.read("ran").lines().count(), 4, "nothing ran");
    let listed = project.run(&["runs"]);
    assert!(listed.code == Some(0) && listed.stderr.contains("missing from the database"), "{listed:?}");
    let verified = project.run(&["db", "verify"]);
    assert!(verified.code == Some(1) && verified.stdout.contains(&run), "{verified:?}");

    project.write("go", "");
    let accepted = project.run(&["db", "verify", "--accept-missing"]);
    assert_eq!(accepted.code, Some(0), "{accepted:?}");
    let resumed = project.run(&["resume", "login"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(project.status(&run)["status"], "complete");
}

#[test]
fn a_flipped_byte_in_the_log_is_detected() {
    let project = sqlite();
    let mut child = project.start(&["run", "flow.yaml", "login"]);
    until("the third task starts", || project.read("ran").ends_with("wait\n"));
    child.kill().unwrap();
    child.wait().unwrap();
    let log = project.path(".lockgate/lockgate.db-wal");
    let mut bytes = fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[end / 2] ^= 1;
    fs::write(&log, bytes).unwrap();
    let verified = project.run(&["db", "verify"]);
    assert!(verified.code == Some(1) && verified.stdout.contains("missing"), "{verified:?}");
    let refused = project.run(&["resume", "login"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("error[commits-missing]"), "{refused:?}");
    assert_eq!(project.read("ran").lines().count(), 3, "nothing ran again");
}

/// Runs until the third task waits, then manipulates the project's state.
fn run_and(change: impl FnOnce(&Project)) -> (Project, Child) {
    let project = sqlite();
    let child = project.start(&["run", "flow.yaml", "login"]);
    until("the third task starts", || project.read("ran").ends_with("wait\n"));
    change(&project);
    (project, child)
}

#[test]
fn a_run_whose_state_is_removed_is_never_reported_as_complete() {
    // The run may create a file while its directory is removed.
    let (project, child) =
        run_and(|project| until("the state is removed", || fs::remove_dir_all(project.path(".lockgate")).is_ok()));
    // The last task either ends before the change is noticed, or is stopped.
    project.write("go", "");
    let output = finish(child);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("error[root-moved]") && !output.stderr.contains("complete"), "{output:?}");
}

#[test]
fn a_run_whose_state_is_moved_stops_and_continues_at_the_new_location() {
    let (project, child) = run_and(|project| fs::rename(project.path(".lockgate"), project.path("moved")).unwrap());
    let output = finish(child);
    assert!(output.code == Some(1) && output.stderr.contains("error[root-moved]"), "{output:?}");
    let _ = fs::remove_dir_all(project.path(".lockgate"));
    fs::rename(project.path("moved"), project.path(".lockgate")).unwrap();
    project.write("go", "");
    let resumed = project.run(&["resume", "login"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(project.read("ran"), "one\ntwo\nwait\nwait\n");
}
