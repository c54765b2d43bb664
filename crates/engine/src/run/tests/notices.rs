//! Which events bring notices, what these say, and that nothing is written where nothing is subscribed to.

use super::questions::decision;
use super::*;
use crate::run::index::{NamedVariants, OutboxRow};
use crate::run::outbox::{Notice, NoticeChannel, NoticeKind, Subscriptions};
use std::time::Duration;

fn all() -> Subscriptions {
    only(NoticeKind::ALL)
}

fn only(kinds: &[NoticeKind]) -> Subscriptions {
    let mut subscriptions = Subscriptions::NONE;
    subscriptions.subscribe(NoticeChannel::Command, kinds.iter().copied());
    subscriptions
}

/// The rows of what happened since the last commit.
fn seal(harness: &mut Harness, subscriptions: &Subscriptions) -> Vec<OutboxRow> {
    let entries = std::mem::take(&mut harness.entries);
    harness.run.seal_notifying(entries, subscriptions).2.outbox
}

fn read(row: &OutboxRow) -> Notice {
    serde_json::from_str(&row.payload).expect("a notice can be read back")
}

fn kinds(rows: &[OutboxRow]) -> Vec<NoticeKind> {
    rows.iter().map(|row| read(row).kind.known().expect("it is known")).collect()
}

fn waiting(then: OnDeadline) -> Harness {
    let deadline = Some(Deadline { after: Duration::from_secs(600), then });
    let waits = WaitSettings { deadline, remind: Some(Duration::from_secs(60)), ..WaitSettings::default() };
    let mut one = phase("one", vec![task("make", &[])]);
    one.checkpoint =
        Some(Checkpoint { waits, ..checkpoint(vec![choice("Go", Action::Continue), choice("Stop", Action::Abort)]).unwrap() });
    let mut harness = Harness::new(workflow(vec![one]));
    harness.perform(&harness.run.pending()[0].clone());
    harness.perform(&harness.run.pending()[0].clone());
    harness
}

/// Fires the next timer of the open hold.
fn fire(harness: &mut Harness) {
    let hold = harness.hold();
    let remind = hold.terms.remind.as_ref().map(|remind| (remind.at, remind.timer.clone()));
    let deadline = hold.terms.deadline.as_ref().filter(|due| !due.over).map(|due| (due.at, due.timer.clone()));
    let (due, timer) = remind.into_iter().chain(deadline).min().expect("the hold waits for something");
    harness.now = harness.now.max(due.as_millis());
    harness.outcome(CommandKind::TimerDue { timer });
}

#[test]
fn a_hold_that_opens_brings_one_notice_with_everything_that_people_need() {
    let mut harness = waiting(OnDeadline::Escalate(None));
    let seq = harness.entries.iter().position(|entry| matches!(entry.event, Event::HoldOpened(_))).unwrap() as u64 + 1;
    let rows = seal(&mut harness, &all());
    assert_eq!(kinds(&rows), [NoticeKind::HoldOpened]);
    assert_eq!(rows[0].notice.to_string(), format!("run00000-{seq}"));
    let notice = read(&rows[0]);
    assert_eq!((notice.workflow.as_str(), notice.feature.as_deref()), ("test", Some("login")));
    assert!(notice.status.is(crate::run::Status::Waiting));
    let hold = notice.hold.expect("it is about a hold");
    assert_eq!((&hold.hold, hold.revision), (&harness.hold().id, 1));
    assert!(hold.shown.contains("\"label\":\"Go\"") && hold.shown.contains("\"deadline\""), "{}", hold.shown);
    assert!(seal(&mut harness, &all()).is_empty(), "nothing has happened since");
}

#[test]
fn nothing_is_written_for_what_no_channel_subscribes_to() {
    for subscriptions in [Subscriptions::NONE, only(&[NoticeKind::RunEnded])] {
        let mut harness = waiting(OnDeadline::Abort);
        assert!(seal(&mut harness, &subscriptions).is_empty());
    }
}

#[test]
fn reminders_escalations_and_answers_bring_notices() {
    let mut harness = waiting(OnDeadline::Escalate(Some("ops".into())));
    seal(&mut harness, &all());
    fire(&mut harness);
    assert_eq!(kinds(&seal(&mut harness, &all())), [NoticeKind::HoldReminder]);
    harness.now += 600_000;
    fire(&mut harness);
    assert!(kinds(&seal(&mut harness, &all())).contains(&NoticeKind::HoldEscalated));
    harness.answer("Go", Some("well done"));
    let rows = seal(&mut harness, &all());
    assert_eq!(kinds(&rows), [NoticeKind::HoldAnswered, NoticeKind::RunEnded]);
    let answer = read(&rows[0]).answer.expect("it was answered");
    assert_eq!((answer.label.as_str(), answer.feedback.as_deref(), answer.actor.name.as_str()), ("Go", Some("well done"), "ada"));
    assert!(read(&rows[0]).hold.is_some(), "also where the answer closed the hold in the same commit");
    assert!(read(&rows[1]).status.is(crate::run::Status::Complete));
}

#[test]
fn every_end_of_a_run_brings_one_notice() {
    let ended = |act: &dyn Fn(&mut Harness)| {
        let mut harness = waiting(OnDeadline::Abort);
        seal(&mut harness, &all());
        act(&mut harness);
        let rows = seal(&mut harness, &only(&[NoticeKind::RunEnded]));
        assert_eq!(rows.len(), 1);
        let notice = read(&rows[0]);
        (notice.status.as_str().to_owned(), notice.reason)
    };
    assert_eq!(ended(&|harness| drop(harness.answer("Go", None))), ("complete".into(), None));
    assert_eq!(ended(&|harness| drop(harness.answer("Stop", None))), ("aborted".into(), None));
    let cancel = |harness: &mut Harness| drop(harness.tell(person(), CommandKind::Cancel { reason: Some("late".into()) }, true));
    assert_eq!(ended(&cancel), ("cancelled".into(), Some("late".into())));
    let mut failing = Harness::new(workflow(vec![phase("one", vec![task("make", &[])])]));
    seal(&mut failing, &all());
    failing.fail("one/make");
    let notice = read(&seal(&mut failing, &all())[0]);
    assert!(notice.status.is(crate::run::Status::Failed) && notice.reason.is_some(), "{notice:?}");
}

#[test]
fn a_hold_that_is_answered_in_the_commit_that_opens_it_asks_nobody() {
    let preset = PresetAnswer { selector: "one".into(), option: "Go".into(), feedback: None };
    let mut one = phase("one", vec![task("make", &[])]);
    one.checkpoint = checkpoint(vec![choice("Go", Action::Continue)]);
    let mut harness = Harness::with_presets(workflow(vec![one]), vec![preset]);
    harness.work();
    let kinds = kinds(&seal(&mut harness, &all()));
    assert_eq!(kinds, [NoticeKind::HoldAnswered, NoticeKind::RunEnded]);
}

#[test]
fn a_question_that_opens_again_says_what_changed() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![decision("db", &[])])]));
    let file = |bytes: &[u8]| {
        let seen = crate::hold::Seen::File { digest: Digest::of(bytes), bytes: bytes.len() as u64, mode: 0o644 };
        crate::hold::PresentedFile::new("a.md", seen)
    };
    let Effect::Task { key, attempt } = harness.effect_of("one/db") else { unreachable!() };
    let shown = Presentation { files: vec![file(b"one")], prompt: "Which?".into(), ..Presentation::default() };
    harness.outcome(CommandKind::TaskEnded {
        key,
        attempt,
        outcome: TaskOutcome::Asks(Box::new(shown)),
        agent: None,
        commit: None,
    });
    let hold = harness.hold().id.clone();
    harness.answer("sqlite", None);
    seal(&mut harness, &all());
    let differences = vec!["a.md changed".to_owned()];
    harness.outcome(CommandKind::Rechecked {
        hold,
        revision: 1,
        files: vec![file(b"two")],
        diff: None,
        differences: differences.clone(),
    });
    let rows = seal(&mut harness, &all());
    assert_eq!(kinds(&rows), [NoticeKind::HoldReopened]);
    let notice = read(&rows[0]);
    assert_eq!((notice.differences, notice.hold.map(|hold| hold.revision)), (differences, Some(2)));
}
