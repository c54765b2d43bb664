//! What holds put into the index: timers that are waited for, and stored files that are referred to.

use super::questions::decision;
use super::*;
use crate::hold::{Seen, ShownFile};
use crate::run::Status;
use crate::run::index::IndexRows;
use std::time::Duration;

fn file(path: &str, bytes: &[u8]) -> ShownFile {
    ShownFile::new(path, Seen::File { digest: Digest::of(bytes), bytes: bytes.len() as u64, mode: 0o644 })
}

/// A checkpoint with a deadline and reminders, which shows files; with what opening it put into the index.
fn opened(then: OnDeadline, files: Vec<ShownFile>) -> (Bench, IndexRows) {
    let deadline = Some(Deadline { after: Duration::from_secs(600), then });
    let waits = Waits { deadline, remind: Some(Duration::from_secs(60)), ..Waits::default() };
    let mut one = phase("one", vec![task("make", &[])]);
    one.checkpoint = Some(Checkpoint { waits, ..checkpoint(vec![choice("Go", Action::Continue)]).unwrap() });
    let mut bench = Bench::new(workflow(vec![one, phase("two", vec![task("ship", &[])])]));
    bench.perform(&bench.run.pending()[0].clone());
    seal(&mut bench);
    let shown = Box::new(Showing { files, ..Showing::default() });
    bench.outcome(CommandKind::Shown { phase: PhaseId::from("one"), iteration: 1, shown });
    let rows = seal(&mut bench);
    (bench, rows)
}

fn seal(bench: &mut Bench) -> IndexRows {
    bench.run.seal(Vec::new()).2
}

/// The kinds of the timers that are new, and how many are gone.
fn timers(rows: &IndexRows) -> (Vec<&str>, usize) {
    (rows.timers.iter().map(|row| row.kind.as_str()).collect(), rows.timers_gone.len())
}

#[test]
fn a_question_is_waited_for_until_it_is_answered() {
    let (mut bench, rows) = opened(OnDeadline::Abort, Vec::new());
    assert_eq!(timers(&rows), (vec!["deadline", "remind"], 0));
    let opened_at = bench.now;
    let due: Vec<i64> = rows.timers.iter().map(|row| row.due.as_millis() - opened_at).collect();
    assert_eq!(due, [600_000, 60_000]);
    assert!(rows.timers.iter().all(|row| row.target == bench.hold().id.as_str()));
    let waited: Vec<_> = rows.timers.iter().map(|row| row.timer.clone()).collect();
    bench.answer("Go", None);
    let gone: BTreeSet<_> = seal(&mut bench).timers_gone.into_iter().collect();
    assert_eq!(gone, waited.into_iter().collect());
}

#[test]
fn a_question_that_opens_again_is_waited_for_again() {
    for stored_between in [true, false] {
        let (mut bench, _) = opened(OnDeadline::Abort, vec![file("a.md", b"one")]);
        let hold = bench.hold().id.clone();
        bench.answer("Go", None);
        if stored_between {
            assert_eq!(timers(&seal(&mut bench)), (vec![], 2));
        }
        let files = vec![file("a.md", b"two")];
        bench.outcome(CommandKind::Rechecked { hold, revision: 1, files, differences: vec!["a.md changed".into()] });
        let rows = seal(&mut bench);
        let gone = if stored_between { 0 } else { 2 };
        assert_eq!(timers(&rows), (vec!["deadline", "remind"], gone), "stored between: {stored_between}");
        assert!(rows.refers_to.contains(&Digest::of(b"two")));
    }
}

#[test]
fn a_deadline_that_has_passed_is_renewed_when_its_question_opens_again() {
    let (mut bench, rows) = opened(OnDeadline::Escalate(None), vec![file("a.md", b"one")]);
    let deadline = rows.timers[0].timer.clone();
    bench.now += 600_000;
    bench.outcome(CommandKind::TimerDue { timer: deadline.clone() });
    assert!(bench.hold().is_escalated());
    assert_eq!(seal(&mut bench).timers_gone, [deadline]);
    let hold = bench.hold().id.clone();
    bench.answer("Go", None);
    assert_eq!(timers(&seal(&mut bench)), (vec![], 1), "only the reminders were still waited for");
    let files = vec![file("a.md", b"two")];
    bench.outcome(CommandKind::Rechecked { hold, revision: 1, files, differences: Vec::new() });
    assert_eq!(timers(&seal(&mut bench)), (vec!["deadline", "remind"], 0));
}

#[test]
fn the_store_keeps_the_shown_files_whose_bytes_are_kept() {
    let big = ShownFile { not_kept: Some("it is too large".into()), ..file("big.bin", b"big") };
    let (_, rows) = opened(OnDeadline::Abort, vec![file("a.md", b"one"), big]);
    assert_eq!(rows.refers_to, [Digest::of(b"one")]);
}

#[test]
fn a_run_whose_answer_is_being_checked_is_running_although_another_question_is_open() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![decision("db", &[]), decision("cache", &[])])]));
    let shows =
        |key: &str| Showing { question: None, files: vec![file("a.md", b"one")], prompt: key.to_owned(), ..Showing::default() };
    for address in ["one/db", "one/cache"] {
        let Effect::Task { key, attempt } = bench.effect_of(address) else { unreachable!() };
        let outcome = TaskOutcome::Asks(Box::new(shows(address)));
        bench.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
    }
    assert_eq!(bench.run.status(), Status::Waiting);
    bench.answer_task("one/db", "sqlite", None);
    assert_eq!(bench.run.status(), Status::Running, "the file is looked at again");
    bench.work();
    assert_eq!(bench.run.status(), Status::Waiting);
}

#[test]
fn what_is_said_with_an_answer_reaches_the_tasks_after_it() {
    let given = |words: Option<&str>| {
        let mut bench = Bench::new(workflow(vec![phase("one", vec![decision("db", &[])])]));
        bench.work();
        bench.answer("sqlite", words);
        let outputs = bench.run.outputs[&PhaseId::from("one")].clone();
        let Datum::Inline(text) = &outputs[&TaskId::from("db")] else { panic!("it is short") };
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
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    bench.work();
    bench.answer("issues", Some("too slow"));
    assert_eq!(bench.run.phase_issues, 0);
}

#[test]
fn a_row_shows_what_is_asked_and_what_can_be_answered() {
    let (bench, rows) = opened(OnDeadline::Abort, vec![file("a.md", b"one")]);
    let row = rows.holds.iter().find(|row| row.hold == bench.hold().id).expect("the hold has a row");
    let shown: serde_json::Value = serde_json::from_str(&row.shown).expect("it is JSON");
    assert_eq!((&shown["phase"], &shown["files"][0]["path"]), (&"one".into(), &"a.md".into()), "{shown}");
    assert_eq!(shown["options"].as_array().map(Vec::len), Some(bench.hold().options.len()), "{shown}");
}
