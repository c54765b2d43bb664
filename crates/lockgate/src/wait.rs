//! Waiting for runs, regardless of which process drives them.

use crate::error::Error;
use crate::project::Project;
use crate::run_status::{Changes, run_status};
use crate::view::RunStatus;
use lockgate_engine::hold::HoldState;
use lockgate_engine::id::RunId;
use lockgate_engine::run::index::{HoldRow, TimerKind};
use lockgate_engine::time::Timestamp;
use lockgate_runner::load::load;
use lockgate_store::{DriverInfo, HoldFilter, Page};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long a detached run may be without a driver before it counts as interrupted. Between an answer and its pickup by a worker,
/// no process drives the run.
const HANDOVER: Duration = Duration::from_secs(2);

/// How many runs to read first when looking for a driven one.
const FIRST_LISTED: usize = 64;

impl Project {
    /// Waits until a run has ended, waits for a person, or is interrupted because no process drives it. For a detached run, this
    /// also waits while the workers are busy with other runs.
    pub async fn wait(&self, run: &RunId) -> Result<RunStatus, Error> {
        let mut changes = Changes::of(self.store(), run);
        loop {
            let status = run_status(self.store(), run).await?;
            if status.has_ended() || status.is_waiting() {
                return Ok(status);
            }
            if !status.is_interrupted() {
                changes.next().await?;
            } else if self.is_abandoned(run).await? {
                return Ok(status);
            }
        }
    }

    /// Waits until the driver of a run has reacted to the commit with this version, or has exited. A driver that is about to exit
    /// does not see the commit, and the run can then continue elsewhere. Returns the driver, if there is one.
    pub async fn until_driver_saw(&self, run: &RunId, version: u64) -> Result<Option<DriverInfo>, Error> {
        let deadline = Instant::now() + HANDOVER;
        let mut changes = Changes::of(self.store(), run);
        loop {
            let driver = self.store().driver_of(run).await?;
            // A driver reads all earlier commits before it commits.
            if driver.is_none() || !self.store().commits(run, version, 1).await?.is_empty() {
                return Ok(driver);
            }
            match timeout_at(deadline, changes.next()).await {
                Ok(changed) => changed?,
                Err(_) => return Ok(driver),
            }
        }
    }

    /// Whether a run could continue, but no process drives it or is about to. A detached run counts as abandoned only if no
    /// worker claims it within a short time, and no worker drives another run of this project.
    pub async fn is_abandoned(&self, run: &RunId) -> Result<bool, Error> {
        let mut changes = Changes::of(self.store(), run);
        let mut deadline = Instant::now() + HANDOVER;
        loop {
            if !run_status(self.store(), run).await?.is_interrupted() {
                return Ok(false);
            }
            if !load(self.store(), run).await?.detached {
                return Ok(true);
            }
            match timeout_at(deadline, changes.next()).await {
                Ok(changed) => changed?,
                Err(_) if self.workers_are_busy().await? => deadline = Instant::now() + HANDOVER,
                Err(_) => return Ok(true),
            }
        }
    }

    /// Whether a live process drives any detached run of this project.
    async fn workers_are_busy(&self) -> Result<bool, Error> {
        let mut limit = FIRST_LISTED;
        loop {
            // Timers of detached runs come before all others.
            let timers = self.store().timers(Timestamp::from_millis(0), limit).await?;
            let all = timers.len() < limit;
            let undriven: BTreeSet<RunId> = self.store().undriven(limit).await?.into_iter().collect();
            let mut wanted = timers.iter().filter(|timer| timer.kind.is(TimerKind::Drive)).map(|timer| &timer.run);
            let is_busy = wanted.any(|run| !undriven.contains(run) && self.root.run_dir(run).is_dir());
            if all || is_busy {
                return Ok(is_busy);
            }
            limit = limit.saturating_mul(4);
        }
    }

    /// Waits until a run asks a person, and returns its oldest open hold. Returns `None` if the run ends or is interrupted first.
    pub async fn next_hold(&self, run: &RunId) -> Result<Option<HoldRow>, Error> {
        let mut changes = Changes::of(self.store(), run);
        loop {
            let holds = self.store().holds(HoldFilter::OfRun(run.clone()), Page::ALL).await?;
            if let Some(open) = holds.into_iter().find(|hold| hold.row.state == HoldState::Open) {
                return Ok(Some(open.row));
            }
            // A waiting run without an open hold is checking an answer or waiting for a review.
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
