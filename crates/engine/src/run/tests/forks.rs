//! Forks: what a fork inherits, and what stays with its parent.

use super::*;
use crate::run::Status;
use crate::run::budget::{BudgetScope, Spent};
use crate::run::fork::{ForkAs, fork};
use crate::run::state::{Deliverable, End, EndedTask, GapRecord, KnownSession, TaskState};

/// A complete run of two phases, whose first question was answered by its default.
fn complete() -> Harness {
    let options = vec![choice("Go", Action::Continue), choice("Skip", Action::SkipPhases(vec![PhaseId::from("two")]))];
    let waits = WaitSettings { default: Some(OptionId::from("go")), ..WaitSettings::default() };
    let mut one = phase("one", vec![task("a", &[])]);
    one.checkpoint = Some(Checkpoint { waits, ..checkpoint(options).unwrap() });
    let mut harness = Harness::new(workflow(vec![one, phase("two", vec![task("b", &[])]), phase("three", vec![task("c", &[])])]));
    harness.work();
    assert_eq!(harness.run.end, Some(End::Complete));
    harness
}

fn forked(parent: &Harness) -> Harness {
    let hold = parent.run.decisions[0].hold.clone();
    let change = AnswerChange { hold, option: "skip".into(), feedback: None };
    let own = ForkAs { run: RunId::from("run00001"), output_dir: "out2".into(), driver: DriverId::from("driver-2") };
    let made = fork(&envelope(person(), 10_000_000, true), &change, &parent.run, own).unwrap();
    Harness { run: made.run, entries: made.entries, now: 20_000_000 }
}

#[test]
fn a_fork_keeps_the_work_and_usage_of_its_parent() {
    let mut parent = complete();
    let (phase, task) = (PhaseId::from("one"), TaskId::from("a"));
    let stored = OutputFile { path: "a.md".into(), digest: Digest::of(b"a"), bytes: 1, stored: true };
    let run = &mut parent.run;
    let value = |text: &str| StoredValue::Inline(text.into());
    run.outputs.insert(phase.clone(), [(task.clone(), value("1"))].into());
    run.item_outputs.insert(phase.clone(), [(task.clone(), [("x".to_owned(), value("2"))].into())].into());
    run.deliverables.push(Deliverable { key: key("one", 1, "a"), file: stored.clone(), at: Timestamp::from_millis(1) });
    run.not_done.insert(phase.clone(), vec![EndedTask { task, state: TaskState::Skipped }]);
    run.gap_checks.push(GapRecord {
        phase: phase.clone(),
        round: 1,
        status: "complete".into(),
        gaps: Vec::new(),
        action: None,
        agents: Vec::new(),
        at: Timestamp::from_millis(1),
    });
    run.spent.push((BudgetScope::Run, Spent { tokens: 7, ..Spent::default() }));
    let session = KnownSession { id: "s".into(), dir: None, confirmed: true, usage: None };
    run.sessions.by_agent.insert("claude".into(), session);
    run.consecutive_automatic.add(crate::hold::PolicyKind::Checkpoint);
    let fork = forked(&parent).run;
    let parent = parent.run;
    assert_eq!(fork.parent, Some(parent.id));
    assert_eq!((fork.outputs, fork.item_outputs), (parent.outputs, parent.item_outputs));
    assert_eq!((fork.deliverables, fork.not_done), (parent.deliverables, parent.not_done));
    assert_eq!((fork.gap_checks, fork.spent, fork.sessions), (parent.gap_checks, parent.spent, parent.sessions));
    assert_eq!(fork.subagents_spawned, parent.subagents_spawned);
    assert_eq!(fork.consecutive_automatic, parent.consecutive_automatic);
    assert_eq!(fork.iteration_counts, parent.iteration_counts);
    assert_eq!(fork.completed, [phase], "phases after the changed answer are no longer done");
    assert!(fork.touched.referenced_values.contains(&stored.digest), "the store keeps what the fork refers to");
}

#[test]
fn a_fork_does_not_inherit_warnings_and_refused_attempts_of_its_parent() {
    let mut parent = complete();
    parent.run.warnings.push("careful".into());
    parent.run.refused_attempts = 3;
    let mut fork = forked(&parent);
    assert_eq!((fork.run.end.clone(), fork.run.refused_attempts), (None, 0));
    assert_eq!(fork.run.warnings, Vec::<String>::new());
    fork.outcome(CommandKind::Advance);
    fork.work();
    assert_eq!(fork.started(), ["three/c"]);
    assert_eq!(fork.run.status(), Status::Complete);
}
