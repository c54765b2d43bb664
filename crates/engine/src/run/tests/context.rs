//! The context that scripts, conditions and templates see, and how tasks add to it.

use super::*;
use crate::run::context::Context;
use crate::run::event::RunKind;
use serde_json::{Value, json};

fn finish(harness: &mut Harness, address: &str, result: Option<&str>, outputs: Vec<OutputFile>) {
    let Effect::Task { key, attempt } = harness.effect_of(address) else { panic!("no task runs") };
    let outcome = TaskOutcome::Finished { result: result.map(|text| StoredValue::Inline(text.into())), outputs };
    harness.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
}

fn written(path: &str, bytes: u64) -> OutputFile {
    OutputFile { path: path.into(), digest: Digest::of(path.as_bytes()), bytes, stored: false }
}

fn read(harness: &Harness, parts: &[&str]) -> Context {
    harness.run.context(&Reads::Parts(parts.iter().map(|part| (*part).to_owned()).collect()))
}

#[test]
fn a_script_gets_only_the_context_parts_that_it_reads() {
    let each = Task { for_each: Some(ForEach { over: ItemSource::List(Vec::new()), max_parallel: None }), ..task("e", &[]) };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![task("a", &[])]), phase("two", vec![each, task("b", &[])])]));
    let digest = Digest::of(b"big");
    harness.run.vars =
        [("small".to_owned(), StoredValue::Inline("1".into())), ("big".to_owned(), StoredValue::Stored { digest, bytes: 3 })]
            .into();
    finish(&mut harness, "one/a", Some("\"first\""), Vec::new());
    let item = crate::run::command::Item { key: "x".into(), value: StoredValue::Inline("1".into()) };
    let outcome = TaskOutcome::Items(vec![item]);
    harness.outcome(CommandKind::TaskEnded { key: key("two", 1, "e"), attempt: 1, outcome, agent: None, commit: None });
    finish(&mut harness, "two/e[x]", Some("2"), Vec::new());
    let seen = |parts: &[&str]| Value::Object(read(&harness, parts).value);
    assert_eq!(seen(&["run"]), json!({"run": "run00000"}));
    assert_eq!(seen(&["vars.small"]), json!({"vars": {"small": 1}}));
    assert_eq!(seen(&["outputs.one"]), json!({"outputs": {"one": {"a": "first"}}}));
    assert_eq!(seen(&["outputs.two"]), json!({"outputs": {"two": {"e": {"x": 2}}}}));
    assert_eq!(seen(&["nowhere"]), json!({}));
    let big = read(&harness, &["vars.big"]);
    assert_eq!(
        (Value::Object(big.value), big.stored),
        (json!({"vars": {"big": null}}), vec![(vec!["vars".into(), "big".into()], digest)])
    );
    let full = harness.run.full_context(&|_| Some(json!("big")));
    assert_eq!((&full["run"], &full["vars"]), (&json!("run00000"), &json!({"small": 1, "big": "big"})));
}

#[test]
fn a_file_rewritten_in_the_same_phase_is_listed_once() {
    let mut harness = Harness::new(workflow(vec![
        phase("one", vec![task("a", &[]), task("b", &["a"])]),
        phase("two", vec![task("c", &[])]),
        phase("three", vec![task("d", &[])]),
    ]));
    finish(&mut harness, "one/a", None, vec![written("plan.md", 1), written("notes.md", 2)]);
    finish(&mut harness, "one/b", None, vec![written("plan.md", 3)]);
    finish(&mut harness, "two/c", None, vec![written("plan.md", 4)]);
    let listed: Vec<Value> = harness.run.full_context(&|_| None)["deliverables"].as_array().unwrap().clone();
    let of =
        |file: &Value| format!("{}/{} {} {}", file["phase"], file["subagent"], file["path"], file["size_bytes"]).replace('"', "");
    let listed: Vec<String> = listed.iter().map(of).collect();
    assert_eq!(listed, ["one/a notes.md 2", "one/b plan.md 3", "two/c plan.md 4"]);
}

#[test]
fn a_task_is_counted_once_regardless_of_attempts() {
    let retry = Retry { attempts: 2, ..Retry::default() };
    let tasks = vec![Task { retry, ..task("a", &[]) }, Task { retry, ..task("main", &["a"]) }];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    harness.fail("one/a");
    harness.perform(&harness.effect_of("one/a"));
    harness.fail("one/main");
    assert_eq!(harness.started(), ["one/a", "one/a", "one/main", "one/main"]);
    assert_eq!(harness.run.full_context(&|_| None)["subagents_spawned"], 1, "the main script is not a subagent");
}

#[test]
fn the_context_includes_the_definition_of_a_phase() {
    let described = Phase {
        name: Some("Planning".into()),
        description: Some("Plan it.".into()),
        skills: vec!["writing".into()],
        suggested: vec!["reviewer".into()],
        ..phase("one", vec![task("a", &[])])
    };
    let mut harness = Harness::new(workflow(vec![described.clone(), phase("two", vec![task("b", &[])])]));
    let expected = json!({
        "id": "one", "name": "Planning", "iteration": 1, "description": "Plan it.",
        "skills": ["writing"], "suggested_subagents": ["reviewer"],
    });
    assert_eq!(harness.run.phase_view(&described), expected);
    let plain = harness.run.workflow.phases[1].clone();
    assert_eq!(harness.run.phase_view(&plain), json!({"id": "two", "name": "two", "iteration": 0}), "absent keys are left out");
    harness.run.current.as_mut().unwrap().feedback = Some("again".into());
    assert_eq!(harness.run.phase_view(&described)["feedback"], "again");
}

#[test]
fn the_context_includes_the_workflow_and_its_phases() {
    let named = Workflow {
        description: Some("Ships it.".into()),
        version: Some("2".into()),
        ..workflow(vec![phase("one", vec![task("a", &[])])])
    };
    let expected = json!({
        "name": "test", "description": "Ships it.", "version": "2", "execution_mode": "strict", "phases": ["one"],
    });
    assert_eq!(Harness::new(named).run.workflow_view(), expected);
}

#[test]
fn the_context_includes_gap_checks_and_their_consequences() {
    let check = GapCheck {
        criteria: Vec::new(),
        script: None,
        on_failure: GapAction::Retry,
        additional: Vec::new(),
        max_iterations: 3,
        message: None,
    };
    let mut harness = Harness::new(workflow(vec![Phase { gap_check: Some(check), ..phase("one", vec![task("a", &[])]) }]));
    finish(&mut harness, "one/a", None, Vec::new());
    let found = GapsFound::Gaps {
        status: "incomplete".into(),
        gaps: vec!["no tests".into()],
        action: None,
        agents: Vec::new(),
        message: None,
    };
    harness.outcome(CommandKind::GapsChecked { phase: PhaseId::from("one"), iteration: 1, round: 1, found });
    let at = harness.run.gap_checks[0].at;
    harness.work();
    let seen = harness.run.full_context(&|_| None)["gap_checks"].clone();
    let first = json!({
        "phase": "one", "iteration": 1, "status": "incomplete", "gaps": ["no tests"], "agents_spawned": [], "timestamp": at,
        "action_taken": "retry",
    });
    assert_eq!(seen[0], first);
    assert_eq!((&seen[1]["status"], seen[1].get("action_taken")), (&json!("complete"), None));
}

#[test]
fn the_context_lists_the_run_as_a_workflow_execution() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    let (_, _, rows) = harness.run.seal(Vec::new());
    assert_eq!(rows.run.map(|row| (row.kind, row.workflow)), Some((RunKind::Workflow.into(), "test".into())));
    assert_eq!(RunKind::Plan.as_str(), "plan");
}
