//! Driving a run: outcomes become commands, commands become commits, and after each commit what should be under way is begun.
//!
//! The state in memory is ahead of the store by the commit that is being appended. Nothing with an effect outside begins before that
//! commit is durable; when it cannot be appended, the state is read anew and the commands are decided again.

mod background;
mod claim;
mod commit;
mod error;
mod halt;
mod open_holds;
mod submit;
mod timers;

pub use background::{ClaimedRun, Parked, detach, fork_with, start_detached, start_parked};
use commit::{append_first, read_ahead, was_taken};
pub use error::DriveError;
pub use halt::{Halt, HaltReason};
use submit::carry_out;
pub(crate) use submit::record;
pub use submit::{accept, submit};
pub use timers::{Fired, HoldTimer, fire_due, next_hold_timer};

use crate::load::{LoadedRun, catch_up, load, load_with_sizes};
use crate::outbox;
use crate::projection::Projector;
use crate::runtime::{Performed, Runtime, Stop};
use crate::spans;
use claim::Claim;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{CommandId, HoldId, RunId};
use lockgate_engine::run::command::{Caller, Command, CommandKind, Create, Envelope, TaskOutcome};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::Entry;
use lockgate_engine::run::{Run, Status, create};
use lockgate_engine::spec::workflow::Workflow;
use lockgate_store::ClaimError;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tracing::{Instrument, Span, debug, info, warn};

/// How long what was killed may take to disappear before the driver no longer waits for it.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the loop pauses after turns that changed nothing: doubled each time, up to the longest pause.
const INITIAL_IDLE_BACKOFF: Duration = Duration::from_micros(500);
const MAX_IDLE_BACKOFF: Duration = Duration::from_secs(1);

/// Why driving stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Paused {
    /// The run has ended; its status says how.
    Ended,
    /// A person must answer.
    Waiting,
    /// It was asked to stop; what was under way has been ended and the state is saved.
    Interrupted,
}

/// Hears what happens, in order, after it is durable.
pub trait Listener: Send {
    /// A commit became durable.
    fn committed(&mut self, run: &Run, entries: &[Entry]);

    /// A file for people could not be written, for this reason.
    fn write_failed(&mut self, _why: &str) {}

    /// Something that stood where a file for people belongs was put here.
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
    /// Whether the history says that this driver drives the run: from then on, another driver in it has taken the run over.
    recorded: bool,
    running: BTreeMap<Effect, Stop>,
    /// What is no longer wanted and has been asked to end, and has not ended yet.
    ending: BTreeSet<Effect>,
    /// What ended in this turn of the loop.
    ended: Vec<Effect>,
    /// How many turns in a row changed nothing.
    idle_rounds: u32,
    outcomes: FuturesUnordered<BoxFuture<'static, (Effect, Outcome)>>,
    state_size: usize,
    bytes_since_state: usize,
    /// The changes of the run up to this marker are in the state.
    seen: u64,
    /// Whether the state is as it was read or made just now, so that there is no need to look what others did.
    fresh: bool,
    listener: Box<dyn Listener>,
    projector: Option<Projector>,
    /// What is logged about the run belongs to it.
    span: Span,
    /// The open holds with their revisions, the oldest first.
    open: watch::Sender<Vec<(HoldId, u32)>>,
}

/// What an effect came to; or that a panic ended it.
type Outcome = Result<Performed, Panicked>;

/// What a panic said.
struct Panicked(String);

/// A command that waits to be decided, with the values it refers to.
struct Waiting {
    command: Command,
    values: Vec<(Digest, Vec<u8>)>,
}

impl Driver {
    /// Begins a run and drives it from here on.
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
            // The reply was lost, and the claim with it: no one in this process holds it.
            None => match runtime.store.claim(&run.id).await {
                Ok(epoch) => epoch,
                Err(ClaimError::DrivenBy(by)) => return Err(DriveError::DrivenBy { run: run.id, by }),
                Err(ClaimError::Store(error)) => return Err(error.into()),
            },
        };
        let claim = Claim::held(&runtime.store, &run.id, epoch, term);
        Ok(Self::new(runtime, LoadedRun { run, state_bytes: 0, tail: 0 }, seen, claim, true, listener))
    }

    /// Takes a run over and drives it from here on: what its last driver left running is ended, and what was cut off is dealt with.
    pub async fn resume(runtime: Runtime, run: &RunId, caller: Caller, listener: Box<dyn Listener>) -> Result<Self, DriveError> {
        let resumed = async {
            let (mut driver, body) = Self::claim(runtime, run, None, false, listener).await?;
            driver.take_over(caller, body).await?;
            Ok(driver)
        };
        resumed.instrument(spans::run(run)).await
    }

    /// The same with a run that was read already; only what happened since is read.
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

    /// Claims a run and ends what its last driver left running; gives the command that takes it over.
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

    /// Reads a run that was claimed, and ends what its last driver left running; gives the command that takes it over.
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

    /// Claims the run that this driver continues and that it has not claimed yet.
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

    /// Gives the claim on the run up, so that any process can drive it. Only after [`Driver::drive`]: nothing is running then.
    pub async fn release(&mut self) {
        self.claim.release().await;
    }

    fn new(runtime: Runtime, fresh: LoadedRun, seen: u64, claim: Claim, recorded: bool, listener: Box<dyn Listener>) -> Self {
        Self {
            runtime,
            open: watch::Sender::new(open_holds::of(&fresh.run)),
            span: spans::run(&fresh.run.id),
            run: fresh.run,
            claim,
            recorded,
            running: BTreeMap::new(),
            ending: BTreeSet::new(),
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

    /// The run as it stands.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The outside that it drives in.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Carries out a command of somebody at this process.
    pub async fn submit(&mut self, caller: Caller, kind: CommandKind) -> Result<(), DriveError> {
        let span = spans::command(&self.run.id, &kind);
        let command = Command { envelope: caller_envelope(&self.runtime, caller), kind };
        self.decide(command).instrument(span).await
    }

    async fn decide(&mut self, command: Command) -> Result<(), DriveError> {
        self.commit(vec![Waiting { command, values: Vec::new() }]).await
    }

    /// Drives until the run ends, waits for people, or is asked to stop. Whatever comes back, nothing is under way any more.
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
        // What was recorded in a database that is gone is not recorded.
        let paused = paused.and_then(|paused| Ok(self.runtime.store.still_there().map(|()| paused)?));
        if paused.is_err() {
            self.stop_before_lease_ends().await;
        }
        self.settle_files().await;
        paused
    }

    /// Waits until the files for people show what the run says.
    async fn settle_files(&mut self) {
        let Some(projector) = &mut self.projector else { return };
        let (trouble, aside) = projector.settled().await;
        aside.iter().for_each(|path| self.listener.moved_aside(path));
        if let Some(why) = trouble {
            warn!(error = %why, "the files for people are not up to date");
            self.listener.write_failed(&why);
        }
    }

    async fn drive_on(&mut self, halt: &Halt) -> Result<Paused, DriveError> {
        if !std::mem::take(&mut self.fresh) {
            self.catch_up().await?;
        }
        self.advance().await?;
        // The process that drove it last may have been killed before it wrote files and delivered notices of what it had recorded.
        Projector::offer(&mut self.projector, &self.runtime, &self.run);
        outbox::wake(&self.runtime);
        loop {
            match self.run.status() {
                Status::Complete | Status::Failed | Status::Aborted | Status::Cancelled => {
                    self.stop_all().await;
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

    /// An effect ended, changed nothing, and was started again. No rule asks for that. Should one do so all the same, such turns come
    /// ever more slowly, so that the process hears signals and drives its other runs.
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

    /// Waits for the next outcome; gives none when the driver is asked to stop or another process changed the run.
    async fn wait(&mut self, halt: &Halt) -> Result<Option<Waiting>, DriveError> {
        loop {
            let store = self.runtime.store.clone();
            tokio::select! {
                biased;
                Some((effect, performed)) = self.outcomes.next() => return self.outcome(effect, performed).map(Some),
                () = halt.stop.stopped() => return Ok(None),
                // The feed leaves out what this driver committed itself.
                changed = store.run_changed(&self.run.id, self.seen, Some(self.run.version)) => self.seen = changed?,
            }
            if self.check_for_changes().await? {
                return Ok(None);
            }
        }
    }

    /// Looks whether others changed the run, and lets follow what follows from it.
    async fn check_for_changes(&mut self) -> Result<bool, DriveError> {
        let changed = self.catch_up().await?;
        if changed {
            self.advance().await?;
        }
        Ok(changed)
    }

    /// Reads what others did.
    async fn catch_up(&mut self) -> Result<bool, DriveError> {
        let changed = catch_up(&*self.runtime.store, &mut self.run).await?;
        self.refuse_takeover()?;
        Ok(changed)
    }

    /// Reads the state again, because what is in memory was not taken.
    async fn read_again(&mut self) -> Result<(), DriveError> {
        self.run = load(&*self.runtime.store, &self.run.id).await?;
        self.refuse_takeover()
    }

    /// What another driver recorded since it took the run over is that one's to perform.
    fn refuse_takeover(&self) -> Result<(), DriveError> {
        if self.recorded && self.run.driver != *self.runtime.store.driver() {
            return Err(DriveError::TakenOver(self.run.id.clone()));
        }
        Ok(())
    }

    /// Lets follow what follows from the state as it is.
    async fn advance(&mut self) -> Result<(), DriveError> {
        self.decide(own_command(&self.runtime, CommandKind::Advance)).await
    }

    /// Ends what is under way and records that it was cut off, save for what had finished by then.
    async fn interrupt(&mut self, halt: &Halt) -> Result<Paused, DriveError> {
        let mut last = self.stop_all().await;
        let signal = halt.reason().unwrap_or(HaltReason::Stopped).word().to_owned();
        let command = own_command(&self.runtime, CommandKind::Interrupt { signal });
        last.push(Waiting { command, values: Vec::new() });
        self.commit(last).await?;
        Ok(if self.run.end.is_some() { Paused::Ended } else { Paused::Interrupted })
    }

    /// Ends what is under way, before another process may start the same. What cannot be ended in order by then is dropped, which kills it.
    async fn stop_before_lease_ends(&mut self) {
        let in_time = match self.claim.kill_at() {
            Some(kill_at) => tokio::time::timeout_at(kill_at + KILL_TIMEOUT, self.stop_all()).await.is_ok(),
            None => {
                self.stop_all().await;
                true
            }
        };
        if !in_time {
            self.span.in_scope(|| warn!("not everything ended before the claim expires; the rest is killed"));
        }
        self.outcomes.clear();
    }

    /// Ends what is under way; gives what had finished all the same, to be recorded without letting anything follow from it.
    async fn stop_all(&mut self) -> Vec<Waiting> {
        for stop in self.running.values() {
            self.request_stop(stop);
        }
        let mut finished = Vec::new();
        // What is waited for here was either wanted until now, or is being ended already.
        while let Some((effect, performed)) = self.outcomes.next().await {
            let performed = match performed {
                Ok(performed) => performed,
                Err(panic) => {
                    self.span.in_scope(|| warn!(panic = panic.0, "an effect panicked while everything was being ended"));
                    continue;
                }
            };
            let well = matches!(
                performed.command,
                CommandKind::TaskEnded { outcome: TaskOutcome::Finished { .. }, .. }
                    | CommandKind::GateEnded { failure: None, .. }
            );
            let mut waiting = self.ended_as(effect, performed);
            waiting.command.envelope.driving = false;
            if well {
                finished.push(waiting);
            }
        }
        self.running.clear();
        finished
    }

    /// Asks something that runs to end, and has it killed before the claim expires.
    fn request_stop(&self, stop: &Stop) {
        match self.claim.kill_at() {
            Some(kill_at) => stop.stop_by(kill_at),
            None => stop.stop(),
        }
    }

    fn outcome(&mut self, effect: Effect, outcome: Outcome) -> Result<Waiting, DriveError> {
        match outcome {
            Ok(performed) => Ok(self.ended_as(effect, performed)),
            Err(Panicked(detail)) => Err(DriveError::Panicked { run: self.run.id.clone(), detail }),
        }
    }

    fn ended_as(&mut self, effect: Effect, performed: Performed) -> Waiting {
        self.running.remove(&effect);
        self.ending.remove(&effect);
        self.ended.push(effect);
        let command = own_command(&self.runtime, performed.command);
        Waiting { command, values: performed.values }
    }

    /// Begins what should be under way and is not, and ends what is under way and should not be.
    /// No work begins while something that is no longer wanted still ends: it may be an earlier attempt of the same.
    fn start_pending(&mut self) {
        let pending: BTreeSet<Effect> = self.run.pending().into_iter().collect();
        let unwanted: Vec<Effect> = self.running.keys().filter(|effect| !pending.contains(effect)).cloned().collect();
        for effect in unwanted {
            if let Some(stop) = self.running.remove(&effect) {
                spans::effect(&self.span, &effect).in_scope(|| debug!("no longer wanted; ending it"));
                self.request_stop(&stop);
                self.ending.insert(effect);
            }
        }
        for effect in pending {
            let is_work =
                matches!(effect, Effect::Task { .. } | Effect::Gate { .. } | Effect::QueryAgent { .. } | Effect::Check { .. });
            if self.running.contains_key(&effect) || (is_work && !self.ending.is_empty()) {
                continue;
            }
            let stop = Stop::new();
            let future = self.start(&effect, stop.clone());
            self.running.insert(effect.clone(), stop.clone());
            let claim = self.claim.clone();
            // A panic ends what this driver does, in order, and not the process with its other runs.
            let performed = under_claim(claim, stop, future).instrument(spans::effect(&self.span, &effect));
            let guarded = AssertUnwindSafe(performed).catch_unwind();
            self.outcomes.push(Box::pin(async move { (effect, guarded.await.map_err(|panic| Panicked(panic_text(&*panic)))) }));
        }
    }

    fn start(&self, effect: &Effect, stop: Stop) -> BoxFuture<'static, Performed> {
        match effect {
            Effect::Wake { timer, due, longest } => {
                let (timer, sleep) = (timer.clone(), self.runtime.clock.sleep_until(*due, *longest));
                Box::pin(async move {
                    tokio::select! {
                        () = sleep => CommandKind::TimerDue { timer }.into(),
                        // It is no longer waited for; that does not make it due.
                        () = stop.stopped() => CommandKind::Advance.into(),
                    }
                })
            }
            Effect::Task { .. }
            | Effect::Gate { .. }
            | Effect::Evaluate { .. }
            | Effect::Show { .. }
            | Effect::DiffBase { .. }
            | Effect::When { .. }
            | Effect::Gaps { .. }
            | Effect::QueryAgent { .. }
            | Effect::Finalize
            | Effect::Check { .. }
            | Effect::Artifacts { .. }
            | Effect::Recheck { .. } => self.runtime.perform.start(&self.run, effect, stop),
        }
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

/// Performs an effect as soon as the claim can be relied on, which is checked last of all: a process may stand still at any point before.
async fn under_claim(claim: Claim, stop: Stop, effect: BoxFuture<'static, Performed>) -> Performed {
    tokio::select! {
        biased;
        () = claim.confirmed() => {}
        () = stop.stopped() => return CommandKind::Advance.into(),
    }
    info!("started");
    let performed = effect.await;
    let (outcome, failure) = spans::outcome(&performed.command);
    info!(outcome, failure = failure.map(tracing::field::debug), "ended");
    performed
}

/// A command of the driver itself: the outcome of an effect, or what its loop needs.
fn own_command(runtime: &Runtime, kind: CommandKind) -> Command {
    Command { envelope: envelope(runtime, Caller::driver()), kind }
}

fn envelope(runtime: &Runtime, caller: Caller) -> Envelope {
    Envelope { id: None, caller, at: runtime.clock.now(), seed: runtime.clock.seed(), driving: true }
}

/// The envelope of a command that a caller sends, with an id of its own.
fn caller_envelope(runtime: &Runtime, caller: Caller) -> Envelope {
    let id = CommandId::new(lockgate_engine::id::IdSource::new(runtime.clock.seed()).next_id());
    Envelope { id: Some(id), ..envelope(runtime, caller) }
}

/// The same from a process that does not drive the run.
fn external_envelope(runtime: &Runtime, caller: Caller) -> Envelope {
    Envelope { driving: false, ..caller_envelope(runtime, caller) }
}
