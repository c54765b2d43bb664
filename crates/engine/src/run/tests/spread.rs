//! Tasks that become several or are left out, gap checks, and definitions that change under way.

use super::*;
use crate::run::Status;
use crate::run::command::Item;
use crate::spec::subagent::Subagent;

fn items(names: &[&str]) -> TaskOutcome {
    TaskOutcome::Items(
        names.iter().map(|name| Item { key: (*name).into(), value: Datum::Inline(format!("\"{name}\"")) }).collect(),
    )
}

fn each(id: &str, max_parallel: Option<u32>) -> Task {
    Task { for_each: Some(ForEach { over: Over::List(Vec::new()), max_parallel }), ..task(id, &[]) }
}

fn end(bench: &mut Bench, address: &str, outcome: TaskOutcome) {
    let found = bench.run.pending().into_iter().find_map(|effect| match effect {
        Effect::Task { key, attempt } if key.address() == address => Some((key, attempt)),
        _ => None,
    });
    let (key, attempt) = found.unwrap_or_else(|| panic!("{address} does not run: {:?}", bench.run.pending()));
    bench.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
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

fn gaps(bench: &mut Bench, action: Option<GapAction>, agents: &[&str]) {
    let Some(Effect::Gaps { phase, iteration, round }) = bench.run.pending().into_iter().next() else {
        panic!("no gap check is due: {:?}", bench.run.pending())
    };
    let agents = agents.iter().map(|kind| Subagent { kind: (*kind).into(), config: BTreeMap::new() }).collect();
    let found = GapsFound::Gaps { status: "incomplete".into(), gaps: vec!["a gap".into()], action, agents, message: None };
    bench.outcome(CommandKind::GapsChecked { phase, iteration, round, found });
}

#[test]
fn what_needs_a_list_waits_for_all_its_items_and_no_more_run_than_it_allows() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![each("e", Some(2)), task("after", &["e"])])]));
    end(&mut bench, "one/e", items(&["a", "b", "c"]));
    assert_eq!(bench.started(), ["one/e", "one/e[a]", "one/e[b]"]);
    end(&mut bench, "one/e[b]", TaskOutcome::Finished { result: Some(Datum::Inline("1".into())), outputs: Vec::new() });
    assert_eq!(bench.started().last().unwrap(), "one/e[c]");
    end(&mut bench, "one/e[a]", TaskOutcome::Finished { result: None, outputs: Vec::new() });
    assert!(!bench.started().contains(&"one/after".to_owned()));
    end(&mut bench, "one/e[c]", TaskOutcome::Finished { result: None, outputs: Vec::new() });
    assert_eq!(bench.started().last().unwrap(), "one/after");
    assert_eq!(bench.run.full_context(&|_| None)["outputs"]["one"]["e"]["b"], 1);
    assert_eq!(bench.run.subagents_spawned, 4, "the list itself is no agent");
}

#[test]
fn an_empty_list_is_done_at_once() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![each("e", None)])]));
    end(&mut bench, "one/e", items(&[]));
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn an_item_that_failed_is_tried_again_alone() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![each("e", None)])]));
    end(&mut bench, "one/e", items(&["a", "b"]));
    end(&mut bench, "one/e[a]", TaskOutcome::Finished { result: None, outputs: Vec::new() });
    end(&mut bench, "one/e[b]", TaskOutcome::Failed(broken()));
    assert_eq!(bench.run.status(), Status::Failed);
    bench.tell(person(), CommandKind::TakeOver { driver: DriverId::from("other"), detached: false }, true).unwrap();
    assert_eq!(bench.started()[3..], ["one/e[b]"]);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn agents_that_a_script_names_in_a_sequential_phase_follow_each_other() {
    let script = Script { source: String::new(), reads: Reads::Parts(BTreeSet::new()), line: 0 };
    let mut first = phase("one", vec![Task::new(TaskId::from("adaptive"), Work::Adaptive(script))]);
    first.sequential = true;
    let mut bench = Bench::new(workflow(vec![first]));
    let named = |kind: &str| Subagent { kind: kind.into(), config: BTreeMap::new() };
    end(&mut bench, "one/adaptive", TaskOutcome::Agents(vec![named("x"), named("x"), named("adaptive")]));
    assert_eq!(bench.started(), ["one/adaptive", "one/x"]);
    bench.work();
    assert_eq!(bench.started()[2..], ["one/x-2", "one/adaptive-2"]);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_repeated_phase_spreads_anew() {
    let mut first = phase("one", vec![each("e", None)]);
    first.checkpoint =
        checkpoint(vec![choice("Redo", Action::RepeatPhase(PhaseId::from("one"))), choice("Continue", Action::Continue)]);
    let mut bench = Bench::new(workflow(vec![first]));
    end(&mut bench, "one/e", items(&["a"]));
    end(&mut bench, "one/e[a]", TaskOutcome::Finished { result: Some(Datum::Inline("1".into())), outputs: Vec::new() });
    bench.perform(&bench.run.pending()[0].clone());
    bench.answer("Redo", None);
    end(&mut bench, "one/e", items(&["b"]));
    assert_eq!(bench.run.full_context(&|_| None)["outputs"]["one"].get("e"), None, "what the last execution gave is gone");
    bench.work();
    bench.answer("Continue", None);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn gaps_are_closed_by_retries_until_the_limit_then_by_a_person() {
    let mut first = phase("one", vec![task("a", &[])]);
    first.gap_check = gap_check();
    let mut bench = Bench::new(workflow(vec![first]));
    for _ in 0..3 {
        while !matches!(bench.run.pending()[0], Effect::Gaps { .. }) {
            bench.perform(&bench.run.pending()[0].clone());
        }
        gaps(&mut bench, None, &[]);
    }
    assert_eq!(bench.run.iteration_counts["one"], 3);
    assert_eq!(bench.hold().kind, crate::hold::HoldKind::Gaps);
    bench.answer("Run the phase again", Some("look harder"));
    assert_eq!(bench.run.current.as_ref().unwrap().feedback.as_deref(), Some("look harder"));
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    let rounds: Vec<u32> = bench.run.gap_checks.iter().map(|check| check.round).collect();
    assert_eq!(rounds, [1, 2, 3, 1], "a person's answer begins the count anew");
}

#[test]
fn agents_that_a_gap_check_calls_work_in_the_same_execution() {
    let mut first = phase("one", vec![task("a", &[])]);
    first.gap_check = gap_check();
    let mut bench = Bench::new(workflow(vec![first]));
    bench.perform(&bench.run.pending()[0].clone());
    gaps(&mut bench, Some(GapAction::SpawnAdditional), &["helper", "a"]);
    assert_eq!(bench.started(), ["one/a", "one/helper", "one/a-2"]);
    bench.work();
    assert_eq!(bench.run.iteration_counts["one"], 1);
    assert_eq!(bench.run.status(), Status::Complete);
    let mut nobody = Bench::new(workflow(vec![Phase { gap_check: gap_check(), ..phase("one", vec![task("a", &[])]) }]));
    nobody.perform(&nobody.run.pending()[0].clone());
    gaps(&mut nobody, Some(GapAction::SpawnAdditional), &[]);
    assert_eq!(nobody.hold().kind, crate::hold::HoldKind::Gaps, "with nobody to call, a person decides");
}

#[test]
fn a_changed_definition_counts_for_what_has_not_begun() {
    let mut bench =
        Bench::new(workflow(vec![phase("one", vec![task("a", &[]), task("b", &["a"])]), phase("two", vec![task("c", &[])])]));
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
    let refused = bench.tell(person(), accept(workflow(vec![phase("two", Vec::new())])), false);
    assert!(matches!(refused, Err(Refusal::PhaseVanished { .. })), "{refused:?}");
    bench.tell(person(), accept(changed), false).unwrap();
    bench.work();
    assert_eq!(bench.started(), ["one/a", "one/d", "three/e"]);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn nobody_but_a_person_accepts_a_changed_definition() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    let body = CommandKind::AcceptDefinition {
        definition: Digest::of(b"changed"),
        workflow: Arc::new(workflow(vec![phase("one", Vec::new())])),
        files: Vec::new(),
    };
    let agent = Actor { credential: Credential::Agent, ..person() };
    assert!(matches!(bench.tell(agent, body, false), Err(Refusal::NotAPerson { .. })));
}

/// Where each step looked at all items, this would take many minutes.
#[test]
fn a_list_may_be_very_long() {
    let names: Vec<String> = (0..50_000).map(|number| format!("item-{number:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let conditional = Task { when: condition(), ..each("e", None) };
    for (list, max_parallel) in [(each("e", Some(3)), None), (each("e", None), Some(3)), (conditional, Some(3))] {
        let definition = Workflow { max_parallel, ..workflow(vec![phase("one", vec![list])]) };
        let mut bench = Bench::new(definition);
        end(&mut bench, "one/e", items(&names));
        while bench.run.end.is_none() {
            for effect in bench.run.pending() {
                bench.perform(&effect);
            }
        }
        assert_eq!(bench.run.subagents_spawned, 50_000);
        assert!(bench.run.current.is_none(), "all of them are done");
    }
}
