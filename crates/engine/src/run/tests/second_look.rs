//! What was shown is looked at again before an answer takes effect, and what a person says is checked.

use super::*;
use crate::hold::{HoldState, Seen, ShownFile, SymbolicLink};
use crate::run::Status;
use crate::spec::workflow::question::{self, Question};

fn seen(bytes: &[u8], mode: u32) -> Seen {
    Seen::File { digest: Digest::of(bytes), bytes: bytes.len() as u64, mode }
}

fn file(path: &str, bytes: &[u8]) -> ShownFile {
    ShownFile::new(path, seen(bytes, 0o644))
}

/// A run whose checkpoint shows two files, and has been answered.
fn answered() -> (Bench, HoldId) {
    let mut first = phase("plan", vec![task("draft", &[])]);
    first.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let mut bench = Bench::new(workflow(vec![first, phase("build", vec![task("make", &[])])]));
    bench.perform(&bench.run.pending()[0].clone());
    let files = vec![file("a.md", b"one"), file("b.md", b"two")];
    let shown = Box::new(Showing { prompt: "Good?".into(), files, ..Showing::default() });
    bench.outcome(Body::Shown { phase: PhaseId::from("plan"), iteration: 1, shown });
    let hold = bench.hold().id.clone();
    bench.answer("Continue", None);
    (bench, hold)
}

fn rechecked(hold: &HoldId, revision: u32, files: Vec<ShownFile>) -> Body {
    Body::Rechecked { hold: hold.clone(), revision, files, differences: vec!["something".into()] }
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
                by_check: false
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
    bench.outcome(Body::Interrupt { signal: "SIGINT".into() });
    assert!(bench.outcome(rechecked(&hold, 1, Vec::new())).is_empty());
    assert_eq!(bench.run.holds[&hold].state, HoldState::Checking, "whoever resumes looks again");
    let (mut bench, hold) = answered();
    bench.tell(person(), Body::Cancel { reason: None }, true).unwrap();
    assert!(bench.outcome(rechecked(&hold, 1, Vec::new())).is_empty());
}

/// A run that asks a person to do something which is checked, with the answer given.
fn done_by_a_person() -> (Bench, HoldId) {
    let check = question::Check { run: "test -f done".into(), timeout: None, told: None };
    let action = question::Action { needed: "the link".into(), check: Some(check), ..question::Action::default() };
    let mut first = phase("plan", vec![task("draft", &[])]);
    let asked = checkpoint(crate::hold::action_options(None)).unwrap();
    first.checkpoint = Some(Checkpoint { question: Some(Question::Action(action)), ..asked });
    let mut bench = Bench::new(workflow(vec![first, phase("build", vec![task("make", &[])])]));
    bench.work();
    let hold = bench.hold().id.clone();
    bench.answer("done", None);
    (bench, hold)
}

fn checked(hold: &HoldId, revision: u32, failure: Option<Failure>) -> Body {
    Body::Checked { hold: hold.clone(), revision, failure }
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
    bench.outcome(Body::Interrupt { signal: "SIGINT".into() });
    assert!(bench.outcome(checked(&hold, 1, None)).is_empty());
    let (mut bench, hold) = done_by_a_person();
    bench.tell(person(), Body::Cancel { reason: None }, true).unwrap();
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
    let shown = |phase: &str, iteration| Body::Shown {
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
    bench.outcome(Body::Interrupt { signal: "SIGINT".into() });
    assert!(bench.outcome(shown("plan", 1)).is_empty());
    let mut bench = waiting();
    bench.tell(person(), Body::Cancel { reason: None }, true).unwrap();
    assert!(bench.outcome(shown("plan", 1)).is_empty());
}
