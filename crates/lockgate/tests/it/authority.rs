//! Decisions about runs are refused inside tasks, regardless of the embedding program, and the attempts are recorded.

use lockgate::backup::restore;
use lockgate::code::Code;
use lockgate::engine::id::RunId;
use lockgate::engine::run::command::{Actor, Caller, Channel, Credential, TerminalRule};
use lockgate::engine::run::event::{Event, PresetAnswer};
use lockgate::history::History;
use lockgate::project::{Options, Project};
use lockgate::select;
use lockgate::start::Start;
use lockgate::step::StepChange;
use std::path::Path;

const WORKFLOW: &str = "
name: release
phases:
  - id: build
    tasks:
      - { id: compile, run: 'true' }
    checkpoint:
      prompt: Ship it?
";

/// An agent that runs inside a task.
pub(crate) fn inside_a_task() -> Caller {
    let actor = Actor {
        credential: Credential::Agent,
        channel: Channel::Command,
        inside_task: Some("build/compile".into()),
        ..Actor::driver()
    };
    Caller::new(actor, TerminalRule::NotRequired)
}

/// The refused actions of a run, in order, according to its history.
pub(crate) async fn refused(project: &Project, run: &RunId) -> Vec<String> {
    let mut refused = Vec::new();
    for commit in History::of(project.store(), run).next().await.unwrap() {
        for entry in commit.entries {
            if let Event::AttemptRefused(attempt) = entry.event {
                refused.push(attempt.what);
            }
        }
    }
    refused
}

fn project(dir: &Path) -> Project {
    std::fs::write(dir.join("release.yaml"), WORKFLOW).unwrap();
    Project::open_or_create(dir, Options::default()).unwrap()
}

#[tokio::test]
async fn refused_decisions_about_a_run_are_recorded_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let project = project(dir.path());
    let run = project.start(&dir.path().join("release.yaml"), Start::default(), project.person("ada")).await.unwrap();
    let state = lockgate::runner::load::load(project.store(), &run).await.unwrap();
    let step = select::step(&state, "compile").unwrap();
    let codes = [
        project.cancel(&run, None, inside_a_task()).await.unwrap_err().code(),
        project.change_step(&run, &step, &StepChange::Retry, inside_a_task()).await.unwrap_err().code(),
        project.change_step(&run, &step, &StepChange::Skip("no".into()), inside_a_task()).await.unwrap_err().code(),
        project.change_agent(&run, "claude", inside_a_task()).await.unwrap_err().code(),
        project.remove_run(&run, &inside_a_task()).await.unwrap_err().code(),
    ];
    assert_eq!(codes, [Code::InsideTask; 5]);
    let attempts = ["cancel a run", "retry a task", "skip a task", "choose another agent", "remove a run"];
    assert_eq!(refused(&project, &run).await, attempts);
}

#[tokio::test]
async fn answers_in_advance_are_refused_inside_a_task_and_nothing_starts() {
    let dir = tempfile::tempdir().unwrap();
    let project = project(dir.path());
    let answers = vec![PresetAnswer { selector: "build".into(), option: "Continue".into(), feedback: None }];
    let start = Start { answers, ..Start::default() };
    let error = project.start(&dir.path().join("release.yaml"), start, inside_a_task()).await.unwrap_err();
    assert_eq!(error.code(), Code::InsideTask);
    assert!(project.runs(10, None).await.unwrap().lines.is_empty());
}

#[tokio::test]
async fn decisions_about_the_project_are_refused_inside_a_task() {
    let dir = tempfile::tempdir().unwrap();
    let project = project(dir.path());
    let backup = dir.path().join("backup.db");
    project.back_up(&backup).await.unwrap();
    let inside = inside_a_task();
    let restored = restore(project.root(), &backup, true, &Options::default(), &inside).await;
    let codes = [
        project.collect_garbage(&inside).await.unwrap_err().code(),
        project.fire_due(&inside).await.unwrap_err().code(),
        project.accept_missing(&inside).unwrap_err().code(),
        restored.unwrap_err().code(),
    ];
    assert_eq!(codes, [Code::InsideTask; 4]);
    assert!(project.find_leftovers().await.is_ok(), "anyone may list garbage");
}
