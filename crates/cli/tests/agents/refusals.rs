//! Refused keys, requests and tools.

use crate::harness::Harness;
use crate::programs::Program;
use serde_json::json;

pub(crate) fn a_refused_key_opens_an_auth_gate_and_the_task_continues_after_it(program: Program) {
    let harness = Harness::new(program);
    let prompt = r#"Say it. %%[{"text":"let in"}]%%"#;
    harness.flow(&json!([{"id": "say", "prompt": prompt}]), &json!({}), &json!({}));
    let output = harness.run_with_another_key(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let hold = harness.status()["holds"][0].clone();
    assert_eq!(hold["kind"], "authentication", "{hold:#}");
    assert_eq!(harness.events("task_failed").len(), 0, "a missing login costs no attempt");
    let hold = format!("{}@{}", hold["id"].as_str().unwrap(), hold["revision"]);
    harness.must(0, &["answer", &hold, "done", "--foreground"]);
    assert_eq!(harness.status()["context"]["outputs"]["work"]["say"], "let in");
}

pub(crate) fn a_missing_key_opens_an_auth_gate(program: Program) {
    let harness = Harness::new(program);
    harness.flow(&json!([{"id": "say", "prompt": r#"Say it. %%[{"text":"let in"}]%%"#}]), &json!({}), &json!({}));
    let output = harness.run_without_key(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert_eq!(harness.status()["holds"][0]["kind"], "authentication", "{}", output.stderr);
}

pub(crate) fn an_unauthorized_request_of_a_tool_opens_no_auth_gate(program: Program) {
    let harness = Harness::new(program);
    let prompt = r#"Try it. %%[{"sh":"echo Error: 401 Unauthorized, please log in >&2; exit 1"},{"status":400}]%%"#;
    harness.flow(&json!([{"id": "try", "prompt": prompt}]), &json!({}), &json!({}));
    let output = harness.must(1, &["run", "flow.yaml"]);
    assert_eq!(harness.status()["holds"], json!([]), "{}", output.stderr);
    assert!(harness.stub.seen().iter().any(|seen| seen.step == 1), "its tool was called: {:#?}", harness.stub.seen());
}

pub(crate) fn denied_tools_are_shown_as_a_warning(program: Program) {
    let harness = Harness::new(program);
    for (path, text) in (program.denies.files)(&harness.stub.url()) {
        harness.write(path, &text);
    }
    let prompt = r#"Do it. %%[{"sh":"touch not-permitted"},{"text":"I could not"}]%%"#;
    harness.flow(&json!([{"id": "make", "prompt": prompt}]), &json!({"args": program.denies.arguments}), &json!({}));
    let output = harness.must(0, &["run", "flow.yaml"]);
    assert!(!harness.root().join("not-permitted").exists(), "{}", output.stderr);
    let report = harness.report(0);
    assert!(report["denied"].as_array().is_some_and(|denied| !denied.is_empty()), "{report:#}\n{}", output.stderr);
    let summary = harness.must(0, &["summary", &harness.newest()]).stdout;
    assert!(summary.contains("the agent of work/make was not permitted to use"), "{summary}");
}

pub(crate) fn allowed_tools_can_be_used_and_denied_tools_cannot(program: Program) {
    let harness = Harness::new(program);
    let task = |id: &str, tools| json!({"id": id, "tools": tools, "prompt": format!("Do it. %%[{{\"sh\":\"touch {id}\"}},{{\"text\":\"done\"}}]%%")});
    let shell = [program.shell];
    harness.flow_without_permission(&json!([
        task("allowed", json!({"allow": shell})),
        task("denied", json!({"deny": shell})),
        task("both", json!({"allow": shell, "deny": shell})),
    ]));
    let output = harness.must(0, &["run", "flow.yaml"]);
    let made = ["allowed", "denied", "both"].map(|name| harness.root().join(name).exists());
    assert_eq!(made, [true, false, false], "{}", output.stderr);
}
