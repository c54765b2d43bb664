//! How a SQLite store learns of commits by other processes.

use lockgate_store::conformance::HistoryWriter;
use lockgate_store::{Settings, SqliteStore, Store};
use std::path::Path;
use std::sync::Arc;

fn polling(folder: &Path) -> SqliteStore {
    SqliteStore::open_with(folder, Settings { watch_files: false, ..Settings::default() }).unwrap()
}

#[tokio::test]
async fn without_file_watches_changes_are_polled_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let (store, other) = (polling(folder.path()), SqliteStore::open(folder.path()).unwrap());
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&other, "one").await;
    for _ in 0..3 {
        let (run, known, mut marker) = (scribe.run.clone(), scribe.version, store.changes_of(&scribe.run));
        let waiting = async {
            while store.commits(&run, known, 1).await.unwrap().is_empty() {
                marker = store.run_changed(&run, marker, Some(known)).await.unwrap();
            }
        };
        futures::future::join(scribe.write(&other, "more"), waiting).await;
    }
    assert!(store.changes_warning().is_some_and(|warning| warning.contains("polled")), "{:?}", store.changes_warning());
    assert_eq!(other.changes_warning(), None);
}

#[tokio::test]
async fn a_head_that_cannot_be_watched_is_polled_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&SqliteStore::open(folder.path()).unwrap(), "one").await;
    let head = folder.path().join("lockgate.db-head");
    std::fs::remove_file(&head).unwrap();
    // A symlink to itself exists, but can be neither opened nor watched.
    std::os::unix::fs::symlink(&head, &head).unwrap();
    let (store, other) = (SqliteStore::open(folder.path()).unwrap(), SqliteStore::open(folder.path()).unwrap());
    let (run, known, mut marker) = (scribe.run.clone(), scribe.version, store.changes_of(&scribe.run));
    let waiting = async {
        while store.commits(&run, known, 1).await.unwrap().is_empty() {
            marker = store.run_changed(&run, marker, Some(known)).await.unwrap();
        }
    };
    futures::future::join(scribe.write(&other, "two"), waiting).await;
    assert!(store.changes_warning().is_some_and(|warning| warning.contains("polled")), "{:?}", store.changes_warning());
}

#[tokio::test]
async fn a_commit_wakes_only_waiters_of_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqliteStore::open(folder.path()).unwrap();
    let (store, other) = (Arc::new(open()), open());
    let (mut waited, mut busy) = (HistoryWriter::new("aaaa"), HistoryWriter::new("bbbb"));
    waited.write(&other, "one").await;
    busy.write(&other, "one").await;
    let (woken, mut wakes) = tokio::sync::watch::channel(0);
    let (waiter, run, mut marker) = (store.clone(), waited.run.clone(), store.changes_of(&waited.run));
    let waiting = tokio::spawn(async move {
        loop {
            marker = waiter.run_changed(&run, marker, Some(1)).await.unwrap();
            woken.send_modify(|count| *count += 1);
        }
    });
    let mut marker = store.changes();
    for _ in 0..50 {
        busy.write(&other, "more").await;
        marker = store.changed(marker).await.unwrap();
    }
    let spurious = *wakes.borrow_and_update();
    // It wakes when it starts to wait, when the run is first compared, and with each check, but not with every commit.
    assert!(spurious <= 25, "{spurious}");
    waited.write(&other, "two").await;
    wakes.wait_for(|count| *count > spurious).await.unwrap();
    waiting.abort();
}

#[tokio::test]
async fn a_driver_is_not_woken_by_its_own_commits() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&store, "one").await;
    let marker = store.changes_of(&scribe.run);
    scribe.write(&store, "two").await;
    let run = scribe.run.clone();
    let waiting = store.run_changed(&run, marker, Some(2));
    assert!(futures::FutureExt::now_or_never(waiting).is_none());
    assert!(futures::FutureExt::now_or_never(store.run_changed(&run, marker, Some(1))).is_some());
}
