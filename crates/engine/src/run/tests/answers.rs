//! Answers: who may give them, to what they are bound, which one counts.

use super::*;
use crate::hold::{Seen, ShownFile};
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

fn file(bytes: &[u8]) -> ShownFile {
    let seen = Seen::File { digest: Digest::of(bytes), bytes: bytes.len() as u64, mode: 0o644 };
    ShownFile::new("plan.md", seen)
}

/// A run that waits at a checkpoint which shows a file.
fn waiting_with_a_file(presets: Vec<Preset>) -> Bench {
    let mut bench = Bench::with_presets(one_checkpoint(), presets);
    bench.perform(&bench.run.pending()[0].clone());
    bench.outcome(CommandKind::Shown {
        phase: PhaseId::from("plan"),
        iteration: 1,
        shown: Box::new(Showing { prompt: "Good?".into(), files: vec![file(b"one")], ..Showing::default() }),
    });
    bench
}

fn recheck(bench: &mut Bench, now: ShownFile) -> Vec<Event> {
    let Some(Effect::Recheck { hold, revision }) = bench.run.pending().into_iter().next() else {
        panic!("a second look is due: {:?}", bench.run.pending());
    };
    bench.outcome(CommandKind::Rechecked { hold, revision, files: vec![now], differences: vec!["-one +two".into()] })
}

#[test]
fn an_answer_takes_effect_only_if_what_was_shown_is_unchanged() {
    let mut bench = waiting_with_a_file(Vec::new());
    bench.answer("Continue", None);
    assert_eq!(bench.started(), ["plan/draft"], "nothing starts before the second look");
    recheck(&mut bench, file(b"one"));
    assert_eq!(bench.started(), ["plan/draft", "build/make"]);
}

#[test]
fn a_changed_file_opens_the_hold_again_with_the_difference() {
    let mut bench = waiting_with_a_file(Vec::new());
    bench.answer("Continue", None);
    recheck(&mut bench, file(b"two"));
    let hold = bench.hold();
    assert_eq!((hold.revision, hold.answers.len()), (2, 0), "earlier approvals are void");
    assert_eq!(hold.notes, ["-one +two"]);
    assert_eq!(bench.started(), ["plan/draft"]);
    let stale = CommandKind::Answer { hold: hold.id.clone(), revision: Some(1), option: "Continue".into(), feedback: None };
    assert!(matches!(bench.tell(person(), stale, true), Err(Refusal::StaleRevision { given: 1, current: 2, .. })));
}

#[test]
fn repeat_and_abort_need_no_second_look() {
    let mut bench = waiting_with_a_file(Vec::new());
    bench.answer("Redo", None);
    assert_eq!(bench.run.current.as_ref().unwrap().iteration, 2);
    let mut bench = waiting_with_a_file(Vec::new());
    bench.answer("Abort", None);
    assert_eq!(bench.run.status(), Status::Aborted);
}

#[test]
fn a_bare_id_is_not_enough_where_files_are_shown_unless_a_prompt_showed_them() {
    let mut bench = waiting_with_a_file(Vec::new());
    let id = bench.hold().id.clone();
    let bare = || CommandKind::Answer { hold: id.clone(), revision: None, option: "1".into(), feedback: None };
    assert!(matches!(bench.tell(person(), bare(), true), Err(Refusal::RevisionNeeded { current: 1, .. })));
    let at_the_prompt = Actor { channel: Channel::Prompt, ..person() };
    assert!(bench.tell(at_the_prompt, bare(), true).is_ok());
}

#[test]
fn an_answer_in_advance_is_marked_and_never_answers_a_reopened_hold() {
    let preset = || Preset { selector: "plan".into(), option: "Continue".into(), feedback: None };
    let mut bench = waiting_with_a_file(vec![preset(), preset()]);
    let answered = bench.entries.iter().find(|entry| matches!(entry.event, Event::Answered { .. })).unwrap();
    assert_eq!(answered.actor.as_ref().unwrap().channel, Channel::Preset);
    assert_eq!(bench.run.presets.len(), 1, "one was used");
    recheck(&mut bench, file(b"two"));
    assert_eq!(bench.run.status(), Status::Waiting, "the second one was given without seeing this");
}

#[test]
fn answers_in_advance_are_used_in_order() {
    let preset = |option: &str| Preset { selector: "plan".into(), option: option.into(), feedback: None };
    let mut bench = Bench::with_presets(one_checkpoint(), vec![preset("Redo"), preset("2"), preset("Continue")]);
    bench.work();
    assert_eq!(bench.run.iteration_counts["plan"], 3);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn the_first_answer_wins_and_the_second_is_told_so() {
    let mut bench = Bench::new(one_checkpoint());
    bench.work();
    let first = bench.answer_body("Continue", None);
    let other = bench.answer_body("Abort", None);
    assert_eq!(bench.tell(person(), first.clone(), false).unwrap().len(), 1);
    assert!(matches!(bench.tell(person(), first.clone(), false), Err(Refusal::AlreadyAnswered { .. })));
    assert!(matches!(bench.tell(person(), other.clone(), false), Err(Refusal::AnswerConflicts { .. })));
    bench.outcome(CommandKind::TimerDue { timer: crate::id::TimerId::from("none") });
    assert_eq!(bench.started().last().unwrap(), "build/make");
    assert!(matches!(bench.tell(person(), first.clone(), false), Err(Refusal::AlreadyAnswered { .. })));
    let CommandKind::Answer { hold, .. } = first else { panic!() };
    let by_number = CommandKind::Answer { hold, revision: Some(1), option: "1".into(), feedback: None };
    assert!(matches!(bench.tell(person(), by_number, false), Err(Refusal::AlreadyAnswered { .. })));
    let Err(Refusal::AnswerConflicts { recorded, .. }) = bench.tell(person(), other, false) else { panic!() };
    assert_eq!(recorded, "Continue");
}

#[test]
fn an_answer_from_elsewhere_starts_nothing_by_itself() {
    let mut bench = Bench::new(one_checkpoint());
    bench.work();
    let body = bench.answer_body("Continue", None);
    bench.tell(person(), body, false).unwrap();
    assert_eq!(bench.started(), ["plan/draft"]);
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(bench.started().last().unwrap(), "build/make");
}

#[test]
fn only_a_person_outside_any_task_and_at_a_terminal_may_answer() {
    let mut bench = Bench::new(one_checkpoint());
    bench.work();
    let body = bench.answer_body("Continue", None);
    let agent = Actor { credential: Credential::Agent, ..person() };
    assert!(matches!(bench.tell(agent, body.clone(), true), Err(Refusal::NotAPerson { .. })));
    let inside = Actor { inside_task: Some("plan/draft".into()), ..person() };
    assert!(matches!(bench.tell(inside, body.clone(), true), Err(Refusal::InsideTask { .. })));
    let script = Actor { terminal: false, ..person() };
    assert!(matches!(bench.tell(script, body, true), Err(Refusal::NoTerminal { .. })));
    assert_eq!(bench.run.status(), Status::Waiting);
}

#[test]
fn an_option_is_named_by_id_label_or_number_and_nothing_else() {
    let mut bench = Bench::new(one_checkpoint());
    bench.work();
    let hold = bench.hold();
    for named in ["continue", "Continue", "CONTINUE", " 1 "] {
        assert_eq!(hold.option(named).unwrap().label, "Continue", "{named}");
    }
    for named in ["yes", "0", "4", "", "-1"] {
        assert!(hold.option(named).is_none(), "{named}");
    }
    let body = bench.answer_body("lgtm", None);
    assert!(matches!(bench.tell(person(), body, true), Err(Refusal::NoSuchOption { .. })));
}

#[test]
fn an_answer_to_an_unknown_hold_is_refused() {
    let mut bench = Bench::new(one_checkpoint());
    bench.work();
    let body = CommandKind::Answer { hold: hold_id("nowhere0"), revision: None, option: "1".into(), feedback: None };
    assert!(matches!(bench.tell(person(), body, true), Err(Refusal::NoSuchHold { .. })));
}

#[test]
fn an_answer_for_a_phase_is_not_used_for_a_task_of_the_same_name() {
    let mut first = phase("review", vec![Task { on_fail: OnFail::Ask, ..task("review", &[]) }]);
    first.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let preset = Preset { selector: "review".into(), option: "1".into(), feedback: None };
    let mut bench = Bench::with_presets(workflow(vec![first]), vec![preset]);
    bench.fail("review/review");
    assert_eq!(bench.hold().kind, crate::hold::HoldKind::Failed);
    bench.answer("Count as done", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete, "the checkpoint took it");
}

/// What is said to another answer, where the first one was `first`: before it has taken effect, and after.
fn told_about_an_earlier_answer(first: (&str, Option<&str>), later: (&str, Option<&str>)) -> [Refusal; 2] {
    [false, true].map(|driving| {
        let mut bench = Bench::new(one_checkpoint());
        bench.work();
        let (one, other) = (bench.answer_body(first.0, first.1), bench.answer_body(later.0, later.1));
        bench.tell(person(), one, driving).unwrap();
        let refused = bench.tell(Actor { name: "bob".into(), ..person() }, other, driving);
        let answers = bench.entries.iter().filter(|entry| matches!(entry.event, Event::Answered { .. }));
        assert_eq!(answers.count(), 1);
        refused.unwrap_err()
    })
}

#[test]
fn the_same_answer_again_is_known_by_option_and_feedback() {
    for (first, later) in [
        (("Continue", None), ("Continue", None)),
        (("Continue", None), ("continue", None)),
        (("Continue", None), ("1", None)),
        (("Continue", Some("fine")), ("Continue", Some("fine"))),
        (("Continue", Some("fine")), ("Continue", None)),
    ] {
        for refused in told_about_an_earlier_answer(first, later) {
            let Refusal::AlreadyAnswered { by, at } = refused else { panic!("{first:?}, {later:?}: {refused:?}") };
            assert_eq!((by.name.as_str(), at), ("ada", Timestamp::from_millis(3000)), "who was first, and when");
        }
    }
}

#[test]
fn another_answer_or_other_words_conflict_with_the_first() {
    for (first, later, given) in [
        (("Continue", None), ("Abort", None), "Abort"),
        (("Continue", None), ("3", None), "3"),
        (("Continue", Some("fine")), ("Continue", Some("not fine")), "Continue"),
        (("Continue", None), ("Continue", Some("fine")), "Continue"),
        (("Continue", Some("fine")), ("Abort", Some("fine")), "Abort"),
    ] {
        for refused in told_about_an_earlier_answer(first, later) {
            let Refusal::AnswerConflicts { recorded, given: told, by, .. } = refused else {
                panic!("{first:?}, {later:?}: {refused:?}")
            };
            assert_eq!((recorded.as_str(), by.name.as_str()), ("Continue", "ada"));
            assert!(told == given || (given == "3" && told == "Abort"), "{told}");
        }
    }
}

#[test]
fn an_answer_names_the_revision_that_waits() {
    for (revision, refused) in [(Some(0), true), (Some(1), false), (Some(2), true)] {
        let mut bench = waiting_with_a_file(Vec::new());
        let hold = bench.hold().id.clone();
        let body = CommandKind::Answer { hold, revision, option: "1".into(), feedback: None };
        let told = bench.tell(person(), body, false);
        assert_eq!(matches!(told, Err(Refusal::StaleRevision { current: 1, .. })), refused, "{revision:?}: {told:?}");
    }
}

#[test]
fn a_bare_id_is_enough_where_no_files_are_shown() {
    let mut bench = Bench::new(one_checkpoint());
    bench.work();
    let body = CommandKind::Answer { hold: bench.hold().id.clone(), revision: None, option: "1".into(), feedback: None };
    assert!(bench.tell(person(), body, false).is_ok());
}

#[test]
fn an_option_that_needs_words_is_refused_without_them() {
    let needs = Choice { needs_words: true, ..choice("Redo", Action::RepeatPhase(PhaseId::from("plan"))) };
    let mut first = phase("plan", vec![task("draft", &[])]);
    first.checkpoint = checkpoint(vec![choice("Continue", Action::Continue), needs]);
    for (option, feedback, refused) in
        [("Redo", None, true), ("Redo", Some(" \n"), true), ("Redo", Some("shorter"), false), ("Continue", None, false)]
    {
        let mut bench = Bench::new(workflow(vec![first.clone()]));
        bench.work();
        let body = bench.answer_body(option, feedback);
        let told = bench.tell(person(), body, false);
        assert_eq!(matches!(told, Err(Refusal::WordsNeeded { .. })), refused, "{option} {feedback:?}: {told:?}");
    }
}

#[test]
fn an_answer_to_a_hold_of_an_ended_run_says_that_the_run_has_ended() {
    let mut bench = Bench::new(one_checkpoint());
    bench.work();
    let open = bench.answer_body("Continue", None);
    bench.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert!(matches!(bench.tell(person(), open, true), Err(Refusal::RunEnded { .. })));
    let unknown = CommandKind::Answer { hold: hold_id("nowhere0"), revision: None, option: "1".into(), feedback: None };
    assert!(matches!(bench.tell(person(), unknown, true), Err(Refusal::RunEnded { .. })));
}

#[test]
fn of_several_decisions_the_one_about_this_hold_is_told() {
    let mut bench = Bench::new(one_checkpoint());
    bench.work();
    let first = bench.answer_body("Redo", None);
    bench.answer("Redo", None);
    bench.work();
    bench.answer("Continue", None);
    let CommandKind::Answer { hold, .. } = first else { panic!() };
    let other = CommandKind::Answer { hold, revision: Some(1), option: "Continue".into(), feedback: None };
    let Err(Refusal::AnswerConflicts { recorded, .. }) = bench.tell(person(), other, true) else { panic!() };
    assert_eq!(recorded, "Redo");
}

#[test]
fn administrators_decide_and_viewers_and_the_program_itself_do_not() {
    let caller = |credential| Caller::new(Actor { credential, ..person() }, TerminalRule::Required);
    assert_eq!(caller(Credential::Person).may_decide("answer"), Ok(()));
    assert_eq!(caller(Credential::Admin).may_decide("answer"), Ok(()));
    for credential in [Credential::Agent, Credential::Viewer, Credential::System] {
        let refused = caller(credential).may_decide("answer");
        assert!(matches!(&refused, Err(Refusal::NotAPerson { what, .. }) if what == "answer"), "{refused:?}");
        assert!(refused.unwrap_err().is_about_who_asks());
    }
    let without_terminal = Actor { terminal: false, ..person() };
    assert_eq!(Caller::new(without_terminal.clone(), TerminalRule::NotRequired).may_decide("answer"), Ok(()));
    let required = Caller::new(without_terminal, TerminalRule::Required);
    assert!(matches!(required.may_decide("answer"), Err(Refusal::NoTerminal { .. })));
    assert_eq!(required.outside_tasks("drive"), Ok(()));
    let inside = Actor { inside_task: Some("a/b".into()), ..person() };
    assert!(matches!(inside.outside_tasks("drive"), Err(Refusal::InsideTask { task, .. }) if task == "a/b"));
    assert!(!Refusal::ChangeNeedsFork.is_about_who_asks());
}
