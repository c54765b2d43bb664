//! Lists of runs and of open holds.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use crate::error::Error;
use crate::project::Project;
use crate::select;
use crate::view::{HoldView, RunStatus};
use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::run::event::RunKind;
use lockgate_engine::run::index::{NamedVariants as _, OpenEnum};
use lockgate_engine::time::Timestamp;
use lockgate_runner::load::load;
use lockgate_store::{Cursor, HoldFilter, ListedHold, ListedRun, Page, RunFilter};
use serde::Serialize;

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<T> {
    /// The entries.
    pub lines: Vec<T>,
    /// Whether the list continues after this page.
    pub more: bool,
}

impl<T> Part<T> {
    fn cut<R>(mut read: Vec<R>, limit: usize, line: impl Fn(R) -> T) -> Self {
        let more = read.len() > limit;
        read.truncate(limit);
        Self { lines: read.into_iter().map(line).collect(), more }
    }
}

/// Reads one entry more than is shown, to learn whether the list continues.
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

/// An open hold and its run.
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

/// Whether a stored status can be displayed as one of these.
fn is_among(status: Status, statuses: &[RunStatus]) -> bool {
    !statuses.is_empty() && [true, false].into_iter().any(|driven| statuses.contains(&RunStatus::of(status, driven)))
}

impl Project {
    /// Lists runs, newest first: at most `limit`, after the run that ended the previous page.
    pub async fn runs(&self, limit: usize, after: Option<&str>) -> Result<Part<RunLine>, Error> {
        self.runs_with_status(&[], limit, after).await
    }

    /// The same for runs with one of these displayed statuses; with any status if none is given.
    pub async fn runs_with_status(
        &self,
        statuses: &[RunStatus],
        limit: usize,
        after: Option<&str>,
    ) -> Result<Part<RunLine>, Error> {
        let mut after = match after {
            Some(run) => Some(select::run_or_ended(self.store(), run).await?.cursor),
            None => None,
        };
        let filter = RunFilter::with_status(Status::ALL.iter().copied().filter(|status| is_among(*status, statuses)));
        let mut listed: Vec<ListedRun> = Vec::new();
        // The store does not tell running from interrupted ones, so a page of it may hold fewer runs than are wanted.
        while listed.len() <= limit {
            let read = self.store().list_runs(filter.clone(), page(limit, after)).await?;
            let is_last = read.len() <= limit;
            after = read.last().map(|last| last.cursor);
            let is_wanted =
                |run: &ListedRun| statuses.is_empty() || statuses.contains(&RunStatus::of_row(&run.row.status, run.driven));
            listed.extend(read.into_iter().filter(is_wanted));
            if is_last {
                break;
            }
        }
        Ok(Part::cut(listed, limit, RunLine::of))
    }

    /// Lists open holds, oldest first: at most `limit`, after the hold that ended the previous page.
    pub async fn inbox(&self, limit: usize, after: Option<&str>) -> Result<Part<HoldLine>, Error> {
        let after = match after {
            Some(hold) => Some(select::hold(self.store(), &select::hold_name(hold)?).await?.cursor),
            None => None,
        };
        let listed = self.store().holds(HoldFilter::Open, page(limit, after)).await?;
        Ok(Part::cut(listed, limit, HoldLine::of))
    }

    /// Whether a run continues without further commands once its holds are answered, because a process drives it or it is
    /// detached.
    pub async fn continues_by_itself(&self, run: &RunId) -> Result<bool, Error> {
        Ok(self.store().driver_of(run).await?.is_some() || load(self.store(), run).await?.detached)
    }
}
