//! Continuing a run from a snapshot: going back to it, or recovering the run if its history is lost.

use super::background::record_only;
use super::submit::try_refresh_files;
use super::{DriveError, Driver, append_first, external_envelope};
use crate::load::LoadError;
use crate::runtime::Runtime;
use crate::spans;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{RunId, SnapshotId};
use lockgate_engine::run::command::{Caller, Command, CommandKind, Rewind};
use lockgate_engine::run::{Recovered, Refusal, Run, recover};
use lockgate_store::Store;
use std::collections::BTreeSet;
use tracing::{Instrument, info};

/// The state of a run in a snapshot, with its definition attached.
#[derive(Clone, Debug)]
pub struct SnapshotState {
    pub snapshot: SnapshotId,
    /// The number of the snapshot's last event.
    pub seq: u64,
    pub state: Run,
}

/// Lets a run continue from an earlier snapshot of it. The run must have no live driver, and is not driven until someone resumes
/// it.
pub async fn rewind(runtime: &Runtime, run: &RunId, caller: Caller, to: SnapshotState) -> Result<Run, DriveError> {
    caller.may_decide("resume from an earlier snapshot")?;
    let rewound = async {
        // The claim ensures that nothing of the run is running, also nothing that a previous driver left behind.
        let (mut driver, _) = Driver::claim(runtime.clone(), run, None, false, Box::new(())).await?;
        let recorded = record_rewind(&mut driver, caller, to).await;
        driver.release().await;
        recorded?;
        try_refresh_files(runtime, &driver.run).await;
        Ok(driver.run)
    };
    rewound.instrument(spans::run(run)).await
}

async fn record_rewind(driver: &mut Driver, caller: Caller, to: SnapshotState) -> Result<(), DriveError> {
    check_history(&*driver.runtime.store, &driver.run, &to).await?;
    let snapshot = to.snapshot.clone();
    let (rewind, value) = Rewind::new(to.snapshot, to.seq, to.state);
    let command = Command { envelope: external_envelope(&driver.runtime, caller), kind: CommandKind::Rewind(rewind) };
    record_only(driver, &command, &[value]).await?;
    info!(%snapshot, version = driver.run.version, "rewound");
    Ok(())
}

/// Refuses a snapshot whose last commit this history does not contain.
async fn check_history(store: &dyn Store, run: &Run, to: &SnapshotState) -> Result<(), DriveError> {
    let base = &to.state;
    // The commits of a lost history cannot be compared.
    if base.id != run.id || base.recovered != run.recovered {
        return Ok(());
    }
    let Some(before) = base.version.checked_sub(1) else { return Ok(()) };
    let commits = store.commits(&run.id, before, 1).await?;
    match commits.first().is_some_and(|commit| commit.hash == base.head) {
        true => Ok(()),
        false => Err(Refusal::SnapshotOfOtherHistory { snapshot: to.snapshot.clone() }.into()),
    }
}

/// Recovers a run whose history is lost. `values` are the stored values that the snapshot came with; those that the state refers
/// to must be among them or in the store. The run is not driven until someone resumes it.
pub async fn recover_with(
    runtime: &Runtime,
    caller: Caller,
    from: SnapshotState,
    values: Vec<(Digest, Vec<u8>)>,
) -> Result<Run, DriveError> {
    let (store, id) = (&runtime.store, from.state.id.clone());
    if store.load(&id).await?.is_some() {
        return Err(DriveError::RunExists(id));
    }
    let (envelope, driver) = (external_envelope(runtime, caller), store.driver().clone());
    let Recovered { mut run, entries, state } = recover(&envelope, &from.state, from.snapshot.clone(), from.seq, driver)?;
    let values = needed_values(&**store, &from.state, values).await?;
    append_first(runtime, &mut run, entries, values.into_iter().chain([state]).collect(), None).await?;
    spans::run(&id).in_scope(|| info!(snapshot = %from.snapshot, "recovered"));
    try_refresh_files(runtime, &run).instrument(spans::run(&id)).await;
    Ok(run)
}

/// The given values that the state refers to. Refuses to go on without one that is neither given nor stored.
async fn needed_values(
    store: &dyn Store,
    state: &Run,
    values: Vec<(Digest, Vec<u8>)>,
) -> Result<Vec<(Digest, Vec<u8>)>, DriveError> {
    let needed: BTreeSet<Digest> = state.referenced_values().into_iter().collect();
    let given: Vec<(Digest, Vec<u8>)> = values.into_iter().filter(|(digest, _)| needed.contains(digest)).collect();
    let elsewhere: Vec<Digest> = needed.into_iter().filter(|digest| !given.iter().any(|(known, _)| known == digest)).collect();
    let found: Vec<Option<Vec<u8>>> = store.values(&elsewhere).await?;
    match elsewhere.into_iter().zip(found).find(|(_, bytes)| bytes.is_none()) {
        Some((digest, _)) => Err(LoadError::StoredValueMissing { run: state.id.clone(), digest }.into()),
        None => Ok(given),
    }
}
