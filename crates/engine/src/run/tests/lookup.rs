//! The lookup of a phase: how many tasks have ended, how, and which wait for them.

use super::questions::decision;
use super::*;
use crate::run::phase::PhaseRun;
use crate::run::state::TaskState;
use crate::spec::subagent::Subagent;

fn items(harness: &mut Harness, names: &[&str]) {
    let item = |name: &&str| crate::run::command::Item { key: (*name).into(), value: StoredValue::Inline("1".into()) };
    let outcome = TaskOutcome::Items(names.iter().map(item).collect());
    harness.outcome(CommandKind::TaskEnded { key: key("one", 1, "e"), attempt: 1, outcome, agent: None, commit: None });
}

fn each(id: &str, needs: &[&str]) -> Task {
    Task { for_each: Some(ForEach { over: ItemSource::List(Vec::new()), max_parallel: None }), ..task(id, needs) }
}

fn adaptive() -> Task {
    let script = Script { source: String::new(), reads: Reads::Parts(BTreeSet::new()), line: 0 };
    Task::new(TaskId::from("adaptive"), Work::Adaptive(script))
}

fn call(harness: &mut Harness, kinds: &[&str]) {
    let agents = kinds.iter().map(|kind| Subagent { kind: (*kind).into(), config: BTreeMap::new() }).collect();
    let outcome = TaskOutcome::Agents(agents);
    harness.outcome(CommandKind::TaskEnded { key: key("one", 1, "adaptive"), attempt: 1, outcome, agent: None, commit: None });
}

#[test]
fn a_failed_fan_out_names_the_number_of_failed_items() {
    let tolerant = Task { continue_on_error: true, ..each("e", &[]) };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![tolerant, task("other", &[]), task("after", &["e"])])]));
    items(&mut harness, &["x", "y", "z"]);
    harness.fail("one/e[x]");
    harness.fail("one/e[z]");
    harness.perform(&harness.effect_of("one/e[y]"));
    let said = |event: &Event| matches!(event, Event::TaskFailed { key, failure, .. } if key.item.is_none() && failure.message == "2 of its 3 tasks failed" && failure.kind == FailureKind::Items);
    assert!(harness.has(said));
    assert!(!harness.started().contains(&"one/after".to_owned()));
}

#[test]
fn progress_counts_declared_tasks_and_not_their_items() {
    let tasks = vec![each("e", &[]), adaptive(), decision("ask", &["e", "adaptive"])];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    items(&mut harness, &["x", "y"]);
    assert_eq!(harness.run.progress(), (0, 3));
    harness.perform(&harness.effect_of("one/e[x]"));
    assert_eq!(harness.run.progress(), (0, 3));
    harness.perform(&harness.effect_of("one/e[y]"));
    assert_eq!(harness.run.progress(), (1, 3));
    call(&mut harness, &["helper"]);
    harness.work();
    assert_eq!(harness.run.progress(), (2, 3));
    assert_eq!(harness.hold().question.as_ref().map(|asked| (asked.done, asked.total)), Some((2, 3)));
}

#[test]
fn a_finished_phase_keeps_its_unfinished_tasks() {
    let tasks =
        vec![adaptive(), Task { continue_on_error: true, ..task("a", &[]) }, Task { when: condition(), ..task("b", &[]) }];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks), phase("two", vec![task("c", &[])])]));
    call(&mut harness, &["helper"]);
    harness.fail("one/a");
    harness.outcome(CommandKind::WhenEvaluated { key: key("one", 1, "b"), outcome: ConditionOutcome::False });
    harness.fail("one/helper");
    let step = crate::id::StepKey::Task(key("one", 1, "helper"));
    harness.tell(person(), CommandKind::SkipTask { step, reason: "not today".into(), cut_off: None }, true).unwrap();
    harness.take_over();
    assert_eq!(harness.run.current.as_ref().unwrap().id.as_str(), "two");
    let ended: Vec<&str> = harness.run.not_done["one"].iter().map(|ended| ended.task.as_str()).collect();
    assert_eq!(ended, ["a", "b"], "an agent that a script named is part of the script's task");
}

/// Sets each of these states in turn, and checks that the counters equal those of a lookup built from scratch.
fn follows(phase: &mut PhaseRun, declared: &Phase, index: usize, states: &[TaskState]) {
    for state in states {
        phase.set(index, state.clone());
        let mut anew = phase.clone();
        anew.look_up(declared);
        assert_eq!(*phase, anew, "{state:?}");
    }
}

#[test]
fn dependents_are_counted_the_same_for_every_task_outcome() {
    let any = Task { join: Join::Any, ..task("any", &["a", "b"]) };
    let done = Task { join: Join::Done, ..task("done", &["a"]) };
    let conditional = Task { when: condition(), ..task("conditional", &["a"]) };
    let tasks = vec![task("a", &[]), task("b", &[]), any, done, conditional, task("all", &["a", "b"]), task("waits", &[])];
    let declared = phase("one", tasks);
    let harness = Harness::new(workflow(vec![declared.clone()]));
    let mut phase = harness.run.current.unwrap();
    phase.tasks[6].exchange = Some(Box::default());
    phase.tasks[6].exchange.as_mut().unwrap().after = vec![TaskId::from("a")];
    phase.tasks[6].state = TaskState::Waiting;
    phase.look_up(&declared);
    let omitted = |failed| TaskState::Omitted { reason: String::new(), failed };
    let states = [
        TaskState::Done,
        TaskState::Waiting,
        TaskState::Tolerated(broken()),
        TaskState::Running,
        omitted(true),
        omitted(false),
        TaskState::Failed(broken()),
        TaskState::Skipped,
        omitted(true),
        TaskState::Done,
        TaskState::Blocked,
    ];
    for (index, state) in [(0, TaskState::Done), (1, TaskState::Tolerated(broken())), (1, TaskState::Done)] {
        follows(&mut phase, &declared, 1 - index, std::slice::from_ref(&state));
        follows(&mut phase, &declared, index, &states);
    }
}
