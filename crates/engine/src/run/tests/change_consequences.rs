//! What changing an answer does again, and what it leaves as it was.

use super::questions::{decision, with_waits};
use super::*;
use crate::run::consequences;

fn answered_by(default: &str) -> Waits {
    Waits { default: Some(OptionId::from(default)), ..Waits::default() }
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

fn worked(phases: Vec<Phase>) -> Bench {
    let mut bench = Bench::new(workflow(phases));
    bench.work();
    bench
}

/// Changes the answer that counts at the end of a phase; gives the phases that ran since, in order.
fn change(bench: &mut Bench, phase: &str, option: &str) -> Vec<String> {
    let before = bench.started().len();
    let body = change_body(bench, phase, option);
    bench.tell(person(), body, true).unwrap();
    bench.work();
    bench.started().split_off(before).iter().map(|address| address.split('/').next().unwrap().to_owned()).collect()
}

fn change_body(bench: &Bench, phase: &str, option: &str) -> CommandKind {
    let is_meant = |decision: &&crate::run::state::Decision| {
        !decision.void && decision.phase.as_ref().is_some_and(|known| known.as_str() == phase)
    };
    let hold = bench.run.decisions.iter().rfind(is_meant).expect("it was answered").hold.clone();
    CommandKind::ChangeAnswer(AnswerChange { hold, option: option.into(), feedback: None })
}

#[test]
fn the_answers_after_the_changed_one_are_counted_and_those_that_no_longer_count_are_not() {
    let asks = |id: &str| asking(id, Some("go"), go_or_on());
    let mut bench = worked(vec![asks("one"), asks("two"), asks("three"), asking("four", None, go_or_on())]);
    let answers = |bench: &Bench, index: usize| {
        let hold = &bench.run.decisions[index].hold;
        consequences(&bench.run, hold, "on").unwrap().answers
    };
    assert_eq!([0, 1, 2].map(|index| answers(&bench, index)), [2, 1, 0]);
    change(&mut bench, "three", "on");
    assert_eq!(bench.run.decisions.len(), 4, "the old answer is kept and no longer counts");
    assert_eq!(answers(&bench, 0), 2);
}

#[test]
fn an_answer_that_no_task_of_its_phase_uses_is_felt_from_the_next_phase() {
    let asks = || with_waits(decision("db", &[]), answered_by("sqlite"));
    let before = || phase("before", vec![task("work", &[])]);
    let last = || asking("last", None, go_or_on());
    let bench = worked(vec![before(), phase("one", vec![asks(), task("docs", &[])]), last()]);
    let hold = bench.run.decisions[0].hold.clone();
    let found = consequences(&bench.run, &hold, "postgres").unwrap();
    assert_eq!(found.phase, Some(PhaseId::from("last")));
    assert_eq!((found.tasks, found.carried), (vec![TaskId::from("work")], Vec::new()));
}

#[test]
fn an_answer_that_no_one_has_used_yet_is_changed_without_doing_anything_again() {
    let asks = with_waits(decision("db", &[]), answered_by("sqlite"));
    let one = Phase { checkpoint: checkpoint(go_or_on()), ..phase("one", vec![asks, task("docs", &[])]) };
    let mut bench = worked(vec![one, phase("two", vec![task("work", &[])])]);
    let hold = bench.run.decisions[0].hold.clone();
    assert_eq!(consequences(&bench.run, &hold, "postgres").unwrap().phase, None);
    assert_eq!(change(&mut bench, "one", "postgres"), Vec::<String>::new());
    assert_eq!(bench.hold().scope.phase(), Some(&PhaseId::from("one")), "its checkpoint still asks");
}

#[test]
fn an_answer_that_is_changed_in_the_next_phase_runs_that_phase_again() {
    let mut bench = worked(vec![asking("one", Some("go"), go_or_on()), asking("two", None, go_or_on())]);
    assert_eq!(change(&mut bench, "one", "on"), ["two"]);
}

#[test]
fn a_second_change_before_the_run_goes_on_goes_back_only_once() {
    let mut bench = worked(vec![asking("one", Some("go"), go_or_on()), asking("two", None, go_or_on())]);
    let goes_back = |events: &[Event]| events.iter().any(|event| matches!(event, Event::PhaseRepeated { .. }));
    let body = change_body(&bench, "one", "on");
    assert!(goes_back(&bench.tell(person(), body.clone(), false).unwrap()));
    let changed = bench.run.decisions.last().unwrap();
    assert_eq!(changed.option.as_str(), "on");
    // A person gave this answer, so only the state says where the run stands.
    bench.run.decisions.last_mut().unwrap().changeable = bench.run.decisions[0].changeable.clone();
    let body = change_body(&bench, "one", "go");
    assert!(!goes_back(&bench.tell(person(), body, false).unwrap()), "it is about to run what comes next in any case");
}

#[test]
fn going_back_by_a_changed_answer_restores_its_target_and_leaves_the_other_skipped_phases() {
    let back = Choice { restores: vec![PhaseId::from("two-b")], ..choice("Back", Action::RepeatPhase(PhaseId::from("two"))) };
    let one = asking("one", Some("skip"), vec![choice("Skip", skip(&["two", "two-b", "four"])), choice("Go", Action::Continue)]);
    let work = |id: &str| phase(id, vec![task("work", &[])]);
    let three = asking("three", Some("go"), vec![choice("Go", Action::Continue), back]);
    let mut bench = worked(vec![one, work("two"), work("two-b"), three, work("four"), asking("five", None, go_or_on())]);
    assert_eq!(bench.started(), ["one/work", "three/work", "five/work"]);
    assert_eq!(change(&mut bench, "three", "back"), ["two", "two-b", "three", "five"]);
    assert_eq!(bench.run.skip_list, [PhaseId::from("four")]);
}

#[test]
fn a_skipped_phase_that_a_person_went_back_to_stays_in_when_a_later_answer_is_changed() {
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
    let mut bench = worked(phases);
    bench.answer("back", None);
    bench.work();
    bench.answer("go", None);
    bench.work();
    assert_eq!(change(&mut bench, "mid", "on"), ["five"]);
    assert_eq!(bench.run.skip_list, [PhaseId::from("four")]);
    let hold = bench.run.decisions[0].hold.clone();
    assert!(consequences(&bench.run, &hold, "go").is_ok());
}

#[test]
fn what_an_answer_skipped_is_forgotten_with_it_when_a_later_answer_is_changed() {
    let work = |id: &str| phase(id, vec![task("work", &[])]);
    let one = asking("one", Some("skip"), vec![choice("Skip", skip(&["three"])), choice("Go", Action::Continue)]);
    let two = asking("two", Some("go"), go_or_on());
    let mut bench = worked(vec![one, two, work("three"), asking("four", None, go_or_on())]);
    assert_eq!(change(&mut bench, "one", "go"), ["two", "three", "four"]);
    assert_eq!(change(&mut bench, "two", "on"), ["three", "four"]);
    assert_eq!(bench.run.skip_list, []);
}

#[test]
fn only_an_answer_that_aborts_is_said_to_abort() {
    let options = vec![choice("Go", Action::Continue), choice("On", Action::Continue), choice("Stop", Action::Abort)];
    let bench = worked(vec![asking("one", Some("go"), options), asking("two", None, go_or_on())]);
    let hold = &bench.run.decisions[0].hold;
    assert_eq!(["on", "stop"].map(|option| consequences(&bench.run, hold, option).unwrap().aborts), [false, true]);
}
