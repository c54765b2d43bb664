//! Stubs that replace processes: commands succeed, agents give a sample answer, and declared outputs exist.

use super::schema_sample::schema_sample;
use crate::files::{RunDirs, output_exists, write_output};
use lockgate_engine::run::event::{Failure, FailureKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stub {
    /// The result of a script or the answer of an agent: a string as it is, anything else as JSON.
    pub result: Option<Value>,
    /// Files that it writes to the output directory, with their contents.
    pub files: BTreeMap<String, String>,
    /// The error message, if it fails.
    pub fail: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StubPlan {
    Always(Stub),
    /// One for each execution, in order; after the last, the work succeeds by default.
    InOrder(Vec<Stub>),
}

/// Identifies a piece of work: which task, gate or question, and which execution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub address: String,
    /// The iteration of its phase.
    pub iteration: u32,
    pub attempt: u32,
}

/// A recorded call to a stub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StubCall {
    /// A rendered command for a shell.
    Command {
        command: String,
        /// The shell, as one would type it.
        shell: String,
    },
    Prompt {
        /// The agent; `None` if none is configured.
        agent: Option<String>,
        prompt: String,
    },
    /// A script that is not evaluated because it has a stub.
    Script,
}

pub(crate) struct AgentPrompt<'a> {
    /// The agent; `None` if none is configured.
    pub(crate) agent: Option<&'a str>,
    pub(crate) prompt: &'a str,
    /// The schema of its answer.
    pub(crate) schema: Option<&'a Value>,
    /// The file for its answer.
    pub(crate) output_path: Option<&'a str>,
}

/// All stubs of one dry run, and the calls to them.
#[derive(Debug, Default)]
pub struct Stubs {
    given: BTreeMap<String, StubPlan>,
    used: Mutex<BTreeMap<String, usize>>,
    stub_calls: Mutex<Vec<(Position, StubCall)>>,
}

impl Stubs {
    /// Stubs by address (`phase/task`, `phase/task[item]`, `phase/gate`); all other work succeeds.
    pub fn new(given: BTreeMap<String, StubPlan>) -> Self {
        Self { given, ..Self::default() }
    }

    /// The calls, in order.
    pub fn stub_calls(&self) -> Vec<(Position, StubCall)> {
        self.stub_calls.lock().expect("no code panics while holding this lock").clone()
    }

    /// Stubs that were never used: their address and, in a list of stubs, their number.
    pub fn unused(&self) -> Vec<String> {
        let used = self.used.lock().expect("no code panics while holding this lock");
        let mut unused = Vec::new();
        for (address, given) in &self.given {
            let times = used.get(address).copied().unwrap_or(0);
            match given {
                StubPlan::Always(_) if times == 0 => unused.push(address.clone()),
                StubPlan::Always(_) => {}
                StubPlan::InOrder(stubs) => {
                    unused.extend((times + 1..=stubs.len()).map(|number| format!("{address}, number {number}")));
                }
            }
        }
        unused
    }

    /// The stub for an item, or for the task of all items.
    fn find(&self, address: &str) -> Option<(&String, &StubPlan)> {
        let task = address.split('[').next().unwrap_or(address);
        self.given.get_key_value(address).or_else(|| self.given.get_key_value(task))
    }

    /// The stub for the next execution.
    fn next(&self, address: &str) -> Option<Stub> {
        let (name, given) = self.find(address)?;
        let mut used = self.used.lock().expect("no code panics while holding this lock");
        let times = used.entry(name.clone()).or_default();
        *times += 1;
        match given {
            StubPlan::Always(stub) => Some(stub.clone()),
            StubPlan::InOrder(stubs) => stubs.get(*times - 1).cloned(),
        }
    }

    fn call_stub(&self, at: &Position, stub_call: StubCall, run_dirs: &RunDirs) -> Result<Option<Stub>, Failure> {
        self.stub_calls.lock().expect("no code panics while holding this lock").push((at.clone(), stub_call));
        let Some(stub) = self.next(&at.address) else { return Ok(None) };
        for (path, text) in &stub.files {
            write_output(run_dirs, path, text.as_bytes()).map_err(|refused| cannot(refused.to_string()))?;
        }
        match &stub.fail {
            Some(message) => Err(Failure { kind: FailureKind::Exit(1), message: message.clone(), tail: String::new() }),
            None => Ok(Some(stub)),
        }
    }

    /// Replaces a command.
    pub(crate) fn command(&self, at: &Position, command: String, shell: String, run_dirs: &RunDirs) -> Result<(), Failure> {
        self.call_stub(at, StubCall::Command { command, shell }, run_dirs).map(drop)
    }

    /// Replaces an agent; returns its answer.
    pub(crate) fn agent(&self, at: &Position, asked: &AgentPrompt<'_>, run_dirs: &RunDirs) -> Result<String, Failure> {
        let AgentPrompt { agent, prompt, schema, output_path } = *asked;
        let stub_call = StubCall::Prompt { agent: agent.map(str::to_owned), prompt: prompt.to_owned() };
        let stub = self.call_stub(at, stub_call, run_dirs)?;
        Ok(match (stub.and_then(|stub| stub.result), schema) {
            (Some(Value::String(text)), _) => text,
            (Some(other), _) => other.to_string(),
            (None, Some(schema)) => schema_sample(schema).to_string(),
            (None, None) if output_path.is_some_and(|path| path.ends_with(".json")) => "{}".to_owned(),
            (None, None) => format!("This is a stub for the answer of the agent of {}.", at.address),
        })
    }

    /// Replaces a script if it has a stub; all others are evaluated.
    pub(crate) fn script(&self, at: &Position, run_dirs: &RunDirs) -> Option<Result<Stub, Failure>> {
        let (name, given) = self.find(&at.address)?;
        let times = self.used.lock().expect("no code panics while holding this lock").get(name).copied().unwrap_or(0);
        match given {
            StubPlan::InOrder(stubs) if times >= stubs.len() => return None,
            StubPlan::InOrder(_) | StubPlan::Always(_) => {}
        }
        Some(self.call_stub(at, StubCall::Script, run_dirs).map(Option::unwrap_or_default))
    }

    /// Creates declared outputs that no stub wrote.
    pub(crate) fn leave(&self, address: &str, run_dirs: &RunDirs, outputs: &[String]) -> Result<(), Failure> {
        for path in outputs {
            let exists = output_exists(run_dirs, path).map_err(|refused| cannot(refused.to_string()))?;
            if !exists {
                let path = if path.ends_with('/') { format!("{path}output.txt") } else { path.clone() };
                let text = match path.ends_with(".json") {
                    true => "{}\n".to_owned(),
                    false => format!("This is a stub for an output of {address}.\n"),
                };
                write_output(run_dirs, &path, text.as_bytes()).map_err(|refused| cannot(refused.to_string()))?;
            }
        }
        Ok(())
    }
}

fn cannot(message: String) -> Failure {
    Failure { kind: FailureKind::Output, message, tail: String::new() }
}
