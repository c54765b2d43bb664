//! Working directories of tasks with git worktrees, with real git.

use lockgate_engine::digest::Digest;
use lockgate_engine::id::{GateId, PhaseId, RunId, TaskId};
use lockgate_engine::run::command::{Caller, CommandKind, Create};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::Created;
use lockgate_engine::spec::workflow::{Gate, Phase, Task, Work, Workflow, Worktree};
use lockgate_runner::config::Config;
use lockgate_runner::driver::start_parked;
use lockgate_runner::perform::Performer;
use lockgate_runner::process::Stop;
use lockgate_runner::root::Root;
use lockgate_runner::runtime::{Perform, Runtime, SystemClock};
use lockgate_runner::start::Prepared;
use lockgate_store::{MemoryStore, Store};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

fn git(dir: &Path, arguments: &[&str]) {
    let settings = ["-c", "user.name=tester", "-c", "user.email=tester@example.invalid", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").args(settings).args(arguments).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

#[tokio::test]
async fn a_gate_of_a_task_runs_in_the_worktree_of_that_task() {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "--quiet", "--initial-branch=main"]);
    git(folder.path(), &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let root = Root::at(folder.path());
    root.prepare().unwrap();
    let run = RunId::from("run00001");
    root.prepare_run(&run).unwrap();

    let on_branch = |pattern: &str| format!("case $(git symbolic-ref --short HEAD) in {pattern}) ;; *) exit 1 ;; esac");
    let own = Task { worktree: Worktree::Own, ..Task::new(TaskId::from("own"), Work::Run("true".into())) };
    let gates = vec![
        Gate { task: Some(own.id.clone()), ..Gate::new(GateId::from("of-task"), on_branch("lockgate/run00001-work-own*")) },
        Gate::new(GateId::from("of-phase"), on_branch("lockgate/run00001")),
    ];
    let phase = Phase { tasks: vec![own], gates, ..Phase::new(PhaseId::from("work")) };
    let workflow = Workflow { name: "trees".into(), worktree: Worktree::Own, phases: vec![phase], ..Workflow::default() };

    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let evaluator = crate::script::evaluator();
    let performer = Arc::new(Performer::new(root, Config::default(), store.clone(), evaluator, Arc::new(|_, _, _| {})));
    let runtime = Runtime { store, perform: performer.clone(), clock: Arc::new(SystemClock) };
    let bytes = workflow.to_bytes();
    let driver = runtime.store.driver().clone();
    let created = Created::new(run, Digest::of(&bytes), "out".into(), driver);
    let values = vec![(created.definition, bytes)];
    let prepared = Prepared { create: Create { created, presets: Vec::new() }, workflow: Arc::new(workflow), values };
    let run = start_parked(&runtime, Caller::driver(), prepared).await.unwrap();

    for gate in ["of-task", "of-phase"] {
        let effect = Effect::Gate { phase: PhaseId::from("work"), iteration: 1, gate: GateId::from(gate), attempt: 1 };
        let performed = performer.start(&run, &effect, Stop::new()).await;
        let CommandKind::GateEnded { failure, .. } = performed.command else { panic!("{:?}", performed.command) };
        assert_eq!(failure, None, "{gate}");
    }
}
