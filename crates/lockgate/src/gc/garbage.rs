//! Finds garbage in a project's directory, and removes it. Finding it changes nothing. Output directories and the files of unfinished
//! runs are never reported.

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

/// Younger files may belong to a run that is being created or a file that is being written, so they are ignored.
const YOUNG: Duration = Duration::from_secs(3600);

/// The kinds of garbage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GarbageKind {
    /// The lock file of a driver that is dead.
    StaleDriver,
    /// The lock file of an ended attempt in a finished run.
    StaleLock,
    /// Logs and locks of a run that is not in the database.
    OrphanedRun,
    /// A temporary file whose writer died.
    Unfinished,
    /// A git worktree, and its branch, without changes, whose run is finished or no longer exists.
    UnusedWorktree,
}

impl GarbageKind {
    /// The description for `count` items.
    pub fn words(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::StaleDriver, 1) => "file of a dead driver",
            (Self::StaleDriver, _) => "files of dead drivers",
            (Self::StaleLock, 1) => "lock file of an ended attempt",
            (Self::StaleLock, _) => "lock files of ended attempts",
            (Self::OrphanedRun, 1) => "directory of a run that no longer exists",
            (Self::OrphanedRun, _) => "directories of runs that no longer exist",
            (Self::Unfinished, 1) => "incomplete file",
            (Self::Unfinished, _) => "incomplete files",
            (Self::UnusedWorktree, 1) => "unused worktree",
            (Self::UnusedWorktree, _) => "unused worktrees",
        }
    }
}

/// A file, directory or worktree that can be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GarbageItem {
    /// Its kind.
    pub kind: GarbageKind,
    /// Its path.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    removal: Removal,
}

/// How an item is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Removal {
    File,
    /// Remove the file if its lock is free.
    Lock,
    /// Remove the directory recursively.
    Tree,
    /// Remove the marked directory of a run, the mark last.
    Marked,
    /// Remove the directory if it is empty.
    Empty,
    /// Remove the worktree and its branch if git finds no work in it.
    Worktree(Box<ExistingWorktree>),
}

/// The result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GarbageScan {
    /// Items that can be removed.
    pub garbage: Vec<GarbageItem>,
    /// Files of runs that no longer exist, which are kept because only a person can tell whether they matter.
    pub kept: Vec<PathBuf>,
    /// Worktrees of finished runs, which are kept because they contain work.
    pub worktrees: Vec<PathBuf>,
}

/// Whether a run can still continue, according to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLiveness {
    /// The run can continue.
    Unfinished,
    /// The run will not continue.
    Finished,
}

impl RunLiveness {
    /// Classifies a status. An unknown one, from a newer release, counts as unfinished.
    pub fn of(status: &OpenEnum<Status>) -> Self {
        match status.known() {
            Some(Status::Complete | Status::Aborted | Status::Cancelled) => Self::Finished,
            Some(Status::Running | Status::Waiting | Status::Failed) | None => Self::Unfinished,
        }
    }
}

/// Scans for garbage. Read `runs` after `names`: a run's directory is created before its record, so a missing record means that
/// the run does not exist.
pub fn find(root: &Root, names: &[OsString], runs: &[(RunId, RunLiveness)], now: SystemTime) -> io::Result<GarbageScan> {
    let mut found = GarbageScan::default();
    let liveness: BTreeMap<OsString, RunLiveness> =
        runs.iter().filter_map(|(run, state)| Some((root.run_dir(run).file_name()?.to_owned(), *state))).collect();
    unfinished_files(&resolved(root.state_dir()), now, &mut found)?;
    let drivers = resolved(root.state_dir().join("drivers"));
    for path in entries(&drivers)? {
        if has_end(&path, ".lock") && is_file(&path) && is_free(&path) {
            found.add(GarbageKind::StaleDriver, path, Removal::Lock);
        }
    }
    unfinished_files(&drivers, now, &mut found)?;
    for path in entries(&resolved(root.state_dir().join("notices")))?.into_iter().filter(|path| has_end(path, ".lock")) {
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
            None if is_marked_removed(&folder) => removed_run(&folder, &mut found)?,
            None if is_old(&folder, now) => orphaned_run(&folder, &mut found)?,
            None => {}
        }
    }
    Ok(found)
}

/// Adds worktrees that can be removed: those without work whose run is finished or no longer exists. The worktree of an
/// unfinished run is kept even without work, since agent sessions are tied to their directory.
pub fn find_worktrees(
    root: &Root,
    runs: &[(RunId, RunLiveness)],
    now: SystemTime,
    found: &mut GarbageScan,
) -> Result<(), GitError> {
    let liveness: BTreeMap<&RunId, RunLiveness> = runs.iter().map(|(run, state)| (run, *state)).collect();
    // Tasks' worktrees come first, because they may depend on the worktree of their run.
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

/// The names of the directories of runs.
pub fn run_folders(root: &Root) -> io::Result<Vec<OsString>> {
    let all = entries(&resolved(root.state_dir().join("runs")))?;
    let real = all.into_iter().filter(|path| is_folder(path));
    Ok(real.filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect())
}

/// The lock files of a run that are held, with the id of the process recorded in each.
pub fn held_locks(root: &Root, run: &RunId) -> Vec<(PathBuf, String)> {
    let all = entries(&root.run_dir(run).join("locks")).unwrap_or_default();
    let held = all.into_iter().filter(|path| has_end(path, ".lock") && is_file(path) && !is_free(path));
    held.map(|path| {
        let pid = fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
        (path, pid)
    })
    .collect()
}

/// The file that marks the directory of a run whose removal was requested. Once the run is gone from the database, nothing in the directory is needed.
const REMOVED: &str = "removed";

/// Marks a run's directory, if it exists, before the run is removed from the database. Tasks can write to the directory, so no symbolic
/// link is followed.
pub(crate) fn mark_removed(folder: &Path) -> io::Result<()> {
    if !is_folder(folder) {
        return Ok(());
    }
    let mark = folder.join(REMOVED);
    if is_file(&mark) {
        return Ok(());
    }
    let cleared = if is_folder(&mark) { fs::remove_dir_all(&mark) } else { fs::remove_file(&mark) };
    match cleared {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => File::create_new(&mark).map(drop),
    }
}

fn is_marked_removed(folder: &Path) -> bool {
    is_file(&folder.join(REMOVED))
}

/// Removes the marked directory of a run. The mark goes last, so that a directory whose removal is interrupted stays marked.
pub(crate) fn remove_marked(folder: &Path) -> io::Result<()> {
    if folder.symlink_metadata()?.is_symlink() {
        return fs::remove_file(folder);
    }
    for path in entries(folder)? {
        let removed = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&path),
            Ok(_) if path.file_name().is_some_and(|name| name == REMOVED) => Ok(()),
            Ok(_) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir_all(folder)
}

fn removed_run(folder: &Path, found: &mut GarbageScan) -> io::Result<()> {
    if entries(&folder.join("locks"))?.iter().all(|path| !is_file(path) || is_free(path)) {
        found.add(GarbageKind::OrphanedRun, folder.to_owned(), Removal::Marked);
    }
    Ok(())
}

fn orphaned_run(folder: &Path, found: &mut GarbageScan) -> io::Result<()> {
    if entries(&folder.join("locks"))?.iter().any(|path| is_file(path) && !is_free(path)) {
        // A process of the run is still alive. A later scan finds the directory once the process has ended.
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

/// Whether Lockgate uses this name for a file that is still being written.
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
    // A modification time in the future is not reliable, so the file counts as young.
    changed.is_ok_and(|changed| now.duration_since(changed).is_ok_and(|age| age >= YOUNG))
}

/// Whether no process holds the lock on a file. An unreadable file counts as locked.
fn is_free(path: &Path) -> bool {
    match File::open(path).map(|file| file.try_lock_shared().map_err(|error| (error, file))) {
        Ok(Ok(())) => true,
        Ok(Err((TryLockError::WouldBlock | TryLockError::Error(_), _))) | Err(_) => false,
    }
}

/// A directory of Lockgate itself, which the user may have moved elsewhere with a symbolic link.
fn resolved(folder: PathBuf) -> PathBuf {
    folder.canonicalize().unwrap_or(folder)
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// The paths in a directory. A symbolic link has none: a task could make one that leads out of the project.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if !is_folder(folder) {
        return Ok(Vec::new());
    }
    let mut paths = match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<PathBuf>>>()?,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Vec::new(),
        Err(error) => return Err(error),
    };
    paths.sort();
    Ok(paths)
}

/// The size of a file, or of everything in a directory.
pub(crate) fn size_of(path: &Path) -> u64 {
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
            Removal::File | Removal::Lock | Removal::Tree | Removal::Marked | Removal::Worktree(_) => size_of(&path),
        };
        self.garbage.push(GarbageItem { kind, path, bytes, removal });
    }
}

impl GarbageItem {
    /// Removes the item. It is not an error if it no longer exists.
    pub fn remove(&self, root: &Root) -> io::Result<()> {
        let removed = match &self.removal {
            Removal::File => fs::remove_file(&self.path),
            Removal::Lock => File::open(&self.path).and_then(|file| {
                // Hold the lock until the file is removed, so that no other process can take it in between.
                file.try_lock().map_err(io::Error::from)?;
                fs::remove_file(&self.path)
            }),
            Removal::Tree => fs::remove_dir_all(&self.path),
            Removal::Marked => remove_marked(&self.path),
            Removal::Empty => fs::remove_dir(&self.path),
            Removal::Worktree(kept) => worktree::remove(root, kept, false).map_err(io::Error::other),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Whether the item is counted. The parts of a run's directory count as one.
    pub fn counts(&self) -> bool {
        match self.kind {
            GarbageKind::OrphanedRun => {
                let is_whole = self.path.parent().is_some_and(|parent| parent.ends_with("runs"))
                    && matches!(self.removal, Removal::Tree | Removal::Marked);
                is_whole || self.path.file_name().is_some_and(|name| name == "logs")
            }
            GarbageKind::StaleDriver | GarbageKind::StaleLock | GarbageKind::Unfinished | GarbageKind::UnusedWorktree => true,
        }
    }
}
