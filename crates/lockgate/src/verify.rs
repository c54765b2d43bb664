//! Checking that nothing was changed or lost in the store.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use crate::error::Error;
use crate::project::Project;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Caller;
use lockgate_runner::verify::{verify_all, verify_one};
use lockgate_store::{Finding, SqliteStore};
use serde::Serialize;

/// What was found, for programs.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict<'f> {
    /// The run that was checked; all where there is none.
    pub run: Option<&'f RunId>,
    pub intact: bool,
    pub findings: Vec<FindingView<'f>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FindingView<'f> {
    pub run: Option<&'f RunId>,
    pub place: &'f str,
    pub problem: &'f str,
}

impl<'f> Verdict<'f> {
    /// What was found in a run, or in all.
    pub fn of(run: Option<&'f RunId>, findings: &'f [Finding]) -> Self {
        let view =
            |finding: &'f Finding| FindingView { run: finding.run.as_ref(), place: &finding.place, problem: &finding.problem };
        Self { run, intact: findings.is_empty(), findings: findings.iter().map(view).collect() }
    }
}

impl Project {
    /// Checks the chain of commits, stored values, materialized states and lists: of one run, or of all.
    pub async fn verify(&self, run: Option<&RunId>) -> Result<Vec<Finding>, Error> {
        Ok(match run {
            None => verify_all(self.store()).await?,
            Some(run) => verify_one(self.store(), run).await?.unwrap_or_default(),
        })
    }

    /// Accepts that commits are missing which were recorded, so that the runs can continue without them.
    pub fn accept_missing(&self, caller: &Caller) -> Result<(), Error> {
        // The store cannot record the attempt as long as it lacks commits.
        caller.may_decide("accept that commits are missing")?;
        if !self.is_on_a_server() {
            SqliteStore::accept_missing(&self.root.state_dir())?;
        }
        Ok(())
    }
}
