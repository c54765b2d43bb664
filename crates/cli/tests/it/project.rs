//! A project in a temporary directory, and running the program in it.

use crate::store_selection;
use lockgate_store::postgres::test_server::server;
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any operation that succeeds at all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A directory with a `.lockgate`, where answers need no terminal unless a test requires one.
pub(crate) struct Project {
    folder: tempfile::TempDir,
    /// The line in the settings that selects a database on a server.
    selects: String,
}

const SETTINGS: &str = ".lockgate/config.yaml";

/// The result of running the program.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Project {
    /// A project whose people need no terminal, as in CI.
    pub(crate) fn new() -> Self {
        let project = Self::with_terminal_required();
        project.write(SETTINGS, "people: { require_terminal: false }\n");
        project
    }

    /// A project with default settings.
    pub(crate) fn with_terminal_required() -> Self {
        Self::selecting(store_selection::selecting_line())
    }

    /// A project on SQLite, regardless of the selected store, whose people need no terminal.
    pub(crate) fn on_sqlite() -> Self {
        let project = Self::selecting(String::new());
        project.write(SETTINGS, "people: { require_terminal: false }\n");
        project
    }

    /// A project on PostgreSQL, regardless of the selected store, with a workflow in `flow.yaml`, whose people need no terminal.
    pub(crate) fn on_postgresql_with(flow: &str) -> Self {
        let project = Self::selecting(store_selection::postgresql_line());
        project.write(SETTINGS, "people: { require_terminal: false }\n");
        project.write("flow.yaml", flow);
        project
    }

    fn selecting(selects: String) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap(), selects };
        std::fs::create_dir(project.path(".lockgate")).unwrap();
        if !project.selects.is_empty() {
            project.write(SETTINGS, "");
        }
        project
    }

    /// A project with a workflow in `flow.yaml`.
    pub(crate) fn with(flow: &str) -> Self {
        let project = Self::new();
        project.write("flow.yaml", flow);
        project
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file. Settings files also get the line that selects the database.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let selects = if name == SETTINGS { self.selects.as_bytes() } else { b"" };
        let path = self.path(name);
        path.parent().map(std::fs::create_dir_all).transpose().unwrap();
        std::fs::write(path, [text.as_ref(), selects].concat()).unwrap();
    }

    /// Reads a file, without the line that selects the database.
    pub(crate) fn read(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.strip_suffix(self.selects.as_str()).map(str::to_owned).unwrap_or(text)
    }

    /// Whether its runs are kept in PostgreSQL.
    pub(crate) fn is_on_postgresql(&self) -> bool {
        !self.selects.is_empty()
    }

    /// Modifies the database directly, with a statement for each kind of store.
    pub(crate) fn change(&self, on_sqlite: &str, on_postgresql: &str) {
        match self.selects.split_once(' ') {
            Some((_, url)) => server().perform(url.trim(), on_postgresql),
            None => rusqlite::Connection::open(self.path(".lockgate/lockgate.db")).unwrap().execute_batch(on_sqlite).unwrap(),
        }
    }

    /// Writes an executable shell script.
    pub(crate) fn script(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        self.write(name, format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Initializes a git repository, with an identity for commits.
    pub(crate) fn init_git(&self) {
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        for (name, value) in [("user.name", "tester"), ("user.email", "tester@example.invalid"), ("commit.gpgsign", "false")] {
            self.git(&["config", name, value]);
        }
    }

    /// The output of git in this directory.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git").args(arguments).current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The program with arguments, in this directory, with a controlled environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("USER", "tester").env("LOCKGATE", program());
        command
    }

    /// Runs the program without a terminal. Output with `--json` must match its documented schema.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        without_terminal(&mut command);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let output = Output {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        crate::json_schema::check(arguments, &output);
        output
    }

    /// Starts the program without a terminal. Wait for it with [`finish`].
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        without_terminal(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a command, checks its exit code, and returns its JSON.
    pub(crate) fn json(&self, code: i32, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        assert_eq!(output.code, Some(code), "{arguments:?}: {output:?}");
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {output:?}"))
    }

    /// The newest run.
    pub(crate) fn newest(&self) -> String {
        let runs = self.json(0, &["runs", "--json"]);
        runs[0]["run"].as_str().unwrap().to_owned()
    }

    pub(crate) fn status(&self, run: &str) -> Value {
        self.json(0, &["status", run, "--json"])
    }

    /// The history of a run.
    pub(crate) fn log(&self, run: &str) -> Vec<Value> {
        let output = self.run(&["log", run, "--json"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The types of the events of a run, in order.
    pub(crate) fn kinds(&self, run: &str) -> Vec<String> {
        self.log(run).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// The events of one type.
    pub(crate) fn events(&self, run: &str, kind: &str) -> Vec<Value> {
        self.log(run).into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// The open hold, as `ID@REV`.
    pub(crate) fn waiting_hold(&self) -> String {
        let inbox = self.json(0, &["inbox", "--json"]);
        assert_eq!(inbox.as_array().unwrap().len(), 1, "{inbox}");
        format!("{}@{}", inbox[0]["id"].as_str().unwrap(), inbox[0]["revision"])
    }

    /// The output as a snapshot: exit code, stdout and stderr, with ids, times, durations and paths redacted.
    pub(crate) fn snapshot(&self, output: &Output) -> String {
        let text = format!(
            "exit {}\n--- stdout\n{}--- stderr\n{}",
            output.code.map_or_else(|| "by signal".to_owned(), |code| code.to_string()),
            output.stdout,
            output.stderr
        );
        let mut text = text.replace(&*self.root().to_string_lossy(), "[ROOT]");
        text = text.replace(&*self.folder.path().to_string_lossy(), "[ROOT]");
        let (runs, holds) = self.ids();
        for run in runs {
            text = text.replace(&run, "[RUN]");
        }
        for hold in holds {
            text = text.replace(&hold, "[HOLD]");
        }
        let user = user();
        text = text.replace(&format!("by {user} "), "by [USER] ").replace(&format!("]: {user} "), "]: [USER] ");
        redact_timestamps(&text)
    }

    fn ids(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut ids, mut holds) = (BTreeSet::new(), BTreeSet::new());
        let listed = self.run(&["runs", "--json"]);
        let runs: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap_or_default();
        for run in runs {
            let run = run["run"].as_str().unwrap().to_owned();
            holds.extend(self.events(&run, "hold_opened").iter().map(|event| event["hold"].as_str().unwrap().to_owned()));
            ids.insert(run);
        }
        (ids, holds)
    }
}

/// The program under test.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_lockgate"))
}

/// The user who runs the tests, according to the system. `USER` in the environment of the program names another one.
pub(crate) fn user() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Detaches a process from any terminal, including that of the tests.
pub(crate) fn without_terminal(command: &mut Command) {
    // SAFETY: setsid is a system call that touches no memory, so it is safe between fork and exec.
    unsafe {
        command.pre_exec(|| rustix::process::setsid().map(drop).map_err(Into::into));
    }
}

/// Whether the tests were started with `nohup`, so that the processes they start survive their terminal too.
pub(crate) fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    u64::from_str_radix(ignored.trim(), 16).is_ok_and(|ignored| ignored & 1 == 1)
}

/// Waits for a started process, and returns its output.
pub(crate) fn finish(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    Output {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Sends a signal to a process.
pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

/// Waits until a condition is true.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process is alive. Its files and locks are released only when its last thread, not necessarily the first, has ended.
pub(crate) fn lives(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let fields: Vec<&str> = status.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
    let threads = fields.get(17).and_then(|threads| threads.parse::<u32>().ok()).unwrap_or(0);
    !fields.is_empty() && (fields[0] != "Z" || threads > 1)
}

/// Redacts times (`2026-01-01T…Z`), durations (`12 ms`, `1.2 s`) and ages.
fn redact_timestamps(text: &str) -> String {
    let mut redacted = String::new();
    for line in text.split_inclusive('\n') {
        let mut line = line.to_owned();
        if line.starts_with("snapshot CP-") {
            line = "snapshot [SNAPSHOT]\n".to_owned();
        }
        while let Some((start, end)) = find_timestamp(&line) {
            line.replace_range(start..end, "[TIME]");
        }
        for (before, unit) in [(" in ", " ms\n"), (" in ", " s\n"), (" after ", " ms:"), (" after ", " s:")] {
            let Some(start) = line.rfind(before) else { continue };
            let Some(end) = line[start..].find(unit) else { continue };
            let number = &line[start + before.len()..start + end];
            if number.chars().all(|character| character.is_ascii_digit() || character == '.') {
                let rest = line[start + end + unit.len() - 1..].to_owned();
                line = format!("{}{before}[TOOK]{rest}", &line[..start]);
            }
        }
        if let Some(start) = line.find("(just now)").or_else(|| line.rfind('(').filter(|_| line.trim_end().ends_with(" ago)"))) {
            line = format!("{}([AGO])\n", &line[..start]);
        }
        redacted += &line;
    }
    redacted
}

/// Finds a time in either form: `2026-01-31T12:00:00.000Z` in JSON, `2026-01-31 13:00:00 +01:00` for people.
fn find_timestamp(line: &str) -> Option<(usize, usize)> {
    let forms = ["0000-00-00T00:00:00.000Z", "0000-00-00 00:00:00 +00:00"];
    (0..line.len()).find_map(|start| {
        let fits = |form: &&&str| {
            line.get(start..start + form.len()).is_some_and(|found| {
                found.bytes().zip(form.bytes()).all(|(byte, expected)| match expected {
                    b'0' => byte.is_ascii_digit(),
                    b'+' => byte == b'+' || byte == b'-',
                    _ => byte == expected,
                })
            })
        };
        forms.iter().find(fits).map(|form| (start, start + form.len()))
    })
}
