//! Lists: all runs, and all holds that wait for a person.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use crate::error::Error;
use crate::project::Project;
use crate::select;
use crate::view::{HoldView, RunStatus};
use lockgate_engine::id::RunId;
use lockgate_engine::run::event::RunKind;
use lockgate_engine::run::index::OpenEnum;
use lockgate_engine::time::Timestamp;
use lockgate_runner::load::load;
use lockgate_store::{Cursor, HoldFilter, ListedHold, ListedRun, Page};
use serde::Serialize;

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<T> {
    /// Its lines.
    pub lines: Vec<T>,
    /// Whether there are more behind them.
    pub more: bool,
}

impl<T> Part<T> {
    fn cut<R>(mut read: Vec<R>, limit: usize, line: impl Fn(R) -> T) -> Self {
        let more = read.len() > limit;
        read.truncate(limit);
        Self { lines: read.into_iter().map(line).collect(), more }
    }
}

/// One more than is shown is read, so that it is known whether there are more.
fn page(limit: usize, after: Option<Cursor>) -> Page {
    Page { after, limit: limit.saturating_add(1) }
}

/// A run in a list.
#[derive(Clone, Debug, Serialize)]
pub struct RunLine {
    pub run: RunId,
    pub kind: OpenEnum<RunKind>,
    pub workflow: String,
    pub feature: Option<String>,
    pub status: RunStatus,
    pub phase: Option<String>,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
}

impl RunLine {
    fn of(listed: ListedRun) -> Self {
        let row = listed.row;
        Self {
            status: RunStatus::of_row(&row.status, listed.driven),
            run: row.run,
            kind: row.kind,
            workflow: row.workflow,
            feature: row.feature,
            phase: row.phase,
            created_at: row.created_at,
            changed_at: row.changed_at,
        }
    }
}

/// A hold with the run that it belongs to.
#[derive(Clone, Debug, Serialize)]
pub struct HoldLine {
    pub run: RunId,
    pub workflow: String,
    pub feature: Option<String>,
    #[serde(flatten)]
    pub hold: HoldView,
}

impl HoldLine {
    fn of(listed: ListedHold) -> Self {
        let run = listed.row.run.clone();
        Self { run, workflow: listed.workflow, feature: listed.feature, hold: HoldView::listed(listed.row) }
    }
}

impl Project {
    /// All runs, newest first: at most so many, after the run that the part before ended with.
    pub async fn runs(&self, limit: usize, after: Option<&str>) -> Result<Part<RunLine>, Error> {
        let after = match after {
            Some(run) => Some(select::run_or_ended(self.store(), run).await?.cursor),
            None => None,
        };
        let listed = self.store().runs(page(limit, after)).await?;
        Ok(Part::cut(listed, limit, RunLine::of))
    }

    /// All holds that wait for a person, the oldest first: at most so many, after the hold that the part before ended with.
    pub async fn inbox(&self, limit: usize, after: Option<&str>) -> Result<Part<HoldLine>, Error> {
        let after = match after {
            Some(hold) => Some(select::hold(self.store(), &select::hold_name(hold)?).await?.cursor),
            None => None,
        };
        let listed = self.store().holds(HoldFilter::Open, page(limit, after)).await?;
        Ok(Part::cut(listed, limit, HoldLine::of))
    }

    /// Whether a run continues by itself once its holds are answered: a process drives it, or it was left to workers.
    pub async fn continues_by_itself(&self, run: &RunId) -> Result<bool, Error> {
        Ok(self.store().driver_of(run).await?.is_some() || load(self.store(), run).await?.detached)
    }
}
