//! Worktrees and commits under stress: random workflows in random repositories, with failing hooks and slow filters, are killed
//! at random times, with or without their child processes, and resumed. `LOCKGATE_KILLS` sets the number of kills (8 by default),
//! `LOCKGATE_SOAK_MINUTES` limits the time.

use crate::crash_recovery::number;
use crate::project::{Project, lives, without_terminal};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A task records its start and writes one file per attempt and one for all attempts. If its work is committed, it also changes a
/// line in a file that the user is editing.
const WORK: &str = r#"
name="$LOCKGATE_PHASE-$LOCKGATE_TASK"
echo "$LOCKGATE_RUN $LOCKGATE_PHASE/$LOCKGATE_TASK $LOCKGATE_ATTEMPT $$" >> "$TRACE/trace"
echo "$LOCKGATE_RUN $LOCKGATE_ATTEMPT" > "$name-$LOCKGATE_ATTEMPT.txt"
sleep 0.05
echo "$LOCKGATE_RUN $LOCKGATE_ATTEMPT" >> "$name.slow"
if [ "$1" = commit ]; then sed -i "s/^$name .*/$name $LOCKGATE_RUN/" lines.txt; fi
"#;

/// A file in which the user edits the first line and each task its own line, so that edits never conflict.
fn lines(first: &str) -> String {
    let mut lines = first.to_owned();
    for name in ["one-x", "one-y", "one-z", "two-x", "two-y", "two-z"] {
        lines += &format!("\n2\n3\n4\n5\n6\n{name} nobody");
    }
    lines + "\n"
}

/// Marks uncommitted changes of the user, which must never be committed.
const USERS: &str = "USER";

#[derive(Clone, Debug)]
struct Task {
    address: String,
    commit: bool,
    worktree: bool,
}

struct Storm {
    project: Project,
    random: SmallRng,
    tasks: Vec<Task>,
    /// The number of commits before the run.
    commits: usize,
    kills: u64,
    seed: u64,
}

#[test]
#[expect(clippy::print_stdout, reason = "soak shows how much was done")]
fn random_kills_lose_nothing_in_git_and_only_requested_work_is_committed() {
    let kills = number("LOCKGATE_KILLS").unwrap_or(8);
    let until = number("LOCKGATE_SOAK_MINUTES").map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let mut seed = number("LOCKGATE_SEED").or_else(|| number("LOCKGATE_FIRST_SEED")).unwrap_or(20_261_117);
    let (mut done, mut storms) = (0, 0);
    while done < kills && until.is_none_or(|until| Instant::now() < until) {
        done += Storm::new(seed).run();
        (storms, seed) = (storms + 1, seed + 1);
    }
    println!("{done} kills in {storms} storms, up to seed {}", seed - 1);
}

impl Storm {
    fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut tasks = Vec::new();
        let mut flow = "name: storm\nphases:\n".to_owned();
        for phase in ["one", "two"] {
            flow += &format!("  - id: {phase}\n    tasks:\n");
            if phase == "one" {
                flow += "      - { id: way, blocking: false, decision: { question: Which?, options: [{ id: a }, { id: b }] } }\n";
            }
            for id in &["x", "y", "z"][..random.random_range(2..=3)] {
                let task = Task { address: format!("{phase}/{id}"), commit: random.random(), worktree: random.random_bool(0.3) };
                let argument = if task.commit { "commit" } else { "" };
                flow += &format!(
                    "      - {{ id: {id}, on_interrupt: rerun, retry: 4, worktree: {}, commit: {}, run: 'sh \"$TRACE/work.sh\" {argument}' }}\n",
                    task.worktree, task.commit
                );
                tasks.push(task);
            }
            if phase == "one" {
                flow += "    checkpoint: { prompt: Go on? }\n";
            }
        }
        let project = Project::with(&flow);
        repository(&project, &mut random);
        let commits = project.git(&["rev-list", "--count", "HEAD"]).trim().parse().unwrap();
        Self { project, random, tasks, commits, kills: 0, seed }
    }

    /// Kills a run, and sometimes a fork of it, until each is complete. Returns the number of kills.
    fn run(mut self) -> u64 {
        let run = self.until_complete(None);
        self.check(std::slice::from_ref(&run));
        if self.random.random_bool(0.5) {
            let hold = self.project.events(&run, "answered")[0]["hold"].as_str().unwrap().to_owned();
            let changed = self.project.json(0, &["change", &hold, "b", "--yes", "--json"]);
            let fork = self.until_complete(Some(changed["run"].as_str().unwrap().to_owned()));
            self.check(&[run, fork]);
        }
        self.kills.max(1)
    }

    fn until_complete(&mut self, run: Option<String>) -> String {
        let most = self.kills + 3;
        let mut run = run;
        for _ in 0..20 {
            let Some(id) = run.clone() else {
                self.drive(&["run", "flow.yaml"], most);
                // It may have been killed before the database was created.
                let listed: Value = serde_json::from_str(&self.project.run(&["runs", "--json"]).stdout).unwrap_or_default();
                run = listed.get(0).map(|run| run["run"].as_str().unwrap().to_owned());
                continue;
            };
            match self.project.status(&id)["status"].as_str().unwrap() {
                "complete" => return id,
                "waiting" => {
                    // No task is running, so the user's edits cannot be mistaken for a task's.
                    self.project.write("later.txt", format!("{USERS} later\n"));
                    let answered = self.project.run(&["answer", &self.project.waiting_hold(), "Continue", "--no-resume"]);
                    assert_eq!(answered.code, Some(0), "{answered:?}");
                }
                _ => self.drive(&["resume", &id], most),
            }
        }
        let log = self.project.run(&["log", &run.unwrap()]).stdout;
        let last: Vec<&str> = log.lines().rev().take(10).collect();
        panic!("{}: {last:#?}", self.describe("it never ends"));
    }

    /// Runs the program, and kills it after a while until the limit is reached.
    fn drive(&mut self, arguments: &[&str], most: u64) {
        let mut command = self.project.command(arguments);
        without_terminal(&mut command);
        command.env("TRACE", self.project.path(".lockgate"));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if self.kills >= most {
            child.wait().unwrap();
            return;
        }
        let until = Instant::now() + Duration::from_millis(self.random.random_range(0..1_500));
        while Instant::now() < until {
            if child.try_wait().unwrap().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let started = if self.random.random() { descendants(child.id()) } else { Vec::new() };
        child.kill().unwrap();
        for pid in started {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        child.wait().unwrap();
        self.kills += 1;
    }

    fn describe(&self, claim: &str) -> String {
        format!("{claim} (LOCKGATE_SEED={}, {:?})", self.seed, self.tasks)
    }

    /// Checks the guarantees once these runs are complete.
    fn check(&self, runs: &[String]) {
        let project = &self.project;
        let run = runs.last().unwrap();
        let finished = self.finished_once(run);
        self.users_work_is_untouched();
        let trees = project.json(0, &["worktrees", run, "--json"]);
        for task in self.tasks.iter().filter(|task| finished.contains_key(&task.address)) {
            let found = trees.as_array().unwrap().iter().find(|tree| tree["task"] == task.address.as_str());
            let folder = match (task.worktree, found) {
                (false, _) => project.root(),
                (true, Some(tree)) => project.path(tree["path"].as_str().unwrap()),
                (true, None) => panic!("{}", self.describe(&format!("the worktree of {} is gone", task.address))),
            };
            self.work_is_there(run, task, finished[&task.address], &folder);
        }
        self.nothing_else_is_committed(runs);
        for line in project.read(".lockgate/trace").lines() {
            assert!(!lives(line.rsplit(' ').next().unwrap()), "{}", self.describe("something still runs"));
        }
        assert_eq!(project.run(&["db", "gc"]).code, Some(0));
        assert!(!project.path(".git/index.lock").exists(), "{}", self.describe("git is locked"));
        assert_eq!(project.git(&["for-each-ref", "refs/lockgate"]), "", "{}", self.describe("snapshots are left"));
        project.git(&["fsck", "--connectivity-only"]);
        let verified = project.run(&["db", "verify", run]);
        assert_eq!(verified.code, Some(0), "{}: {verified:?}", self.describe("the history verifies"));
    }

    /// The attempts that finished each task. Nothing of a task starts after that.
    fn finished_once(&self, run: &str) -> BTreeMap<String, u64> {
        let address = |event: &Value| format!("{}/{}", event["phase"].as_str().unwrap(), event["task"].as_str().unwrap());
        let mut finished = BTreeMap::new();
        for event in self.project.log(run) {
            match event["type"].as_str().unwrap() {
                "task_finished" => drop(finished.insert(address(&event), event["attempt"].as_u64().unwrap())),
                "task_started" => {
                    assert!(!finished.contains_key(&address(&event)), "{}: {event}", self.describe("finished work ran again"));
                }
                _ => {}
            }
        }
        // The question leaves no files.
        finished.remove("one/way");
        let trace = self.project.read(".lockgate/trace");
        for (task, attempt) in &finished {
            let started = trace.lines().filter_map(|line| line.strip_prefix(&format!("{run} {task} ")));
            let last = started.filter_map(|rest| rest.split(' ').next()?.parse::<u64>().ok()).max();
            assert_eq!(last, Some(*attempt), "{}", self.describe("the attempt that finished is the last that ran"));
        }
        finished
    }

    fn users_work_is_untouched(&self) {
        let project = &self.project;
        let lines = project.read("lines.txt");
        assert!(lines.starts_with(&format!("{USERS} line\n2\n")), "{}: {lines}", self.describe("the user's changes are lost"));
        assert_eq!(project.git(&["show", ":staged.txt"]), format!("{USERS} staged\n"), "{}", self.describe("staged"));
        for (name, text) in [("staged.txt", "staged"), ("note.txt", "note"), ("later.txt", "later")] {
            assert_eq!(project.read(name), format!("{USERS} {text}\n"), "{}", self.describe("the user's changes are lost"));
        }
        let found = project.git(&["log", "--all", "--oneline", &format!("-S{USERS}")]);
        assert_eq!(found, "", "{}", self.describe("uncommitted work of the user was committed"));
    }

    /// The work of a finished task, from all attempts, is committed if requested, and otherwise on disk.
    fn work_is_there(&self, run: &str, task: &Task, attempt: u64, folder: &Path) {
        let name = task.address.replace('/', "-");
        let files = [format!("{name}-{attempt}.txt"), format!("{name}.slow")];
        for file in &files {
            let written = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
            let line = format!("{run} {attempt}");
            assert_eq!(written.lines().last(), Some(line.as_str()), "{}: {file}", self.describe("the work of a task is lost"));
        }
        if task.commit {
            let git = |arguments: &[&str]| {
                let output = Command::new("git").args(arguments).current_dir(folder).output().unwrap();
                String::from_utf8(output.stdout).unwrap()
            };
            let pattern = format!("{name}*");
            let left = git(&["diff", "HEAD", "--", &pattern]);
            let (log, history) = (self.project.read(".lockgate/trace"), git(&["log", "--stat", "--max-count=4"]));
            let claim = self.describe("not all of it is committed");
            assert_eq!(git(&["status", "--porcelain", "--", &pattern]), "", "{claim}: {left}\n{log}\n{history}");
            for file in &files {
                assert_eq!(git(&["ls-files", "--", file]).trim(), file, "{}", self.describe("it is not committed"));
            }
            let line = format!("\n{name} {run}\n");
            assert!(git(&["show", "HEAD:lines.txt"]).contains(&line), "{}", self.describe("its line is not committed"));
        }
    }

    /// The user's branch contains the commits of the tasks that commit on it, with only their files.
    fn nothing_else_is_committed(&self, runs: &[String]) {
        let project = &self.project;
        let on_main: Vec<&Task> = self.tasks.iter().filter(|task| task.commit && !task.worktree).collect();
        let new = format!(
            "--max-count={}",
            project.git(&["rev-list", "--count", "HEAD"]).trim().parse::<usize>().unwrap() - self.commits
        );
        let mut subjects: Vec<String> = project.git(&["log", "--format=%s", &new]).lines().map(str::to_owned).collect();
        let mut expected: Vec<String> = Vec::new();
        for run in runs {
            let finished = self.project.events(run, "task_finished");
            let is = |event: &Value, task: &Task| {
                format!("{}/{}", event["phase"].as_str().unwrap(), event["task"].as_str().unwrap()) == task.address
            };
            let done = on_main.iter().filter(|task| finished.iter().any(|event| is(event, task)));
            expected.extend(done.map(|task| format!("{}: {}", task.address, task.address.split('/').next_back().unwrap())));
        }
        // An attempt that was killed right after its commit runs again, and commits again.
        for commits in [&mut subjects, &mut expected] {
            commits.sort();
            commits.dedup();
        }
        assert_eq!(subjects, expected, "{}", self.describe("the commits are those of the tasks"));
        for file in project.git(&["log", "--name-only", "--format=", &new]).lines().filter(|file| !file.is_empty()) {
            let of_task = |task: &&Task| file.starts_with(&task.address.replace('/', "-"));
            assert!(
                file == "lines.txt" || on_main.iter().any(of_task),
                "{}: {file}",
                self.describe("an unrequested file was committed")
            );
        }
    }
}

/// Turns the project into a random kind of repository, with uncommitted work of the user.
fn repository(project: &Project, random: &mut SmallRng) {
    project.init_git();
    project.write(".gitignore", ".lockgate/\nflow.yaml\norigin/\n");
    project.write(".gitattributes", "*.slow filter=slow\n");
    project.write("lines.txt", lines("1"));
    project.write("base.slow", "base\n");
    project.write(".lockgate/work.sh", WORK);
    project.git(&["add", "-A"]);
    project.git(&["commit", "--quiet", "-m", "first"]);
    project.write("second.txt", "second\n");
    project.git(&["add", "-A"]);
    project.git(&["commit", "--quiet", "-m", "second"]);
    let origin = project.path("origin").to_string_lossy().into_owned();
    match random.random_range(0..4) {
        0 => {}
        1 => drop(project.git(&["checkout", "--quiet", "--detach"])),
        2 => {
            project.git(&["clone", "--quiet", "--bare", ".", &origin]);
            project.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &origin, "sub"]);
            project.git(&["commit", "--quiet", "-m", "third"]);
        }
        _ => {
            project.git(&["clone", "--quiet", "--bare", ".", &origin]);
            project.git(&["fetch", "--quiet", "--depth=1", &format!("file://{origin}"), "main"]);
            project.git(&["update-ref", "HEAD", "FETCH_HEAD"]);
        }
    }
    let slow = |seconds: &str| format!("sleep {seconds}; cat");
    if random.random() {
        project.git(&["config", "filter.slow.clean", &slow("0.02")]);
        project.git(&["config", "filter.slow.smudge", &slow("0.1")]);
    }
    if random.random() {
        let failures = random.random_range(1..=2);
        hook(
            project,
            "pre-commit",
            &format!(
                "echo x >> $LOG/hooks; test $(wc -l < $LOG/hooks) -gt {failures} || sleep 0.1; test $(wc -l < $LOG/hooks) -gt {failures}"
            ),
        );
    }
    if random.random() {
        hook(project, "post-checkout", "sleep 0.2");
    }
    project.write("lines.txt", lines(&format!("{USERS} line")));
    project.write("staged.txt", format!("{USERS} staged\n"));
    project.git(&["add", "staged.txt"]);
    project.write("note.txt", format!("{USERS} note\n"));
    project.write("later.txt", format!("{USERS} later\n"));
}

fn hook(project: &Project, name: &str, script: &str) {
    let log = project.path(".lockgate");
    project.script(&format!(".git/hooks/{name}"), &format!("LOG='{}'\n{script}", log.display()));
}

/// The descendants of a process.
fn descendants(of: u32) -> Vec<rustix::process::Pid> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut found = vec![of];
    let mut at = 0;
    while at < found.len() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == found[at]).map(|(pid, _)| *pid).collect::<Vec<_>>());
        at += 1;
    }
    found[1..].iter().filter_map(|pid| rustix::process::Pid::from_raw(i32::try_from(*pid).ok()?)).collect()
}
