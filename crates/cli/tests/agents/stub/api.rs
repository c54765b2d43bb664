//! Requests and responses of the four APIs.

use super::{Reply, Tokens, Turn};
use serde_json::{Value, json};

#[derive(Clone, Copy)]
pub(super) enum Api {
    Chat,
    Responses,
    Messages,
    Gemini,
}

const SSE: &str = "text/event-stream";

impl Api {
    pub(super) fn of(path: &str) -> Option<Self> {
        let bare = path.split('?').next().unwrap_or_default();
        match bare {
            _ if bare.ends_with("/chat/completions") => Some(Self::Chat),
            _ if bare.ends_with("/responses") => Some(Self::Responses),
            _ if bare.ends_with("/messages") => Some(Self::Messages),
            _ if bare.ends_with(":streamGenerateContent") || bare.ends_with(":generateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    /// Only Gemini uses another path for responses that are not streamed.
    pub(super) fn content_type(self, path: &str) -> &'static str {
        if path.contains(":generateContent") { "application/json" } else { SSE }
    }

    /// The conversation so far.
    pub(super) fn turns(self, body: &Value) -> Vec<Turn> {
        let list = match self {
            Self::Chat | Self::Messages => &body["messages"],
            Self::Responses => &body["input"],
            Self::Gemini => &body["contents"],
        };
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|item| self.turn(item)).collect()
    }

    fn turn(self, item: &Value) -> Option<Turn> {
        let calls = matches!(item["type"].as_str(), Some("function_call" | "custom_tool_call" | "local_shell_call"));
        match item["role"].as_str() {
            Some("assistant" | "model") => Some(Turn::Model),
            Some("user") => Some(Turn::User(text(if matches!(self, Self::Gemini) { &item["parts"] } else { &item["content"] }))),
            _ if calls => Some(Turn::Model),
            _ => None,
        }
    }

    /// The names of the tools that the model may call.
    pub(super) fn tools(self, body: &Value) -> Vec<String> {
        let list = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let name = |tool: &Value| tool["function"]["name"].as_str().or(tool["name"].as_str()).map(str::to_owned);
        match self {
            Self::Chat | Self::Responses | Self::Messages => list.iter().filter_map(name).collect(),
            Self::Gemini => {
                let declared = list.iter().filter_map(|group| group["functionDeclarations"].as_array());
                declared.flatten().filter_map(name).collect()
            }
        }
    }

    /// A response, as the events that this API streams.
    pub(super) fn answer(self, path: &str, reply: &Reply, tokens: Tokens) -> String {
        match self {
            Self::Chat => data(&chat(reply, tokens)) + "data: [DONE]\n\n",
            Self::Responses => events(&responses(reply, tokens)),
            Self::Messages => events(&messages(reply, tokens)),
            Self::Gemini if path.contains(":generateContent") => gemini(reply, tokens).to_string(),
            Self::Gemini => data(&[gemini(reply, tokens)]),
        }
    }

    /// The body of an HTTP error.
    pub(super) fn error(self, status: u64) -> String {
        let (message, kind) = match status {
            401 => ("the stub does not know this key", "authentication_error"),
            _ => ("the stub was configured to fail", "api_error"),
        };
        let error = match self {
            Self::Chat | Self::Responses => json!({"error": {"message": message, "type": kind, "code": kind}}),
            Self::Messages => json!({"type": "error", "error": {"type": kind, "message": message}}),
            Self::Gemini => {
                let name = if status == 401 { "UNAUTHENTICATED" } else { "INTERNAL" };
                json!({"error": {"code": status, "message": message, "status": name}})
            }
        };
        error.to_string()
    }
}

/// A call of the shell tool that the program offers.
pub(super) fn shell(tools: &[String], command: &str) -> Reply {
    let known = ["exec_command", "run_shell_command", "Bash", "bash", "shell"];
    let tool = known.into_iter().find(|name| tools.iter().any(|tool| tool == name));
    match tool {
        Some("exec_command") => Reply::Call { tool: "exec_command".into(), input: json!({"cmd": command}) },
        Some("shell") => Reply::Call { tool: "shell".into(), input: json!({"command": ["sh", "-c", command]}) },
        Some(tool) => {
            Reply::Call { tool: tool.to_owned(), input: json!({"command": command, "description": "a step of the script"}) }
        }
        None => Reply::Text(format!("no shell tool among {}", tools.join(", "))),
    }
}

/// The text of a content, which is a string or a list of parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn data(values: &[Value]) -> String {
    values.iter().map(|value| format!("data: {value}\n\n")).collect()
}

fn events(values: &[Value]) -> String {
    let one = |value: &Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default());
    values.iter().map(one).collect()
}

fn chat(reply: &Reply, tokens: Tokens) -> [Value; 3] {
    let chunk = |choices: Value| json!({"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "stub", "choices": choices});
    let (delta, reason) = match reply {
        Reply::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
        Reply::Call { tool, input } => {
            let function = json!({"name": tool, "arguments": input.to_string()});
            (
                json!({"role": "assistant", "tool_calls": [{"index": 0, "id": call_id(), "type": "function", "function": function}]}),
                "tool_calls",
            )
        }
    };
    let mut last = chunk(json!([]));
    last["usage"] = json!({
        "prompt_tokens": tokens.input, "completion_tokens": tokens.output, "total_tokens": tokens.input + tokens.output
    });
    [
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}])),
        last,
    ]
}

fn responses(reply: &Reply, tokens: Tokens) -> [Value; 3] {
    let item = match reply {
        Reply::Text(text) => {
            json!({"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
        }
        Reply::Call { tool, input } => {
            json!({"type": "function_call", "id": "f1", "call_id": call_id(), "name": tool, "arguments": input.to_string()})
        }
    };
    let usage = json!({
        "input_tokens": tokens.input, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": tokens.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.input + tokens.output,
    });
    [
        json!({"type": "response.created", "response": {"id": "r1"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "r1", "usage": usage}}),
    ]
}

fn messages(reply: &Reply, tokens: Tokens) -> [Value; 6] {
    let (start, delta, reason) = match reply {
        Reply::Text(text) => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}), "end_turn"),
        Reply::Call { tool, input } => (
            json!({"type": "tool_use", "id": call_id(), "name": tool, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            "tool_use",
        ),
    };
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "stub", "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": {"input_tokens": tokens.input, "output_tokens": 1},
    });
    [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": tokens.output}}),
        json!({"type": "message_stop"}),
    ]
}

fn gemini(reply: &Reply, tokens: Tokens) -> Value {
    let part = match reply {
        Reply::Text(text) => json!({"text": text}),
        Reply::Call { tool, input } => json!({"functionCall": {"name": tool, "args": input}}),
    };
    json!({
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": tokens.input, "candidatesTokenCount": tokens.output, "totalTokenCount": tokens.input + tokens.output
        },
        "modelVersion": "stub",
    })
}

/// Ids must be unique, because some programs identify calls by id within a session.
fn call_id() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("call_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
