//! Output streams of the supported programs and versions.

use super::{AgentOutput, Reader, preset};
use lockgate_engine::run::agent::Usage;

/// The parsed output of a stream and its progress lines, which must not depend on how the stream is split.
fn read(name: &str, stream: &str) -> (AgentOutput, Vec<String>) {
    let in_pieces = |size: usize| {
        let mut reader = Reader::new(Some(preset(name).unwrap()));
        let mut lines = Vec::new();
        let mut on_progress = |line: &str| lines.push(line.to_owned());
        stream.as_bytes().chunks(size).for_each(|piece| reader.feed(piece, &mut on_progress));
        reader.feed(&[], &mut on_progress);
        (reader.finish(), lines)
    };
    let whole = in_pieces(usize::MAX);
    for size in [1, 7, 100] {
        assert_eq!(in_pieces(size), whole, "pieces of {size}");
    }
    whole
}

fn usage(cost_micros: Option<u64>, input: u64, output: u64) -> Usage {
    Usage { cost_micros, input_tokens: Some(input), output_tokens: Some(output) }
}

#[test]
fn claude_streams_are_parsed() {
    let (output, lines) = read(
        "claude",
        r#"{"type":"system","subtype":"init","cwd":"/work","session_id":"8d2c","tools":["Bash"],"model":"claude-opus-4-6","permissionMode":"default","claude_code_version":"2.1.232"}
{"type":"assistant","message":{"model":"claude-opus-4-6","id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"I look first."}],"usage":{"input_tokens":3,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"8d2c"}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"cargo test"}}]},"parent_tool_use_id":null,"session_id":"8d2c"}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"ok"}]},"session_id":"8d2c"}
{"type":"assistant","message":{"content":[{"type":"text","text":"said by a subagent"}]},"parent_tool_use_id":"toolu_2","session_id":"8d2c"}
{"type":"assistant","message":{"content":[{"type":"text","text":"Done.\n\nAll is well."}]},"parent_tool_use_id":null,"session_id":"8d2c"}
{"type":"result","subtype":"success","is_error":false,"duration_ms":5,"num_turns":2,"result":"Done.\n\nAll is well.","session_id":"8d2c","total_cost_usd":0.0358125,"usage":{"input_tokens":10,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":20},"permission_denials":[{"tool_name":"Write","tool_use_id":"toolu_3","tool_input":{}},{"tool_name":"Write","tool_use_id":"toolu_4","tool_input":{}}]}
"#,
    );
    assert_eq!(
        output,
        AgentOutput {
            text: Some("Done.\n\nAll is well.".into()),
            session: Some("8d2c".into()),
            model: Some("claude-opus-4-6".into()),
            version: Some("2.1.232".into()),
            usage: usage(Some(35_813), 1110, 20),
            denied: vec!["Write".into()],
            ..AgentOutput::default()
        }
    );
    assert_eq!(lines, ["I look first.", "Bash cargo test", "Done.", "All is well."]);
}

#[test]
fn claude_usage_accumulated_over_resumes_counts_once_and_a_deferred_tool_is_not_the_end() {
    let since =
        r#""model_usage_since_last_result":{"big":{"inputTokens":10,"outputTokens":20,"cacheReadInputTokens":5,"costUSD":0.25}}"#;
    let all = r#""total_cost_usd":7.5,"modelUsage":{"big":{"inputTokens":1000,"outputTokens":2000,"costUSD":7.5}}"#;
    let line = |rest: &str| format!(r#"{{"type":"result","subtype":"success","is_error":false,{rest},{all},{since}}}"#);
    let (output, _) = read("claude", &line(r#""result":"yes""#));
    assert_eq!((output.usage, output.error), (usage(Some(250_000), 15, 20), None));
    let (output, _) = read("claude", &line(r#""result":"","stop_reason":"tool_deferred""#));
    assert_eq!(output.error.as_deref(), Some("tool_deferred"));
}

#[test]
fn streams_of_other_claude_versions_are_parsed() {
    // With usage by model, which includes subagents; with an older name for the cost.
    let (output, _) = read(
        "claude",
        r#"{"type":"result","subtype":"success","sessionId":"9","result":"yes","cost_usd":1,"usage":{"input_tokens":1,"output_tokens":1},"modelUsage":{"big":{"inputTokens":10,"outputTokens":20,"cacheReadInputTokens":5,"costUSD":1.0},"small":{"inputTokens":1,"outputTokens":2}}}"#,
    );
    assert_eq!(
        (output.text.as_deref(), output.session.as_deref(), output.usage),
        (Some("yes"), Some("9"), usage(Some(1_000_000), 16, 22))
    );
    // Without a result line, the last message is the text, and the usage is unknown.
    let (output, _) = read("claude", r#"{"type":"assistant","message":{"content":"as it was"},"session_id":"9"}"#);
    assert_eq!((output.text.as_deref(), output.usage), (Some("as it was"), Usage::default()));
}

#[test]
fn failing_claude_streams_are_parsed() {
    let said = |line: &str| read("claude", line).0;
    let output = said(r#"{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key","session_id":"1"}"#);
    assert_eq!((output.error.as_deref(), output.text), (Some("Invalid API key"), None));
    let output = said(r#"{"type":"result","subtype":"error_max_turns","is_error":false,"session_id":"1","total_cost_usd":0.5}"#);
    assert_eq!((output.error.as_deref(), output.usage.cost_micros), (Some("error_max_turns"), Some(500_000)));
    let output = said(
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found","really"]}"#,
    );
    assert_eq!(output.error.as_deref(), Some("No conversation found; really"));
}

#[test]
fn codex_streams_are_parsed() {
    let (output, lines) = read(
        "codex",
        r#"{"type":"thread.started","thread_id":"0199a213-81c0"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"bash -lc ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"bash -lc ls","aggregated_output":"docs\n","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_2","type":"file_change","changes":[{"path":"a.rs","kind":"add"},{"path":"b.rs","kind":"update"}],"status":"completed"}}
{"type":"item.completed","item":{"id":"item_3","type":"command_execution","command":"rm -rf /","aggregated_output":"","exit_code":null,"status":"declined"}}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"item.completed","item":{"id":"item_4","type":"reasoning","text":"thinking"}}
{"type":"item.completed","item":{"id":"item_5","type":"agent_message","text":"Repo contains docs."}}
{"type":"turn.completed","usage":{"input_tokens":24763,"cached_input_tokens":24448,"output_tokens":122,"reasoning_output_tokens":64}}
"#,
    );
    assert_eq!(
        output,
        AgentOutput {
            text: Some("Repo contains docs.".into()),
            session: Some("0199a213-81c0".into()),
            usage: usage(None, 24763, 122),
            denied: vec!["rm -rf /".into()],
            ..AgentOutput::default()
        }
    );
    assert_eq!(lines, ["$ bash -lc ls", "add a.rs", "update b.rs", "Repo contains docs."]);
}

#[test]
fn streams_of_other_codex_versions_are_parsed() {
    let (output, _) = read(
        "codex",
        r#"{"type":"item.completed","item":{"id":"item_5","item_type":"assistant_message","text":"hello"}}
{"type":"turn.completed"}"#,
    );
    assert_eq!((output.text.as_deref(), output.usage), (Some("hello"), Usage::default()));
    let (output, _) = read(
        "codex",
        r#"{"id":"0","msg":{"type":"session_configured","session_id":"abc","model":"gpt-5"}}
{"id":"0","msg":{"type":"token_count","input_tokens":7,"output_tokens":3}}
{"id":"0","msg":{"type":"agent_message","message":"hello"}}"#,
    );
    assert_eq!(
        (output.text.as_deref(), output.session.as_deref(), output.model.as_deref()),
        (Some("hello"), Some("abc"), Some("gpt-5"))
    );
    assert_eq!(output.usage, usage(None, 7, 3));
}

#[test]
fn failing_codex_streams_are_parsed() {
    let (output, _) = read(
        "codex",
        r#"{"type":"turn.started"}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}
{"type":"turn.started"}
{"type":"turn.failed","error":{"message":"stream disconnected"}}"#,
    );
    // The failed turn used an unknown number of tokens.
    assert_eq!((output.error.as_deref(), output.usage), (Some("stream disconnected"), Usage::default()));
}

#[test]
fn gemini_streams_are_parsed() {
    let (output, lines) = read(
        "gemini",
        r#"{"type":"init","timestamp":"2026-10-10T12:00:00.000Z","session_id":"abc-123","model":"gemini-3-pro"}
{"type":"message","role":"user","content":"List files","timestamp":"t"}
{"type":"message","role":"assistant","content":"I look.","delta":true,"timestamp":"t"}
{"type":"tool_use","tool_name":"run_shell_command","tool_id":"bash-1","parameters":{"command":"ls -la"},"timestamp":"t"}
{"type":"tool_result","tool_id":"bash-1","status":"error","error":{"type":"policy","message":"Tool execution denied by policy."},"timestamp":"t"}
{"type":"error","severity":"warning","message":"Loop detected"}
{"type":"message","role":"assistant","content":"Here ","delta":true,"timestamp":"t"}
{"type":"message","role":"assistant","content":"they are.","delta":true,"timestamp":"t"}
{"type":"result","status":"success","stats":{"total_tokens":250,"input_tokens":50,"output_tokens":200,"cached":10,"input":40,"duration_ms":3000,"tool_calls":1},"timestamp":"t"}
"#,
    );
    assert_eq!(
        output,
        AgentOutput {
            text: Some("Here they are.".into()),
            session: Some("abc-123".into()),
            model: Some("gemini-3-pro".into()),
            usage: usage(None, 50, 200),
            denied: vec!["bash-1".into()],
            ..AgentOutput::default()
        }
    );
    assert_eq!(lines[..3], ["I look.", "run_shell_command ls -la", "Tool execution denied by policy."]);
}

#[test]
fn streams_of_other_gemini_versions_and_failing_ones_are_parsed() {
    let (output, _) = read(
        "gemini",
        r#"{"type":"init","sessionId":"abc"}
{"type":"message","role":"assistant","content":"all at once"}
{"type":"error","severity":"error","message":"Maximum session turns exceeded"}
{"type":"result","status":"error","error":{"type":"FatalTurnLimitedError","message":"Reached max"},"stats":{"models":{"a":{"input_tokens":1,"output_tokens":2},"b":{"input_tokens":3,"output_tokens":4}}}}"#,
    );
    assert_eq!((output.text.as_deref(), output.error.as_deref()), (Some("all at once"), Some("Reached max")));
    assert_eq!((output.session.as_deref(), output.usage), (Some("abc"), usage(None, 4, 6)));
}

#[test]
fn copilot_streams_are_parsed() {
    let (output, lines) = read(
        "copilot",
        r#"{"type":"session.start","data":{"sessionId":"s-1","version":1,"producer":"copilot-agent","copilotVersion":"1.0.77"},"id":"e0","parentId":null}
{"type":"session.tools_updated","data":{"model":"claude-sonnet-4.6"},"ephemeral":true}
{"type":"assistant.turn_start","data":{"turnId":"0"}}
{"type":"assistant.message_delta","data":{"messageId":"m0","deltaContent":"wro"},"ephemeral":true}
{"type":"assistant.message","data":{"messageId":"m0","content":"","toolRequests":[{"toolCallId":"call_0","name":"bash"}],"outputTokens":53}}
{"type":"tool.execution_start","data":{"toolCallId":"call_0","toolName":"bash","arguments":{"command":"echo 42 > answer.txt"}}}
{"type":"permission.completed","data":{"requestId":"r","toolCallId":"call_0","result":{"kind":"denied-no-approval-rule-and-could-not-request-from-user"}}}
{"type":"tool.execution_complete","data":{"toolCallId":"call_0","success":false,"error":{"message":"Permission denied","code":"denied"}}}
{"type":"assistant.message","data":{"messageId":"m1","content":"could not write","toolRequests":[],"outputTokens":7}}
{"type":"result","timestamp":"t","sessionId":"s-1","exitCode":0,"usage":{"premiumRequests":1,"totalApiDurationMs":800,"sessionDurationMs":1000,"codeChanges":{}}}
"#,
    );
    assert_eq!(
        output,
        AgentOutput {
            text: Some("could not write".into()),
            session: Some("s-1".into()),
            model: Some("claude-sonnet-4.6".into()),
            version: Some("1.0.77".into()),
            // It reports the number of requests, not tokens.
            usage: Usage::default(),
            denied: vec!["call_0".into()],
            ..AgentOutput::default()
        }
    );
    assert_eq!(lines, ["bash echo 42 > answer.txt", "could not write"]);
}

#[test]
fn streams_of_other_copilot_versions_and_failing_ones_are_parsed() {
    let (output, _) = read(
        "copilot",
        r#"{"type":"assistant.usage","data":{"model":"m","inputTokens":100,"outputTokens":10,"cost":1},"ephemeral":true}
{"type":"assistant.usage","data":{"model":"m","inputTokens":200,"outputTokens":20,"cost":1},"ephemeral":true}
{"type":"session.error","data":{"errorType":"quota","message":"You have no quota"}}
{"type":"result","sessionId":"s-1","exitCode":1}"#,
    );
    assert_eq!((output.error.as_deref(), output.usage), (Some("You have no quota"), usage(None, 300, 30)));
    let (output, _) = read(
        "copilot",
        r#"{"type":"assistant.usage","data":{"outputTokens":10}}
{"type":"session.shutdown","data":{"modelMetrics":{"a":{"usage":{"inputTokens":5,"outputTokens":6}},"b":{"usage":{"inputTokens":1,"outputTokens":1}}}}}"#,
    );
    assert_eq!(output.usage, usage(None, 6, 7));
}

#[test]
fn cursor_streams_are_parsed() {
    let (output, lines) = read(
        "cursor",
        r#"{"type":"system","subtype":"init","apiKeySource":"login","cwd":"/work","session_id":"c6b62c6f","model":"Claude 4 Sonnet","permissionMode":"default"}
{"type":"user","message":{"role":"user","content":[{"type":"text","text":"Read it"}]},"session_id":"c6b62c6f"}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"I'll read it."}]},"session_id":"c6b62c6f"}
{"type":"tool_call","subtype":"started","call_id":"t1","tool_call":{"readToolCall":{"args":{"path":"README.md"}}},"session_id":"c6b62c6f"}
{"type":"tool_call","subtype":"completed","call_id":"t1","tool_call":{"readToolCall":{"args":{"path":"README.md"},"result":{"success":{"content":"x"}}}},"session_id":"c6b62c6f"}
{"type":"tool_call","subtype":"completed","call_id":"t2","tool_call":{"shellToolCall":{"args":{"command":"rm x"},"result":{"rejected":{"reason":""}}}},"session_id":"c6b62c6f"}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"It says "},{"type":"text","text":"x."}]},"session_id":"c6b62c6f"}
{"type":"result","subtype":"success","duration_ms":5234,"duration_api_ms":5234,"is_error":false,"result":"I'll read it.It says x.","session_id":"c6b62c6f","request_id":"10e11780"}
"#,
    );
    assert_eq!(
        output,
        AgentOutput {
            text: Some("It says x.".into()),
            session: Some("c6b62c6f".into()),
            model: Some("Claude 4 Sonnet".into()),
            denied: vec!["shellToolCall".into()],
            ..AgentOutput::default()
        }
    );
    assert_eq!(lines, ["I'll read it.", "readToolCall README.md", "It says x."]);
}

#[test]
fn streams_of_other_cursor_versions_and_failing_ones_are_parsed() {
    let (output, _) = read(
        "cursor",
        r#"{"type":"result","subtype":"success","is_error":false,"result":"hello","session_id":"1","usage":{"inputTokens":10,"outputTokens":5,"cacheReadTokens":100,"cacheWriteTokens":0}}"#,
    );
    assert_eq!((output.text.as_deref(), output.usage), (Some("hello"), usage(None, 110, 5)));
    let (output, _) = read("cursor", r#"{"type":"result","subtype":"error","is_error":true,"result":"out of quota"}"#);
    assert_eq!((output.error.as_deref(), output.text), (Some("out of quota"), None));
}

#[test]
fn opencode_streams_are_parsed() {
    let (output, lines) = read(
        "opencode",
        r#"{"type":"step_start","timestamp":1,"sessionID":"ses_678","part":{"id":"prt_1","sessionID":"ses_678","type":"step-start"}}
{"type":"text","timestamp":2,"sessionID":"ses_678","part":{"type":"text","text":"I look."}}
{"type":"tool_use","timestamp":3,"sessionID":"ses_678","part":{"type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"title":"list files"}}}
{"type":"tool_use","timestamp":3,"sessionID":"ses_678","part":{"type":"tool","tool":"edit","state":{"status":"error","input":{"filePath":"a"},"error":"The user rejected permission to use this specific tool call."}}}
{"type":"step_finish","timestamp":4,"sessionID":"ses_678","part":{"type":"step-finish","reason":"tool-calls","tokens":{"input":11087,"output":145,"reasoning":5,"cache":{"write":1,"read":2}},"cost":0.0070147}}
{"type":"step_start","timestamp":5,"sessionID":"ses_678","part":{"type":"step-start"}}
{"type":"text","timestamp":6,"sessionID":"ses_678","part":{"type":"text","text":"There is one file."}}
{"type":"step_finish","timestamp":7,"sessionID":"ses_678","part":{"type":"step-finish","reason":"stop","tokens":{"input":10,"output":1,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0.001}}
"#,
    );
    assert_eq!(
        output,
        AgentOutput {
            text: Some("There is one file.".into()),
            session: Some("ses_678".into()),
            usage: usage(Some(8015), 11100, 151),
            denied: vec!["edit".into()],
            ..AgentOutput::default()
        }
    );
    assert_eq!(lines, ["I look.", "bash list files", "edit a", "There is one file."]);
}

#[test]
fn opencode_streams_without_the_last_line_or_failing_are_parsed() {
    let finish = r#"{"type":"step_finish","sessionID":"s","part":{"tokens":{"input":1,"output":1},"cost":0.5}}"#;
    let start = r#"{"type":"step_start","sessionID":"s","part":{}}"#;
    let text = r#"{"type":"text","sessionID":"s","part":{"text":"x"}}"#;
    assert_eq!(read("opencode", &[start, text, finish].join("\n")).0.usage, usage(Some(500_000), 1, 1));
    // The second step used an unknown number of tokens.
    let (output, _) = read("opencode", &[start, finish, start, text].join("\n"));
    assert_eq!((output.text.as_deref(), output.usage), (Some("x"), Usage::default()));
    let (output, _) =
        read("opencode", r#"{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":"No credit"}}}"#);
    assert_eq!((output.error.as_deref(), output.session.as_deref()), (Some("No credit"), Some("s")));
}

/// The output parsed from stderr, stdout and the exit code together.
fn read_with_errors(name: &str, errors: &[&str], stream: &str, code: i32) -> AgentOutput {
    let mut reader = Reader::new(Some(preset(name).unwrap()));
    errors.iter().for_each(|line| reader.error_line(line));
    reader.feed(stream.as_bytes(), &mut |_| {});
    reader.exited(code);
    reader.finish()
}

#[test]
fn missing_authentication_is_recognized_for_each_program() {
    for (name, line) in [
        ("codex", r#"{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: no such key"}}"#),
        ("codex", r#"{"type":"turn.failed","error":{"message":"Missing environment variable: `OPENAI_API_KEY`."}}"#),
        ("opencode", r#"{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":"no","statusCode":401}}}"#),
        (
            "gemini",
            r#"{"type":"result","status":"error","error":{"message":"[API Error: {\"error\":{\"code\":401,\"status\":\"X\"}}]"}}"#,
        ),
        (
            "claude",
            r#"{"type":"assistant","error":"authentication_failed","message":{"content":[{"type":"text","text":"Not logged in"}]}}"#,
        ),
        ("claude", r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"Invalid API key"}"#),
        ("copilot", r#"{"type":"session.error","data":{"errorType":"authentication","message":"HTTP 401"}}"#),
        (
            "qwen",
            r#"{"type":"result","subtype":"error_during_execution","is_error":true,"error":{"message":"[API Error: 401 no]"}}"#,
        ),
    ] {
        assert!(read(name, line).0.login.is_some(), "{name}: {line}");
    }
    let output = read_with_errors("gemini", &["Please set an Auth method in settings.json", ""], "", 41);
    assert_eq!(output.login.as_deref(), Some("Please set an Auth method in settings.json"));
    assert_eq!(read_with_errors("gemini", &["Please set an Auth method"], "", 1).login, None);
}

#[test]
fn authentication_errors_of_tools_are_ignored() {
    let tool = r#"{"type":"item.completed","item":{"type":"command_execution","command":"x","aggregated_output":"401 Unauthorized","status":"failed"}}"#;
    let failed = r#"{"type":"turn.failed","error":{"message":"stream disconnected"}}"#;
    assert_eq!(read("codex", &format!("{tool}\n{failed}")).0.login, None);
    // An error that was recovered from does not count.
    let retried = r#"{"type":"assistant","error":"authentication_failed","message":{"content":"x"}}"#;
    let well = r#"{"type":"result","subtype":"success","is_error":false,"result":"fine"}"#;
    assert_eq!(read("claude", &format!("{retried}\n{well}")).0.login, None);
}

#[test]
fn codex_reports_denied_commands_only_on_stderr() {
    let log = "2026-11-17T05:57:10.1Z ERROR codex_core::tools::router: error=";
    let rules = format!(
        r#"{log}exec_command failed: CreateProcess {{ message: "Rejected(\"`/bin/bash -lc 'touch a'` rejected: policy forbids it\")" }}"#
    );
    let hook = format!("{log}Command blocked by PreToolUse hook: no. Command: touch b");
    let output = read_with_errors("codex", &[&rules, &hook, "error=Rejected( by hand"], "", 0);
    assert_eq!(output.denied, ["`/bin/bash -lc 'touch a'`", "touch b"]);
}

#[test]
fn qwen_streams_are_parsed() {
    let (output, lines) = read(
        "qwen",
        r#"{"type":"system","subtype":"init","session_id":"b3fa","model":"qwen-max"}
{"type":"assistant","session_id":"b3fa","parent_tool_use_id":null,"message":{"content":[{"type":"tool_use","id":"c","name":"run_shell_command","input":{"command":"ls"}}],"usage":{"input_tokens":100,"output_tokens":10}}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"denied"}]}}
{"type":"assistant","session_id":"b3fa","parent_tool_use_id":null,"message":{"content":[{"type":"text","text":"done"}],"usage":{"input_tokens":100,"output_tokens":10}}}
{"type":"result","subtype":"success","session_id":"b3fa","is_error":false,"result":"done","usage":{"input_tokens":900,"output_tokens":90},"permission_denials":[{"tool_name":"run_shell_command"}]}
"#,
    );
    assert_eq!(
        output,
        AgentOutput {
            text: Some("done".into()),
            session: Some("b3fa".into()),
            model: Some("qwen-max".into()),
            usage: usage(None, 900, 90),
            denied: vec!["run_shell_command".into()],
            ..AgentOutput::default()
        }
    );
    assert_eq!(lines, ["run_shell_command ls", "done"]);
}
