//! Runs that continue from a snapshot, in real stores: loading, verifying and collecting garbage afterwards.

use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{Action, Choice, HoldState};
use lockgate_engine::id::{OptionId, PhaseId, RunId, SnapshotId, TaskId};
use lockgate_engine::run::command::{
    Actor, Caller, Channel, CommandKind, Create, Credential, Presentation, TaskOutcome, TerminalRule,
};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::{Created, OutputFile};
use lockgate_engine::run::{Refusal, Run, Status};
use lockgate_engine::spec::workflow::{
    Checkpoint, Deadline, OnConditionError, OnDeadline, Phase, Task, WaitSettings, Work, Workflow,
};
use lockgate_engine::stored_value::StoredValue;
use lockgate_runner::driver::{DriveError, Driver, Halt, Paused, SnapshotState, recover_with, rewind, submit};
use lockgate_runner::load::{LoadError, load};
use lockgate_runner::runtime::{OrphanError, Perform, Performed, Runtime, Stop, SystemClock};
use lockgate_runner::verify::verify_one;
use lockgate_store::{MemoryStore, SqliteStore, Store};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Ends every task at once, with a large result and a file, and remembers which tasks ran.
#[derive(Default)]
struct Writes {
    ran: Mutex<Vec<String>>,
}

impl Perform for Writes {
    fn start(&self, _: &Run, effect: &Effect, _: Stop) -> BoxFuture<'static, Performed> {
        let (command, values) = match effect.clone() {
            Effect::Task { key, attempt } => {
                self.ran.lock().unwrap().push(key.address());
                let (result, value) = StoredValue::keep_text(format!("\"{}\"", key.address().repeat(500)));
                let bytes = format!("{} in iteration {}", key.address(), key.iteration).into_bytes();
                let file = OutputFile {
                    path: format!("{}.md", key.task),
                    digest: Digest::of(&bytes),
                    bytes: bytes.len() as u64,
                    stored: true,
                };
                let outcome = TaskOutcome::Finished { result: Some(result), outputs: vec![file.clone()] };
                let values = value.into_iter().chain([(file.digest, bytes)]).collect();
                (CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None }, values)
            }
            Effect::Show { phase, iteration } => {
                let shown = Box::new(Presentation { prompt: "Go on?".into(), ..Presentation::default() });
                (CommandKind::Shown { phase, iteration, shown }, Vec::new())
            }
            Effect::Wake { .. } => return Box::pin(std::future::pending()),
            other => panic!("{other:?} was started"),
        };
        Box::pin(async move { Performed { command, values } })
    }

    fn end_orphans(&self, _: &Run) -> BoxFuture<'static, Result<(), OrphanError>> {
        Box::pin(async { Ok(()) })
    }
}

fn person() -> Caller {
    let actor = Actor {
        credential: Credential::Person,
        name: "ada".into(),
        channel: Channel::Command,
        terminal: true,
        inside_task: None,
        uid: Some(1000),
    };
    Caller::new(actor, TerminalRule::Required)
}

fn workflow() -> Workflow {
    let deadline = Deadline { after: Duration::from_secs(3600), then: OnDeadline::Abort };
    let checkpoint = Checkpoint {
        condition: None,
        on_condition_error: OnConditionError::Show,
        prompt: "Go on?".into(),
        show_files: Vec::new(),
        show_diff: None,
        options: vec![Choice::plain("continue", "Continue", Action::Continue)],
        question: None,
        waits: WaitSettings { deadline: Some(deadline), ..WaitSettings::default() },
    };
    let task = |id: &str| Task::new(TaskId::from(id), Work::Pass);
    let one = Phase { tasks: vec![task("a")], checkpoint: Some(checkpoint.clone()), ..Phase::new(PhaseId::from("one")) };
    let two = Phase { tasks: vec![task("b")], checkpoint: Some(checkpoint), ..Phase::new(PhaseId::from("two")) };
    Workflow { name: "test".into(), phases: vec![one, two], ..Workflow::default() }
}

struct Project {
    runtime: Runtime,
    performed: Arc<Writes>,
    run: RunId,
    _dir: Option<tempfile::TempDir>,
}

impl Project {
    fn new(store: Arc<dyn Store>, dir: Option<tempfile::TempDir>) -> Self {
        let performed = Arc::new(Writes::default());
        let runtime = Runtime { store, perform: performed.clone(), clock: Arc::new(SystemClock) };
        Self { runtime, performed, run: RunId::from("run00001"), _dir: dir }
    }

    /// One project for each kind of store.
    fn all() -> Vec<Self> {
        let dir = tempfile::tempdir().unwrap();
        let sqlite = Arc::new(SqliteStore::open(dir.path()).unwrap());
        vec![Self::new(Arc::new(MemoryStore::new()), None), Self::new(sqlite, Some(dir))]
    }

    /// Starts the run and drives it to its first question.
    async fn start(&self) -> Run {
        let definition = workflow();
        let bytes = definition.to_bytes();
        let driver = self.runtime.store.driver().clone();
        let created = Created::new(self.run.clone(), Digest::of(&bytes), "out".into(), driver);
        let values = vec![(created.definition, bytes)];
        let create = Create { created, presets: Vec::new() };
        let mut driver =
            Driver::create(self.runtime.clone(), person(), create, Arc::new(definition), values, Box::new(())).await.unwrap();
        assert_eq!(driver.drive(&Halt::default()).await.unwrap(), Paused::Waiting);
        driver.release().await;
        self.load().await
    }

    async fn load(&self) -> Run {
        load(&*self.runtime.store, &self.run).await.unwrap()
    }

    async fn answer(&self, option: &str) {
        let run = self.load().await;
        let hold = run.open_holds()[0];
        let (hold, revision) = (hold.id.clone(), Some(hold.revision));
        let body = CommandKind::Answer { hold, revision, option: option.into(), feedback: None };
        submit(&self.runtime, &self.run, person(), body).await.unwrap();
    }

    async fn resume(&self) -> Paused {
        let mut driver = Driver::resume(self.runtime.clone(), &self.run, person(), Box::new(())).await.unwrap();
        let paused = driver.drive(&Halt::default()).await.unwrap();
        driver.release().await;
        paused
    }

    async fn is_sound(&self) {
        self.runtime.store.remove_unreferenced_values().await.unwrap();
        assert_eq!(verify_one(&*self.runtime.store, &self.run).await.unwrap(), Some(Vec::new()));
        let run = self.load().await;
        let needed = run.referenced_values();
        let found = self.runtime.store.values(&needed).await.unwrap();
        assert!(found.iter().all(Option::is_some), "everything that the state refers to is kept");
    }

    fn ran(&self) -> Vec<String> {
        self.performed.ran.lock().unwrap().clone()
    }
}

fn snapshot_of(run: &Run) -> SnapshotState {
    let mut state = Run::from_bytes(&run.to_bytes()).unwrap();
    state.attach(run.workflow.clone()).unwrap();
    SnapshotState { snapshot: SnapshotId::from("CP-one-20260101T000000Z-abc"), seq: run.next_seq - 1, state }
}

#[tokio::test]
async fn a_rewound_run_is_loaded_verified_and_continued() {
    for project in Project::all() {
        let earlier = project.start().await;
        project.answer("continue").await;
        assert_eq!(project.resume().await, Paused::Waiting);
        assert_eq!(project.ran(), ["one/a", "two/b"]);
        let rewound = rewind(&project.runtime, &project.run, person(), snapshot_of(&earlier)).await.unwrap();
        assert_eq!(project.load().await, rewound);
        project.is_sound().await;
        let stored = project.runtime.store.stored_run(&project.run).await.unwrap().unwrap();
        let open: Vec<u32> = stored.holds.iter().filter(|row| row.state == HoldState::Open).map(|row| row.revision).collect();
        assert_eq!((open, rewound.open_holds().len()), (vec![2], 1), "the list shows what the state says");
        project.answer("continue").await;
        assert_eq!(project.resume().await, Paused::Waiting);
        assert_eq!(project.ran(), ["one/a", "two/b", "two/b"]);
        project.answer("continue").await;
        assert_eq!(project.resume().await, Paused::Ended);
        project.is_sound().await;
    }
}

#[tokio::test]
async fn a_run_that_is_driven_is_not_rewound() {
    let project = Project::new(Arc::new(MemoryStore::new()), None);
    let earlier = project.start().await;
    let other = Runtime { store: Arc::new(MemoryStore::new()), ..project.runtime.clone() };
    let missing = rewind(&other, &project.run, person(), snapshot_of(&earlier)).await;
    assert!(missing.is_err(), "there is no such run");
    let _driver = Driver::resume(project.runtime.clone(), &project.run, person(), Box::new(())).await.unwrap();
    let refused = rewind(&project.runtime, &project.run, person(), snapshot_of(&earlier)).await;
    assert!(matches!(refused, Err(DriveError::DrivenBy { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_snapshot_whose_commits_are_not_in_the_history_is_refused() {
    let project = Project::new(Arc::new(MemoryStore::new()), None);
    let earlier = project.start().await;
    project.answer("continue").await;
    let mut other = snapshot_of(&earlier);
    other.state.head = Digest::of(b"another commit");
    let refused = rewind(&project.runtime, &project.run, person(), other).await;
    assert!(matches!(refused, Err(DriveError::Refused(Refusal::SnapshotOfOtherHistory { .. }))), "{refused:?}");
    let agent = Caller::new(Actor { credential: Credential::Agent, ..person().actor().clone() }, TerminalRule::Required);
    let refused = rewind(&project.runtime, &project.run, agent, snapshot_of(&earlier)).await;
    assert!(matches!(refused, Err(DriveError::Refused(Refusal::PersonRequired { .. }))), "{refused:?}");
    let rewound = rewind(&project.runtime, &project.run, person(), snapshot_of(&earlier)).await;
    assert!(rewound.is_ok(), "a refusal releases the claim: {rewound:?}");
}

#[tokio::test]
async fn a_recovered_run_is_loaded_verified_and_continued() {
    for (lost, project) in Project::all().into_iter().zip(Project::all()) {
        let base = lost.start().await;
        let needed = base.referenced_values();
        let bytes = lost.runtime.store.values(&needed).await.unwrap();
        let values: Vec<(Digest, Vec<u8>)> = needed.into_iter().zip(bytes.into_iter().map(Option::unwrap)).collect();
        let missing = recover_with(&project.runtime, person(), snapshot_of(&base), values[1..].to_vec()).await;
        assert!(matches!(missing, Err(DriveError::Load(LoadError::StoredValueMissing { .. }))), "{missing:?}");

        let run = recover_with(&project.runtime, person(), snapshot_of(&base), values.clone()).await.unwrap();
        assert_eq!(project.load().await, run);
        assert_eq!(run.open_holds()[0].id, base.open_holds()[0].id);
        project.is_sound().await;
        let again = recover_with(&project.runtime, person(), snapshot_of(&base), values).await;
        assert!(matches!(again, Err(DriveError::RunExists(_))), "{again:?}");

        project.answer("continue").await;
        assert_eq!(project.resume().await, Paused::Waiting);
        assert_eq!((project.ran(), project.load().await.status()), (Vec::new(), Status::Waiting), "a person is asked first");
        let rest = OptionId::from("rerun-rest");
        project.answer(rest.as_str()).await;
        assert_eq!(project.resume().await, Paused::Waiting);
        assert_eq!(project.ran(), ["two/b"]);
        project.is_sound().await;
    }
}

#[tokio::test]
async fn only_a_person_recovers_a_run() {
    let lost = Project::new(Arc::new(MemoryStore::new()), None);
    let base = lost.start().await;
    let empty = Project::new(Arc::new(MemoryStore::new()), None);
    let refused = recover_with(&empty.runtime, Caller::driver(), snapshot_of(&base), Vec::new()).await;
    assert!(matches!(refused, Err(DriveError::Refused(Refusal::PersonRequired { .. }))), "{refused:?}");
}
