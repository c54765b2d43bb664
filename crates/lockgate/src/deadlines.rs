//! Firing deadlines and reminders of holds, even if no process drives the run.

use crate::error::Error;
use crate::project::Project;
use lockgate_engine::run::Status;
use lockgate_engine::run::command::Caller;
use lockgate_runner::driver::{Fired, HoldTimer, fire_due};
use serde::Serialize;

/// A fired deadline or reminder, as JSON.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]
pub struct FiredView {
    pub run: String,
    pub hold: String,
    pub kind: HoldTimer,
    /// The status of the run afterwards.
    pub status: Status,
}

impl FiredView {
    /// Creates the view.
    pub fn of(fired: &Fired) -> Self {
        let status = fired.now.status();
        Self { run: fired.run.to_string(), hold: fired.hold.clone(), kind: fired.kind, status }
    }
}

impl Project {
    /// Fires all deadlines and reminders that are due. The caller must not be inside a task, because a task could start this
    /// process with a manipulated clock.
    pub async fn fire_due(&self, caller: &Caller) -> Result<Vec<Fired>, Error> {
        self.must_be_outside_tasks(caller, "fire deadlines").await?;
        Ok(fire_due(&self.runtime, |run| self.root.run_dir(run).is_dir()).await?)
    }
}
