//! What is refused: keys, requests and tools.

use crate::bench::Bench;
use crate::programs::Program;
use serde_json::json;

pub(crate) fn a_refused_key_opens_a_login_hold_and_the_task_continues_after_it(program: Program) {
    let bench = Bench::new(program);
    let prompt = r#"Say it. %%[{"text":"let in"}]%%"#;
    bench.flow(&json!([{"id": "say", "prompt": prompt}]), &json!({}), &json!({}));
    let output = bench.run_with_another_key(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let hold = bench.status()["holds"][0].clone();
    assert_eq!(hold["kind"], "authentication", "{hold:#}");
    assert_eq!(bench.events("task_failed").len(), 0, "a missing login costs no attempt");
    let hold = format!("{}@{}", hold["id"].as_str().unwrap(), hold["revision"]);
    bench.must(0, &["answer", &hold, "done", "--resume"]);
    assert_eq!(bench.status()["context"]["outputs"]["work"]["say"], "let in");
}

pub(crate) fn a_missing_key_opens_a_login_hold(program: Program) {
    let bench = Bench::new(program);
    bench.flow(&json!([{"id": "say", "prompt": r#"Say it. %%[{"text":"let in"}]%%"#}]), &json!({}), &json!({}));
    let output = bench.run_without_key(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert_eq!(bench.status()["holds"][0]["kind"], "authentication", "{}", output.stderr);
}

pub(crate) fn an_unauthorized_request_of_a_tool_is_not_a_missing_login(program: Program) {
    let bench = Bench::new(program);
    let prompt = r#"Try it. %%[{"sh":"echo Error: 401 Unauthorized, please log in >&2; exit 1"},{"status":400}]%%"#;
    bench.flow(&json!([{"id": "try", "prompt": prompt}]), &json!({}), &json!({}));
    let output = bench.must(1, &["run", "flow.yaml"]);
    assert_eq!(bench.status()["holds"], json!([]), "{}", output.stderr);
    assert!(bench.stub.seen().iter().any(|seen| seen.step == 1), "its tool was called: {:#?}", bench.stub.seen());
}

pub(crate) fn denied_tools_are_shown_as_a_warning(program: Program) {
    let bench = Bench::new(program);
    for (path, text) in (program.denies.files)(&bench.stub.url()) {
        bench.write(path, &text);
    }
    let prompt = r#"Do it. %%[{"sh":"touch not-permitted"},{"text":"I could not"}]%%"#;
    bench.flow(&json!([{"id": "make", "prompt": prompt}]), &json!({"args": program.denies.arguments}), &json!({}));
    let output = bench.must(0, &["run", "flow.yaml"]);
    assert!(!bench.root().join("not-permitted").exists(), "{}", output.stderr);
    let report = bench.report(0);
    assert!(report["denied"].as_array().is_some_and(|denied| !denied.is_empty()), "{report:#}\n{}", output.stderr);
    let summary = bench.must(0, &["summary", &bench.newest()]).stdout;
    assert!(summary.contains("the agent of work/make was not permitted to use"), "{summary}");
}

pub(crate) fn tools_that_a_task_allows_can_be_used_and_those_that_it_denies_cannot(program: Program) {
    let bench = Bench::new(program);
    let task = |id: &str, tools| json!({"id": id, "tools": tools, "prompt": format!("Do it. %%[{{\"sh\":\"touch {id}\"}},{{\"text\":\"done\"}}]%%")});
    let shell = [program.shell];
    bench.flow_without_permission(&json!([
        task("allowed", json!({"allow": shell})),
        task("denied", json!({"deny": shell})),
        task("both", json!({"allow": shell, "deny": shell})),
    ]));
    let output = bench.must(0, &["run", "flow.yaml"]);
    let made = ["allowed", "denied", "both"].map(|name| bench.root().join(name).exists());
    assert_eq!(made, [true, false, false], "{}", output.stderr);
}
