//! Fan-out, tasks that are left out, gap checks, and definitions that change during a run.

use super::*;
use crate::run::Status;
use crate::run::command::Item;
use crate::spec::subagent::Subagent;

fn items(names: &[&str]) -> TaskOutcome {
    TaskOutcome::Items(
        names.iter().map(|name| Item { key: (*name).into(), value: StoredValue::Inline(format!("\"{name}\"")) }).collect(),
    )
}

fn each(id: &str, max_parallel: Option<u32>) -> Task {
    Task { for_each: Some(ForEach { over: ItemSource::List(Vec::new()), max_parallel }), ..task(id, &[]) }
}

fn end(harness: &mut Harness, address: &str, outcome: TaskOutcome) {
    let found = harness.run.pending().into_iter().find_map(|effect| match effect {
        Effect::Task { key, attempt } if key.address() == address => Some((key, attempt)),
        _ => None,
    });
    let (key, attempt) = found.unwrap_or_else(|| panic!("{address} does not run: {:?}", harness.run.pending()));
    harness.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
}

fn gap_check() -> Option<GapCheck> {
    Some(GapCheck {
        criteria: Vec::new(),
        script: None,
        on_failure: GapAction::Retry,
        additional: Vec::new(),
        max_iterations: 3,
        message: None,
    })
}

fn gaps(harness: &mut Harness, action: Option<GapAction>, agents: &[&str]) {
    let Some(Effect::Gaps { phase, iteration, round }) = harness.run.pending().into_iter().next() else {
        panic!("no gap check is due: {:?}", harness.run.pending())
    };
    let agents = agents.iter().map(|kind| Subagent { kind: (*kind).into(), config: BTreeMap::new() }).collect();
    let found = GapsFound::Gaps { status: "incomplete".into(), gaps: vec!["a gap".into()], action, agents, message: None };
    harness.outcome(CommandKind::GapsChecked { phase, iteration, round, found });
}

#[test]
fn dependents_wait_for_all_items_and_the_fan_out_limits_parallelism() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![each("e", Some(2)), task("after", &["e"])])]));
    end(&mut harness, "one/e", items(&["a", "b", "c"]));
    assert_eq!(harness.started(), ["one/e", "one/e[a]", "one/e[b]"]);
    end(&mut harness, "one/e[b]", TaskOutcome::Finished { result: Some(StoredValue::Inline("1".into())), outputs: Vec::new() });
    assert_eq!(harness.started().last().unwrap(), "one/e[c]");
    end(&mut harness, "one/e[a]", TaskOutcome::Finished { result: None, outputs: Vec::new() });
    assert!(!harness.started().contains(&"one/after".to_owned()));
    end(&mut harness, "one/e[c]", TaskOutcome::Finished { result: None, outputs: Vec::new() });
    assert_eq!(harness.started().last().unwrap(), "one/after");
    assert_eq!(harness.run.full_context(&|_| None)["outputs"]["one"]["e"]["b"], 1);
    assert_eq!(harness.run.subagents_spawned, 4, "the fan-out task itself is not an agent");
}

#[test]
fn an_empty_fan_out_completes_immediately() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![each("e", None)])]));
    end(&mut harness, "one/e", items(&[]));
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn only_the_failed_item_is_retried() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![each("e", None)])]));
    end(&mut harness, "one/e", items(&["a", "b"]));
    end(&mut harness, "one/e[a]", TaskOutcome::Finished { result: None, outputs: Vec::new() });
    end(&mut harness, "one/e[b]", TaskOutcome::Failed(broken()));
    assert_eq!(harness.run.status(), Status::Failed);
    harness.tell(person(), CommandKind::TakeOver { driver: DriverId::from("other"), detached: false }, true).unwrap();
    assert_eq!(harness.started()[3..], ["one/e[b]"]);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn agents_named_by_a_script_in_a_sequential_phase_run_sequentially() {
    let script = Script { source: String::new(), reads: Reads::Parts(BTreeSet::new()), line: 0 };
    let mut first = phase("one", vec![Task::new(TaskId::from("adaptive"), Work::Adaptive(script))]);
    first.sequential = true;
    let mut harness = Harness::new(workflow(vec![first]));
    let named = |kind: &str| Subagent { kind: kind.into(), config: BTreeMap::new() };
    end(&mut harness, "one/adaptive", TaskOutcome::Agents(vec![named("x"), named("x"), named("adaptive")]));
    assert_eq!(harness.started(), ["one/adaptive", "one/x"]);
    harness.work();
    assert_eq!(harness.started()[2..], ["one/x-2", "one/adaptive-2"]);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_repeated_phase_fans_out_again() {
    let mut first = phase("one", vec![each("e", None)]);
    first.checkpoint =
        checkpoint(vec![choice("Redo", Action::RepeatPhase(PhaseId::from("one"))), choice("Continue", Action::Continue)]);
    let mut harness = Harness::new(workflow(vec![first]));
    end(&mut harness, "one/e", items(&["a"]));
    end(&mut harness, "one/e[a]", TaskOutcome::Finished { result: Some(StoredValue::Inline("1".into())), outputs: Vec::new() });
    harness.perform(&harness.run.pending()[0].clone());
    harness.answer("Redo", None);
    end(&mut harness, "one/e", items(&["b"]));
    assert_eq!(
        harness.run.full_context(&|_| None)["outputs"]["one"].get("e"),
        None,
        "the results of the last execution are gone"
    );
    harness.work();
    harness.answer("Continue", None);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn gaps_are_closed_by_retries_until_the_limit_then_by_a_person() {
    let mut first = phase("one", vec![task("a", &[])]);
    first.gap_check = gap_check();
    let mut harness = Harness::new(workflow(vec![first]));
    for _ in 0..3 {
        while !matches!(harness.run.pending()[0], Effect::Gaps { .. }) {
            harness.perform(&harness.run.pending()[0].clone());
        }
        gaps(&mut harness, None, &[]);
    }
    assert_eq!(harness.run.iteration_counts["one"], 3);
    assert_eq!(harness.hold().kind, crate::hold::HoldKind::Gaps);
    harness.answer("Run the phase again", Some("look harder"));
    assert_eq!(harness.run.current.as_ref().unwrap().feedback.as_deref(), Some("look harder"));
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    let rounds: Vec<u32> = harness.run.gap_checks.iter().map(|check| check.round).collect();
    assert_eq!(rounds, [1, 2, 3, 1], "a person's answer resets the count");
}

#[test]
fn agents_called_by_a_gap_check_run_in_the_same_execution() {
    let mut first = phase("one", vec![task("a", &[])]);
    first.gap_check = gap_check();
    let mut harness = Harness::new(workflow(vec![first]));
    harness.perform(&harness.run.pending()[0].clone());
    gaps(&mut harness, Some(GapAction::SpawnAdditional), &["helper", "a"]);
    assert_eq!(harness.started(), ["one/a", "one/helper", "one/a-2"]);
    harness.work();
    assert_eq!(harness.run.iteration_counts["one"], 1);
    assert_eq!(harness.run.status(), Status::Complete);
    let mut harness = Harness::new(workflow(vec![Phase { gap_check: gap_check(), ..phase("one", vec![task("a", &[])]) }]));
    harness.perform(&harness.run.pending()[0].clone());
    gaps(&mut harness, Some(GapAction::SpawnAdditional), &[]);
    assert_eq!(harness.hold().kind, crate::hold::HoldKind::Gaps, "without agents to start, a person decides");
}

#[test]
fn a_changed_definition_applies_to_work_that_has_not_started() {
    let mut harness =
        Harness::new(workflow(vec![phase("one", vec![task("a", &[]), task("b", &["a"])]), phase("two", vec![task("c", &[])])]));
    let changed = workflow(vec![
        phase("zero", vec![task("z", &[])]),
        phase("one", vec![task("a", &[]), task("d", &["a"])]),
        phase("three", vec![task("e", &[])]),
    ]);
    let accept = |workflow: Workflow| CommandKind::AcceptDefinition {
        definition: Digest::of(b"changed"),
        workflow: Arc::new(workflow),
        files: Vec::new(),
    };
    let refused = harness.tell(person(), accept(workflow(vec![phase("two", Vec::new())])), false);
    assert!(matches!(refused, Err(Refusal::PhaseVanished { .. })), "{refused:?}");
    harness.tell(person(), accept(changed), false).unwrap();
    harness.work();
    assert_eq!(harness.started(), ["one/a", "one/d", "three/e"]);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn only_a_person_may_accept_a_changed_definition() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    let body = CommandKind::AcceptDefinition {
        definition: Digest::of(b"changed"),
        workflow: Arc::new(workflow(vec![phase("one", Vec::new())])),
        files: Vec::new(),
    };
    let agent = Actor { credential: Credential::Agent, ..person() };
    assert!(matches!(harness.tell(agent, body, false), Err(Refusal::PersonRequired { .. })));
}

/// If each step scanned all items, this would take many minutes.
#[test]
fn a_fan_out_may_be_very_long() {
    let names: Vec<String> = (0..50_000).map(|number| format!("item-{number:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let conditional = Task { when: condition(), ..each("e", None) };
    for (list, max_parallel) in [(each("e", Some(3)), None), (each("e", None), Some(3)), (conditional, Some(3))] {
        let definition = Workflow { max_parallel, ..workflow(vec![phase("one", vec![list])]) };
        let mut harness = Harness::new(definition);
        end(&mut harness, "one/e", items(&names));
        while harness.run.end.is_none() {
            for effect in harness.run.pending() {
                harness.perform(&effect);
            }
        }
        assert_eq!(harness.run.subagents_spawned, 50_000);
        assert!(harness.run.current.is_none(), "all of them are done");
    }
}
