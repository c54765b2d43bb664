//! Single turns: the input and output of the program.

use crate::harness::{Harness, until};
use crate::programs::Program;
use serde_json::{Value, json};

pub(crate) fn a_text_turn_becomes_the_answer(program: Program) {
    let harness = Harness::new(program);
    let prompt = r#"Say it. %%[{"text":"hello there"}]%%"#;
    harness.flow(&json!([{"id": "say", "prompt": prompt, "output_path": "said.txt"}]), &json!({}), &json!({}));
    harness.must(0, &["run", "flow.yaml"]);
    assert_eq!(harness.status()["context"]["outputs"]["work"]["say"], "hello there");
    let report = harness.report(0);
    assert_eq!(report["preset"], program.preset);
    assert_eq!(tokens(&report), program_tokens(&program, 1), "{report:#}");
    assert!(report["session"].as_str().is_some_and(|session| !session.is_empty()), "{report:#}");
    assert_eq!(report["denied"], json!([]), "{report:#}");
}

pub(crate) fn a_tool_turn_runs_the_tool_and_is_counted(program: Program) {
    let harness = Harness::new(program);
    let prompt = r#"Do it. %%[{"sh":"touch made-by-the-agent"},{"text":"it is made"}]%%"#;
    harness.flow(&json!([{"id": "make", "prompt": prompt}]), &json!({}), &json!({}));
    let output = harness.must(0, &["run", "flow.yaml"]);
    assert!(harness.root().join("made-by-the-agent").exists(), "{}\n{:#?}", output.stderr, harness.stub.seen());
    assert_eq!(harness.status()["context"]["outputs"]["work"]["make"], "it is made");
    let report = harness.report(0);
    assert_eq!(tokens(&report), program_tokens(&program, 2), "both turns count: {report:#}");
}

pub(crate) fn a_prompt_of_300_kilobytes_arrives_whole(program: Program) {
    let harness = Harness::new(program);
    let long = "a line of a very long prompt\n".repeat(300_000 / 29 + 1);
    let prompt = format!("Read. %%[{{\"text\":\"read\"}}]%%\n{long}the very end");
    harness.flow(&json!([{"id": "read", "prompt": prompt}]), &json!({}), &json!({}));
    harness.must(0, &["run", "flow.yaml"]);
    let seen = harness.stub.seen();
    let whole = seen.iter().flat_map(|seen| &seen.user).any(|text| text.contains(&format!("{long}the very end")));
    assert!(whole, "{:?}", seen.iter().map(|seen| seen.user.iter().map(String::len).collect()).collect::<Vec<Vec<usize>>>());
    assert_eq!(harness.status()["context"]["outputs"]["work"]["read"], "read");
}

pub(crate) fn a_prompt_that_starts_with_a_dash_is_passed_as_an_argument(program: Program) {
    let harness = Harness::new(program);
    let prompt = r#"--help me, and say it: %%[{"text":"no help was shown"}]%%"#;
    harness.flow(&json!([{"id": "say", "prompt": prompt}]), &json!({"prompt": "argument"}), &json!({}));
    harness.must(0, &["run", "flow.yaml"]);
    assert_eq!(harness.status()["context"]["outputs"]["work"]["say"], "no help was shown");
    assert!(harness.stub.seen()[0].user.iter().any(|text| text.contains("--help me")), "{:#?}", harness.stub.seen());
}

pub(crate) fn an_endless_turn_times_out_and_its_processes_are_stopped(program: Program) {
    let harness = Harness::new(program);
    let prompt = r#"Wait. %%[{"wait":"never"}]%%"#;
    harness.flow(&json!([{"id": "wait", "prompt": prompt, "timeout": "8s"}]), &json!({}), &json!({}));
    let output = harness.must(1, &["run", "flow.yaml"]);
    assert!(output.stderr.contains("it took longer than 8 s"), "{}", output.stderr);
    harness.until_nothing_runs();
    until("the failure is recorded", || harness.events("task_failed").len() == 1);
}

/// The reported usage: input tokens and output tokens.
pub(crate) fn tokens(report: &Value) -> Value {
    json!([report["usage"]["input_tokens"], report["usage"]["output_tokens"]])
}

/// The usage that the stub reports for this number of turns. Copilot does not report usage.
pub(crate) fn program_tokens(program: &Program, turns: u64) -> Value {
    match program.preset {
        "copilot" => json!([null, null]),
        _ => json!([100 * turns, 10 * turns]),
    }
}
