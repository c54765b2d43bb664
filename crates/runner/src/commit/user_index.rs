//! Changes the user's index under git's own lock, so that a kill at any time leaves neither a lock nor half an index behind.
//!
//! Git locks an index by creating `index.lock` next to it, writes the new index into it, and renames it. A git process that
//! is killed in between leaves the lock, and every later git command refuses to work. Here the lock is a hard link to a file
//! of our own, so that the next process recognizes it. It is held while a commit is made, as git does for `git commit FILE`,
//! so that the user's commits do not mix with ours.

use super::merge::{Change, Versions, between, setting, staged};
use super::repository::{Repository, remove};
use super::{CommitError, FileUse};
use crate::process::end_orphans;
use lockgate_store::cleanup;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long another git process may hold the index.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A generous bound for how long git holds the lock of a ref.
const INSTANT: Duration = Duration::from_secs(1);

/// Represents a missing commit.
const NO_COMMIT: &str = "none";

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Repairs the state after a kill during a change of the index: completes the change if its commit was made, otherwise
/// reverts it. No other process may be committing in this working tree.
pub(super) fn recover(repository: &Repository) -> Result<(), CommitError> {
    let names = Names::next_to(&repository.index);
    if !names.are_left_behind() {
        return Ok(());
    }
    let journal = Journal::read(&names.journal);
    if let Some(lock) = journal.as_ref().and_then(|journal| journal.lock.as_deref()) {
        // The git of a killed driver may still be running, and would commit concurrently.
        end_orphans(lock).map_err(CommitError::Orphans)?;
    }
    remove_stale_locks(repository)?;
    let committed = match journal {
        Some(journal) if journal.is_committed(repository)? => Some(journal),
        Some(_) | None => None,
    };
    if is_same_file(&names.own, &names.lock) {
        match committed.is_some() {
            true => fs::rename(&names.lock, &repository.index).map_err(|error| cannot_write(&names.lock, error))?,
            false => remove(&names.lock)?,
        }
    }
    remove(&names.own)?;
    if let Some(journal) = committed {
        // The lock may have been removed manually, and hooks may have changed what was committed.
        set_unstaged(repository, &repository.tree_of(journal.head.as_deref())?)?;
        set_unstaged(repository, &journal.tree)?;
    }
    remove(&names.journal)
}

/// Updates index entries that are unchanged since `tree` to the current commit; other staged changes are kept.
pub(super) fn set_unstaged(repository: &Repository, tree: &str) -> Result<(), CommitError> {
    let committed = repository.tree_of(repository.head()?.as_deref())?;
    let staged = staged(repository, &committed)?;
    let is_old = |path: &Vec<u8>, change: &Change| staged.get(path).is_some_and(|staged| staged.after == change.before);
    let changed = between(repository, tree, &committed)?.into_iter().filter(|(path, change)| is_old(path, change));
    let versions: Versions = changed.map(|(path, change)| (path, change.after)).collect();
    if versions.is_empty() {
        return Ok(());
    }
    let head = repository.head()?;
    let locked = Locked::take(repository)?;
    locked.prepare(&versions, head.as_deref(), tree)?;
    locked.install()
}

/// Removes the locks of the branch that our git left when it was killed with us. Any other git process holds them only for an
/// instant.
fn remove_stale_locks(repository: &Repository) -> Result<(), CommitError> {
    let branch = repository.line(&["symbolic-ref", "--quiet", "HEAD"]).ok();
    for name in [Some("HEAD".to_owned()), branch].into_iter().flatten() {
        let lock = repository.git_path(&format!("{name}.lock"))?;
        let inode = |path: &Path| path.symlink_metadata().ok().map(|file| file.ino());
        let Some(found) = inode(&lock) else { continue };
        let until = Instant::now() + INSTANT;
        while Instant::now() < until && inode(&lock) == Some(found) {
            std::thread::sleep(POLL_INTERVAL);
        }
        if inode(&lock) == Some(found) {
            remove(&lock)?;
        }
    }
    Ok(())
}

/// What is needed to complete a change of the index.
struct Journal {
    /// The previously checked-out commit; `None` before the first one.
    head: Option<String>,
    /// The tree that was to be committed.
    tree: String,
    /// The lock that git holds while it commits.
    lock: Option<PathBuf>,
}

impl Journal {
    fn read(path: &Path) -> Option<Self> {
        let written = match fs::read(path) {
            Ok(written) => written,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(%error, path = %path.display(), "cannot read the journal of a commit");
                }
                return None;
            }
        };
        let mut lines = written.splitn(3, |byte| *byte == b'\n');
        let mut line = || lines.next().map(|line| String::from_utf8_lossy(line).into_owned());
        let (head, tree) = (line()?, line()?);
        let lock = lines.next().filter(|lock| !lock.is_empty()).map(|lock| PathBuf::from(OsStr::from_bytes(lock)));
        Some(Self { head: Some(head).filter(|head| head != NO_COMMIT), tree, lock })
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut written = format!("{}\n{}\n", self.head.as_deref().unwrap_or(NO_COMMIT), self.tree).into_bytes();
        written.extend(self.lock.as_deref().map(|lock| lock.as_os_str().as_bytes()).unwrap_or_default());
        fs::write(path, written)
    }

    /// Whether a commit was made on top of the previously checked-out one.
    fn is_committed(&self, repository: &Repository) -> Result<bool, CommitError> {
        if repository.head()?.is_none() {
            return Ok(false);
        }
        let commits = repository.line(&["rev-list", "--first-parent", "--parents", "--max-count=100", "HEAD"])?;
        Ok(commits.lines().any(|line| line.split(' ').nth(1) == self.head.as_deref()))
    }
}

/// Whether a change of the index in the git directory of this file was started but not completed.
pub(super) fn is_left_behind(next_to: &Path) -> bool {
    Names::next_to(&next_to.with_file_name("index")).are_left_behind()
}

/// The user's index, locked. Dropping it discards the prepared index.
pub(super) struct Locked<'r> {
    repository: &'r Repository,
    names: Names,
}

impl<'r> Locked<'r> {
    pub(super) fn take(repository: &'r Repository) -> Result<Self, CommitError> {
        let names = Names::next_to(&repository.index);
        File::create(&names.own).map_err(|error| cannot_write(&names.own, error))?;
        if let Ok(index) = repository.index.metadata() {
            // Other users may have to read it too.
            fs::set_permissions(&names.own, index.permissions()).map_err(|error| cannot_write(&names.own, error))?;
        }
        let locked = Self { repository, names };
        let until = Instant::now() + LOCK_TIMEOUT;
        loop {
            match fs::hard_link(&locked.names.own, &locked.names.lock) {
                Ok(()) => return Ok(locked),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && Instant::now() < until => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(CommitError::Busy { lock: locked.names.lock.clone() });
                }
                Err(error) => return Err(cannot_write(&locked.names.lock, error)),
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Writes the index with new versions of some files, to be installed once `HEAD` is no longer this commit, which `tree`
    /// is about to replace.
    pub(super) fn prepare(&self, versions: &Versions, head: Option<&str>, tree: &str) -> Result<(), CommitError> {
        let index = self.repository.own_index()?;
        let (arguments, input) = setting(self.repository, versions);
        index.run(&arguments, &input)?;
        let write = || {
            let mut file = File::options().write(true).truncate(true).open(&self.names.own)?;
            file.write_all(&fs::read(index.path())?)?;
            file.sync_all()?;
            let lock = Some(self.repository.lock.clone());
            Journal { head: head.map(str::to_owned), tree: tree.to_owned(), lock }.write(&self.names.journal)
        };
        write().map_err(|error| cannot_write(&self.names.lock, error))
    }

    /// Installs the prepared index.
    pub(super) fn install(self) -> Result<(), CommitError> {
        fs::rename(&self.names.lock, &self.repository.index).map_err(|error| cannot_write(&self.names.lock, error))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // If a file cannot be removed now, the next process removes it.
        if is_same_file(&self.names.own, &self.names.lock) {
            cleanup::remove_file(&self.names.lock);
        }
        cleanup::remove_file(&self.names.journal);
        cleanup::remove_file(&self.names.own);
    }
}

struct Names {
    /// Our own file, which the lock is a hard link to.
    own: PathBuf,
    /// What is needed to complete the change.
    journal: PathBuf,
    lock: PathBuf,
}

impl Names {
    fn next_to(index: &Path) -> Self {
        let [own, journal, lock] = ["lockgate", "lockgate-journal", "lock"].map(|ending| index.with_extension(ending));
        Self { own, journal, lock }
    }

    fn are_left_behind(&self) -> bool {
        [&self.own, &self.journal].iter().any(|path| path.symlink_metadata().is_ok())
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.symlink_metadata().ok().map(|file| (file.dev(), file.ino()));
    place(one).is_some_and(|one| Some(one) == place(other))
}

fn cannot_write(path: &Path, error: io::Error) -> CommitError {
    CommitError::file(path, FileUse::Written, error)
}
