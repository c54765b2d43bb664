//! Finalization: the file that is written from the context once all phases are done.

use super::*;
use crate::run::Status;

fn finalizing() -> Workflow {
    let finalization = Some(Finalization { template: "done".into(), output: "final.md".into() });
    Workflow { finalization, ..workflow(vec![phase("one", vec![task("a", &[])]), phase("two", vec![task("b", &[])])]) }
}

fn file() -> OutputFile {
    OutputFile { path: "final.md".into(), digest: Digest::of(b"x"), bytes: 1, stored: true }
}

fn finalized() -> CommandKind {
    CommandKind::Finalized { made: Ok(file()) }
}

/// A run whose phases are all done.
fn at_the_end() -> Harness {
    let mut harness = Harness::new(finalizing());
    while harness.run.pending() != [Effect::Finalize] {
        harness.perform(&harness.run.pending()[0].clone());
    }
    harness
}

#[test]
fn a_run_is_complete_once_its_finalization_is_written() {
    let mut harness = at_the_end();
    assert_eq!(harness.run.status(), Status::Running);
    let events = harness.outcome(finalized());
    assert_eq!(events, [Event::Finalized { file: file() }, Event::Completed]);
    assert_eq!(harness.run.finalized, Some(file()));
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_finalization_counts_only_after_the_last_phase() {
    let mut harness = Harness::new(finalizing());
    assert_eq!(harness.outcome(finalized()), [], "a phase is running");
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    let created = Created::new(RunId::from("run00000"), Digest::of(b"definition"), "out".into(), DriverId::from("driver-1"));
    let body = Create { created, presets: Vec::new() };
    let (run, entries) = create(&envelope(person(), 0, false), &body, Arc::new(finalizing())).unwrap();
    let mut waiting = Harness { run, entries, now: 0 };
    assert_eq!(waiting.tell(Actor::driver(), finalized(), false), Ok(Vec::new()), "no phase has started");
}

#[test]
fn a_finalization_counts_once() {
    let mut harness = at_the_end();
    assert_eq!(harness.tell(Actor::driver(), finalized(), false).unwrap().len(), 1);
    assert_eq!(harness.tell(Actor::driver(), finalized(), false), Ok(Vec::new()));
    assert!(harness.run.pending().is_empty(), "it is not written again");
}

#[test]
fn a_failed_finalization_fails_the_run_and_resuming_retries_it() {
    let mut harness = at_the_end();
    let events = harness.outcome(CommandKind::Finalized { made: Err(no_space()) });
    assert_eq!(events, [Event::Failed { message: "the finalization failed: no space left".into() }]);
    harness.take_over();
    assert_eq!(harness.run.pending(), [Effect::Finalize]);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "two/b"]);
}

#[test]
fn a_definition_changed_after_the_last_phase_runs_only_added_work() {
    let mut harness = at_the_end();
    harness.outcome(CommandKind::Finalized { made: Err(no_space()) });
    let mut now = finalizing();
    now.phases.push(phase("three", vec![task("c", &[])]));
    let body = CommandKind::AcceptDefinition { definition: Digest::of(b"changed"), workflow: Arc::new(now), files: Vec::new() };
    harness.tell(person(), body, false).unwrap();
    harness.take_over();
    harness.work();
    assert_eq!(harness.started(), ["one/a", "two/b", "three/c"]);
    assert_eq!(harness.run.status(), Status::Complete);
}
