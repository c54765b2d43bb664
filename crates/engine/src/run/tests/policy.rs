//! Automatic answers and automatic retries.

use super::questions::{decision, verify};
use super::*;
use crate::hold::HoldKind;
use crate::run::Status;
use crate::run::state::TaskState;
use std::time::Duration;

#[test]
fn policy_counts_each_question_kind_separately() {
    let tasks = vec![
        task("make", &[]),
        verify("look", "make", 3),
        Task { needs: vec![TaskId::from("look")], ..decision("db", &[]) },
        Task { needs: vec![TaskId::from("db")], ..decision("cache", &[]) },
        Task { needs: vec![TaskId::from("cache")], ..verify("again", "make", 3) },
    ];
    let mut asked = workflow(vec![phase("one", tasks)]);
    asked.policy.verify = Some(Automatic { when: None, max_consecutive: Some(2) });
    asked.policy.decision = Some(Automatic { when: None, max_consecutive: Some(1) });
    let mut harness = Harness::new(asked);
    harness.work();
    assert_eq!((harness.hold().kind, harness.asked()), (HoldKind::Decision, vec!["one/cache".to_owned()]));
    harness.answer("sqlite", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete, "only one verification was approved before the second");
}

#[test]
fn policy_takes_the_declared_default_only_if_it_continues() {
    let proposing = |option: &str| WaitSettings { proposed: Some(OptionId::from(option)), ..WaitSettings::default() };
    let mut one = phase("one", vec![super::questions::with_waits(decision("db", &[]), proposing("postgres"))]);
    let options = vec![choice("Continue", Action::Continue), choice("Again", Action::RepeatPhase(PhaseId::from("one")))];
    one.checkpoint = Some(Checkpoint { waits: proposing("again"), ..checkpoint(options).unwrap() });
    let mut asked = workflow(vec![one]);
    asked.policy.decision = Some(Automatic::default());
    asked.policy.checkpoint = Some(Automatic::default());
    let mut harness = Harness::new(asked);
    harness.perform(&harness.run.pending()[0].clone());
    let shown = Presentation { automatic: true, ..Presentation::default() };
    harness.outcome(CommandKind::Shown { phase: PhaseId::from("one"), iteration: 1, shown: Box::new(shown) });
    let taken: Vec<(&str, Channel)> =
        harness.run.decisions.iter().map(|decision| (decision.option.as_str(), decision.actor.channel)).collect();
    assert_eq!(taken, [("postgres", Channel::Policy), ("continue", Channel::Policy)]);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn an_interrupted_attempt_that_counts_as_failed_is_retried() {
    for stops in [true, false] {
        let mut shaky = task("shaky", &[]);
        shaky.on_interrupt = OnInterrupt::Fail;
        shaky.retry = Retry { attempts: 2, backoff: Duration::from_secs(1) };
        let mut harness = Harness::new(workflow(vec![phase("one", vec![shaky])]));
        if stops {
            harness.tell(Actor::driver(), CommandKind::Interrupt { signal: "SIGTERM".into() }, true).unwrap();
        }
        let take_over = CommandKind::TakeOver { driver: DriverId::from("d2"), detached: false };
        harness.tell(person(), take_over.clone(), true).unwrap();
        let state = harness.run.task_run(&key("one", 1, "shaky")).unwrap().state.clone();
        assert!(matches!(state, TaskState::Backoff { .. } | TaskState::Running), "{state:?}");
        let wake = harness.run.pending().into_iter().find(|effect| matches!(effect, Effect::Wake { .. }));
        wake.into_iter().for_each(|effect| drop(harness.perform(&effect)));
        assert_eq!(harness.run.pending(), [Effect::Task { key: key("one", 1, "shaky"), attempt: 2 }]);
        harness.tell(person(), take_over, true).unwrap();
        assert_eq!(harness.run.status(), Status::Failed, "the attempts are used up");
    }
}

#[test]
fn a_retry_after_an_until_limit_resets_the_rounds() {
    let mut polish = task("polish", &[]);
    polish.until =
        Some(Until { condition: UntilCondition::Run("test -f done".into()), limit: 3, timeout: None, checks: Vec::new() });
    polish.retry = Retry { attempts: 2, backoff: Duration::from_secs(1) };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![polish])]));
    let mut rounds = 0;
    while harness.run.status() == Status::Running {
        match harness.run.pending().into_iter().next().expect("something is pending") {
            Effect::Task { key, attempt } => {
                rounds += 1;
                let outcome = TaskOutcome::Again { result: None, outputs: Vec::new(), why: "not yet".into(), failed_check: None };
                harness.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
            }
            other => drop(harness.perform(&other)),
        }
    }
    assert_eq!(rounds, 6, "three for each attempt");
    let failed = harness.entries.iter().filter_map(|entry| match &entry.event {
        Event::TaskFailed { failure, attempt, .. } => Some((*attempt, failure.message.clone())),
        _ => None,
    });
    let failures: Vec<(u32, String)> = failed.collect();
    assert_eq!(failures.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [3, 6]);
    assert!(failures.iter().all(|(_, message)| message.contains("after 3 rounds")), "{failures:?}");
}

#[test]
fn a_phase_repeated_because_of_a_gate_receives_the_gate_output() {
    let mut one = phase("one", vec![task("make", &[])]);
    one.gates = vec![Gate { on_fail: OnFail::Repeat, ..gate("tests") }];
    let mut harness = Harness::new(workflow(vec![one]));
    harness.perform(&harness.effect_of("one/make"));
    let failure = Failure { tail: "assertion failed: left == right\n".into(), ..broken() };
    let (phase, gate) = (PhaseId::from("one"), GateId::from("tests"));
    harness.outcome(CommandKind::GateEnded { phase, iteration: 1, gate, attempt: 1, failure: Some(failure) });
    let feedback = harness.run.current.as_ref().and_then(|phase| phase.feedback.clone()).unwrap();
    assert!(feedback.contains("one/tests failed: it broke"), "{feedback}");
    assert!(feedback.contains("assertion failed: left == right"), "{feedback}");
}

/// A phase that asks at its end.
fn asking(id: &str, options: Vec<Choice>) -> Phase {
    Phase { checkpoint: checkpoint(options), ..phase(id, vec![task("work", &[])]) }
}

fn shown(harness: &mut Harness, automatic: bool) {
    harness.perform(&harness.run.pending()[0].clone());
    let current = harness.run.current.as_ref().unwrap();
    let (phase, iteration) = (current.id.clone(), current.iteration);
    let shown = Box::new(Presentation { prompt: "Go on?".into(), automatic, ..Presentation::default() });
    harness.outcome(CommandKind::Shown { phase, iteration, shown });
}

#[test]
fn policy_answers_again_when_a_person_answered_only_another_question() {
    let back = choice("Back", Action::RepeatPhase(PhaseId::from("one")));
    let go = || choice("Go", Action::Continue);
    let mut asked = workflow(vec![asking("one", vec![go()]), asking("two", vec![go(), back])]);
    asked.policy.checkpoint = Some(Automatic::default());
    let mut harness = Harness::new(asked);
    shown(&mut harness, true);
    shown(&mut harness, false);
    assert_eq!(harness.hold().scope.phase(), Some(&PhaseId::from("two")), "questions that do not qualify wait for a person");
    harness.answer("back", None);
    shown(&mut harness, true);
    let ways: Vec<Channel> = harness.run.decisions.iter().map(|decision| decision.actor.channel).collect();
    assert_eq!(ways, [Channel::Policy, Channel::Command, Channel::Policy], "a person answered another question, not this one");
}

#[test]
fn an_answer_of_a_person_resets_the_policy_limit() {
    let after = |id: &str, need: &str| Task { needs: vec![TaskId::from(need)], ..decision(id, &[]) };
    let tasks = vec![decision("one", &[]), after("two", "one"), after("three", "two"), after("four", "three")];
    let mut asked = workflow(vec![phase("one", tasks)]);
    asked.policy.decision = Some(Automatic { when: None, max_consecutive: Some(1) });
    let mut harness = Harness::new(asked);
    harness.work();
    assert_eq!(harness.asked(), ["one/two"]);
    harness.answer("sqlite", None);
    harness.work();
    assert_eq!(harness.asked(), ["one/four"], "policy answered the third");
}
