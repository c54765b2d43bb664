//! EXECUTION-SPEC files: validated, drawn, dry-run and run unchanged (D5); state files checked (D4).

use crate::project::Project;

const SPEC: &str = "---
prd: PRD-009
prd_title: Cashier
workstreams:
  WS1: { name: Data, command: 'mkdir -p out && echo 1 > out/data', outputs: [out/data], gate: there }
  WS2: { name: Page, command: 'cat out/data', depends_on: [WS1] }
  WS3: { name: Text, executor: writer, description: 'Write {{it}} down', depends_on: [WS1] }
execution_phases:
  - { name: 'Phase 1: Data', parallel: [WS1], gates: [there] }
  - { name: 'Phase 2: Rest', parallel: [WS2, WS3], gates: [there] }
gates:
  there: { command: test -s out/data, success_criteria: the data is there }
---
### WS3: Text

Short words.
";

#[test]
fn an_execution_spec_is_recognized_by_its_content_and_read_completely() {
    let project = Project::new();
    project.write("plan-of-work.txt", SPEC);
    let output = project.run(&["validate", "plan-of-work.txt"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "plan-of-work.txt: valid EXECUTION-SPEC\n"), "{output:?}");
    let files = project.json(0, &["validate", "--json", "plan-of-work.txt"]);
    let file = &files[0];
    assert_eq!((&file["format"], &file["valid"]), (&"execution-spec".into(), &true.into()));
    assert_eq!(file["phases"][0], serde_json::json!({"id": "phase-1", "name": "Phase 1: Data", "checkpoint": true}));
    assert_eq!(
        file["tasks"][2],
        serde_json::json!({"id": "WS3", "name": "Text", "phase": "phase-2", "kind": "agent", "needs": []})
    );
    assert_eq!(
        file["gates"][0],
        serde_json::json!({"id": "there-WS1", "name": "there (WS1)", "phase": "phase-1", "task": "WS1", "run": "test -s out/data"})
    );
    assert_eq!(file["gates"][1]["id"], "there");
    let drawn = project.run(&["graph", "plan-of-work.txt", "--mermaid"]);
    assert!(drawn.code == Some(0) && drawn.stdout.contains("WS3"), "{drawn:?}");
    let walked = project.run(&["run", "plan-of-work.txt", "--dry-run"]);
    assert!(walked.code == Some(0) && walked.stdout.contains("path: phase-1 → phase-2"), "{walked:?}");
    assert!(!project.path("out").exists(), "nothing was done");
}

#[test]
fn an_execution_spec_runs_with_agents_as_executors_and_stops_between_its_phases() {
    let project = Project::new();
    project.write("SPEC.md", SPEC);
    project.write("agent.sh", "cat > prompt.txt\n");
    let run = ["run", "SPEC.md", "--agent", "sh agent.sh", "--json"];
    let view = project.json(3, &run);
    assert_eq!(view["holds"][0]["phase"], "phase-1");
    let asked = view["holds"][0]["prompt"].as_str().unwrap_or_default();
    assert!(asked.contains("Next: Phase 2: Rest (WS2 Page, WS3 Text)."), "{asked}");
    let hold = project.waiting_hold();
    project.json(0, &["answer", &hold, "Continue", "--foreground", "--json"]);
    let reported = project.read("prompt.txt");
    assert!(
        reported.contains("# WS3: Text") && reported.contains("Write {{it}} down") && reported.contains("Short words."),
        "{reported}"
    );
    assert!(!project.path(".lockgate/runs").join(project.newest()).join("out/out").exists(), "work happens in the root");
}

#[test]
fn a_spec_that_changed_since_the_run_started_is_asked_about() {
    let project = Project::new();
    project.write("SPEC.md", SPEC.replace("executor: writer", "command: 'true'"));
    project.json(3, &["run", "SPEC.md", "--json"]);
    project.write("SPEC.md", SPEC.replace("executor: writer", "command: 'echo changed > changed.txt'"));
    let run = project.newest();
    let output = project.run(&["resume", &run]);
    assert!(output.code == Some(3) && output.stderr.contains("have changed since it started: SPEC.md"), "{output:?}");
    assert_eq!(project.run(&["resume", &run, "--changed", "accept"]).code, Some(3));
    let hold = project.waiting_hold();
    assert_eq!(project.run(&["answer", &hold, "Continue", "--foreground"]).code, Some(0));
    assert!(project.path("changed.txt").exists());
}

#[test]
fn an_invalid_spec_is_refused_with_the_position_and_nothing_is_written() {
    let project = Project::new();
    project.write("SPEC.md", SPEC.replace("gate: there", "gate: their"));
    let output = project.run(&["run", "SPEC.md"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("error[unknown-gate]: gate `their` is not defined under `gates`"), "{output:?}");
    assert!(output.stderr.contains("SPEC.md:5:") && output.stderr.contains("did you mean `there`?"), "{output:?}");
    assert!(!project.path("out").exists() && !project.path(".lockgate/lockgate.db").exists(), "{output:?}");
}

const STATE: &str = r#"{
  "prd": "PRD-009",
  "prd_title": "Cashier",
  "current_phase": 1,
  "status": "paused",
  "completed_workstreams": ["WS1"],
  "in_progress_workstreams": [],
  "pending_workstreams": ["WS2", "WS3"],
  "artifacts": {"WS1": ["out/data"]},
  "gates_passed": ["there (WS1)"],
  "gates_pending": ["there"],
  "timestamp": "2025-12-11T10:16:00Z",
  "error": null,
  "more": {"kept": true}
}
"#;

#[test]
fn d4_check_names_the_broken_rule_its_position_and_a_fix() {
    let project = Project::new();
    project.write("SPEC.md", SPEC);
    project.write("PRD-009.json", STATE);
    project.write("bad/PRD-009.json", STATE.replace("\"paused\"", "\"pauzed\"").replace("[\"WS2\", \"WS3\"]", "[\"WS2\"]"));
    project.write("cut.json", "{\n  \"prd\": \"PRD-009\",\n}");
    let clean = project.run(&["pipeline", "check", "PRD-009.json", "--spec", "SPEC.md"]);
    assert_eq!((clean.code, clean.stdout.as_str()), (Some(0), "PRD-009.json: clean\n"), "{clean:?}");
    let found = project.run(&["pipeline", "check", "PRD-009.json", "bad/PRD-009.json", "--spec", "SPEC.md"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert_eq!(
        found.stdout,
        "PRD-009.json: clean
bad/PRD-009.json:5:13: status-unknown: `status` is `pauzed`, which is not a known status
  help: did you mean `paused`?
bad/PRD-009.json:8:3: workstreams-differ-from-spec: not in any of the three lists: `WS3`
  help: list every workstream of the EXECUTION-SPEC as completed, in progress or pending
bad/PRD-009.json: 2 findings
"
    );
    let files = project.json(4, &["pipeline", "check", "bad/PRD-009.json", "cut.json", "missing.json", "--json"]);
    assert_eq!(files[0]["findings"][0]["rule"], "status-unknown");
    assert_eq!((&files[1]["error"]["code"], &files[2]["error"]["code"]), (&"not-json".into(), &"unreadable-file".into()));
    assert!(files[1]["error"]["message"].as_str().is_some_and(|message| message.contains("cut.json:3:1 is not JSON")), "{files}");
}

#[test]
fn d4_a_missing_broken_or_unrelated_spec_is_a_clear_error() {
    let project = Project::new();
    project.write("PRD-009.json", STATE);
    project.write("flow.yaml", "name: x\nphases: [{ id: a, tasks: [{ id: t, pass: true }] }]\n");
    project.write("SPEC.md", SPEC.replace("gate: there", "gate: their"));
    for (spec, said) in [
        ("missing.md", "missing.md cannot be read: there is no such file"),
        ("flow.yaml", "flow.yaml is a workflow, not an EXECUTION-SPEC"),
        ("SPEC.md", "gate `their` is not defined under `gates`"),
        ("PRD-009.json", "this is a pipeline state file, not a workflow"),
    ] {
        let output = project.run(&["pipeline", "check", "PRD-009.json", "--spec", spec]);
        assert!(output.code == Some(4) && output.stderr.contains(said), "{output:?}");
    }
}

#[test]
fn conventional_gates_take_their_commands_from_the_settings() {
    let spec = "---\nprd: PRD-077\nworkstreams:\n  WS1: { command: 'true', gate: type-check + lint }\nexecution_phases: [{ name: One, parallel: [WS1] }]\n---\n";
    let project = crate::project::Project::with(spec);
    project.write("EXEC-077.md", spec);
    let checked = project.run(&["validate", "EXEC-077.md"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.stderr.contains("warning[unknown-gate]: gate `type-check` is not defined"), "{checked:?}");
    project.write(".lockgate/config.yaml", "pipelines: { gates: { type-check: 'echo types > types.txt' } }\n");
    assert_eq!(project.run(&["run", "EXEC-077.md"]).code, Some(3), "nothing decides the other one but a person");
    assert_eq!(project.read("types.txt"), "types\n");
    assert!(project.json(0, &["inbox", "--json"])[0]["prompt"].as_str().unwrap().contains("- lint (WS1)"));
    project.write(".lockgate/config.yaml", "pipelines: { gates: { type-check: 'true', lint: 'false' } }\n");
    assert_eq!(project.run(&["run", "EXEC-077.md", "--new"]).code, Some(1), "the gate fails");
    project.write(".lockgate/config.yaml", "pipelines: { gates: { type-check: [a] } }\n");
    assert_eq!(project.run(&["run", "EXEC-077.md", "--new"]).code, Some(4));
}
