//! Definitions that change while a run is under way: what they lack is taken back, what they add is done.

use super::questions::{decision, verify, with_waits};
use super::*;
use crate::hold::ShownFile;
use crate::run::Status;
use std::time::Duration;

fn accept(bench: &mut Bench, now: Workflow) -> Vec<Event> {
    let body = CommandKind::AcceptDefinition { definition: Digest::of(b"changed"), workflow: Arc::new(now), files: Vec::new() };
    let mut events = bench.tell(person(), body, false).unwrap();
    events.extend(bench.take_over());
    bench.work();
    events
}

fn voided<'e>(events: &'e [Event]) -> Vec<&'e str> {
    let reason = |event: &'e Event| match event {
        Event::HoldVoided { reason, .. } => Some(reason.as_str()),
        _ => None,
    };
    events.iter().filter_map(reason).collect()
}

fn asking(id: &str) -> Task {
    Task { on_fail: OnFail::Ask, ..task(id, &[]) }
}

#[test]
fn a_failed_task_that_was_renamed_is_forgotten_and_the_new_one_runs() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![task("a", &[]), task("bild", &["a"])])]));
    bench.perform(&bench.effect_of("one/a"));
    bench.fail("one/bild");
    assert_eq!(bench.run.status(), Status::Failed);
    accept(&mut bench, workflow(vec![phase("one", vec![task("a", &[]), task("build", &["a"])])]));
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started(), ["one/a", "one/bild", "one/build"]);
}

#[test]
fn a_failed_task_that_was_removed_is_forgotten() {
    let mut waits = task("waits", &[]);
    waits.retry = Retry { attempts: 2, backoff: Duration::from_secs(3600) };
    let mut bench = Bench::new(workflow(vec![phase("one", vec![waits, asking("asks"), task("last", &["asks"])])]));
    bench.fail("one/waits");
    bench.fail("one/asks");
    assert_eq!(bench.asked(), ["one/asks"]);
    let events = accept(&mut bench, workflow(vec![phase("one", vec![task("last", &[])])]));
    assert_eq!(voided(&events), ["the changed definition has no task asks"]);
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started().last().map(String::as_str), Some("one/last"));
}

#[test]
fn a_failed_gate_that_was_removed_is_forgotten_with_its_question() {
    let failing = |on_fail| {
        let mut one = phase("one", vec![task("a", &[])]);
        one.gates = vec![Gate { on_fail, ..gate("tests") }];
        let mut bench = Bench::new(workflow(vec![one]));
        bench.perform(&bench.effect_of("one/a"));
        let (phase, gate) = (PhaseId::from("one"), GateId::from("tests"));
        bench.outcome(CommandKind::GateEnded { phase, iteration: 1, gate, attempt: 1, failure: Some(broken()) });
        bench
    };
    let without = || workflow(vec![phase("one", vec![task("a", &[])])]);
    let mut asks = failing(OnFail::Ask);
    assert_eq!(asks.run.open_holds().len(), 1);
    assert_eq!(voided(&accept(&mut asks, without())), ["the changed definition has no gate tests"]);
    assert_eq!(asks.run.status(), Status::Complete);
    let mut fails = failing(OnFail::Fail);
    assert_eq!(fails.run.status(), Status::Failed);
    accept(&mut fails, without());
    assert_eq!(fails.run.status(), Status::Complete);
}

fn with_checkpoint(prompt: Option<&str>, tasks: Vec<Task>) -> Workflow {
    let mut one = phase("one", tasks);
    one.checkpoint = prompt
        .map(|prompt| Checkpoint { prompt: prompt.into(), ..checkpoint(vec![choice("Continue", Action::Continue)]).unwrap() });
    workflow(vec![one, phase("two", vec![task("after", &[])])])
}

#[test]
fn an_open_checkpoint_that_was_removed_no_longer_holds_the_run() {
    let mut bench = Bench::new(with_checkpoint(Some("Go on?"), vec![task("a", &[])]));
    bench.work();
    let events = accept(&mut bench, with_checkpoint(None, vec![task("a", &[])]));
    assert_eq!(voided(&events), ["the changed definition has no checkpoint here"]);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn an_open_checkpoint_that_asks_something_else_is_asked_anew() {
    let mut bench = Bench::new(with_checkpoint(Some("Go on?"), vec![task("a", &[])]));
    bench.work();
    let old = bench.hold().id.clone();
    let events = accept(&mut bench, with_checkpoint(Some("Ship it?"), vec![task("a", &[])]));
    assert_eq!(voided(&events), ["the changed definition asks something else here"]);
    assert_eq!(bench.run.status(), Status::Waiting);
    let late = CommandKind::Answer { hold: old, revision: None, option: "continue".into(), feedback: None };
    assert!(matches!(bench.tell(person(), late, true), Err(Refusal::HoldVoided { now: Some(_), .. })));
    bench.answer("continue", None);
    bench.work();
    assert_eq!(bench.started(), ["one/a", "two/after"], "what was done is not done again");
}

#[test]
fn an_unchanged_question_stays_open() {
    let mut bench = Bench::new(with_checkpoint(Some("Go on?"), vec![task("a", &[])]));
    bench.work();
    let before = bench.hold().id.clone();
    let mut now = with_checkpoint(Some("Go on?"), vec![task("a", &[])]);
    now.phases.push(phase("three", vec![task("more", &[])]));
    assert!(voided(&accept(&mut bench, now)).is_empty());
    assert_eq!(bench.hold().id, before);
}

#[test]
fn a_checkpoint_is_asked_after_what_the_changed_definition_adds() {
    let mut bench = Bench::new(with_checkpoint(Some("Go on?"), vec![task("a", &[])]));
    bench.work();
    let now = with_checkpoint(Some("Go on?"), vec![task("a", &[]), task("b", &[])]);
    let events = accept(&mut bench, now);
    assert_eq!(voided(&events), ["the changed definition has more to do before it"]);
    assert_eq!((bench.started(), bench.run.open_holds().len()), (vec!["one/a".to_owned(), "one/b".to_owned()], 1));
}

#[test]
fn a_question_among_tasks_follows_the_changed_definition() {
    let asked = |tasks: Vec<Task>| workflow(vec![phase("one", tasks)]);
    let mut removed = Bench::new(asked(vec![decision("db", &[]), task("build", &["db"])]));
    removed.work();
    accept(&mut removed, asked(vec![task("build", &[])]));
    assert_eq!(removed.run.status(), Status::Complete);
    let mut reworded = Bench::new(asked(vec![decision("db", &[]), task("build", &["db"])]));
    reworded.work();
    let old = reworded.hold().id.clone();
    let waits = Waits { remind: Some(Duration::from_secs(60)), ..Waits::default() };
    accept(&mut reworded, asked(vec![with_waits(decision("db", &[]), waits), task("build", &["db"])]));
    assert_ne!(reworded.hold().id, old);
    assert!(reworded.hold().terms.remind.is_some());
    reworded.answer("sqlite", None);
    reworded.work();
    assert_eq!(reworded.run.status(), Status::Complete);
}

/// A run with an answer that no process has applied yet, at a checkpoint that offers to skip phase `two`.
fn answered_checkpoint(option: &str, files: Vec<ShownFile>) -> Bench {
    let mut before = with_checkpoint(None, vec![task("a", &[])]);
    let skip = Action::SkipPhases(vec![PhaseId::from("two")]);
    before.phases[0].checkpoint = checkpoint(vec![choice("Continue", Action::Continue), choice("Skip", skip)]);
    before.phases.push(phase("three", vec![task("last", &[])]));
    let mut bench = Bench::new(before);
    bench.perform(&bench.effect_of("one/a"));
    let shown = Box::new(Showing { prompt: "Go on?".into(), files, ..Showing::default() });
    bench.outcome(CommandKind::Shown { phase: PhaseId::from("one"), iteration: 1, shown });
    bench.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    let body = bench.answer_body(option, None);
    bench.tell(person(), body, false).unwrap();
    bench
}

fn without_checkpoint() -> CommandKind {
    let mut now = with_checkpoint(None, vec![task("a", &[])]);
    now.phases.push(phase("three", vec![task("last", &[])]));
    CommandKind::AcceptDefinition { definition: Digest::of(b"changed"), workflow: Arc::new(now), files: Vec::new() }
}

#[test]
fn a_recorded_stop_counts_although_the_changed_definition_lacks_its_checkpoint() {
    let mut bench = answered_checkpoint("abort", Vec::new());
    let events = bench.tell(person(), without_checkpoint(), false).unwrap();
    assert_eq!(bench.run.status(), Status::Aborted);
    assert!(!events.iter().any(|event| matches!(event, Event::DefinitionAccepted { .. })), "{events:?}");
    assert_eq!(bench.run.decisions.len(), 1);
}

#[test]
fn a_recorded_skip_counts_although_the_changed_definition_lacks_its_checkpoint() {
    let mut bench = answered_checkpoint("skip", Vec::new());
    bench.tell(person(), without_checkpoint(), false).unwrap();
    bench.take_over();
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert_eq!(bench.started(), ["one/a", "three/last"]);
}

#[test]
fn recorded_issues_are_redone_although_the_changed_definition_lacks_their_question() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![task("build", &[]), verify("look", "build", 3)])]));
    bench.work();
    bench.record_answer("one/look", "issues", Some("too slow"));
    accept(&mut bench, workflow(vec![phase("one", vec![task("build", &[])])]));
    assert_eq!(bench.started(), ["one/build", "one/look", "one/build"]);
    assert_eq!(bench.run.task_run(&key("one", 1, "build")), None, "the phase is complete");
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_changed_definition_is_refused_until_a_recorded_answer_has_been_checked() {
    let file = || ShownFile::new("a.md", crate::hold::Seen::Absent);
    let mut bench = answered_checkpoint("skip", vec![file()]);
    let hold = bench.run.holds.keys().next().unwrap().clone();
    assert_eq!(bench.tell(person(), without_checkpoint(), false), Err(Refusal::AnswerUnchecked { hold: hold.clone() }));
    let mut unchanged = (*bench.run.workflow).clone();
    unchanged.phases[2].tasks.push(task("more", &[]));
    accept(&mut bench, unchanged);
    assert_eq!(bench.started(), ["one/a", "three/last", "three/more"], "elsewhere the definition may change");
    let mut bench = answered_checkpoint("skip", vec![file()]);
    bench.take_over();
    let changed = vec![ShownFile::new("a.md", crate::hold::Seen::Unreadable("it is locked".into()))];
    bench.outcome(CommandKind::Rechecked { hold, revision: 1, files: changed, differences: Vec::new() });
    bench.tell(person(), without_checkpoint(), false).unwrap();
    bench.tell(person(), CommandKind::Look, true).unwrap();
    bench.work();
    assert_eq!(bench.started(), ["one/a", "two/after", "three/last"], "an answer that did not hold is not kept");
}
