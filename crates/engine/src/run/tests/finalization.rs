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
fn at_the_end() -> Bench {
    let mut bench = Bench::new(finalizing());
    while bench.run.pending() != [Effect::Finalize] {
        bench.perform(&bench.run.pending()[0].clone());
    }
    bench
}

#[test]
fn a_run_is_complete_once_its_finalization_is_written() {
    let mut bench = at_the_end();
    assert_eq!(bench.run.status(), Status::Running);
    let events = bench.outcome(finalized());
    assert_eq!(events, [Event::Finalized { file: file() }, Event::Completed]);
    assert_eq!(bench.run.finalized, Some(file()));
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_finalization_counts_only_after_the_last_phase() {
    let mut bench = Bench::new(finalizing());
    assert_eq!(bench.outcome(finalized()), [], "a phase is running");
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    let created = Created::new(RunId::from("run00000"), Digest::of(b"definition"), "out".into(), DriverId::from("driver-1"));
    let body = Create { created, presets: Vec::new() };
    let (run, entries) = create(&envelope(person(), 0, false), &body, Arc::new(finalizing())).unwrap();
    let mut waiting = Bench { run, entries, now: 0 };
    assert_eq!(waiting.tell(Actor::driver(), finalized(), false), Ok(Vec::new()), "no phase has started");
}

#[test]
fn a_finalization_counts_once() {
    let mut bench = at_the_end();
    assert_eq!(bench.tell(Actor::driver(), finalized(), false).unwrap().len(), 1);
    assert_eq!(bench.tell(Actor::driver(), finalized(), false), Ok(Vec::new()));
    assert!(bench.run.pending().is_empty(), "it is not written again");
}

#[test]
fn a_finalization_that_fails_fails_the_run_and_resuming_tries_it_again() {
    let mut bench = at_the_end();
    let events = bench.outcome(CommandKind::Finalized { made: Err(no_space()) });
    assert_eq!(events, [Event::Failed { message: "the finalization could not be made: no space left".into() }]);
    bench.take_over();
    assert_eq!(bench.run.pending(), [Effect::Finalize]);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started(), ["one/a", "two/b"]);
}

#[test]
fn a_definition_that_changes_after_the_last_phase_runs_only_what_it_adds() {
    let mut bench = at_the_end();
    bench.outcome(CommandKind::Finalized { made: Err(no_space()) });
    let mut now = finalizing();
    now.phases.push(phase("three", vec![task("c", &[])]));
    let body = CommandKind::AcceptDefinition { definition: Digest::of(b"changed"), workflow: Arc::new(now), files: Vec::new() };
    bench.tell(person(), body, false).unwrap();
    bench.take_over();
    bench.work();
    assert_eq!(bench.started(), ["one/a", "two/b", "three/c"]);
    assert_eq!(bench.run.status(), Status::Complete);
}
