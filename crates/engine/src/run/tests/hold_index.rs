//! Index rows of holds: their timers, and references to stored files.

use super::questions::decision;
use super::*;
use crate::hold::{PresentedFile, Seen};
use crate::run::Status;
use crate::run::index::IndexRows;
use std::time::Duration;

fn file(path: &str, bytes: &[u8]) -> PresentedFile {
    PresentedFile::new(path, Seen::File { digest: Digest::of(bytes), bytes: bytes.len() as u64, mode: 0o644 })
}

/// A checkpoint with a deadline and reminders that shows files, and the index rows of its opening.
fn opened(then: OnDeadline, files: Vec<PresentedFile>) -> (Harness, IndexRows) {
    let deadline = Some(Deadline { after: Duration::from_secs(600), then });
    let waits = WaitSettings { deadline, remind: Some(Duration::from_secs(60)), ..WaitSettings::default() };
    let mut one = phase("one", vec![task("make", &[])]);
    one.checkpoint = Some(Checkpoint { waits, ..checkpoint(vec![choice("Go", Action::Continue)]).unwrap() });
    let mut harness = Harness::new(workflow(vec![one, phase("two", vec![task("ship", &[])])]));
    harness.perform(&harness.run.pending()[0].clone());
    seal(&mut harness);
    let shown = Box::new(Presentation { files, ..Presentation::default() });
    harness.outcome(CommandKind::Shown { phase: PhaseId::from("one"), iteration: 1, shown });
    let rows = seal(&mut harness);
    (harness, rows)
}

fn seal(harness: &mut Harness) -> IndexRows {
    harness.run.seal(Vec::new()).2
}

/// The kinds of the new timers, and the number of removed ones.
fn timers(rows: &IndexRows) -> (Vec<&str>, usize) {
    (rows.timers.iter().map(|row| row.kind.as_str()).collect(), rows.timers_removed.len())
}

#[test]
fn an_open_question_keeps_its_timers_until_answered() {
    let (mut harness, rows) = opened(OnDeadline::Abort, Vec::new());
    assert_eq!(timers(&rows), (vec!["deadline", "remind"], 0));
    let opened_at = harness.now;
    let due: Vec<i64> = rows.timers.iter().map(|row| row.due.as_millis() - opened_at).collect();
    assert_eq!(due, [600_000, 60_000]);
    assert!(rows.timers.iter().all(|row| row.target == harness.hold().id.as_str()));
    let waited: Vec<_> = rows.timers.iter().map(|row| row.timer.clone()).collect();
    harness.answer("Go", None);
    let gone: BTreeSet<_> = seal(&mut harness).timers_removed.into_iter().collect();
    assert_eq!(gone, waited.into_iter().collect());
}

#[test]
fn a_reopened_question_gets_its_timers_back() {
    for stored_between in [true, false] {
        let (mut harness, _) = opened(OnDeadline::Abort, vec![file("a.md", b"one")]);
        let hold = harness.hold().id.clone();
        harness.answer("Go", None);
        if stored_between {
            assert_eq!(timers(&seal(&mut harness)), (vec![], 2));
        }
        let files = vec![file("a.md", b"two")];
        harness.outcome(CommandKind::Rechecked {
            hold,
            revision: 1,
            files,
            diff: None,
            differences: vec!["a.md changed".into()],
        });
        let rows = seal(&mut harness);
        let gone = if stored_between { 0 } else { 2 };
        assert_eq!(timers(&rows), (vec!["deadline", "remind"], gone), "stored between: {stored_between}");
        assert!(rows.referenced_values.contains(&Digest::of(b"two")));
    }
}

#[test]
fn an_expired_deadline_is_renewed_when_its_question_reopens() {
    let (mut harness, rows) = opened(OnDeadline::Escalate(None), vec![file("a.md", b"one")]);
    let deadline = rows.timers[0].timer.clone();
    harness.now += 600_000;
    harness.outcome(CommandKind::TimerDue { timer: deadline.clone() });
    assert!(harness.hold().is_escalated());
    assert_eq!(seal(&mut harness).timers_removed, [deadline]);
    let hold = harness.hold().id.clone();
    harness.answer("Go", None);
    assert_eq!(timers(&seal(&mut harness)), (vec![], 1), "only the reminder timer was left");
    let files = vec![file("a.md", b"two")];
    harness.outcome(CommandKind::Rechecked { hold, revision: 1, files, diff: None, differences: Vec::new() });
    assert_eq!(timers(&seal(&mut harness)), (vec!["deadline", "remind"], 0));
}

#[test]
fn shown_files_with_stored_bytes_are_referenced_in_the_index() {
    let big = PresentedFile { not_kept: Some("it is too large".into()), ..file("big.bin", b"big") };
    let (_, rows) = opened(OnDeadline::Abort, vec![file("a.md", b"one"), big]);
    assert_eq!(rows.referenced_values, [Digest::of(b"one")]);
}

#[test]
fn a_run_is_running_while_an_answer_is_checked_even_if_another_question_is_open() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![decision("db", &[]), decision("cache", &[])])]));
    let shows = |key: &str| Presentation {
        question: None,
        files: vec![file("a.md", b"one")],
        prompt: key.to_owned(),
        ..Presentation::default()
    };
    for address in ["one/db", "one/cache"] {
        let Effect::Task { key, attempt } = harness.effect_of(address) else { unreachable!() };
        let outcome = TaskOutcome::Asks(Box::new(shows(address)));
        harness.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
    }
    assert_eq!(harness.run.status(), Status::Waiting);
    harness.answer_task("one/db", "sqlite", None);
    assert_eq!(harness.run.status(), Status::Running, "the file is checked again");
    harness.work();
    assert_eq!(harness.run.status(), Status::Waiting);
}

#[test]
fn feedback_of_an_answer_reaches_later_tasks() {
    let given = |words: Option<&str>| {
        let mut harness = Harness::new(workflow(vec![phase("one", vec![decision("db", &[])])]));
        harness.work();
        harness.answer("sqlite", words);
        let outputs = harness.run.outputs[&PhaseId::from("one")].clone();
        let StoredValue::Inline(text) = &outputs[&TaskId::from("db")] else { panic!("it is short") };
        serde_json::from_str::<serde_json::Value>(text).unwrap()
    };
    let expected = serde_json::json!({"option": "sqlite", "label": "SQLITE", "feedback": "small"});
    assert_eq!(given(Some("small")), expected);
    for nothing in [None, Some("")] {
        assert_eq!(given(nothing), serde_json::json!({"option": "sqlite", "label": "SQLITE"}), "{nothing:?}");
    }
}

#[test]
fn issues_that_a_task_reports_do_not_count_against_the_question_of_its_phase() {
    let tasks = vec![task("make", &[]), super::questions::verify("look", "make", 3)];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    harness.work();
    harness.answer("issues", Some("too slow"));
    assert_eq!(harness.run.phase_issues, 0);
}

#[test]
fn a_hold_row_shows_the_question_and_its_options() {
    let (harness, rows) = opened(OnDeadline::Abort, vec![file("a.md", b"one")]);
    let row = rows.holds.iter().find(|row| row.hold == harness.hold().id).expect("the hold has a row");
    let shown: serde_json::Value = serde_json::from_str(&row.shown).expect("it is JSON");
    assert_eq!((&shown["phase"], &shown["files"][0]["path"]), (&"one".into(), &"a.md".into()), "{shown}");
    assert_eq!(shown["options"].as_array().map(Vec::len), Some(harness.hold().options.len()), "{shown}");
}
