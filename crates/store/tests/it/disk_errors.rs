//! Disk and file errors: each has its own error, and nothing is damaged.

use crate::processes::{given_directory, in_a_process};
use lockgate_engine::id::RunId;
use lockgate_store::conformance::HistoryWriter;
use lockgate_store::{Append, AppendError, Settings, SqliteStore, Store, StoreError, verify_store};
use rusqlite::Connection;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// A closed store with one run of three commits.
fn small_store(folder: &Path) -> HistoryWriter {
    let store = SqliteStore::open(folder).unwrap();
    let mut scribe = HistoryWriter::new("aaaa");
    block_on(async {
        for text in ["one", "two", "three"] {
            scribe.write(&store, text).await;
        }
    });
    scribe
}

/// Nothing is damaged, and the run can continue.
fn is_intact_and_continues(store: &SqliteStore, scribe: &mut HistoryWriter) {
    block_on(async {
        let loaded = store.load(&scribe.run).await.unwrap().unwrap();
        assert_eq!(loaded.head(), (scribe.version, scribe.hash));
        scribe.write(store, "on").await;
        assert_eq!(verify_store(store).await, Ok(Vec::new()));
    });
}

/// Appends large materialized states until the store refuses.
fn fill(store: &SqliteStore, scribe: &mut HistoryWriter, bytes: usize) -> AppendError {
    block_on(async {
        for number in 0..10_000_u32 {
            let mut append = scribe.next("more");
            let value = [number.to_le_bytes().to_vec(), vec![1; bytes]].concat();
            append.index.referenced_values = vec![lockgate_engine::digest::Digest::of(&value)];
            append.values = vec![(append.index.referenced_values[0], value)];
            if let Err(error) = scribe.append(store, append).await {
                return error;
            }
        }
        panic!("the store took everything");
    })
}

#[test]
fn reaching_the_page_limit_is_a_full_disk_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut scribe = small_store(folder.path());
    let path = folder.path().join("lockgate.db");
    for bytes in [2_000, 100_000] {
        let settings = Settings { max_pages: Some(200), ..Settings::default() };
        let store = SqliteStore::open_with(folder.path(), settings).unwrap();
        let error = fill(&store, &mut scribe, bytes);
        assert_eq!(error, AppendError::Store(StoreError::Full(path.clone())));
        assert!(error.to_string().contains("free some space"), "{error}");
        let loaded = block_on(store.load(&scribe.run)).unwrap().unwrap();
        assert_eq!(loaded.head(), (scribe.version, scribe.hash));
    }
    is_intact_and_continues(&SqliteStore::open(folder.path()).unwrap(), &mut scribe);
}

#[test]
fn reaching_the_file_size_limit_is_a_full_disk_error() {
    if let Some(folder) = given_directory() {
        let store = SqliteStore::open(&folder).unwrap();
        let mut scribe = small_store(&folder);
        for bytes in [500, 200_000] {
            assert_eq!(fill(&store, &mut scribe, bytes), AppendError::Store(StoreError::Full(folder.join("lockgate.db"))));
        }
        // The same process continues as soon as there is space.
        let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
        setrlimit(Resource::Fsize, Rlimit { current: maximum, maximum }).unwrap();
        is_intact_and_continues(&store, &mut scribe);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let limited = in_a_process(
        "trap '' XFSZ; ulimit -S -f 2000;",
        "disk_errors::reaching_the_file_size_limit_is_a_full_disk_error",
        folder.path(),
    );
    assert!(limited.status.success(), "{}", String::from_utf8_lossy(&limited.stderr));
    let store = SqliteStore::open_existing(folder.path()).unwrap();
    assert_eq!(block_on(verify_store(&store)), Ok(Vec::new()));
}

/// Applies file permissions to root as well, for this thread and those it starts.
pub(crate) fn obey_permissions() {
    let mut sets = capabilities(None).unwrap();
    let all = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH | CapabilitySet::FOWNER;
    sets.effective.remove(all);
    sets.permitted.remove(all);
    set_capabilities(None, sets).unwrap();
}

#[test]
fn a_directory_without_write_permission_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let (inside, database) = (folder.path().join("store"), folder.path().join("store/lockgate.db"));
    let refused = |expected: &Path| {
        let open = || {
            obey_permissions();
            SqliteStore::open(&inside).unwrap_err()
        };
        let error = std::thread::scope(|scope| scope.spawn(open).join().unwrap());
        assert_eq!(error, StoreError::ReadOnly(expected.to_owned()));
        assert!(error.to_string().contains("make it and its directory writable"), "{error}");
    };
    set(folder.path(), 0o555);
    refused(&inside);
    set(folder.path(), 0o755);
    fs::create_dir(&inside).unwrap();
    set(&inside, 0o555);
    refused(&inside);
    set(&inside, 0o755);
    let mut scribe = small_store(&inside);
    set(&inside, 0o555);
    refused(&database);
    set(&database, 0o444);
    refused(&database);
    set(&inside, 0o755);
    refused(&database);
    set(&database, 0o644);
    is_intact_and_continues(&SqliteStore::open(&inside).unwrap(), &mut scribe);
}

#[test]
fn a_database_kept_locked_by_another_process_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut scribe = small_store(folder.path());
    let settings = Settings { lock_wait: Duration::from_millis(30), ..Settings::default() };
    let store = SqliteStore::open_with(folder.path(), settings).unwrap();
    let path = folder.path().join("lockgate.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = block_on(store.append(scribe.next("no"))).unwrap_err();
    assert_eq!(error, AppendError::Store(StoreError::Locked(path.clone())));
    assert!(error.to_string().contains("another process keeps"), "{error}");
    assert_eq!(block_on(store.load(&scribe.run)).unwrap().unwrap().head().0, 3, "reading needs no lock");
    other.execute_batch("ROLLBACK").unwrap();
    is_intact_and_continues(&store, &mut scribe);
    drop(store);
    other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; UPDATE runs SET epoch = epoch; COMMIT").unwrap();
    assert_eq!(SqliteStore::open_with(folder.path(), settings).unwrap_err(), StoreError::Locked(path));
}

#[test]
fn a_lock_released_in_time_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut scribe = small_store(folder.path());
    let store = SqliteStore::open(folder.path()).unwrap();
    let other = Connection::open(folder.path().join("lockgate.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    block_on(async {
        let mut append = store.append(scribe.next("four"));
        // By the second poll, it has tried without success.
        assert!(futures::poll!(append.as_mut()).is_pending());
        assert!(futures::poll!(append.as_mut()).is_pending());
        other.execute_batch("ROLLBACK").unwrap();
        append.await.unwrap();
    });
    let sealed = scribe.seal("four");
    (scribe.version, scribe.hash) = (sealed.version, sealed.hash);
    is_intact_and_continues(&store, &mut scribe);
}

#[test]
fn a_file_that_is_not_a_database_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut scribe = small_store(folder.path());
    let path = folder.path().join("lockgate.db");
    let good = fs::read(&path).unwrap();
    let corrupt = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let error = SqliteStore::open(folder.path()).err();
        assert!(matches!(&error, Some(StoreError::Corrupt(_))), "{error:?}");
        let text = error.unwrap().to_string();
        assert!(text.contains("lockgate.db") && text.contains("restore a backup"), "{text}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "it is unchanged");
    };
    let header = [&[0xff; 16], &good[16..]].concat();
    corrupt(&header);
    corrupt(b"this was never a database, and it is longer than a header would be; so it must be refused as it is............");
    let tables = [&good[..100], &[0xee; 3996], &good[4096..]].concat();
    corrupt(&tables);
    fs::write(&path, &good).unwrap();
    is_intact_and_continues(&SqliteStore::open(folder.path()).unwrap(), &mut scribe);
}

#[test]
fn damage_found_later_is_reported_when_found() {
    let folder = tempfile::tempdir().unwrap();
    small_store(folder.path());
    let path = folder.path().join("lockgate.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[4096..].fill(0xee);
    fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    assert!(matches!(block_on(store.load(&RunId::new("aaaa"))), Err(StoreError::Corrupt(_))));
    let refused = block_on(store.append(HistoryWriter::new("bbbb").next("one")));
    assert!(matches!(refused, Err(AppendError::Store(StoreError::Corrupt(_)))), "{refused:?}");
    let findings = block_on(verify_store(&store)).unwrap();
    assert!(!findings.is_empty());
}

#[test]
fn a_database_of_another_program_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lockgate.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE mine(x); INSERT INTO mine VALUES(1)").unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    assert!(matches!(SqliteStore::open(folder.path()), Err(StoreError::Corrupt(_))));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn an_empty_file_becomes_a_database() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lockgate.db"), b"").unwrap();
    let mut scribe = small_store(folder.path());
    is_intact_and_continues(&SqliteStore::open_existing(folder.path()).unwrap(), &mut scribe);
}

#[test]
fn a_database_of_a_newer_release_is_refused_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let mut scribe = small_store(folder.path());
    let path = folder.path().join("lockgate.db");
    let change = |version: i64| Connection::open(&path).unwrap().pragma_update(None, "user_version", version).unwrap();
    change(7);
    let before = fs::read(&path).unwrap();
    let error = SqliteStore::open(folder.path()).unwrap_err();
    assert_eq!(error, StoreError::Newer { path: path.clone(), found: 7, supported: 3 });
    assert!(error.to_string().contains("use a newer release"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    change(3);
    is_intact_and_continues(&SqliteStore::open(folder.path()).unwrap(), &mut scribe);
}

#[test]
fn a_missing_store_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".lockgate");
    assert_eq!(SqliteStore::open_existing(&path).unwrap_err(), StoreError::NotFound(path.join("lockgate.db")));
    assert!(!path.exists(), "opening creates nothing");
}

#[test]
fn a_materialized_state_ahead_of_its_history_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let mut scribe = HistoryWriter::new("aaaa");
    block_on(async {
        scribe.write(&store, "one").await;
        let append = Append { materialized: Some(b"state".to_vec()), ..scribe.next("two") };
        scribe.append(&store, append).await.unwrap();
    });
    let other = Connection::open(folder.path().join("lockgate.db")).unwrap();
    other.execute("DELETE FROM commits WHERE key & 0xffffffff = 2", []).unwrap();
    assert!(matches!(block_on(store.load(&scribe.run)), Err(StoreError::Corrupt(_))));
}
