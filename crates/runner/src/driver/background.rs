//! Runs that are left to whichever process drives in the background: beginning them, handing them over, and letting them rest.

use super::claim::Claim;
use super::submit::try_refresh_files;
use super::{DriveError, Driver, Listener, append_first, carry_out, external_envelope};
use crate::load::load_with_sizes;
use crate::runtime::Runtime;
use crate::spans;
use crate::start::Prepared;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::{AnswerChange, Caller, Command, CommandKind};
use lockgate_engine::run::{Fork, ForkAs, Run, Status, create, fork};
use lockgate_store::StoreError;
use tracing::{Instrument, debug, info};

/// Begins a run without driving it: nothing of it starts before a process in the background takes it.
pub async fn start_detached(runtime: &Runtime, caller: Caller, prepared: Prepared) -> Result<Run, DriveError> {
    let mut prepared = prepared;
    prepared.create.created.detached = true;
    start_parked(runtime, caller, prepared).await
}

/// Begins a run without driving it: nothing of it starts before somebody resumes it.
pub async fn start_parked(runtime: &Runtime, caller: Caller, prepared: Prepared) -> Result<Run, DriveError> {
    let Prepared { create: beginning, workflow, values } = prepared;
    let (mut run, entries) = create(&external_envelope(runtime, caller), &beginning, workflow)?;
    append_first(runtime, &mut run, entries, values, None).await?;
    spans::run(&run.id).in_scope(|| info!(detached = run.detached, "created; nothing of it runs yet"));
    try_refresh_files(runtime, &run).instrument(spans::run(&run.id)).await;
    Ok(run)
}

/// Begins a run that goes on from a complete one with a changed answer, and leaves it there: whoever resumes it drives it.
pub async fn fork_with(
    runtime: &Runtime,
    parent: &Run,
    own: ForkAs,
    caller: Caller,
    change: &AnswerChange,
) -> Result<Run, DriveError> {
    let Fork { mut run, entries, state } = fork(&external_envelope(runtime, caller), change, parent, own)?;
    append_first(runtime, &mut run, entries, vec![state], None).await?;
    spans::run(&run.id).in_scope(|| info!(parent_run = %parent.id, "forked"));
    Ok(run)
}

/// Leaves a run that no one drives to whichever process drives in the background; what failed is to be tried again. What else the caller
/// wants of the run is recorded before the claim is released: otherwise another process could continue the run first, and ask for it.
pub async fn detach(
    runtime: &Runtime,
    run: &RunId,
    caller: Caller,
    commands: impl FnOnce(&Run) -> Vec<CommandKind>,
) -> Result<Run, DriveError> {
    let detached = async {
        let (mut driver, take_over) = Driver::claim(runtime.clone(), run, None, true, Box::new(())).await?;
        let recorded = record_all(&mut driver, caller, take_over, commands).await;
        driver.release().await;
        recorded.map(|()| driver.run)
    };
    detached.instrument(spans::run(run)).await
}

async fn record_all(
    driver: &mut Driver,
    caller: Caller,
    take_over: CommandKind,
    commands: impl FnOnce(&Run) -> Vec<CommandKind>,
) -> Result<(), DriveError> {
    let command = |driver: &Driver, kind| Command { envelope: external_envelope(&driver.runtime, caller.clone()), kind };
    let first = command(driver, take_over);
    record_only(driver, &first).await?;
    for wish in commands(&driver.run) {
        let wish = command(driver, wish);
        record_only(driver, &wish).await?;
    }
    Ok(())
}

/// Records a command and no more: nothing may follow from it here.
async fn record_only(driver: &mut Driver, command: &Command) -> Result<(), DriveError> {
    loop {
        let (entries, refusal) = carry_out(&mut driver.run, command);
        if entries.is_empty() || driver.append(entries, Vec::new()).await? {
            return refusal.map_or(Ok(()), |refusal| Err(refusal.into()));
        }
    }
}

/// A run that waits for a person. Nothing of it is kept in memory, and no one has claimed it: any process can continue it.
#[derive(Clone, Debug)]
pub struct Parked {
    run: RunId,
}

impl Parked {
    /// Which run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// A run that this process drove last, and let go when it waited for a person.
    pub(crate) fn here(run: RunId) -> Self {
        Self { run }
    }

    /// Reads the run again, to continue it. If no other process drove it meanwhile, the next commit claims it; otherwise this one takes it over.
    pub async fn wake(&self, runtime: Runtime, listener: Box<dyn Listener>) -> Result<Driver, DriveError> {
        let woken = self.wake_if(|_| true, runtime, listener).instrument(spans::run(&self.run)).await?;
        Ok(woken.expect("every run is to be woken"))
    }

    /// The same for a run in the background; nothing where it no longer wants a driver.
    pub(crate) async fn wake_wanted(&self, runtime: Runtime, listener: Box<dyn Listener>) -> Result<Option<Driver>, DriveError> {
        self.wake_if(wants_driver, runtime, listener).instrument(spans::run(&self.run)).await
    }

    async fn wake_if(
        &self,
        is_wanted: fn(&Run) -> bool,
        runtime: Runtime,
        listener: Box<dyn Listener>,
    ) -> Result<Option<Driver>, DriveError> {
        let seen = runtime.store.changes_of(&self.run);
        let fresh = load_with_sizes(&*runtime.store, &self.run).await?;
        if !is_wanted(&fresh.run) {
            return Ok(None);
        }
        // A driver that was interrupted recorded that nothing starts before the run is taken over.
        if fresh.run.driver == *runtime.store.driver() && !fresh.run.stopping {
            debug!("continued where it was; its next commit claims it");
            let claim = Claim::free(&runtime.store, &self.run);
            return Ok(Some(Driver::new(runtime, fresh, seen, claim, true, listener)));
        }
        let detached = fresh.run.detached;
        let (mut driver, command) = Driver::claim(runtime, &self.run, Some(fresh), detached, listener).await?;
        if !is_wanted(&driver.run) {
            driver.release().await;
            return Ok(None);
        }
        driver.take_over(Caller::driver(), command).await?;
        Ok(Some(driver))
    }
}

/// Whether a run is left to the background and could continue. Between the claim and here, a person may have cancelled it or taken it over.
fn wants_driver(run: &Run) -> bool {
    run.detached && run.status() == Status::Running
}

/// A run that this process has claimed, and has not read yet. Its claim is released when this is dropped.
pub struct ClaimedRun {
    claim: Claim,
}

impl ClaimedRun {
    /// Claims the next runs in the background that could continue, that no live process drives, and that are fit for it, at most so many.
    pub async fn next(
        runtime: &Runtime,
        is_fit: &(dyn Fn(&RunId) -> bool + Sync),
        limit: usize,
    ) -> Result<Vec<Self>, StoreError> {
        let term = runtime.store.lease().term();
        let claimed = runtime.store.claim_next(is_fit, limit).await?;
        let claimed = claimed.into_iter().map(|(run, epoch)| Self { claim: Claim::held(&runtime.store, &run, epoch, term) });
        Ok(claimed.collect())
    }

    /// Which run.
    pub fn run(&self) -> &RunId {
        self.claim.run()
    }

    /// Reads the run, to drive it; gives nothing where it no longer wants a driver. One that is `parked` in this process continues where it was, unless
    /// another process drove it meanwhile; any other is taken over.
    pub async fn resume(self, runtime: Runtime, parked: bool, listener: Box<dyn Listener>) -> Result<Option<Driver>, DriveError> {
        let span = spans::run(self.run());
        self.resume_in_span(runtime, parked, listener).instrument(span).await
    }

    async fn resume_in_span(
        self,
        runtime: Runtime,
        parked: bool,
        listener: Box<dyn Listener>,
    ) -> Result<Option<Driver>, DriveError> {
        let claim = self.claim;
        let taken = Driver::take(runtime, claim.run(), None, true, claim.clone(), listener).await;
        let (mut driver, command) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                claim.release().await;
                return Err(error);
            }
        };
        if !wants_driver(&driver.run) {
            debug!("no longer wants a driver");
            driver.release().await;
            return Ok(None);
        }
        match parked && driver.run.driver == *driver.runtime.store.driver() && !driver.run.stopping {
            true => driver.recorded = true,
            false => driver.take_over(Caller::driver(), command).await?,
        }
        Ok(Some(driver))
    }
}

impl Driver {
    /// Records that this driver takes the run over; without that, it gives its claim up.
    pub(super) async fn take_over(&mut self, caller: Caller, command: CommandKind) -> Result<(), DriveError> {
        let taken = self.submit(caller, command).await;
        if taken.is_err() {
            self.stop_before_lease_ends().await;
            self.release().await;
        }
        taken
    }

    /// Lets a run rest that waits for a person, has ended or was interrupted: its claim is released.
    pub async fn park(mut self) -> Parked {
        self.release().await;
        Parked { run: self.run.id }
    }
}
