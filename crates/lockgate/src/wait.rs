//! Waiting for runs, whichever process drives them.

use crate::error::Error;
use crate::project::Project;
use crate::run_status::{Changes, run_status};
use crate::view::RunStatus;
use lockgate_engine::hold::HoldState;
use lockgate_engine::id::RunId;
use lockgate_engine::run::index::HoldRow;
use lockgate_runner::load::load;
use lockgate_store::{DriverInfo, HoldFilter, Page};
use std::time::Duration;
use tokio::time::Instant;

/// How long a run that is left to workers may lack one before it counts as interrupted: between an answer and the worker that continues
/// the run, no process drives it.
const HANDOVER: Duration = Duration::from_secs(2);

impl Project {
    /// Waits until a run has ended, waits for a person, or is interrupted because no process drives it.
    pub async fn wait(&self, run: &RunId) -> Result<RunStatus, Error> {
        let mut changes = Changes::of(self.store(), run);
        loop {
            let status = run_status(self.store(), run).await?;
            if status.has_ended() || status.is_waiting() {
                return Ok(status);
            }
            if status.is_interrupted() {
                if !load(self.store(), run).await?.detached {
                    return Ok(status);
                }
                match tokio::time::timeout(HANDOVER, changes.next()).await {
                    Ok(changed) => changed?,
                    Err(_) => return Ok(status),
                }
            } else {
                changes.next().await?;
            }
        }
    }

    /// Waits until the process that drives a run has continued from what was recorded at this version, or no process drives it any more:
    /// a driver that is about to end does not see what was recorded, and once it is gone the run can continue elsewhere. Gives the
    /// process that drives it.
    pub async fn until_driver_saw(&self, run: &RunId, version: u64) -> Result<Option<DriverInfo>, Error> {
        let deadline = Instant::now() + HANDOVER;
        let mut changes = Changes::of(self.store(), run);
        loop {
            let driver = self.store().driver_of(run).await?;
            // Whatever a driver commits, it has read what was recorded before.
            if driver.is_none() || !self.store().commits(run, version, 1).await?.is_empty() {
                return Ok(driver);
            }
            match tokio::time::timeout_at(deadline, changes.next()).await {
                Ok(changed) => changed?,
                Err(_) => return Ok(driver),
            }
        }
    }

    /// Waits until a run asks a person something, and gives the oldest hold that is open; nothing when the run ends or is interrupted
    /// first.
    pub async fn next_hold(&self, run: &RunId) -> Result<Option<HoldRow>, Error> {
        let mut changes = Changes::of(self.store(), run);
        loop {
            let holds = self.store().holds(HoldFilter::OfRun(run.clone()), Page::ALL).await?;
            if let Some(open) = holds.into_iter().find(|hold| hold.row.state == HoldState::Open) {
                return Ok(Some(open.row));
            }
            // A run that waits without an open hold checks an answer, or waits for a review.
            let status = tokio::select! {
                status = self.wait(run) => status?,
                changed = changes.next() => {
                    changed?;
                    continue;
                }
            };
            if !status.is_waiting() {
                return Ok(None);
            }
            changes.next().await?;
        }
    }
}
