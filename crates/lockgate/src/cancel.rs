//! Cancelling runs.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::{Caller, CommandKind};
use lockgate_engine::run::{Refusal, Status};
use lockgate_runner::driver::{DriveError, submit};
use lockgate_runner::load::load;
use lockgate_runner::snapshot::write_due;

impl Project {
    /// Cancels a run and ends its remaining processes. Returns `false` if the run had been cancelled before.
    pub async fn cancel(&self, run: &RunId, reason: Option<String>, caller: Caller) -> Result<bool, Error> {
        let cancelled = submit(&self.runtime, run, caller.clone(), CommandKind::Cancel { reason }).await;
        let recorded = match cancelled {
            Ok(_) => Ok(true),
            Err(DriveError::Refused(Refusal::Ended { status: Status::Cancelled })) => Ok(false),
            Err(DriveError::Refused(Refusal::Ended { status })) => {
                let message = format!("run {run} is already {status} and cannot be cancelled");
                Err(Error::new(Code::RunEnded, message).help(format!("see what it did with `lockgate log {run}`")))
            }
            Err(error) => return Err(self.failed(&caller, run, "cancel a run", error).await),
        };
        kill_orphans(self, run).await?;
        write_snapshots(self, run).await;
        recorded
    }
}

/// Ends the processes that a killed driver left behind. A live driver ends its own.
async fn kill_orphans(project: &Project, run: &RunId) -> Result<(), Error> {
    if project.store().driver_of(run).await?.is_some() {
        return Ok(());
    }
    let state = load(project.store(), run).await.map_err(DriveError::from)?;
    let ended = project.runtime.perform.end_orphans(&state).await;
    ended.map_err(|detail| DriveError::Orphans { run: run.clone(), detail }.into())
}

/// Writes the snapshot of the end, so that a recovery from files knows of it. A live driver writes its own.
async fn write_snapshots(project: &Project, run: &RunId) {
    let written = async {
        if project.store().driver_of(run).await?.is_some() {
            return Ok(());
        }
        let state = load(project.store(), run).await?;
        match project.runtime.perform.snapshots(&state)? {
            Some(options) => Ok(write_due(&project.runtime.store, run, options).await?),
            None => Ok(()),
        }
    };
    let written: Result<(), Error> = written.await;
    if let Err(error) = written {
        tracing::warn!(%run, %error, "the snapshot of a cancelled run is not written");
    }
}
