//! The context that scripts, conditions and templates see, and what tasks put into it.

use super::*;
use crate::run::event::RunKind;
use crate::run::view::Context;
use serde_json::{Value, json};

fn finish(bench: &mut Bench, address: &str, result: Option<&str>, outputs: Vec<OutputFile>) {
    let Effect::Task { key, attempt } = bench.effect_of(address) else { panic!("no task runs") };
    let outcome = TaskOutcome::Finished { result: result.map(|text| Datum::Inline(text.into())), outputs };
    bench.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None });
}

fn written(path: &str, bytes: u64) -> OutputFile {
    OutputFile { path: path.into(), digest: Digest::of(path.as_bytes()), bytes, stored: false }
}

fn read(bench: &Bench, parts: &[&str]) -> Context {
    bench.run.context(&Reads::Parts(parts.iter().map(|part| (*part).to_owned()).collect()))
}

#[test]
fn a_script_sees_only_the_parts_that_it_reads() {
    let each = Task { for_each: Some(ForEach { over: Over::List(Vec::new()), max_parallel: None }), ..task("e", &[]) };
    let mut bench = Bench::new(workflow(vec![phase("one", vec![task("a", &[])]), phase("two", vec![each, task("b", &[])])]));
    let digest = Digest::of(b"big");
    bench.run.vars =
        [("small".to_owned(), Datum::Inline("1".into())), ("big".to_owned(), Datum::Stored { digest, bytes: 3 })].into();
    finish(&mut bench, "one/a", Some("\"first\""), Vec::new());
    let item = crate::run::command::Item { key: "x".into(), value: Datum::Inline("1".into()) };
    let outcome = TaskOutcome::Items(vec![item]);
    bench.outcome(CommandKind::TaskEnded { key: key("two", 1, "e"), attempt: 1, outcome, agent: None, commit: None });
    finish(&mut bench, "two/e[x]", Some("2"), Vec::new());
    let seen = |parts: &[&str]| Value::Object(read(&bench, parts).value);
    assert_eq!(seen(&["run"]), json!({"run": "run00000"}));
    assert_eq!(seen(&["vars.small"]), json!({"vars": {"small": 1}}));
    assert_eq!(seen(&["outputs.one"]), json!({"outputs": {"one": {"a": "first"}}}));
    assert_eq!(seen(&["outputs.two"]), json!({"outputs": {"two": {"e": {"x": 2}}}}));
    assert_eq!(seen(&["nowhere"]), json!({}));
    let big = read(&bench, &["vars.big"]);
    assert_eq!(
        (Value::Object(big.value), big.stored),
        (json!({"vars": {"big": null}}), vec![(vec!["vars".into(), "big".into()], digest)])
    );
    let full = bench.run.full_context(&|_| Some(json!("big")));
    assert_eq!((&full["run"], &full["vars"]), (&json!("run00000"), &json!({"small": 1, "big": "big"})));
}

#[test]
fn a_file_that_is_written_again_in_the_same_phase_is_listed_once() {
    let mut bench = Bench::new(workflow(vec![
        phase("one", vec![task("a", &[]), task("b", &["a"])]),
        phase("two", vec![task("c", &[])]),
        phase("three", vec![task("d", &[])]),
    ]));
    finish(&mut bench, "one/a", None, vec![written("plan.md", 1), written("notes.md", 2)]);
    finish(&mut bench, "one/b", None, vec![written("plan.md", 3)]);
    finish(&mut bench, "two/c", None, vec![written("plan.md", 4)]);
    let listed: Vec<Value> = bench.run.full_context(&|_| None)["deliverables"].as_array().unwrap().clone();
    let of =
        |file: &Value| format!("{}/{} {} {}", file["phase"], file["subagent"], file["path"], file["size_bytes"]).replace('"', "");
    let listed: Vec<String> = listed.iter().map(of).collect();
    assert_eq!(listed, ["one/a notes.md 2", "one/b plan.md 3", "two/c plan.md 4"]);
}

#[test]
fn a_task_is_counted_once_however_often_it_is_tried() {
    let retry = Retry { attempts: 2, ..Retry::default() };
    let tasks = vec![Task { retry, ..task("a", &[]) }, Task { retry, ..task("main", &["a"]) }];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    bench.fail("one/a");
    bench.perform(&bench.effect_of("one/a"));
    bench.fail("one/main");
    assert_eq!(bench.started(), ["one/a", "one/a", "one/main", "one/main"]);
    assert_eq!(bench.run.full_context(&|_| None)["subagents_spawned"], 1, "the main script is not a subagent");
}

#[test]
fn a_phase_is_seen_with_what_its_definition_says_about_it() {
    let described = Phase {
        name: Some("Planning".into()),
        description: Some("Plan it.".into()),
        skills: vec!["writing".into()],
        suggested: vec!["reviewer".into()],
        ..phase("one", vec![task("a", &[])])
    };
    let mut bench = Bench::new(workflow(vec![described.clone(), phase("two", vec![task("b", &[])])]));
    let expected = json!({
        "id": "one", "name": "Planning", "iteration": 1, "description": "Plan it.",
        "skills": ["writing"], "suggested_subagents": ["reviewer"],
    });
    assert_eq!(bench.run.phase_view(&described), expected);
    let plain = bench.run.workflow.phases[1].clone();
    assert_eq!(bench.run.phase_view(&plain), json!({"id": "two", "name": "two", "iteration": 0}), "absent keys are absent");
    bench.run.current.as_mut().unwrap().feedback = Some("again".into());
    assert_eq!(bench.run.phase_view(&described)["feedback"], "again");
}

#[test]
fn a_workflow_is_seen_with_its_phases() {
    let named = Workflow {
        description: Some("Ships it.".into()),
        version: Some("2".into()),
        ..workflow(vec![phase("one", vec![task("a", &[])])])
    };
    let expected = json!({
        "name": "test", "description": "Ships it.", "version": "2", "execution_mode": "strict", "phases": ["one"],
    });
    assert_eq!(Bench::new(named).run.workflow_view(), expected);
}

#[test]
fn gap_checks_are_seen_with_what_followed_from_them() {
    let check = GapCheck {
        criteria: Vec::new(),
        script: None,
        on_failure: GapAction::Retry,
        additional: Vec::new(),
        max_iterations: 3,
        message: None,
    };
    let mut bench = Bench::new(workflow(vec![Phase { gap_check: Some(check), ..phase("one", vec![task("a", &[])]) }]));
    finish(&mut bench, "one/a", None, Vec::new());
    let found = GapsFound::Gaps {
        status: "incomplete".into(),
        gaps: vec!["no tests".into()],
        action: None,
        agents: Vec::new(),
        message: None,
    };
    bench.outcome(CommandKind::GapsChecked { phase: PhaseId::from("one"), iteration: 1, round: 1, found });
    let at = bench.run.gap_checks[0].at;
    bench.work();
    let seen = bench.run.full_context(&|_| None)["gap_checks"].clone();
    let first = json!({
        "phase": "one", "iteration": 1, "status": "incomplete", "gaps": ["no tests"], "agents_spawned": [], "timestamp": at,
        "action_taken": "retry",
    });
    assert_eq!(seen[0], first);
    assert_eq!((&seen[1]["status"], seen[1].get("action_taken")), (&json!("complete"), None));
}

#[test]
fn a_run_is_listed_as_an_execution_of_a_workflow() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![task("a", &[])])]));
    let (_, _, rows) = bench.run.seal(Vec::new());
    assert_eq!(rows.run.map(|row| (row.kind, row.workflow)), Some((RunKind::Workflow.into(), "test".into())));
    assert_eq!(RunKind::Plan.word(), "plan");
}
