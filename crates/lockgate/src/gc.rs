//! Removing files and stored values that no run needs any more.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

pub mod garbage;

use self::garbage::{GarbageKind, GarbageScan, RunLiveness};
use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::removal::RemovedRunView;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Caller;
use lockgate_runner::commit::forget_runs;
use lockgate_runner::driver::Halt;
use lockgate_store::Unreferenced;
use serde::Serialize;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// How many runs to read per page.
const RUNS: usize = 1000;

/// What was removed, or would be removed.
#[derive(Debug)]
pub struct Collected {
    /// Finished runs that the settings no longer keep.
    pub runs: Vec<RemovedRunView>,
    /// Files in the project's directory.
    pub found: GarbageScan,
    /// Stored values that no run refers to.
    pub values: Unreferenced,
    /// Errors from reading or removing files.
    pub errors: Vec<String>,
}

/// The result of a garbage collection, as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct CollectedView {
    pub dry_run: bool,
    pub runs: Vec<RemovedRunView>,
    pub garbage: Vec<GarbageItemView>,
    pub values: ValuesView,
    pub bytes: u64,
    pub kept: Vec<String>,
    pub errors: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct GarbageItemView {
    pub kind: GarbageKind,
    pub path: String,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct ValuesView {
    pub count: u64,
    pub bytes: u64,
}

impl CollectedView {
    /// Creates the view, with paths relative to the root.
    pub fn of(collected: &Collected, root: &Path, dry_run: bool) -> Self {
        let path = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
        let (found, Unreferenced { count, bytes }) = (&collected.found, collected.values);
        let garbage = found.garbage.iter();
        Self {
            dry_run,
            runs: collected.runs.clone(),
            garbage: garbage.map(|left| GarbageItemView { kind: left.kind, path: path(&left.path), bytes: left.bytes }).collect(),
            values: ValuesView { count, bytes },
            bytes: collected.bytes(),
            kept: found.kept.iter().chain(&found.worktrees).map(|kept| path(kept)).collect(),
            errors: collected.errors.clone(),
        }
    }
}

impl Collected {
    /// How many bytes of files and stored values there are in all.
    pub fn bytes(&self) -> u64 {
        let files = self.found.garbage.iter().map(|item| item.bytes).sum::<u64>();
        self.values.bytes + files + self.runs.iter().map(|run| run.file_bytes).sum::<u64>()
    }
}

impl Project {
    /// Finds what could be removed, without removing it.
    pub async fn find_leftovers(&self) -> Result<Collected, Error> {
        let (_, found, errors) = self.look_through().await?;
        let mut runs = Vec::new();
        for run in self.retention_pass().plan().await? {
            runs.push(self.plan_removal(run.as_str()).await?);
        }
        Ok(Collected { runs, found, values: self.store().unreferenced_values().await?, errors })
    }

    /// Removes finished runs that the settings no longer keep, and everything that no run needs.
    pub async fn collect_garbage(&self, caller: &Caller) -> Result<Collected, Error> {
        self.must_be_outside_tasks(caller, "remove what no run needs").await?;
        let (runs, not_removed) = self.retention_pass().apply(&Halt::default()).await?;
        let (standings, found, mut errors) = self.look_through().await?;
        errors.extend(not_removed);
        let values = self.store().remove_unreferenced_values().await?;
        for leftover in &found.garbage {
            if let Err(error) = leftover.remove(&self.root) {
                errors.push(format!("{} cannot be removed: {error}", leftover.path.display()));
            }
        }
        let finished = |run: &RunId| standings.iter().any(|(known, standing)| known == run && *standing == RunLiveness::Finished);
        if let Err(error) = forget_runs(self.root.dir(), finished, true) {
            // Outside a git repository there are no snapshots.
            tracing::debug!(%error, "snapshots of tasks are not removed");
        }
        Ok(Collected { runs, found, values, errors })
    }

    async fn look_through(&self) -> Result<(Vec<(RunId, RunLiveness)>, GarbageScan, Vec<String>), Error> {
        let unreadable = |error: io::Error| {
            let message = format!("{} cannot be read: {error}", self.root.state_dir().display());
            Error::new(Code::Unwritable, message).help("make it readable and writable for your user")
        };
        // Read the directories before the runs, so that a run that is created in between does not look orphaned. `scan_runs` is
        // used because listing runs would remove the files of dead drivers as a side effect, and they could not be reported.
        let names = garbage::run_folders(&self.root).map_err(unreadable)?;
        let (mut standings, mut after) = (Vec::new(), None);
        loop {
            let runs = self.store().scan_runs(after, RUNS).await?;
            let Some(last) = runs.last() else { break };
            after = Some(last.place);
            standings.extend(runs.iter().map(|run| (run.row.run.clone(), RunLiveness::of(&run.row.status))));
        }
        let mut found = garbage::find(&self.root, &names, &standings, SystemTime::now()).map_err(unreadable)?;
        let looked = garbage::find_worktrees(&self.root, &standings, SystemTime::now(), &mut found);
        let errors = looked.err().map(|why| format!("worktrees cannot be listed: {why}")).into_iter().collect();
        Ok((standings, found, errors))
    }
}
