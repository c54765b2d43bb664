//! Deadlines and defaults: answers without a person.

use super::*;
use crate::run::Status;
use std::time::Duration;

fn due(then: OnDeadline) -> Harness {
    let waits = WaitSettings { deadline: Some(Deadline { after: Duration::from_secs(60), then }), ..WaitSettings::default() };
    let mut one = phase("one", vec![task("make", &[])]);
    let options = vec![choice("Go", Action::Continue), choice("Again", Action::RepeatPhase(PhaseId::from("one")))];
    one.checkpoint = Some(Checkpoint { waits, ..checkpoint(options).unwrap() });
    let mut harness = Harness::new(workflow(vec![one, phase("two", vec![task("ship", &[])])]));
    harness.work();
    assert_eq!(harness.run.status(), Status::Waiting);
    harness
}

#[test]
fn an_answer_after_the_deadline_loses_even_if_the_timer_never_fired() {
    let mut harness = due(OnDeadline::Answer(OptionId::from("go")));
    let late = harness.answer_body("Again", Some("too slow"));
    harness.now += 60_000;
    let refused = harness.tell(person(), late, false).unwrap_err();
    assert!(matches!(refused, Refusal::AnswerConflict { recorded, .. } if recorded == "Go"));
    harness.outcome(CommandKind::Advance);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    let answers: Vec<Channel> = harness.run.decisions.iter().map(|decision| decision.actor.channel).collect();
    assert_eq!(answers, [Channel::Deadline]);
}

#[test]
fn resuming_fires_a_deadline_that_has_passed() {
    let mut harness = due(OnDeadline::Answer(OptionId::from("go")));
    harness.now += 60_000;
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(harness.started(), ["one/make", "two/ship"]);
}

#[test]
fn an_escalating_deadline_still_accepts_a_late_answer() {
    let mut harness = due(OnDeadline::Escalate(None));
    harness.now += 60_000;
    harness.answer("Go", None);
    assert!(harness.has(|event| matches!(event, Event::DeadlinePassed { .. })));
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn an_aborting_deadline_is_recorded_when_a_late_answer_is_refused() {
    let mut harness = due(OnDeadline::Abort);
    let late = harness.answer_body("Go", None);
    harness.now += 60_000;
    assert!(matches!(harness.tell(person(), late, false), Err(Refusal::RunEnded { .. })));
    assert_eq!(harness.run.status(), Status::Aborted);
}

/// A checkpoint in the second of two phases whose automatic answer repeats a phase.
fn repeating(waits: WaitSettings, target: &str) -> Harness {
    let options = vec![choice("Go", Action::Continue), choice("Again", Action::RepeatPhase(PhaseId::from(target)))];
    let mut two = phase("two", vec![task("make", &[])]);
    two.checkpoint = Some(Checkpoint { waits, ..checkpoint(options).unwrap() });
    Harness::new(workflow(vec![phase("one", vec![task("plan", &[])]), two]))
}

#[test]
fn a_default_that_repeats_a_phase_is_limited_and_then_a_person_is_asked() {
    for target in ["one", "two"] {
        let waits = WaitSettings { default: Some(OptionId::from("again")), ..WaitSettings::default() };
        let mut harness = repeating(waits, target);
        harness.work();
        assert_eq!(harness.run.iteration_counts["two"], 4, "three times more");
        assert_eq!(harness.run.status(), Status::Waiting);
        assert!(harness.hold().blocking && harness.hold().notes[0].contains("without a person"));
        harness.answer("Again", None);
        harness.work();
        assert_eq!(harness.run.iteration_counts["two"], 8, "a person asked for it, so it may repeat by itself again");
        harness.answer("Go", None);
        harness.work();
        assert_eq!(harness.run.status(), Status::Complete);
    }
}

#[test]
fn a_repeating_default_stops_at_its_limit_even_if_a_person_answers_another_question() {
    let ways = vec![choice("Left", Action::Continue), choice("Right", Action::Continue)];
    let asks = Task { work: Work::Checkpoint(Box::new(checkpoint(ways).unwrap())), ..task("asks", &[]) };
    let options = vec![choice("Go", Action::Continue), choice("Again", Action::RepeatPhase(PhaseId::from("one")))];
    let waits = WaitSettings { default: Some(OptionId::from("again")), ..WaitSettings::default() };
    let mut one = phase("one", vec![asks]);
    one.checkpoint = Some(Checkpoint { waits, ..checkpoint(options).unwrap() });
    let mut harness = Harness::new(workflow(vec![one]));
    for _ in 0..4 {
        let pending = harness.run.pending().into_iter().find_map(|effect| match effect {
            Effect::Task { key, attempt } => Some((key, attempt)),
            _ => None,
        });
        let (key, attempt) = pending.expect("the question is to be asked");
        let outcome = TaskOutcome::Asks(Box::default());
        harness.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
        harness.answer("Left", None);
        harness.perform(&Effect::Show { phase: PhaseId::from("one"), iteration: harness.run.iteration_counts["one"] });
    }
    assert_eq!(harness.run.status(), Status::Waiting);
    assert!(harness.hold().notes[0].contains("without a person"));
}

#[test]
fn a_deadline_that_repeats_a_phase_is_limited_and_then_a_person_is_asked() {
    let then = OnDeadline::Answer(OptionId::from("again"));
    let waits = WaitSettings { deadline: Some(Deadline { after: Duration::from_secs(60), then }), ..WaitSettings::default() };
    let mut harness = repeating(waits, "one");
    for _ in 0..6 {
        harness.work();
        harness.now += 60_000;
        harness.outcome(CommandKind::Advance);
    }
    harness.work();
    assert_eq!(harness.run.iteration_counts["two"], 4);
    assert_eq!(harness.run.status(), Status::Waiting);
}

#[test]
fn a_reopened_question_that_was_answered_by_default_blocks_the_run() {
    let waits = WaitSettings { default: Some(OptionId::from("go")), ..WaitSettings::default() };
    let mut harness = repeating(waits, "one");
    while !harness.run.pending().iter().any(|effect| matches!(effect, Effect::Show { .. })) {
        harness.perform(&harness.run.pending()[0].clone());
    }
    let file = |content: &[u8]| {
        let seen = crate::hold::Seen::File { digest: Digest::of(content), bytes: 1, mode: 0o644 };
        crate::hold::PresentedFile::new("plan.md", seen)
    };
    let shown = Box::new(Presentation { files: vec![file(b"before")], ..Presentation::default() });
    harness.outcome(CommandKind::Shown { phase: PhaseId::from("two"), iteration: 1, shown });
    let (hold, revision) = harness.run.holds.values().map(|hold| (hold.id.clone(), hold.revision)).next().unwrap();
    harness.outcome(CommandKind::Rechecked {
        hold,
        revision,
        files: vec![file(b"after")],
        diff: None,
        differences: vec!["changed".into()],
    });
    assert_eq!(harness.run.status(), Status::Waiting, "a person is needed, so the run waits for one");
}

#[test]
fn a_continuing_deadline_stays_active_after_the_default_reached_its_repeat_limit() {
    let then = OnDeadline::Answer(OptionId::from("go"));
    let deadline = Some(Deadline { after: Duration::from_secs(60), then });
    let mut harness =
        repeating(WaitSettings { default: Some(OptionId::from("again")), deadline, ..WaitSettings::default() }, "two");
    harness.work();
    assert_eq!((harness.run.status(), harness.run.iteration_counts["two"]), (Status::Waiting, 4));
    harness.now += 60_000;
    harness.outcome(CommandKind::Advance);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_repeated_question_offers_the_previous_answer() {
    let mut look = super::questions::verify("look", "make", 3);
    look.needs = vec![TaskId::from("click")];
    let tasks = vec![task("make", &[]), super::questions::action("click", &["make"]), look];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    harness.work();
    assert_eq!(harness.hold().previous_choice(), None);
    harness.answer("done", None);
    harness.work();
    harness.answer("issues", Some("too slow"));
    harness.work();
    assert_eq!(harness.asked(), ["one/click"]);
    assert_eq!(harness.hold().previous_choice().map(|choice| choice.id.as_str()), Some("done"));
}
