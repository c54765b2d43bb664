//! The workflow that a valid file produces.

use crate::{diagnostics, in_phase, in_task, workflow};
use lockgate_engine::spec::workflow::{Mode, OnFail, OnInterrupt, Reads, Retry, SecretSource, Work};
use serde_json::json;
use std::time::Duration;

const FULL: &str = r#"
name: Ship a feature
description: Builds and checks it
version: 1.10
execution_mode: adaptive
output_dir: out/{{feature.name}}
max_parallel: 4
vars:
  size: 3
  list: [1, two, {three: ~}]
secrets:
  TOKEN: {env: CI_TOKEN}
  KEY: {command: pass show key}
  PLAIN:
phases:
  - id: build.v1
    name: Build it
    description: Compiles
    fail_fast: true
    tasks:
      - id: fetch
        run: git fetch
      - id: compile
        name: Compile
        needs: fetch
        run: make {{vars.size}}
        timeout: 30m
        retry: {attempts: 3, backoff: PT5S}
        on_interrupt: rerun
        on_fail: ask
        outputs: [bin/app, log.txt]
        env: {LEVEL: 2, NAME: "{{workflow.name}}", EMPTY: ''}
        secrets: [TOKEN, KEY]
        dir: src
      - id: count
        needs: [fetch, compile]
        script: |
          const n = context.vars.size
          return n + 1
        retry: 2
      - id: join
        needs: [count]
        pass: true
    gates:
      - id: tests
        name: Tests
        run: make test
        timeout: 10m
        on_fail: repeat
        env: {CI: true}
        secrets: TOKEN
        dir: src
"#;

#[test]
fn a_file_with_every_key_is_parsed_completely() {
    let workflow = workflow(FULL);
    assert_eq!(workflow.name, "Ship a feature");
    assert_eq!(workflow.description.as_deref(), Some("Builds and checks it"));
    assert_eq!(workflow.version.as_deref(), Some("1.10"), "the version is text as written");
    assert_eq!(workflow.execution_mode, Mode::Adaptive);
    assert_eq!(workflow.output_dir.as_deref(), Some("out/{{feature.name}}"));
    assert_eq!(workflow.max_parallel, Some(4));
    assert_eq!(json!(workflow.vars), json!({"size": 3, "list": [1, "two", {"three": null}]}));
    assert_eq!(workflow.secrets["TOKEN"], SecretSource::Env("CI_TOKEN".into()));
    assert_eq!(workflow.secrets["KEY"], SecretSource::Command("pass show key".into()));
    assert_eq!(workflow.secrets["PLAIN"], SecretSource::Env("PLAIN".into()));

    let phase = workflow.phase("build.v1").expect("the phase");
    assert_eq!((phase.title(), phase.description.as_deref(), phase.fail_fast), ("Build it", Some("Compiles"), true));
    let ids: Vec<&str> = phase.tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["fetch", "compile", "count", "join"]);

    let compile = phase.task("compile").expect("the task");
    assert_eq!(compile.name.as_deref(), Some("Compile"));
    assert_eq!(compile.needs, ["fetch".into()]);
    assert_eq!(compile.work, Work::Run("make {{vars.size}}".into()));
    assert_eq!(compile.timeout, Some(Duration::from_secs(1800)));
    assert_eq!(compile.retry, Retry { attempts: 3, backoff: Duration::from_secs(5) });
    assert_eq!((compile.on_interrupt, compile.on_fail), (OnInterrupt::Rerun, OnFail::Ask));
    assert_eq!(compile.outputs, ["bin/app", "log.txt"]);
    assert_eq!(json!(compile.env), json!({"LEVEL": "2", "NAME": "{{workflow.name}}", "EMPTY": ""}));
    assert_eq!(compile.secrets, ["TOKEN", "KEY"]);
    assert_eq!(compile.dir.as_deref(), Some("src"));

    let count = phase.task("count").expect("the task");
    let Work::Script(script) = &count.work else { panic!("a script") };
    assert_eq!(script.source, "const n = context.vars.size\nreturn n + 1\n");
    assert_eq!(script.reads, Reads::Parts(["vars.size".to_owned()].into()));
    assert_eq!(count.retry, Retry { attempts: 2, backoff: Duration::ZERO });

    let gate = phase.gate("tests").expect("the gate");
    assert_eq!((gate.run.as_str(), gate.timeout, gate.on_fail), ("make test", Some(Duration::from_secs(600)), OnFail::Repeat));
    assert_eq!(
        (json!(gate.env), gate.secrets.as_slice(), gate.dir.as_deref()),
        (json!({"CI": "true"}), &["TOKEN".into()][..], Some("src"))
    );
}

#[test]
fn a_minimal_file_gets_the_defaults() {
    let workflow = workflow("name: x\nphases: [{id: a, tasks: [{id: t, run: true}]}]");
    assert_eq!((workflow.execution_mode, workflow.max_parallel, workflow.output_dir.clone()), (Mode::Strict, None, None));
    let task = &workflow.phases[0].tasks[0];
    assert_eq!(task.work, Work::Run("true".into()), "a command may look like a boolean");
    assert_eq!((task.retry, task.on_fail, task.timeout), (Retry { attempts: 1, backoff: Duration::ZERO }, OnFail::Fail, None));
    assert!(workflow.phases[0].checkpoint.is_none());
    assert!(!workflow.phases[0].fail_fast);
}

#[test]
fn a_shell_task_asks_after_an_interruption_and_other_tasks_rerun() {
    let source = in_phase("tasks:\n  - {id: a, run: make}\n  - {id: b, script: return 1}\n  - {id: c, pass: true}");
    let kinds: Vec<OnInterrupt> = workflow(&source).phases[0].tasks.iter().map(|task| task.on_interrupt).collect();
    assert_eq!(kinds, [OnInterrupt::Ask, OnInterrupt::Rerun, OnInterrupt::Rerun]);
}

#[test]
fn tasks_of_a_sequential_phase_need_the_previous_one_unless_they_declare_needs() {
    let source = in_phase(
        "behavior: sequential\ntasks:\n  - {id: a, pass: true}\n  - {id: b, pass: true}\n  - {id: c, pass: true, needs: a}\n  - {id: d, pass: true, needs: []}\n  - {id: e, pass: true}",
    );
    let workflow = workflow(&source);
    let needs: Vec<Vec<&str>> =
        workflow.phases[0].tasks.iter().map(|task| task.needs.iter().map(|need| need.as_str()).collect()).collect();
    assert_eq!(needs, [vec![], vec!["a"], vec!["a"], vec![], vec!["d"]]);
}

#[test]
fn a_main_script_is_a_task_that_needs_all_others() {
    let source = in_phase(
        "tasks:\n  - {id: a, pass: true}\n  - {id: b, pass: true}\nmain_agent:\n  description: Puts it together\n  script: return context.outputs.one",
    );
    let workflow = workflow(&source);
    let main = workflow.phases[0].task("main").expect("main");
    assert_eq!(main.needs, ["a".into(), "b".into()]);
    assert_eq!(main.on_interrupt, OnInterrupt::Rerun);
    let Work::Script(script) = &main.work else { panic!("a script") };
    assert_eq!(script.reads, Reads::Parts(["outputs.one".to_owned()].into()));
}

#[test]
fn a_main_only_phase_has_a_main_script_and_nothing_else() {
    assert_eq!(diagnostics(&in_phase("behavior: main-only\nmain_agent: {script: return 1}")), [] as [&str; 0]);
    assert_eq!(
        diagnostics(&in_phase("behavior: main-only\ntasks:\n  - {id: a, pass: true}\nmain_agent: {script: return 1}")),
        [
            "5:5 main-only: a `main-only` phase has no tasks of its own (move the work into `main_agent`, or choose `parallel` or `sequential`)"
        ]
    );
    assert_eq!(
        diagnostics(&in_phase("behavior: main-only")),
        [
            "3:5 warning empty-phase: this phase does nothing (give it `tasks`, `subagents`, `gates`, a `main_agent` or a `checkpoint`)",
            "4:5 warning main-only: this `main-only` phase has no `main_agent`, so nothing runs"
        ]
    );
}

#[test]
fn a_key_without_a_value_counts_as_absent() {
    let source = in_task("run: make\nneeds:\nenv:\noutputs: ~\ntimeout: null");
    let workflow = workflow(&source);
    let task = &workflow.phases[0].tasks[0];
    assert_eq!((task.needs.len(), task.env.len(), task.outputs.len(), task.timeout), (0, 0, 0, None));
}

#[test]
fn secrets_may_be_a_list_of_names() {
    let workflow = workflow("name: x\nsecrets: [A, B]\nphases: [{id: a, gates: []}]");
    assert_eq!(workflow.secrets["A"], SecretSource::Env("A".into()));
    assert_eq!(workflow.secrets.len(), 2);
}

#[test]
fn aliases_are_replaced_by_their_anchors() {
    let source = "name: x\nvars: {env: &env {A: '1'}}\nphases:\n  - id: one\n    tasks:\n      - {id: a, run: make, env: *env}\n      - {id: b, run: make, env: *env}\n";
    let workflow = workflow(source);
    assert_eq!(workflow.phases[0].tasks[1].env["A"], "1");
}

#[test]
fn line_endings_and_a_byte_order_mark_change_nothing() {
    let plain = workflow(FULL);
    assert_eq!(workflow(&FULL.replace('\n', "\r\n")).phases[0].tasks[1], plain.phases[0].tasks[1]);
    assert_eq!(workflow(&format!("\u{feff}{FULL}")), plain);
}

#[test]
fn the_compiled_form_round_trips() {
    let workflow = workflow(FULL);
    let text = serde_json::to_string(&workflow).expect("JSON");
    assert_eq!(serde_json::from_str::<lockgate_engine::spec::workflow::Workflow>(&text).expect("a workflow"), workflow);
}
