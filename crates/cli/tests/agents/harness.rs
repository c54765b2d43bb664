//! A project in a temporary directory, with an agent program that talks to the stub.

use crate::programs::Program;
use crate::stub::{KEY, Stub};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any operation that succeeds at all.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Harness {
    pub(crate) stub: Stub,
    /// Contains the agent's home directory and the project.
    directory: tempfile::TempDir,
    program: Program,
}

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Harness {
    pub(crate) fn new(program: Program) -> Self {
        let harness = Self { stub: Stub::start(), directory: tempfile::tempdir().unwrap(), program };
        for directory in ["home", "tmp", "project/.lockgate"] {
            std::fs::create_dir_all(harness.directory.path().join(directory)).unwrap();
        }
        harness.write("project/.lockgate/config.yaml", "people: { require_terminal: false }\n");
        // Some programs tie sessions to a repository.
        let made = Command::new("git").args(["init", "--quiet"]).current_dir(harness.root()).status().unwrap();
        assert!(made.success());
        for (path, text) in (harness.program.files)(&harness.stub.url()) {
            harness.write(path, &text);
        }
        harness
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    /// Writes a file in the project or in the agent's home directory.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes a workflow with these tasks in sequence. `agent` extends the configuration of the program.
    pub(crate) fn flow(&self, tasks: &Value, agent: &Value, others: &Value) {
        let args = [self.program.needs, self.program.permits].concat();
        self.flow_with(&json!({"preset": self.program.preset, "args": args}), tasks, agent, others);
    }

    /// Like [`Self::flow`], but does not permit the program to use its shell.
    pub(crate) fn flow_without_permission(&self, tasks: &Value) {
        let setting = json!({"preset": self.program.preset, "args": self.program.needs});
        self.flow_with(&setting, tasks, &json!({}), &json!({}));
    }

    fn flow_with(&self, setting: &Value, tasks: &Value, agent: &Value, others: &Value) {
        let mut setting = setting.clone();
        merge(&mut setting, agent);
        let mut flow = json!({
            "name": "flow",
            "agents": {"default": setting},
            "phases": [{"id": "work", "behavior": "sequential", "tasks": tasks}],
        });
        merge(&mut flow, others);
        // JSON is YAML.
        self.write("project/flow.yaml", &flow.to_string());
    }

    /// A `lockgate` command in the project, with the agent's home directory and a key that the stub accepts.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockgate"));
        command.args(arguments).current_dir(self.root()).env_clear().stdin(Stdio::null());
        command.env("PATH", path(self.program.directory)).env("HOME", self.directory.path().join("home"));
        // Some programs leave reports and unpacked libraries in the temporary directory.
        command.env("TMPDIR", self.directory.path().join("tmp"));
        command.env("USER", "tester").env("TERM", "dumb").env("LANG", "C.UTF-8");
        command.env(self.program.key, KEY).envs((self.program.environment)(&self.stub.url()));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        output(self.command(arguments))
    }

    /// Runs with a key that the stub rejects.
    pub(crate) fn run_with_another_key(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        command.env(self.program.key, "some-other-key");
        output(command)
    }

    /// Runs without a key.
    pub(crate) fn run_without_key(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        command.env_remove(self.program.key);
        output(command)
    }

    /// Runs the workflow, and checks the exit code.
    pub(crate) fn must(&self, code: i32, arguments: &[&str]) -> Output {
        let output = self.run(arguments);
        assert_eq!(output.code, Some(code), "{arguments:?}: {}\n{}\n{:#?}", output.stdout, output.stderr, self.stub.seen());
        output
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The newest run.
    pub(crate) fn newest(&self) -> String {
        let runs = self.json(&["runs", "--json"]);
        runs[0]["run"].as_str().unwrap_or_default().to_owned()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.must(0, arguments).stdout).unwrap()
    }

    pub(crate) fn status(&self) -> Value {
        self.json(&["status", &self.newest(), "--json"])
    }

    /// The events of one kind in the newest run.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        let run = self.newest();
        if run.is_empty() {
            return Vec::new();
        }
        let log = self.must(0, &["log", &run, "--json"]).stdout;
        let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["type"] == kind).collect()
    }

    /// The agent's report about the task that finished with this number.
    pub(crate) fn report(&self, number: usize) -> Value {
        let finished = self.events("task_finished");
        finished.get(number).map(|event| event["agent"].clone()).unwrap_or_else(|| panic!("{finished:#?}"))
    }

    /// Waits until no process uses the agent's home directory.
    pub(crate) fn until_nothing_runs(&self) {
        let home = format!("HOME={}\0", self.directory.path().join("home").display());
        until("everything that the agent started has ended", || processes_with(&home).is_empty());
    }
}

impl Drop for Harness {
    /// A failed test must not leave processes running.
    fn drop(&mut self) {
        let home = format!("HOME={}\0", self.directory.path().join("home").display());
        for pid in processes_with(&home) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                // The process may have exited already.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Processes with this variable in their environment.
fn processes_with(variable: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(variable)
    };
    pids.filter(has).collect()
}

fn output(mut command: Command) -> Output {
    let output = command.output().unwrap();
    Output {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A search path with the program, the Node.js that it needs, and the system directories.
fn path(directory: &str) -> String {
    let installed = std::env::var("LOCKGATE_AGENT_PROGRAMS")
        .expect("the real agent programs are needed: run these tests with `cargo xtask agents`, which installs them");
    let of = |name: &str| Path::new(&installed).join(name).join("node_modules/.bin").display().to_string();
    assert!(Path::new(&of(directory)).is_dir(), "{} is missing: run these tests with `cargo xtask agents`", of(directory));
    [of(directory), of("node"), std::env::var("PATH").unwrap_or_default()].join(":")
}

/// Merges a map into another one. Lists are concatenated.
fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        match (&mut into[key], value) {
            (Value::Array(list), Value::Array(more)) => list.extend(more.iter().cloned()),
            (place, value) => *place = value.clone(),
        }
    }
}

/// Waits until a condition is true.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
}
