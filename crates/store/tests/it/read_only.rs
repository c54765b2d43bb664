//! Reading when nothing can be written: on a full disk, and in a read-only directory.

use crate::disk_errors::obey_permissions;
use crate::processes::{block_on, given_directory, in_a_process};
use lockgate_engine::id::RunId;
use lockgate_store::conformance::HistoryWriter;
use lockgate_store::{AppendError, SqliteStore, Store, StoreError, verify_store};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file size limit simulates a full disk.
const FULL: &str = "trap '' XFSZ; ulimit -S -f 0;";

/// The files of a store, and how many commits they contain.
struct Files {
    folder: tempfile::TempDir,
    commits: u64,
}

impl Files {
    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// As a closed store leaves them: there is no log.
    fn closed() -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap(), commits: 3 };
        write(&SqliteStore::open(&files.store()).unwrap(), &mut HistoryWriter::new("aaaa"), 3);
        files
    }

    /// As a killed process leaves them: most data is in the log.
    fn killed() -> Self {
        let (files, living) = (Self::closed(), Self::closed());
        let store = SqliteStore::open(&living.store()).unwrap();
        let mut scribe = HistoryWriter::new("aaaa");
        (scribe.version, scribe.hash) = block_on(store.load(&scribe.run)).unwrap().unwrap().head();
        write(&store, &mut scribe, 2);
        for name in ["lockgate.db", "lockgate.db-wal", "lockgate.db-shm"] {
            fs::copy(living.store().join(name), files.store().join(name)).unwrap();
        }
        Self { commits: 5, ..files }
    }

    /// Like a copy that left out the index of the log.
    fn without_index() -> Self {
        let files = Self::killed();
        fs::remove_file(files.store().join("lockgate.db-shm")).unwrap();
        files
    }

    /// Makes the files read-only, or writable again.
    fn lock(&self, locked: bool) {
        let set = |path: PathBuf, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        for entry in fs::read_dir(self.store()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                set(path, if locked { 0o444 } else { 0o644 });
            }
        }
        set(self.store(), if locked { 0o555 } else { 0o755 });
    }

    /// Reads everything in a separate process.
    fn are_read(&self, shell: &str) {
        fs::write(self.folder.path().join("expected"), self.commits.to_string()).unwrap();
        let before = contents(&self.store());
        let child = in_a_process(shell, "read_only::a_read_only_store_reads_everything_and_writes_nothing", self.folder.path());
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
        assert_eq!(contents(&self.store()), before, "reading changes nothing");
    }
}

fn write(store: &SqliteStore, scribe: &mut HistoryWriter, commits: u32) {
    block_on(async {
        for number in 0..commits {
            scribe.write(store, &format!("number {number}")).await;
        }
    });
}

/// The non-empty files of a store.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && !path.to_string_lossy().ends_with("-shm"))
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .filter(|(_, bytes)| !bytes.is_empty())
        .collect();
    files.sort();
    files
}

fn head(store: &SqliteStore) -> u64 {
    block_on(store.load(&RunId::new("aaaa"))).unwrap().unwrap().head().0
}

#[test]
fn a_read_only_store_reads_everything_and_writes_nothing() {
    let Some(folder) = given_directory() else {
        for files in [Files::closed(), Files::killed(), Files::without_index()] {
            files.are_read(FULL);
            files.lock(true);
            files.are_read("");
            files.lock(false);
            write_on(&files);
        }
        return;
    };
    obey_permissions();
    let store = folder.join("store");
    let refused = SqliteStore::open_existing(&store).err();
    assert!(matches!(refused, Some(StoreError::Full(_) | StoreError::ReadOnly(_))), "{refused:?}");
    let read = SqliteStore::open_read_only(&store).unwrap();
    assert_eq!(head(&read).to_string(), fs::read_to_string(folder.join("expected")).unwrap());
    assert_eq!(block_on(verify_store(&read)), Ok(Vec::new()));
    let refused = block_on(read.append(HistoryWriter::new("bbbb").next("one")));
    assert!(matches!(refused, Err(AppendError::Store(StoreError::Full(_) | StoreError::ReadOnly(_)))), "{refused:?}");
}

/// Nothing is lost, and the store can be written again.
fn write_on(files: &Files) {
    let store = SqliteStore::open(&files.store()).unwrap();
    assert_eq!(head(&store), files.commits);
    let mut scribe = HistoryWriter::new("aaaa");
    (scribe.version, scribe.hash) = block_on(store.load(&scribe.run)).unwrap().unwrap().head();
    write(&store, &mut scribe, 1);
    assert_eq!(block_on(verify_store(&store)), Ok(Vec::new()));
}

#[test]
fn writes_of_another_process_are_seen() {
    let mut files = Files::closed();
    let store = SqliteStore::open(&files.store()).unwrap();
    let mut scribe = HistoryWriter::new("aaaa");
    (scribe.version, scribe.hash) = block_on(store.load(&scribe.run)).unwrap().unwrap().head();
    for _ in 0..2 {
        write(&store, &mut scribe, 1);
        files.commits += 1;
        files.lock(true);
        files.are_read("");
        files.lock(false);
    }
}

#[test]
fn a_reader_without_locks_detects_concurrent_writes() {
    let files = Files::closed();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            files.lock(true);
            obey_permissions();
            let read = SqliteStore::open_read_only(&files.store()).unwrap();
            assert_eq!(head(&read), 3);
            let changes = read.changes();
            assert_eq!(read.changes(), changes);
            files.lock(false);
            write_on(&files);
            files.lock(true);
            assert_ne!(read.changes(), changes);
            assert_eq!(head(&read), 4);
            files.lock(false);
        });
    });
}

#[test]
fn a_read_only_store_can_be_backed_up() {
    for files in [Files::closed(), Files::killed(), Files::without_index()] {
        let elsewhere = tempfile::tempdir().unwrap();
        let copy = elsewhere.path().join("copy");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                files.lock(true);
                obey_permissions();
                let read = SqliteStore::open_read_only(&files.store()).unwrap();
                block_on(read.back_up(copy.clone())).unwrap();
                files.lock(false);
            });
        });
        let folder = elsewhere.path().join("restored");
        fs::create_dir(&folder).unwrap();
        fs::rename(&copy, folder.join("lockgate.db")).unwrap();
        assert_eq!(head(&SqliteStore::open_existing(&folder).unwrap()), files.commits);
    }
}

#[test]
fn a_foreign_database_is_also_refused_read_only() {
    let files = Files::closed();
    fs::write(files.store().join("lockgate.db"), "x".repeat(5000)).unwrap();
    let refuse = || SqliteStore::open_read_only(&files.store()).unwrap_err();
    assert!(matches!(refuse(), StoreError::Corrupt(_)));
    fs::write(files.store().join("lockgate.db"), "").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            files.lock(true);
            obey_permissions();
            assert!(matches!(refuse(), StoreError::ReadOnly(_)), "an empty file has nothing to read");
            files.lock(false);
        });
    });
}

/// The number of locks held on a file.
fn locks(path: &Path) -> usize {
    use std::os::unix::fs::MetadataExt;
    let file = format!(":{} ", fs::metadata(path).unwrap().ino());
    fs::read_to_string("/proc/locks").unwrap().lines().filter(|line| line.contains(&file)).count()
}

#[test]
fn closing_a_reader_without_locks_releases_no_other_locks() {
    let files = Files::without_index();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            files.lock(true);
            obey_permissions();
            let read = SqliteStore::open_read_only(&files.store()).unwrap();
            assert_eq!(head(&read), 5);
            files.lock(false);
            let other = SqliteStore::open(&files.store()).unwrap();
            assert_eq!(head(&other), 5);
            let held = locks(&files.store().join("lockgate.db"));
            assert!(held > 0, "an open store keeps others from deleting the log");
            // The files have changed, so it reopens them, and is then dropped.
            assert_eq!(head(&read), 5);
            drop(read);
            assert!(locks(&files.store().join("lockgate.db")) >= held);
        });
    });
}

#[test]
fn the_log_is_found_next_to_a_symlinked_database() {
    let files = Files::without_index();
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(files.store().join("lockgate.db"), elsewhere.path().join("lockgate.db")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            files.lock(true);
            obey_permissions();
            assert_eq!(head(&SqliteStore::open_read_only(elsewhere.path()).unwrap()), files.commits);
            files.lock(false);
        });
    });
}
