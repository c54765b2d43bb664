//! `watch`: following a run that another process drives.

use crate::project::{Output, Project, finish, signal, until};
use crate::screen::Screen;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};

const WINDOW: (u16, u16) = (80, 24);

const FLOW: &str = "
name: ship
phases:
  - id: build
    tasks:
      - { id: compile, run: 'echo compiling; touch began; until test -e go; do sleep 0.02; done' }
    gates:
      - { id: tests, run: 'echo testing; touch gate; until test -e on; do sleep 0.02; done' }
  - id: release
    tasks: [{ id: upload, run: 'true' }]
";

fn started() -> (Project, std::process::Child, String) {
    let project = Project::with(FLOW);
    let driver = project.start(&["run", "flow.yaml", "slug"]);
    until("the task", || project.path("began").exists());
    let run = project.newest();
    (project, driver, run)
}

/// A `watch` process that has started to follow.
struct Watching {
    child: std::process::Child,
    stdout: BufReader<std::process::ChildStdout>,
    first: String,
}

impl Watching {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        let mut child = project.start(arguments);
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        Self { child, stdout, first }
    }

    fn end(mut self) -> Output {
        let mut stdout = self.first;
        self.stdout.read_to_string(&mut stdout).unwrap();
        Output { stdout, ..finish(self.child) }
    }
}

#[test]
fn watch_shows_the_tree_of_a_run_driven_by_another_process_until_it_ends() {
    let (project, driver, run) = started();
    let mut screen = Screen::start(&project, WINDOW, &["watch", "slug"]);
    screen.until("the tree", |screen| {
        screen.rows().iter().any(|row| row.starts_with("    ● compile") && row.ends_with("s  compiling"))
    });
    assert!(screen.text().contains(&format!("● {run} ship (slug)")), "{}", screen.text());
    project.write("go", "");
    screen.until("the gate", |screen| {
        screen.rows().iter().any(|row| row.starts_with("    ● gate tests") && row.ends_with("s  testing"))
    });
    screen.shows("  build/compile done in");
    // A late observer of a running gate sees its elapsed time.
    let mut late = Screen::start(&project, WINDOW, &["watch", &run]);
    late.until("the gate", |screen| {
        screen.rows().iter().any(|row| row.starts_with("    ● gate tests ") && row.ends_with("s  testing"))
    });
    project.write("on", "");
    assert_eq!(screen.end(), 0);
    assert_eq!(late.end(), 0);
    assert!(screen.text().contains("is complete") && !screen.text().contains('●'), "{}", screen.text());
    assert_eq!(finish(driver).code, Some(0));
}

#[test]
fn q_and_ctrl_c_close_watch_and_the_run_continues() {
    let (project, driver, run) = started();
    for (key, code) in [("q", 0), ("\x03", 130)] {
        let script =
            "before=$(stty -g); \"$LOCKGATE\" watch slug; code=$?; test \"$before\" = \"$(stty -g)\" && echo same; exit $code";
        let mut screen = Screen::shell(&project, WINDOW, script, &[]);
        screen.shows("    ● compile");
        screen.send(key);
        assert_eq!(screen.end(), code, "{}", screen.text());
        assert!(screen.text().contains("same") && !screen.text().contains('●'), "{}", screen.text());
    }
    assert_eq!(project.status(&run)["status"], "running");
    project.write("go", "");
    project.write("on", "");
    assert_eq!(finish(driver).code, Some(0));
}

#[test]
fn without_a_terminal_watch_prints_events_and_exits_with_the_run_outcome() {
    let (project, driver, run) = started();
    let watching = Watching::start(&project, &["watch", "slug"]);
    let json = Watching::start(&project, &["watch", &run, "--json"]);
    project.write("go", "");
    until("the gate", || project.path("gate").exists());
    project.write("on", "");
    let output = watching.end();
    assert_eq!(output.code, Some(0), "{output:?}");
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines[0], format!("run {run}: ship is running"), "{output:?}");
    let done = lines.iter().find(|line| line.starts_with("  build/compile done in ")).expect("the task is reported");
    assert!(!done.ends_with(" in 0 ms"), "it started before watch did: {output:?}");
    assert!(lines.iter().any(|line| line.starts_with("  gate tests passed in ")), "{output:?}");
    assert!(output.stderr.contains("is complete"), "{output:?}");
    let output = json.end();
    assert_eq!(output.code, Some(0), "{output:?}");
    let reported: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(reported[0]["run"], *run);
    assert_eq!(reported.last().unwrap()["status"], "complete");
    assert!(reported.len() > 1 && reported.windows(2).all(|pair| pair[0] != pair[1]), "each reports something new");
    assert_eq!(finish(driver).code, Some(0));
}

#[test]
fn watch_waits_while_the_run_has_no_driver_and_continues_when_it_is_resumed() {
    let (project, driver, run) = started();
    signal(&driver, Signal::KILL);
    finish(driver);
    let mut screen = Screen::start(&project, WINDOW, &["watch", &run]);
    screen.shows("no process drives it");
    screen.shows("interrupted");
    let resumed = project.start(&["resume", &run, "--rerun"]);
    screen.shows("    ● compile (attempt 2)");
    project.write("go", "");
    project.write("on", "");
    assert_eq!(screen.end(), 0, "{}", screen.text());
    assert_eq!(finish(resumed).code, Some(0));
}

#[test]
fn watch_of_an_ended_run_changes_nothing_and_ends_immediately() {
    let project = Project::with("name: bad\nphases: [{ id: a, tasks: [{ id: t, run: 'exit 3' }] }]\n");
    assert_eq!(project.run(&["run", "flow.yaml", "it"]).code, Some(1));
    let run = project.newest();
    let before = project.log(&run);
    let output = project.run(&["watch", "it"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("failed"), "{output:?}");
    assert_eq!(project.run(&["watch", "it", "--json"]).code, Some(1));
    assert_eq!(project.log(&run), before);
}

#[test]
fn a_signal_ends_watch_and_leaves_the_terminal_as_it_was() {
    let (project, driver, _) = started();
    let script = "before=$(stty -g); \"$LOCKGATE\" watch slug & pid=$!; fg > /dev/null; code=$?; \
                  test \"$before\" = \"$(stty -g)\" && echo same; exit $code";
    let mut screen = Screen::shell(&project, WINDOW, &format!("set -m; {}", script.replace("pid=$!", "echo $! > watcher")), &[]);
    screen.shows("    ● compile");
    until("the watcher's id", || !project.read("watcher").trim().is_empty());
    let pid = rustix::process::Pid::from_raw(project.read("watcher").trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(screen.end(), 143, "{}", screen.text());
    assert!(screen.text().contains("same"), "{}", screen.text());
    project.write("go", "");
    project.write("on", "");
    assert_eq!(finish(driver).code, Some(0));
}
