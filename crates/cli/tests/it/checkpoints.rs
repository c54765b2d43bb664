//! Requirements A1 to A9 end to end.

use crate::project::{Project, user};
use serde_json::json;
use snapbox::{assert_data_eq, str};

const SIMPLE: &str = "
name: simple
phases:
  - id: plan
    tasks: [{ id: draft, pass: true }]
    checkpoint: { approval_required: true }
  - id: build
    tasks: [{ id: make, pass: true }]
";

#[test]
fn a1_an_absent_prompt_and_absent_options_ask_whether_to_continue() {
    let project = Project::with(SIMPLE);
    let output = project.run(&["run", "flow.yaml"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 3
--- stdout
--- stderr
run [RUN]: simple
phase plan
  plan/draft started
  plan/draft done in [TOOK]
  hold [HOLD]@1: Continue with next phase?
run [RUN] waits for a person: hold [HOLD]@1 in phase plan
    Continue with next phase?
  answer it with one of
    lockgate answer [HOLD]@1 Continue
    lockgate answer [HOLD]@1 Abort
  see details: lockgate why [RUN]

"#]]
    );
    let hold = project.waiting_hold();
    let output = project.run(&["answer", &hold, "Continue", "--foreground"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 0
--- stdout
--- stderr
hold [HOLD] is answered: "Continue"
run [RUN] continues
phase build
  build/make started
  build/make done in [TOOK]
run [RUN] is complete

"#]]
    );
}

#[test]
fn a1_approval_that_is_not_required_creates_no_checkpoint() {
    let project = Project::with(&SIMPLE.replace("approval_required: true", "approval_required: false"));
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(project.events(&project.newest(), "hold_opened").is_empty());
}

const CUSTOM: &str = "
name: custom
phases:
  - id: plan
    tasks:
      - { id: draft, run: 'echo \"the plan$LOCKGATE_FEEDBACK\" > \"$LOCKGATE_OUTPUT_DIR/plan.md\"', outputs: [plan.md] }
    checkpoint:
      condition: 'context.subagents_spawned > 0 && phase.id === \"plan\" && workflow.name === \"custom\"'
      approval_required: false
      prompt: 'Is {{feature.name}} planned well?'
      show_files: ['{{output_dir}}/plan.md']
      options:
        - { label: Continue, on_select: { action: continue } }
        - { label: Redo, with_feedback: true, on_select: { action: repeat_phase, target: current } }
        - { label: Skip the rest, on_select: { action: skip_phases, phases: [build, ship] } }
        - { label: Abort, on_select: { action: abort } }
  - id: build
    tasks: [{ id: make, script: 'return phase.feedback || null' }]
    checkpoint:
      prompt: And now?
      options:
        - { label: Go, on_select: { action: continue } }
        - { label: Back to the plan, with_feedback: true, on_select: { action: repeat_phase, target: plan } }
  - id: ship
    tasks: [{ id: send, pass: true }]
  - id: thank
    tasks: [{ id: everybody, pass: true }]
";

#[test]
fn a2_a3_a_custom_checkpoint_shows_its_prompt_files_and_options_and_records_in_order() {
    let project = Project::with(CUSTOM);
    let output = project.run(&["run", "flow.yaml", "login"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    let status = project.status("login");
    let hold = &status["holds"][0];
    assert_eq!(hold["prompt"], "Is login planned well?");
    assert_eq!(hold["kind"], "checkpoint");
    assert_eq!(hold["phase"], "plan");
    let labels: Vec<&str> = hold["options"].as_array().unwrap().iter().map(|option| option["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["Continue", "Redo", "Skip the rest", "Abort"]);
    assert!(hold["files"][0]["path"].as_str().unwrap().ends_with("plan.md"), "{hold}");
    assert_eq!(hold["files"][0]["digest"].as_str().unwrap().len(), 64);

    let answer = project.waiting_hold();
    let output = project.run(&["answer", &answer, "redo", "--feedback", "", "--foreground"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    let run = project.newest();
    let kinds = project.kinds(&run);
    let interesting: Vec<&str> = kinds
        .iter()
        .map(String::as_str)
        .filter(|kind| matches!(*kind, "condition_evaluated" | "hold_opened" | "answered" | "hold_settled" | "phase_repeated"))
        .collect();
    let expected = [
        "condition_evaluated",
        "hold_opened",
        "answered",
        "hold_settled",
        "phase_repeated",
        "condition_evaluated",
        "hold_opened",
    ];
    assert_eq!(interesting, expected);
    let answered = &project.events(&run, "answered")[0];
    assert_eq!(answered["option"], "redo");
    assert_eq!(answered["feedback"], "", "feedback may be empty");
    assert_eq!(answered["revision"], 1);
    assert_eq!(answered["actor"]["name"], user());
    assert_eq!(answered["actor"]["channel"], "command");
}

#[test]
fn a4_a_false_condition_skips_the_checkpoint() {
    let project = Project::with(&CUSTOM.replace("subagents_spawned > 0", "subagents_spawned > 99"));
    let output = project.run(&["run", "flow.yaml", "login", "--answer", "build=Go"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("checkpoint of plan skipped"), "{output:?}");
    assert_eq!(project.events(&project.newest(), "condition_evaluated")[0]["outcome"], "false");
}

#[test]
fn a4_a_condition_that_errors_shows_the_checkpoint_with_the_error() {
    let broken = CUSTOM.replace("context.subagents_spawned > 0", "context.nothing.there > 0");
    let project = Project::with(&broken);
    let output = project.run(&["run", "flow.yaml", "login"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    let status = project.status("login");
    assert!(status["holds"][0]["notes"][0].as_str().unwrap().contains("could not be evaluated"), "{status}");
    assert!(status["warnings"][0].as_str().unwrap().contains("condition"), "{status}");

    let project = Project::with(&broken.replace("approval_required: false", "on_condition_error: skip"));
    let output = project.run(&["run", "flow.yaml", "login", "--answer", "build=Go"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(project.status(&project.newest())["warnings"][0].as_str().unwrap().contains("condition"));
}

#[test]
fn a4_a_syntax_error_in_a_condition_is_reported_before_anything_runs() {
    let project = Project::with(&CUSTOM.replace("context.subagents_spawned > 0", "context.subagents_spawned >"));
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("flow.yaml:8:47"), "{output:?}");
    let listed = project.run(&["runs", "--json"]);
    assert!(listed.code == Some(4) || listed.stdout == "[]\n", "the store does not exist yet, or is empty: {listed:?}");
}

#[test]
fn a5_a6_actions_take_effect_and_every_decision_is_in_the_context() {
    let project = Project::with(CUSTOM);
    let arguments = [
        "run",
        "flow.yaml",
        "login",
        "--answer",
        "plan=Redo",
        "--feedback",
        "plan=, shorter",
        "--answer",
        "plan=1",
        "--answer",
        "build=back to the plan",
        "--answer",
        "plan=Skip the rest",
        "--json",
    ];
    let status = project.json(0, &arguments);
    assert_eq!(status["status"], "complete");
    let checkpoints = status["context"]["checkpoints"].as_array().unwrap();
    let decisions: Vec<_> = checkpoints.iter().map(|record| (record["phase"].clone(), record["decision"].clone())).collect();
    let expected = [
        (json!("plan"), json!("repeat_phase")),
        (json!("plan"), json!("continue")),
        (json!("build"), json!("repeat_phase")),
        (json!("plan"), json!("skip_phases")),
    ];
    assert_eq!(decisions, expected);
    assert_eq!(checkpoints[0]["target"], "plan");
    assert_eq!(checkpoints[0]["feedback"], ", shorter");
    assert_eq!(checkpoints[0]["by"]["name"], user());
    assert_eq!(checkpoints[0]["by"]["channel"], "preset");
    assert!(checkpoints[0]["timestamp"].is_string());
    assert!(
        checkpoints[1].get("target").is_none()
            && checkpoints[1].get("feedback").is_none()
            && checkpoints[1].get("skipped").is_none()
    );
    assert_eq!(checkpoints[3]["skipped"], json!(["build", "ship"]));
    let phases: Vec<_> =
        status["phases"].as_array().unwrap().iter().map(|phase| (phase["status"].clone(), phase["iteration"].clone())).collect();
    assert_eq!(
        phases,
        [
            (json!("complete"), json!(3)),
            (json!("skipped"), json!(1)),
            (json!("skipped"), json!(0)),
            (json!("complete"), json!(1))
        ]
    );
    let run = project.newest();
    let started = project.events(&run, "phase_started");
    assert_eq!(started[1]["feedback"], ", shorter", "feedback reaches the phase that is repeated");
    let plan = project.read(&format!(".lockgate/runs/{run}/out/plan.md"));
    assert_eq!(plan, "the plan\n", "the last execution had no feedback");
}

#[test]
fn a5_unknown_actions_and_targets_are_errors_with_a_suggestion() {
    for (right, wrong, help) in [
        ("action: abort", "action: abrot", "abort"),
        ("target: plan }", "target: plna }", "plan"),
        ("[build, ship]", "[biuld, ship]", "build"),
    ] {
        let project = Project::with(&CUSTOM.replace(right, wrong));
        let output = project.run(&["validate", "flow.yaml"]);
        assert_eq!(output.code, Some(4), "{output:?}");
        assert!(output.stderr.contains(&format!("did you mean `{help}`?")), "{output:?}");
    }
}

#[test]
fn a5_repeating_a_skipped_phase_removes_it_from_the_skip_list() {
    let flow = "
name: skip
phases:
  - id: one
    tasks: [{ id: t, pass: true }]
    checkpoint:
      prompt: Skip two?
      options: [{ label: Skip, on_select: { action: skip_phases, phases: [two] } }, { label: Go, on_select: { action: continue } }]
  - id: two
    tasks: [{ id: t, pass: true }]
  - id: three
    tasks: [{ id: t, pass: true }]
    checkpoint:
      prompt: Back to two?
      options: [{ label: Back, on_select: { action: repeat_phase, target: two } }, { label: Go, on_select: { action: continue } }]
";
    let project = Project::with(flow);
    let status = project
        .json(0, &["run", "flow.yaml", "--json", "--answer", "one=Skip", "--answer", "three=Back", "--answer", "three=Go"]);
    assert_eq!(status["context"]["skip_phases"], json!([]));
    assert_eq!(status["context"]["phases"]["iteration_counts"], json!({"one": 1, "three": 2, "two": 1}));
}

#[test]
fn a7_gates_come_after_the_tasks_and_before_the_checkpoint() {
    let flow = "
name: gated
phases:
  - id: build
    tasks: [{ id: make, pass: true }]
    gates: [{ id: lint, run: 'exit 0' }, { id: test, run: 'test -e ready || { echo not ready; exit 3; }' }]
    checkpoint: { approval_required: true }
";
    let project = Project::with(flow);
    let output = project.run(&["run", "flow.yaml"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 1
--- stdout
--- stderr
run [RUN]: gated
phase build
  build/make started
  build/make done in [TOOK]
  gate lint passed in [TOOK]
  gate test failed after [TOOK]: it ended with exit code 3
    │ not ready
run [RUN] failed: build/test failed: it ended with exit code 3
  fix the cause, then continue: lockgate resume [RUN]

"#]]
    );
    let run = project.newest();
    project.write("ready", "");
    assert_eq!(project.run(&["resume", &run]).code, Some(3));
    let kinds = project.kinds(&run);
    assert_eq!(kinds.iter().filter(|kind| *kind == "task_started").count(), 1, "finished work is not repeated: {kinds:?}");
    let last_gate = kinds.iter().rposition(|kind| kind == "gate_passed").unwrap();
    assert!(last_gate < kinds.iter().position(|kind| kind == "hold_opened").unwrap());
}

#[test]
fn a8_the_context_has_every_part() {
    let flow = "
name: whole
vars: { from_file: 1, both: file }
phases:
  - id: make
    tasks:
      - { id: file, run: 'printf 12345 > \"$LOCKGATE_OUTPUT_DIR/a.txt\"', outputs: [a.txt] }
      - { id: value, script: 'return { saw: context.feature.flags, big: \"x\".repeat(5000) }' }
";
    let project = Project::with(flow);
    let arguments = [
        "run",
        "flow.yaml",
        "login",
        "--flag",
        "frontend",
        "--var",
        "both=[1]",
        "--var",
        "text=hi",
        "--json",
        "--",
        "--production",
    ];
    let status = project.json(0, &arguments);
    let context = &status["context"];
    assert_eq!(context["workflow"]["name"], "whole");
    assert_eq!(context["workflow"]["execution_mode"], "strict");
    assert!(context["workflow"]["started_at"].is_string());
    assert_eq!(context["feature"], json!({"name": "login", "flags": ["frontend", "production"]}));
    assert_eq!(context["phases"], json!({"current": null, "completed": ["make"], "iteration_counts": {"make": 1}}));
    assert_eq!(context["subagents_spawned"], 2);
    let deliverable = &context["deliverables"][0];
    assert_eq!((&deliverable["phase"], &deliverable["path"]), (&json!("make"), &json!("a.txt")));
    assert_eq!((&deliverable["subagent"], &deliverable["size_bytes"]), (&json!("file"), &json!(5)));
    assert_eq!((&context["checkpoints"], &context["skip_phases"], &context["gap_checks"]), (&json!([]), &json!([]), &json!([])));
    assert_eq!(context["outputs"]["make"]["value"]["saw"], json!(["frontend", "production"]));
    assert_eq!(context["outputs"]["make"]["value"]["big"].as_str().unwrap().len(), 5000, "stored values are filled in");
    assert_eq!(context["vars"], json!({"both": [1], "from_file": 1, "text": "hi"}));
}

#[test]
fn a9_abort_exits_with_2_after_the_decision_is_on_disk() {
    let project = Project::with(SIMPLE);
    let output = project.run(&["run", "flow.yaml", "--answer", "plan=Abort"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 2
--- stdout
--- stderr
run [RUN]: simple
phase plan
  plan/draft started
  plan/draft done in [TOOK]
  hold [HOLD]@1: Continue with next phase?
  answered "Abort" by [USER] in advance
run [RUN] was aborted by [USER] in advance

"#]]
    );
    let status = project.status(&project.newest());
    assert_eq!(status["status"], "aborted");
    assert_eq!(status["context"]["checkpoints"][0]["decision"], "abort");
}
