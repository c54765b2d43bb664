//! Shown files are digested again before an answer takes effect, and answers with a check are verified.

use super::*;
use crate::hold::{HoldState, PresentedFile, Seen, SymbolicLink};
use crate::run::Status;
use crate::spec::workflow::question::{self, Question};
use std::time::Duration;

fn seen(bytes: &[u8], mode: u32) -> Seen {
    Seen::File { digest: Digest::of(bytes), bytes: bytes.len() as u64, mode }
}

fn file(path: &str, bytes: &[u8]) -> PresentedFile {
    PresentedFile::new(path, seen(bytes, 0o644))
}

/// A run whose checkpoint shows two files, and has been answered.
fn answered() -> (Harness, HoldId) {
    let (mut harness, hold) = shown(WaitSettings::default());
    harness.answer("Continue", None);
    (harness, hold)
}

/// A run whose checkpoint shows two files, and waits for an answer.
fn shown(waits: WaitSettings) -> (Harness, HoldId) {
    let mut first = phase("plan", vec![task("draft", &[])]);
    first.checkpoint = Some(Checkpoint { waits, ..checkpoint(vec![choice("Continue", Action::Continue)]).unwrap() });
    let mut harness = Harness::new(workflow(vec![first, phase("build", vec![task("make", &[])])]));
    harness.perform(&harness.run.pending()[0].clone());
    let files = vec![file("a.md", b"one"), file("b.md", b"two")];
    let shown = Box::new(Presentation { prompt: "Good?".into(), files, ..Presentation::default() });
    harness.outcome(CommandKind::Shown { phase: PhaseId::from("plan"), iteration: 1, shown });
    let hold = harness.hold().id.clone();
    (harness, hold)
}

fn rechecked(hold: &HoldId, revision: u32, files: Vec<PresentedFile>) -> CommandKind {
    CommandKind::Rechecked { hold: hold.clone(), revision, files, diff: None, differences: vec!["something".into()] }
}

#[test]
fn approval_is_voided_by_any_change_in_the_shown_files() {
    let unchanged = || vec![file("a.md", b"one"), file("b.md", b"two")];
    let link = SymbolicLink { path: "b.md".into(), target: "c.md".into() };
    let changes: Vec<(&str, Vec<PresentedFile>)> = vec![
        ("content", vec![file("a.md", b"one"), file("b.md", b"three")]),
        ("the first of several", vec![file("a.md", b"other"), file("b.md", b"two")]),
        ("another path with the same content", vec![file("a.md", b"one"), file("c.md", b"two")]),
        ("a file that is no longer shown", vec![file("a.md", b"one")]),
        ("a file that appeared", [unchanged(), vec![file("c.md", b"x")]].concat()),
        ("the mode", vec![file("a.md", b"one"), PresentedFile::new("b.md", seen(b"two", 0o755))]),
        ("a link to equal content", vec![file("a.md", b"one"), PresentedFile { links: vec![link], ..file("b.md", b"two") }]),
        ("nothing is there", vec![file("a.md", b"one"), PresentedFile::new("b.md", Seen::Absent)]),
    ];
    for (what, files) in changes {
        let (mut harness, hold) = answered();
        let events = harness.outcome(rechecked(&hold, 1, files.clone()));
        assert_eq!(
            events,
            [Event::HoldReopened {
                hold: hold.clone(),
                revision: 2,
                files,
                differences: vec!["something".into()],
                by_check: false,
                deadline: None,
                remind: None,
                diff: None,
                restored: false,
            }],
            "{what}"
        );
        assert_eq!(harness.started(), ["plan/draft"], "{what}");
    }
    let (mut harness, hold) = answered();
    harness.outcome(rechecked(&hold, 1, unchanged()));
    assert_eq!(harness.started(), ["plan/draft", "build/make"]);
}

#[test]
fn approval_does_not_depend_on_whether_bytes_are_stored() {
    let (mut harness, hold) = answered();
    let not_kept = PresentedFile { not_kept: Some("contains a secret".into()), ..file("b.md", b"two") };
    harness.outcome(rechecked(&hold, 1, vec![file("a.md", b"one"), not_kept]));
    assert_eq!(harness.started(), ["plan/draft", "build/make"]);
}

#[test]
fn a_recheck_counts_only_for_its_revision() {
    let (mut harness, hold) = answered();
    assert!(harness.outcome(rechecked(&hold, 2, Vec::new())).is_empty(), "there is no such revision");
    assert!(harness.outcome(rechecked(&hold_id("nowhere0"), 1, Vec::new())).is_empty(), "there is no such hold");
    harness.outcome(rechecked(&hold, 1, Vec::new()));
    assert_eq!(harness.hold().revision, 2);
    assert!(harness.outcome(rechecked(&hold, 2, Vec::new())).is_empty(), "it waits, and nothing was answered");
    assert_eq!(harness.hold().revision, 2);
}

#[test]
fn a_recheck_changes_nothing_once_the_run_stops_or_has_ended() {
    let (mut harness, hold) = answered();
    harness.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    assert!(harness.outcome(rechecked(&hold, 1, Vec::new())).is_empty());
    assert_eq!(harness.run.holds[&hold].state, HoldState::Checking, "the next driver checks again");
    let (mut harness, hold) = answered();
    harness.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert!(harness.outcome(rechecked(&hold, 1, Vec::new())).is_empty());
}

/// A run whose action with a check has been answered.
fn done_by_a_person() -> (Harness, HoldId) {
    done_by_a_person_in(WaitSettings::default())
}

fn done_by_a_person_in(waits: WaitSettings) -> (Harness, HoldId) {
    let check = question::Check { run: "test -f done".into(), timeout: None, description: None };
    let action = question::Action { needed: "the link".into(), check: Some(check), ..question::Action::default() };
    let mut first = phase("plan", vec![task("draft", &[])]);
    let asked = checkpoint(crate::hold::action_options(None)).unwrap();
    first.checkpoint = Some(Checkpoint { question: Some(Question::Action(action)), waits, ..asked });
    let mut harness = Harness::new(workflow(vec![first, phase("build", vec![task("make", &[])])]));
    harness.work();
    let hold = harness.hold().id.clone();
    harness.answer("done", None);
    (harness, hold)
}

fn checked(hold: &HoldId, revision: u32, failure: Option<Failure>) -> CommandKind {
    CommandKind::Checked { hold: hold.clone(), revision, failure }
}

#[test]
fn an_action_is_accepted_when_its_check_succeeds() {
    let (mut harness, hold) = done_by_a_person();
    assert_eq!(harness.started(), ["plan/draft"]);
    let events = harness.outcome(checked(&hold, 1, None));
    assert_eq!(events[0], Event::CheckPassed { hold: hold.clone() });
    assert_eq!(harness.started(), ["plan/draft", "build/make"]);
}

#[test]
fn a_failed_check_reopens_the_hold_with_the_reason() {
    let (mut harness, hold) = done_by_a_person();
    harness.outcome(checked(&hold, 1, Some(broken())));
    let open = harness.hold();
    assert_eq!((open.revision, open.answers.len()), (2, 0));
    assert_eq!(open.notes, ["the check failed: `test -f done`: it broke", "line"]);
    let (mut harness, hold) = done_by_a_person();
    harness.outcome(checked(&hold, 1, Some(Failure { tail: " \n".into(), ..broken() })));
    assert_eq!(harness.hold().notes, ["the check failed: `test -f done`: it broke"]);
}

#[test]
fn a_check_counts_only_for_its_answer() {
    let (mut harness, hold) = done_by_a_person();
    assert!(harness.outcome(checked(&hold, 2, None)).is_empty());
    assert!(harness.outcome(checked(&hold_id("nowhere0"), 1, None)).is_empty());
    harness.outcome(checked(&hold, 1, Some(broken())));
    assert!(harness.outcome(checked(&hold, 2, None)).is_empty(), "nothing was answered to this revision");
    let (mut harness, hold) = answered();
    assert!(harness.outcome(checked(&hold, 1, None)).is_empty(), "this hold has no check");
    let (mut harness, hold) = done_by_a_person();
    harness.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    assert!(harness.outcome(checked(&hold, 1, None)).is_empty());
    let (mut harness, hold) = done_by_a_person();
    harness.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert!(harness.outcome(checked(&hold, 1, None)).is_empty());
    assert_eq!(harness.run.status(), Status::Cancelled);
}

#[test]
fn a_checkpoint_opens_once_and_only_for_its_execution() {
    let mut first = phase("plan", vec![task("draft", &[])]);
    first.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let waiting = || {
        let mut harness = Harness::new(workflow(vec![first.clone()]));
        harness.perform(&harness.run.pending()[0].clone());
        harness
    };
    let shown = |phase: &str, iteration| CommandKind::Shown {
        phase: PhaseId::from(phase),
        iteration,
        shown: Box::new(Presentation { prompt: "Good?".into(), ..Presentation::default() }),
    };
    let mut harness = waiting();
    assert!(harness.outcome(shown("plan", 2)).is_empty());
    assert!(harness.outcome(shown("build", 1)).is_empty());
    assert_eq!(harness.outcome(shown("plan", 1)).len(), 1);
    assert!(harness.outcome(shown("plan", 1)).is_empty(), "it is already open");
    let mut harness = waiting();
    harness.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    assert!(harness.outcome(shown("plan", 1)).is_empty());
    let mut harness = waiting();
    harness.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert!(harness.outcome(shown("plan", 1)).is_empty());
}

const HOUR: Duration = Duration::from_secs(3600);
const MINUTES_50: i64 = 3_000_000;

fn waits_an_hour(then: OnDeadline) -> WaitSettings {
    let deadline = Some(Deadline { after: HOUR, then });
    WaitSettings { deadline, remind: Some(Duration::from_secs(600)), ..WaitSettings::default() }
}

#[test]
fn a_reopened_hold_gets_a_new_deadline_and_reminders() {
    let (mut harness, hold) = shown(waits_an_hour(OnDeadline::Abort));
    let old = harness.hold().terms.clone();
    harness.now += MINUTES_50;
    harness.answer("Continue", None);
    harness.outcome(rechecked(&hold, 1, Vec::new()));
    let reopened_at = harness.hold().since;
    let (due, remind) = (harness.hold().terms.deadline.clone().unwrap(), harness.hold().terms.remind.clone().unwrap());
    assert_eq!((due.at, due.over), (reopened_at.plus(HOUR), false));
    assert_eq!((remind.at, remind.sent), (reopened_at.plus(Duration::from_secs(600)), 0));

    let (old, old_remind) = (old.deadline.unwrap(), old.remind.unwrap());
    let (_, _, rows) = harness.run.seal(Vec::new());
    let timers: Vec<_> = rows.timers.iter().map(|row| (&row.timer, row.due, row.kind.as_str())).collect();
    assert_eq!(timers, [(&due.timer, due.at, "deadline"), (&remind.timer, remind.at, "remind")]);
    assert!(rows.timers_removed.contains(&old.timer) && rows.timers_removed.contains(&old_remind.timer));

    harness.now = old.at.as_millis();
    assert_eq!(harness.outcome(CommandKind::TimerDue { timer: old.timer }), [], "the old deadline is gone");
    assert_eq!(harness.run.status(), Status::Waiting);
    harness.now = due.at.as_millis();
    harness.outcome(CommandKind::TimerDue { timer: due.timer });
    assert_eq!(harness.run.status(), Status::Aborted);
}

#[test]
fn a_deadline_answers_again_when_its_own_answer_was_voided_by_a_change() {
    let (mut harness, hold) = shown(waits_an_hour(OnDeadline::Answer(OptionId::from("continue"))));
    let changed = || vec![file("a.md", b"other")];
    harness.now += HOUR.as_millis() as i64;
    harness.outcome(CommandKind::Advance);
    harness.outcome(rechecked(&hold, 1, changed()));
    assert_eq!(harness.hold().revision, 2);
    harness.now += MINUTES_50;
    harness.outcome(CommandKind::Advance);
    assert_eq!(harness.hold().revision, 2, "it is not due yet");
    harness.now += HOUR.as_millis() as i64;
    harness.outcome(CommandKind::Advance);
    harness.outcome(rechecked(&hold, 2, changed()));
    assert_eq!(harness.started(), ["plan/draft", "build/make"]);
}

#[test]
fn a_failed_check_renews_the_deadline() {
    let (mut harness, hold) = done_by_a_person_in(waits_an_hour(OnDeadline::Abort));
    harness.now += MINUTES_50;
    harness.outcome(checked(&hold, 1, Some(broken())));
    assert_eq!(harness.hold().terms.deadline.as_ref().unwrap().at, harness.hold().since.plus(HOUR));
}

#[test]
fn a_reopening_stored_before_deadlines_were_renewed_still_loads() {
    #[derive(serde::Serialize)]
    enum Before {
        #[serde(rename = "hold_reopened")]
        HoldReopened { hold: HoldId, revision: u32, files: Vec<PresentedFile>, differences: Vec<String>, by_check: bool },
    }
    let (mut harness, hold) = shown(waits_an_hour(OnDeadline::Abort));
    let due = harness.hold().terms.deadline.clone();
    harness.answer("Continue", None);
    let before =
        Before::HoldReopened { hold, revision: 2, files: Vec::new(), differences: vec!["something".into()], by_check: false };
    let event: Event = rmp_serde::from_slice(&rmp_serde::to_vec(&before).unwrap()).unwrap();
    harness.run.apply(&Entry { at: Timestamp::from_millis(harness.now), actor: None, cause: None, event }).unwrap();
    assert_eq!(harness.hold().terms.deadline, due, "its deadline comes from that history");
}
