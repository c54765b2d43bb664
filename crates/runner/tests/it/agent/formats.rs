//! The output format of each program, through a real process.

use super::{ASK, StandIn};
use crate::process::among_others;
use lockgate_engine::run::agent::Usage;
use lockgate_runner::agent::{AgentRequest, SessionMode, preset_names};
use lockgate_runner::process::ExitReason;
use std::fs;

/// A complete stream of a program with garbage in between, and one without usage.
fn streams(name: &str) -> (&'static str, &'static str) {
    match name {
        "claude" => (
            r#"{"type":"system","subtype":"init","session_id":"ses-1","model":"m-1","new_field":[1]}
warning: something on the wrong side
{"type":"assistant","message":{"content":[{"type":"text","text":"the answer"}]},"parent_tool_use_id":null}
{"type":"result","subtype":"success","is_error":false,"result":"the answer","session_id":"ses-1","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":5}}
"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"the answer","session_id":"ses-1"}
"#,
        ),
        "codex" => (
            r#"{"type":"thread.started","thread_id":"ses-1","extra":{}}
{"type":"turn.started"}
warning: something on the wrong side
{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"the answer"}}
{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":9,"output_tokens":5}}
"#,
            r#"{"type":"thread.started","thread_id":"ses-1"}
{"type":"turn.started"}
{"type":"item.completed","item":{"type":"agent_message","text":"the answer"}}
{"type":"turn.completed"}
"#,
        ),
        "copilot" => (
            r#"{"type":"session.start","data":{"sessionId":"ses-1","copilotVersion":"1.0.2"}}
warning: something on the wrong side
{"type":"assistant.message","data":{"content":"the answer","model":"m-1"}}
{"type":"assistant.usage","data":{"inputTokens":10,"outputTokens":5}}
{"type":"result","sessionId":"ses-1","exitCode":0,"usage":{"premiumRequests":1}}
"#,
            r#"{"type":"assistant.message","data":{"content":"the answer"}}
{"type":"result","sessionId":"ses-1","exitCode":0,"usage":{"premiumRequests":1}}
"#,
        ),
        "cursor" => (
            r#"{"type":"system","subtype":"init","session_id":"ses-1","model":"m-1"}
warning: something on the wrong side
{"type":"assistant","message":{"content":[{"type":"text","text":"the answer"}]},"session_id":"ses-1"}
{"type":"result","subtype":"success","is_error":false,"result":"the answer","session_id":"ses-1","usage":{"inputTokens":10,"outputTokens":5}}
"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"the answer","session_id":"ses-1"}
"#,
        ),
        "gemini" => (
            r#"{"type":"init","session_id":"ses-1","model":"m-1"}
warning: something on the wrong side
{"type":"message","role":"assistant","content":"the ","delta":true}
{"type":"message","role":"assistant","content":"answer","delta":true}
{"type":"result","status":"success","stats":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}
"#,
            r#"{"type":"init","session_id":"ses-1","model":"m-1"}
{"type":"message","role":"assistant","content":"the answer","delta":true}
{"type":"result","status":"success"}
"#,
        ),
        "opencode" => (
            r#"{"type":"step_start","sessionID":"ses-1","part":{}}
warning: something on the wrong side
{"type":"text","sessionID":"ses-1","part":{"text":"the answer"}}
{"type":"step_finish","sessionID":"ses-1","part":{"tokens":{"input":8,"output":4,"reasoning":1,"cache":{"read":2,"write":0}},"cost":0.25}}
"#,
            r#"{"type":"step_start","sessionID":"ses-1","part":{}}
{"type":"text","sessionID":"ses-1","part":{"text":"the answer"}}
{"type":"step_finish","sessionID":"ses-1","part":{}}
"#,
        ),
        "qwen" => (
            r#"{"type":"system","subtype":"init","session_id":"ses-1","model":"m-1"}
warning: something on the wrong side
{"type":"assistant","parent_tool_use_id":null,"message":{"content":[{"type":"text","text":"the answer"}],"usage":{"input_tokens":7,"output_tokens":5}}}
{"type":"result","subtype":"success","is_error":false,"result":"the answer","session_id":"ses-1","usage":{"input_tokens":10,"output_tokens":5}}
"#,
            r#"{"type":"assistant","parent_tool_use_id":null,"message":{"content":[{"type":"text","text":"the answer"}]}}
{"type":"result","subtype":"success","is_error":false,"result":"the answer","session_id":"ses-1"}
"#,
        ),
        other => panic!("no stream for {other}"),
    }
}

#[test]
fn every_program_is_parsed_with_garbage_between_its_lines() {
    let _table = among_others();
    for name in preset_names() {
        let stand_in = StandIn::new(streams(name).0, "echo 'on the side' >&2");
        let called = stand_in.call(name, &ASK);
        assert_eq!((&called.ended.reason, &called.prompt[..]), (&ExitReason::Exit(0), &b"hello"[..]), "{name}");
        let output = called.output;
        assert_eq!((output.text.as_deref(), output.session.as_deref()), (Some("the answer"), Some("ses-1")), "{name}");
        assert_eq!((output.garbage_lines, output.error, output.truncated), (1, None, false), "{name}");
        let cost_micros = matches!(name, "claude" | "opencode").then_some(250_000);
        assert_eq!(output.usage, Usage { cost_micros, input_tokens: Some(10), output_tokens: Some(5) }, "{name}");
        assert!(called.lines.contains(&"on the side".to_owned()), "{name}: {:?}", called.lines);
        assert!(called.lines.iter().all(|line| !line.contains("\"type\"")), "{name}: {:?}", called.lines);
        let log = fs::read_to_string(stand_in.path().join("log")).unwrap();
        assert!(log.contains(streams(name).0) && log.contains("on the side"), "{name}: {log}");
    }
}

#[test]
fn unreported_usage_is_unknown_and_not_zero() {
    let _table = among_others();
    for name in preset_names() {
        let output = StandIn::new(streams(name).1, "").call(name, &ASK).output;
        assert_eq!((output.text.as_deref(), output.usage), (Some("the answer"), Usage::default()), "{name}");
    }
}

#[test]
fn a_session_is_reported_and_resumed() {
    let _table = among_others();
    for name in preset_names() {
        let stand_in = StandIn::new(streams(name).0, "");
        let has = |arguments: &[String], id: &str| arguments.iter().any(|argument| argument.ends_with(id));
        let first = stand_in.call(name, &ASK);
        assert_eq!(has(&first.arguments, "5a1e-new"), matches!(name, "claude" | "copilot" | "qwen"), "{name}");
        let session = first.output.session.unwrap();
        let again = AgentRequest { session: SessionMode::Resume { id: &session }, prompt: "go on", ..ASK };
        let second = stand_in.call(name, &again);
        assert!(has(&second.arguments, "ses-1"), "{name}: {:?}", second.arguments);
        assert_eq!((&second.prompt[..], second.output.session.as_deref()), (&b"go on"[..], Some("ses-1")), "{name}");
    }
}

#[test]
fn arguments_are_passed_verbatim() {
    let _table = among_others();
    let stand_in = StandIn::new("", "");
    let own = "it's \"own\" $(touch ran) `touch ran` \\ * ~\nline";
    let setting = |name: &str| lockgate_runner::agent::Setting { args: vec![own.into()], ..stand_in.setting(Some(name)) };
    let tools = ["Bash(git log:*)".to_owned(), "Read".to_owned()];
    let ask = AgentRequest { model: Some("m $(touch ran)"), tools_allow: &tools, ..ASK };
    let arguments = stand_in.call_with(&setting("claude"), &ask, |job| job).arguments;
    assert_eq!(
        arguments,
        [
            "--allowedTools",
            "Bash(git log:*),Read",
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--model",
            "m $(touch ran)",
            "--session-id",
            "5a1e-new",
            own
        ]
    );
    let arguments = stand_in.call_with(&setting("copilot"), &ask, |job| job).arguments;
    assert!(arguments.contains(&"--allow-tool=Bash(git log:*)".to_owned()), "{arguments:?}");
    let resumed = AgentRequest { session: SessionMode::Resume { id: "ses-1" }, ..ASK };
    let arguments = stand_in.call_with(&setting("codex"), &resumed, |job| job).arguments;
    assert_eq!(arguments, ["exec", "--json", own, "resume", "ses-1", "-"]);
    assert!(!stand_in.path().join("ran").exists());
}

#[test]
fn an_error_reported_by_the_program_is_returned() {
    let _table = among_others();
    let failing = [
        ("claude", r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["no luck"]}"#),
        ("codex", r#"{"type":"turn.failed","error":{"message":"no luck"}}"#),
        ("copilot", r#"{"type":"session.error","data":{"message":"no luck"}}"#),
        ("cursor", r#"{"type":"result","is_error":true,"result":"no luck"}"#),
        ("gemini", r#"{"type":"result","status":"error","error":{"type":"X","message":"no luck"}}"#),
        ("opencode", r#"{"type":"error","error":{"name":"X","data":{"message":"no luck"}}}"#),
        ("qwen", r#"{"type":"result","subtype":"error_during_execution","is_error":true,"error":{"message":"no luck"}}"#),
    ];
    assert_eq!(failing.map(|(name, _)| name).to_vec(), preset_names());
    for (name, line) in failing {
        let called = StandIn::new(line, "exit 1").call(name, &ASK);
        assert_eq!((called.ended.reason, called.output.error.as_deref()), (ExitReason::Exit(1), Some("no luck")), "{name}");
        assert_eq!((called.output.text, called.output.usage), (None, Usage::default()), "{name}");
    }
}
