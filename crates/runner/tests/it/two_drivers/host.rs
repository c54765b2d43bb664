//! Executes a plan: both hosts drive the run whenever they can claim it, until it is complete.

use super::lease_store::{LeaseStore, Server};
use super::performer::{HostClock, SimulatedPerformer};
use super::plan::{Plan, QUIET_AFTER, Span};
use super::watch::{Watch, check_history};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::{Caller, Create};
use lockgate_engine::run::event::Created;
use lockgate_engine::run::{Run, Status};
use lockgate_runner::driver::{DriveError, Driver, Halt, HaltReason, Parked, Paused};
use lockgate_runner::runtime::Runtime;
use lockgate_store::{Store, StoreError, verify_run};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};

/// The time after which a run that could have completed counts as stuck.
const PATIENCE: Duration = Duration::from_secs(1_200);

const RUN: &str = "simulat0";

/// A process that is not polled while its host is frozen.
struct Freezable<F> {
    process: Pin<Box<F>>,
    start: Instant,
    freezes: Vec<Span>,
    thaw: Pin<Box<Sleep>>,
}

impl<F: Future> Future for Freezable<F> {
    type Output = F::Output;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let now = self.start.elapsed();
        if let Some(span) = self.freezes.iter().copied().find(|span| span.has(now)) {
            let thaw = self.start + span.to;
            self.thaw.as_mut().reset(thaw);
            // Polling it registers this process to be woken when it is thawed.
            let _ = self.thaw.as_mut().poll(context);
            return Poll::Pending;
        }
        self.process.as_mut().poll(context)
    }
}

pub(super) async fn play(plan: &Plan) -> Result<(), String> {
    let (server, plan) = (Server::new(), Arc::new(plan.clone()));
    let watch = Watch::new(&plan, &server);
    let seeds = Arc::new(AtomicU64::new(plan.seed.wrapping_mul(1_000_003)));
    let host = |number: usize| {
        let host = Host { plan: plan.clone(), server: server.clone(), watch: watch.clone(), seeds: seeds.clone(), number };
        let thaw = Box::pin(sleep_until(server.start));
        let freezes = plan.hosts[number].freezes.clone();
        tokio::spawn(Freezable { process: Box::pin(host.work()), start: server.start, freezes, thaw })
    };
    let hosts = [host(0), host(1)];
    let completed = timeout(QUIET_AFTER + PATIENCE, futures::future::join_all(hosts)).await;
    if let Some(claim) = watch.broken() {
        return Err(claim);
    }
    for host in completed.map_err(|_| "the run does not complete")? {
        host.map_err(|error| error.to_string())??;
    }
    let run = RunId::from(RUN);
    let commits = server.disk.commits(&run, 0, usize::MAX).await.map_err(|error| error.to_string())?;
    check_history(&commits)?;
    let findings = verify_run(&server.disk, &run).await.map_err(|error| error.to_string())?;
    match findings {
        Some(findings) if findings.is_empty() => Ok(()),
        findings => Err(format!("the history does not verify: {findings:?}")),
    }
}

struct Host {
    plan: Arc<Plan>,
    server: Arc<Server>,
    watch: Arc<Watch>,
    seeds: Arc<AtomicU64>,
    number: usize,
}

impl Host {
    /// Drives the run repeatedly until it is complete, here or on the other host.
    async fn work(self) -> Result<(), String> {
        let planned = &self.plan.hosts[self.number];
        for process in 0.. {
            let name = format!("host-{}-{process}", self.number);
            let store = Arc::new(LeaseStore::new(&self.server, name, planned, self.plan.leases));
            let hands = SimulatedPerformer {
                plan: self.plan.clone(),
                watch: self.watch.clone(),
                host: self.number,
                driver: store.driver().clone(),
            };
            let clock = HostClock { start: self.server.start, apart: planned.apart, seeds: self.seeds.clone() };
            let runtime = Runtime { store: store.clone(), perform: Arc::new(hands), clock: Arc::new(clock) };
            let lived = tokio::select! {
                biased;
                () = store.keep_alive() => Ok(false),
                lived = self.live(runtime, &store) => lived,
            };
            if lived? {
                break;
            }
        }
        Ok(())
    }

    /// One process. Returns whether the run is complete.
    async fn live(&self, runtime: Runtime, store: &LeaseStore) -> Result<bool, String> {
        // No process claims a run before it has a lease.
        store.granted().await;
        let mut parked = None;
        loop {
            if self.watch.broken().is_some() {
                return Ok(true);
            }
            match self.drive(runtime.clone(), &mut parked).await {
                Ok(Status::Complete) => return Ok(true),
                Ok(Status::Running) if parked.is_some() => {}
                Ok(status) => return Err(format!("the run completes, and is not {status:?}")),
                Err(DriveError::Refused(_)) => return Ok(true),
                Err(DriveError::Store(StoreError::NoRun(_)) | DriveError::DrivenBy { .. } | DriveError::TakenOver(_)) => {}
                Err(DriveError::LeaseLost(_) | DriveError::Store(StoreError::Io(_) | StoreError::OutcomeUnknown(_))) => {}
                Err(DriveError::Load(lockgate_runner::load::LoadError::Store(StoreError::Io(_)))) => {}
                Err(error) => return Err(format!("a process ends well or by a fault: {error}")),
            }
            sleep(self.plan.hosts[self.number].pause).await;
            if self.plan.hosts[self.number].restarts {
                return Ok(false);
            }
        }
    }

    /// Drives the run until it pauses; a run that this host rests from is left in `parked`.
    async fn drive(&self, runtime: Runtime, parked: &mut Option<Parked>) -> Result<Status, DriveError> {
        let run = RunId::from(RUN);
        let known = runtime.store.load(&run).await?.is_some();
        let mut driver = match (parked.take(), known, self.number) {
            (Some(parked), _, _) => parked.wake(runtime, Box::new(())).await?,
            (None, true, _) => Driver::resume(runtime, &run, Caller::driver(), Box::new(())).await?,
            (None, false, 0) => self.create(runtime, run).await?,
            (None, false, _) => return Err(StoreError::NoRun(run).into()),
        };
        let halt = Halt::default();
        let paused = tokio::select! {
            biased;
            paused = driver.drive(&halt) => paused,
            never = self.rest(&halt) => match never {},
        };
        let status = Run::status(driver.run());
        match paused {
            Ok(Paused::Interrupted) => *parked = Some(driver.park().await),
            Ok(Paused::Waiting | Paused::Ended) => {}
            Err(error) => {
                driver.release().await;
                return Err(error);
            }
        }
        Ok(status)
    }

    /// Stops the driver when it is time to rest. Once there are no more faults, hosts no longer rest, and the run must
    /// complete.
    async fn rest(&self, halt: &Halt) -> Infallible {
        if let Some(after) = self.plan.hosts[self.number].rests_after {
            sleep(after).await;
            if self.server.start.elapsed() < QUIET_AFTER {
                halt.halt(HaltReason::Stopped);
            }
        }
        std::future::pending().await
    }

    async fn create(&self, runtime: Runtime, run: RunId) -> Result<Driver, DriveError> {
        let workflow = self.plan.workflow();
        let bytes = workflow.to_bytes();
        let created = Created::new(run, Digest::of(&bytes), "out".into(), runtime.store.driver().clone());
        let values = vec![(created.definition, bytes)];
        let create = Create { created, presets: Vec::new() };
        Driver::create(runtime, Caller::driver(), create, Arc::new(workflow), values, Box::new(())).await
    }
}
