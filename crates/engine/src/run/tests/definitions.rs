//! Definitions that change during a run: tasks that they lack are dropped, and tasks that they add are run.

use super::questions::{decision, verify, with_waits};
use super::*;
use crate::hold::PresentedFile;
use crate::run::Status;
use std::time::Duration;

fn accept(harness: &mut Harness, now: Workflow) -> Vec<Event> {
    let body = CommandKind::AcceptDefinition { definition: Digest::of(b"changed"), workflow: Arc::new(now), files: Vec::new() };
    let mut events = harness.tell(person(), body, false).unwrap();
    events.extend(harness.take_over());
    harness.work();
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
fn a_renamed_failed_task_is_dropped_and_the_new_one_runs() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![task("a", &[]), task("bild", &["a"])])]));
    harness.perform(&harness.effect_of("one/a"));
    harness.fail("one/bild");
    assert_eq!(harness.run.status(), Status::Failed);
    accept(&mut harness, workflow(vec![phase("one", vec![task("a", &[]), task("build", &["a"])])]));
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "one/bild", "one/build"]);
}

#[test]
fn a_removed_failed_task_is_dropped() {
    let mut waits = task("waits", &[]);
    waits.retry = Retry { attempts: 2, backoff: Duration::from_secs(3600) };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![waits, asking("asks"), task("last", &["asks"])])]));
    harness.fail("one/waits");
    harness.fail("one/asks");
    assert_eq!(harness.asked(), ["one/asks"]);
    let events = accept(&mut harness, workflow(vec![phase("one", vec![task("last", &[])])]));
    assert_eq!(voided(&events), ["the changed definition has no task asks"]);
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started().last().map(String::as_str), Some("one/last"));
}

#[test]
fn a_removed_failed_gate_is_dropped_with_its_question() {
    let failing = |on_fail| {
        let mut one = phase("one", vec![task("a", &[])]);
        one.gates = vec![Gate { on_fail, ..gate("tests") }];
        let mut harness = Harness::new(workflow(vec![one]));
        harness.perform(&harness.effect_of("one/a"));
        let (phase, gate) = (PhaseId::from("one"), GateId::from("tests"));
        harness.outcome(CommandKind::GateEnded { phase, iteration: 1, gate, attempt: 1, failure: Some(broken()) });
        harness
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
fn a_removed_open_checkpoint_no_longer_blocks_the_run() {
    let mut harness = Harness::new(with_checkpoint(Some("Go on?"), vec![task("a", &[])]));
    harness.work();
    let events = accept(&mut harness, with_checkpoint(None, vec![task("a", &[])]));
    assert_eq!(voided(&events), ["the changed definition has no checkpoint here"]);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_changed_open_checkpoint_is_asked_again() {
    let mut harness = Harness::new(with_checkpoint(Some("Go on?"), vec![task("a", &[])]));
    harness.work();
    let old = harness.hold().id.clone();
    let events = accept(&mut harness, with_checkpoint(Some("Ship it?"), vec![task("a", &[])]));
    assert_eq!(voided(&events), ["the changed definition asks something else here"]);
    assert_eq!(harness.run.status(), Status::Waiting);
    let late = CommandKind::Answer { hold: old, revision: None, option: "continue".into(), feedback: None };
    assert!(matches!(harness.tell(person(), late, true), Err(Refusal::HoldVoided { now: Some(_), .. })));
    harness.answer("continue", None);
    harness.work();
    assert_eq!(harness.started(), ["one/a", "two/after"], "completed tasks are not redone");
}

#[test]
fn an_unchanged_question_stays_open() {
    let mut harness = Harness::new(with_checkpoint(Some("Go on?"), vec![task("a", &[])]));
    harness.work();
    let before = harness.hold().id.clone();
    let mut now = with_checkpoint(Some("Go on?"), vec![task("a", &[])]);
    now.phases.push(phase("three", vec![task("more", &[])]));
    assert!(voided(&accept(&mut harness, now)).is_empty());
    assert_eq!(harness.hold().id, before);
}

#[test]
fn tasks_added_by_a_changed_definition_run_before_the_checkpoint() {
    let mut harness = Harness::new(with_checkpoint(Some("Go on?"), vec![task("a", &[])]));
    harness.work();
    let now = with_checkpoint(Some("Go on?"), vec![task("a", &[]), task("b", &[])]);
    let events = accept(&mut harness, now);
    assert_eq!(voided(&events), ["the changed definition has more to do before it"]);
    assert_eq!((harness.started(), harness.run.open_holds().len()), (vec!["one/a".to_owned(), "one/b".to_owned()], 1));
}

#[test]
fn a_question_task_is_updated_by_a_changed_definition() {
    let asked = |tasks: Vec<Task>| workflow(vec![phase("one", tasks)]);
    let mut removed = Harness::new(asked(vec![decision("db", &[]), task("build", &["db"])]));
    removed.work();
    accept(&mut removed, asked(vec![task("build", &[])]));
    assert_eq!(removed.run.status(), Status::Complete);
    let mut reworded = Harness::new(asked(vec![decision("db", &[]), task("build", &["db"])]));
    reworded.work();
    let old = reworded.hold().id.clone();
    let waits = WaitSettings { remind: Some(Duration::from_secs(60)), ..WaitSettings::default() };
    accept(&mut reworded, asked(vec![with_waits(decision("db", &[]), waits), task("build", &["db"])]));
    assert_ne!(reworded.hold().id, old);
    assert!(reworded.hold().terms.remind.is_some());
    reworded.answer("sqlite", None);
    reworded.work();
    assert_eq!(reworded.run.status(), Status::Complete);
}

/// A run with an answer that no process has applied yet, at a checkpoint that offers to skip phase `two`.
fn answered_checkpoint(option: &str, files: Vec<PresentedFile>) -> Harness {
    let mut before = with_checkpoint(None, vec![task("a", &[])]);
    let skip = Action::SkipPhases(vec![PhaseId::from("two")]);
    before.phases[0].checkpoint = checkpoint(vec![choice("Continue", Action::Continue), choice("Skip", skip)]);
    before.phases.push(phase("three", vec![task("last", &[])]));
    let mut harness = Harness::new(before);
    harness.perform(&harness.effect_of("one/a"));
    let shown = Box::new(Presentation { prompt: "Go on?".into(), files, ..Presentation::default() });
    harness.outcome(CommandKind::Shown { phase: PhaseId::from("one"), iteration: 1, shown });
    harness.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    let body = harness.answer_body(option, None);
    harness.tell(person(), body, false).unwrap();
    harness
}

fn without_checkpoint() -> CommandKind {
    let mut now = with_checkpoint(None, vec![task("a", &[])]);
    now.phases.push(phase("three", vec![task("last", &[])]));
    CommandKind::AcceptDefinition { definition: Digest::of(b"changed"), workflow: Arc::new(now), files: Vec::new() }
}

#[test]
fn a_recorded_stop_takes_effect_even_if_its_checkpoint_was_removed() {
    let mut harness = answered_checkpoint("abort", Vec::new());
    let events = harness.tell(person(), without_checkpoint(), false).unwrap();
    assert_eq!(harness.run.status(), Status::Aborted);
    assert!(!events.iter().any(|event| matches!(event, Event::DefinitionAccepted { .. })), "{events:?}");
    assert_eq!(harness.run.decisions.len(), 1);
}

#[test]
fn a_recorded_skip_takes_effect_even_if_its_checkpoint_was_removed() {
    let mut harness = answered_checkpoint("skip", Vec::new());
    harness.tell(person(), without_checkpoint(), false).unwrap();
    harness.take_over();
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert_eq!(harness.started(), ["one/a", "three/last"]);
}

#[test]
fn recorded_issues_cause_rework_even_if_their_question_was_removed() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![task("build", &[]), verify("look", "build", 3)])]));
    harness.work();
    harness.record_answer("one/look", "issues", Some("too slow"));
    accept(&mut harness, workflow(vec![phase("one", vec![task("build", &[])])]));
    assert_eq!(harness.started(), ["one/build", "one/look", "one/build"]);
    assert_eq!(harness.run.task_run(&key("one", 1, "build")), None, "the phase is complete");
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_changed_definition_is_refused_until_a_recorded_answer_has_been_checked() {
    let file = || PresentedFile::new("a.md", crate::hold::Seen::Absent);
    let mut harness = answered_checkpoint("skip", vec![file()]);
    let hold = harness.run.holds.keys().next().unwrap().clone();
    assert_eq!(harness.tell(person(), without_checkpoint(), false), Err(Refusal::AnswerUnchecked { hold: hold.clone() }));
    let mut unchanged = (*harness.run.workflow).clone();
    unchanged.phases[2].tasks.push(task("more", &[]));
    accept(&mut harness, unchanged);
    assert_eq!(harness.started(), ["one/a", "three/last", "three/more"], "elsewhere the definition may change");
    let mut harness = answered_checkpoint("skip", vec![file()]);
    harness.take_over();
    let changed = vec![PresentedFile::new("a.md", crate::hold::Seen::Unreadable("it is locked".into()))];
    harness.outcome(CommandKind::Rechecked { hold, revision: 1, files: changed, diff: None, differences: Vec::new() });
    harness.tell(person(), without_checkpoint(), false).unwrap();
    harness.tell(person(), CommandKind::Advance, true).unwrap();
    harness.work();
    assert_eq!(harness.started(), ["one/a", "two/after", "three/last"], "a voided answer is not kept");
}
