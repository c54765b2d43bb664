//! Gap checks: which results count, which agents they start, and replies to their scripts.

use super::*;
use crate::hold::HoldKind;
use crate::run::Status;
use crate::run::agent::{AgentReport, Usage};
use crate::run::budget::BudgetScope;
use crate::run::event::Requester;

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

fn next_round(harness: &mut Harness, result: GapsFound) {
    while !matches!(harness.run.pending()[0], Effect::Gaps { .. }) {
        harness.perform(&harness.run.pending()[0].clone());
    }
    let Effect::Gaps { iteration, round, .. } = harness.run.pending()[0] else { unreachable!() };
    harness.outcome(found("one", iteration, round, result));
}

#[test]
fn a_gap_check_counts_only_for_the_execution_it_checked() {
    let mut definition = checked_phase(GapAction::Retry, Vec::new());
    definition.phases[0].checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let mut harness = Harness::new(definition);
    assert_eq!(harness.outcome(found("one", 1, 1, whole())), [], "the task has not ended");
    harness.perform(&harness.effect_of("one/a"));
    assert_eq!(harness.outcome(found("two", 1, 1, whole())), [], "another phase");
    assert_eq!(harness.outcome(found("one", 2, 1, whole())), [], "another execution");
    assert_eq!(harness.outcome(found("one", 1, 2, whole())), [], "another round");
    assert_eq!(harness.outcome(found("one", 1, 1, whole())).len(), 1);
    assert_eq!(harness.outcome(found("one", 1, 1, incomplete())), [], "the work is already complete");
    assert_eq!(harness.run.gap_checks.len(), 1);
}

#[test]
fn agents_declared_by_a_gap_check_get_a_new_id_in_each_round() {
    let mut harness = Harness::new(checked_phase(GapAction::SpawnAdditional, vec![task("helper", &[]), task("a", &[])]));
    next_round(&mut harness, incomplete());
    assert_eq!(harness.started(), ["one/a", "one/helper", "one/a-2"]);
    next_round(&mut harness, incomplete());
    assert_eq!(harness.started()[3..], ["one/helper-2", "one/a-3"]);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    let mut again = Harness::new(checked_phase(GapAction::Retry, vec![task("helper", &[])]));
    next_round(&mut again, incomplete());
    assert_eq!(again.started(), ["one/a", "one/a"], "no agent is started if the phase is repeated");
}

fn report() -> Option<Box<AgentReport>> {
    let usage = Usage { cost_micros: Some(7), input_tokens: Some(1), output_tokens: Some(2) };
    Some(Box::new(AgentReport { agent: "coder".into(), usage, ..AgentReport::default() }))
}

#[test]
fn usage_of_agent_queries_counts_towards_budgets() {
    let mut harness = Harness::new(checked_phase(GapAction::Retry, Vec::new()));
    let ask = || StoredValue::Inline("\"what is missing?\"".into());
    let (key, outcome) = (key("one", 1, "a"), TaskOutcome::QueriesAgent(ask()));
    harness.outcome(CommandKind::TaskEnded { key: key.clone(), attempt: 1, outcome, agent: None, commit: None });
    let agent_query_answered = |requester: Requester| CommandKind::AgentQueryAnswered {
        requester,
        text: Ok(StoredValue::Inline("\"nothing\"".into())),
        agent: report(),
    };
    harness.outcome(agent_query_answered(Requester::Task(key)));
    next_round(&mut harness, GapsFound::QueriesAgent(ask()));
    let requester = Requester::Gaps { phase: PhaseId::from("one"), iteration: 1 };
    assert_eq!(harness.run.pending(), [Effect::QueryAgent { requester: requester.clone(), number: 1 }]);
    harness.outcome(agent_query_answered(requester));
    let cost = |scope: BudgetScope| harness.run.spent(&scope).cost_micros;
    let task = |name: &str| BudgetScope::Task(PhaseId::from("one"), TaskId::from(name));
    assert_eq!(cost(BudgetScope::Run), 14);
    assert_eq!((cost(task("a")), cost(task(crate::hold::GAP_CHECK))), (7, 7));
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_person_decides_when_the_agent_query_of_a_gap_check_fails() {
    let mut harness = Harness::new(checked_phase(GapAction::Retry, Vec::new()));
    next_round(&mut harness, GapsFound::QueriesAgent(StoredValue::Inline("\"what is missing?\"".into())));
    let requester = Requester::Gaps { phase: PhaseId::from("one"), iteration: 1 };
    harness.outcome(CommandKind::AgentQueryAnswered { requester, text: Err(broken()), agent: None });
    assert_eq!((harness.hold().kind, harness.run.status()), (HoldKind::Gaps, Status::Waiting));
    assert_eq!(harness.run.gap_checks[0].status, "error");
    harness.answer("Continue anyway", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}
