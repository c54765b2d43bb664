//! Agents: fake programs that print the output of the real ones and are called the same way.

mod formats;
mod hostile;
mod plain;

use crate::process::job;
use lockgate_runner::agent::{AgentOutput, AgentRequest, Reader, SessionMode, Setting, call, preset};
use lockgate_runner::process::{Ended, Job, Stop, run_with_output};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

struct Called {
    output: AgentOutput,
    ended: Ended,
    lines: Vec<String>,
    arguments: Vec<String>,
    prompt: Vec<u8>,
}

const ASK: AgentRequest<'static> = AgentRequest {
    prompt: "hello",
    model: None,
    session: SessionMode::Fresh { id: "5a1e-new" },
    tools_allow: &[],
    tools_deny: &[],
    max_cost_micros: None,
    policy: "policy.toml",
};

/// A program that records its arguments and its input in files, then prints a stream and runs more commands. Its directory
/// has a space in its name.
struct StandIn {
    folder: TempDir,
}

impl StandIn {
    fn new(stream: &str, more: &str) -> Self {
        let folder = TempDir::with_prefix("stand in ").unwrap();
        fs::write(folder.path().join("stream"), stream).unwrap();
        let script = format!("printf '%s\\0' \"$@\" > arguments\ncat > prompt\ncat stream\n{more}\n");
        fs::write(folder.path().join("agent.sh"), script).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn setting(&self, name: Option<&str>) -> Setting {
        let command = format!("sh '{}'", self.path().join("agent.sh").display());
        Setting { preset: name.map(str::to_owned), command: Some(command), ..Setting::default() }
    }

    fn call(&self, name: &str, ask: &AgentRequest<'_>) -> Called {
        self.call_with(&self.setting(Some(name)), ask, |job| job)
    }

    fn call_with(&self, setting: &Setting, ask: &AgentRequest<'_>, change: impl Fn(Job) -> Job) -> Called {
        let preset = setting.preset.as_deref().map(|name| preset(name).unwrap());
        let invocation = call(setting, preset, ask).unwrap();
        let job = Job { stdin: invocation.stdin, ..change(job(self.path(), &invocation.command)) };
        let mut reader = Reader::new(preset);
        let mut lines = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ended = runtime.block_on(run_with_output(
            job,
            Stop::new(),
            &mut |line| lines.push(line.to_owned()),
            &mut |bytes, on_line| reader.feed(bytes, on_line),
        ));
        let arguments = fs::read_to_string(self.path().join("arguments")).unwrap_or_default();
        Called {
            output: reader.finish(),
            ended,
            lines,
            arguments: arguments.split_terminator('\0').map(str::to_owned).collect(),
            prompt: fs::read(self.path().join("prompt")).unwrap_or_default(),
        }
    }
}
