//! What stands in for the work of processes: a command succeeds, an agent says something, and declared outputs are there.

use super::schema_sample::schema_sample;
use crate::files::{RunDirs, output_exists, write_output};
use lockgate_engine::run::event::{Failure, FailureKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// What stands in for one piece of work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stub {
    /// What a script returns, or an agent says: text as it is, anything else as JSON.
    pub result: Option<Value>,
    /// Files that it leaves in the output directory, with their texts.
    pub files: BTreeMap<String, String>,
    /// Why it fails, where it does.
    pub fail: Option<String>,
}

/// The stubs of one task or gate.
#[derive(Clone, Debug, PartialEq)]
pub enum StubPlan {
    /// The same each time.
    Always(Stub),
    /// One for each time that the work is done, in order; after the last, the work succeeds as all other does.
    InOrder(Vec<Stub>),
}

/// Where work is done: which task, gate or question, and which time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Its address.
    pub address: String,
    /// The execution of its phase.
    pub iteration: u32,
    /// The attempt.
    pub attempt: u32,
}

/// What would be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StubCall {
    /// This command, filled in, would be given to a shell.
    Command {
        /// The command.
        command: String,
        /// The shell, as one would type it.
        shell: String,
    },
    /// This prompt would go to an agent.
    Prompt {
        /// Who would be asked; nobody where none is configured.
        agent: Option<String>,
        /// The whole prompt.
        prompt: String,
    },
    /// A script that is not evaluated, because something stands in for it.
    Script,
}

/// What an agent would be asked.
pub(crate) struct AgentPrompt<'a> {
    /// Who; nobody where none is configured.
    pub(crate) agent: Option<&'a str>,
    /// The whole prompt.
    pub(crate) prompt: &'a str,
    /// What its answer must fit.
    pub(crate) schema: Option<&'a Value>,
    /// The file that its answer becomes.
    pub(crate) output_path: Option<&'a str>,
}

/// All that stands in for work in one rehearsal, and what it stood in for.
#[derive(Debug, Default)]
pub struct Stubs {
    given: BTreeMap<String, StubPlan>,
    used: Mutex<BTreeMap<String, usize>>,
    stub_calls: Mutex<Vec<(Position, StubCall)>>,
}

impl Stubs {
    /// Work goes as these say, by address (`phase/task`, `phase/task[item]`, `phase/gate`), and well where they say nothing.
    pub fn new(given: BTreeMap<String, StubPlan>) -> Self {
        Self { given, ..Self::default() }
    }

    /// What would have been done, in the order in which it was asked for.
    pub fn stub_calls(&self) -> Vec<(Position, StubCall)> {
        self.stub_calls.lock().expect("nobody panics while holding this").clone()
    }

    /// Stubs that were never needed: their address and, where one stands for each time, which of them.
    pub fn unused(&self) -> Vec<String> {
        let used = self.used.lock().expect("nobody panics while holding this");
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

    /// What was given for an item, or for the task of all items.
    fn find(&self, address: &str) -> Option<(&String, &StubPlan)> {
        let task = address.split('[').next().unwrap_or(address);
        self.given.get_key_value(address).or_else(|| self.given.get_key_value(task))
    }

    /// The stub for the next time that something is done.
    fn next(&self, address: &str) -> Option<Stub> {
        let (name, given) = self.find(address)?;
        let mut used = self.used.lock().expect("nobody panics while holding this");
        let times = used.entry(name.clone()).or_default();
        *times += 1;
        match given {
            StubPlan::Always(stub) => Some(stub.clone()),
            StubPlan::InOrder(stubs) => stubs.get(*times - 1).cloned(),
        }
    }

    fn call_stub(&self, at: &Position, stub_call: StubCall, run_dirs: &RunDirs) -> Result<Option<Stub>, Failure> {
        self.stub_calls.lock().expect("nobody panics while holding this").push((at.clone(), stub_call));
        let Some(stub) = self.next(&at.address) else { return Ok(None) };
        for (path, text) in &stub.files {
            write_output(run_dirs, path, text.as_bytes()).map_err(|refused| cannot(refused.to_string()))?;
        }
        match &stub.fail {
            Some(message) => Err(Failure { kind: FailureKind::Exit(1), message: message.clone(), tail: String::new() }),
            None => Ok(Some(stub)),
        }
    }

    /// Instead of a command.
    pub(crate) fn command(&self, at: &Position, command: String, shell: String, run_dirs: &RunDirs) -> Result<(), Failure> {
        self.call_stub(at, StubCall::Command { command, shell }, run_dirs).map(drop)
    }

    /// Instead of an agent: what it says.
    pub(crate) fn agent(&self, at: &Position, asked: &AgentPrompt<'_>, run_dirs: &RunDirs) -> Result<String, Failure> {
        let AgentPrompt { agent, prompt, schema, output_path } = *asked;
        let stub_call = StubCall::Prompt { agent: agent.map(str::to_owned), prompt: prompt.to_owned() };
        let stub = self.call_stub(at, stub_call, run_dirs)?;
        Ok(match (stub.and_then(|stub| stub.result), schema) {
            (Some(Value::String(text)), _) => text,
            (Some(other), _) => other.to_string(),
            (None, Some(schema)) => schema_sample(schema).to_string(),
            (None, None) if output_path.is_some_and(|path| path.ends_with(".json")) => "{}".to_owned(),
            (None, None) => format!("This stands in for what the agent of {} would say.", at.address),
        })
    }

    /// Instead of a script, where something stands in for it; all others are evaluated.
    pub(crate) fn script(&self, at: &Position, run_dirs: &RunDirs) -> Option<Result<Stub, Failure>> {
        let (name, given) = self.find(&at.address)?;
        let times = self.used.lock().expect("nobody panics while holding this").get(name).copied().unwrap_or(0);
        match given {
            StubPlan::InOrder(stubs) if times >= stubs.len() => return None,
            StubPlan::InOrder(_) | StubPlan::Always(_) => {}
        }
        Some(self.call_stub(at, StubCall::Script, run_dirs).map(Option::unwrap_or_default))
    }

    /// Leaves declared outputs behind that nobody wrote.
    pub(crate) fn leave(&self, address: &str, run_dirs: &RunDirs, outputs: &[String]) -> Result<(), Failure> {
        for path in outputs {
            let exists = output_exists(run_dirs, path).map_err(|refused| cannot(refused.to_string()))?;
            if !exists {
                let path = if path.ends_with('/') { format!("{path}output.txt") } else { path.clone() };
                let text = match path.ends_with(".json") {
                    true => "{}\n".to_owned(),
                    false => format!("This stands in for an output of {address}.\n"),
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
