//! The directory of a run's snapshots: the files, their index, the `latest` link, pins, and stored values.
//!
//! The files are the truth. The index may lag behind them after a crash, and every list compares it with the file names.

use super::SnapshotError;
use super::file::{self, ENDINGS, Snapshot};
use crate::files::write_atomically;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{RunId, SnapshotId};
use lockgate_engine::snapshot::document::IndexEntry;
use lockgate_engine::time::Timestamp;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// How many matches an error lists.
const LISTED: usize = 10;

const INDEX: &str = "index.yaml";
const LATEST: &str = "latest";
const LOCK: &str = ".lock";
const PINS: &str = "pins";
const VALUES: &str = "values";
const STATE: &str = "state";
const TEMPORARY: &str = "tmp";

/// A directory of snapshots: of one run, or of the runs about one issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotDir {
    dir: PathBuf,
}

/// The index of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// For each run, the number of the last event that was examined for snapshots.
    #[serde(default)]
    pub through: BTreeMap<RunId, u64>,
    #[serde(default)]
    pub issue_number: Option<u64>,
    pub checkpoints: Vec<IndexEntry>,
    pub latest: Option<SnapshotId>,
    pub total_checkpoints: usize,
}

/// The snapshots of a directory, oldest first, and the files that cannot be read.
#[derive(Debug, Default)]
pub struct Listing {
    pub snapshots: Vec<IndexEntry>,
    pub pinned: BTreeSet<SnapshotId>,
    pub unreadable: Vec<SnapshotError>,
    /// For each run, the number of the last event that was examined for snapshots.
    pub through: BTreeMap<RunId, u64>,
    pub issue_number: Option<u64>,
}

impl Listing {
    /// Adds snapshots that were just written.
    pub(super) fn add(&mut self, written: &[IndexEntry]) {
        self.snapshots.retain(|known| !written.iter().any(|new| new.checkpoint_id == known.checkpoint_id));
        self.snapshots.extend(written.iter().cloned());
        self.snapshots.sort_by(|one, two| order(one).cmp(&order(two)));
    }

    /// The snapshots of one run, in the order of its history.
    pub fn of_run(&self, run: &RunId) -> Vec<&IndexEntry> {
        let mut known: Vec<&IndexEntry> = self.snapshots.iter().filter(|known| known.run.as_ref() == Some(run)).collect();
        known.sort_by_key(|known| known.seq);
        known
    }
}

/// Exclusive access to a directory; released when dropped.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

/// Files that become durable together.
#[derive(Debug)]
pub(super) struct Batch {
    dir: PathBuf,
    /// Temporary and final paths.
    files: Vec<(PathBuf, PathBuf)>,
}

/// The path of a stored value.
pub(super) fn value_file(dir: &Path, digest: Digest) -> PathBuf {
    dir.join(VALUES).join(digest.to_string())
}

/// The path of the state of a snapshot, if the state is too large for the snapshot itself.
pub(super) fn state_file(snapshot: &Path, id: &SnapshotId) -> PathBuf {
    snapshot.with_file_name(format!("{id}.{STATE}"))
}

impl SnapshotDir {
    pub fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Waits for exclusive access. Creates the directory, but not the one that it is in: a project that was removed must not come
    /// back.
    pub fn lock(&self) -> io::Result<DirLock> {
        match fs::create_dir(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let file = File::options().create(true).truncate(false).write(true).open(self.dir.join(LOCK))?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(DirLock { _file: file })
    }

    /// Starts to write files. Temporary files that a killed process left behind are removed.
    pub(super) fn batch(&self, _locked: &DirLock) -> io::Result<Batch> {
        for dir in [self.dir.clone(), self.dir.join(VALUES)] {
            let entries = fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path());
            let is_temporary = |path: &PathBuf| path.extension().is_some_and(|ending| ending == TEMPORARY);
            entries.filter(is_temporary).try_for_each(|path| remove_if_there(&path))?;
        }
        Ok(Batch { dir: self.dir.clone(), files: Vec::new() })
    }

    pub(super) fn has_value(&self, digest: Digest) -> bool {
        value_file(&self.dir, digest).symlink_metadata().is_ok_and(|known| known.is_file())
    }

    /// Writes the index and the `latest` link for these snapshots, oldest first.
    pub(super) fn write_index(
        &self,
        snapshots: &[IndexEntry],
        through: BTreeMap<RunId, u64>,
        issue: Option<u64>,
    ) -> io::Result<()> {
        let latest = snapshots.last().map(|latest| latest.checkpoint_id.clone());
        let index = Index {
            through,
            issue_number: issue,
            checkpoints: snapshots.to_vec(),
            total_checkpoints: snapshots.len(),
            latest: latest.clone(),
        };
        let text = serde_saphyr::to_string(&index).map_err(|error| io::Error::other(error.to_string()))?;
        // The index is rebuilt from the files if it is lost, so it need not be durable.
        replace(&self.dir, INDEX, text.as_bytes())?;
        match latest.and_then(|latest| self.file_of(&latest)) {
            Some(path) => self.link_latest(&path),
            None => remove_if_there(&self.dir.join(LATEST)),
        }
    }

    fn link_latest(&self, target: &Path) -> io::Result<()> {
        let Some(name) = target.file_name() else { return Ok(()) };
        let link = self.dir.join(LATEST);
        if fs::read_link(&link).is_ok_and(|known| known.as_os_str() == name) {
            return Ok(());
        }
        let temporary = self.dir.join(".latest.tmp");
        remove_if_there(&temporary)?;
        std::os::unix::fs::symlink(name, &temporary)?;
        fs::rename(&temporary, &link)
    }

    /// The path of a snapshot's file.
    fn file_of(&self, id: &SnapshotId) -> Option<PathBuf> {
        let paths = ENDINGS.iter().map(|ending| self.dir.join(format!("{id}.{ending}")));
        paths.into_iter().find(|path| path.symlink_metadata().is_ok())
    }

    /// The index as it was last written; empty if there is none or it cannot be read.
    pub(super) fn index(&self) -> Index {
        let text = file::read_bytes(&self.dir.join(INDEX)).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.and_then(|text| serde_saphyr::from_str(&text).ok()).unwrap_or_default()
    }

    /// Has the events of a run after this one examined again.
    pub fn reset_through(&self, run: &RunId, seq: u64) -> Result<(), SnapshotError> {
        if !self.dir.is_dir() {
            return Ok(());
        }
        let reset = || -> io::Result<()> {
            let _lock = self.lock()?;
            let listing = self.list().map_err(|error| io::Error::other(error.to_string()))?;
            let mut through = listing.through;
            through.insert(run.clone(), seq);
            self.write_index(&listing.snapshots, through, listing.issue_number)
        };
        reset().map_err(SnapshotError::io(&self.dir))
    }

    /// All snapshots, oldest first: those of the index whose files are there, and files that the index lacks.
    pub fn list(&self) -> Result<Listing, SnapshotError> {
        let names = self.names()?;
        let index = self.index();
        let mut known: BTreeMap<&str, &IndexEntry> =
            index.checkpoints.iter().map(|entry| (entry.checkpoint_id.as_str(), entry)).collect();
        let (through, issue_number) = (index.through.clone(), index.issue_number);
        let mut listing = Listing { through, issue_number, pinned: self.pinned(), ..Listing::default() };
        for (id, path) in &names {
            match known.remove(id.as_str()) {
                Some(entry) => listing.snapshots.push(entry.clone()),
                None => match Snapshot::read(path) {
                    Ok(snapshot) => listing.snapshots.push(snapshot.index_entry()),
                    Err(error) => listing.unreadable.push(error),
                },
            }
        }
        listing.snapshots.sort_by(|one, two| order(one).cmp(&order(two)));
        Ok(listing)
    }

    /// The files of snapshots by id.
    fn names(&self) -> Result<BTreeMap<String, PathBuf>, SnapshotError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(SnapshotError::io(&self.dir)(error)),
        };
        let paths = entries.flatten().map(|entry| entry.path());
        Ok(paths.filter_map(|path| Some((file::id_of_file(&path)?, path))).collect())
    }

    /// The ids of all files.
    pub fn ids(&self) -> Result<Vec<String>, SnapshotError> {
        Ok(self.names()?.into_keys().collect())
    }

    /// Whether there is a snapshot with this id, or one that starts with it.
    pub fn contains(&self, id: &str) -> bool {
        let starts = || self.names().is_ok_and(|names| names.keys().any(|name| name.starts_with(id)));
        file::is_safe_id(id) && (self.file_of(&SnapshotId::new(id)).is_some() || starts())
    }

    /// Reads a snapshot by its id, or by the beginning of one.
    pub fn read(&self, id: &str) -> Result<Snapshot, SnapshotError> {
        let not_found = || SnapshotError::NotFound { id: id.to_owned(), dir: self.dir.clone() };
        if !file::is_safe_id(id) {
            return Err(not_found());
        }
        if let Some(path) = self.file_of(&SnapshotId::new(id)) {
            return Snapshot::read(&path);
        }
        let names = self.names()?;
        let matching: Vec<(&String, &PathBuf)> = names.iter().filter(|(name, _)| name.starts_with(id)).collect();
        match matching.as_slice() {
            [(_, path)] => Snapshot::read(path),
            [] => Err(not_found()),
            several => {
                let ids = several.iter().take(LISTED).map(|(id, _)| (*id).clone()).collect();
                Err(SnapshotError::Ambiguous { id: id.to_owned(), ids })
            }
        }
    }

    /// The newest snapshot of a run.
    pub fn latest(&self, run: &RunId) -> Result<Snapshot, SnapshotError> {
        let listing = self.list()?;
        let newest = listing.of_run(run).last().map(|newest| newest.checkpoint_id.clone());
        let empty = || SnapshotError::Empty { dir: self.dir.clone() };
        let mut unreadable = listing.unreadable;
        match newest {
            Some(newest) => self.read(newest.as_str()),
            None => Err(unreadable.pop().unwrap_or_else(empty)),
        }
    }

    /// Removes a snapshot with its state.
    pub(super) fn remove(&self, id: &SnapshotId) -> io::Result<()> {
        // The state is of no use without the snapshot; the other order could leave a snapshot without its state.
        for ending in ENDINGS {
            remove_if_there(&self.dir.join(format!("{id}.{ending}")))?;
        }
        remove_if_there(&self.dir.join(format!("{id}.{STATE}")))
    }

    /// Removes everything that belongs to a run, and the directory if nothing else is in it.
    pub fn remove_run(&self, run: &RunId) -> Result<(), SnapshotError> {
        let removed = || -> io::Result<()> {
            let lock = match self.lock() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                locked => locked?,
            };
            let mut listing = self.list().map_err(|error| io::Error::other(error.to_string()))?;
            let own: Vec<SnapshotId> = listing.of_run(run).into_iter().map(|known| known.checkpoint_id.clone()).collect();
            own.iter().try_for_each(|id| self.remove(id))?;
            listing.snapshots.retain(|known| !own.contains(&known.checkpoint_id));
            listing.through.remove(run);
            if listing.snapshots.is_empty() && listing.unreadable.is_empty() {
                drop(lock);
                return fs::remove_dir_all(&self.dir);
            }
            self.write_index(&listing.snapshots, listing.through, listing.issue_number)
        };
        removed().map_err(SnapshotError::io(&self.dir))
    }

    /// Protects a snapshot from removal, durably.
    pub fn pin(&self, id: &SnapshotId) -> io::Result<()> {
        let pins = self.dir.join(PINS);
        fs::create_dir_all(&pins)?;
        File::open(&self.dir)?.sync_all()?;
        write_atomically(&pins.join(id.as_str()), b"")
    }

    pub fn unpin(&self, id: &SnapshotId) -> io::Result<()> {
        remove_if_there(&self.dir.join(PINS).join(id.as_str()))
    }

    fn pinned(&self) -> BTreeSet<SnapshotId> {
        let entries = fs::read_dir(self.dir.join(PINS)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).map(SnapshotId).collect()
    }
}

impl Batch {
    /// Adds the file of a snapshot. Returns its size.
    pub(super) fn add(&mut self, id: &SnapshotId, content: &Map<String, Value>, compress: bool) -> io::Result<u64> {
        let text = file::text(content);
        let (ending, bytes) = match compress {
            true => (ENDINGS[1], compressed(&text)?),
            false => (ENDINGS[0], text.into_bytes()),
        };
        self.write(&self.dir.clone(), &format!("{id}.{ending}"), &bytes)?;
        Ok(bytes.len() as u64)
    }

    /// Adds the state of a snapshot as a file of its own.
    pub(super) fn add_state(&mut self, id: &SnapshotId, bytes: &[u8]) -> io::Result<()> {
        self.write(&self.dir.clone(), &format!("{id}.{STATE}"), bytes)
    }

    pub(super) fn add_value(&mut self, digest: Digest, bytes: &[u8]) -> io::Result<()> {
        let values = self.dir.join(VALUES);
        fs::create_dir_all(&values)?;
        self.write(&values, &digest.to_string(), bytes)
    }

    fn write(&mut self, dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = dir.join(format!(".{name}.{TEMPORARY}"));
        fs::write(&temporary, bytes)?;
        self.files.push((temporary, dir.join(name)));
        Ok(())
    }

    /// Makes all files durable, then gives them their names: stored values and states first, so that no snapshot lacks them.
    pub(super) fn finish(mut self) -> io::Result<()> {
        for (temporary, _) in &self.files {
            File::open(temporary)?.sync_data()?;
        }
        self.files.sort_by_key(|(_, path)| file::id_of_file(path).is_some());
        let mut dirs = BTreeSet::new();
        for (temporary, path) in &self.files {
            fs::rename(temporary, path)?;
            dirs.extend(path.parent());
        }
        dirs.into_iter().try_for_each(|dir| File::open(dir)?.sync_all())
    }
}

/// Snapshots in the order of their histories; those of different runs by time.
fn order(entry: &IndexEntry) -> (Timestamp, u64, &SnapshotId) {
    (entry.created_at, entry.seq, &entry.checkpoint_id)
}

fn compressed(text: &str) -> io::Result<Vec<u8>> {
    let bytes = ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    Ok(bytes)
}

/// Replaces a file atomically, but not durably.
fn replace(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = dir.join(format!(".{name}.{TEMPORARY}"));
    fs::write(&temporary, bytes)?;
    fs::rename(&temporary, dir.join(name))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
