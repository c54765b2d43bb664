//! Runs that are left to whichever process drives in the background: beginning them, handing them over, and letting them rest.

use super::claim::Claim;
use super::{DriveError, Driver, Listener, append_first, carry_out, sent_from_outside};
use crate::load::load_fresh;
use crate::projection::bring_up;
use crate::start::Prepared;
use crate::world::World;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::{AnswerChange, Caller, Command};
use lockgate_engine::run::{Fork, ForkAs, Run, create, fork};

/// Begins a run without driving it: nothing of it starts before a process in the background takes it.
pub async fn begin_detached(world: &World, caller: Caller, prepared: Prepared) -> Result<Run, DriveError> {
    let mut prepared = prepared;
    prepared.create.created.detached = true;
    begin_resting(world, caller, prepared).await
}

/// Begins a run without driving it: nothing of it starts before somebody resumes it.
pub async fn begin_resting(world: &World, caller: Caller, prepared: Prepared) -> Result<Run, DriveError> {
    let Prepared { create: body, workflow, values } = prepared;
    let (mut run, entries) = create(&sent_from_outside(world, caller), &body, workflow)?;
    append_first(world, &mut run, entries, values, None).await?;
    let _ = bring_up(world, &run).await;
    Ok(run)
}

/// Begins a run that goes on from a complete one with a changed answer, and leaves it there: whoever resumes it drives it.
pub async fn fork_with(
    world: &World,
    parent: &Run,
    own: ForkAs,
    caller: Caller,
    change: &AnswerChange,
) -> Result<Run, DriveError> {
    let Fork { mut run, entries, state } = fork(&sent_from_outside(world, caller), change, parent, own)?;
    append_first(world, &mut run, entries, vec![state], None).await?;
    Ok(run)
}

/// Leaves a run that nobody drives to whichever process drives in the background; what failed is to be tried again.
/// The claim on it ends with this process, at the latest.
pub async fn detach(world: &World, run: &RunId, caller: Caller) -> Result<Run, DriveError> {
    let (mut driver, kind) = Driver::claim(world.clone(), run, None, true, Box::new(())).await?;
    let command = Command { envelope: sent_from_outside(world, caller), kind };
    // Recorded and no more: nothing may follow from it here.
    loop {
        let (entries, refusal) = carry_out(&mut driver.run, &command);
        if entries.is_empty() || driver.append(entries, Vec::new()).await? {
            return refusal.map_or(Ok(driver.run), |refusal| Err(refusal.into()));
        }
    }
}

/// A run that rests: it waits for a person, and nothing of it is kept but the claim on it.
#[derive(Clone, Debug)]
pub struct Parked {
    run: RunId,
    epoch: u64,
    term: u64,
}

impl Parked {
    /// Which run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Reads the run again, to go on with it.
    pub async fn wake(&self, world: World, listener: Box<dyn Listener>) -> Result<Driver, DriveError> {
        let seen = world.store.changes_of(&self.run);
        let fresh = load_fresh(&*world.store, &self.run).await?;
        let claim = Claim::new(&world.store, &self.run, self.epoch, self.term);
        let driver = Driver::new(world, fresh, seen, claim, true, listener);
        driver.refuse_takeover()?;
        Ok(driver)
    }
}

impl Driver {
    /// Takes over a detached run, which stays one.
    pub async fn resume_detached(world: World, run: &RunId, listener: Box<dyn Listener>) -> Result<Self, DriveError> {
        let (mut driver, body) = Self::claim(world, run, None, true, listener).await?;
        driver.submit(Caller::driver(), body).await?;
        Ok(driver)
    }

    /// Lets a run rest that waits for a person, or has ended.
    pub fn park(self) -> Parked {
        Parked { run: self.run.id, epoch: self.claim.epoch, term: self.claim.term() }
    }
}
