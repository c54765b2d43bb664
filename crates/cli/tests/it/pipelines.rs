//! Pipelines as people run them: state files, parallel workstreams, failures, reviews, notes, and one run per pipeline.

use crate::project::{Project, finish, signal, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The default path of the state file.
pub(crate) const FILE: &str = ".claude/skills/build-pipeline/checkpoints/PRD-009.json";

/// WS1 with its own gate; then WS2 and WS3, which wait for each other; then WS4.
pub(crate) const SPEC: &str = r#"---
prd: PRD-009
prd_title: Cashier Workflows
workstreams:
  WS1:
    name: Database Layer
    command: mkdir -p db && echo schema > db/cash.sql
    outputs: [db/cash.sql]
    gate: schema
  WS2:
    name: Service Layer
    command: touch ws2 && until test -e ws3; do sleep 0.02; done
    depends_on: [WS1]
  WS3:
    name: Route Handlers
    command: touch ws3 && until test -e ws2; do sleep 0.02; done; test ! -e broken || { cat broken; exit 2; }
    depends_on: [WS1]
    gate: lint
  WS4:
    name: Tests
    command: touch ws4
    depends_on: [WS2, WS3]
execution_phases:
  - { name: 'Phase 1: Foundation', parallel: [WS1] }
  - { name: 'Phase 2: Services', parallel: [WS2, WS3], gates: [types] }
  - { name: 'Phase 3: Quality', parallel: [WS4], gates: [tests] }
gates:
  schema: { command: test -s db/cash.sql }
  lint: { command: 'test ! -e dirty' }
  types: { command: 'true' }
  tests: { command: test -e ws4 }
on_complete: echo "$LOCKGATE_RUN" > roadmap
---
"#;

/// A project with the pipeline in `spec.md`.
pub(crate) fn pipeline() -> Project {
    let project = Project::new();
    project.write("spec.md", SPEC);
    project
}

/// The contents of the state file.
pub(crate) fn file(project: &Project) -> Value {
    serde_json::from_str(&project.read(FILE)).unwrap_or_else(|error| panic!("{error}: {:?}", project.read(FILE)))
}

pub(crate) fn lists(file: &Value) -> [String; 4] {
    let joined = |key: &str| {
        let list = file[key].as_array().unwrap_or_else(|| panic!("{key} is not a list: {file}"));
        list.iter().map(|id| id.as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    [
        file["status"].as_str().unwrap().to_owned(),
        joined("completed_workstreams"),
        joined("in_progress_workstreams"),
        joined("pending_workstreams"),
    ]
}

#[test]
fn a_pipeline_pauses_after_each_phase_and_records_it_in_its_state_file() {
    let project = pipeline();
    let output = project.run(&["run", "spec.md"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    let said = file(&project);
    assert_eq!(lists(&said), ["paused", "WS1", "", "WS2 WS3 WS4"]);
    assert_eq!(said["current_phase"], 1);
    assert_eq!(said["artifacts"], json!({"WS1": ["db/cash.sql"]}));
    assert_eq!(
        (&said["gates_passed"], &said["gates_pending"]),
        (&json!(["schema (WS1)"]), &json!(["lint (WS3)", "types", "tests"]))
    );
    let output = project.run(&["resume", "PRD-009", "--continue"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    let reported = "PRD-009 is paused; last gate passed: schema (WS1)\nResuming PRD-009 from Phase 2\n\nCompleted:\n  WS1: Database Layer ✅\n\nPending:\n  WS2: Service Layer\n  WS3: Route Handlers\n  WS4: Tests\n";
    assert!(output.stderr.contains(reported), "{}", output.stderr);
    assert_eq!(lists(&file(&project)), ["paused", "WS1 WS2 WS3", "", "WS4"]);
    assert_eq!(project.run(&["resume", "PRD-009", "--continue"]).code, Some(0));
    let said = file(&project);
    assert_eq!(lists(&said), ["complete", "WS1 WS2 WS3 WS4", "", ""]);
    assert_eq!((&said["gates_pending"], &said["current_phase"]), (&json!([]), &json!(3)));
    assert!(!project.read("roadmap").is_empty(), "the command at the end ran");
}

#[test]
fn workstreams_of_a_phase_run_in_parallel() {
    // Each of the two waits until the other has started.
    let project = pipeline();
    let output = project.run(&["run", "spec.md", "--answer", "phase-1=Continue", "--answer", "phase-2=Continue"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let kinds: Vec<(String, String)> = project
        .log("PRD-009")
        .iter()
        .filter(|event| event["phase"] == "phase-2" && event["task"].is_string())
        .map(|event| (event["type"].as_str().unwrap().to_owned(), event["task"].as_str().unwrap().to_owned()))
        .collect();
    let started = |task: &str| ("task_started".to_owned(), task.to_owned());
    assert_eq!(kinds[..2], [started("WS2"), started("WS3")]);
}

#[test]
fn a_failed_workstream_lets_the_others_finish_and_names_file_and_line() {
    let project = pipeline();
    project.write(
        "broken",
        "services/player/index.ts(45,7): error TS2339: Property 'player_id' does not exist on type 'PlayerDTO'\n",
    );
    let output = project.run(&["run", "spec.md", "--answer", "phase-1=Continue"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let on = format!("lockgate resume {} --fixed", project.newest());
    assert!(output.stderr.contains(&on) && project.run(&["why", "PRD-009"]).stdout.contains(&on), "{output:?}");
    let said = file(&project);
    assert_eq!(lists(&said), ["failed", "WS1 WS2", "", "WS3 WS4"]);
    let expected = json!({
        "workstream": "WS3",
        "message": "Property 'player_id' does not exist on type 'PlayerDTO'",
        "file": "services/player/index.ts",
        "line": 45
    });
    assert_eq!(said["error"], expected);
    let status = project.run(&["status", "PRD-009"]).stdout;
    assert!(
        status.contains("failed: WS3: Property 'player_id' does not exist on type 'PlayerDTO' (services/player/index.ts:45)"),
        "{status}"
    );

    let refused = project.run(&["resume", "PRD-009"]);
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("error[resume-flag-required]") && refused.stderr.contains("--fixed"), "{}", refused.stderr);
    std::fs::remove_file(project.path("broken")).unwrap();
    let output = project.run(&["resume", "PRD-009", "--fixed"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert_eq!(lists(&file(&project)), ["paused", "WS1 WS2 WS3", "", "WS4"]);
    assert_eq!(file(&project)["error"], Value::Null);
    let attempts: Vec<Value> =
        project.events("PRD-009", "task_started").into_iter().filter(|event| event["task"] == "WS2").collect();
    assert_eq!(attempts.len(), 1, "finished work is not repeated");
}

#[test]
fn only_the_failed_gate_of_a_workstream_reruns() {
    let project = pipeline();
    project.write("dirty", "");
    assert_eq!(project.run(&["run", "spec.md", "--answer", "phase-1=Continue"]).code, Some(1));
    let said = file(&project);
    assert_eq!(lists(&said), ["failed", "WS1 WS2", "", "WS3 WS4"]);
    assert_eq!(said["error"]["workstream"], "WS3");
    std::fs::remove_file(project.path("dirty")).unwrap();
    assert_eq!(project.run(&["resume", "PRD-009", "--fixed"]).code, Some(3));
    assert_eq!(project.events("PRD-009", "gate_started").iter().filter(|event| event["gate"] == "lint-WS3").count(), 2);
    assert_eq!(project.events("PRD-009", "task_started").iter().filter(|event| event["task"] == "WS3").count(), 1);
    let gates = &project.status("PRD-009")["pipeline"]["phases"][1]["workstreams"][1]["gates"];
    assert_eq!(
        (&gates[0]["name"], &gates[0]["status"], &gates[0]["attempts"]),
        (&json!("lint (WS3)"), &json!("passed"), &json!(2))
    );
    assert!(gates[0]["log"].is_string() && gates[0]["duration_ms"].is_u64(), "{gates}");
}

#[test]
fn a_stopped_pipeline_is_paused_and_a_killed_one_is_recovered() {
    let project = pipeline();
    project.write("spec.md", SPEC.replace("touch ws3 &&", "until test -e go; do sleep 0.02; done; touch ws3;"));
    let running = project.start(&["run", "spec.md", "--answer", "phase-1=Continue"]);
    until("the start of WS3", || {
        project.path("ws2").exists() && file(&project)["in_progress_workstreams"] == json!(["WS2", "WS3"])
    });
    let driven = project.run(&["resume", "PRD-009", "--continue"]);
    assert_eq!(driven.code, Some(3), "a living owner is named: {driven:?}");
    assert!(
        driven.stderr.contains("error[driven-elsewhere]") && driven.stderr.contains(&running.id().to_string()),
        "{}",
        driven.stderr
    );
    signal(&running, Signal::INT);
    assert_eq!(finish(running).code, Some(130));
    assert_eq!(lists(&file(&project)), ["paused", "WS1", "", "WS2 WS3 WS4"]);

    let running = project.start(&["resume", "PRD-009", "--continue"]);
    until("the restart of both", || file(&project)["in_progress_workstreams"] == json!(["WS2", "WS3"]));
    signal(&running, Signal::KILL);
    finish(running);
    assert_eq!(file(&project)["status"], "in_progress");
    let refused = project.run(&["resume", "PRD-009"]);
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("PRD-009 was working on WS2, WS3 when the process that drove it"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--continue") && refused.stderr.contains("--restart"), "{}", refused.stderr);
    project.write("go", "");
    let output = project.run(&["resume", "PRD-009", "--restart"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert_eq!(lists(&file(&project)), ["paused", "WS1 WS2 WS3", "", "WS4"]);
    assert_eq!(project.status("PRD-009")["phases"][1]["iteration"], 2);
}

#[test]
fn each_pipeline_has_one_run_unless_a_new_one_is_requested() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    let first = project.newest();
    let refused = project.run(&["run", "spec.md"]);
    assert_eq!(refused.code, Some(4));
    assert!(refused.stderr.contains("error[pipeline-exists]: PRD-009 already has a run"), "{}", refused.stderr);
    assert_eq!(project.newest(), first, "nothing was started");
    project.write("db/cash.sql", "");
    assert_eq!(project.run(&["run", "spec.md", "--new"]).code, Some(3));
    assert_ne!(project.newest(), first);
    let folder = project.path(FILE).parent().unwrap().join("archive");
    let kept: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
    assert_eq!(kept.len(), 1, "the old file is archived");
    // Changes to the old run no longer affect the file.
    let before = project.read(FILE);
    assert_eq!(project.run(&["cancel", &first]).code, Some(0));
    assert_eq!(project.read(FILE), before);

    let other = pipeline();
    other.write(FILE, "{}");
    let refused = other.run(&["run", "spec.md"]);
    assert_eq!(refused.code, Some(4));
    assert!(refused.stderr.contains("lockgate pipeline import"), "{}", refused.stderr);
    assert_eq!(other.read(FILE), "{}");
}

#[test]
fn a_complete_pipeline_cannot_be_resumed() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md", "--answer", "phase-1=Continue", "--answer", "phase-2=Continue"]).code, Some(0));
    let refused = project.run(&["resume", "PRD-009"]);
    assert_eq!(refused.code, Some(4));
    assert!(refused.stderr.contains("PRD-009 already complete"), "{}", refused.stderr);
}

#[test]
fn a_pipeline_starts_only_after_a_review_permits_it() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md", "--review"]).code, Some(3));
    assert_eq!(lists(&file(&project)), ["initialized", "", "", "WS1 WS2 WS3 WS4"]);
    assert!(project.run(&["why", "PRD-009"]).stdout.contains("it starts only after a review permits it"));
    let filed =
        project.json(1, &["pipeline", "review", "PRD-009", "--verdict", "do_not_ship", "--p0", "2", "--p1", "1", "--json"]);
    assert_eq!((&filed["verdict"], &filed["attempt"]), (&json!("do_not_ship"), &json!(1)));
    let said = file(&project);
    assert_eq!(lists(&said), ["initialized", "", "", "WS1 WS2 WS3 WS4"]);
    assert_eq!(said["adversarial_review"], json!({"verdict": "do_not_ship", "p0_count": 2, "p1_count": 1, "attempt": 1}));
    assert_eq!(project.run(&["resume", "PRD-009"]).code, Some(1));
    assert_eq!(project.run(&["pipeline", "review", "PRD-009", "--verdict", "do_not_ship", "--p0", "1"]).code, Some(1));
    let spent = project.run(&["pipeline", "review", "PRD-009", "--verdict", "ship"]);
    assert_eq!(spent.code, Some(4));
    assert!(spent.stderr.contains("2 reviews were filed"), "{}", spent.stderr);
    assert_eq!(project.run(&["pipeline", "review", "PRD-009", "--override", ""]).code, Some(4));
    assert_eq!(project.run(&["pipeline", "review", "PRD-009", "--override", "the pilot is tomorrow"]).code, Some(0));
    let review = file(&project)["adversarial_review"].clone();
    let expected =
        json!({"verdict": "overridden", "p0_count": 1, "p1_count": 0, "attempt": 2, "override_reason": "the pilot is tomorrow"});
    assert_eq!(review, expected);
    assert_eq!(project.run(&["resume", "PRD-009"]).code, Some(3));
    assert_eq!(lists(&file(&project)), ["paused", "WS1", "", "WS2 WS3 WS4"]);
    assert_eq!(project.run(&["pipeline", "review", "PRD-009", "--verdict", "ship"]).code, Some(4), "it has started");
}

#[test]
fn gates_of_a_review_must_pass_before_the_pipeline_is_complete() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md", "--review"]).code, Some(3));
    assert_eq!(project.run(&["pipeline", "review", "PRD-009", "--verdict", "ship_with_gates"]).code, Some(4));
    let gate = ["pipeline", "review", "PRD-009", "--verdict", "ship_with_gates", "--p1", "1", "--gate", "rls=test -e checked"];
    assert_eq!(project.run(&gate).code, Some(0));
    let answers = ["resume", "PRD-009", "--answer", "phase-1=Continue", "--answer", "phase-2=Continue"];
    assert_eq!(project.run(&answers).code, Some(1));
    assert_eq!(file(&project)["gates_pending"], json!(["rls"]));
    project.write("checked", "");
    assert_eq!(project.run(&["resume", "PRD-009", "--fixed"]).code, Some(0));
    assert_eq!(lists(&file(&project)), ["complete", "WS1 WS2 WS3 WS4", "", ""]);
}

#[test]
fn an_agent_may_file_a_review_and_not_override_one() {
    let project = pipeline();
    project.write(
        "agent.yaml",
        r#"
name: reviewer
phases:
  - id: look
    tasks:
      - { id: overrides, run: '"$LOCKGATE" pipeline review PRD-009 --override "I say so" || test $? = 3' }
      - { id: files, needs: [overrides], run: '"$LOCKGATE" pipeline review PRD-009 --verdict ship' }
"#,
    );
    assert_eq!(project.run(&["run", "spec.md", "--review"]).code, Some(3));
    let output = project.run(&["run", "agent.yaml"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(file(&project)["adversarial_review"]["verdict"], "ship");
}

#[test]
fn notes_are_added_and_existing_notes_kept() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    let mut said = file(&project);
    said["key_fixes"] = json!([{"file": "a.ts", "change": "by hand"}]);
    project.write(FILE, said.to_string());
    let note = [
        "pipeline",
        "note",
        "PRD-009",
        "--key-fix",
        "b.ts=null check",
        "--eslint-fix",
        "c.ts=unused",
        "--cleanup",
        "old mocks",
        "--json",
    ];
    let noted = project.json(0, &note);
    assert_eq!(noted["noted"]["cleanup_done"], json!(["old mocks"]));
    let said = file(&project);
    let fixes = json!([{"file": "a.ts", "change": "by hand"}, {"file": "b.ts", "change": "null check"}]);
    assert_eq!((&said["key_fixes"], &said["cleanup_done"]), (&fixes, &json!(["old mocks"])));
    assert_eq!(said["eslint_fixes"], json!([{"file": "c.ts", "change": "unused"}]));
    assert_eq!(project.run(&["pipeline", "note", "PRD-009"]).code, Some(4));
    assert_eq!(project.run(&["pipeline", "note", "PRD-009", "--key-fix", "nothing"]).code, Some(4));
}

#[test]
fn pipeline_commands_refuse_other_runs() {
    let project = Project::with("name: plain\nphases: [{ id: a, tasks: [{ id: t, pass: true }] }]\n");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    let run = project.newest();
    for arguments in [
        vec!["pipeline", "note", run.as_str(), "--cleanup", "x"],
        vec!["pipeline", "review", run.as_str(), "--verdict", "ship"],
        vec!["pipeline", "export", run.as_str(), "--format", "pipeline"],
        vec!["resume", run.as_str(), "--fixed"],
    ] {
        let output = project.run(&arguments);
        assert_eq!(output.code, Some(4), "{arguments:?}");
        assert!(
            output.stderr.contains("not a pipeline") || output.stderr.contains("complete"),
            "{arguments:?}: {}",
            output.stderr
        );
    }
    assert_eq!(project.run(&["run", "flow.yaml", "--new"]).code, Some(4));
    assert!(!project.path(".claude").exists());
}

#[test]
fn an_aborted_pipeline_is_resumed_at_the_gate_where_it_was_aborted() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md", "--answer", "phase-1=Abort"]).code, Some(2));
    assert_eq!(lists(&file(&project)), ["paused", "WS1", "", "WS2 WS3 WS4"]);
    let why = project.run(&["why", "PRD-009"]).stdout;
    assert!(why.contains("lockgate resume"), "{why}");
    let asked = project.run(&["resume", "PRD-009"]);
    assert_eq!(asked.code, Some(3), "the question is asked again: {asked:?}");
    assert_eq!(project.json(0, &["inbox", "--json"])[0]["phase"], "phase-1");
    assert_eq!(project.run(&["cancel", "PRD-009"]).code, Some(0));
    assert_eq!(project.run(&["resume", "PRD-009"]).code, Some(3), "a cancelled one too");
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Abort", "--foreground"]).code, Some(2));
    let run = project.newest();
    assert_eq!(project.run(&["resume", "PRD-009", "--continue", "--answer", "phase-2=Continue"]).code, Some(0));
    assert_eq!(project.newest(), run, "it is the same run");
    assert_eq!(lists(&file(&project)), ["complete", "WS1 WS2 WS3 WS4", "", ""]);
    assert_eq!(file(&project)["artifacts"]["WS1"], json!(["db/cash.sql"]));
    assert_eq!(project.run(&["db", "verify"]).code, Some(0));
}

#[test]
fn gates_of_a_review_stay_when_a_person_overrides_it_and_the_file_keeps_its_rules() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md", "--review"]).code, Some(3));
    let ship = ["pipeline", "review", "PRD-009", "--verdict", "ship_with_gates", "--p1", "1", "--gate", "rls=true"];
    assert_eq!(project.run(&ship).code, Some(0));
    assert_eq!(project.run(&["pipeline", "review", "PRD-009", "--override", "the pilot is tomorrow"]).code, Some(0));
    assert!(file(&project)["gates_pending"].as_array().unwrap().contains(&json!("rls")));
    let checked = project.run(&["pipeline", "check", FILE, "--spec", "spec.md"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn a_prd_selects_its_newest_run_and_never_a_replaced_one() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    let old = project.newest();
    let answers = ["--answer", "phase-1=Continue", "--answer", "phase-2=Continue"];
    assert_eq!(project.run(&[&["run", "spec.md", "--new"], &answers[..]].concat()).code, Some(0));
    let new = project.newest();
    assert_ne!(old, new);
    assert_eq!(project.json(0, &["status", "PRD-009", "--json"])["run"], json!(new));
    let cancelled = project.run(&["cancel", "PRD-009"]);
    assert_eq!(cancelled.code, Some(4), "{cancelled:?}");
    assert_eq!(project.status(&old)["status"], "waiting", "it is meant by its id only");
}

#[test]
fn concurrent_starts_of_a_pipeline_wait_for_each_other() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    let lock = std::fs::File::open(project.path(".lockgate/beginning/PRD-009.lock")).unwrap();
    lock.lock().unwrap();
    let second = project.start(&["run", "spec.md", "--new"]);
    // Processes that wait for a lock are listed below it, with an arrow.
    let waits = |line: &str| line.contains("->") && line.contains(&format!(" {} ", second.id()));
    until("it waits", || std::fs::read_to_string("/proc/locks").unwrap().lines().any(waits));
    assert_eq!(project.json(0, &["runs", "--json"]).as_array().unwrap().len(), 1);
    lock.unlock().unwrap();
    assert_eq!(finish(second).code, Some(3));
    assert_eq!(project.json(0, &["runs", "--json"]).as_array().unwrap().len(), 2);
}

#[test]
fn the_settings_can_continue_phases_automatically_unless_a_gate_needs_a_person() {
    let project = pipeline();
    project.write(".lockgate/config.yaml", "people: { require_terminal: false }\npipelines: { approve: auto }\n");
    let output = project.run(&["run", "spec.md"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(project.events("PRD-009", "answered").iter().all(|answer| answer["actor"]["credential"] != "person"));
    project.write("spec.md", SPEC.replace("lint: { command: 'test ! -e dirty' }", "lint: { success_criteria: it reads well }"));
    assert_eq!(project.run(&["run", "spec.md", "--new"]).code, Some(3));
}

#[test]
fn a_forked_pipeline_keeps_completed_work_and_has_its_own_state_file() {
    let project = pipeline();
    project.write(".lockgate/config.yaml", "people: { require_terminal: false }\npipelines: { approve: auto }\n");
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(0));
    let hold = project.events("PRD-009", "hold_opened")[1]["hold"].as_str().unwrap().to_owned();
    let changed = project.run(&["change", &hold, "Abort", "--yes"]);
    assert_eq!(changed.code, Some(0), "{changed:?}");
    let newest = project.status(&project.newest());
    assert_eq!((&newest["pipeline"]["prd"], &newest["status"]), (&json!("PRD-009"), &json!("aborted")));
    assert_eq!(file(&project)["artifacts"]["WS1"], json!(["db/cash.sql"]), "the fork knows the finished work");
    let archive = project.path(FILE).parent().unwrap().join("archive");
    assert_eq!(std::fs::read_dir(archive).unwrap().count(), 1, "the file of the first run is archived");
}
