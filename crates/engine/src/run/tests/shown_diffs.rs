//! Git changes that questions show: where they start, and what an approval is bound to.

use super::*;
use crate::hold::{ChangeStatus, ChangedFile, GitChange, HoldState, LineCounts, SeenDiff, ShownDiff};

fn tree(name: &str) -> DiffBase {
    DiffBase::Tree { tree: name.into(), kept_by: RunId::from("run00000") }
}

fn change(content: &str) -> ShownDiff {
    let lines = Some(LineCounts { added: 2, removed: 1 });
    let file = ChangedFile { path: "a.rs".into(), old_path: None, status: ChangeStatus::Modified, lines };
    let change = GitChange {
        base: "base".into(),
        tree: content.into(),
        digest: Digest::of(content.as_bytes()),
        file_count: 1,
        added: 2,
        removed: 1,
        files: vec![file],
        text: Some(Digest::of(format!("patch of {content}").as_bytes())),
        not_kept: None,
    };
    ShownDiff { since: DiffSince::Phase, paths: Vec::new(), seen: SeenDiff::Change(Box::new(change)) }
}

fn shows(id: &str, since: DiffSince, options: Vec<Choice>) -> Phase {
    let show_diff = Some(ShowDiff { since, paths: Vec::new() });
    let checkpoint = Checkpoint { show_diff, ..checkpoint(options).unwrap() };
    Phase { checkpoint: Some(checkpoint), ..phase(id, vec![task("work", &[])]) }
}

fn go_or_repeat(phase: &str) -> Vec<Choice> {
    vec![choice("Continue", Action::Continue), choice("Again", Action::RepeatPhase(PhaseId::from(phase)))]
}

fn base_effect(harness: &Harness) -> Option<(String, u32)> {
    harness.run.pending().into_iter().find_map(|effect| match effect {
        Effect::DiffBase { phase, iteration } => Some((phase.to_string(), iteration)),
        _ => None,
    })
}

fn record(harness: &mut Harness, base: DiffBase) -> Vec<Event> {
    let (phase, iteration) = base_effect(harness).expect("a starting point is awaited");
    harness.outcome(CommandKind::DiffBaseRecorded { phase: PhaseId::new(phase), iteration, base })
}

/// Does the work of the phase and shows its checkpoint with a change.
fn show(harness: &mut Harness, diff: ShownDiff) {
    while let Some(effect) = harness.run.pending().into_iter().find(|effect| matches!(effect, Effect::Task { .. })) {
        harness.perform(&effect);
    }
    let (phase, iteration) = harness.run.current.as_ref().map(|phase| (phase.id.clone(), phase.iteration)).unwrap();
    let shown = Box::new(Presentation { prompt: "Good?".into(), diff: Some(Box::new(diff)), ..Presentation::default() });
    harness.outcome(CommandKind::Shown { phase, iteration, shown });
}

fn recheck(harness: &mut Harness, diff: Option<ShownDiff>) -> Vec<Event> {
    let hold = harness.run.holds.values().next().unwrap().clone();
    let (hold, revision) = (hold.id, hold.revision);
    let differences = vec!["it is different now".into()];
    harness.outcome(CommandKind::Rechecked { hold, revision, files: Vec::new(), diff: diff.map(Box::new), differences })
}

#[test]
fn nothing_starts_before_the_starting_point_of_a_change_is_recorded() {
    let mut harness = Harness::new(workflow(vec![shows("build", DiffSince::Phase, go_or_repeat("build"))]));
    assert_eq!(base_effect(&harness), Some(("build".into(), 1)));
    assert_eq!(harness.started(), [] as [&str; 0]);
    let events = record(&mut harness, tree("t1"));
    let recorded = Event::DiffBaseRecorded { phase: PhaseId::from("build"), iteration: 1, base: tree("t1"), starts_run: false };
    assert_eq!(events[0], recorded);
    assert_eq!(harness.started(), ["build/work"], "in the same commit");
    assert_eq!(harness.run.diff_bases.phase, Some(tree("t1")));
    let late = CommandKind::DiffBaseRecorded { phase: PhaseId::from("build"), iteration: 1, base: tree("t2") };
    assert!(harness.outcome(late).is_empty(), "the files have changed by now");
}

#[test]
fn workflows_that_show_no_change_record_nothing() {
    let mut plain = phase("build", vec![task("work", &[])]);
    plain.checkpoint = checkpoint(go_or_repeat("build"));
    let by_revision = shows("ship", DiffSince::Ref("main".into()), go_or_repeat("ship"));
    let harness = Harness::new(workflow(vec![plain, by_revision]));
    assert_eq!(base_effect(&harness), None);
    assert_eq!(harness.started(), ["build/work"]);
}

#[test]
fn the_start_of_the_run_is_recorded_once_with_its_first_phase() {
    let plain = phase("plan", vec![task("draft", &[])]);
    let mut harness = Harness::new(workflow(vec![plain, shows("build", DiffSince::Run, go_or_repeat("build"))]));
    let events = record(&mut harness, tree("t1"));
    assert!(matches!(&events[0], Event::DiffBaseRecorded { starts_run: true, .. }), "{events:?}");
    show(&mut harness, change("one"));
    assert_eq!((base_effect(&harness), harness.started()), (None, vec!["plan/draft".to_owned(), "build/work".to_owned()]));
    assert_eq!(harness.run.diff_bases.run, Some(tree("t1")));
}

#[test]
fn a_repeated_phase_keeps_its_starting_point_until_it_is_completed() {
    let second = shows("ship", DiffSince::Phase, go_or_repeat("build"));
    let mut harness = Harness::new(workflow(vec![shows("build", DiffSince::Phase, go_or_repeat("build")), second]));
    record(&mut harness, tree("t1"));
    show(&mut harness, change("one"));
    harness.answer("Again", Some("more"));
    assert_eq!(harness.run.current.as_ref().map(|phase| phase.iteration), Some(2));
    assert_eq!((base_effect(&harness), harness.run.diff_bases.phase.clone()), (None, Some(tree("t1"))));
    show(&mut harness, change("two"));
    harness.answer("Continue", None);
    recheck(&mut harness, Some(change("two")));
    assert_eq!(base_effect(&harness), Some(("ship".into(), 1)), "another phase has its own");
    record(&mut harness, tree("t2"));
    show(&mut harness, change("three"));
    harness.answer("Again", Some("from the beginning"));
    assert_eq!(base_effect(&harness), Some(("build".into(), 3)), "completed work starts anew");
}

#[test]
fn approval_is_voided_when_the_shown_change_changes() {
    let unavailable = ShownDiff { seen: SeenDiff::Unavailable("git is gone".into()), ..change("one") };
    let elsewhere = ShownDiff { paths: vec!["src".into()], ..change("one") };
    for (what, now) in
        [("content", Some(change("two"))), ("gone", Some(unavailable)), ("nothing", None), ("paths", Some(elsewhere))]
    {
        let last = phase("ship", vec![task("send", &[])]);
        let mut harness = Harness::new(workflow(vec![shows("build", DiffSince::Phase, go_or_repeat("build")), last]));
        record(&mut harness, tree("t1"));
        show(&mut harness, change("one"));
        harness.answer("Continue", None);
        let events = recheck(&mut harness, now.clone());
        assert!(
            matches!(&events[..], [Event::HoldReopened { revision: 2, diff, .. }] if diff.as_deref() == now.as_ref()),
            "{what}: {events:?}"
        );
        let hold = harness.hold();
        assert_eq!((hold.state, hold.diff.as_deref(), hold.answers.len()), (HoldState::Open, now.as_ref(), 0), "{what}");
        assert_eq!(harness.started(), ["build/work"], "{what}");
    }
}

#[test]
fn an_unchanged_change_lets_the_answer_take_effect_and_is_kept_as_evidence() {
    let last = phase("ship", vec![task("send", &[])]);
    let mut harness = Harness::new(workflow(vec![shows("build", DiffSince::Phase, go_or_repeat("build")), last]));
    record(&mut harness, tree("t1"));
    show(&mut harness, change("one"));
    harness.answer("Continue", None);
    assert_eq!(harness.started(), ["build/work"], "it is looked at again first");
    recheck(&mut harness, Some(change("one")));
    assert_eq!(harness.started(), ["build/work", "ship/send"]);
    let approved = harness.run.decisions[0].diff.as_deref().unwrap();
    assert_eq!((approved.tree.as_str(), approved.digest, approved.files), ("one", Digest::of(b"one"), 1));
}

#[test]
fn an_answer_to_a_shown_change_names_the_revision_that_was_seen() {
    let mut harness = Harness::new(workflow(vec![shows("build", DiffSince::Phase, go_or_repeat("build"))]));
    record(&mut harness, tree("t1"));
    show(&mut harness, change("one"));
    let hold = harness.hold().id.clone();
    let bare = CommandKind::Answer { hold: hold.clone(), revision: None, option: "Continue".into(), feedback: None };
    let refused = harness.tell(person(), bare, true);
    assert!(matches!(&refused, Err(Refusal::RevisionRequired { current: 1, .. })), "{refused:?}");
}

#[test]
fn git_is_not_called_before_the_events_that_ask_for_it_are_durable() {
    let mut harness = Harness::new(workflow(vec![shows("build", DiffSince::Phase, go_or_repeat("build"))]));
    record(&mut harness, tree("t1"));
    harness.perform(&harness.run.pending()[0].clone());
    assert!(matches!(harness.run.pending()[..], [Effect::Show { .. }]));
    assert_eq!(harness.run.pending_read(), None);
    show(&mut harness, change("one"));
    harness.answer("Continue", None);
    assert!(matches!(harness.run.pending()[..], [Effect::Recheck { .. }]));
    assert_eq!(harness.run.pending_read(), None);
}

#[test]
fn a_stored_run_keeps_its_starting_points() {
    let mut harness = Harness::new(workflow(vec![shows("build", DiffSince::Run, go_or_repeat("build"))]));
    record(&mut harness, tree("t1"));
    show(&mut harness, change("one"));
    let mut read = Run::from_bytes(&harness.run.to_bytes()).unwrap();
    read.attach(harness.run.workflow.clone()).unwrap();
    assert_eq!(read.diff_bases, harness.run.diff_bases);
    assert_eq!(read.holds, harness.run.holds);
}
