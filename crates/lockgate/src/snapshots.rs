//! Snapshots of runs: listing, reading, checking, taking, pinning and removing them.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::select;
use crate::view::lockgate;
use lockgate_engine::id::{RunId, SnapshotId};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::Caller;
use lockgate_engine::snapshot::document::IndexEntry;
use lockgate_engine::snapshot::retention::{RemovalReason, RetentionPlan};
use lockgate_engine::snapshot::{Due, Trigger};
use lockgate_engine::time::Timestamp;
use lockgate_runner::load::load;
use lockgate_runner::snapshot::{self, Listing, Snapshot, SnapshotDir, SnapshotError, SnapshotOptions, WriteError};
use lockgate_store::{Page, RunFilter};
use serde::Serialize;
use std::collections::BTreeSet;

/// The action, as it completes "may not …".
pub const PRUNE: &str = "remove snapshots";
/// The action, as it completes "may not …".
pub const UNPIN: &str = "unpin a snapshot";

/// A snapshot in a list, as JSON.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]
pub struct SnapshotView {
    pub id: String,
    pub run: String,
    pub created_at: Timestamp,
    pub trigger: Trigger,
    pub phase: Option<String>,
    pub can_resume: bool,
    pub pinned: bool,
    pub latest: bool,
    pub bytes: u64,
}

/// The snapshots of a run, oldest first.
#[derive(Debug)]
pub struct SnapshotList {
    /// The run.
    pub run: RunId,
    /// Its snapshots.
    pub snapshots: Vec<SnapshotView>,
    /// Files in the directory that cannot be read.
    pub unreadable: Vec<Error>,
    /// The directory.
    pub dir: SnapshotDir,
}

/// A checked snapshot.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]
pub struct CheckedSnapshot {
    pub id: String,
    pub ok: bool,
    pub error: Option<String>,
}

/// A snapshot that was or would be removed, as JSON.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]
pub struct RemovedSnapshot {
    pub id: String,
    pub reason: &'static str,
}

/// What pruning removed or would remove.
#[derive(Clone, Debug)]
pub struct Pruned {
    /// The removed snapshots.
    pub removed: Vec<RemovedSnapshot>,
    /// By how much the protected snapshots alone exceed the size limit.
    pub over_by: Option<u64>,
}

impl Project {
    /// The directory of a run's snapshots.
    pub fn snapshot_dir(&self, run: &Run) -> Result<SnapshotDir, Error> {
        let dir = self.config.checkpoint.location(&self.root, &run.id, run.issue_name())?;
        Ok(SnapshotDir::at(dir))
    }

    /// Lists the snapshots of a run.
    pub async fn snapshots(&self, named: &str) -> Result<SnapshotList, Error> {
        let run = self.read_run(named).await?;
        self.snapshots_of(&run)
    }

    /// Lists the snapshots of a run that was already read.
    pub fn snapshots_of(&self, run: &Run) -> Result<SnapshotList, Error> {
        let dir = self.snapshot_dir(run)?;
        let listing = dir.list()?;
        let latest = listing.of_run(&run.id).last().map(|latest| latest.checkpoint_id.clone());
        let view = |entry: &IndexEntry| SnapshotView {
            id: entry.checkpoint_id.to_string(),
            run: run.id.to_string(),
            created_at: entry.created_at,
            trigger: entry.trigger,
            phase: entry.phase.clone(),
            can_resume: entry.can_resume,
            pinned: listing.pinned.contains(&entry.checkpoint_id),
            latest: Some(&entry.checkpoint_id) == latest.as_ref(),
            bytes: entry.bytes,
        };
        let snapshots = listing.of_run(&run.id).into_iter().map(view).collect();
        let unreadable = listing.unreadable.into_iter().map(Error::from).collect();
        Ok(SnapshotList { run: run.id.clone(), snapshots, unreadable, dir })
    }

    /// Reads a snapshot by its id or the start of it: of this run, or of any run if none is named.
    pub async fn snapshot(&self, id: &str, named: Option<&str>) -> Result<Snapshot, Error> {
        let (run, dir) = self.find_snapshot(id, named).await?;
        let snapshot = dir.read(id)?;
        match &snapshot.engine {
            Some(engine) if engine.run != run.id => {
                Err(SnapshotError::WrongRun { path: snapshot.path, expected: run.id, found: engine.run.clone() }.into())
            }
            Some(_) | None => Ok(snapshot),
        }
    }

    /// The run and directory of a snapshot.
    async fn find_snapshot(&self, id: &str, named: Option<&str>) -> Result<(Run, SnapshotDir), Error> {
        if let Some(named) = named {
            let run = self.read_run(named).await?;
            let dir = self.snapshot_dir(&run)?;
            return Ok((run, dir));
        }
        let mut found: Vec<(RunId, SnapshotDir)> = Vec::new();
        for listed in self.store().list_runs(RunFilter::default(), Page::ALL).await? {
            let dir = match self.config.checkpoint.location(&self.root, &listed.row.run, None) {
                Ok(dir) => SnapshotDir::at(dir),
                // The location depends on the issue of the run.
                Err(_) => self.snapshot_dir(&load(self.store(), &listed.row.run).await?)?,
            };
            if dir.contains(id) && !found.iter().any(|(_, known)| *known == dir) {
                found.push((listed.row.run, dir));
            }
        }
        if found.len() > 1 {
            let runs: Vec<String> = found.iter().map(|(run, _)| run.to_string()).collect();
            let message = format!("{id:?} is the start of snapshots of several runs: {}", runs.join(", "));
            return Err(Error::new(Code::AmbiguousName, message).help("write more of the id, or name the run with --run"));
        }
        if let Some((run, dir)) = found.pop() {
            // Runs about the same issue share a directory.
            let owner = dir.read(id).ok().and_then(|snapshot| snapshot.engine.map(|engine| engine.run)).unwrap_or(run);
            return Ok((load(self.store(), &owner).await?, dir));
        }
        let message = format!("there is no snapshot {id:?}");
        Err(Error::new(Code::SnapshotNotFound, message)
            .help(format!("list snapshots with `{}`", lockgate(["snapshots", "list"]))))
    }

    /// Checks every snapshot of a run completely: its hash, its state and the values that it needs.
    pub async fn verify_snapshots(&self, named: &str) -> Result<Vec<CheckedSnapshot>, Error> {
        let run = self.read_run(named).await?;
        let dir = self.snapshot_dir(&run)?;
        // Runs about the same issue share a directory.
        let of_others: BTreeSet<SnapshotId> = match run.issue {
            Some(_) => dir
                .list()?
                .snapshots
                .into_iter()
                .filter(|known| known.run.as_ref() != Some(&run.id))
                .map(|known| known.checkpoint_id)
                .collect(),
            None => BTreeSet::new(),
        };
        let check = |id: &String| {
            let error = dir.read(id).and_then(|snapshot| check(&snapshot, &run.id)).err();
            CheckedSnapshot { id: id.clone(), ok: error.is_none(), error: error.map(|error| error.to_string()) }
        };
        Ok(dir.ids()?.iter().filter(|id| !of_others.contains(id.as_str())).map(check).collect())
    }

    /// Takes a snapshot of a run as it is now. Anyone may, also from within a task.
    pub async fn create_snapshot(&self, named: &str) -> Result<SnapshotView, Error> {
        let run = self.read_run(named).await?;
        let options = self.snapshot_options(&run)?;
        let due = Due::now(&run, Trigger::Manual, self.now());
        let entry = snapshot::take_now(self.store(), &run, due, &options).await?;
        Ok(SnapshotView {
            id: entry.checkpoint_id.to_string(),
            run: run.id.to_string(),
            created_at: entry.created_at,
            trigger: entry.trigger,
            phase: entry.phase,
            can_resume: entry.can_resume,
            pinned: false,
            latest: true,
            bytes: entry.bytes,
        })
    }

    fn snapshot_options(&self, run: &Run) -> Result<SnapshotOptions, Error> {
        self.runtime.perform.snapshots(run)?.ok_or_else(|| {
            Error::new(Code::SnapshotsDisabled, "the settings switch snapshots off")
                .help("set `checkpoint: { enabled: true }` in .lockgate/config.yaml")
        })
    }

    /// Lists what [`Project::prune_snapshots`] would remove.
    pub async fn plan_prune(&self, named: &str) -> Result<Pruned, Error> {
        let run = self.read_run(named).await?;
        let dir = self.snapshot_dir(&run)?;
        Ok(pruned(self.retention_plan(&run, &dir.list()?)))
    }

    /// Removes the snapshots of a run that retention does not keep.
    pub async fn prune_snapshots(&self, named: &str, caller: &Caller) -> Result<Pruned, Error> {
        let run = self.read_run(named).await?;
        self.may_decide(caller, &run.id, PRUNE).await?;
        let options = self.snapshot_options(&run)?;
        Ok(pruned(snapshot::prune(&run, &options)?))
    }

    fn retention_plan(&self, run: &Run, listing: &Listing) -> RetentionPlan {
        let settings = &self.config.checkpoint;
        snapshot::retention_plan(run, listing, &settings.retention, settings.max_bytes())
    }

    /// Protects a snapshot from removal.
    pub async fn pin_snapshot(&self, id: &str, named: Option<&str>) -> Result<SnapshotId, Error> {
        let snapshot = self.snapshot(id, named).await?;
        let (_, dir) = self.find_snapshot(id, named).await?;
        dir.pin(&snapshot.id).map_err(|error| unwritable(&dir, &error))?;
        Ok(snapshot.id)
    }

    /// Lets retention remove a snapshot again.
    pub async fn unpin_snapshot(&self, id: &str, named: Option<&str>, caller: &Caller) -> Result<SnapshotId, Error> {
        let (run, dir) = self.find_snapshot(id, named).await?;
        self.may_decide(caller, &run.id, UNPIN).await?;
        let snapshot = dir.read(id)?;
        dir.unpin(&snapshot.id).map_err(|error| unwritable(&dir, &error))?;
        Ok(snapshot.id)
    }

    async fn read_run(&self, named: &str) -> Result<Run, Error> {
        let run = select::run_or_ended(self.store(), named).await?.row.run;
        Ok(load(self.store(), &run).await?)
    }
}

fn check(snapshot: &Snapshot, run: &RunId) -> Result<(), SnapshotError> {
    let engine = snapshot.engine()?;
    if engine.run != *run {
        return Err(SnapshotError::WrongRun { path: snapshot.path.clone(), expected: run.clone(), found: engine.run.clone() });
    }
    snapshot.state()?;
    engine.values.iter().try_for_each(|digest| snapshot.value(*digest).map(drop))
}

fn pruned(plan: RetentionPlan) -> Pruned {
    let reason = |reason| match reason {
        RemovalReason::Superseded { .. } => "newer ones are kept",
        RemovalReason::Size => "the directory is too large",
    };
    let removed = plan
        .remove
        .iter()
        .map(|removal| RemovedSnapshot { id: removal.id.to_string(), reason: reason(removal.reason) })
        .collect();
    Pruned { removed, over_by: plan.over_by }
}

fn unwritable(dir: &SnapshotDir, error: &std::io::Error) -> Error {
    Error::new(Code::Unwritable, format!("{} cannot be written: {error}", dir.path().display()))
}

impl From<SnapshotError> for Error {
    fn from(error: SnapshotError) -> Self {
        let list = lockgate(["snapshots", "list"]);
        let (code, help) = match &error {
            SnapshotError::NotFound { .. } => (Code::SnapshotNotFound, format!("list snapshots with `{list}`")),
            SnapshotError::Ambiguous { .. } => (Code::AmbiguousName, "write more of the id".to_owned()),
            SnapshotError::Empty { .. } => (
                Code::SnapshotNotFound,
                format!("take one with `{}`, or check `checkpoint` in the settings", lockgate(["snapshots", "create"])),
            ),
            SnapshotError::NotAFile { .. } => {
                (Code::NotAFile, "snapshots are regular files; links and pipes are not followed".to_owned())
            }
            SnapshotError::TooLarge { .. } => (Code::FileTooLarge, "choose another snapshot".to_owned()),
            SnapshotError::Damaged { .. } | SnapshotError::ValueDamaged { .. } => {
                (Code::SnapshotDamaged, format!("choose another snapshot; list them with `{list}`"))
            }
            SnapshotError::HashMismatch { .. } => (
                Code::SnapshotChanged,
                "restore the file from a copy, or choose another snapshot; a snapshot is not meant to be edited".to_owned(),
            ),
            SnapshotError::NotInHistory { .. } => (
                Code::SnapshotChanged,
                "someone has forged the file; choose another snapshot, and check who can write to the directory".to_owned(),
            ),
            SnapshotError::Newer { .. } => (Code::NewerFormat, "use the release of Lockgate that wrote it".to_owned()),
            SnapshotError::Older { .. } => (Code::SnapshotDamaged, "use the release of Lockgate that wrote it".to_owned()),
            SnapshotError::NoState { .. } => {
                (Code::SnapshotDamaged, "another tool wrote it; Lockgate can show it, but not continue from it".to_owned())
            }
            SnapshotError::WrongRun { .. } => (Code::SnapshotMismatch, "name the run that it belongs to".to_owned()),
            SnapshotError::ValueMissing { .. } => (
                Code::StoredValueMissing,
                "copy the directory `values` together with the snapshots, or choose another snapshot".to_owned(),
            ),
            SnapshotError::Io { .. } => (Code::UnreadableFile, "check the path and its permissions".to_owned()),
        };
        Self::new(code, error.to_string()).help(help)
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Load(error) => error.into(),
            WriteError::Store(error) => error.into(),
            WriteError::Snapshot(error) => error.into(),
            WriteError::Io { .. } => Self::new(Code::Unwritable, format!("the snapshot cannot be written: {error}")),
            WriteError::ValueMissing(_) => Self::new(Code::StoredValueMissing, error.to_string()),
        }
    }
}
