//! Answers: who may give them, which revision they are bound to, and which one counts.

use super::*;
use crate::hold::{PresentedFile, Seen};
use crate::run::Status;

fn one_checkpoint() -> Workflow {
    let mut first = phase("plan", vec![task("draft", &[])]);
    first.checkpoint = checkpoint(vec![
        choice("Continue", Action::Continue),
        choice("Redo", Action::RepeatPhase(PhaseId::from("plan"))),
        choice("Abort", Action::Abort),
    ]);
    workflow(vec![first, phase("build", vec![task("make", &[])])])
}

fn file(bytes: &[u8]) -> PresentedFile {
    let seen = Seen::File { digest: Digest::of(bytes), bytes: bytes.len() as u64, mode: 0o644 };
    PresentedFile::new("plan.md", seen)
}

/// A run that waits at a checkpoint which shows a file.
fn waiting_with_a_file(presets: Vec<PresetAnswer>) -> Harness {
    let mut harness = Harness::with_presets(one_checkpoint(), presets);
    harness.perform(&harness.run.pending()[0].clone());
    harness.outcome(CommandKind::Shown {
        phase: PhaseId::from("plan"),
        iteration: 1,
        shown: Box::new(Presentation { prompt: "Good?".into(), files: vec![file(b"one")], ..Presentation::default() }),
    });
    harness
}

fn recheck(harness: &mut Harness, now: PresentedFile) -> Vec<Event> {
    let Some(Effect::Recheck { hold, revision }) = harness.run.pending().into_iter().next() else {
        panic!("a recheck is due: {:?}", harness.run.pending());
    };
    harness.outcome(CommandKind::Rechecked {
        hold,
        revision,
        files: vec![now],
        diff: None,
        differences: vec!["-one +two".into()],
    })
}

#[test]
fn an_answer_takes_effect_only_if_the_shown_files_are_unchanged() {
    let mut harness = waiting_with_a_file(Vec::new());
    harness.answer("Continue", None);
    assert_eq!(harness.started(), ["plan/draft"], "nothing starts before the recheck");
    recheck(&mut harness, file(b"one"));
    assert_eq!(harness.started(), ["plan/draft", "build/make"]);
}

#[test]
fn a_changed_file_reopens_the_hold_with_a_diff() {
    let mut harness = waiting_with_a_file(Vec::new());
    harness.answer("Continue", None);
    recheck(&mut harness, file(b"two"));
    let hold = harness.hold();
    assert_eq!((hold.revision, hold.answers.len()), (2, 0), "earlier approvals are void");
    assert_eq!(hold.notes, ["-one +two"]);
    assert_eq!(harness.started(), ["plan/draft"]);
    let stale = CommandKind::Answer { hold: hold.id.clone(), revision: Some(1), option: "Continue".into(), feedback: None };
    assert!(matches!(harness.tell(person(), stale, true), Err(Refusal::StaleRevision { given: 1, current: 2, .. })));
}

#[test]
fn repeat_and_abort_need_no_recheck() {
    let mut harness = waiting_with_a_file(Vec::new());
    harness.answer("Redo", None);
    assert_eq!(harness.run.current.as_ref().unwrap().iteration, 2);
    let mut harness = waiting_with_a_file(Vec::new());
    harness.answer("Abort", None);
    assert_eq!(harness.run.status(), Status::Aborted);
}

#[test]
fn a_bare_id_is_refused_for_shown_files_unless_a_prompt_showed_them() {
    let mut harness = waiting_with_a_file(Vec::new());
    let id = harness.hold().id.clone();
    let bare = || CommandKind::Answer { hold: id.clone(), revision: None, option: "1".into(), feedback: None };
    assert!(matches!(harness.tell(person(), bare(), true), Err(Refusal::RevisionRequired { current: 1, .. })));
    let at_the_prompt = Actor { channel: Channel::Prompt, ..person() };
    assert!(harness.tell(at_the_prompt, bare(), true).is_ok());
}

#[test]
fn a_preset_answer_is_marked_and_never_answers_a_reopened_hold() {
    let preset = || PresetAnswer { selector: "plan".into(), option: "Continue".into(), feedback: None };
    let mut harness = waiting_with_a_file(vec![preset(), preset()]);
    let answered = harness.entries.iter().find(|entry| matches!(entry.event, Event::Answered { .. })).unwrap();
    assert_eq!(answered.actor.as_ref().unwrap().channel, Channel::Preset);
    assert_eq!(harness.run.presets.len(), 1, "one was used");
    recheck(&mut harness, file(b"two"));
    assert_eq!(harness.run.status(), Status::Waiting, "the second one was given without seeing this");
}

#[test]
fn preset_answers_are_used_in_order() {
    let preset = |option: &str| PresetAnswer { selector: "plan".into(), option: option.into(), feedback: None };
    let mut harness = Harness::with_presets(one_checkpoint(), vec![preset("Redo"), preset("2"), preset("Continue")]);
    harness.work();
    assert_eq!(harness.run.iteration_counts["plan"], 3);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn the_first_answer_wins_and_the_second_is_refused() {
    let mut harness = Harness::new(one_checkpoint());
    harness.work();
    let first = harness.answer_body("Continue", None);
    let other = harness.answer_body("Abort", None);
    assert_eq!(harness.tell(person(), first.clone(), false).unwrap().len(), 1);
    assert!(matches!(harness.tell(person(), first.clone(), false), Err(Refusal::AlreadyAnswered { .. })));
    assert!(matches!(harness.tell(person(), other.clone(), false), Err(Refusal::AnswerConflict { .. })));
    harness.outcome(CommandKind::TimerDue { timer: crate::id::TimerId::from("none") });
    assert_eq!(harness.started().last().unwrap(), "build/make");
    assert!(matches!(harness.tell(person(), first.clone(), false), Err(Refusal::AlreadyAnswered { .. })));
    let CommandKind::Answer { hold, .. } = first else { panic!() };
    let by_number = CommandKind::Answer { hold, revision: Some(1), option: "1".into(), feedback: None };
    assert!(matches!(harness.tell(person(), by_number, false), Err(Refusal::AlreadyAnswered { .. })));
    let Err(Refusal::AnswerConflict { recorded, .. }) = harness.tell(person(), other, false) else { panic!() };
    assert_eq!(recorded, "Continue");
}

#[test]
fn an_answer_from_another_process_starts_nothing_by_itself() {
    let mut harness = Harness::new(one_checkpoint());
    harness.work();
    let body = harness.answer_body("Continue", None);
    harness.tell(person(), body, false).unwrap();
    assert_eq!(harness.started(), ["plan/draft"]);
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(harness.started().last().unwrap(), "build/make");
}

#[test]
fn only_a_person_outside_any_task_and_at_a_terminal_may_answer() {
    let mut harness = Harness::new(one_checkpoint());
    harness.work();
    let body = harness.answer_body("Continue", None);
    let agent = Actor { credential: Credential::Agent, ..person() };
    assert!(matches!(harness.tell(agent, body.clone(), true), Err(Refusal::PersonRequired { .. })));
    let inside = Actor { inside_task: Some("plan/draft".into()), ..person() };
    assert!(matches!(harness.tell(inside, body.clone(), true), Err(Refusal::InsideTask { .. })));
    let script = Actor { terminal: false, ..person() };
    assert!(matches!(harness.tell(script, body, true), Err(Refusal::TerminalRequired { .. })));
    assert_eq!(harness.run.status(), Status::Waiting);
}

#[test]
fn an_option_is_matched_only_by_id_label_or_number() {
    let mut harness = Harness::new(one_checkpoint());
    harness.work();
    let hold = harness.hold();
    for named in ["continue", "Continue", "CONTINUE", " 1 "] {
        assert_eq!(hold.option(named).unwrap().label, "Continue", "{named}");
    }
    for named in ["yes", "0", "4", "", "-1"] {
        assert!(hold.option(named).is_none(), "{named}");
    }
    let body = harness.answer_body("lgtm", None);
    assert!(matches!(harness.tell(person(), body, true), Err(Refusal::OptionNotFound { .. })));
}

#[test]
fn an_answer_to_an_unknown_hold_is_refused() {
    let mut harness = Harness::new(one_checkpoint());
    harness.work();
    let body = CommandKind::Answer { hold: hold_id("nowhere0"), revision: None, option: "1".into(), feedback: None };
    assert!(matches!(harness.tell(person(), body, true), Err(Refusal::HoldNotFound { .. })));
}

#[test]
fn a_preset_answer_for_a_phase_is_not_used_for_a_task_of_the_same_name() {
    let mut first = phase("review", vec![Task { on_fail: OnFail::Ask, ..task("review", &[]) }]);
    first.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let preset = PresetAnswer { selector: "review".into(), option: "1".into(), feedback: None };
    let mut harness = Harness::with_presets(workflow(vec![first]), vec![preset]);
    harness.fail("review/review");
    assert_eq!(harness.hold().kind, crate::hold::HoldKind::Failed);
    harness.answer("Count as done", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete, "the checkpoint took it");
}

/// The refusals of a later answer after `first`: before that took effect, and after.
fn refused_for_an_earlier_answer(first: (&str, Option<&str>), later: (&str, Option<&str>)) -> [Refusal; 2] {
    [false, true].map(|driving| {
        let mut harness = Harness::new(one_checkpoint());
        harness.work();
        let (one, other) = (harness.answer_body(first.0, first.1), harness.answer_body(later.0, later.1));
        harness.tell(person(), one, driving).unwrap();
        let refused = harness.tell(Actor { name: "bob".into(), ..person() }, other, driving);
        let answers = harness.entries.iter().filter(|entry| matches!(entry.event, Event::Answered { .. }));
        assert_eq!(answers.count(), 1);
        refused.unwrap_err()
    })
}

#[test]
fn a_repeated_answer_is_recognized_by_option_and_feedback() {
    for (first, later) in [
        (("Continue", None), ("Continue", None)),
        (("Continue", None), ("continue", None)),
        (("Continue", None), ("1", None)),
        (("Continue", Some("fine")), ("Continue", Some("fine"))),
        (("Continue", Some("fine")), ("Continue", None)),
    ] {
        for refused in refused_for_an_earlier_answer(first, later) {
            let Refusal::AlreadyAnswered { by, at } = refused else { panic!("{first:?}, {later:?}: {refused:?}") };
            assert_eq!((by.name.as_str(), at), ("ada", Timestamp::from_millis(3000)), "who was first, and when");
        }
    }
}

#[test]
fn a_different_option_or_feedback_conflicts_with_the_first_answer() {
    for (first, later, given) in [
        (("Continue", None), ("Abort", None), "Abort"),
        (("Continue", None), ("3", None), "3"),
        (("Continue", Some("fine")), ("Continue", Some("not fine")), "Continue"),
        (("Continue", None), ("Continue", Some("fine")), "Continue"),
        (("Continue", Some("fine")), ("Abort", Some("fine")), "Abort"),
    ] {
        for refused in refused_for_an_earlier_answer(first, later) {
            let Refusal::AnswerConflict { recorded, given: shown, by, .. } = refused else {
                panic!("{first:?}, {later:?}: {refused:?}")
            };
            assert_eq!((recorded.as_str(), by.name.as_str()), ("Continue", "ada"));
            assert!(shown == given || (given == "3" && shown == "Abort"), "{shown}");
        }
    }
}

#[test]
fn an_answer_must_name_the_current_revision() {
    for (revision, refused) in [(Some(0), true), (Some(1), false), (Some(2), true)] {
        let mut harness = waiting_with_a_file(Vec::new());
        let hold = harness.hold().id.clone();
        let body = CommandKind::Answer { hold, revision, option: "1".into(), feedback: None };
        let result = harness.tell(person(), body, false);
        assert_eq!(matches!(result, Err(Refusal::StaleRevision { current: 1, .. })), refused, "{revision:?}: {result:?}");
    }
}

#[test]
fn a_bare_id_is_enough_where_no_files_are_shown() {
    let mut harness = Harness::new(one_checkpoint());
    harness.work();
    let body = CommandKind::Answer { hold: harness.hold().id.clone(), revision: None, option: "1".into(), feedback: None };
    assert!(harness.tell(person(), body, false).is_ok());
}

#[test]
fn an_option_that_requires_feedback_is_refused_without_it() {
    let needs = Choice { requires_feedback: true, ..choice("Redo", Action::RepeatPhase(PhaseId::from("plan"))) };
    let mut first = phase("plan", vec![task("draft", &[])]);
    first.checkpoint = checkpoint(vec![choice("Continue", Action::Continue), needs]);
    for (option, feedback, refused) in
        [("Redo", None, true), ("Redo", Some(" \n"), true), ("Redo", Some("shorter"), false), ("Continue", None, false)]
    {
        let mut harness = Harness::new(workflow(vec![first.clone()]));
        harness.work();
        let body = harness.answer_body(option, feedback);
        let result = harness.tell(person(), body, false);
        assert_eq!(matches!(result, Err(Refusal::FeedbackRequired { .. })), refused, "{option} {feedback:?}: {result:?}");
    }
}

#[test]
fn an_answer_to_a_hold_of_an_ended_run_says_that_the_run_has_ended() {
    let mut harness = Harness::new(one_checkpoint());
    harness.work();
    let open = harness.answer_body("Continue", None);
    harness.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert!(matches!(harness.tell(person(), open, true), Err(Refusal::RunEnded { .. })));
    let unknown = CommandKind::Answer { hold: hold_id("nowhere0"), revision: None, option: "1".into(), feedback: None };
    assert!(matches!(harness.tell(person(), unknown, true), Err(Refusal::RunEnded { .. })));
}

#[test]
fn a_conflict_reports_the_decision_about_this_hold() {
    let mut harness = Harness::new(one_checkpoint());
    harness.work();
    let first = harness.answer_body("Redo", None);
    harness.answer("Redo", None);
    harness.work();
    harness.answer("Continue", None);
    let CommandKind::Answer { hold, .. } = first else { panic!() };
    let other = CommandKind::Answer { hold, revision: Some(1), option: "Continue".into(), feedback: None };
    let Err(Refusal::AnswerConflict { recorded, .. }) = harness.tell(person(), other, true) else { panic!() };
    assert_eq!(recorded, "Redo");
}

#[test]
fn administrators_decide_and_viewers_and_the_program_itself_do_not() {
    let caller = |credential| Caller::new(Actor { credential, ..person() }, TerminalRule::Required);
    assert_eq!(caller(Credential::Person).may_decide("answer"), Ok(()));
    assert_eq!(caller(Credential::Admin).may_decide("answer"), Ok(()));
    for credential in [Credential::Agent, Credential::Viewer, Credential::System] {
        let refused = caller(credential).may_decide("answer");
        assert!(matches!(&refused, Err(Refusal::PersonRequired { what, .. }) if what == "answer"), "{refused:?}");
        assert!(refused.unwrap_err().concerns_caller());
    }
    let without_terminal = Actor { terminal: false, ..person() };
    assert_eq!(Caller::new(without_terminal.clone(), TerminalRule::NotRequired).may_decide("answer"), Ok(()));
    let required = Caller::new(without_terminal, TerminalRule::Required);
    assert!(matches!(required.may_decide("answer"), Err(Refusal::TerminalRequired { .. })));
    assert_eq!(required.outside_tasks("drive"), Ok(()));
    let inside = Actor { inside_task: Some("a/b".into()), ..person() };
    assert!(matches!(inside.outside_tasks("drive"), Err(Refusal::InsideTask { task, .. }) if task == "a/b"));
    assert!(!Refusal::ChangeNeedsFork.concerns_caller());
}
