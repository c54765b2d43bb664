//! Playing a plan: one process after another drives the run until it ends, and then the claims are checked.

use super::claims::{check, same_run, state_file_is_right};
use super::plan::Plan;
use super::world::{Hands, Outside, SimulatedClock};
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::HoldKind;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::{Actor, Body, Create, Credential, Way};
use lockgate_engine::run::event::Created;
use lockgate_engine::run::{Refusal, Run, Status};
use lockgate_runner::driver::{DriveError, Driver, Halt, Paused, submit};
use lockgate_runner::load::load;
use lockgate_runner::world::World;
use lockgate_store::{MemoryStore, Store, StoreError, verify_run};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A process: lives so many polls, then is dropped where it stands.
struct Mortal<F> {
    process: F,
    left: Option<u32>,
    /// Asked when its time has come, instead of dropping it.
    halt: Option<Halt>,
}

impl<F: Future + Unpin> Future for Mortal<F> {
    type Output = Option<F::Output>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.left {
            Some(0) => match self.halt.take() {
                None => return Poll::Ready(None),
                Some(halt) => {
                    self.left = None;
                    halt.halt("SIGTERM");
                }
            },
            Some(left) => *left -= 1,
            None => {}
        }
        match Pin::new(&mut self.process).poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => Poll::Pending,
        }
    }
}

pub(super) fn play(plan: &Plan) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(play_on(plan))
}

async fn play_on(plan: &Plan) -> Result<(), String> {
    let outside = Outside::new(plan);
    let disk = MemoryStore::new();
    let run = RunId::from("simulat0");
    let mut lives = plan.lives.iter().copied();
    for process in 0..200 {
        let store = disk.another_process();
        *outside.store.lock().unwrap() = Some(store.clone());
        let hands = Hands { outside: outside.clone(), process };
        let clock = SimulatedClock(outside.clone());
        let world = World { store: Arc::new(store), perform: Arc::new(hands), clock: Arc::new(clock) };
        let halt = Halt::default();
        let living = Box::pin(live(world, outside.clone(), run.clone(), halt.clone()));
        let halt = (plan.halts && process % 2 == 0).then_some(halt);
        let lived = Mortal { process: living, left: lives.next(), halt }.await;
        // The last clone of its store goes with a process, and with it its claim.
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

/// One process: begins or resumes the run, drives it, answers what it asks. Gives whether the run has ended.
async fn live(world: World, outside: Arc<Outside>, run: RunId, halt: Halt) -> Result<bool, DriveError> {
    let known = world.store.load(&run).await?.is_some();
    let mut driver = if known {
        match Driver::resume(world, &run, person(), Box::new(())).await {
            Err(DriveError::Refused(_)) => return Ok(true),
            driver => driver?,
        }
    } else {
        begin(world, &outside, run).await?
    };
    loop {
        match driver.drive(&halt).await? {
            Paused::Ended if driver.run().status() == Status::Failed => return Ok(false),
            Paused::Ended => return Ok(true),
            Paused::Interrupted => return Ok(false),
            Paused::Waiting => answer(&mut driver, &outside).await?,
        }
    }
}

async fn begin(world: World, outside: &Outside, run: RunId) -> Result<Driver, DriveError> {
    let workflow = outside.plan.workflow();
    let bytes = workflow.to_bytes();
    let created = Created::new(run, Digest::of(&bytes), "out".into(), world.store.driver().clone());
    let values = vec![(created.definition, bytes)];
    let create = Create { created, presets: outside.plan.presets() };
    Driver::create(world, person(), create, Arc::new(workflow), values, true, Box::new(())).await
}

/// A person answers the oldest hold: once in a while with a repeat, once in a while after somebody changed the file.
async fn answer(driver: &mut Driver, outside: &Outside) -> Result<(), DriveError> {
    let hold = driver.run().open_holds()[0].clone();
    let turn = driver.run().decisions.len() + driver.run().version as usize;
    if turn.is_multiple_of(5) && hold.revision == 1 {
        outside.file.lock().unwrap().push(b'!');
    }
    let option = match hold.kind {
        HoldKind::Checkpoint if turn.is_multiple_of(4) && driver.run().version < 60 => "redo",
        HoldKind::Checkpoint => "continue",
        HoldKind::Interrupted => "rerun",
        HoldKind::Failed => "count-as-done",
        HoldKind::Gaps => "continue",
        HoldKind::Budget => "go-on",
        HoldKind::Verify => "approved",
        HoldKind::Decision => "1",
        HoldKind::Action | HoldKind::Authentication => "done",
        HoldKind::Handover => "go-on",
    };
    let revision = Some(hold.revision);
    let body = Body::Answer { hold: hold.id.clone(), revision, option: option.into(), feedback: None };
    if turn % 3 == 1 {
        // Somebody answers at another process; this one sees it when it looks, or collides with it.
        let another = outside.store.lock().unwrap().as_ref().map(MemoryStore::another_process);
        let store: Arc<dyn Store> = Arc::new(another.expect("a process lives"));
        let world = World { store, ..driver.world().clone() };
        submit(&world, &driver.run().id, person(), body.clone(), true).await?;
    }
    if turn % 3 != 1 || turn.is_multiple_of(2) {
        match driver.submit(person(), body, true).await {
            Ok(()) | Err(DriveError::Refused(Refusal::AlreadyAnswered { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    let mut watch = outside.watch.lock().unwrap();
    watch.confirmed.push((hold.id, hold.revision, option.into()));
    Ok(())
}

fn person() -> Actor {
    Actor {
        credential: Credential::Person,
        name: "ada".into(),
        way: Way::Command,
        terminal: true,
        inside_task: None,
        uid: Some(1000),
    }
}

async fn claims(disk: &MemoryStore, outside: &Outside, run: &RunId) -> Result<(), String> {
    let commits = disk.commits(run, 0, usize::MAX).await.map_err(|error| error.to_string())?;
    let workflow = outside.plan.workflow();
    check(&outside.watch.lock().unwrap(), &commits, &workflow)?;
    let findings = verify_run(disk, run).await.map_err(|error| error.to_string())?;
    if findings.as_ref().is_none_or(|findings| !findings.is_empty()) {
        return Err(format!("the history verifies: {findings:?}"));
    }
    let (mut replayed, _) = Run::first(&commits[0], Arc::new(workflow)).map_err(|error| error.to_string())?;
    let mut said = state_file_is_right(&replayed, None)?;
    for commit in &commits[1..] {
        replayed.apply_commit(commit).map_err(|error| error.to_string())?;
        said = state_file_is_right(&replayed, said)?;
    }
    let loaded = load(disk, run).await.map_err(|error| error.to_string())?;
    same_run(&loaded, &replayed)
}
