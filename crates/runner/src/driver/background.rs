//! Background runs: starting, detaching and parking them for any process that drives in the background.

use super::claim::Claim;
use super::submit::try_refresh_files;
use super::{DriveError, Driver, Listener, append_first, carry_out, external_envelope};
use crate::load::load_with_sizes;
use crate::runtime::Runtime;
use crate::spans;
use crate::start::Prepared;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::{AnswerChange, Caller, Command, CommandKind};
use lockgate_engine::run::{Fork, ForkAs, Run, Status, create, fork};
use lockgate_store::StoreError;
use tracing::{Instrument, debug, info};

/// Starts a run without driving it; a background process picks it up.
pub async fn start_detached(runtime: &Runtime, caller: Caller, prepared: Prepared) -> Result<Run, DriveError> {
    let mut prepared = prepared;
    prepared.create.created.detached = true;
    start_parked(runtime, caller, prepared).await
}

/// Starts a run without driving it; nothing runs until a person resumes it.
pub async fn start_parked(runtime: &Runtime, caller: Caller, prepared: Prepared) -> Result<Run, DriveError> {
    let Prepared { create: beginning, workflow, values } = prepared;
    let (mut run, entries) = create(&external_envelope(runtime, caller), &beginning, workflow)?;
    append_first(runtime, &mut run, entries, values, None).await?;
    spans::run(&run.id).in_scope(|| info!(detached = run.detached, "created without a driver"));
    try_refresh_files(runtime, &run).instrument(spans::run(&run.id)).await;
    Ok(run)
}

/// Forks a complete run with a changed answer. The fork is not driven until someone resumes it.
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

/// Hands an undriven run to the background and retries what failed. The caller's `commands` are recorded before the claim is
/// released; otherwise another process could continue the run first.
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
    record_only(driver, &first, &[]).await?;
    for wish in commands(&driver.run) {
        let wish = command(driver, wish);
        record_only(driver, &wish, &[]).await?;
    }
    Ok(())
}

/// Records a command without starting anything that follows from it.
pub(super) async fn record_only(driver: &mut Driver, command: &Command, values: &[(Digest, Vec<u8>)]) -> Result<(), DriveError> {
    loop {
        let (entries, refusal) = carry_out(&mut driver.run, command);
        if entries.is_empty() || driver.append(entries, values.to_vec()).await? {
            return refusal.map_or(Ok(()), |refusal| Err(refusal.into()));
        }
    }
}

/// A run that waits for a person. It is not kept in memory and not claimed, so any process can continue it.
#[derive(Clone, Debug)]
pub struct Parked {
    run: RunId,
}

impl Parked {
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// A run that this process drove until it had to wait for a person.
    pub(crate) fn here(run: RunId) -> Self {
        Self { run }
    }

    /// Reloads the run to continue it. If no other process drove it meanwhile, the next commit claims it; otherwise this
    /// process takes it over.
    pub async fn wake(&self, runtime: Runtime, listener: Box<dyn Listener>) -> Result<Driver, DriveError> {
        let woken = self.wake_if(|_| true, runtime, listener).instrument(spans::run(&self.run)).await?;
        Ok(woken.expect("every run is to be woken"))
    }

    /// Like [`Parked::wake`], for a background run; `None` if it no longer wants a driver.
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
        // An interrupted driver recorded that nothing starts until the run is taken over.
        if fresh.run.driver == *runtime.store.driver() && !fresh.run.stopping {
            debug!("continued without a takeover; the next commit claims it");
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

/// Whether a detached run can continue. A person may have cancelled it or taken it over since it was claimed.
fn wants_driver(run: &Run) -> bool {
    run.detached && run.status() == Status::Running
}

/// A run that this process has claimed but not loaded yet. Dropping it releases the claim.
pub struct ClaimedRun {
    claim: Claim,
}

impl ClaimedRun {
    /// Claims up to `limit` background runs that can continue, have no live driver and satisfy the filter.
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

    pub fn run(&self) -> &RunId {
        self.claim.run()
    }

    /// Loads the run to drive it; `None` if it no longer wants a driver. A run that is `parked` in this process continues
    /// without a takeover, unless another process drove it meanwhile.
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
            debug!("the run no longer wants a driver");
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
    /// Records that this driver takes over the run; if that fails, releases the claim.
    pub(super) async fn take_over(&mut self, caller: Caller, command: CommandKind) -> Result<(), DriveError> {
        let taken = self.submit(caller, command).await;
        if taken.is_err() {
            self.stop_before_lease_ends().await;
            self.release().await;
        }
        taken
    }

    /// Releases a run that waits for a person, has ended or was interrupted.
    pub async fn park(mut self) -> Parked {
        self.release().await;
        Parked { run: self.run.id }
    }
}
