//! `show_diff`: every form of it, and every way to get it wrong.

use crate::{diagnostics, in_checkpoint, workflow};
use lockgate_engine::spec::workflow::{DiffSince, ShowDiff, Work};

fn shown(lines: &str) -> Option<ShowDiff> {
    workflow(&in_checkpoint(lines)).phases[1].checkpoint.as_ref()?.show_diff.clone()
}

fn since(since: DiffSince) -> Option<ShowDiff> {
    Some(ShowDiff { since, paths: Vec::new() })
}

#[test]
fn a_change_is_shown_since_the_phase_the_run_or_a_revision() {
    assert_eq!(shown("show_diff: true"), since(DiffSince::Phase));
    assert_eq!(shown("show_diff: phase"), since(DiffSince::Phase));
    assert_eq!(shown("show_diff: run"), since(DiffSince::Run));
    assert_eq!(shown("show_diff: { since: run }"), since(DiffSince::Run));
    assert_eq!(shown("show_diff: { since: main }"), since(DiffSince::Ref("main".into())));
    assert_eq!(shown("show_diff: { since: refs/heads/phase }"), since(DiffSince::Ref("refs/heads/phase".into())));
    assert_eq!(shown("show_diff: { since: '{{feature.name}}' }"), since(DiffSince::Ref("{{feature.name}}".into())));
    let narrow = ShowDiff { since: DiffSince::Phase, paths: vec!["src".into(), "docs/a.md".into()] };
    assert_eq!(shown("show_diff: { paths: [src, docs/a.md] }"), Some(narrow));
    assert_eq!(shown("prompt: x\nshow_diff: false"), None);
    assert_eq!(shown("prompt: x"), None);
}

#[test]
fn a_change_makes_a_checkpoint_as_files_do() {
    assert!(workflow(&in_checkpoint("show_diff: true")).phases[1].checkpoint.is_some());
    let warned = diagnostics(&in_checkpoint("approval_required: false\nshow_diff: true"));
    assert!(warned[0].contains("warning disabled-checkpoint"), "{warned:?}");
}

#[test]
fn questions_show_changes_too() {
    let flow = "name: x\nphases:\n  - id: a\n    tasks: [{ id: q, verify: { built: b }, show_diff: run }]\n    checkpoint: { decision: { question: q, options: [{ id: one }] }, show_diff: { since: main } }";
    let phase = &workflow(flow).phases[0];
    let Work::Checkpoint(question) = &phase.tasks[0].work else { panic!("a question") };
    assert_eq!(question.show_diff, since(DiffSince::Run));
    assert_eq!(phase.checkpoint.as_ref().unwrap().show_diff, since(DiffSince::Ref("main".into())));
    let not_a_question = diagnostics("name: x\nphases: [{ id: a, tasks: [{ id: t, run: make, show_diff: true }] }]");
    assert!(not_a_question[0].contains("unused-key: `show_diff` applies only to questions"), "{not_a_question:?}");
}

#[test]
fn a_wrong_value_is_refused_with_what_was_probably_meant() {
    let help = |lines: &str| diagnostics(&in_checkpoint(lines)).join("\n");
    assert!(help("show_diff: phse").contains("(did you mean `phase`?)"), "{}", help("show_diff: phse"));
    assert!(help("show_diff: main").contains("write `show_diff: { since: main }`"), "{}", help("show_diff: main"));
    assert!(help("show_diff: { sinse: main }").contains("did you mean `since`?"));
    assert!(help("show_diff: { since: --output=x }").contains("`--output=x` cannot be a git revision"));
    assert!(help("show_diff: { since: main..dev }").contains("is a range"));
    assert!(help("show_diff: { since: '' }").contains("`since` is empty"));
    assert!(help("show_diff: [main]").contains("`show_diff` must be a map"));
    assert!(help("show_diff: { since: '{{vars.x' }").contains("invalid-template"));
    assert!(help("show_diff: { since: '{{nothing.x}}' }").contains("nothing"));
    assert!(help("show_diff: { paths: [/etc] }").contains("/etc"));
    assert!(help("show_diff: { paths: [../x] }").contains("../x"));
}
