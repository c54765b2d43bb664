//! Effects that may start before their events are stored: only those that read.

use super::*;

fn asking(condition: Option<Script>) -> Harness {
    let asked = Checkpoint { condition, ..checkpoint(vec![choice("Go", Action::Continue)]).unwrap() };
    let mut harness = Harness::new(workflow(vec![Phase { checkpoint: Some(asked), ..phase("one", vec![task("a", &[])]) }]));
    assert_eq!(harness.run.pending_read(), None, "a task has side effects");
    harness.perform(&harness.effect_of("one/a"));
    harness
}

#[test]
fn checkpoint_files_may_be_read_early_but_its_condition_is_not_evaluated_early() {
    let mut harness = asking(None);
    let shows = Effect::Show { phase: PhaseId::from("one"), iteration: 1 };
    assert_eq!(harness.run.pending_read(), Some(shows));
    harness.work();
    assert_eq!(harness.run.pending_read(), None, "it is shown");
    let harness = asking(condition());
    assert!(matches!(&harness.run.pending()[..], [Effect::Evaluate { .. }]));
    assert_eq!(harness.run.pending_read(), None);
}

#[test]
fn nothing_is_read_early_for_a_stopping_or_ended_run() {
    let mut harness = asking(None);
    harness.outcome(CommandKind::Interrupt { signal: "SIGTERM".into() });
    assert_eq!((harness.run.pending_read(), harness.run.pending()), (None, vec![]));
    let mut harness = asking(None);
    harness.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert_eq!((harness.run.pending_read(), harness.run.pending()), (None, vec![]));
}

#[test]
fn shown_files_may_be_compared_early() {
    let mut harness = asking(None);
    let seen = crate::hold::Seen::File { digest: Digest::of(b"x"), bytes: 1, mode: 0o644 };
    let files = vec![crate::hold::PresentedFile::new("a.md", seen)];
    let shown = Box::new(Presentation { files, ..Presentation::default() });
    harness.outcome(CommandKind::Shown { phase: PhaseId::from("one"), iteration: 1, shown });
    harness.answer("Go", None);
    assert!(matches!(harness.run.pending_read(), Some(Effect::Recheck { revision: 1, .. })));
}
