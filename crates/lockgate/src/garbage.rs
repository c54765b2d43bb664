//! What lies in a project's folder and is needed by nobody any more. Finding it changes nothing; output directories, and all that belongs
//! to a run that is not finished, are never among it.

use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::run::index::OpenEnum;
use lockgate_runner::git::GitError;
use lockgate_runner::root::Root;
use lockgate_runner::worktree::{self, ExistingWorktree};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What is younger may be on its way to become something: a run that is just being created, a file that is just being written.
const YOUNG: Duration = Duration::from_secs(3600);

/// What kind of thing nobody needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GarbageKind {
    /// The file of a process that drove runs and is gone.
    StaleDriver,
    /// The lock of an attempt that has ended, of a run that is finished.
    StaleLock,
    /// Logs and locks of a run that is not in the database.
    OrphanedRun,
    /// A file that was being written when its writer ended.
    Unfinished,
    /// A git worktree, with its branch, that holds no work, of a run that is finished or gone.
    UnusedWorktree,
}

impl GarbageKind {
    /// What so many of them are called.
    pub fn words(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::StaleDriver, 1) => "file of a dead driver",
            (Self::StaleDriver, _) => "files of dead drivers",
            (Self::StaleLock, 1) => "lock file of an ended attempt",
            (Self::StaleLock, _) => "lock files of ended attempts",
            (Self::OrphanedRun, 1) => "folder of a run that no longer exists",
            (Self::OrphanedRun, _) => "folders of runs that no longer exist",
            (Self::Unfinished, 1) => "file that was never finished",
            (Self::Unfinished, _) => "files that were never finished",
            (Self::UnusedWorktree, 1) => "worktree without work",
            (Self::UnusedWorktree, _) => "worktrees without work",
        }
    }
}

/// Something that nobody needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GarbageItem {
    /// What it is.
    pub kind: GarbageKind,
    /// Where it is.
    pub path: PathBuf,
    /// How large it is.
    pub bytes: u64,
    removal: Removal,
}

/// How something is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Removal {
    /// A file.
    File,
    /// A file, if its lock can be had.
    Lock,
    /// A folder with all that is in it.
    Tree,
    /// A folder, if nothing is in it.
    Empty,
    /// A worktree with its branch, if git finds no work in it.
    Worktree(Box<ExistingWorktree>),
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GarbageScan {
    /// What nobody needs.
    pub garbage: Vec<GarbageItem>,
    /// What stays although its run is gone, because only people know whether they want it.
    pub kept: Vec<PathBuf>,
    /// Worktrees that stay although their runs are over, because they hold work.
    pub worktrees: Vec<PathBuf>,
}

/// What the database says of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLiveness {
    /// It can go on.
    Unfinished,
    /// Nothing will happen in it any more.
    Finished,
}

impl RunLiveness {
    /// What a status means for what lies in the folder. What this release does not know may go on.
    pub fn of(status: &OpenEnum<Status>) -> Self {
        match status.known() {
            Some(Status::Complete | Status::Aborted | Status::Cancelled) => Self::Finished,
            Some(Status::Running | Status::Waiting | Status::Failed) | None => Self::Unfinished,
        }
    }
}

/// Finds what nobody needs. `runs` must have been read after `names`: what is a run by then has a folder before.
pub fn find(root: &Root, names: &[OsString], runs: &[(RunId, RunLiveness)], now: SystemTime) -> io::Result<GarbageScan> {
    let mut found = GarbageScan::default();
    let liveness: BTreeMap<OsString, RunLiveness> =
        runs.iter().filter_map(|(run, state)| Some((root.run_dir(run).file_name()?.to_owned(), *state))).collect();
    unfinished_files(&root.state_dir(), now, &mut found)?;
    for path in entries(&root.state_dir().join("drivers"))? {
        if has_end(&path, ".lock") && is_file(&path) && is_free(&path) {
            found.add(GarbageKind::StaleDriver, path, Removal::Lock);
        }
    }
    unfinished_files(&root.state_dir().join("drivers"), now, &mut found)?;
    for path in entries(&root.state_dir().join("notices"))?.into_iter().filter(|path| has_end(path, ".lock")) {
        if is_file(&path) && is_free(&path) {
            found.add(GarbageKind::StaleLock, path, Removal::Lock);
        }
    }
    for name in names {
        let folder = root.state_dir().join("runs").join(name);
        match liveness.get(name) {
            Some(RunLiveness::Unfinished) => {}
            Some(RunLiveness::Finished) => {
                for path in entries(&folder.join("locks"))?.into_iter().filter(|path| has_end(path, ".lock")) {
                    if is_file(&path) && is_free(&path) {
                        found.add(GarbageKind::StaleLock, path, Removal::Lock);
                    }
                }
                unfinished_files(&folder, now, &mut found)?;
                unfinished_files(&folder.join("logs"), now, &mut found)?;
            }
            None if is_old(&folder, now) => orphaned_run(&folder, &mut found)?,
            None => {}
        }
    }
    Ok(found)
}

/// Finds worktrees that nobody needs: those without work whose run is finished or gone. What holds work stays, and so does the worktree
/// of a run that can go on, since the sessions of agents are tied to their folders.
pub fn find_worktrees(
    root: &Root,
    runs: &[(RunId, RunLiveness)],
    now: SystemTime,
    found: &mut GarbageScan,
) -> Result<(), GitError> {
    let liveness: BTreeMap<&RunId, RunLiveness> = runs.iter().map(|(run, state)| (run, *state)).collect();
    // Those of tasks first: they may hang on that of their run.
    for kept in worktree::existing(root, None)?.into_iter().rev() {
        let over = match liveness.get(&kept.run()) {
            Some(RunLiveness::Unfinished) => false,
            Some(RunLiveness::Finished) => true,
            None => !kept.has_folder || is_old(&kept.folder, now),
        };
        match (over, kept.has_work()) {
            (false, _) => {}
            (true, true) => found.worktrees.push(kept.folder),
            (true, false) => found.add(GarbageKind::UnusedWorktree, kept.folder.clone(), Removal::Worktree(Box::new(kept))),
        }
    }
    Ok(())
}

/// The names of the folders of runs.
pub fn run_folders(root: &Root) -> io::Result<Vec<OsString>> {
    let all = entries(&root.state_dir().join("runs"))?;
    let real = all.into_iter().filter(|path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()));
    Ok(real.filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect())
}

/// The locks in a run's folder that somebody holds, with the process that stands in each.
pub fn held_locks(root: &Root, run: &RunId) -> Vec<(PathBuf, String)> {
    let all = entries(&root.run_dir(run).join("locks")).unwrap_or_default();
    let held = all.into_iter().filter(|path| has_end(path, ".lock") && is_file(path) && !is_free(path));
    held.map(|path| {
        let pid = fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
        (path, pid)
    })
    .collect()
}

fn orphaned_run(folder: &Path, found: &mut GarbageScan) -> io::Result<()> {
    if entries(&folder.join("locks"))?.iter().any(|path| is_file(path) && !is_free(path)) {
        // Something of it still lives; `doctor` cannot say whose it is, and whoever ends it can do this again.
        found.kept.push(folder.to_owned());
        return Ok(());
    }
    let (mut stays, mut parts) = (false, Vec::new());
    for path in entries(folder)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let is_folder = path.symlink_metadata()?.is_dir();
        match name.as_str() {
            "logs" | "locks" if is_folder => parts.push((path, Removal::Tree)),
            "out" if is_folder && entries(&path)?.is_empty() => parts.push((path, Removal::Empty)),
            name if !is_folder && is_unfinished(name) => parts.push((path, Removal::File)),
            _ => {
                stays = true;
                found.kept.push(path);
            }
        }
    }
    if !stays {
        parts.push((folder.to_owned(), Removal::Empty));
    }
    for (path, removal) in parts {
        found.add(GarbageKind::OrphanedRun, path, removal);
    }
    Ok(())
}

fn unfinished_files(folder: &Path, now: SystemTime, found: &mut GarbageScan) -> io::Result<()> {
    for path in entries(folder)? {
        let named = path.file_name().and_then(|name| name.to_str()).is_some_and(is_unfinished);
        if named && is_old(&path, now) {
            let removal = if path.symlink_metadata()?.is_dir() { Removal::Tree } else { Removal::File };
            found.add(GarbageKind::Unfinished, path, removal);
        }
    }
    Ok(())
}

/// Names that we give to what is not complete yet.
fn is_unfinished(name: &str) -> bool {
    (name.starts_with(".lockgate-") && name.ends_with(".tmp")) || name.ends_with(".new") || name.contains(".new-")
}

fn has_end(path: &Path, end: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(end))
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

fn is_old(path: &Path, now: SystemTime) -> bool {
    let changed = path.symlink_metadata().and_then(|metadata| metadata.modified());
    // A moment in the future says nothing, so it counts as young.
    changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age >= YOUNG))
}

/// Whether nobody holds the lock on a file. What cannot be looked at counts as held.
fn is_free(path: &Path) -> bool {
    match File::open(path).map(|file| file.try_lock_shared().map_err(|error| (error, file))) {
        Ok(Ok(())) => true,
        Ok(Err((TryLockError::WouldBlock | TryLockError::Error(_), _))) | Err(_) => false,
    }
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<PathBuf>>>()?,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Vec::new(),
        Err(error) => return Err(error),
    };
    paths.sort();
    Ok(paths)
}

fn size_of(path: &Path) -> u64 {
    let Ok(metadata) = path.symlink_metadata() else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    entries(path).unwrap_or_default().iter().map(|path| size_of(path)).sum()
}

impl GarbageScan {
    fn add(&mut self, kind: GarbageKind, path: PathBuf, removal: Removal) {
        let bytes = match &removal {
            Removal::Empty => 0,
            Removal::File | Removal::Lock | Removal::Tree | Removal::Worktree(_) => size_of(&path),
        };
        self.garbage.push(GarbageItem { kind, path, bytes, removal });
    }
}

impl GarbageItem {
    /// Removes it; what is gone already is fine.
    pub fn remove(&self, root: &Root) -> io::Result<()> {
        let removed = match &self.removal {
            Removal::File => fs::remove_file(&self.path),
            Removal::Lock => File::open(&self.path).and_then(|file| {
                // Held until the name is gone, so that nobody takes it in between.
                file.try_lock().map_err(io::Error::from)?;
                fs::remove_file(&self.path)
            }),
            Removal::Tree => fs::remove_dir_all(&self.path),
            Removal::Empty => fs::remove_dir(&self.path),
            Removal::Worktree(kept) => worktree::remove(root, kept, false).map_err(io::Error::other),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Whether it counts when things are counted: parts of a run's folder are one thing.
    pub fn counts(&self) -> bool {
        match self.kind {
            GarbageKind::OrphanedRun => self.path.file_name().is_some_and(|name| name == "logs"),
            GarbageKind::StaleDriver | GarbageKind::StaleLock | GarbageKind::Unfinished | GarbageKind::UnusedWorktree => true,
        }
    }
}
