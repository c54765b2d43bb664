//! Checkpoints: what makes one, their options, and every error.

use crate::{diagnostics, in_checkpoint, workflow};
use lockgate_engine::hold::Action;
use lockgate_engine::spec::read;
use lockgate_engine::spec::workflow::{Checkpoint, OnConditionError, Reads};

fn checkpoint(lines: &str) -> Option<Checkpoint> {
    workflow(&in_checkpoint(lines)).phases[1].checkpoint.clone()
}

fn labels(checkpoint: &Checkpoint) -> Vec<(&str, &str, bool, Action)> {
    checkpoint
        .options
        .iter()
        .map(|choice| (choice.id.as_str(), choice.label.as_str(), choice.with_feedback, choice.action.clone()))
        .collect()
}

fn default_labels(with_feedback: bool) -> Vec<(&'static str, &'static str, bool, Action)> {
    vec![("continue", "Continue", with_feedback, Action::Continue), ("abort", "Abort", with_feedback, Action::Abort)]
}

#[test]
fn a_simple_approval_asks_whether_to_continue() {
    let checkpoint = checkpoint("approval_required: true").expect("a checkpoint");
    assert_eq!(checkpoint.prompt, "Continue with next phase?");
    assert_eq!(labels(&checkpoint), default_labels(false));
    assert_eq!((checkpoint.condition, checkpoint.show_files.len()), (None, 0));
}

#[test]
fn without_approval_there_is_no_checkpoint() {
    assert_eq!(checkpoint("approval_required: false"), None);
    let warned = [
        "8:7 warning disabled-checkpoint: this checkpoint never asks anything (write `approval_required: true`, or give it a `prompt`)",
    ];
    assert_eq!(diagnostics(&in_checkpoint("approval_required: false\ncondition: 1 > 0")), warned);
    assert_eq!(diagnostics(&in_checkpoint("approval_required: false\nshow_files: a.md")), warned);
    assert_eq!(diagnostics(&in_checkpoint("with_feedback: true")), warned);
    let silent = in_checkpoint("").replace("checkpoint:", "checkpoint: {}");
    let Some(read) = read(&silent).workflow else { panic!("a warning is not an error") };
    assert_eq!(read.phases[1].checkpoint, None);
    assert_eq!(diagnostics(&silent)[0].split(' ').nth(2), Some("disabled-checkpoint:"));
}

#[test]
fn a_prompt_or_options_always_create_a_checkpoint() {
    for approval in ["true", "false"] {
        let only_prompt = checkpoint(&format!("approval_required: {approval}\nprompt: Good?")).expect("a checkpoint");
        assert_eq!((only_prompt.prompt.as_str(), labels(&only_prompt)), ("Good?", default_labels(false)));
        let only_options =
            checkpoint(&format!("approval_required: {approval}\noptions: [{{label: Abort}}]")).expect("a checkpoint");
        assert_eq!(only_options.prompt, "Continue with next phase?");
        assert_eq!(labels(&only_options), [("abort", "Abort", false, Action::Abort)]);
    }
}

#[test]
fn a_condition_or_files_create_a_checkpoint_unless_disabled() {
    assert_eq!(
        checkpoint("condition: context.subagents_spawned > 0").map(|it| it.prompt),
        Some("Continue with next phase?".into())
    );
    assert_eq!(checkpoint("show_files: plan.md").map(|it| it.show_files), Some(vec!["plan.md".into()]));
    let both = checkpoint("approval_required: true\ncondition: 'true'").expect("a checkpoint");
    assert_eq!(both.condition.map(|it| it.source), Some("true".into()));
    assert_eq!(labels(&checkpoint("approval_required: true\nwith_feedback: true").expect("one")), default_labels(true));
}

#[test]
fn a_condition_error_shows_the_checkpoint_unless_configured_to_skip() {
    let shown = checkpoint("condition: x\nprompt: a").expect("a checkpoint");
    assert_eq!(shown.on_condition_error, OnConditionError::Show);
    let skipped = checkpoint("condition: x\nprompt: a\non_condition_error: skip").expect("a checkpoint");
    assert_eq!(skipped.on_condition_error, OnConditionError::Skip);
}

#[test]
fn a_custom_checkpoint_has_its_own_answers() {
    let source = r#"
name: flow
phases:
  - id: planning
    tasks: [{id: plan, run: ./plan}]
    checkpoint:
      condition: "context.subagents_spawned > 0"  # only if an agent worked
      prompt: "Look at the result?"
      with_feedback: true
      show_files:
        - "{{output_dir}}/plan.md"
        - "{{output_dir}}/architecture.md"
      options:
        - label: "Continue"
          with_feedback: false
          on_select:
            action: continue
        - label: "Redo This Phase"
          on_select:
            action: repeat_phase
            target: "current"
        - label: "Skip Next 2 Phases"
          on_select:
            action: skip_phases
            phases: ["phase_3", "phase_4"]
        - label: "Abort Workflow"
          on_select: { action: abort }
  - { id: phase_3, gates: [] }
  - { id: phase_4, gates: [] }
"#;
    let workflow = workflow(source);
    let checkpoint = workflow.phases[0].checkpoint.clone().expect("a checkpoint");
    assert_eq!(checkpoint.prompt, "Look at the result?");
    assert_eq!(checkpoint.show_files, ["{{output_dir}}/plan.md", "{{output_dir}}/architecture.md"]);
    let condition = checkpoint.condition.clone().expect("a condition");
    assert_eq!(condition.reads, Reads::Parts(["subagents_spawned".to_owned()].into()));
    assert_eq!(
        labels(&checkpoint),
        [
            ("continue", "Continue", false, Action::Continue),
            ("redo-this-phase", "Redo This Phase", true, Action::RepeatPhase("planning".into())),
            ("skip-next-2-phases", "Skip Next 2 Phases", true, Action::SkipPhases(vec!["phase_3".into(), "phase_4".into()])),
            ("abort-workflow", "Abort Workflow", true, Action::Abort),
        ]
    );
}

#[test]
fn typical_conditions_are_parsed() {
    for (condition, reads) in [
        ("context.subagents_spawned > 5", "subagents_spawned"),
        ("context.phases.iteration_counts[phase.id] > 1", "phases"),
        ("context.feature.flags.includes('backend')", "feature"),
        ("context.deliverables.length === 0", "deliverables"),
    ] {
        let checkpoint = checkpoint(&format!("condition: \"{condition}\"")).expect("a checkpoint");
        assert_eq!(checkpoint.condition.map(|it| it.reads), Some(Reads::Parts([reads.to_owned()].into())));
    }
}

#[test]
fn common_checkpoint_patterns_are_parsed() {
    let source = r#"
name: patterns
phases:
  - id: planning
    gates: []
  - id: implementation
    checkpoint:
      prompt: "Is the plan good enough to build?"
      show_files:
        - "{{output_dir}}/plan.md"
      options:
        - label: "Looks good, proceed"
          on_select: { action: continue }
        - label: "Revise plan"
          on_select: { action: repeat_phase, target: "planning" }
  - id: testing
    checkpoint:
      condition: "context.feature.flags.includes('production')"
      prompt: "Do all tests pass?"
      options:
        - label: "Yes, continue"
          on_select: { action: continue }
        - label: "No, fix tests"
          on_select: { action: repeat_phase, target: "current" }
  - id: optimization
    checkpoint:
      prompt: "Make it fast now or later?"
      options:
        - label: "Optimize now"
          on_select: { action: continue }
        - label: "Skip for now"
          with_feedback: true
          on_select: { action: skip_phases, phases: ["performance_tuning"] }
  - id: performance_tuning
    gates: []
  - id: validation
    checkpoint:
      prompt: "There are critical issues. What now?"
      show_files:
        - "{{output_dir}}/validation-report.md"
      options:
        - label: "Fix and retry"
          on_select: { action: repeat_phase, target: "current" }
        - label: "Abort workflow"
          with_feedback: true
          on_select: { action: abort }
"#;
    let workflow = workflow(source);
    let actions = |phase: &str| -> Vec<Action> {
        workflow
            .phase(phase)
            .and_then(|phase| phase.checkpoint.as_ref())
            .map_or_else(Vec::new, |checkpoint| checkpoint.options.iter().map(|choice| choice.action.clone()).collect())
    };
    assert_eq!(actions("implementation"), [Action::Continue, Action::RepeatPhase("planning".into())]);
    assert_eq!(actions("testing"), [Action::Continue, Action::RepeatPhase("testing".into())]);
    assert_eq!(actions("optimization"), [Action::Continue, Action::SkipPhases(vec!["performance_tuning".into()])]);
    assert_eq!(actions("validation"), [Action::RepeatPhase("validation".into()), Action::Abort]);
}

/// The problems of a single option with these lines, which start on line 9.
fn about_option(lines: &str) -> Vec<String> {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    diagnostics(&in_checkpoint(&format!("options:\n  - label: Go\n{lines}")))
}

#[test]
fn an_option_has_an_action() {
    assert_eq!(
        about_option(""),
        [
            "9:11 missing-key: an option needs `on_select`, which says what choosing it does (add `on_select: { action: continue }`, or repeat_phase, skip_phases or abort)"
        ]
    );
    assert_eq!(diagnostics(&in_checkpoint("options: [{label: CONTINUE}, {label: abort}]")), [] as [&str; 0]);
    assert_eq!(
        diagnostics(&in_checkpoint("options: [{on_select: {action: abort}}]")),
        ["8:18 missing-key: an option needs `label`"]
    );
    assert_eq!(about_option("on_select: {}"), ["10:22 missing-key: `on_select` needs `action`"]);
    assert_eq!(
        about_option("on_select: continue"),
        ["10:22 wrong-type: `on_select` must be a map of keys and values, not a single value"]
    );
}

#[test]
fn an_unknown_action_is_an_error_with_a_suggestion() {
    assert_eq!(
        about_option("on_select: {action: repeat-phase}"),
        ["10:31 unknown-action: `repeat-phase` is not an action (did you mean `repeat_phase`?)"]
    );
    assert_eq!(
        about_option("on_select: {action: explode}"),
        ["10:31 unknown-action: `explode` is not an action (the actions are continue, repeat_phase, skip_phases and abort)"]
    );
}

#[test]
fn only_this_phase_and_earlier_ones_can_be_repeated() {
    for target in ["current", "here", "before"] {
        assert_eq!(about_option(&format!("on_select: {{action: repeat_phase, target: {target}}}")), [] as [&str; 0]);
    }
    assert_eq!(
        about_option("on_select: {action: repeat_phase, target: after}"),
        [
            "10:53 phase-order: phase `after` comes later and cannot be repeated from here (name this phase or an earlier one, or `current`)"
        ]
    );
    assert_eq!(
        about_option("on_select: {action: repeat_phase, target: befor}"),
        ["10:53 unknown-phase: phase `befor` is not defined (did you mean `before`?)"]
    );
    assert_eq!(
        about_option("on_select: {action: repeat_phase, target: curent}"),
        ["10:53 unknown-phase: phase `curent` is not defined (did you mean `current`?)"]
    );
    assert_eq!(
        about_option("on_select: {action: repeat_phase, target: aftr}"),
        ["10:53 unknown-phase: phase `aftr` is not defined (available: `before`, `here`, `current`)"]
    );
}

#[test]
fn only_later_phases_can_be_skipped() {
    assert_eq!(about_option("on_select: {action: skip_phases, phases: after}"), [] as [&str; 0]);
    assert_eq!(
        about_option("on_select: {action: skip_phases, phases: [before, here, aftr, after]}"),
        [
            "10:53 phase-order: phase `before` comes earlier and cannot be skipped from here (name phases that come later)",
            "10:61 phase-order: phase `here` is this phase and cannot be skipped from here (name phases that come later)",
            "10:67 unknown-phase: phase `aftr` is not defined (did you mean `after`?)",
        ]
    );
    assert_eq!(
        about_option("on_select: {action: skip_phases, phases: []}"),
        ["10:52 empty-value: `phases` is empty: nothing would be skipped (name the phases to skip)"]
    );
    assert_eq!(
        about_option("on_select: {action: skip_phases, phases: [befor]}"),
        ["10:53 unknown-phase: phase `befor` is not defined (available: `after`)"]
    );
    assert_eq!(about_option("on_select: {action: skip_phases}"), ["10:23 missing-key: `on_select` needs `phases`"]);
}

#[test]
fn keys_unused_by_an_action_give_a_warning() {
    assert_eq!(
        about_option("on_select: {action: continue, target: before}"),
        ["10:41 warning unused-key: `target` has no meaning here; it belongs to `repeat_phase` (remove it)"]
    );
}

#[test]
fn labels_must_be_unique() {
    assert_eq!(
        diagnostics(&in_checkpoint(
            "options:\n  - {label: Continue}\n  - {label: Abort}\n  - {label: 'continue!', on_select: {action: abort}}"
        )),
        ["11:19 duplicate-label: options `Continue` and `continue!` have the same label (give each option its own label)"]
    );
    assert_eq!(
        diagnostics(&in_checkpoint("options: []")),
        ["8:16 empty-value: `options` is empty (remove it to get the options Continue and Abort)"]
    );
}

#[test]
fn a_checkpoint_must_be_a_map() {
    let source = in_checkpoint("").replace("checkpoint:", "checkpoint: true");
    assert_eq!(
        diagnostics(&source),
        [
            "7:17 wrong-type: a checkpoint must be a map of keys and values, not a single value (write `checkpoint: { approval_required: true }`)"
        ]
    );
}

#[test]
fn a_condition_with_return_suggests_removing_it() {
    let diagnostics = diagnostics(&in_checkpoint("condition: return true"));
    assert!(diagnostics[0].starts_with("8:18 script-syntax: "), "{diagnostics:?}");
    assert!(diagnostics[0].ends_with(" (a condition is an expression: remove `return`)"), "{diagnostics:?}");
}

#[test]
fn a_condition_that_enumerates_keys_reads_everything() {
    for condition in ["context.outputs.hasOwnProperty('build')", "context.hasOwnProperty('vars')", "'build' in context.outputs"] {
        let checkpoint = checkpoint(&format!("condition: \"{condition}\"")).expect("a checkpoint");
        assert_eq!(checkpoint.condition.map(|it| it.reads), Some(Reads::All), "{condition}");
    }
}

#[test]
fn an_empty_condition_is_an_error() {
    for condition in ["condition: ''", "condition:", "condition: '  '"] {
        let diagnostics = diagnostics(&in_checkpoint(&format!("{condition}\nprompt: a")));
        assert_eq!(diagnostics.len(), 1, "{condition}");
        assert!(diagnostics[0].contains("empty-condition: the condition is empty"), "{diagnostics:?}");
    }
}
