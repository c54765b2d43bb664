//! Executes a plan: one process after another drives the run until it ends, then the invariants are checked.

use super::coverage::{Fact, facts, of_state};
use super::invariants::{HistoryStep, Order, check, same_run, state_file_is_right};
use super::liveness::{Counting, POLLS};
use super::people;
use super::plan::Plan;
use super::runtime::{Outside, SimulatedClock, SimulatedPerformer};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{CommandId, RunId};
use lockgate_engine::run::command::{Actor, Caller, Channel, Command, CommandKind, Create, Credential, Envelope, TerminalRule};
use lockgate_engine::run::event::{Created, Event};
use lockgate_engine::run::{Run, Status, handle};
use lockgate_engine::time::Timestamp;
use lockgate_runner::driver::{DriveError, Driver, Halt, HaltReason, Paused};
use lockgate_runner::load::load;
use lockgate_runner::runtime::Runtime;
use lockgate_store::{Append, MemoryStore, Store, StoreError, verify_run};
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Longer than anything in a plan takes by the clock of the runtime, which advances only while everything is idle.
const NOTHING_COMES: Duration = Duration::from_secs(86_400);

/// A process that lives for a number of polls and is then dropped wherever it is.
struct KillablePoll<F> {
    process: F,
    left: Option<u32>,
    /// Requested at the end of its life, instead of dropping it.
    halt: Option<Halt>,
    polls: u32,
}

impl<F: Future + Unpin> Future for KillablePoll<F> {
    type Output = Option<F::Output>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.left {
            Some(0) => match self.halt.take() {
                None => return Poll::Ready(None),
                Some(halt) => {
                    self.left = None;
                    halt.halt(HaltReason::Terminate);
                }
            },
            Some(left) => *left -= 1,
            None => {}
        }
        self.polls += 1;
        assert!(self.polls < POLLS, "a process ends or waits: it was polled {POLLS} times");
        match Pin::new(&mut self.process).poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Executes a plan and returns the facts that occurred.
pub(super) fn execute(plan: &Plan) -> Result<BTreeSet<Fact>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(execute_plan(plan))
}

async fn execute_plan(plan: &Plan) -> Result<BTreeSet<Fact>, String> {
    let outside = Outside::new(plan);
    let disk = MemoryStore::new();
    let run = RunId::from("simulat0");
    let mut lives = plan.lives.iter().copied();
    for process in 0..200 {
        let store = disk.another_process();
        *outside.store.lock().unwrap() = Some(store.clone());
        outside.turns.lock().unwrap().start();
        let hands = SimulatedPerformer { outside: outside.clone(), process };
        let clock = SimulatedClock(outside.clone());
        let runtime = Runtime { store: Arc::new(store), perform: Arc::new(hands), clock: Arc::new(clock) };
        let halt = Halt::default();
        let living = Box::pin(live(runtime, outside.clone(), run.clone(), process, halt.clone()));
        let halt = (plan.halts && process % 2 == 0).then_some(halt);
        let mortal = KillablePoll { process: living, left: lives.next(), halt, polls: 0 };
        let Ok(lived) = tokio::time::timeout(NOTHING_COMES, mortal).await else {
            let stuck = load(&disk, &run).await.map(|run| format!("{:?} with {:?}", run.status(), run.pending()));
            return Err(format!("a process ends or waits: nothing comes any more, {stuck:?}"));
        };
        // The last clone of its store is dropped with a process, and with it its claim.
        *outside.store.lock().unwrap() = None;
        match lived {
            None | Some(Ok(false)) => {}
            Some(Ok(true)) => return claims(&disk, &outside, &run).await,
            Some(Err(DriveError::Store(StoreError::OutcomeUnknown(_)))) => {}
            Some(Err(error)) => return Err(format!("a process ends well or by a fault: {error}")),
        }
    }
    Err("every run ends".into())
}

/// One process: starts or resumes the run, drives it and answers its questions. Returns whether the run has ended.
async fn live(runtime: Runtime, outside: Arc<Outside>, run: RunId, process: u32, halt: Halt) -> Result<bool, DriveError> {
    let known = runtime.store.load(&run).await?.is_some();
    let mut driver = if known {
        change_definition(&runtime, &outside, &run, process).await?;
        match Driver::resume(runtime, &run, person(), Box::new(Counting(outside.clone()))).await {
            Err(DriveError::Refused(_)) => return Ok(true),
            driver => driver?,
        }
    } else {
        start(runtime, &outside, run).await?
    };
    loop {
        match driver.drive(&halt).await? {
            Paused::Ended if driver.run().status() == Status::Failed => return Ok(false),
            Paused::Ended => return Ok(true),
            Paused::Interrupted => return Ok(false),
            Paused::Waiting => people::turn(&mut driver, &outside).await?,
        }
    }
}

async fn start(runtime: Runtime, outside: &Arc<Outside>, run: RunId) -> Result<Driver, DriveError> {
    let workflow = outside.plan.workflow();
    let bytes = workflow.to_bytes();
    let created = Created::new(run, Digest::of(&bytes), "out".into(), runtime.store.driver().clone());
    let values = vec![(created.definition, bytes)];
    let create = Create { created, presets: outside.plan.presets() };
    let listener = Box::new(Counting(outside.clone()));
    Driver::create(runtime, person(), create, Arc::new(workflow), values, listener).await
}

/// The files of the definition have changed since the last process, and the next one accepts the change.
async fn change_definition(runtime: &Runtime, outside: &Outside, run: &RunId, process: u32) -> Result<(), DriveError> {
    let Some(changes) = (process as usize).checked_sub(1).map(|before| before + 1) else { return Ok(()) };
    if changes > outside.plan.changes.len() {
        return Ok(());
    }
    let workflow = outside.plan.workflow_after(changes);
    let (bytes, mut state) = (workflow.to_bytes(), load(&*runtime.store, run).await?);
    let (definition, expected) = (Digest::of(&bytes), state.version);
    let kind = CommandKind::AcceptDefinition { definition, workflow: Arc::new(workflow), files: Vec::new() };
    let id = Some(CommandId::new(format!("accept{changes}")));
    let (at, seed) = (runtime.clock.now(), runtime.clock.seed());
    let command = Command { envelope: Envelope { id, caller: person(), at, seed, driving: false }, kind };
    let Ok(entries) = handle(&mut state, &command) else { return Ok(()) };
    let (_, commit, index) = state.seal(entries);
    let values = vec![(definition, bytes)];
    let append = Append { run: run.clone(), expected, epoch: None, claim: None, commit, values, index, materialized: None };
    // If the store fails, the definition stays unchanged.
    let _ = runtime.store.append(append).await;
    Ok(())
}

pub(super) fn person() -> Caller {
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

async fn claims(disk: &MemoryStore, outside: &Outside, run: &RunId) -> Result<BTreeSet<Fact>, String> {
    let plan = &outside.plan;
    let commits = disk.commits(run, 0, usize::MAX).await.map_err(|error| error.to_string())?;
    let findings = verify_run(disk, run).await.map_err(|error| error.to_string())?;
    if findings.as_ref().is_none_or(|findings| !findings.is_empty()) {
        return Err(format!("the history verifies: {findings:?}"));
    }
    let (mut replayed, _) = Run::first(&commits[0], Arc::new(plan.workflow())).map_err(|error| error.to_string())?;
    let mut said = state_file_is_right(&replayed, None)?;
    let opened = |at: usize| commits[at].open().expect("it was written").entries;
    let mut history = vec![HistoryStep { entries: opened(0), workflow: replayed.workflow.clone(), had_failed: false }];
    let mut order = Order::default();
    order.check(&replayed)?;
    let mut shown: BTreeSet<Fact> = of_state(&history[0].entries, &replayed).into_iter().collect();
    for (at, commit) in commits.iter().enumerate().skip(1) {
        let entries = opened(at);
        let (workflow, had_failed) = (replayed.workflow.clone(), replayed.status() == Status::Failed);
        for entry in &entries {
            if let Event::DefinitionAccepted { definition, .. } = &entry.event {
                let mut changed = (1..=plan.changes.len()).map(|changes| plan.workflow_after(changes));
                let meant = changed.find(|workflow| Digest::of(&workflow.to_bytes()) == *definition);
                replayed.offer(*definition, Arc::new(meant.expect("it was planned")));
            }
        }
        replayed.apply_commit(commit).map_err(|error| error.to_string())?;
        said = state_file_is_right(&replayed, said)?;
        order.check(&replayed)?;
        shown.extend(of_state(&entries, &replayed));
        history.push(HistoryStep { entries, workflow, had_failed });
    }
    let mut facts = {
        let watch = outside.watch.lock().unwrap();
        check(&watch, &history)?;
        facts(&history, &watch)
    };
    facts.extend(shown);
    let timers = disk.timers(Timestamp::from_millis(i64::MAX), 10).await.map_err(|error| error.to_string())?;
    if !timers.is_empty() || !replayed.open_holds().is_empty() {
        return Err(format!("nothing waits once a run has ended: {timers:?}, {:?}", replayed.open_holds()));
    }
    let loaded = load(disk, run).await.map_err(|error| error.to_string())?;
    same_run(&loaded, &replayed)?;
    Ok(facts)
}
