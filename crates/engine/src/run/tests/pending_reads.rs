//! What may be read before the events that call for it are stored: nothing that changes the world outside.

use super::*;

fn asking(condition: Option<Script>) -> Bench {
    let asked = Checkpoint { condition, ..checkpoint(vec![choice("Go", Action::Continue)]).unwrap() };
    let mut bench = Bench::new(workflow(vec![Phase { checkpoint: Some(asked), ..phase("one", vec![task("a", &[])]) }]));
    assert_eq!(bench.run.pending_read(), None, "a task changes the world");
    bench.perform(&bench.effect_of("one/a"));
    bench
}

#[test]
fn a_checkpoint_may_be_read_for_early_but_its_condition_is_not_evaluated_early() {
    let mut bench = asking(None);
    let shows = Effect::Show { phase: PhaseId::from("one"), iteration: 1 };
    assert_eq!(bench.run.pending_read(), Some(shows));
    bench.work();
    assert_eq!(bench.run.pending_read(), None, "it is shown");
    let bench = asking(condition());
    assert!(matches!(&bench.run.pending()[..], [Effect::Evaluate { .. }]));
    assert_eq!(bench.run.pending_read(), None);
}

#[test]
fn nothing_is_read_for_a_run_that_stops_or_has_ended() {
    let mut bench = asking(None);
    bench.outcome(CommandKind::Interrupt { signal: "SIGTERM".into() });
    assert_eq!((bench.run.pending_read(), bench.run.pending()), (None, vec![]));
    let mut bench = asking(None);
    bench.tell(person(), CommandKind::Cancel { reason: None }, true).unwrap();
    assert_eq!((bench.run.pending_read(), bench.run.pending()), (None, vec![]));
}

#[test]
fn shown_files_may_be_compared_early() {
    let mut bench = asking(None);
    let seen = crate::hold::Seen::File { digest: Digest::of(b"x"), bytes: 1, mode: 0o644 };
    let files = vec![crate::hold::ShownFile::new("a.md", seen)];
    let shown = Box::new(Showing { files, ..Showing::default() });
    bench.outcome(CommandKind::Shown { phase: PhaseId::from("one"), iteration: 1, shown });
    bench.answer("Go", None);
    assert!(matches!(bench.run.pending_read(), Some(Effect::Recheck { revision: 1, .. })));
}
