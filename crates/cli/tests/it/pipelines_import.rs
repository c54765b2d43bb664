//! State files of other tools: imported, resumed, and written again with every key and value.

use crate::pipelines::{FILE, SPEC, file, pipeline};
use crate::project::Project;
use serde_json::{Map, Value, json};

/// A state file as another tool might write it after the first phase.
fn foreign(status: &str) -> Value {
    json!({
        "owner": {"team": "payments", "since": 2024.5},
        "prd_id": "PRD-009",
        "title": "Cashier Workflows",
        "status": status,
        "current_phase": 1,
        "completed_workstreams": [{"id": "WS1", "by": "agent-7"}],
        "in_progress_workstreams": [],
        "pending_workstreams": ["WS2", "WS3", "WS4"],
        "artifacts": {"WS1": {"created": ["db/old.sql"]}, "docs": ["notes.md"]},
        "gates_passed": ["schema (WS1)"],
        "gates_pending": ["lint (WS3)", "types", "tests"],
        "updated_at": "2025-12-11T10:16:00Z",
        "approval": null,
        "eslint_fixes": [{"file": "x.ts", "change": "unused"}]
    })
}

fn import(project: &Project, state: &Value, more: &[&str]) -> Value {
    project.write("states/old.json", serde_json::to_string_pretty(state).unwrap());
    let arguments: Vec<&str> =
        ["pipeline", "import", "states/old.json", "--json"].into_iter().chain(more.iter().copied()).collect();
    project.json(0, &arguments)
}

/// Checks that a document has every key of another one with its value, in the same order.
fn keeps(now: &Value, before: &Value) -> Result<(), String> {
    let (now, before): (&Map<_, _>, &Map<_, _>) = (now.as_object().unwrap(), before.as_object().unwrap());
    let order: Vec<&String> = now.keys().filter(|key| before.contains_key(*key)).collect();
    if order != before.keys().collect::<Vec<_>>() {
        return Err(format!("the order is {order:?}"));
    }
    match before.iter().find(|(key, value)| now.get(*key) != Some(value)) {
        Some((key, value)) => Err(format!("{key} was {value}, and is {:?}", now.get(key))),
        None => Ok(()),
    }
}

#[test]
fn an_imported_state_file_is_exported_with_every_key_and_value() {
    for status in ["initialized", "in_progress", "paused", "failed", "complete", "in-progress", "mostly done"] {
        let project = pipeline();
        let state = foreign(status);
        let made = import(&project, &state, &["--spec", "spec.md"]);
        assert!(made["notes"].as_array().is_some_and(|reported| !reported.is_empty()), "{made}");
        let exported: Value =
            serde_json::from_str(&project.run(&["pipeline", "export", "PRD-009", "--format", "pipeline"]).stdout).unwrap();
        keeps(&exported, &state).unwrap_or_else(|why| panic!("{status}: {why}: {exported:#}"));
        keeps(&file(&project), &state).unwrap_or_else(|why| panic!("{status}: {why}"));
        assert_eq!((&exported["prd"], &exported["prd_title"]), (&json!("PRD-009"), &json!("Cashier Workflows")));
    }
}

#[test]
fn an_imported_run_continues_without_repeating_finished_work() {
    let project = pipeline();
    import(&project, &foreign("paused"), &["--spec", "spec.md"]);
    let output = project.run(&["resume", "PRD-009", "--continue", "--answer", "phase-2=Continue"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.stderr.contains("Resuming PRD-009 from Phase 2\n\nCompleted:\n  WS1: Database Layer ✅\n"),
        "{}",
        output.stderr
    );
    assert!(!project.path("db").exists(), "WS1 was done before");
    assert!(!output.stderr.contains("a person said so"), "no person did: {}", output.stderr);
    let said = file(&project);
    assert_eq!((&said["status"], &said["current_phase"]), (&json!("complete"), &json!(3)));
    assert_eq!(said["completed_workstreams"], json!(["WS1", "WS2", "WS3", "WS4"]));
    assert_eq!(said["gates_passed"], json!(["schema (WS1)", "lint (WS3)", "types", "tests"]));
    let kept = ["owner", "prd_id", "title", "updated_at", "approval", "eslint_fixes"];
    kept.iter().for_each(|key| assert_eq!(said[key], foreign("paused")[key], "{key}"));
    assert_eq!(said["artifacts"], foreign("paused")["artifacts"]);
    assert_eq!(said.as_object().unwrap().keys().next().unwrap(), "owner", "in its original position");
}

#[test]
fn a_fresh_import_looks_the_same_in_every_view_and_needs_a_configured_agent() {
    let project = pipeline();
    import(&project, &foreign("paused"), &[]);
    let runs = project.json(0, &["runs", "--json"]);
    let status = project.json(0, &["status", "PRD-009", "--json"]);
    let why = project.json(0, &["why", "PRD-009", "--json"]);
    for said in [&runs[0]["status"], &status["status"], &why["status"]] {
        assert_eq!(said, "waiting", "{runs} {status} {why}");
    }
    assert_eq!(status["pipeline"]["status"], "paused");
    assert_eq!(why["reasons"].as_array().map(Vec::len), Some(1), "{why}");
    let mut gates: Vec<(String, String)> = Vec::new();
    for phase in status["pipeline"]["phases"].as_array().unwrap() {
        let own = phase["workstreams"].as_array().unwrap().iter().flat_map(|stream| stream["gates"].as_array().unwrap());
        for gate in own.chain(phase["gates"].as_array().unwrap()) {
            gates.push((gate["name"].to_string(), gate["status"].to_string()));
        }
    }
    for (index, (name, _)) in gates.iter().enumerate() {
        assert!(!gates[..index].iter().any(|(other, _)| other == name), "{name} is shown twice: {gates:?}");
    }
    let refused = project.run(&["resume", "PRD-009", "--continue"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(
        refused.stderr.contains("error[agent-not-configured]") && refused.stderr.contains("agents: { default: claude }"),
        "{refused:?}"
    );
    assert!(!refused.stderr.contains("started"), "nothing starts: {refused:?}");
    assert_eq!(project.json(0, &["status", "PRD-009", "--json"])["status"], "waiting");
}

#[test]
fn each_status_is_resumed_as_the_reference_format_specifies() {
    let resume = |status: &str, more: &[&str]| {
        let project = pipeline();
        let mut state = foreign(status);
        if status == "failed" {
            state["error"] = json!({"workstream": "WS2", "message": "it broke", "file": "a.ts", "line": 4});
        }
        if status == "in_progress" {
            state["in_progress_workstreams"] = json!(["WS2"]);
            state["pending_workstreams"] = json!(["WS3", "WS4"]);
        }
        import(&project, &state, &["--spec", "spec.md"]);
        let arguments: Vec<&str> = ["resume", "PRD-009"].into_iter().chain(more.iter().copied()).collect();
        project.run(&arguments)
    };
    let complete = resume("complete", &[]);
    assert_eq!((complete.code, complete.stderr.contains("PRD-009 already complete")), (Some(4), true), "{complete:?}");
    let failed = resume("failed", &[]);
    assert_eq!((failed.code, failed.stderr.contains("PRD-009 failed: WS2: it broke (a.ts:4)")), (Some(3), true), "{failed:?}");
    assert_eq!(resume("failed", &["--fixed"]).code, Some(3), "it continues to the next question");
    let running = resume("in_progress", &[]);
    assert_eq!((running.code, running.stderr.contains("no process here drives it")), (Some(3), true), "{running:?}");
    for choice in ["--continue", "--restart"] {
        let output = resume("in_progress", &[choice]);
        assert!(output.code == Some(3) && output.stderr.contains("WS3 done"), "{choice}: {output:?}");
    }
    let paused = resume("paused", &[]);
    assert!(paused.stderr.contains("last gate passed: schema (WS1)"), "{paused:?}");
    assert_eq!((paused.code, paused.stderr.contains("error[resume-flag-required]")), (Some(3), true), "{paused:?}");
    assert!(!paused.stderr.contains("started"), "no one continued it: {paused:?}");
    let approved = resume("paused", &["--continue"]);
    assert!(approved.code == Some(3) && approved.stderr.contains("WS3 done"), "{approved:?}");
    let initialized = resume("initialized", &[]);
    assert!(initialized.stderr.contains("phase-2/WS2 started"), "{initialized:?}");
}

#[test]
fn a_task_can_neither_import_nor_resume_an_imported_run() {
    let project = pipeline();
    project.write("fine.json", foreign("paused").to_string());
    project.write(
        "attack.yaml",
        "name: attack\nphases:\n  - id: act\n    tasks: [{ id: try, run: 'sh attempt.sh > said 2>&1 || echo code $? >> said' }]\n",
    );
    let attempt = |command: &str| {
        project.write("attempt.sh", format!("\"$LOCKGATE\" {command}\n"));
        assert_eq!(project.run(&["run", "attack.yaml"]).code, Some(0));
        let said = project.read("said");
        assert!(said.contains("inside task") && said.contains("code 3"), "{command}: {said}");
    };
    attempt("pipeline import fine.json --spec spec.md");
    let refused = project.events(&project.newest(), "attempt_refused");
    assert_eq!(refused[0]["what"], "import a state file");
    import(&project, &foreign("paused"), &["--spec", "spec.md"]);
    attempt("resume PRD-009 --continue");
    assert_eq!(file(&project)["status"], "paused");
}

#[test]
fn a_state_file_at_its_default_location_is_imported_in_place() {
    let project = pipeline();
    project.write(FILE, foreign("paused").to_string());
    assert_eq!(project.run(&["pipeline", "import", FILE, "--spec", "spec.md"]).code, Some(0));
    keeps(&file(&project), &foreign("paused")).unwrap();
    let again = project.run(&["pipeline", "import", FILE, "--spec", "spec.md"]);
    assert_eq!((again.code, again.stderr.contains("error[pipeline-exists]")), (Some(4), true), "{again:?}");
}

#[test]
fn without_a_spec_the_workstreams_come_from_the_state_file() {
    let project = Project::new();
    let output = project.run(&["pipeline", "import", "gone.json"]);
    assert_eq!((output.code, project.path(".claude").exists()), (Some(4), false));
    let made = import(&project, &foreign("complete"), &[]);
    assert_eq!((&made["status"], &made["spec"]), (&json!("complete"), &Value::Null));
    keeps(&file(&project), &foreign("complete")).unwrap();
    assert_eq!(project.run(&["resume", "PRD-009"]).code, Some(4));
}

#[test]
fn an_unknown_pending_gate_is_decided_by_a_person() {
    let project = pipeline();
    let mut state = foreign("paused");
    state["gates_pending"].as_array_mut().unwrap().push(json!("rls"));
    state["adversarial_review"] = json!({"verdict": "ship_with_gates", "by": "someone"});
    let output = import(&project, &state, &["--spec", "spec.md"]);
    assert_eq!(output["status"], "paused");
    keeps(&file(&project), &state).unwrap();
    let resumed = project.run(&["resume", "PRD-009", "--continue", "--answer", "phase-2=Continue"]);
    assert_eq!(resumed.code, Some(3), "{resumed:?}");
    assert_eq!((&file(&project)["status"], &file(&project)["gates_pending"]), (&json!("paused"), &json!(["rls"])));
    assert_eq!(project.run(&["resume", "PRD-009", "--continue"]).code, Some(0));
    assert_eq!((&file(&project)["status"], &file(&project)["gates_pending"]), (&json!("complete"), &json!([])));
    assert_eq!(file(&project)["adversarial_review"], state["adversarial_review"]);
}

#[test]
fn a_blocking_review_still_blocks_after_an_import() {
    let project = pipeline();
    let mut state = foreign("initialized");
    state["completed_workstreams"] = json!([]);
    state["pending_workstreams"] = json!(["WS1", "WS2", "WS3", "WS4"]);
    state["adversarial_review"] = json!({"verdict": "do_not_ship", "p0_count": 1, "p1_count": 0, "attempt": 2});
    import(&project, &state, &["--spec", "spec.md"]);
    let resumed = project.run(&["resume", "PRD-009"]);
    assert_eq!((resumed.code, resumed.stderr.contains("started")), (Some(3), false), "{resumed:?}");
    let again = project.run(&["pipeline", "review", "PRD-009", "--verdict", "ship"]);
    assert_eq!(again.code, Some(4), "two were filed: {again:?}");
}

#[test]
fn a_failed_import_is_reported_and_writes_nothing() {
    let project = pipeline();
    project.write("list.json", "[1]");
    project.write("cut.json", "{\n  \"prd\": \"PRD-009\",\n");
    project.write("other.json", foreign("paused").to_string().replace("PRD-009", "PRD-010"));
    project.write("fine.json", foreign("paused").to_string());
    project.write("more.json", foreign("paused").to_string().replace("WS4", "WS 9"));
    project.write("broken.md", SPEC.replace("gate: schema", "gate: shema"));
    for (arguments, reported) in [
        (vec!["pipeline", "import", "list.json"], "error[not-json]: list.json:1:1"),
        (vec!["pipeline", "import", "cut.json"], "error[not-json]: cut.json:3"),
        (vec!["pipeline", "import", "other.json", "--spec", "spec.md"], "is for PRD-010, but the EXECUTION-SPEC is for PRD-009"),
        (vec!["pipeline", "import", "more.json", "--spec", "spec.md"], "workstreams that are not defined: WS 9"),
        (vec!["pipeline", "import", "more.json"], "workstreams that are not defined: WS 9"),
        (vec!["pipeline", "import", "fine.json", "--spec", "gone.md"], "gone.md"),
        (vec!["pipeline", "import", "fine.json", "--spec", "broken.md"], "error[invalid-workflow]"),
    ] {
        let output = project.run(&arguments);
        assert_eq!(output.code, Some(4), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(reported), "{arguments:?}: {}", output.stderr);
    }
    assert!(!project.path(".claude").exists());
    assert_eq!(project.json(0, &["runs", "--json"]), json!([]));
}
