//! Agents, fan-outs, gap checks and omitted tasks, as `status`, `why` and `graph` show them.

use crate::project::Project;
use std::os::unix::fs::PermissionsExt;

const FLOW: &str = r#"
name: shown
agents:
  default: { preset: claude, command: ./speaks.sh }
vars: { files: [a, b, c, d, e, f, g, h, i, j] }
phases:
  - id: work
    tasks:
      - { id: write, agent: default, prompt: Write. }
      - { id: lint, for_each: files, run: 'test {{item}} != c', continue_on_error: true }
      - { id: unwanted, when: "false", run: "true" }
    gap_check:
      criteria: [{ name: the report is there, check: "files_exist(['report.md'])" }]
      on_failure: { action: escalate }
    gates: [{ id: tests, run: "true" }]
  - id: explore
    execution_mode: adaptive
    subagents:
      always: [reader]
      adaptive: { script: "return [{ type: 'digger' }]" }
finalization: { template: "done", output: final.md }
"#;

const SPEAKS: &str = r#"#!/bin/sh
cat >/dev/null
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"5e55","total_cost_usd":0.25,"usage":{"input_tokens":1000,"output_tokens":234}}'
"#;

fn project() -> Project {
    let project = Project::with(FLOW);
    project.write("speaks.sh", SPEAKS);
    std::fs::set_permissions(project.path("speaks.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    project
}

#[test]
fn status_shows_agents_fan_outs_gaps_and_skipped_tasks() {
    let project = project();
    assert_eq!(project.run(&["run", "flow.yaml", "shown"]).code, Some(3));
    let view = project.status("shown");
    let task = |id: &str| view["tasks"].as_array().unwrap().iter().find(|task| task["id"] == id).unwrap().clone();
    let write = task("write");
    assert_eq!((&write["agent"]["session"], &write["agent"]["cost_micros"]), (&"5e55".into(), &250_000.into()), "{write:#}");
    assert_eq!(task("lint[c]")["parent"], "lint");
    assert_eq!(task("unwanted")["reason"], "its `when` is false");
    assert_eq!((&view["gap_check"]["status"], &view["gap_check"]["action"]), (&"open".into(), &"escalate".into()));
    let text = project.run(&["status", "shown"]).stdout;
    for part in [
        "done        write  claude · 1,234 tokens · $0.25 · session 5e55\n",
        "tolerated   lint  9/10 done, 1 failed\n",
        "  tolerated   lint[c]: it ended with exit code 1",
        "omitted     unwanted: its `when` is false\n",
        "open        gap check: escalate\n      the report is there\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("lint[a]"), "finished items are only counted: {text}");
}

#[test]
fn why_names_missing_criteria_and_possible_actions() {
    let project = project();
    assert_eq!(project.run(&["run", "flow.yaml", "shown"]).code, Some(3));
    let why = project.run(&["why", "shown"]).stdout;
    for part in ["is incomplete", "! the report is there", "waives the gaps", "\"Continue anyway\""] {
        assert!(why.contains(part), "{part:?} is not in\n{why}");
    }
}

#[test]
fn why_reports_an_exhausted_budget_and_possible_actions() {
    let project = project();
    let flow = FLOW
        .replace("prompt: Write. }", "prompt: Write., budget: { max_cost: 0.2 } }")
        .replace("id: unwanted,", "id: unwanted, needs: [again],");
    let flow = flow.replace(
        "      - { id: lint,",
        "      - { id: again, agent: default, prompt: More., needs: [write] }\n      - { id: lint,",
    );
    project.write("flow.yaml", flow.replace("name: shown", "name: shown\nbudget: { max_cost: 0.2 }"));
    assert_eq!(project.run(&["run", "flow.yaml", "shown"]).code, Some(3));
    let why = project.run(&["why", "shown"]).stdout;
    for part in ["does not allow more work", "! $0.25 of $0.20 spent", "extends the budget", "\"Raise the budget and continue\""]
    {
        assert!(why.contains(part), "{part:?} is not in\n{why}");
    }
    assert!(project.run(&["status", "shown"]).stdout.contains("blocked     again"));
}

#[test]
fn the_graph_distinguishes_agents_fan_outs_scripts_gap_checks_and_the_end() {
    let project = project();
    let drawn = project.run(&["graph", "flow.yaml"]).stdout;
    for part in [
        "write (agent default)",
        "lint × each of vars.files",
        "gap check, else escalate",
        "gate tests",
        "reader (agent)",
        "→ agents chosen by its script",
        "finalization  writes final.md",
    ] {
        assert!(drawn.contains(part), "{part:?} is not in\n{drawn}");
    }
    assert_eq!(project.run(&["run", "flow.yaml", "shown"]).code, Some(3));
    let drawn = project.run(&["graph", "shown"]).stdout;
    for part in ["lint × 10: 9/10 done, 1 failed", "? waiting     gap check", "… pending     finalization"] {
        assert!(drawn.contains(part), "{part:?} is not in\n{drawn}");
    }
    for form in ["--svg", "--mermaid"] {
        let drawn = project.run(&["graph", "flow.yaml", form]).stdout;
        assert!(drawn.contains("gap check, else escalate") && drawn.contains("finalization"), "{drawn}");
    }
}
