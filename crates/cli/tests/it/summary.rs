//! `lockgate summary`: the work, decisions and outputs of a run, from its history.

use crate::project::{Project, user};
use std::os::unix::fs::PermissionsExt;

const FLOW: &str = r#"
name: survey
agents:
  default: { preset: claude, command: ./speaks.sh }
  quiet: { command: ./silent.sh }
vars: { parts: [one, two, three] }
phases:
  - id: optional
    checkpoint:
      prompt: "Leave out\e[2J the | extras?"
      options:
        - { label: Leave them out, on_select: { action: skip_phases, phases: [extras] } }
  - id: extras
    tasks: [{ id: never, run: "exit 1" }]
  - id: work
    tasks:
      - { id: write, agent: default, prompt: Write., output_path: report.md }
      - { id: ponder, agent: quiet, prompt: Think. }
      - { id: each, for_each: parts, run: "true" }
      - { id: unwanted, when: "false", run: "exit 1" }
      - { id: shaky, run: "echo broken pipe; exit 3", continue_on_error: true }
    gap_check:
      criteria: [{ name: the report is there, check: "files_exist(['report.md'])" }]
    checkpoint:
      prompt: Is the report good?
      options:
        - { label: Again, with_feedback: true, on_select: { action: repeat_phase, target: current } }
        - { label: Fine, on_select: { action: continue } }
finalization: { template: "done {{workflow.name}}", output: final.md }
"#;

const SPEAKS: &str = r#"#!/bin/sh
cat >/dev/null
echo '{"type":"system","subtype":"init","session_id":"5e55","model":"big-one"}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"a report","session_id":"5e55","total_cost_usd":0.25,"usage":{"input_tokens":1000,"output_tokens":234}}'
"#;

fn project() -> Project {
    let project = Project::with(FLOW);
    for (name, text) in [("speaks.sh", SPEAKS), ("silent.sh", "#!/bin/sh\ncat >/dev/null\necho hm\n")] {
        project.write(name, text);
        std::fs::set_permissions(project.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    project
}

#[test]
fn a_summary_lists_work_decisions_outputs_skipped_tasks_and_usage() {
    let project = project();
    assert_eq!(project.run(&["run", "flow.yaml", "login"]).code, Some(3));
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "1", "--foreground"]).code, Some(3));
    let again = ["answer", &project.waiting_hold(), "Again", "--feedback", "shorter\nplease", "--foreground"];
    assert_eq!(project.run(&again).code, Some(3));
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Fine", "--foreground"]).code, Some(0));

    let summary = project.json(0, &["summary", "login", "--json"]);
    let executions: Vec<_> = summary["phases"].as_array().unwrap().iter().map(|phase| (&phase["id"], &phase["status"])).collect();
    assert_eq!(executions.len(), 4, "{summary:#}");
    assert_eq!(executions[1], (&"extras".into(), &"skipped".into()));
    assert_eq!(executions[2], (&"work".into(), &"repeated".into()));
    assert_eq!(executions[3], (&"work".into(), &"complete".into()));
    let task = |execution: usize, id: &str| {
        let tasks = summary["phases"][execution]["tasks"].as_array().unwrap();
        tasks.iter().find(|task| task["id"] == id).unwrap_or_else(|| panic!("no {id}: {summary:#}")).clone()
    };
    let write = task(3, "write");
    assert_eq!(write["attempts"][0]["agent"]["session"], "5e55");
    assert_eq!(write["attempts"][0]["agent"]["model"], "big-one");
    assert_eq!((&write["usage"]["tokens"], &write["usage"]["cost_micros"]), (&1234.into(), &250_000.into()));
    let ponder = task(3, "ponder");
    assert_eq!((&ponder["usage"]["tokens"], &ponder["usage"]["unknown_tokens"]), (&serde_json::Value::Null, &1.into()));
    assert_eq!(task(2, "each[two]")["parent"], "each");
    assert_eq!(summary["usage"]["calls"], 4);
    assert_eq!((&summary["usage"]["tokens"], &summary["usage"]["unknown_tokens"]), (&2468.into(), &2.into()));
    let decided: Vec<_> = summary["decisions"].as_array().unwrap().iter().map(|asked| asked["answer"].clone()).collect();
    assert_eq!(decided, ["Leave them out", "Again", "Fine"]);
    assert_eq!(summary["decisions"][1]["by"]["name"], user());
    assert_eq!(summary["deliverables"].as_array().unwrap().len(), 1, "the same file twice is one file");
    assert_eq!(summary["finalization"]["path"], "final.md");
    assert_eq!(summary["gap_checks"][1]["status"], "complete");
    let waited: u64 = summary["decisions"].as_array().unwrap().iter().map(|asked| asked["waited_ms"].as_u64().unwrap()).sum();
    assert_eq!(summary["waited_ms"], waited, "nothing else was running");
    assert!(summary["duration_ms"].as_u64() >= summary["waited_ms"].as_u64());

    let text = project.run(&["summary", "login"]).stdout;
    for part in [
        "# survey (login): complete",
        "of waiting for people",
        "### work, execution 2: complete after ",
        "Repeated with feedback: shorter\n  please",
        "| write | done | 1 | ",
        "claude (big-one), session 5e55 | 1,234 | $0.25 |",
        "| quiet | unknown | unknown |",
        "- checkpoint in optional: Leave out␛[2J the \\| extras?",
        &format!("  - **Again** by {} by command, after ", user()),
        "| report.md | 9 B | work/write |",
        "| final.md | 11 B | finalization |",
        "## Deviations\n\n",
        "- work/unwanted (execution 2) was left out: its `when` is false",
        "- work/shaky failed, and the run continued without it: ",
        "4 calls of agents; tokens: 2,468 and 2 × unknown; cost: $0.50 and 2 × unknown.",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains('\x1b'), "{text:?}");
}

#[test]
fn a_summary_of_a_waiting_run_names_what_it_waits_for_and_has_no_end_time() {
    let project = project();
    assert_eq!(project.run(&["run", "flow.yaml", "login"]).code, Some(3));
    let summary = project.json(0, &["summary", "login", "--json"]);
    assert_eq!((&summary["status"], &summary["ended_at"]), (&"waiting".into(), &serde_json::Value::Null));
    assert_eq!(summary["decisions"][0]["state"], "open");
    let text = project.run(&["summary", "login"]).stdout;
    assert!(text.contains("So far it took") && text.contains("  - no answer yet, for "), "{text}");
}
