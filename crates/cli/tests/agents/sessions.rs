//! Sessions: shared by tasks, resumed after a kill, and never resumed unless named.

use crate::harness::{Harness, until};
use crate::programs::Program;
use crate::turns::{program_tokens, tokens};
use serde_json::json;

pub(crate) fn tasks_share_a_session_and_each_turn_counts_once_towards_the_budget(program: Program) {
    let harness = Harness::new(program);
    let task = |id: &str| json!({"id": id, "session": "same", "prompt": format!("Task {id}. %%[{{\"text\":\"done {id}\"}}]%%")});
    // Each turn uses 110 tokens, so the third task may start, but not the fourth. If usage were counted twice, the third could
    // not start either.
    let budget = json!({"budget": {"max_tokens": 300}});
    harness.flow(&json!([task("one"), task("two"), task("three"), task("four")]), &json!({}), &budget);
    let reports_usage = program_tokens(&program, 1) != json!([null, null]);
    let output = harness.run(&["run", "flow.yaml"]);
    let (status, finished) = (harness.status(), harness.events("task_finished").len());
    assert_eq!((output.code, &status["holds"][0]["kind"]), (Some(3), &json!("budget")), "{}", output.stderr);
    // Without reported usage, the budget is unknown, so a person is asked before the second task.
    assert_eq!(finished, if reports_usage { 3 } else { 1 }, "{}", output.stderr);
    if !reports_usage {
        for _ in ["two", "three"] {
            let hold =
                format!("{}@{}", harness.status()["holds"][0]["id"].as_str().unwrap(), harness.status()["holds"][0]["revision"]);
            harness.run(&["answer", &hold, "raise-budget", "--foreground"]);
        }
    }
    let sessions: Vec<_> = (0..3).map(|number| harness.report(number)["session"].clone()).collect();
    assert!(sessions[0].is_string() && sessions.iter().all(|session| session == &sessions[0]), "{sessions:?}");
    for number in 0..3 {
        assert_eq!(tokens(&harness.report(number)), program_tokens(&program, 1), "task {number}");
    }
    let seen = harness.stub.seen();
    let third = seen.iter().find(|seen| seen.user.iter().any(|text| text.contains("Task three."))).unwrap();
    for earlier in ["Task one.", "Task two."] {
        assert!(third.user.iter().any(|text| text.contains(earlier)), "the model sees the earlier conversation: {third:#?}");
    }
}

pub(crate) fn only_a_reported_session_is_resumed_after_kill_9(program: Program) {
    let harness = Harness::new(program);
    let prompt = r#"Work. %%[{"sh":"echo at work"},{"wait":"done at last"}]%%"#;
    let task = json!([{"id": "work", "prompt": prompt, "session": "resume"}]);
    harness.flow(&task, &json!({}), &json!({}));
    let named = || !program.names_session || !harness.events("session_named").is_empty();
    kill_9(&harness, || harness.stub.seen().iter().any(|seen| seen.step == 1) && named());
    let named = harness.events("session_named").first().map(|event| event["session"].clone());
    let before = harness.stub.seen().len();
    harness.stub.release();
    let output = harness.must(0, &["resume", &harness.newest(), "--rerun"]);
    if let Some(named) = &named {
        assert_eq!(&harness.report(0)["session"], named, "{}", output.stderr);
    }
    assert_eq!(harness.status()["context"]["outputs"]["work"]["work"], "done at last");
    let seen = harness.stub.seen();
    let prompts = |seen: &crate::stub::Seen| seen.user.iter().filter(|text| text.contains("Work. %%")).count();
    // A session that was never reported is not resumed, so the new one has a single prompt.
    let expected = if named.is_some() { 2 } else { 1 };
    assert!(seen[before..].iter().any(|seen| prompts(seen) == expected), "{expected} prompts: {:#?}", &seen[before..]);
    harness.until_nothing_runs();
}

pub(crate) fn an_unreported_session_is_not_resumed_after_kill_9(program: Program) {
    let harness = Harness::new(program);
    let task = json!([{"id": "work", "prompt": r#"Work. %%[{"text":"done"}]%%"#, "session": "resume"}]);
    // In the first attempt, the program itself does not even start.
    let command = format!("test -e started || {{ touch started; sleep 600; }}; {}", program.preset);
    harness.flow(&task, &json!({"command": command}), &json!({}));
    let started = harness.root().join("started");
    kill_9(&harness, || started.exists());
    harness.must(0, &["resume", &harness.newest(), "--rerun"]);
    assert_eq!(harness.status()["context"]["outputs"]["work"]["work"], "done");
}

/// Starts the workflow, and kills only the Lockgate process once a condition is true.
fn kill_9(harness: &Harness, so: impl FnMut() -> bool) {
    let mut child = harness.start(&["run", "flow.yaml"]);
    until("the start of the agent", so);
    child.kill().unwrap();
    child.wait().unwrap();
}
