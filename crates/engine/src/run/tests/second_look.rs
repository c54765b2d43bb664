//! What was shown is looked at again before an answer takes effect, and what a person says is checked.

use super::*;
use crate::hold::{HoldState, Seen, ShownFile, SymbolicLink};
use crate::run::Status;
use crate::spec::workflow::question::{self, Question};
use std::time::Duration;

fn seen(bytes: &[u8], mode: u32) -> Seen {
    Seen::File { digest: Digest::of(bytes), bytes: bytes.len() as u64, mode }
}

fn file(path: &str, bytes: &[u8]) -> ShownFile {
    ShownFile::new(path, seen(bytes, 0o644))
}

/// A run whose checkpoint shows two files, and has been answered.
fn answered() -> (Bench, HoldId) {
    let (mut bench, hold) = shown(Waits::default());
    bench.answer("Continue", None);
    (bench, hold)
}

/// A run whose checkpoint shows two files, and waits for an answer.
fn shown(waits: Waits) -> (Bench, HoldId) {
    let mut first = phase("plan", vec![task("draft", &[])]);
    first.checkpoint = Some(Checkpoint { waits, ..checkpoint(vec![choice("Continue", Action::Continue)]).unwrap() });
    let mut bench = Bench::new(workflow(vec![first, phase("build", vec![task("make", &[])])]));
    bench.perform(&bench.run.pending()[0].clone());
    let files = vec![file("a.md", b"one"), file("b.md", b"two")];
    let shown = Box::new(Showing { prompt: "Good?".into(), files, ..Showing::default() });
    bench.outcome(CommandKind::Shown { phase: PhaseId::from("plan"), iteration: 1, shown });
    let hold = bench.hold().id.clone();
    (bench, hold)
}

fn rechecked(hold: &HoldId, revision: u32, files: Vec<ShownFile>) -> CommandKind {
    CommandKind::Rechecked { hold: hold.clone(), revision, files, differences: vec!["something".into()] }
}

#[test]
fn approval_is_voided_by_any_difference_in_what_was_shown() {
    let unchanged = || vec![file("a.md", b"one"), file("b.md", b"two")];
    let link = SymbolicLink { path: "b.md".into(), target: "c.md".into() };
    let changes: Vec<(&str, Vec<ShownFile>)> = vec![
        ("content", vec![file("a.md", b"one"), file("b.md", b"three")]),
        ("the first of several", vec![file("a.md", b"other"), file("b.md", b"two")]),
        ("another path with the same content", vec![file("a.md", b"one"), file("c.md", b"two")]),
        ("a file that is no longer shown", vec![file("a.md", b"one")]),
        ("a file that appeared", [unchanged(), vec![file("c.md", b"x")]].concat()),
        ("the mode", vec![file("a.md", b"one"), ShownFile::new("b.md", seen(b"two", 0o755))]),
        ("a link to equal content", vec![file("a.md", b"one"), ShownFile { links: vec![link], ..file("b.md", b"two") }]),
        ("nothing is there", vec![file("a.md", b"one"), ShownFile::new("b.md", Seen::Absent)]),
    ];
    for (what, files) in changes {
        let (mut bench, hold) = answered();
        let events = bench.outcome(rechecked(&hold, 1, files.clone()));
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
            }],
            "{what}"
        );
        assert_eq!(bench.started(), ["plan/draft"], "{what}");
    }
    let (mut bench, hold) = answered();
    bench.outcome(rechecked(&hold, 1, unchanged()));
    assert_eq!(bench.started(), ["plan/draft", "build/make"]);
}

#[test]
fn whether_the_bytes_are_kept_does_not_matter_to_an_approval() {
    let (mut bench, hold) = answered();
    let not_kept = ShownFile { not_kept: Some("contains a secret".into()), ..file("b.md", b"two") };
    bench.outcome(rechecked(&hold, 1, vec![file("a.md", b"one"), not_kept]));
    assert_eq!(bench.started(), ["plan/draft", "build/make"]);
}

#[test]
fn a_second_look_counts_only_for_the_revision_it_was_for() {
    let (mut bench, hold) = answered();
    assert!(bench.outcome(rechecked(&hold, 2, Vec::new())).is_empty(), "of a revision that is not there");
    assert!(bench.outcome(rechecked(&hold_id("nowhere0"), 1, Vec::new())).is_empty(), "of a hold that is not there");
    bench.outcome(rechecked(&hold, 1, Vec::new()));
    assert_eq!(bench.hold().revision, 2);
    assert!(bench.outcome(rechecked(&hold, 2, Vec::new())).is_empty(), "it waits, and nothing was answered");
    assert_eq!(bench.hold().revision, 2);
}

#[test]
fn a_second_look_changes_nothing_once_the_run_stops_or_has_ended() {
    let (mut bench, hold) = answered();
    bench.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    assert!(bench.outcome(rechecked(&hold, 1, Vec::new())).is_empty());
    assert_eq!(bench.run.holds[&hold].state, HoldState::Checking, "whoever resumes looks again");
    let (mut bench, hold) = answered();
    bench.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert!(bench.outcome(rechecked(&hold, 1, Vec::new())).is_empty());
}

/// A run that asks a person to do something which is checked, with the answer given.
fn done_by_a_person() -> (Bench, HoldId) {
    done_by_a_person_in(Waits::default())
}

fn done_by_a_person_in(waits: Waits) -> (Bench, HoldId) {
    let check = question::Check { run: "test -f done".into(), timeout: None, told: None };
    let action = question::Action { needed: "the link".into(), check: Some(check), ..question::Action::default() };
    let mut first = phase("plan", vec![task("draft", &[])]);
    let asked = checkpoint(crate::hold::action_options(None)).unwrap();
    first.checkpoint = Some(Checkpoint { question: Some(Question::Action(action)), waits, ..asked });
    let mut bench = Bench::new(workflow(vec![first, phase("build", vec![task("make", &[])])]));
    bench.work();
    let hold = bench.hold().id.clone();
    bench.answer("done", None);
    (bench, hold)
}

fn checked(hold: &HoldId, revision: u32, failure: Option<Failure>) -> CommandKind {
    CommandKind::Checked { hold: hold.clone(), revision, failure }
}

#[test]
fn what_a_person_says_is_believed_when_its_check_succeeds() {
    let (mut bench, hold) = done_by_a_person();
    assert_eq!(bench.started(), ["plan/draft"]);
    let events = bench.outcome(checked(&hold, 1, None));
    assert_eq!(events[0], Event::CheckPassed { hold: hold.clone() });
    assert_eq!(bench.started(), ["plan/draft", "build/make"]);
}

#[test]
fn a_check_that_fails_opens_the_hold_again_and_says_why() {
    let (mut bench, hold) = done_by_a_person();
    bench.outcome(checked(&hold, 1, Some(broken())));
    let open = bench.hold();
    assert_eq!((open.revision, open.answers.len()), (2, 0));
    assert_eq!(open.notes, ["it is not done yet: `test -f done` failed: it broke", "line"]);
    let (mut bench, hold) = done_by_a_person();
    bench.outcome(checked(&hold, 1, Some(Failure { tail: " \n".into(), ..broken() })));
    assert_eq!(bench.hold().notes, ["it is not done yet: `test -f done` failed: it broke"]);
}

#[test]
fn a_check_counts_only_for_the_answer_it_was_for() {
    let (mut bench, hold) = done_by_a_person();
    assert!(bench.outcome(checked(&hold, 2, None)).is_empty());
    assert!(bench.outcome(checked(&hold_id("nowhere0"), 1, None)).is_empty());
    bench.outcome(checked(&hold, 1, Some(broken())));
    assert!(bench.outcome(checked(&hold, 2, None)).is_empty(), "nothing was answered to this revision");
    let (mut bench, hold) = answered();
    assert!(bench.outcome(checked(&hold, 1, None)).is_empty(), "this hold has no check");
    let (mut bench, hold) = done_by_a_person();
    bench.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    assert!(bench.outcome(checked(&hold, 1, None)).is_empty());
    let (mut bench, hold) = done_by_a_person();
    bench.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert!(bench.outcome(checked(&hold, 1, None)).is_empty());
    assert_eq!(bench.run.status(), Status::Cancelled);
}

#[test]
fn a_checkpoint_opens_once_and_only_for_the_execution_it_was_made_ready_for() {
    let mut first = phase("plan", vec![task("draft", &[])]);
    first.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let waiting = || {
        let mut bench = Bench::new(workflow(vec![first.clone()]));
        bench.perform(&bench.run.pending()[0].clone());
        bench
    };
    let shown = |phase: &str, iteration| CommandKind::Shown {
        phase: PhaseId::from(phase),
        iteration,
        shown: Box::new(Showing { prompt: "Good?".into(), ..Showing::default() }),
    };
    let mut bench = waiting();
    assert!(bench.outcome(shown("plan", 2)).is_empty());
    assert!(bench.outcome(shown("build", 1)).is_empty());
    assert_eq!(bench.outcome(shown("plan", 1)).len(), 1);
    assert!(bench.outcome(shown("plan", 1)).is_empty(), "it is open already");
    let mut bench = waiting();
    bench.outcome(CommandKind::Interrupt { signal: "SIGINT".into() });
    assert!(bench.outcome(shown("plan", 1)).is_empty());
    let mut bench = waiting();
    bench.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert!(bench.outcome(shown("plan", 1)).is_empty());
}

const HOUR: Duration = Duration::from_secs(3600);
const MINUTES_50: i64 = 3_000_000;

fn waits_an_hour(then: OnDeadline) -> Waits {
    let deadline = Some(Deadline { after: HOUR, then });
    Waits { deadline, remind: Some(Duration::from_secs(600)), ..Waits::default() }
}

#[test]
fn a_reopened_hold_gets_its_deadline_and_reminders_anew() {
    let (mut bench, hold) = shown(waits_an_hour(OnDeadline::Abort));
    let old = bench.hold().terms.clone();
    bench.now += MINUTES_50;
    bench.answer("Continue", None);
    bench.outcome(rechecked(&hold, 1, Vec::new()));
    let reopened_at = bench.hold().since;
    let (due, remind) = (bench.hold().terms.deadline.clone().unwrap(), bench.hold().terms.remind.clone().unwrap());
    assert_eq!((due.at, due.over), (reopened_at.plus(HOUR), false));
    assert_eq!((remind.at, remind.sent), (reopened_at.plus(Duration::from_secs(600)), 0));

    let (old, old_remind) = (old.deadline.unwrap(), old.remind.unwrap());
    let (_, _, rows) = bench.run.seal(Vec::new());
    let timers: Vec<_> = rows.timers.iter().map(|row| (&row.timer, row.due, row.kind.as_str())).collect();
    assert_eq!(timers, [(&due.timer, due.at, "deadline"), (&remind.timer, remind.at, "remind")]);
    assert!(rows.timers_gone.contains(&old.timer) && rows.timers_gone.contains(&old_remind.timer));

    bench.now = old.at.as_millis();
    assert_eq!(bench.outcome(CommandKind::TimerDue { timer: old.timer }), [], "the old deadline is gone");
    assert_eq!(bench.run.status(), Status::Waiting);
    bench.now = due.at.as_millis();
    bench.outcome(CommandKind::TimerDue { timer: due.timer });
    assert_eq!(bench.run.status(), Status::Aborted);
}

#[test]
fn a_deadline_answers_again_when_its_own_answer_was_voided_by_a_change() {
    let (mut bench, hold) = shown(waits_an_hour(OnDeadline::Answer(OptionId::from("continue"))));
    let changed = || vec![file("a.md", b"other")];
    bench.now += HOUR.as_millis() as i64;
    bench.outcome(CommandKind::Look);
    bench.outcome(rechecked(&hold, 1, changed()));
    assert_eq!(bench.hold().revision, 2);
    bench.now += MINUTES_50;
    bench.outcome(CommandKind::Look);
    assert_eq!(bench.hold().revision, 2, "it is not due yet");
    bench.now += HOUR.as_millis() as i64;
    bench.outcome(CommandKind::Look);
    bench.outcome(rechecked(&hold, 2, changed()));
    assert_eq!(bench.started(), ["plan/draft", "build/make"]);
}

#[test]
fn a_failed_check_renews_the_deadline() {
    let (mut bench, hold) = done_by_a_person_in(waits_an_hour(OnDeadline::Abort));
    bench.now += MINUTES_50;
    bench.outcome(checked(&hold, 1, Some(broken())));
    assert_eq!(bench.hold().terms.deadline.as_ref().unwrap().at, bench.hold().since.plus(HOUR));
}

#[test]
fn a_reopening_from_before_deadlines_were_renewed_still_loads() {
    #[derive(serde::Serialize)]
    enum Before {
        #[serde(rename = "hold_reopened")]
        HoldReopened { hold: HoldId, revision: u32, files: Vec<ShownFile>, differences: Vec<String>, by_check: bool },
    }
    let (mut bench, hold) = shown(waits_an_hour(OnDeadline::Abort));
    let due = bench.hold().terms.deadline.clone();
    bench.answer("Continue", None);
    let before =
        Before::HoldReopened { hold, revision: 2, files: Vec::new(), differences: vec!["something".into()], by_check: false };
    let event: Event = rmp_serde::from_slice(&rmp_serde::to_vec(&before).unwrap()).unwrap();
    bench.run.apply(&Entry { at: Timestamp::from_millis(bench.now), actor: None, cause: None, event }).unwrap();
    assert_eq!(bench.hold().terms.deadline, due, "its deadline is what that history says");
}
