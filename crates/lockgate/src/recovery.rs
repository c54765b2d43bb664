//! Continuing from snapshots: going back to an earlier one, and rebuilding runs whose database is gone.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::select;
use crate::start::Start;
use crate::verdict::Verdict;
use crate::workflow_file;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{RunId, SnapshotId};
use lockgate_engine::run::command::Caller;
use lockgate_engine::run::issue::Issue;
use lockgate_engine::run::{RewindConsequences, Run, rewind_consequences};
use lockgate_engine::stored_value::StoredValue;
use lockgate_runner::driver::{DriveError, SnapshotState, recover_with, rewind};
use lockgate_runner::load::load;
use lockgate_runner::snapshot::{Snapshot, SnapshotDir, SnapshotError, state_at};
use lockgate_runner::start::GivenIssue;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The action, as it completes "may not …".
pub const REWIND: &str = "resume from an earlier snapshot";
/// The action, as it completes "may not …".
pub const RECOVER: &str = "recover a run";

/// Names the newest snapshot.
pub const LATEST: &str = "latest";

/// How deep below a directory snapshots are searched for.
const MAX_DEPTH: usize = 5;

/// A planned return to a snapshot. Nothing is recorded yet.
#[derive(Debug)]
pub struct PlannedRewind {
    /// The run as it is now.
    pub run: Run,
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Whether the run can continue from it.
    pub verdict: Verdict,
    /// What becomes void and what runs again; empty if nothing has happened since.
    pub consequences: RewindConsequences,
    state: SnapshotState,
}

impl PlannedRewind {
    /// Whether nothing has happened since the snapshot, so that there is nothing to go back from.
    pub fn is_current(&self) -> bool {
        self.state.seq + 1 >= self.run.next_seq
    }
}

/// A run that was recovered, as JSON.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]
pub struct RecoveredRun {
    pub run: String,
    pub workflow: String,
    pub snapshot: String,
    pub status: lockgate_engine::run::Status,
}

/// What [`Project::recover`] did.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The runs that were recovered.
    pub recovered: Vec<RecoveredRun>,
    /// Runs that were not, and why.
    pub failed: Vec<(RunId, Error)>,
    /// Files that cannot be used.
    pub unreadable: Vec<Error>,
}

impl Project {
    /// Determines what going back to a snapshot of a run would do. `id` is an id, the start of one, or `latest`.
    pub async fn plan_rewind(&self, named: &str, id: &str) -> Result<PlannedRewind, Error> {
        let found = select::run_or_ended(self.store(), named).await?.row.run;
        let run = load(self.store(), &found).await?;
        let dir = self.snapshot_dir(&run)?;
        let snapshot = match id {
            LATEST => dir.latest(&run.id)?,
            id => dir.read(id)?,
        };
        let engine = snapshot.engine()?;
        if engine.run != run.id {
            let (path, found) = (snapshot.path.clone(), engine.run.clone());
            return Err(SnapshotError::WrongRun { path, expected: run.id, found }.into());
        }
        let verdict = Verdict::check(&engine.prerequisites, self.root.dir());
        let state = SnapshotState { snapshot: snapshot.id.clone(), seq: engine.seq, state: snapshot.state()? };
        self.compare_with_history(&run, &snapshot, &state).await?;
        let consequences = rewind_consequences(&run, &state.state);
        Ok(PlannedRewind { run, snapshot, verdict, consequences, state })
    }

    /// Refuses a snapshot that claims something else than the history does, such as an answer that no person gave: whoever can
    /// write the file can also compute its hash. The events before a recovery are lost and cannot be compared.
    async fn compare_with_history(&self, run: &Run, snapshot: &Snapshot, claimed: &SnapshotState) -> Result<(), Error> {
        if claimed.state.recovered != run.recovered {
            return Ok(());
        }
        let known = state_at(self.store(), &run.id, claimed.seq).await?;
        if known.is_some_and(|known| known.to_bytes() == claimed.state.to_bytes()) {
            return Ok(());
        }
        Err(SnapshotError::NotInHistory { path: snapshot.path.clone(), run: run.id.clone() }.into())
    }

    /// Goes back to a snapshot. The history keeps everything; the run is not driven until someone resumes it.
    pub async fn rewind(&self, planned: PlannedRewind, caller: Caller) -> Result<Run, Error> {
        let run = planned.run.id.clone();
        match rewind(&self.runtime, &run, caller.clone(), planned.state).await {
            Ok(run) => Ok(run),
            Err(error) => Err(self.failed(&caller, &run, REWIND, error).await),
        }
    }

    /// Whether a run can continue where it is, judged by its latest snapshot; `None` without one.
    pub async fn resume_verdict(&self, run: &Run) -> Option<Verdict> {
        let snapshot = self.snapshot_dir(run).ok()?.latest(&run.id).ok()?;
        let engine = snapshot.engine.as_ref()?;
        Some(Verdict::check(&engine.prerequisites, self.root.dir()))
    }

    /// The workflow file and options with which a run can be started again.
    pub async fn start_again(&self, run: &Run) -> Result<(PathBuf, Start), Error> {
        let Some(file) = run.files.first() else {
            return Err(Error::new(Code::UnreadableFile, format!("run {} does not know its workflow file", run.id)));
        };
        let path = self.root.dir().join(&file.path);
        workflow_file::read(&path)?;
        let mut vars = BTreeMap::new();
        for (name, value) in &run.vars {
            vars.insert(name.clone(), self.stored_json(run, value).await?);
        }
        let start = Start {
            feature: run.feature.clone().filter(|_| run.pipeline.is_none()),
            flags: run.flags.clone(),
            vars,
            agent: run.agent.clone(),
            replace: run.pipeline.is_some(),
            issue: self.issue_of(run).await?,
            ..Start::default()
        };
        Ok((path, start))
    }

    /// The issue of a run, as it was when the run started.
    async fn issue_of(&self, run: &Run) -> Result<Option<GivenIssue>, Error> {
        let Some(issue) = run.issue.as_deref().cloned() else { return Ok(None) };
        let body = self.stored_json(run, &issue.body).await?.as_str().unwrap_or_default().to_owned();
        let Issue { number, name, title, labels, assignees, source, .. } = issue;
        Ok(Some(GivenIssue { number, name, title, body, labels, assignees, source }))
    }

    async fn stored_json(&self, run: &Run, value: &StoredValue) -> Result<serde_json::Value, Error> {
        let text = match value {
            StoredValue::Inline(text) => text.clone().into_bytes(),
            StoredValue::Stored { digest, .. } => {
                let stored = self.store().values(&[*digest]).await?.pop().flatten();
                let missing =
                    || Error::new(Code::StoredValueMissing, format!("run {}: stored value {digest} is missing", run.id));
                stored.ok_or_else(missing)?
            }
        };
        serde_json::from_slice(&text).map_err(|error| Error::new(Code::HistoryCorrupt, error.to_string()))
    }

    /// Rebuilds runs from snapshot files in or below a directory, each from its newest usable snapshot. Runs that exist are
    /// refused.
    pub async fn recover(&self, dir: &Path, caller: &Caller) -> Result<Recovery, Error> {
        self.may_decide_about_project(caller, RECOVER).await?;
        let mut recovery = Recovery::default();
        let mut candidates: BTreeMap<RunId, Vec<Candidate>> = BTreeMap::new();
        for dir in snapshot_dirs(dir)? {
            let listing = SnapshotDir::at(dir.clone()).list()?;
            recovery.unreadable.extend(listing.unreadable.into_iter().map(Error::from));
            for entry in listing.snapshots {
                if let Some(run) = entry.run {
                    candidates.entry(run).or_default().push(Candidate {
                        dir: dir.clone(),
                        id: entry.checkpoint_id,
                        seq: entry.seq,
                    });
                }
            }
        }
        for (run, mut snapshots) in candidates {
            snapshots.sort_by_key(|candidate| candidate.seq);
            match self.recover_run(&run, &snapshots, caller, &mut recovery.unreadable).await {
                Ok(recovered) => recovery.recovered.push(recovered),
                Err(error) => recovery.failed.push((run, error)),
            }
        }
        Ok(recovery)
    }

    async fn recover_run(
        &self,
        run: &RunId,
        snapshots: &[Candidate],
        caller: &Caller,
        unusable: &mut Vec<Error>,
    ) -> Result<RecoveredRun, Error> {
        if self.store().load(run).await?.is_some() {
            return Err(DriveError::RunExists(run.clone()).into());
        }
        let mut last = None;
        for candidate in snapshots.iter().rev() {
            match read(candidate, run) {
                Ok((state, values)) => {
                    let snapshot = state.snapshot.clone();
                    let recovered = recover_with(&self.runtime, caller.clone(), state, values).await?;
                    self.root.prepare_run(run)?;
                    self.snapshots_start_at(&recovered, candidate);
                    self.restore_knowledge(&recovered).await;
                    return Ok(RecoveredRun {
                        run: run.to_string(),
                        workflow: recovered.workflow.name.clone(),
                        snapshot: snapshot.to_string(),
                        status: recovered.status(),
                    });
                }
                Err(error) => {
                    unusable.push(Error::from(error));
                    last = Some(&candidate.id);
                }
            }
        }
        let last = last.map(ToString::to_string).unwrap_or_default();
        Err(Error::new(Code::SnapshotDamaged, format!("none of the snapshots of run {run} can be used; the oldest is {last}")))
    }

    /// Snapshots are due again from here on, although the directory says that later events were examined.
    fn snapshots_start_at(&self, run: &Run, from: &Candidate) {
        let reset = self.snapshot_dir(run).and_then(|dir| Ok(dir.reset_through(&run.id, from.seq)?));
        if let Err(error) = reset {
            tracing::warn!(run = %run.id, %error, "the index of the snapshots is not up to date");
        }
    }
}

/// A snapshot from which a run might be recovered.
struct Candidate {
    dir: PathBuf,
    id: SnapshotId,
    seq: u64,
}

type Values = Vec<(Digest, Vec<u8>)>;

fn read(candidate: &Candidate, run: &RunId) -> Result<(SnapshotState, Values), SnapshotError> {
    let snapshot = SnapshotDir::at(candidate.dir.clone()).read(candidate.id.as_str())?;
    let engine = snapshot.engine()?;
    if engine.run != *run {
        let found = engine.run.clone();
        return Err(SnapshotError::WrongRun { path: snapshot.path.clone(), expected: run.clone(), found });
    }
    let state = snapshot.state()?;
    let values = state.referenced_values().into_iter().map(|digest| Ok((digest, snapshot.value(digest)?)));
    let values = values.collect::<Result<Values, SnapshotError>>()?;
    Ok((SnapshotState { snapshot: snapshot.id.clone(), seq: engine.seq, state }, values))
}

/// The directories with snapshots in or below a directory. Symlinks are not followed.
fn snapshot_dirs(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let unreadable = |error: std::io::Error| {
        Error::new(Code::UnreadableFile, format!("{} cannot be read: {error}", dir.display()))
            .help("name the directory that contains the snapshots")
    };
    if !dir.symlink_metadata().map_err(unreadable)?.is_dir() {
        return Err(Error::new(Code::UnreadableFile, format!("{} is not a directory", dir.display())));
    }
    let mut found = Vec::new();
    let mut open = vec![(dir.to_path_buf(), 0)];
    while let Some((dir, depth)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        let mut has_snapshots = false;
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            has_snapshots |= kind.is_file() && entry.file_name().to_string_lossy().starts_with("CP-");
            if kind.is_dir() && depth < MAX_DEPTH {
                open.push((entry.path(), depth + 1));
            }
        }
        if has_snapshots {
            found.push(dir);
        }
    }
    if found.is_empty() {
        let message = format!("there are no snapshots in {} or below it", dir.display());
        return Err(Error::new(Code::SnapshotNotFound, message).help("name the directory that contains files called CP-….yaml"));
    }
    found.sort();
    Ok(found)
}
