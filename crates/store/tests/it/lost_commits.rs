//! A truncated write-ahead log: the lost commits are named, and nothing is written until a person accepts the loss.

use lockgate_engine::id::RunId;
use lockgate_store::conformance::HistoryWriter;
use lockgate_store::{Missing, SqliteStore, Store, StoreError, verify_run, verify_store};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const FILES: [&str; 3] = ["lockgate.db", "lockgate.db-wal", "lockgate.db-head"];

/// The files of a process that was killed after these commits: four of `aaaa`, then six of `bbbb`.
async fn killed() -> TempDir {
    let alive = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(alive.path()).unwrap();
    for (run, commits) in [("aaaa", 4), ("bbbb", 6)] {
        let mut scribe = HistoryWriter::new(run);
        for number in 0..commits {
            scribe.write(&store, &format!("commit {number} {}", "x".repeat(3000))).await;
        }
    }
    copy(alive.path(), &FILES)
}

fn copy(from: &Path, files: &[&str]) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for file in files {
        fs::copy(from.join(file), to.path().join(file)).unwrap();
    }
    to
}

fn flip_in_log(folder: &Path, share: f64) {
    let path = folder.join("lockgate.db-wal");
    let mut bytes = fs::read(&path).unwrap();
    // The log is preallocated: its content ends with the last byte that is not zero.
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let place = (end as f64 * share) as usize;
    bytes[place] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

fn refused(folder: &Path) -> Vec<Missing> {
    match SqliteStore::open_existing(folder) {
        Err(StoreError::CommitsMissing { missing, .. }) => missing,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_store_is_intact_after_a_kill() {
    let folder = killed().await;
    let store = SqliteStore::open_existing(folder.path()).unwrap();
    assert_eq!(verify_store(&store).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_flipped_byte_in_the_log_is_reported_with_the_lost_commits() {
    let folder = killed().await;
    flip_in_log(folder.path(), 0.8);
    let missing = refused(folder.path());
    let [Missing { run, first, last: 6 }] = &missing[..] else { panic!("{missing:?}") };
    assert!(*run == RunId::new("bbbb") && (2..=6).contains(first), "{missing:?}");
    let store = SqliteStore::open_read_only(folder.path()).unwrap();
    assert_eq!(store.missing_at_the_end(), missing);
    let findings = verify_store(&store).await.unwrap();
    assert!(findings.iter().any(|found| found.run.as_ref() == Some(run) && found.problem.contains("missing")), "{findings:?}");
    let findings = verify_run(&store, run).await.unwrap().unwrap();
    assert!(findings.iter().any(|found| found.location == missing[0].commits()), "{findings:?}");
    assert_eq!(verify_run(&store, &RunId::new("aaaa")).await, Ok(Some(Vec::new())), "nothing of it is missing");
}

#[tokio::test]
async fn a_deleted_log_is_reported_including_completely_lost_runs() {
    let folder = killed().await;
    fs::remove_file(folder.path().join("lockgate.db-wal")).unwrap();
    let all = ["aaaa", "bbbb"].iter().zip([4, 6]).map(|(run, last)| Missing { run: RunId::new(*run), first: 1, last });
    assert_eq!(refused(folder.path()), all.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_person_can_accept_the_loss() {
    let folder = killed().await;
    flip_in_log(folder.path(), 0.8);
    refused(folder.path());
    SqliteStore::accept_missing(folder.path()).unwrap();
    let store = SqliteStore::open_existing(folder.path()).unwrap();
    assert_eq!(verify_store(&store).await, Ok(Vec::new()));
    HistoryWriter::new("cccc").write(&store, "one").await;
    drop(store);
    assert!(SqliteStore::open_existing(folder.path()).is_ok());
}

/// After a power failure the head may be older than the database, torn or missing.
#[tokio::test]
async fn an_older_torn_or_missing_head_raises_no_alarm() {
    let folder = killed().await;
    let head = folder.path().join("lockgate.db-head");
    let older = fs::read(&head).unwrap();
    let store = SqliteStore::open_existing(folder.path()).unwrap();
    HistoryWriter::new("cccc").write(&store, "one").await;
    drop(store);
    for bytes in [older.clone(), older[..40].to_vec(), vec![0; older.len()]] {
        fs::write(&head, bytes).unwrap();
        let store = SqliteStore::open_existing(folder.path()).unwrap();
        assert_eq!(verify_store(&store).await, Ok(Vec::new()));
    }
    fs::remove_file(&head).unwrap();
    assert!(SqliteStore::open_existing(folder.path()).is_ok());
}

#[tokio::test]
async fn a_deleted_log_is_reported_even_if_the_first_head_record_is_damaged() {
    let folder = killed().await;
    fs::remove_file(folder.path().join("lockgate.db-wal")).unwrap();
    let head = folder.path().join("lockgate.db-head");
    let mut bytes = fs::read(&head).unwrap();
    bytes[0] ^= 1;
    fs::write(&head, bytes).unwrap();
    assert_eq!(refused(folder.path()).len(), 2);
}

#[tokio::test]
async fn a_deleted_database_is_not_silently_replaced() {
    let folder = killed().await;
    for file in ["lockgate.db", "lockgate.db-wal"] {
        fs::remove_file(folder.path().join(file)).unwrap();
    }
    let opened = SqliteStore::open(folder.path());
    let Err(StoreError::CommitsMissing { missing, .. }) = opened else { panic!("{opened:?}") };
    assert_eq!(missing.len(), 2);
    SqliteStore::accept_missing(folder.path()).unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    assert_eq!(verify_store(&store).await, Ok(Vec::new()));
}

#[tokio::test]
async fn two_processes_that_write_in_turn_leave_a_valid_head() {
    let folder = tempfile::tempdir().unwrap();
    let stores = [SqliteStore::open(folder.path()).unwrap(), SqliteStore::open(folder.path()).unwrap()];
    let mut scribe = HistoryWriter::new("aaaa");
    for number in 0..6 {
        scribe.write(&stores[number % 2], "turn").await;
    }
    let copied = copy(folder.path(), &FILES);
    let store = SqliteStore::open_existing(copied.path()).unwrap();
    assert_eq!(verify_store(&store).await, Ok(Vec::new()));
    drop(store);
    let copied = copy(folder.path(), &["lockgate.db", "lockgate.db-head"]);
    assert_eq!(refused(copied.path()), [Missing { run: RunId::new("aaaa"), first: 1, last: 6 }]);
}

#[tokio::test]
async fn a_removed_or_moved_store_accepts_no_writes() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("store");
    let store = SqliteStore::open(&folder).unwrap();
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&store, "one").await;
    assert_eq!(store.still_there(), Ok(()));
    fs::rename(&folder, parent.path().join("moved")).unwrap();
    let gone = StoreError::Gone(folder.join("lockgate.db"));
    assert_eq!(store.still_there(), Err(gone.clone()));
    // Waiting for changes fails as well.
    assert_eq!(store.changed(store.changes()).await, Err(gone.clone()));
    let fresh = SqliteStore::open(&folder).unwrap();
    assert_eq!(store.still_there(), Err(gone), "it was replaced");
    assert_eq!(fresh.still_there(), Ok(()));
}
