//! Changing the user's index under git's own lock, so that a kill at any moment leaves neither a lock nor half an index behind.
//!
//! Git locks an index by creating `index.lock` beside it, writes the new index into it, and renames it. A git process that is killed in
//! between leaves the lock, and every later git command refuses to work. Here the lock is a hard link to a file of our own: whoever comes
//! next recognises a lock that is the same file. It is held while a commit is made, as git does for the commit of some files, so that the
//! user's commits do not mix with ours.

use super::merge::{Versions, setting};
use super::repository::Repository;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long somebody else's git may take with the index.
const PATIENCE: Duration = Duration::from_secs(10);

const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Repairs what is left where we were killed while we changed the index: completes the change if its commit was made, else takes it back.
pub(super) fn recover(repository: &Repository) -> Result<(), String> {
    let Names { own, head, lock } = Names::beside(&repository.index);
    if is_same_file(&own, &lock) {
        let before = fs::read_to_string(&head).unwrap_or_default();
        let is_committed = !before.is_empty() && before != written(repository.head()?.as_deref());
        match is_committed {
            true => fs::rename(&lock, &repository.index).map_err(|error| cannot_write(&lock, &error))?,
            false => remove(&lock)?,
        }
    }
    remove(&head)?;
    remove(&own)
}

/// Whether a change of the index in the git directory of this file was begun and not completed.
pub(super) fn is_left_behind(beside: &Path) -> bool {
    Names::beside(&beside.with_file_name("index")).own.symlink_metadata().is_ok()
}

/// The user's index while nobody else may change it. What was prepared is given up when this is dropped.
pub(super) struct Locked<'r> {
    repository: &'r Repository,
    names: Names,
}

impl<'r> Locked<'r> {
    /// Locks the index as git does.
    pub(super) fn take(repository: &'r Repository) -> Result<Self, String> {
        recover(repository)?;
        let names = Names::beside(&repository.index);
        File::create(&names.own).map_err(|error| cannot_write(&names.own, &error))?;
        let locked = Self { repository, names };
        let until = Instant::now() + PATIENCE;
        loop {
            match fs::hard_link(&locked.names.own, &locked.names.lock) {
                Ok(()) => return Ok(locked),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && Instant::now() < until => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let lock = locked.names.lock.display();
                    return Err(format!("another git process works in this repository; if there is none, remove {lock}"));
                }
                Err(error) => return Err(cannot_write(&locked.names.lock, &error)),
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Writes the index with other versions of some files, which counts once the branch has left this commit.
    pub(super) fn prepare(&self, versions: &Versions, head: Option<&str>) -> Result<(), String> {
        let index = self.repository.own_index()?;
        let (arguments, input) = setting(self.repository, versions);
        index.run(&arguments, &input)?;
        let write = || {
            let mut file = File::options().write(true).truncate(true).open(&self.names.own)?;
            file.write_all(&fs::read(index.path())?)?;
            file.sync_all()?;
            fs::write(&self.names.head, written(head))
        };
        write().map_err(|error| cannot_write(&self.names.lock, &error))
    }

    /// Makes what was prepared the user's index.
    pub(super) fn install(self) -> Result<(), String> {
        fs::rename(&self.names.lock, &self.repository.index).map_err(|error| cannot_write(&self.names.lock, &error))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // What cannot be removed now is removed by whoever comes next.
        if is_same_file(&self.names.own, &self.names.lock) {
            let _ = fs::remove_file(&self.names.lock);
        }
        let _ = fs::remove_file(&self.names.head);
        let _ = fs::remove_file(&self.names.own);
    }
}

/// The files beside an index.
struct Names {
    /// Our own, which the lock is a link to.
    own: PathBuf,
    /// The commit that was checked out when the change was prepared.
    head: PathBuf,
    /// Git's lock.
    lock: PathBuf,
}

impl Names {
    fn beside(index: &Path) -> Self {
        let [own, head, lock] = ["lockgate", "lockgate-head", "lock"].map(|ending| index.with_extension(ending));
        Self { own, head, lock }
    }
}

/// A commit as the file says it: never empty.
fn written(head: Option<&str>) -> String {
    format!("{}\n", head.unwrap_or("none"))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| path.symlink_metadata().ok().map(|file| (file.dev(), file.ino()));
    place(one).is_some_and(|one| Some(one) == place(other))
}

fn remove(path: &Path) -> Result<(), String> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot_write(path, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be written: {error}", path.display())
}
