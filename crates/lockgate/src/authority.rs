//! Checks who may decide. Every deciding function of this library calls these checks itself, so that no front end can omit them.
//!
//! A refused attempt is recorded in the history of the run that it concerns. If it concerns no run, it is recorded in the run
//! whose task it came from.

use crate::error::Error;
use crate::project::Project;
use lockgate_engine::id::{HoldId, RunId};
use lockgate_engine::run::Refusal;
use lockgate_engine::run::command::{Actor, Caller};
use lockgate_engine::run::event::RefusedAttempt;
use lockgate_engine::run::state::REFUSED_ATTEMPTS_KEPT;
use lockgate_runner::driver::DriveError;
use lockgate_runner::refused_attempts::{self, RefusalRecord};

/// The environment variable that names the run of the task that a process belongs to. Lockgate sets it for every process it
/// starts.
const RUN_VARIABLE: &str = "LOCKGATE_RUN";

impl Project {
    /// Checks whether the caller may decide about a run. `what` completes the phrase "may not …". A refused attempt is recorded
    /// in the run.
    pub async fn may_decide(&self, caller: &Caller, run: &RunId, what: &str) -> Result<(), Error> {
        match caller.may_decide(what) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(self.refuse(caller.actor(), run, what, None, refusal).await),
        }
    }

    /// Checks whether the caller may decide about the project as a whole.
    pub async fn may_decide_about_project(&self, caller: &Caller, what: &str) -> Result<(), Error> {
        match caller.may_decide(what) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(self.refuse_about_project(caller.actor(), what, refusal).await),
        }
    }

    /// Checks that the caller is not inside a task, for actions that do not require a person.
    pub async fn must_be_outside_tasks(&self, caller: &Caller, what: &str) -> Result<(), Error> {
        match caller.outside_tasks(what) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(self.refuse_about_project(caller.actor(), what, refusal).await),
        }
    }

    /// Converts a refusal to an error. The attempt is recorded in the run only if it was refused because of the caller.
    pub async fn refuse(&self, actor: &Actor, run: &RunId, what: &str, hold: Option<&HoldId>, refusal: Refusal) -> Error {
        if !refusal.concerns_caller() {
            return refusal.into();
        }
        let attempt = RefusedAttempt::new(what, hold.cloned(), refusal.to_string());
        let error = Error::from(refusal);
        match refused_attempts::record(&self.runtime, &self.root, run, actor.clone(), attempt).await {
            Ok(RefusalRecord::AsEvent(_)) => error.help(format!("this attempt is recorded in the history of run {run}")),
            Ok(RefusalRecord::Counted(number)) => error.help(format!(
                "this is refused attempt {number} on run {run}; beyond {REFUSED_ATTEMPTS_KEPT} attempts, the history records only each doubling of the count"
            )),
            Ok(RefusalRecord::NotCounted) => error.help(format!(
                "this attempt is not recorded: the history of run {run} already has {REFUSED_ATTEMPTS_KEPT}, and this project has no directory for the run to count more in"
            )),
            Err(why) => error.help(format!("this attempt could not be recorded in the history: {why}")),
        }
    }

    /// Like [`Project::refuse`], for an attempt that concerns no run. It is recorded in the run whose task it came from, if any.
    pub async fn refuse_about_project(&self, actor: &Actor, what: &str, refusal: Refusal) -> Error {
        match self.outer_run().await {
            Some(run) => self.refuse(actor, &run, what, None, refusal).await,
            None => refusal.into(),
        }
    }

    /// Converts the error of a command about a run. A refusal because of the caller is recorded in the run.
    pub(crate) async fn failed(&self, caller: &Caller, run: &RunId, what: &str, error: DriveError) -> Error {
        match error {
            DriveError::Refused(refusal) if refusal.concerns_caller() => {
                self.refuse(caller.actor(), run, what, None, refusal).await
            }
            DriveError::Refused(refusal) => Error::refused_in(run, refusal),
            error => error.into(),
        }
    }

    /// The run whose task this process belongs to, if that run is in this project.
    pub(crate) async fn outer_run(&self) -> Option<RunId> {
        let run = RunId::new(std::env::var(RUN_VARIABLE).ok()?);
        self.store().load(&run).await.ok().flatten().map(|_| run)
    }
}
