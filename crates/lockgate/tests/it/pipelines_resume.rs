//! Importing and resuming pipelines from an embedding program.

use crate::authority::{inside_a_task, refused};
use lockgate::code::Code;
use lockgate::engine::id::RunId;
use lockgate::engine::run::Status;
use lockgate::pipeline::{Import, ImportedFile, ResumeChoice, Situation};
use lockgate::project::{Options, Project};
use lockgate::resume::Resume;
use lockgate::runner::load::load;
use std::path::Path;

fn state_file(status: &str, in_progress: &str) -> String {
    format!(
        r#"{{"prd": "PRD-009", "status": "{status}", "current_phase": 1, "completed_workstreams": ["WS1"],
            "in_progress_workstreams": [{in_progress}], "pending_workstreams": ["WS2"]}}"#
    )
}

async fn imported(dir: &Path, text: String) -> (Project, RunId) {
    let file = dir.join("old.json");
    std::fs::write(&file, text).unwrap();
    let project = Project::open_or_create(dir, Options::default()).unwrap();
    let read = ImportedFile::read(&file).unwrap();
    let import = Import { file, agent: Some("true".into()), ..Import::default() };
    let made = project.import(&import, read, None, project.person("ada")).await.unwrap();
    assert_eq!(made.run.status(), Status::Waiting);
    (project, made.run.id)
}

fn chosen(choice: ResumeChoice) -> Resume {
    Resume { pipeline: Some(choice), ..Resume::default() }
}

#[tokio::test]
async fn an_imported_pipeline_that_waits_is_resumed_by_a_person_who_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (project, run) = imported(dir.path(), state_file("paused", "")).await;
    let ada = project.person("ada");
    let state = load(project.store(), &run).await.unwrap();
    let known = project.pipeline_resume(&state, &ada).await.unwrap().unwrap();
    assert_eq!(known.situation, Situation::Paused { last_gate: None, phase: 1, imported: true });
    assert_eq!((known.completed, known.remaining), (vec!["WS1".to_owned()], vec!["WS2".to_owned()]));

    let undecided = project.resume(&run, Resume::default(), None, ada.clone()).await.unwrap_err();
    assert_eq!(undecided.code(), Code::ResumeFlagRequired);
    let inside = project.resume(&run, chosen(ResumeChoice::Continue), None, inside_a_task()).await.unwrap_err();
    assert_eq!(inside.code(), Code::InsideTask);
    assert_eq!(refused(&project, &run).await, ["answer a hold"]);
    assert_eq!(load(project.store(), &run).await.unwrap().status(), Status::Waiting, "nothing has started");

    project.resume(&run, chosen(ResumeChoice::Continue), None, ada).await.unwrap();
    assert_eq!(load(project.store(), &run).await.unwrap().status(), Status::Running);
}

#[tokio::test]
async fn an_imported_pipeline_that_was_interrupted_needs_a_choice() {
    let dir = tempfile::tempdir().unwrap();
    let (project, run) = imported(dir.path(), state_file("in_progress", r#""WS3""#)).await;
    let ada = project.person("ada");
    let undecided = project.resume(&run, Resume::default(), None, ada.clone()).await.unwrap_err();
    assert_eq!(undecided.code(), Code::ResumeFlagRequired);
    assert!(undecided.message().contains("is working on WS3"), "{undecided}");
    project.resume(&run, chosen(ResumeChoice::Continue), None, ada).await.unwrap();
}

#[tokio::test]
async fn a_cancelled_pipeline_is_resumed_by_a_person_only() {
    let dir = tempfile::tempdir().unwrap();
    let (project, run) = imported(dir.path(), state_file("paused", "")).await;
    let ada = project.person("ada");
    project.cancel(&run, None, ada.clone()).await.unwrap();
    let inside = project.resume(&run, Resume::default(), None, inside_a_task()).await.unwrap_err();
    assert_eq!(inside.code(), Code::InsideTask);
    assert_eq!(refused(&project, &run).await, ["resume a pipeline that was ended"]);
    project.resume(&run, Resume::default(), None, ada).await.unwrap();
    assert_eq!(load(project.store(), &run).await.unwrap().status(), Status::Running);
}

#[tokio::test]
async fn importing_is_refused_inside_a_task() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("old.json");
    std::fs::write(&file, state_file("paused", "")).unwrap();
    let project = Project::open_or_create(dir.path(), Options::default()).unwrap();
    let import = Import { file: file.clone(), ..Import::default() };
    let refused = project.import(&import, ImportedFile::read(&file).unwrap(), None, inside_a_task()).await.unwrap_err();
    assert_eq!(refused.code(), Code::InsideTask);
    assert!(project.runs(10, None).await.unwrap().lines.is_empty());
}
