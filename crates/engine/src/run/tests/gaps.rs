//! Gap checks: which results count, whom they call, and what agents say to their scripts.

use super::*;
use crate::hold::HoldKind;
use crate::run::Status;
use crate::run::agent::{AgentReport, Usage};
use crate::run::budget::BudgetScope;
use crate::run::event::Thinker;

fn checked_phase(on_failure: GapAction, additional: Vec<Task>) -> Workflow {
    let check = GapCheck { criteria: Vec::new(), script: None, on_failure, additional, max_iterations: 5, message: None };
    workflow(vec![Phase { gap_check: Some(check), ..phase("one", vec![task("a", &[])]) }])
}

fn whole() -> GapsFound {
    GapsFound::Whole { status: "complete".into(), message: None }
}

fn incomplete() -> GapsFound {
    let gaps = vec!["a gap".into()];
    GapsFound::Gaps { status: "incomplete".into(), gaps, action: None, agents: Vec::new(), message: None }
}

fn found(phase: &str, iteration: u32, round: u32, found: GapsFound) -> CommandKind {
    CommandKind::GapsChecked { phase: PhaseId::from(phase), iteration, round, found }
}

fn next_round(bench: &mut Bench, result: GapsFound) {
    while !matches!(bench.run.pending()[0], Effect::Gaps { .. }) {
        bench.perform(&bench.run.pending()[0].clone());
    }
    let Effect::Gaps { iteration, round, .. } = bench.run.pending()[0] else { unreachable!() };
    bench.outcome(found("one", iteration, round, result));
}

#[test]
fn a_gap_check_counts_only_for_the_work_it_was_made_for() {
    let mut definition = checked_phase(GapAction::Retry, Vec::new());
    definition.phases[0].checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let mut bench = Bench::new(definition);
    assert_eq!(bench.outcome(found("one", 1, 1, whole())), [], "the task has not ended");
    bench.perform(&bench.effect_of("one/a"));
    assert_eq!(bench.outcome(found("two", 1, 1, whole())), [], "another phase");
    assert_eq!(bench.outcome(found("one", 2, 1, whole())), [], "another execution");
    assert_eq!(bench.outcome(found("one", 1, 2, whole())), [], "another round");
    assert_eq!(bench.outcome(found("one", 1, 1, whole())).len(), 1);
    assert_eq!(bench.outcome(found("one", 1, 1, incomplete())), [], "the work is complete already");
    assert_eq!(bench.run.gap_checks.len(), 1);
}

#[test]
fn the_agents_that_a_gap_check_declares_are_called_in_each_round_under_other_names() {
    let mut bench = Bench::new(checked_phase(GapAction::SpawnAdditional, vec![task("helper", &[]), task("a", &[])]));
    next_round(&mut bench, incomplete());
    assert_eq!(bench.started(), ["one/a", "one/helper", "one/a-2"]);
    next_round(&mut bench, incomplete());
    assert_eq!(bench.started()[3..], ["one/helper-2", "one/a-3"]);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    let mut again = Bench::new(checked_phase(GapAction::Retry, vec![task("helper", &[])]));
    next_round(&mut again, incomplete());
    assert_eq!(again.started(), ["one/a", "one/a"], "no one is called where the phase runs again");
}

fn report() -> Option<Box<AgentReport>> {
    let usage = Usage { cost_micros: Some(7), input_tokens: Some(1), output_tokens: Some(2) };
    Some(Box::new(AgentReport { agent: "coder".into(), usage, ..AgentReport::default() }))
}

#[test]
fn what_an_agent_uses_to_answer_a_script_counts_for_its_budgets() {
    let mut bench = Bench::new(checked_phase(GapAction::Retry, Vec::new()));
    let ask = || Datum::Inline("\"what is missing?\"".into());
    let (key, outcome) = (key("one", 1, "a"), TaskOutcome::Thinks(ask()));
    bench.outcome(CommandKind::TaskEnded { key: key.clone(), attempt: 1, outcome, agent: None, commit: None });
    let thought =
        |thinker: Thinker| CommandKind::Thought { thinker, text: Ok(Datum::Inline("\"nothing\"".into())), agent: report() };
    bench.outcome(thought(Thinker::Task(key)));
    next_round(&mut bench, GapsFound::Thinks(ask()));
    let thinker = Thinker::Gaps { phase: PhaseId::from("one"), iteration: 1 };
    assert_eq!(bench.run.pending(), [Effect::Think { thinker: thinker.clone(), number: 1 }]);
    bench.outcome(thought(thinker));
    let cost = |scope: BudgetScope| bench.run.spent(&scope).cost_micros;
    let task = |name: &str| BudgetScope::Task(PhaseId::from("one"), TaskId::from(name));
    assert_eq!(cost(BudgetScope::Run), 14);
    assert_eq!((cost(task("a")), cost(task(crate::hold::GAP_CHECK))), (7, 7));
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_person_decides_where_the_agent_behind_a_gap_check_fails() {
    let mut bench = Bench::new(checked_phase(GapAction::Retry, Vec::new()));
    next_round(&mut bench, GapsFound::Thinks(Datum::Inline("\"what is missing?\"".into())));
    let thinker = Thinker::Gaps { phase: PhaseId::from("one"), iteration: 1 };
    bench.outcome(CommandKind::Thought { thinker, text: Err(broken()), agent: None });
    assert_eq!((bench.hold().kind, bench.run.status()), (HoldKind::Gaps, Status::Waiting));
    assert_eq!(bench.run.gap_checks[0].status, "error");
    bench.answer("Continue anyway", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}
