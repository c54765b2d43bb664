//! The status of a run, regardless of which process drives it, and waiting for changes.

use crate::code::Code;
use crate::error::Error;
use crate::view::RunStatus;
use lockgate_engine::id::RunId;
use lockgate_engine::run::{Run, Status};
use lockgate_runner::load::load;
use lockgate_store::{DriverInfo, Store, StoreError};

/// Reads the current status of a run.
pub async fn run_status(store: &dyn Store, run: &RunId) -> Result<RunStatus, Error> {
    let first = listed(store, run).await?;
    if !first.is_interrupted() {
        return Ok(first);
    }
    // If the driver exited between the two reads, it recorded the final status before, so read again.
    listed(store, run).await
}

/// Loads a run and its live driver.
pub async fn with_driver(store: &dyn Store, run: &RunId) -> Result<(Run, Option<DriverInfo>), Error> {
    let (state, driver) = (load(store, run).await?, store.driver_of(run).await?);
    if driver.is_some() || state.status() != Status::Running {
        return Ok((state, driver));
    }
    // The driver may have exited in the meantime, so read both again.
    Ok((load(store, run).await?, store.driver_of(run).await?))
}

async fn listed(store: &dyn Store, run: &RunId) -> Result<RunStatus, Error> {
    let found = store.find_runs(run.as_str()).await?;
    let found = found.into_iter().find(|found| found.row.run == *run).ok_or_else(|| StoreError::NoRun(run.clone()))?;
    match RunStatus::of_row(&found.row.status, found.driven) {
        RunStatus::Unknown => {
            Err(Error::new(Code::NewerFormat, format!("run {run} has a status that this version of Lockgate does not know")))
        }
        status => Ok(status),
    }
}

/// Signals when a run may have changed.
pub struct Changes<'s> {
    store: &'s dyn Store,
    run: &'s RunId,
    marker: u64,
}

impl<'s> Changes<'s> {
    /// Subscribes to changes. Do this before reading the run, so that no change is missed.
    pub fn of(store: &'s dyn Store, run: &'s RunId) -> Self {
        Self { store, run, marker: store.changes_of(run) }
    }

    /// Returns when a process may have committed to the run or its driver may have died. The change feed of the store reports
    /// both.
    pub async fn next(&mut self) -> Result<(), Error> {
        self.marker = self.store.run_changed(self.run, self.marker, None).await?;
        Ok(())
    }
}
