//! Resuming pipelines at a terminal: the questions, and what is shown first.

use crate::pipelines::{SPEC, file, pipeline};
use crate::project::{finish, signal, until};
use crate::screen::Screen;
use rustix::process::Signal;
use serde_json::json;

const WINDOW: (u16, u16) = (100, 40);

#[test]
fn a_failed_pipeline_asks_at_the_terminal_whether_it_is_fixed() {
    let project = pipeline();
    project.write("broken", "a.ts(4,2): error TS1: it broke\n");
    assert_eq!(project.run(&["run", "spec.md", "--answer", "phase-1=Continue"]).code, Some(1));
    let mut screen = Screen::start(&project, WINDOW, &["resume", "PRD-009"]);
    screen.shows("PRD-009 failed: WS3: it broke (a.ts:4)");
    screen.shows("Is it fixed? [y/N]");
    screen.send("n\n");
    assert_eq!(screen.end(), 3);
    std::fs::remove_file(project.path("broken")).unwrap();
    let mut screen = Screen::start(&project, WINDOW, &["resume", "PRD-009", "--answer", "phase-2=Continue"]);
    screen.shows("Is it fixed? [y/N]");
    screen.send("y\n");
    screen.shows("Resuming PRD-009 from Phase 2");
    assert_eq!(screen.end(), 0);
    assert_eq!(file(&project)["status"], "complete");
}

#[test]
fn a_paused_pipeline_shows_its_last_gate_and_asks_whether_to_continue() {
    let project = pipeline();
    assert_eq!(project.run(&["run", "spec.md"]).code, Some(3));
    let mut screen = Screen::start(&project, WINDOW, &["resume", "PRD-009", "--answer", "phase-2=Continue"]);
    screen.shows("last gate passed: schema (WS1)");
    screen.shows("Continue with next phase?");
    screen.send("1\r");
    assert_eq!(screen.end(), 0, "{}", screen.text());
    assert_eq!(file(&project)["status"], "complete");
}

#[test]
fn a_pipeline_whose_process_died_asks_whether_to_continue_or_to_restart() {
    let project = pipeline();
    project.write("spec.md", SPEC.replace("touch ws3 &&", "until test -e go; do sleep 0.02; done; touch ws3;"));
    let running = project.start(&["run", "spec.md", "--answer", "phase-1=Continue"]);
    until("the start of WS3", || {
        project.path("ws2").exists() && file(&project)["in_progress_workstreams"] == json!(["WS2", "WS3"])
    });
    signal(&running, Signal::KILL);
    finish(running);
    project.write("go", "");
    let mut screen = Screen::start(&project, WINDOW, &["resume", "PRD-009", "--answer", "phase-2=Continue"]);
    screen.shows("PRD-009 was working on WS2, WS3");
    screen.shows("Which? [1]");
    screen.send("2\n");
    assert_eq!(screen.end(), 0, "{}", screen.text());
    assert_eq!(project.status("PRD-009")["phases"][1]["iteration"], 2);
}
