//! Stored forms: replaying a history and reading a materialized state yield the same run.

use super::*;
use crate::run::hash_chain::{Commit, CommitError, FORMAT};
use crate::run::history::HistoryError;

fn busy() -> Harness {
    let mut first = phase("plan", vec![task("a", &[]), task("b", &["a"])]);
    first.checkpoint =
        checkpoint(vec![choice("Continue", Action::Continue), choice("Redo", Action::RepeatPhase(PhaseId::from("plan")))]);
    let mut harness = Harness::new(workflow(vec![first, phase("build", vec![task("make", &[]), task("test", &[])])]));
    harness.work();
    harness.answer("Redo", Some("again"));
    harness.work();
    harness.answer("Continue", None);
    harness.perform(&harness.run.pending()[0].clone());
    harness
}

/// The history of a harness with one commit per event, and the resulting state.
fn sealed(harness: &Harness) -> (Vec<crate::run::hash_chain::SealedCommit>, Run) {
    let workflow = harness.run.workflow.clone();
    let (mut version, mut seq, mut head) = (0, 1, Digest::ZERO);
    let mut commits = Vec::new();
    for entry in &harness.entries {
        let commit = Commit { first_seq: seq, entries: vec![entry.clone()] };
        let sealed = commit.seal(&harness.run.id, version + 1, head);
        (version, seq, head) = (version + 1, seq + 1, sealed.hash);
        commits.push(sealed);
    }
    let (mut run, _) = Run::first(&commits[0], workflow).unwrap();
    for commit in &commits[1..] {
        run.apply_commit(commit).unwrap();
    }
    (commits, run)
}

#[test]
fn a_replayed_history_is_the_same_run() {
    let harness = busy();
    let (commits, replayed) = sealed(&harness);
    assert_eq!(replayed.pending(), harness.run.pending());
    assert_eq!(replayed.full_context(&|_| None), harness.run.full_context(&|_| None));
    assert_eq!((replayed.version, replayed.head), (commits.len() as u64, commits.last().unwrap().hash));
}

#[test]
fn a_materialized_state_read_back_is_the_same_run() {
    let (_, run) = sealed(&busy());
    let mut read = Run::from_bytes(&run.to_bytes()).unwrap();
    read.attach(run.workflow.clone()).unwrap();
    assert_eq!(read, run);
}

#[test]
fn a_definition_read_back_is_the_same_definition() {
    let workflow = busy().run.workflow.clone();
    assert_eq!(Workflow::from_bytes(&workflow.to_bytes()).unwrap(), *workflow);
}

#[test]
fn the_hash_chain_breaks_when_a_commit_is_changed() {
    let harness = busy();
    let (mut commits, _) = sealed(&harness);
    assert!(commits[1].follows(&harness.run.id, commits[0].hash));
    let last = commits[1].payload.len() - 1;
    commits[1].payload[last] ^= 1;
    assert!(!commits[1].follows(&harness.run.id, commits[0].hash));
}

#[test]
fn a_commit_of_a_later_release_is_refused_with_a_clear_error() {
    let (mut commits, _) = sealed(&busy());
    commits[0].payload[0] = FORMAT + 1;
    assert!(matches!(commits[0].open(), Err(CommitError::Newer { version: 1, .. })));
    commits[0].payload.clear();
    assert!(matches!(commits[0].open(), Err(CommitError::Damaged { .. })));
}

#[test]
fn a_history_without_its_first_commit_is_refused() {
    let (commits, run) = sealed(&busy());
    assert_eq!(Run::first(&commits[1], run.workflow.clone()).unwrap_err(), HistoryError::NoBeginning);
}

#[test]
fn applying_an_impossible_history_does_not_panic() {
    let mut run = Harness::new(workflow(vec![phase("plan", vec![task("a", &[]), task("b", &["a"])])])).run;
    let at = |event: Event| Entry { at: Timestamp::from_millis(1), actor: None, cause: None, event };
    let done = || {
        at(Event::TaskFinished {
            key: key("plan", 1, "a"),
            attempt: 1,
            result: None,
            outputs: Vec::new(),
            agent: None,
            commit: None,
        })
    };
    let events = [done(), at(Event::RetryRequested { key: key("plan", 1, "a") }), done()];
    for entry in &events[..2] {
        run.apply(entry).unwrap();
    }
    let ready = |run: &Run| run.current.as_ref().unwrap().ready().collect::<Vec<_>>();
    assert_eq!(ready(&run), [0], "dependents of a task that is requested again wait for it");
    run.apply(&events[2]).unwrap();
    assert_eq!(ready(&run), [1]);
    let late = Commit { first_seq: u64::MAX, entries: vec![at(Event::Completed)] };
    run.apply_commit(&late.seal(&run.id, 1, Digest::ZERO)).unwrap();
    assert_eq!(run.status(), crate::run::Status::Complete);
}

#[test]
fn variable_names_do_not_affect_the_stored_form() {
    let mut definition = workflow(vec![phase("plan", vec![task("a", &[])])]);
    let value = serde_json::json!({"$serde_json::private::RawValue": "1", "$serde_json::private::Number": "2"});
    definition.vars.insert("x".into(), value.clone());
    assert_eq!(Workflow::from_bytes(&definition.to_bytes()).unwrap(), definition);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&value.to_string()).unwrap(), value);
}

#[test]
fn an_option_keeps_each_of_its_fields_in_the_stored_form() {
    let option = Choice {
        cons: Some("slow".into()),
        restores: vec![PhaseId::from("p.one")],
        ..choice("Again", Action::RepeatPhase(PhaseId::from("p.one")))
    };
    let mut one = phase("one", Vec::new());
    one.checkpoint = checkpoint(vec![choice("Continue", Action::Continue), option]);
    let asked = workflow(vec![one]);
    assert_eq!(Workflow::from_bytes(&asked.to_bytes()).unwrap(), asked);
}
