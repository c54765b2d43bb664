//! Who may decide. Every function of this library that decides something asks here first, so that no front end can leave it out.
//!
//! A refused attempt is recorded in the history of the run that it is about; else in that of the run whose task it came out of.

use crate::error::Error;
use crate::project::Project;
use lockgate_engine::id::{HoldId, RunId};
use lockgate_engine::run::Refusal;
use lockgate_engine::run::command::{Actor, Caller};
use lockgate_engine::run::event::RefusedAttempt;
use lockgate_engine::run::state::REFUSED_ATTEMPTS_KEPT;
use lockgate_runner::driver::DriveError;
use lockgate_runner::refused_attempts::{self, RefusalRecord};

/// Names the run whose task a process runs inside of; Lockgate sets it for everything that it starts.
const RUN_VARIABLE: &str = "LOCKGATE_RUN";

impl Project {
    /// Whether a caller may decide about a run; `what` completes "may not …". A refused attempt becomes an event of that run.
    pub async fn may_decide(&self, caller: &Caller, run: &RunId, what: &str) -> Result<(), Error> {
        match caller.may_decide(what) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(self.refuse(caller.actor(), run, what, None, refusal).await),
        }
    }

    /// Whether a caller may decide about the project as a whole.
    pub async fn may_decide_about_project(&self, caller: &Caller, what: &str) -> Result<(), Error> {
        match caller.may_decide(what) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(self.refuse_about_project(caller.actor(), what, refusal).await),
        }
    }

    /// Whether a caller is outside of tasks, for what needs no person but is not for tasks either.
    pub async fn must_be_outside_tasks(&self, caller: &Caller, what: &str) -> Result<(), Error> {
        match caller.outside_tasks(what) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(self.refuse_about_project(caller.actor(), what, refusal).await),
        }
    }

    /// A refusal as an error. An attempt by a caller who may not decide is recorded in the history of the run; other refusals are not.
    pub async fn refuse(&self, actor: &Actor, run: &RunId, what: &str, hold: Option<&HoldId>, refusal: Refusal) -> Error {
        if !refusal.concerns_caller() {
            return refusal.into();
        }
        let attempt = RefusedAttempt::new(what, hold.cloned(), refusal.to_string());
        let error = Error::from(refusal);
        match refused_attempts::record(&self.runtime, &self.root, run, actor.clone(), attempt).await {
            Ok(RefusalRecord::AsEvent(_)) => error.help(format!("this attempt is recorded in the history of run {run}")),
            Ok(RefusalRecord::Counted(number)) => error.help(format!(
                "this is refused attempt {number} on run {run}: it is counted; after {REFUSED_ATTEMPTS_KEPT} attempts the history records one at each doubling"
            )),
            Ok(RefusalRecord::NotCounted) => error.help(format!(
                "this attempt is not recorded: the history of run {run} has {REFUSED_ATTEMPTS_KEPT} already, and this project has no folder of the run to count more in"
            )),
            Err(why) => error.help(format!("this attempt could not be recorded in the history: {why}")),
        }
    }

    /// The same where an attempt is about no run that exists: it is recorded in the run whose task it came out of, if any.
    pub async fn refuse_about_project(&self, actor: &Actor, what: &str, refusal: Refusal) -> Error {
        match self.outer_run().await {
            Some(run) => self.refuse(actor, &run, what, None, refusal).await,
            None => refusal.into(),
        }
    }

    /// Why a command about a run failed. Refusals because of who sent it are recorded in the run.
    pub(crate) async fn failed(&self, caller: &Caller, run: &RunId, what: &str, error: DriveError) -> Error {
        match error {
            DriveError::Refused(refusal) if refusal.concerns_caller() => {
                self.refuse(caller.actor(), run, what, None, refusal).await
            }
            DriveError::Refused(refusal) => Error::refused_in(run, refusal),
            error => error.into(),
        }
    }

    /// The run whose task this process runs inside of, where it is one of this project.
    async fn outer_run(&self) -> Option<RunId> {
        let run = RunId::new(std::env::var(RUN_VARIABLE).ok()?);
        self.store().load(&run).await.ok().flatten().map(|_| run)
    }
}
