//! Consequences of a changed answer: which work is redone, and which is kept.

use super::questions::{decision, with_waits};
use super::*;
use crate::run::consequences;

fn answered_by(default: &str) -> WaitSettings {
    WaitSettings { default: Some(OptionId::from(default)), ..WaitSettings::default() }
}

/// A phase that asks at its end, with a default or waiting for a person.
fn asking(id: &str, default: Option<&str>, options: Vec<Choice>) -> Phase {
    let waits = default.map(answered_by).unwrap_or_default();
    Phase { checkpoint: Some(Checkpoint { waits, ..checkpoint(options).unwrap() }), ..phase(id, vec![task("work", &[])]) }
}

fn go_or_on() -> Vec<Choice> {
    vec![choice("Go", Action::Continue), choice("On", Action::Continue)]
}

fn skip(phases: &[&str]) -> Action {
    Action::SkipPhases(phases.iter().map(|id| PhaseId::from(*id)).collect())
}

fn worked(phases: Vec<Phase>) -> Harness {
    let mut harness = Harness::new(workflow(phases));
    harness.work();
    harness
}

/// Changes the answer that counts at the end of a phase; gives the phases that ran since, in order.
fn change(harness: &mut Harness, phase: &str, option: &str) -> Vec<String> {
    let before = harness.started().len();
    let body = change_body(harness, phase, option);
    harness.tell(person(), body, true).unwrap();
    harness.work();
    harness.started().split_off(before).iter().map(|address| address.split('/').next().unwrap().to_owned()).collect()
}

fn change_body(harness: &Harness, phase: &str, option: &str) -> CommandKind {
    let is_meant = |decision: &&crate::run::state::Decision| {
        !decision.void && decision.phase.as_ref().is_some_and(|known| known.as_str() == phase)
    };
    let hold = harness.run.decisions.iter().rfind(is_meant).expect("it was answered").hold.clone();
    CommandKind::ChangeAnswer(AnswerChange { hold, option: option.into(), feedback: None })
}

#[test]
fn only_valid_answers_after_the_changed_one_are_counted() {
    let asks = |id: &str| asking(id, Some("go"), go_or_on());
    let mut harness = worked(vec![asks("one"), asks("two"), asks("three"), asking("four", None, go_or_on())]);
    let answers = |harness: &Harness, index: usize| {
        let hold = &harness.run.decisions[index].hold;
        consequences(&harness.run, hold, "on").unwrap().answers
    };
    assert_eq!([0, 1, 2].map(|index| answers(&harness, index)), [2, 1, 0]);
    change(&mut harness, "three", "on");
    assert_eq!(harness.run.decisions.len(), 4, "the old answer is kept and no longer counts");
    assert_eq!(answers(&harness, 0), 2);
}

#[test]
fn an_answer_unused_in_its_phase_takes_effect_in_the_next_phase() {
    let asks = || with_waits(decision("db", &[]), answered_by("sqlite"));
    let before = || phase("before", vec![task("work", &[])]);
    let last = || asking("last", None, go_or_on());
    let harness = worked(vec![before(), phase("one", vec![asks(), task("docs", &[])]), last()]);
    let hold = harness.run.decisions[0].hold.clone();
    let found = consequences(&harness.run, &hold, "postgres").unwrap();
    assert_eq!(found.phase, Some(PhaseId::from("last")));
    assert_eq!((found.tasks, found.carried), (vec![TaskId::from("work")], Vec::new()));
}

#[test]
fn changing_an_unused_answer_reruns_nothing() {
    let asks = with_waits(decision("db", &[]), answered_by("sqlite"));
    let one = Phase { checkpoint: checkpoint(go_or_on()), ..phase("one", vec![asks, task("docs", &[])]) };
    let mut harness = worked(vec![one, phase("two", vec![task("work", &[])])]);
    let hold = harness.run.decisions[0].hold.clone();
    assert_eq!(consequences(&harness.run, &hold, "postgres").unwrap().phase, None);
    assert_eq!(change(&mut harness, "one", "postgres"), Vec::<String>::new());
    assert_eq!(harness.hold().scope.phase(), Some(&PhaseId::from("one")), "its checkpoint still asks");
}

#[test]
fn changing_an_answer_in_the_next_phase_reruns_that_phase() {
    let mut harness = worked(vec![asking("one", Some("go"), go_or_on()), asking("two", None, go_or_on())]);
    assert_eq!(change(&mut harness, "one", "on"), ["two"]);
}

#[test]
fn two_changes_before_the_run_continues_go_back_only_once() {
    let mut harness = worked(vec![asking("one", Some("go"), go_or_on()), asking("two", None, go_or_on())]);
    let goes_back = |events: &[Event]| events.iter().any(|event| matches!(event, Event::PhaseRepeated { .. }));
    let body = change_body(&harness, "one", "on");
    assert!(goes_back(&harness.tell(person(), body.clone(), false).unwrap()));
    let changed = harness.run.decisions.last().unwrap();
    assert_eq!(changed.option.as_str(), "on");
    // A person gave this answer, so only the state determines the position of the run.
    harness.run.decisions.last_mut().unwrap().changeable = harness.run.decisions[0].changeable.clone();
    let body = change_body(&harness, "one", "go");
    assert!(!goes_back(&harness.tell(person(), body, false).unwrap()), "the next phase is about to run in any case");
}

#[test]
fn going_back_by_a_changed_answer_restores_only_its_target_phase() {
    let back = Choice { restores: vec![PhaseId::from("two-b")], ..choice("Back", Action::RepeatPhase(PhaseId::from("two"))) };
    let one = asking("one", Some("skip"), vec![choice("Skip", skip(&["two", "two-b", "four"])), choice("Go", Action::Continue)]);
    let work = |id: &str| phase(id, vec![task("work", &[])]);
    let three = asking("three", Some("go"), vec![choice("Go", Action::Continue), back]);
    let mut harness = worked(vec![one, work("two"), work("two-b"), three, work("four"), asking("five", None, go_or_on())]);
    assert_eq!(harness.started(), ["one/work", "three/work", "five/work"]);
    assert_eq!(change(&mut harness, "three", "back"), ["two", "two-b", "three", "five"]);
    assert_eq!(harness.run.skip_list, [PhaseId::from("four")]);
}

#[test]
fn a_restored_phase_stays_restored_when_a_later_answer_is_changed() {
    let work = |id: &str| phase(id, vec![task("work", &[])]);
    let restores = vec![PhaseId::from("two-b")];
    let back = Choice { restores, ..choice("Back", Action::RepeatPhase(PhaseId::from("two"))) };
    let one = asking("one", Some("skip"), vec![choice("Skip", skip(&["two", "two-b", "four"])), choice("Go", Action::Continue)]);
    let three = asking("three", None, vec![choice("Go", Action::Continue), back]);
    let phases = vec![
        one,
        work("two"),
        work("two-b"),
        three,
        asking("mid", Some("go"), go_or_on()),
        work("four"),
        asking("five", None, go_or_on()),
    ];
    let mut harness = worked(phases);
    harness.answer("back", None);
    harness.work();
    harness.answer("go", None);
    harness.work();
    assert_eq!(change(&mut harness, "mid", "on"), ["five"]);
    assert_eq!(harness.run.skip_list, [PhaseId::from("four")]);
    let hold = harness.run.decisions[0].hold.clone();
    assert!(consequences(&harness.run, &hold, "go").is_ok());
}

#[test]
fn phases_skipped_by_a_voided_answer_are_restored() {
    let work = |id: &str| phase(id, vec![task("work", &[])]);
    let one = asking("one", Some("skip"), vec![choice("Skip", skip(&["three"])), choice("Go", Action::Continue)]);
    let two = asking("two", Some("go"), go_or_on());
    let mut harness = worked(vec![one, two, work("three"), asking("four", None, go_or_on())]);
    assert_eq!(change(&mut harness, "one", "go"), ["two", "three", "four"]);
    assert_eq!(change(&mut harness, "two", "on"), ["three", "four"]);
    assert_eq!(harness.run.skip_list, []);
}

#[test]
fn only_an_aborting_answer_reports_an_abort() {
    let options = vec![choice("Go", Action::Continue), choice("On", Action::Continue), choice("Stop", Action::Abort)];
    let harness = worked(vec![asking("one", Some("go"), options), asking("two", None, go_or_on())]);
    let hold = &harness.run.decisions[0].hold;
    assert_eq!(["on", "stop"].map(|option| consequences(&harness.run, hold, option).unwrap().aborts), [false, true]);
}
