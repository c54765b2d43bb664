//! The points at which snapshots are due, and what a snapshot says.

use super::*;
use crate::snapshot::document::{self, SavedState, Surroundings};
use crate::snapshot::{Detector, Due, Trigger};
use serde_json::{Map, Value, json};

/// The points of a history at which snapshots are due, with the states there. Events of one command form a commit.
fn points(of: &Harness, wants: &dyn Fn(Trigger) -> bool) -> Vec<(Due, Run)> {
    let Event::Created(created) = &of.entries[0].event else { panic!("a history starts with the creation") };
    let mut run = Run::start(created, of.run.workflow.clone(), of.entries[0].at);
    let (mut detector, mut found) = (Detector::new(), Vec::new());
    for (index, entry) in of.entries.iter().enumerate().skip(1) {
        let ends = of.entries[index - 1].at != entry.at;
        for next in ends.then_some(None).into_iter().chain([Some(entry)]) {
            found.extend(detector.observe(&run, next, index as u64, wants).map(|due| (due, run.clone())));
        }
        run.apply(entry).unwrap();
    }
    found.extend(detector.observe(&run, None, of.entries.len() as u64, wants).map(|due| (due, run.clone())));
    found
}

fn triggers(of: &Harness, wants: &dyn Fn(Trigger) -> bool) -> Vec<(Trigger, String)> {
    points(of, wants).into_iter().map(|(due, _)| (due.trigger, due.phase.unwrap().to_string())).collect()
}

fn all(_: Trigger) -> bool {
    true
}

fn content(run: &Run, due: &Due) -> Map<String, Value> {
    document::content(run, due, &Surroundings::default(), SavedState::Inline(json!({})), &[])
}

fn diamond() -> Workflow {
    let tasks = vec![task("a", &[]), task("b", &["a"]), task("c", &["a"]), task("d", &["b", "c"])];
    workflow(vec![phase("build", tasks), phase("ship", vec![task("e", &[])])])
}

#[test]
fn a_snapshot_is_due_at_the_start_after_each_batch_and_before_the_next_phase() {
    let mut harness = Harness::new(diamond());
    harness.work();
    let build = |trigger| (trigger, "build".to_owned());
    let ship = |trigger| (trigger, "ship".to_owned());
    // The last batch of a phase ends together with the phase, whose trigger is the stronger one.
    let expected = [
        build(Trigger::PhaseTransition),
        build(Trigger::BatchComplete),
        build(Trigger::BatchComplete),
        build(Trigger::PhaseTransition),
        ship(Trigger::PhaseTransition),
        ship(Trigger::SessionEnd),
    ];
    assert_eq!(triggers(&harness, &all), expected);
}

#[test]
fn the_snapshot_before_the_next_phase_shows_the_finished_one() {
    let mut harness = Harness::new(diamond());
    harness.work();
    let (due, run) = points(&harness, &all).remove(3);
    assert_eq!(run.current.as_ref().unwrap().id.as_str(), "build");
    let content = content(&run, &due);
    assert_eq!(content["execution_graph"]["completed_batches"], json!([1, 2, 3]));
    assert_eq!(content["execution_graph"]["current_batch"], json!(null));
    assert_eq!(content["execution_graph"]["node_states"]["d"]["batch"], 3);
    assert_eq!(content["recovery_info"]["resume_from"], "end_of_phase_build");
}

#[test]
fn a_batch_that_is_switched_off_leaves_the_weaker_trigger() {
    let mut harness = Harness::new(diamond());
    harness.work();
    let without = |trigger: Trigger| trigger == Trigger::BatchComplete;
    let found = triggers(&harness, &without);
    assert_eq!(found.len(), 4, "every batch has one: {found:?}");
}

#[test]
fn several_batches_that_complete_in_one_commit_make_one_snapshot() {
    let omitted = |id: &str, needs: &[&str]| Task { when: condition(), ..task(id, needs) };
    let tasks = vec![task("a", &[]), omitted("b", &["a"]), omitted("c", &["b"]), task("z", &["c"])];
    let mut harness = Harness::new(workflow(vec![phase("build", tasks)]));
    let start = harness.effect_of("build/a");
    harness.perform(&start);
    let before = triggers(&harness, &all).len();
    let undecided = harness.run.pending().into_iter().next().unwrap();
    let Effect::When { key } = undecided else { panic!("a condition is evaluated") };
    harness.outcome(CommandKind::WhenEvaluated { key, outcome: ConditionOutcome::False });
    let after = triggers(&harness, &all);
    assert_eq!(after.len(), before + 1, "{after:?}");
}

#[test]
fn an_interrupt_by_a_person_and_one_by_the_system_have_their_own_triggers() {
    for (signal, trigger) in [("SIGINT", Trigger::UserInterrupt), ("SIGTERM", Trigger::SessionEnd)] {
        let mut harness = Harness::new(diamond());
        harness.outcome(CommandKind::Interrupt { signal: signal.into() });
        let (due, run) = points(&harness, &all).pop().unwrap();
        assert_eq!(due.trigger, trigger);
        assert!(run.current.as_ref().unwrap().running().next().is_none(), "nothing is left running in it");
    }
}

#[test]
fn an_agent_that_finishes_is_a_trigger_of_its_own() {
    let agent = Task::new(TaskId::from("a"), Work::Agent(Box::default()));
    let tasks = vec![agent, task("z", &[])];
    let mut harness = Harness::new(workflow(vec![phase("build", tasks)]));
    let effect = harness.effect_of("build/a");
    harness.perform(&effect);
    assert_eq!(triggers(&harness, &all).last().unwrap().0, Trigger::AgentComplete);
}

#[test]
fn a_history_that_is_followed_from_the_middle_gives_the_same_points() {
    let mut harness = Harness::new(diamond());
    harness.work();
    let whole = points(&harness, &all);
    let (middle, run) = &whole[1];
    let mut run = run.clone();
    let mut detector = Detector::from(&run);
    let mut found = Vec::new();
    for (index, entry) in harness.entries.iter().enumerate().skip(middle.seq as usize) {
        let ends = harness.entries[index - 1].at != entry.at;
        for next in ends.then_some(None).into_iter().chain([Some(entry)]) {
            found.extend(detector.observe(&run, next, index as u64, &all));
        }
        run.apply(entry).unwrap();
    }
    found.extend(detector.observe(&run, None, harness.entries.len() as u64, &all));
    let expected: Vec<Due> = whole[2..].iter().map(|(due, _)| due.clone()).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_id_has_the_hash_of_the_content_without_the_id() {
    let harness = Harness::new(diamond());
    let due = Due::now(&harness.run, Trigger::Manual, Timestamp::from_millis(1_736_850_600_000));
    let mut content = content(&harness.run, &due);
    let id = document::id(&content, &due);
    assert!(id.as_str().starts_with("CP-build-20250114T103000Z-"), "{id}");
    content.insert("checkpoint_id".into(), json!(id));
    assert!(id.as_str().ends_with(&document::content_hash(&content)));
    content.insert("trigger".into(), json!("batch_complete"));
    assert!(!id.as_str().ends_with(&document::content_hash(&content)));
}

#[test]
fn an_open_question_is_where_a_run_resumes() {
    let asked = Phase { checkpoint: checkpoint(vec![choice("Continue", Action::Continue)]), ..phase("a", vec![task("x", &[])]) };
    let mut harness = Harness::new(workflow(vec![asked]));
    harness.work();
    let due = Due::now(&harness.run, Trigger::Manual, Timestamp::from_millis(0));
    let content = content(&harness.run, &due);
    assert_eq!(content["recovery_info"]["resume_from"], format!("hold_{}", harness.hold().id));
    assert_eq!(content["recovery_info"]["can_resume"], true);
}
