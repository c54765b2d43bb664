//! Several processes, handles and threads on one store, and processes that end without cleaning up.

use lockgate_engine::id::RunId;
use lockgate_store::conformance::HistoryWriter;
use lockgate_store::{Append, AppendError, ClaimError, Page, SqliteStore, Store, verify_store};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::task::{Context, Poll, Waker};

/// Runs one test of this binary in a separate process with a directory to work on.
pub(crate) fn in_a_process(shell: &str, test: &str, folder: &Path) -> std::process::Output {
    Command::new("sh")
        .args(["-c", &format!("{shell} exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("LOCKGATE_TEST_FOLDER", folder)
        .output()
        .unwrap()
}

/// The directory given to a test in a separate process.
pub(crate) fn given_directory() -> Option<PathBuf> {
    std::env::var_os("LOCKGATE_TEST_FOLDER").map(PathBuf::from)
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Appends until this caller has added that many commits, reloading the head after every conflict.
fn race(store: &SqliteStore, run: &str, own: usize) -> usize {
    block_on(async {
        let mut conflicts = 0;
        let mut scribe = HistoryWriter::new(run);
        for number in 0..own {
            loop {
                if let Some(loaded) = store.load(&scribe.run).await.unwrap() {
                    (scribe.version, scribe.hash) = loaded.head();
                }
                match scribe.append(store, scribe.next(&format!("number {number}"))).await {
                    Ok(()) => break,
                    Err(AppendError::Conflict) => conflicts += 1,
                    Err(other) => panic!("{other}"),
                }
            }
        }
        conflicts
    })
}

#[test]
fn two_handles_on_one_directory_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let stores: Vec<SqliteStore> = (0..2).map(|_| SqliteStore::open(folder.path()).unwrap()).collect();
    std::thread::scope(|scope| {
        for (number, store) in stores.iter().enumerate() {
            scope.spawn(move || race(store, "shared", 50));
            scope.spawn(move || race(store, &format!("own{number}"), 50));
        }
    });
    block_on(async {
        for (run, commits) in [("shared", 100), ("own0", 50), ("own1", 50)] {
            assert_eq!(stores[0].commits(&RunId::new(run), 0, usize::MAX).await.unwrap().len(), commits);
        }
        assert_eq!(verify_store(&stores[1]).await, Ok(Vec::new()));
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_appends_each_get_their_own_result() {
    let folder = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(SqliteStore::open(folder.path()).unwrap());
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut scribe = HistoryWriter::new(&format!("run{number}"));
                for _ in 0..10 {
                    // Two for the same version: one succeeds, and only the other is rejected.
                    let (one, two) = tokio::join!(store.append(scribe.next("one")), store.append(scribe.next("one")));
                    assert!(
                        matches!((&one, &two), (Ok(_), Err(AppendError::Conflict)) | (Err(AppendError::Conflict), Ok(_))),
                        "{one:?} {two:?}"
                    );
                    let sealed = scribe.seal("one");
                    (scribe.version, scribe.hash) = (sealed.version, sealed.hash);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.scan_commits(None, usize::MAX).await.unwrap().len(), 640);
    assert_eq!(verify_store(&*store).await, Ok(Vec::new()));
}

#[test]
fn many_processes_can_create_a_store_concurrently() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/.lockgate");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || race(&SqliteStore::open(path).unwrap(), &format!("run{number}"), 2));
        }
    });
    let store = SqliteStore::open_existing(&path).unwrap();
    assert_eq!(block_on(store.runs(Page::ALL)).unwrap().len(), 8);
    drop(store);
    let mut names: Vec<_> = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["lockgate.db", "lockgate.db-head"], "nothing else is left after all have closed");
}

#[test]
fn appended_commits_survive_without_closing_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    assert_eq!(race(&store, "aaaa", 20), 0);
    std::mem::forget(store);
    let store = SqliteStore::open_existing(folder.path()).unwrap();
    assert_eq!(race(&store, "aaaa", 1), 0);
    assert_eq!(block_on(store.load(&RunId::new("aaaa"))).unwrap().unwrap().head().0, 21);
    assert_eq!(block_on(verify_store(&store)), Ok(Vec::new()));
}

#[test]
fn runs_of_a_dead_process_can_be_claimed() {
    if let Some(folder) = given_directory() {
        let store = SqliteStore::open(&folder).unwrap();
        let scribe = HistoryWriter::new("aaaa");
        block_on(store.append(Append { claim: Some(store.driver().clone()), ..scribe.next("one") })).unwrap();
        std::process::abort();
    }
    let folder = tempfile::tempdir().unwrap();
    let died = in_a_process("", "processes::runs_of_a_dead_process_can_be_claimed", folder.path());
    assert!(!died.status.success());
    let locks = || std::fs::read_dir(folder.path().join("drivers")).unwrap().count();
    assert_eq!(locks(), 1, "it had registered its driver");
    let store = SqliteStore::open_existing(folder.path()).unwrap();
    let run = RunId::new("aaaa");
    assert_eq!(block_on(store.driver_of(&run)), Ok(None));
    assert_eq!(locks(), 0, "the lock of the dead driver is removed");
    assert_eq!(block_on(store.claim(&run)), Ok(2));
    assert_eq!(block_on(store.load(&run)).unwrap().unwrap().head().0, 1);
}

#[test]
fn a_lock_file_names_the_driver_and_is_removed_with_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let (store, other) = (SqliteStore::open(folder.path()).unwrap(), SqliteStore::open(folder.path()).unwrap());
    race(&store, "aaaa", 1);
    assert!(!folder.path().join("drivers").exists(), "a process that drives nothing needs no lock");
    let run = RunId::new("aaaa");
    block_on(store.claim(&run)).unwrap();
    let path = folder.path().join(format!("drivers/{}.lock", store.driver()));
    let content: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(content["pid"], std::process::id());
    assert!(content["start_ticks"].is_u64() && content["started"].is_string(), "{content}");
    let Err(ClaimError::DrivenBy(info)) = block_on(other.claim(&run)) else { panic!("it is driven") };
    assert_eq!((info.pid, info.host.as_str()), (std::process::id(), content["host"].as_str().unwrap()));
    drop(store);
    assert!(!path.exists());
    assert_eq!(block_on(other.claim(&run)), Ok(2));
}

#[test]
fn an_append_dropped_while_waiting_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    race(&store, "aaaa", 1);
    let mut scribe = HistoryWriter::new("aaaa");
    (scribe.version, scribe.hash) = block_on(store.load(&scribe.run)).unwrap().unwrap().head();
    let mut given_up = store.append(scribe.next("given up"));
    assert_eq!(given_up.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
    drop(given_up);
    block_on(scribe.write(&store, "taken"));
}

#[test]
fn the_log_size_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    block_on(async {
        let mut scribe = HistoryWriter::new("aaaa");
        for number in 0..300 {
            let append = Append { materialized: Some(vec![number as u8; 60_000]), ..scribe.next("more") };
            scribe.append(&store, append).await.unwrap();
        }
    });
    let log = std::fs::metadata(folder.path().join("lockgate.db-wal")).unwrap().len();
    assert!(log < 6_000_000, "{log} bytes after 18 million were written");
}

/// Two processes preallocate in turn, and a third finds everything they wrote.
#[test]
fn preallocated_log_space_is_not_part_of_the_log() {
    let (folder, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let writers = ["aaaa", "bbbb"].map(|run| (SqliteStore::open(folder.path()).unwrap(), HistoryWriter::new(run)));
    let writers = block_on(async {
        let mut writers = writers;
        for number in 0..300 {
            let (store, scribe) = &mut writers[usize::from(number % 7 < 3)];
            scribe.write(store, "more").await;
        }
        writers
    });
    let log = std::fs::read(folder.path().join("lockgate.db-wal")).unwrap();
    assert!(log.ends_with(&[0; 4096 + 24]), "the log of {} bytes is not preallocated", log.len());
    // The state after a power cut: the store was not closed, and nothing is in memory.
    for file in ["lockgate.db", "lockgate.db-wal"] {
        std::fs::copy(folder.path().join(file), left.path().join(file)).unwrap();
    }
    let found = SqliteStore::open_existing(left.path()).unwrap();
    for (_, mut scribe) in writers {
        let loaded = block_on(found.load(&scribe.run)).unwrap().unwrap();
        assert_eq!(loaded.head(), (scribe.version, scribe.hash));
        block_on(scribe.write(&found, "on"));
    }
    assert_eq!(block_on(verify_store(&found)), Ok(Vec::new()));
}
