//! Dry runs and `lockgate test`: a workflow is walked through with stub tasks and stub answers, without changing the project.

use crate::project::{Output, Project, without_terminal};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

/// Everything that a dry run must not do creates a file.
const FLOW: &str = "\
name: release
vars: { targets: [linux, mac] }
secrets: { TOKEN: { command: 'touch SECRET; echo x' } }
phases:
  - id: plan
    tasks:
      - { id: draft, agent: writer, prompt: \"Write a plan for {{feature.name}}.\\nBe short.\", output_path: plan.md }
      - { id: extra, run: touch EXTRA, when: \"context.feature.flags.includes('extra')\" }
      - id: score
        needs: [draft]
        agent: judge
        prompt: Score it
        output_schema: { type: object, required: [score], properties: { score: { type: integer, minimum: 1 } } }
    checkpoint:
      prompt: Good plan?
      show_files: [plan.md]
      options:
        - { label: Go, on_select: { action: continue } }
        - { label: Redo, with_feedback: true, on_select: { action: repeat_phase } }
        - { label: Stop, on_select: { action: abort } }
  - id: build
    tasks:
      - { id: each, for_each: targets, run: 'make {{item}}; touch MADE', outputs: '{{item}}.bin', secrets: [TOKEN] }
      - { id: pick, needs: [each], script: \"writeFile('list.txt', 'a'); return { count: 2 }\" }
      - { id: poll, run: touch POLLED, until: { run: touch READY, limit: 4 } }
    gates: [{ id: lint, run: touch LINT, on_fail: ask }]
    gap_check:
      criteria: [{ name: list, check: \"files_exist(['list.txt', 'linux.bin'])\" }]
  - id: ship
    tasks: [{ id: push, run: touch PUSHED, worktree: true }]
    checkpoint: { condition: 'context.outputs.build.pick.count > 5', approval_required: true }
finalization: { template: \"# {{workflow.name}} {{outputs.build.pick.count}}\\n\", output: summary.md }
";

const EXPECTED_OUTPUT: &str = "\
dry run of release (login): nothing is executed or stored
phase plan
  plan/draft asks an agent (none is configured): Write a plan for login. …
    writes plan.md
  plan/score asks an agent (none is configured): Score it …
  plan/extra is left out: its `when` is false
  checkpoint: Good plan?
    shows .lockgate/runs/dry-run/out/plan.md
    options: 1. Go  2. Redo  3. Stop
    answered Go (the first option)
phase build
  build/each becomes 2 tasks
  build/poll runs: touch POLLED
    until this succeeds: touch READY
  build/each[linux] runs: make 'linux'; touch MADE
    writes linux.bin
  build/each[mac] runs: make 'mac'; touch MADE
    writes mac.bin
  build/pick is a script
    writes list.txt
  gap check finds no gaps
  gate build/lint runs: touch LINT
phase ship
  ship/push runs: touch PUSHED
  checkpoint is skipped: its condition is not met
in the end summary.md is written
commands run with `bash -e -o pipefail -O inherit_errexit`
the run would end complete
path: plan → build → ship
files in .lockgate/runs/dry-run/out: linux.bin, list.txt, mac.bin, plan.md, summary.md
";

/// All paths below a directory.
fn below(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            found.insert(entry.path().strip_prefix(folder).unwrap().to_string_lossy().into_owned());
            if entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found
}

/// Writes a test file for `flow.yaml` and runs it.
fn tested(project: &Project, cases: &str) -> Output {
    project.write("flow.test.yaml", format!("workflow: flow.yaml\ncases:\n{cases}"));
    project.run(&["test", "flow.test.yaml"])
}

#[test]
fn a_dry_run_prints_the_path_and_touches_nothing() {
    let project = Project::with(FLOW);
    let folders = tempfile::tempdir().unwrap();
    let (elsewhere, temporary) = (folders.path().join("elsewhere"), folders.path().join("temporary"));
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::create_dir(&temporary).unwrap();
    std::fs::write(elsewhere.join("flow.yaml"), FLOW).unwrap();
    let mut command = project.command(&["run", "flow.yaml", "login", "--dry-run"]);
    without_terminal(&mut command);
    command.current_dir(&elsewhere).env("TMPDIR", &temporary).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), EXPECTED_OUTPUT);
    assert_eq!(below(&elsewhere), ["flow.yaml".to_owned()].into(), "not even .lockgate");
    assert_eq!(below(&temporary), BTreeSet::new(), "its temporary directory is removed");
}

#[test]
fn a_dry_run_leaves_the_project_unchanged_and_needs_no_person() {
    let project = Project::with_terminal_required();
    project.write("flow.yaml", FLOW);
    let before = below(&project.root());
    let came = project.json(2, &["run", "flow.yaml", "--dry-run", "--json", "--answer", "plan=Redo", "--answer", "plan=Stop"]);
    assert_eq!(below(&project.root()), before);
    assert_eq!(came["workflow"], "release");
    assert_eq!(came["status"], "aborted");
    assert_eq!(came["path"], json!(["plan", "plan"]));
    assert_eq!(came["holds"][0]["options"], json!(["Go", "Redo", "Stop"]));
    assert_eq!(came["holds"][0]["answer"], json!({"option": "Redo", "action": "repeat_phase", "feedback": null, "given": true}));
    assert_eq!(came["context"]["phases"]["iteration_counts"]["plan"], 2);
    assert_eq!(came["context"]["outputs"]["plan"]["score"], json!({"score": 1}), "a sample that fits the schema");
}

#[test]
fn a_missing_answer_defaults_to_the_first_option_and_is_marked() {
    let project = Project::with(FLOW);
    let output = project.run(&["run", "flow.yaml", "--dry-run", "--answer", "plan=Redo", "--feedback", "plan=shorter"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let answers: Vec<&str> = output.stdout.lines().filter(|line| line.contains("answered")).map(str::trim).collect();
    assert_eq!(answers, ["answered Redo (as given), with feedback: shorter", "answered Go (the first option)"]);
    assert!(output.stdout.contains("phase plan (execution 2)\n  with feedback: shorter\n"), "{output:?}");
    let unused = project.run(&["run", "flow.yaml", "--dry-run", "--answer", "ship=Continue"]);
    assert!(unused.stdout.ends_with("warning: the answer \"ship=Continue\" was never asked for\n"), "{unused:?}");
}

#[test]
fn an_endless_dry_run_is_stopped_and_reported() {
    let flow = "name: x\nphases:\n  - id: a\n    tasks: [{ id: t, pass: true }]\n    checkpoint:\n      prompt: Again?\n      \
                options: [{ label: Redo, on_select: { action: repeat_phase } }, { label: Go, on_select: { action: continue } }]\n";
    let project = Project::with(flow);
    let output = project.run(&["run", "flow.yaml", "--dry-run"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let reported = "cut short: the hold a opened 20 times, and its first option always leads back to it; answer it with a=OPTION (\"Redo\", \"Go\")\n";
    assert!(output.stdout.contains(reported), "{output:?}");
    assert_eq!(output.stdout.matches("phase a (execution").count(), 19);
    let gaps =
        "name: x\nphases: [{ id: a, tasks: [{ id: t, pass: true }], gap_check: { criteria: [{ name: c, check: 'false' }] } }]\n";
    project.write("gaps.yaml", gaps);
    let output = project.run(&["run", "gaps.yaml", "--dry-run"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stdout.contains("a/gap_check=OPTION (\"Run the phase again\", \"Continue anyway\", \"Abort\")\n"),
        "{output:?}"
    );
    let output = project.run(&["run", "gaps.yaml", "--dry-run", "--answer", "a/gap_check=Continue anyway"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("  gap check counts as passed, as answered\n"), "{output:?}");
}

#[test]
fn scripts_in_a_dry_run_can_fail_and_cannot_write_outside_the_output_directory() {
    let flow = "name: x\nphases: [{ id: a, tasks: [{ id: t, script: \"writeFile('../../up.txt', 'x')\" }] }]\n";
    let project = Project::with(flow);
    let output = project.run(&["run", "flow.yaml", "--dry-run"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stdout.contains("a/t is a script\n    fails: "), "{output:?}");
    assert!(output.stdout.contains("the run would end failed: "), "{output:?}");
}

#[test]
fn a_dry_run_names_the_agent_that_would_be_called() {
    let project = Project::with(FLOW);
    let output = project.run(&["run", "flow.yaml", "login", "--dry-run", "--agent", "touch ASKED"]);
    assert!(output.stdout.contains("plan/draft asks the agent touch ASKED: Write a plan for login. …\n"), "{output:?}");
    assert!(!project.path("ASKED").exists());
    project.write(".lockgate/config.yaml", "agents: { default: claude, writer: ./pen.sh }\n");
    let output = project.run(&["run", "flow.yaml", "login", "--dry-run"]);
    assert!(output.stdout.contains("plan/draft asks the agent writer:"), "{output:?}");
    assert!(output.stdout.contains("plan/score asks the agent default:"), "{output:?}");
}

#[test]
fn cases_with_the_expected_outcome_pass() {
    let project = Project::with(FLOW);
    let output = tested(
        &project,
        "  - name: straight through
    feature: login
    expect:
      path: [plan, build, ship]
      holds: [plan]
      omitted: [plan/extra]
      files: { summary.md: 'release 2', plan.md: , nothing.md: false }
  - name: everything else
    flags: [extra]
    vars: { targets: [bsd] }
    answers: { plan: [{ option: Redo, feedback: shorter }, Go], build/lint: Count as done, ship: Abort }
    outputs:
      plan/draft: [{ result: long }, { files: { plan.md: short } }]
      plan/score: { result: { score: 7 } }
      build/lint: { fail: it says no }
      build/pick: { result: { count: 9 }, files: { list.txt: x, linux.bin: y } }
    expect:
      status: aborted
      path: [plan, plan, build, ship]
      holds: [plan, plan, build/lint, ship]
      omitted: []
      files: { plan.md: short, bsd.bin: 'a stub for' }
      context:
        outputs.build.pick.count: 9
        outputs: { plan: { score: { score: 7 } } }
        checkpoints.0.feedback: shorter
",
    );
    assert_eq!(output.code, Some(0), "{output:?}");
    let reported = "flow.test.yaml\n  ok     straight through (plan → build → ship)\n  ok     everything else (plan → plan → build → ship)\n\
                2 passed, 0 failed\n";
    assert_eq!(output.stdout, reported);
}

#[test]
fn a_case_with_another_outcome_fails_and_shows_the_difference() {
    let project = Project::with(FLOW);
    let output = tested(
        &project,
        "  - name: stops
    answers: { plan: Stop }
    expect: { path: [plan, build], context: { feature.name: login, outputs.none: 1 }, files: { plan.md: secret } }
",
    );
    assert_eq!(output.code, Some(1), "{output:?}");
    let reported = "\
flow.test.yaml
  FAILED stops (line 3)
         status
           expected: complete
           actual:   aborted
         path
           expected: [plan, build]
           actual:   [plan]
         context feature.name
           expected: \"login\"
           actual:   null
         context outputs.none
           expected: 1
           actual:   missing
         file plan.md
           expected: a text with \"secret\"
           actual:   \"This is a stub for the answer of the agent of plan/draft.\\n\"
0 passed, 1 failed
";
    assert_eq!(output.stdout, reported);
}

#[test]
fn unused_stubs_and_answers_fail_a_case() {
    let project = Project::with(FLOW);
    let output = tested(
        &project,
        "  - answers: { plan: [Go, Go], ship: Continue }
    outputs: { plan/drat: { result: x }, build/lint: [{}, { fail: x }] }
    expect: { path: [plan, build, ship] }
",
    );
    assert_eq!(output.code, Some(1), "{output:?}");
    for reported in [
        "the answer plan: Go was never asked for\n           asked: plan\n",
        "the answer ship: Continue was never asked for\n",
        "the stub output for plan/drat was never used\n           did you mean plan/draft?\n",
        "the stub output for build/lint, number 2 was never used\n",
    ] {
        assert!(output.stdout.contains(reported), "{reported}: {output:?}");
    }
}

#[test]
fn stubs_replace_each_attempt_in_order_and_backoffs_are_not_waited_for() {
    let flow = "\
name: x
phases:
  - id: a
    tasks:
      - { id: flaky, run: touch RAN, retry: { attempts: 3, backoff: 1h } }
      - { id: round, agent: writer, prompt: go, until: { condition: \"output === 'enough'\", limit: 5 } }
      - { id: think, script: \"return (await thinkHard('what?')).toUpperCase()\" }
    gap_check:
      criteria: [{ name: done, check: \"!contains_todos(['out.md'])\" }]
      on_failure: { action: retry }
      max_iterations: 3
";
    let project = Project::with(flow);
    let output = tested(
        &project,
        "  - outputs:
      a/flaky: [{ fail: once }, { fail: twice }, { files: { out.md: TODO } }, { files: { out.md: done } }]
      a/round: [{ result: more }, { result: enough }, { result: enough }]
      a/think-thinks-1: { result: aha }
    expect: { path: [a, a], context: { outputs.a.think: AHA, outputs.a.round: enough } }
",
    );
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!project.path("RAN").exists());
}

#[test]
fn an_invalid_test_file_is_reported_with_its_position_and_the_others_still_run() {
    let project = Project::with(FLOW);
    project.write("good.yaml", "workflow: flow.yaml\ncases: [{ expect: { path: [plan, build, ship] } }]\n");
    for (cases, reported) in [
        ("workflow: flow.yaml\ncases: [{ answers: { plan: Gone } }]\n", "wrong.yaml:2:22: \"Gone\" is not an option of \"plan\""),
        (
            "workflow: flow.yaml\ncases: [{ answers: { plann: Go } }]\n",
            "wrong.yaml:2:22: the workflow has no phase or task \"plann\"",
        ),
        ("workflow: flow.yaml\ncases: [{ outputs: { pln/a: {} } }]\n", "wrong.yaml:2:22: the workflow has no phase \"pln\""),
        ("workflow: flow.yaml\ncases: [{ expects: {} }]\n", "a case has no key `expects`"),
        ("workflow: nothing.yaml\ncases: [{}]\n", "nothing.yaml cannot be read: there is no such file"),
        ("workflow: broken.yaml\ncases: [{}]\n", "error[unknown-key]"),
        ("cases", "a file of cases must be a map"),
    ] {
        project.write("wrong.yaml", cases);
        project.write("broken.yaml", "name: x\nphases: [{ id: a, task: [] }]\n");
        let output = project.run(&["test", "wrong.yaml", "good.yaml"]);
        assert_eq!(output.code, Some(4), "{output:?}");
        assert!(output.stderr.contains(reported), "{reported}: {output:?}");
        assert!(output.stdout.ends_with("1 passed, 0 failed, 1 file could not be used\n"), "{output:?}");
    }
    let report = project.json(4, &["test", "wrong.yaml", "good.yaml", "--json"]);
    assert_eq!(report["files"][0]["error"]["code"], "invalid-test-file");
    assert_eq!(report["files"][1]["cases"][0]["path"], json!(["plan", "build", "ship"]));
}

#[test]
fn every_kind_of_work_has_its_documented_json_shape_in_a_dry_run() {
    let project = Project::with(
        "
name: kinds
execution_mode: adaptive
agents: { default: ./agent }
phases:
  - id: one
    tasks:
      - { id: command, run: 'true' }
      - { id: code, script: 'return 1;' }
      - { id: nothing, pass: true }
      - { id: worker, prompt: Do it. }
      - { id: each, for_each: [a, b], run: 'echo {{item}}' }
      - { id: look, verify: { built: it } }
      - { id: choose, decision: { question: Which?, options: [{ id: a, name: A }, { id: b, name: B }] } }
      - { id: click, action: { needed: the link, check: 'true' } }
    subagents:
      adaptive: { script: 'return [];' }
",
    );
    // `json` fails if the output has an undocumented shape.
    let walked = project.json(0, &["run", "flow.yaml", "--dry-run", "--json"]);
    let steps = walked["steps"].as_array().unwrap();
    let works: std::collections::BTreeSet<&str> = steps.iter().filter_map(|step| step["work"].as_str()).collect();
    let expected = ["action", "adaptive", "agent", "decision", "for_each", "pass", "run", "script", "verify"];
    assert_eq!(works.into_iter().collect::<Vec<_>>(), expected, "{walked}");
}
