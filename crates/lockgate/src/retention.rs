//! Removing finished runs that are older than the settings keep them.

use crate::error::Error;
use crate::project::Project;
use crate::removal::{FINISHED, RemovedRunView, Remover};
use crate::worktrees::git_error;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::time::Timestamp;
use lockgate_runner::config::Retention;
use lockgate_runner::driver::Halt;
use lockgate_runner::load::load;
use lockgate_runner::worktree::{ExistingWorktree, existing};
use lockgate_store::{OutboxFilter, Page, RunFilter, Store};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// How often a worker applies the settings.
const INTERVAL: Duration = Duration::from_secs(3600);

/// How many runs to read per page.
const RUNS: usize = 1000;

/// A finished run, as far as it matters for how long it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedRun {
    /// The run.
    pub run: RunId,
    /// When it last changed.
    pub changed_at: Timestamp,
    /// Whether it stays however old it is: it has unmerged work or undelivered notices, a process drives it, or its files are on another machine.
    pub needed: bool,
}

/// Which finished runs to remove, the oldest first: those that are too old, except the newest that the settings keep.
pub fn plan(retention: &Retention, finished: &[FinishedRun], now: Timestamp) -> Vec<RunId> {
    let Some(age) = retention.finished else { return Vec::new() };
    let mut newest_first: Vec<&FinishedRun> = finished.iter().collect();
    newest_first.sort_by_key(|finished| (Reverse(finished.changed_at), finished.run.clone()));
    let older = newest_first.into_iter().skip(usize::try_from(retention.keep).unwrap_or(usize::MAX)).rev();
    let too_old = older.filter(|finished| !finished.needed && now.since(finished.changed_at) > age);
    too_old.map(|finished| finished.run.clone()).collect()
}

/// Applies the settings of a project.
#[derive(Clone)]
pub(crate) struct RetentionPass {
    remover: Remover,
    retention: Retention,
    /// Whether other machines may share the database. Their runs are left to them: only they know whether worktrees of a run contain work.
    on_a_server: bool,
}

impl Project {
    pub(crate) fn retention_pass(&self) -> RetentionPass {
        let (remover, retention) = (self.remover(), self.config.retention.clone());
        RetentionPass { remover, retention, on_a_server: self.is_on_a_server() }
    }
}

impl RetentionPass {
    /// Which runs are to be removed now.
    pub(crate) async fn plan(&self) -> Result<Vec<RunId>, Error> {
        if self.retention.finished.is_none() {
            return Ok(Vec::new());
        }
        let store = &*self.remover.runtime.store;
        let (undelivered, unmerged) = (with_undelivered_notices(store).await?, self.with_unmerged_work().await?);
        let is_elsewhere = |run: &RunId| self.on_a_server && !self.remover.root.run_dir(run).is_dir();
        let (mut finished, mut complete, mut after) = (Vec::new(), BTreeSet::new(), None);
        loop {
            let page = store.list_runs(RunFilter::with_status(FINISHED), Page { after, limit: RUNS }).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.cursor);
            let is_complete = page.iter().filter(|listed| listed.row.status.is(Status::Complete));
            complete.extend(is_complete.map(|listed| listed.row.run.clone()));
            finished.extend(page.iter().map(|listed| FinishedRun {
                run: listed.row.run.clone(),
                changed_at: listed.row.changed_at,
                needed: listed.driven
                    || is_elsewhere(&listed.row.run)
                    || undelivered.contains(&listed.row.run)
                    || unmerged.contains(&listed.row.run),
            }));
        }
        let mut planned = Vec::new();
        for run in plan(&self.retention, &finished, self.remover.runtime.clock.now()) {
            // A pipeline that was aborted or cancelled can be resumed.
            if complete.contains(&run) || load(store, &run).await.is_ok_and(|state| state.pipeline.is_none()) {
                planned.push(run);
            }
        }
        Ok(planned)
    }

    /// Removes the runs that are to be removed now, until `halt` is triggered. A run that cannot be removed stays until the next time.
    pub(crate) async fn apply(&self, halt: &Halt) -> Result<(Vec<RemovedRunView>, Vec<String>), Error> {
        let (mut removed, mut errors) = (Vec::new(), Vec::new());
        for run in self.plan().await? {
            if halt.is_halted() {
                break;
            }
            match self.remover.remove(&run).await {
                Ok(view) => removed.push(view),
                Err(error) => errors.push(format!("run {run} cannot be removed: {error}")),
            }
        }
        if !removed.is_empty() {
            tracing::info!(runs = removed.len(), "removed finished runs that the settings no longer keep");
        }
        Ok((removed, errors))
    }

    /// Applies the settings periodically until the worker has ended.
    pub(crate) async fn apply_until(&self, ended: &Arc<Notify>, halt: &Halt) {
        while self.retention.finished.is_some() {
            match self.apply(halt).await {
                Ok((_, errors)) => errors.iter().for_each(|error| tracing::warn!("{error}")),
                Err(error) => tracing::warn!(%error, "finished runs cannot be removed now; it is tried again later"),
            }
            tokio::select! {
                () = ended.notified() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    async fn with_unmerged_work(&self) -> Result<BTreeSet<RunId>, Error> {
        let root = self.remover.root.clone();
        let found = tokio::task::spawn_blocking(move || existing(&root, None)).await;
        let found = found.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic())).map_err(git_error)?;
        Ok(found.iter().filter(|existing| existing.has_work()).map(ExistingWorktree::run).collect())
    }
}

async fn with_undelivered_notices(store: &dyn Store) -> Result<BTreeSet<RunId>, Error> {
    let listed = store.outbox(OutboxFilter::Undelivered, usize::MAX).await?;
    Ok(listed.into_iter().map(|entry| entry.row.notice.run).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    const DAY: i64 = 86_400_000;

    fn retention(days: u64, keep: u32) -> Retention {
        Retention { finished: Some(Duration::from_secs(days * 86_400)), keep }
    }

    fn finished(run: &str, days: i64) -> FinishedRun {
        FinishedRun { run: RunId::new(run), changed_at: Timestamp::from_millis(days * DAY), needed: false }
    }

    fn ids(planned: &[RunId]) -> Vec<&str> {
        planned.iter().map(RunId::as_str).collect()
    }

    #[test]
    fn old_runs_are_removed_except_the_newest() {
        let now = Timestamp::from_millis(100 * DAY);
        let runs = [finished("a", 10), finished("b", 60), finished("c", 30), finished("d", 99)];
        assert_eq!(ids(&plan(&retention(30, 0), &runs, now)), ["a", "c", "b"], "the oldest first");
        assert_eq!(ids(&plan(&retention(30, 2), &runs, now)), ["a", "c"], "d and b are the newest two");
        assert_eq!(ids(&plan(&retention(30, 100), &runs, now)), Vec::<&str>::new());
        assert_eq!(ids(&plan(&retention(70, 0), &runs, now)), ["a"], "exactly as old as the limit is not too old");
        assert_eq!(ids(&plan(&Retention::default(), &runs, now)), Vec::<&str>::new(), "by default everything is kept");
        let needed = [FinishedRun { needed: true, ..finished("a", 10) }, finished("b", 20)];
        assert_eq!(ids(&plan(&retention(30, 0), &needed, now)), ["b"]);
    }

    #[test]
    fn random_plans_remove_only_old_unneeded_runs_beyond_those_kept() {
        let mut random = StdRng::seed_from_u64(7);
        for _ in 0..500 {
            let now = Timestamp::from_millis(random.random_range(0..200) * DAY);
            let retention = retention(random.random_range(1..100), random.random_range(0..12));
            let runs: Vec<FinishedRun> = (0..random.random_range(0..20))
                .map(|number| FinishedRun {
                    needed: random.random_bool(0.2),
                    ..finished(&format!("r{number}"), random.random_range(0..200))
                })
                .collect();
            let planned = plan(&retention, &runs, now);
            let is_planned = |run: &FinishedRun| planned.contains(&run.run);
            let age = retention.finished.unwrap();
            for run in runs.iter().filter(|run| is_planned(run)) {
                assert!(!run.needed && now.since(run.changed_at) > age, "{run:?}");
                let newer = runs.iter().filter(|other| other.changed_at >= run.changed_at && other.run != run.run).count();
                assert!(newer >= retention.keep as usize, "{run:?} is one of the newest");
            }
            // Whatever is left is needed, young, or one of the newest.
            let left = runs.iter().filter(|run| !is_planned(run) && !run.needed && now.since(run.changed_at) > age).count();
            assert!(left <= retention.keep as usize);
            let mut unique = planned.clone();
            unique.sort();
            unique.dedup();
            assert_eq!(unique.len(), planned.len());
        }
    }
}
