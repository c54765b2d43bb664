//! Deadlines and defaults: what answers a question when no person does.

use super::*;
use crate::run::Status;
use std::time::Duration;

fn due(then: OnDeadline) -> Bench {
    let waits = Waits { deadline: Some(Deadline { after: Duration::from_secs(60), then }), ..Waits::default() };
    let mut one = phase("one", vec![task("make", &[])]);
    let options = vec![choice("Go", Action::Continue), choice("Again", Action::RepeatPhase(PhaseId::from("one")))];
    one.checkpoint = Some(Checkpoint { waits, ..checkpoint(options).unwrap() });
    let mut bench = Bench::new(workflow(vec![one, phase("two", vec![task("ship", &[])])]));
    bench.work();
    assert_eq!(bench.run.status(), Status::Waiting);
    bench
}

#[test]
fn an_answer_after_the_deadline_loses_although_nothing_watched_the_clock() {
    let mut bench = due(OnDeadline::Answer(OptionId::from("go")));
    let late = bench.answer_body("Again", Some("too slow"));
    bench.now += 60_000;
    let refused = bench.tell(person(), late, false).unwrap_err();
    assert!(matches!(refused, Refusal::AnswerConflicts { recorded, .. } if recorded == "Go"));
    bench.outcome(CommandKind::Look);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    let answers: Vec<Channel> = bench.run.decisions.iter().map(|decision| decision.actor.channel).collect();
    assert_eq!(answers, [Channel::Deadline]);
}

#[test]
fn resuming_fires_a_deadline_that_has_passed() {
    let mut bench = due(OnDeadline::Answer(OptionId::from("go")));
    bench.now += 60_000;
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(bench.started(), ["one/make", "two/ship"]);
}

#[test]
fn a_deadline_that_escalates_leaves_a_late_answer_its_effect() {
    let mut bench = due(OnDeadline::Escalate(None));
    bench.now += 60_000;
    bench.answer("Go", None);
    assert!(bench.has(|event| matches!(event, Event::DeadlinePassed { .. })));
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_deadline_that_aborts_is_recorded_although_the_late_answer_is_refused() {
    let mut bench = due(OnDeadline::Abort);
    let late = bench.answer_body("Go", None);
    bench.now += 60_000;
    assert!(matches!(bench.tell(person(), late, false), Err(Refusal::RunEnded { .. })));
    assert_eq!(bench.run.status(), Status::Aborted);
}

/// A checkpoint that is answered by itself, in such a way that a phase runs again; in the second phase of two.
fn repeating(waits: Waits, target: &str) -> Bench {
    let options = vec![choice("Go", Action::Continue), choice("Again", Action::RepeatPhase(PhaseId::from(target)))];
    let mut two = phase("two", vec![task("make", &[])]);
    two.checkpoint = Some(Checkpoint { waits, ..checkpoint(options).unwrap() });
    Bench::new(workflow(vec![phase("one", vec![task("plan", &[])]), two]))
}

#[test]
fn a_default_that_runs_a_phase_again_does_so_a_few_times_and_then_a_person_is_asked() {
    for target in ["one", "two"] {
        let waits = Waits { default: Some(OptionId::from("again")), ..Waits::default() };
        let mut bench = repeating(waits, target);
        bench.work();
        assert_eq!(bench.run.iteration_counts["two"], 4, "three times more");
        assert_eq!(bench.run.status(), Status::Waiting);
        assert!(bench.hold().blocking && bench.hold().notes[0].contains("without a person"));
        bench.answer("Again", None);
        bench.work();
        assert_eq!(bench.run.iteration_counts["two"], 8, "a person asked for it, so it may repeat by itself again");
        bench.answer("Go", None);
        bench.work();
        assert_eq!(bench.run.status(), Status::Complete);
    }
}

#[test]
fn a_default_that_runs_a_phase_again_stops_although_a_person_answers_another_question_meanwhile() {
    let ways = vec![choice("Left", Action::Continue), choice("Right", Action::Continue)];
    let asks = Task { work: Work::Checkpoint(Box::new(checkpoint(ways).unwrap())), ..task("asks", &[]) };
    let options = vec![choice("Go", Action::Continue), choice("Again", Action::RepeatPhase(PhaseId::from("one")))];
    let waits = Waits { default: Some(OptionId::from("again")), ..Waits::default() };
    let mut one = phase("one", vec![asks]);
    one.checkpoint = Some(Checkpoint { waits, ..checkpoint(options).unwrap() });
    let mut bench = Bench::new(workflow(vec![one]));
    for _ in 0..4 {
        let pending = bench.run.pending().into_iter().find_map(|effect| match effect {
            Effect::Task { key, attempt } => Some((key, attempt)),
            _ => None,
        });
        let (key, attempt) = pending.expect("the question is to be asked");
        let outcome = TaskOutcome::Asks(Box::default());
        bench.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
        bench.answer("Left", None);
        bench.perform(&Effect::Show { phase: PhaseId::from("one"), iteration: bench.run.iteration_counts["one"] });
    }
    assert_eq!(bench.run.status(), Status::Waiting);
    assert!(bench.hold().notes[0].contains("without a person"));
}

#[test]
fn a_deadline_that_runs_a_phase_again_does_so_a_few_times_and_then_a_person_is_asked() {
    let then = OnDeadline::Answer(OptionId::from("again"));
    let waits = Waits { deadline: Some(Deadline { after: Duration::from_secs(60), then }), ..Waits::default() };
    let mut bench = repeating(waits, "one");
    for _ in 0..6 {
        bench.work();
        bench.now += 60_000;
        bench.outcome(CommandKind::Look);
    }
    bench.work();
    assert_eq!(bench.run.iteration_counts["two"], 4);
    assert_eq!(bench.run.status(), Status::Waiting);
}

#[test]
fn a_question_that_was_answered_by_default_and_opened_again_is_waited_for() {
    let waits = Waits { default: Some(OptionId::from("go")), ..Waits::default() };
    let mut bench = repeating(waits, "one");
    while !bench.run.pending().iter().any(|effect| matches!(effect, Effect::Show { .. })) {
        bench.perform(&bench.run.pending()[0].clone());
    }
    let file = |content: &[u8]| {
        let seen = crate::hold::Seen::File { digest: Digest::of(content), bytes: 1, mode: 0o644 };
        crate::hold::ShownFile::new("plan.md", seen)
    };
    let shown = Box::new(Showing { files: vec![file(b"before")], ..Showing::default() });
    bench.outcome(CommandKind::Shown { phase: PhaseId::from("two"), iteration: 1, shown });
    let (hold, revision) = bench.run.holds.values().map(|hold| (hold.id.clone(), hold.revision)).next().unwrap();
    bench.outcome(CommandKind::Rechecked { hold, revision, files: vec![file(b"after")], differences: vec!["changed".into()] });
    assert_eq!(bench.run.status(), Status::Waiting, "a person is needed, so the run waits for one");
}

#[test]
fn a_deadline_that_lets_the_run_go_on_is_kept_when_a_default_has_repeated_too_often() {
    let then = OnDeadline::Answer(OptionId::from("go"));
    let deadline = Some(Deadline { after: Duration::from_secs(60), then });
    let mut bench = repeating(Waits { default: Some(OptionId::from("again")), deadline, ..Waits::default() }, "two");
    bench.work();
    assert_eq!((bench.run.status(), bench.run.iteration_counts["two"]), (Status::Waiting, 4));
    bench.now += 60_000;
    bench.outcome(CommandKind::Look);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_question_that_is_asked_again_offers_what_was_answered_before() {
    let mut look = super::questions::verify("look", "make", 3);
    look.needs = vec![TaskId::from("click")];
    let tasks = vec![task("make", &[]), super::questions::action("click", &["make"]), look];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    bench.work();
    assert_eq!(bench.hold().previous_choice(), None);
    bench.answer("done", None);
    bench.work();
    bench.answer("issues", Some("too slow"));
    bench.work();
    assert_eq!(bench.asked(), ["one/click"]);
    assert_eq!(bench.hold().previous_choice().map(|choice| choice.id.as_str()), Some("done"));
}
