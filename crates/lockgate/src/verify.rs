//! Verifying the integrity of the store.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use crate::error::Error;
use crate::project::Project;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Caller;
use lockgate_runner::verify::{verify_all, verify_one};
use lockgate_store::{Finding, SqliteStore};
use serde::Serialize;

/// The result of a verification, as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict<'f> {
    /// The verified run; absent if all runs were verified.
    pub run: Option<&'f RunId>,
    pub intact: bool,
    pub findings: Vec<FindingView<'f>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FindingView<'f> {
    pub run: Option<&'f RunId>,
    pub location: &'f str,
    pub problem: &'f str,
}

impl<'f> Verdict<'f> {
    /// Creates the view of a verification of one run, or of all.
    pub fn of(run: Option<&'f RunId>, findings: &'f [Finding]) -> Self {
        let view =
            |finding: &'f Finding| FindingView { run: finding.run.as_ref(), location: &finding.location, problem: &finding.problem };
        Self { run, intact: findings.is_empty(), findings: findings.iter().map(view).collect() }
    }
}

impl Project {
    /// Verifies the hash chain, stored values, materialized states and lists, of one run or of all.
    pub async fn verify(&self, run: Option<&RunId>) -> Result<Vec<Finding>, Error> {
        Ok(match run {
            None => verify_all(self.store()).await?,
            Some(run) => verify_one(self.store(), run).await?.unwrap_or_default(),
        })
    }

    /// Accepts that recorded commits are missing, so that the runs can continue without them.
    pub fn accept_missing(&self, caller: &Caller) -> Result<(), Error> {
        // A store with missing commits cannot record a refused attempt.
        caller.may_decide("accept that commits are missing")?;
        if !self.is_on_a_server() {
            SqliteStore::accept_missing(&self.root.state_dir())?;
        }
        Ok(())
    }
}
