//! Reading runs from an embedding program: lists, reasons, histories and logs.

use lockgate::answer::Answer;
use lockgate::engine::run::event::PresetAnswer;
use lockgate::history::{History, event_json};
use lockgate::logs::{Log, choose};
use lockgate::project::{Options, Project};
use lockgate::runner::load::load;
use lockgate::select;
use lockgate::start::Start;
use lockgate::view::RunStatus;
use lockgate::worker::Worker;
use std::sync::Arc;

const WORKFLOW: &str = "
name: release
phases:
  - id: build
    tasks:
      - { id: compile, run: echo compiled }
    checkpoint:
      prompt: Ship it?
";

#[tokio::test(flavor = "multi_thread")]
async fn a_program_lists_explains_and_reads_back_what_a_run_did() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("release.yaml");
    std::fs::write(&file, WORKFLOW).unwrap();
    let project = Project::open_or_create(dir.path(), Options::default()).unwrap();
    let worker = Worker::start(&project, 2, Arc::new(()));
    let ada = project.person("ada");
    let run = project.start(&file, Start::default(), ada.clone()).await.unwrap();
    let hold = project.next_hold(&run).await.unwrap().unwrap();
    assert_eq!(project.wait(&run).await.unwrap(), RunStatus::Waiting);

    let inbox = project.inbox(10, None).await.unwrap();
    assert_eq!((inbox.lines.len(), inbox.more, inbox.lines[0].hold.prompt.as_str()), (1, false, "Ship it?"));
    assert!(project.continues_by_itself(&run).await.unwrap(), "the worker continues it");
    let why = project.why(&run).await.unwrap();
    assert_eq!(why.reasons.len(), 1);
    assert!(why.reasons[0].what.contains("Ship it?"), "{:?}", why.reasons);
    assert!(project.handover(&run).await.unwrap().contains("CHECKPOINT REACHED"));

    project.answer(&hold, Answer::new("Continue").seen(hold.revision), ada.clone()).await.unwrap();
    while project.wait(&run).await.unwrap() != RunStatus::Complete {}
    worker.stop().await.unwrap();

    let first = project.runs(1, None).await.unwrap();
    assert_eq!((first.lines[0].run.clone(), first.lines[0].status, first.more), (run.clone(), RunStatus::Complete, false));
    assert!(project.runs(1, Some(run.as_str())).await.unwrap().lines.is_empty(), "there is no older run");
    let mut kinds = Vec::new();
    let mut history = History::of(project.store(), &run);
    for commit in history.next().await.unwrap() {
        kinds.extend(commit.numbered().map(|(seq, entry)| event_json(seq, entry, commit.hash)["type"].clone()));
    }
    assert!(kinds.iter().any(|kind| kind == "task_started") && kinds.iter().any(|kind| kind == "answered"), "{kinds:?}");
    assert!(history.next().await.unwrap().is_empty(), "it was read to its end");

    let state = load(project.store(), &run).await.unwrap();
    let step = select::step(&state, "build/compile").unwrap();
    let attempts = project.attempts(&state, &step).await.unwrap();
    let attempt = choose(&attempts, &step, &run, None, None).unwrap();
    let mut text = Vec::new();
    let path = project.log_file(&run, &step.key(attempt.iteration), attempt.attempt);
    Log::new(path).read(&mut |piece| text.extend_from_slice(piece)).unwrap();
    assert_eq!(String::from_utf8_lossy(&text), "compiled\n");
    assert_eq!(project.summary(&run).await.unwrap().decisions.len(), 1);
}

#[tokio::test]
async fn an_answer_that_a_person_gave_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("release.yaml");
    std::fs::write(&file, WORKFLOW).unwrap();
    let project = Project::open_or_create(dir.path(), Options::default()).unwrap();
    let worker = Worker::start(&project, 2, Arc::new(()));
    let answers = vec![PresetAnswer { selector: "build".into(), option: "Continue".into(), feedback: None }];
    let run = project.start(&file, Start { answers, ..Start::default() }, project.person("ada")).await.unwrap();
    while project.wait(&run).await.unwrap() != RunStatus::Complete {}
    worker.stop().await.unwrap();
    let state = load(project.store(), &run).await.unwrap();
    let hold = select::hold_name(state.decisions[0].hold.as_str()).unwrap();
    let stands = project.plan_change(&hold, None, "Abort").await.unwrap_err();
    assert_eq!(stands.code(), lockgate::code::Code::AnsweredByPerson, "a person gave it in advance");
}
