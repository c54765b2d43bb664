//! Removing runs through the library.

use lockgate::code::Code;
use lockgate::engine::id::RunId;
use lockgate::project::{Options, Project};
use lockgate::start::Start;
use lockgate::store::verify_store;
use lockgate::view::RunStatus;
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

fn project(dir: &Path) -> Project {
    std::fs::write(dir.join("release.yaml"), WORKFLOW).unwrap();
    Project::open_or_create(dir, Options::default()).unwrap()
}

async fn start(project: &Project) -> RunId {
    project.start(&project.root().dir().join("release.yaml"), Start::default(), project.person("ada")).await.unwrap()
}

#[tokio::test]
async fn only_a_finished_run_that_no_process_drives_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (project, person) = (project(dir.path()), Options::default());
    let run = start(&project).await;
    let ada = project.person("ada");
    assert_eq!(project.remove_run(&run, &ada).await.unwrap_err().code(), Code::RunNotEnded);
    project.cancel(&run, None, project.person("ada")).await.unwrap();

    let other = Project::open(dir.path(), person).unwrap();
    let epoch = other.store().claim(&run).await.unwrap();
    assert_eq!(project.plan_removal(run.as_str()).await.unwrap_err().code(), Code::DrivenElsewhere);
    assert_eq!(project.remove_run(&run, &ada).await.unwrap_err().code(), Code::DrivenElsewhere);
    assert!(project.root().run_dir(&run).is_dir(), "its files are untouched");
    other.store().release(&run, epoch).await.unwrap();

    let removed = project.remove_run(&run, &ada).await.unwrap();
    assert_eq!((&removed.run, removed.status), (&run, RunStatus::Cancelled));
    assert!(removed.rows.is_some_and(|rows| rows > 2), "{removed:?}");
    assert!(!project.root().run_dir(&run).exists());
    assert_eq!(project.remove_run(&run, &ada).await.unwrap_err().code(), Code::RunNotFound);
    assert_eq!(verify_store(other.store()).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_refused_removal_leaves_the_run_free_for_others() {
    let dir = tempfile::tempdir().unwrap();
    let project = project(dir.path());
    let run = start(&project).await;
    assert_eq!(project.remove_run(&run, &project.person("ada")).await.unwrap_err().code(), Code::RunNotEnded);
    let other = Project::open(dir.path(), Options::default()).unwrap();
    let mut claimed = other.store().claim(&run).await;
    for _ in 0..100 {
        if claimed.is_ok() {
            break;
        }
        // The claim is released in the background.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        claimed = other.store().claim(&run).await;
    }
    assert!(claimed.is_ok(), "{claimed:?}");
}

#[tokio::test]
async fn a_filtered_list_is_read_in_full_pages() {
    let dir = tempfile::tempdir().unwrap();
    let project = project(dir.path());
    let (mut interrupted, mut cancelled) = (Vec::new(), Vec::new());
    for number in 0..6 {
        let run = start(&project).await;
        if number % 3 == 0 {
            project.cancel(&run, None, project.person("ada")).await.unwrap();
            cancelled.insert(0, run);
        } else {
            // A run that this process drives is running, and the others are interrupted.
            if number % 3 == 1 {
                project.store().claim(&run).await.unwrap();
            } else {
                interrupted.insert(0, run);
            }
        }
    }
    let list = async |statuses: &[RunStatus], limit: usize| {
        let part = project.runs_with_status(statuses, limit, None).await.unwrap();
        (part.lines.into_iter().map(|line| line.run).collect::<Vec<RunId>>(), part.more)
    };
    assert_eq!(list(&[RunStatus::Interrupted], 1).await, (interrupted[..1].to_vec(), true));
    assert_eq!(list(&[RunStatus::Interrupted], 2).await, (interrupted.clone(), false));
    assert_eq!(list(&[RunStatus::Cancelled], 9).await, (cancelled, false));
    let after = interrupted[0].as_str();
    let rest = project.runs_with_status(&[RunStatus::Interrupted], 1, Some(after)).await.unwrap();
    assert_eq!((rest.lines[0].run.clone(), rest.more), (interrupted[1].clone(), false));
}
