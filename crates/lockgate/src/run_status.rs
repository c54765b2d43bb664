//! The status of a run, whichever process drives it, and waiting for it to change.

use crate::code::Code;
use crate::error::Error;
use crate::view::RunStatus;
use lockgate_engine::id::RunId;
use lockgate_engine::run::{Run, Status};
use lockgate_runner::load::load;
use lockgate_store::{DriverInfo, Store, StoreError};

/// The status of a run now.
pub async fn run_status(store: &dyn Store, run: &RunId) -> Result<RunStatus, Error> {
    let first = listed(store, run).await?;
    if !first.is_interrupted() {
        return Ok(first);
    }
    // A driver that ended between the two looks at it, one at its row and one at its driver, has recorded how before.
    listed(store, run).await
}

/// A run and the living process that drives it.
pub async fn with_driver(store: &dyn Store, run: &RunId) -> Result<(Run, Option<DriverInfo>), Error> {
    let (state, driver) = (load(store, run).await?, store.driver_of(run).await?);
    if driver.is_some() || state.status() != Status::Running {
        return Ok((state, driver));
    }
    // As above: it may have ended meanwhile.
    Ok((load(store, run).await?, store.driver_of(run).await?))
}

async fn listed(store: &dyn Store, run: &RunId) -> Result<RunStatus, Error> {
    let found = store.find_runs(run.as_str()).await?;
    let found = found.into_iter().find(|found| found.row.run == *run).ok_or_else(|| StoreError::NoRun(run.clone()))?;
    match RunStatus::of_row(&found.row.status, found.driven) {
        RunStatus::Unknown => {
            Err(Error::new(Code::NewerFormat, format!("run {run} has a status that this release does not know")))
        }
        status => Ok(status),
    }
}

/// The moments at which something of a run may have changed.
pub struct Changes<'s> {
    store: &'s dyn Store,
    run: &'s RunId,
    marker: u64,
}

impl<'s> Changes<'s> {
    /// Those from now on; to be made before the first look, so that nothing is missed between.
    pub fn of(store: &'s dyn Store, run: &'s RunId) -> Self {
        Self { store, run, marker: store.changes_of(run) }
    }

    /// Ends when another process may have committed something to the run, or its driver may have died: the store's feed reports both.
    pub async fn next(&mut self) -> Result<(), Error> {
        self.marker = self.store.run_changed(self.run, self.marker, None).await?;
        Ok(())
    }
}
