//! Removed runs and kills: a run is there as a whole or gone as a whole, and a removed one is not reported as lost.

use crate::processes::{block_on, given_directory};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::run::index::RunRow;
use lockgate_store::conformance::{HistoryWriter, hold_row, run_row};
use lockgate_store::{Missing, Page, RunRemoval, SqliteStore, Store, StoreError, verify_store};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const FILES: [&str; 3] = ["lockgate.db", "lockgate.db-wal", "lockgate.db-head"];

async fn write_run(store: &SqliteStore, run: &str, commits: u32) -> RunId {
    let mut scribe = HistoryWriter::new(run);
    for number in 0..commits {
        let mut append = scribe.next(&format!("commit {number} {}", "x".repeat(3000)));
        let value = format!("value {number} of {run}").into_bytes();
        append.index.referenced_values = vec![Digest::of(&value)];
        append.values = vec![(Digest::of(&value), value)];
        append.index.holds = vec![hold_row(&scribe.run, &format!("{run}-{number}"), 1)];
        append.index.run = Some(RunRow { status: Status::Complete.into(), ..run_row(&scribe.run) });
        scribe.append(store, append).await.unwrap();
    }
    scribe.run
}

async fn remove(store: &SqliteStore, run: &RunId) {
    let epoch = store.claim(run).await.unwrap();
    store.remove_run(RunRemoval { run: run.clone(), epoch, statuses: vec![Status::Complete] }).await.unwrap();
}

/// What a process leaves behind that is killed now.
fn killed(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for file in FILES {
        std::fs::copy(from.join(file), to.path().join(file)).unwrap();
    }
    to
}

#[tokio::test]
async fn a_removed_run_is_not_reported_as_missing() {
    let alive = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(alive.path()).unwrap();
    let (first, last) = (write_run(&store, "aaaa", 3).await, write_run(&store, "bbbb", 5).await);
    // The last commit of all belongs to the run that is removed.
    remove(&store, &last).await;
    let left = killed(alive.path());
    let opened = SqliteStore::open_existing(left.path()).unwrap();
    assert_eq!(verify_store(&opened).await, Ok(Vec::new()));
    assert_eq!(opened.missing_commits().await, Ok(Vec::new()));
    // Its number is not used for the next run, whose commits are recorded as those of any other.
    write_run(&opened, "cccc", 2).await;
    remove(&opened, &first).await;
    assert_eq!(verify_store(&opened).await, Ok(Vec::new()));
    let left = killed(left.path());
    std::fs::remove_file(left.path().join("lockgate.db-wal")).unwrap();
    let Err(StoreError::CommitsMissing { missing, .. }) = SqliteStore::open_existing(left.path()) else {
        panic!("they are lost")
    };
    assert!(missing.contains(&Missing { run: RunId::new("cccc"), first: 1, last: 2 }), "{missing:?}");
}

/// Creates and removes runs until it is killed.
#[test]
fn a_kill_during_removals_leaves_whole_runs() {
    if let Some(folder) = given_directory() {
        let store = SqliteStore::open(&folder).unwrap();
        block_on(async {
            for number in 0.. {
                let run = write_run(&store, &format!("{}-{number}", std::process::id()), 3).await;
                remove(&store, &run).await;
            }
        });
    }
    let folder = tempfile::tempdir().unwrap();
    for round in 0..12 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "removal::a_kill_during_removals_leaves_whole_runs", "--nocapture"])
            .env("LOCKGATE_TEST_FOLDER", folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(150 + 37 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        block_on(async {
            assert_eq!(verify_store(&store).await, Ok(Vec::new()), "round {round}");
            // Whatever was cut off can be removed now.
            for listed in store.runs(Page::ALL).await.unwrap() {
                assert!(!listed.driven);
                remove(&store, &listed.row.run).await;
            }
            assert_eq!(verify_store(&store).await, Ok(Vec::new()), "round {round}");
        });
    }
}
