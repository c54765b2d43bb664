//! The drive loop: outcomes become commands, commands become commits, and each commit starts the effects that are then
//! pending.
//!
//! The state in memory is ahead of the store by the commit that is being appended. No external effect starts before that
//! commit is durable. If it cannot be appended, the driver reloads the state and decides the commands again.

mod background;
mod claim;
mod commit;
mod effects;
mod envelope;
mod error;
mod halt;
mod hold_timers;
mod open_holds;
mod restore;
mod submit;

pub use background::{ClaimedRun, Parked, detach, fork_with, start_detached, start_parked};
use commit::{append_first, read_ahead, was_taken};
use effects::Outcome;
pub(crate) use effects::panic_text;
use envelope::{caller_envelope, external_envelope, own_command};
pub use error::DriveError;
pub use halt::{Halt, HaltReason};
pub use hold_timers::{Fired, HoldTimer, fire_due, next_hold_timer};
pub use restore::{SnapshotState, recover_with, rewind};
use submit::carry_out;
pub(crate) use submit::record;
pub use submit::{accept, submit, submit_values};

use crate::load::{LoadedRun, catch_up, load, load_with_sizes};
use crate::outbox;
use crate::projection::Projector;
use crate::runtime::{Runtime, Stop};
use crate::snapshot;
use crate::spans;
use claim::Claim;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{HoldId, RunId};
use lockgate_engine::run::command::{Caller, Command, CommandKind, Create};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::Entry;
use lockgate_engine::run::{Run, Status, create};
use lockgate_engine::spec::workflow::Workflow;
use lockgate_store::ClaimError;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tracing::{Instrument, Span, info, warn};

/// Backoff for loop iterations that change nothing: it doubles each time, up to the maximum.
const INITIAL_IDLE_BACKOFF: Duration = Duration::from_micros(500);
const MAX_IDLE_BACKOFF: Duration = Duration::from_secs(1);

/// Why driving stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Paused {
    /// The run has ended.
    Ended,
    /// A person must answer.
    Waiting,
    /// A stop was requested; running effects have been stopped and the state is saved.
    Interrupted,
}

/// Observes a run: called in order, after each change is durable.
pub trait Listener: Send {
    /// A commit became durable.
    fn committed(&mut self, run: &Run, entries: &[Entry]);

    /// A generated file could not be written.
    fn write_failed(&mut self, _why: &str) {}

    /// Snapshots could not be written.
    fn snapshots_failed(&mut self, _why: &str) {}

    /// This many snapshots were removed because they were larger than the limit in the settings.
    fn snapshots_removed(&mut self, _count: usize) {}

    /// A file occupied the path of a generated file and was moved here.
    fn moved_aside(&mut self, _path: &Path) {}
}

impl Listener for () {
    fn committed(&mut self, _: &Run, _: &[Entry]) {}
}

/// A run that this process drives.
pub struct Driver {
    runtime: Runtime,
    run: Run,
    claim: Claim,
    /// Whether the history records this driver. Once it does, a different driver in the history means that the run was taken
    /// over.
    recorded: bool,
    running: BTreeMap<Effect, Stop>,
    /// Unwanted effects that were asked to stop but have not ended yet.
    ending: BTreeMap<Effect, Stop>,
    /// Effects that ended in this iteration of the loop.
    ended: Vec<Effect>,
    /// How many consecutive iterations changed nothing.
    idle_rounds: u32,
    outcomes: FuturesUnordered<BoxFuture<'static, (Effect, Outcome)>>,
    state_size: usize,
    bytes_since_state: usize,
    /// The changes of the run up to this marker are in the state.
    seen: u64,
    /// Whether the state was just loaded or created, so there is no need to check for commits of other processes.
    fresh: bool,
    listener: Box<dyn Listener>,
    projector: Option<Projector>,
    /// `None` if the settings want no snapshots.
    snapshots: Option<snapshot::Writer>,
    /// The span that the run's log events belong to.
    span: Span,
    /// The open holds with their revisions, oldest first.
    open: watch::Sender<Vec<(HoldId, u32)>>,
}

/// A command that waits for a decision, with the values it refers to.
struct Waiting {
    command: Command,
    values: Vec<(Digest, Vec<u8>)>,
}

impl Driver {
    /// Creates a run and drives it.
    pub async fn create(
        runtime: Runtime,
        caller: Caller,
        beginning: Create,
        workflow: Arc<Workflow>,
        values: Vec<(Digest, Vec<u8>)>,
        mut listener: Box<dyn Listener>,
    ) -> Result<Self, DriveError> {
        let (mut run, mut entries) = create(&caller_envelope(&runtime, caller), &beginning, workflow)?;
        let mut values = values;
        read_ahead(&runtime, &mut run, &mut entries, &mut values).await;
        let (driver, term) = (runtime.store.driver().clone(), runtime.store.lease().term());
        let seen = runtime.store.changes_of(&run.id);
        let (heard, epoch) = append_first(&runtime, &mut run, entries, values, Some(driver)).await?;
        listener.committed(&run, &heard);
        info!(run = %run.id, epoch, "created");
        let epoch = match epoch {
            Some(epoch) => epoch,
            // The reply was lost, and the claim with it: nothing in this process holds it.
            None => match runtime.store.claim(&run.id).await {
                Ok(epoch) => epoch,
                Err(ClaimError::DrivenBy(by)) => return Err(DriveError::DrivenBy { run: run.id, by }),
                Err(ClaimError::Store(error)) => return Err(error.into()),
            },
        };
        let claim = Claim::held(&runtime.store, &run.id, epoch, term);
        Ok(Self::new(runtime, LoadedRun { run, state_bytes: 0, tail: 0 }, seen, claim, true, listener))
    }

    /// Takes over a run: stops processes that its previous driver left running, and handles interrupted work.
    pub async fn resume(runtime: Runtime, run: &RunId, caller: Caller, listener: Box<dyn Listener>) -> Result<Self, DriveError> {
        let resumed = async {
            let (mut driver, body) = Self::claim(runtime, run, None, false, listener).await?;
            driver.take_over(caller, body).await?;
            Ok(driver)
        };
        resumed.instrument(spans::run(run)).await
    }

    /// Like [`Driver::resume`], for a run that was already loaded: only newer commits are read.
    pub async fn resume_read(
        runtime: Runtime,
        read: LoadedRun,
        caller: Caller,
        listener: Box<dyn Listener>,
    ) -> Result<Self, DriveError> {
        let run = read.run.id.clone();
        let resumed = async {
            let (mut driver, body) = Self::claim(runtime, &run, Some(read), false, listener).await?;
            driver.take_over(caller, body).await?;
            Ok(driver)
        };
        resumed.instrument(spans::run(&run)).await
    }

    /// Claims a run and stops what its previous driver left running. Returns the command that records the takeover.
    async fn claim(
        runtime: Runtime,
        run: &RunId,
        read: Option<LoadedRun>,
        detached: bool,
        listener: Box<dyn Listener>,
    ) -> Result<(Self, CommandKind), DriveError> {
        let term = runtime.store.lease().term();
        let claim = match runtime.store.claim(run).await {
            Ok(epoch) => Claim::held(&runtime.store, run, epoch, term),
            Err(ClaimError::DrivenBy(by)) => return Err(DriveError::DrivenBy { run: run.clone(), by }),
            Err(ClaimError::Store(error)) => return Err(error.into()),
        };
        let taken = Self::take(runtime, run, read, detached, claim.clone(), listener).await;
        if taken.is_err() {
            claim.release().await;
        }
        taken
    }

    /// Loads a claimed run and stops what its previous driver left running. Returns the command that records the takeover.
    async fn take(
        runtime: Runtime,
        run: &RunId,
        read: Option<LoadedRun>,
        detached: bool,
        claim: Claim,
        listener: Box<dyn Listener>,
    ) -> Result<(Self, CommandKind), DriveError> {
        let seen = runtime.store.changes_of(run);
        let fresh = match read {
            Some(mut read) => {
                catch_up(&*runtime.store, &mut read.run).await?;
                read
            }
            None => load_with_sizes(&*runtime.store, run).await?,
        };
        let orphans = runtime.perform.end_orphans(&fresh.run).await;
        orphans.map_err(|detail| DriveError::Orphans { run: run.clone(), detail })?;
        let command = CommandKind::TakeOver { driver: runtime.store.driver().clone(), detached };
        Ok((Self::new(runtime, fresh, seen, claim, false, listener), command))
    }

    /// Claims the run if a commit has not claimed it yet.
    async fn claim_now(&mut self) -> Result<(), DriveError> {
        let (store, run) = (&self.runtime.store, &self.run.id);
        let term = store.lease().term();
        match store.claim(run).await {
            Ok(epoch) => self.claim.take(epoch, term),
            Err(ClaimError::DrivenBy(by)) => return Err(DriveError::DrivenBy { run: run.clone(), by }),
            Err(ClaimError::Store(error)) => return Err(error.into()),
        }
        Ok(())
    }

    /// Releases the claim so that any process can drive the run. Call it only after [`Driver::drive`], when nothing is
    /// running.
    pub async fn release(&mut self) {
        self.claim.release().await;
    }

    fn new(runtime: Runtime, fresh: LoadedRun, seen: u64, claim: Claim, recorded: bool, listener: Box<dyn Listener>) -> Self {
        Self {
            snapshots: snapshot_writer(&runtime, &fresh.run),
            runtime,
            open: watch::Sender::new(open_holds::of(&fresh.run)),
            span: spans::run(&fresh.run.id),
            run: fresh.run,
            claim,
            recorded,
            running: BTreeMap::new(),
            ending: BTreeMap::new(),
            ended: Vec::new(),
            idle_rounds: 0,
            outcomes: FuturesUnordered::new(),
            state_size: fresh.state_bytes,
            bytes_since_state: fresh.tail,
            seen,
            fresh: true,
            listener,
            projector: None,
        }
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Executes a caller's command.
    pub async fn submit(&mut self, caller: Caller, kind: CommandKind) -> Result<(), DriveError> {
        let span = spans::command(&self.run.id, &kind);
        let command = Command { envelope: caller_envelope(&self.runtime, caller), kind };
        self.decide(command).instrument(span).await
    }

    async fn decide(&mut self, command: Command) -> Result<(), DriveError> {
        self.commit(vec![Waiting { command, values: Vec::new() }]).await
    }

    /// Drives the run until it ends, waits for a person, or is asked to stop. Nothing is running when this returns.
    pub async fn drive(&mut self, halt: &Halt) -> Result<Paused, DriveError> {
        let span = self.span.clone();
        let driven = self.drive_until_paused(halt).instrument(span.clone()).await;
        span.in_scope(|| match &driven {
            Ok(paused) => info!(?paused, version = self.run.version, "no longer driven"),
            Err(error) => warn!(%error, version = self.run.version, "driving failed"),
        });
        driven
    }

    async fn drive_until_paused(&mut self, halt: &Halt) -> Result<Paused, DriveError> {
        let claim = self.claim.clone();
        let paused = tokio::select! {
            biased;
            lost = claim.lost() => Err(lost),
            paused = self.drive_on(halt) => paused,
        };
        // Commits to a database that has since been removed are lost.
        let paused = paused.and_then(|paused| Ok(self.runtime.store.still_there().map(|()| paused)?));
        if paused.is_err() {
            self.stop_before_lease_ends().await;
        }
        // Without the database, snapshots cannot be written either; the next driver writes them.
        self.settle_snapshots(paused.is_ok()).await;
        self.settle_files().await;
        paused
    }

    /// Waits until the snapshots that are due are written.
    async fn settle_snapshots(&mut self, wait: bool) {
        let Some(mut snapshots) = self.snapshots.take() else { return };
        if !wait {
            return;
        }
        let settled = snapshots.settled().await;
        if settled.removed > 0 {
            self.listener.snapshots_removed(settled.removed);
        }
        if let Some(why) = settled.failure {
            self.listener.snapshots_failed(&why);
        }
        self.snapshots = Some(snapshots);
    }

    /// Has the generated files written for the current state, without waiting.
    fn offer_files(&mut self) {
        Projector::offer(&mut self.projector, &self.runtime, &self.run);
        if let Some(snapshots) = &self.snapshots {
            snapshots.offer(self.run.version);
        }
    }

    /// Waits until the generated files are up to date.
    async fn settle_files(&mut self) {
        let Some(projector) = &mut self.projector else { return };
        let (trouble, aside) = projector.settled().await;
        aside.iter().for_each(|path| self.listener.moved_aside(path));
        if let Some(why) = trouble {
            warn!(error = %why, "the generated files are not up to date");
            self.listener.write_failed(&why);
        }
    }

    async fn drive_on(&mut self, halt: &Halt) -> Result<Paused, DriveError> {
        if !std::mem::take(&mut self.fresh) {
            self.catch_up().await?;
        }
        self.advance().await?;
        // The previous driver may have been killed before it wrote files and delivered notices for what it had committed.
        self.offer_files();
        outbox::wake(&self.runtime);
        loop {
            match self.run.status() {
                Status::Complete | Status::Failed | Status::Aborted | Status::Cancelled => {
                    self.stop_all(Some(halt)).await;
                    return Ok(Paused::Ended);
                }
                Status::Waiting if self.outcomes.is_empty() => return Ok(Paused::Waiting),
                Status::Waiting | Status::Running => {}
            }
            self.ended.clear();
            let mut ready = Vec::new();
            while let Some(Some((effect, performed))) = self.outcomes.next().now_or_never() {
                ready.push(self.outcome(effect, performed)?);
            }
            if ready.is_empty() {
                match self.wait(halt).await? {
                    Some(waiting) => ready.push(waiting),
                    None if halt.stop.is_stopped() => return self.interrupt(halt).await,
                    None => continue,
                }
            }
            let before = self.run.version;
            self.commit(ready).await?;
            self.back_off(before, halt).await;
            if halt.stop.is_stopped() {
                return self.interrupt(halt).await;
            }
        }
    }

    /// An effect ended, changed nothing and was started again. No rule should cause that; if one does, back off so that the
    /// process still handles signals and drives its other runs.
    async fn back_off(&mut self, before: u64, halt: &Halt) {
        let idle_rounds = self.run.version == before && self.ended.iter().any(|effect| self.running.contains_key(effect));
        self.idle_rounds = if idle_rounds { self.idle_rounds.saturating_add(1) } else { 0 };
        if idle_rounds {
            let pause = INITIAL_IDLE_BACKOFF.saturating_mul(1 << self.idle_rounds.min(16)).min(MAX_IDLE_BACKOFF);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = halt.stop.stopped() => {}
            }
        }
    }

    /// Waits for the next outcome. Returns `None` if the driver is asked to stop or another process changed the run.
    async fn wait(&mut self, halt: &Halt) -> Result<Option<Waiting>, DriveError> {
        loop {
            let store = self.runtime.store.clone();
            tokio::select! {
                biased;
                Some((effect, performed)) = self.outcomes.next() => return self.outcome(effect, performed).map(Some),
                () = halt.stop.stopped() => return Ok(None),
                // The feed leaves out this driver's own commits.
                changed = store.run_changed(&self.run.id, self.seen, Some(self.run.version)) => self.seen = changed?,
            }
            if self.check_for_changes().await? {
                return Ok(None);
            }
        }
    }

    /// Checks for commits of other processes and advances the run if there are any.
    async fn check_for_changes(&mut self) -> Result<bool, DriveError> {
        let changed = self.catch_up().await?;
        if changed {
            self.advance().await?;
        }
        Ok(changed)
    }

    /// Applies commits of other processes.
    async fn catch_up(&mut self) -> Result<bool, DriveError> {
        let changed = catch_up(&*self.runtime.store, &mut self.run).await?;
        self.refuse_takeover()?;
        Ok(changed)
    }

    /// Reloads the state because the commit that produced the one in memory was rejected.
    async fn read_again(&mut self) -> Result<(), DriveError> {
        self.run = load(&*self.runtime.store, &self.run.id).await?;
        self.refuse_takeover()
    }

    /// Once another driver has taken the run over, its effects are not ours to perform.
    fn refuse_takeover(&self) -> Result<(), DriveError> {
        if self.recorded && self.run.driver != *self.runtime.store.driver() {
            return Err(DriveError::TakenOver(self.run.id.clone()));
        }
        Ok(())
    }

    async fn advance(&mut self) -> Result<(), DriveError> {
        self.decide(own_command(&self.runtime, CommandKind::Advance)).await
    }

    /// Stops all running effects and records the interruption. Effects that finished in the meantime are recorded as
    /// finished.
    async fn interrupt(&mut self, halt: &Halt) -> Result<Paused, DriveError> {
        let mut last = self.stop_all(Some(halt)).await;
        let signal = halt.reason().unwrap_or(HaltReason::Stopped).as_str().to_owned();
        let command = own_command(&self.runtime, CommandKind::Interrupt { signal });
        last.push(Waiting { command, values: Vec::new() });
        self.commit(last).await?;
        Ok(if self.run.end.is_some() { Paused::Ended } else { Paused::Interrupted })
    }
}

/// Writes snapshots if the settings want any. A location that cannot be used was reported when the run started.
fn snapshot_writer(runtime: &Runtime, run: &Run) -> Option<snapshot::Writer> {
    match runtime.perform.snapshots(run) {
        Ok(options) => options.map(|options| snapshot::Writer::start(runtime.store.clone(), run.id.clone(), options)),
        Err(error) => {
            warn!(%error, "no snapshots are written");
            None
        }
    }
}
