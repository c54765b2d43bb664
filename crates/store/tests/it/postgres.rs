//! PostgreSQL specifics: leases, batches, lost connections and concurrent creation.

use crate::processes::block_on;
use lockgate_engine::id::RunId;
use lockgate_store::conformance::{HistoryWriter, run_row};
use lockgate_store::postgres::test_server::server;
use lockgate_store::{Append, AppendError, ClaimError, Page, PostgresStore, Store, StoreError, verify_store};
use std::sync::Arc;

fn connect(url: &str) -> PostgresStore {
    PostgresStore::connect(url).unwrap()
}

/// Ends every other connection to the database.
fn cut(url: &str) {
    let others =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    server().perform(url, others);
}

#[tokio::test]
async fn a_driver_whose_lease_expired_loses_its_run_and_is_fenced() {
    let url = server().database();
    let (store, other) = (connect(&url), connect(&url));
    let mut scribe = HistoryWriter::new("aaaa");
    let append = Append { claim: Some(store.driver().clone()), ..scribe.next("one") };
    scribe.append(&store, append).await.unwrap();
    let Err(ClaimError::DrivenBy(info)) = other.claim(&scribe.run).await else { panic!("it is driven") };
    assert_eq!((info.driver, info.pid), (store.driver().clone(), std::process::id()));
    server().perform(&url, "UPDATE lockgate.drivers SET expires_at = clock_timestamp()");
    assert_eq!(other.driver_of(&scribe.run).await, Ok(None));
    assert_eq!(other.claim(&scribe.run).await, Ok(2));
    scribe.epoch = Some(1);
    assert_eq!(store.append(scribe.next("late")).await, Err(AppendError::Fenced));
    scribe.epoch = Some(2);
    scribe.write(&other, "two").await;
}

#[tokio::test]
async fn a_driver_whose_local_process_ended_loses_its_run_immediately() {
    let url = server().database();
    let (store, other) = (connect(&url), connect(&url));
    let mut scribe = HistoryWriter::new("aaaa");
    let append = Append { claim: Some(store.driver().clone()), ..scribe.next("one") };
    scribe.append(&store, append).await.unwrap();
    let Err(ClaimError::DrivenBy(info)) = other.claim(&scribe.run).await else { panic!("it is driven") };
    let reported = ClaimError::DrivenBy(info.clone()).to_string();
    assert!(info.until.is_some_and(|until| reported.contains(&format!("lease runs until {until}"))), "{reported}");

    // A process that does not exist. As long as it seems to be on another machine, nothing is known about it.
    let dead = "UPDATE lockgate.drivers SET process = regexp_replace(process, '[0-9]+ [0-9]+$', '999999999 1')";
    for elsewhere in [
        "UPDATE lockgate.drivers SET address = '192.0.2.1'",
        "UPDATE lockgate.drivers SET address = NULL, process = 'another-boot ' || process",
    ] {
        server().perform(&url, &format!("{dead}; {elsewhere}"));
        assert!(matches!(other.claim(&scribe.run).await, Err(ClaimError::DrivenBy(_))), "{elsewhere}");
        assert!(other.driver_of(&scribe.run).await.unwrap().is_some() && other.runs(Page::ALL).await.unwrap()[0].driven);
    }
    server().perform(&url, "UPDATE lockgate.drivers SET process = replace(process, 'another-boot ', '')");
    assert_eq!(other.driver_of(&scribe.run).await, Ok(None));
    assert!(!other.runs(Page::ALL).await.unwrap()[0].driven);
    assert_eq!(other.claim(&scribe.run).await, Ok(2));
    scribe.epoch = Some(1);
    assert_eq!(store.append(scribe.next("late")).await, Err(AppendError::Fenced));
}

#[tokio::test]
async fn a_driver_that_returns_before_its_lease_expires_keeps_its_run() {
    let url = server().database();
    let store = connect(&url);
    let mut scribe = HistoryWriter::new("aaaa");
    let append = Append { claim: Some(store.driver().clone()), ..scribe.next("one") };
    scribe.append(&store, append).await.unwrap();
    server().perform(&url, "UPDATE lockgate.drivers SET expires_at = clock_timestamp()");
    scribe.epoch = Some(1);
    scribe.write(&store, "two").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_appends_each_get_their_own_result() {
    let url = server().database();
    let stores = [Arc::new(connect(&url)), Arc::new(connect(&url))];
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let stores = stores.clone();
            tokio::spawn(async move {
                let mut scribe = HistoryWriter::new(&format!("run{number}"));
                for round in 0..5 {
                    // Two for the same version, by one process or two: one succeeds, and only the other is rejected.
                    let (first, second) = (&stores[number % 2], &stores[(number + round) % 2]);
                    let (one, two) = tokio::join!(first.append(scribe.next("one")), second.append(scribe.next("one")));
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
    assert_eq!(stores[0].scan_commits(None, usize::MAX).await.unwrap().len(), 320);
    assert_eq!(verify_store(&*stores[1]).await, Ok(Vec::new()));
}

#[tokio::test]
async fn an_append_that_the_database_rejects_does_not_affect_others_in_its_batch() {
    let store = connect(&server().database());
    let appends = (0..8).map(|number| {
        let scribe = HistoryWriter::new(&format!("run{number}"));
        let mut append = scribe.next("one");
        if number == 3 {
            append.index.run.as_mut().unwrap().workflow = "not \0 text".to_owned();
        }
        store.append(append)
    });
    let results = futures::future::join_all(appends).await;
    for (number, result) in results.into_iter().enumerate() {
        match number {
            3 => assert!(matches!(result, Err(AppendError::Store(StoreError::Io(_)))), "{result:?}"),
            _ => assert_eq!(result, Ok(None)),
        }
    }
    assert_eq!(store.runs(Page::ALL).await.unwrap().len(), 7);
}

#[test]
fn many_processes_can_create_a_store_concurrently() {
    let url = server().database();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let url = &url;
            scope.spawn(move || {
                let store = connect(url);
                let append = store.append(HistoryWriter::new(&format!("run{number}")).next("one"));
                block_on(append).unwrap();
            });
        }
    });
    let runs = block_on(connect(&url).runs(Page::ALL)).unwrap();
    assert_eq!(runs.len(), 8);
}

#[test]
fn a_store_works_while_its_runtime_is_blocked_and_after_it_ended() {
    let url = server().database();
    let opener = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut scribe = HistoryWriter::new("aaaa");
    let store = opener.block_on(async {
        let store = connect(&url);
        let append = Append { claim: Some(store.driver().clone()), ..scribe.next("one") };
        scribe.append(&store, append).await.unwrap();
        scribe.epoch = Some(1);
        scribe.write(&store, "two").await;
        store
    });
    // No thread keeps its runtime going now.
    std::thread::scope(|scope| {
        scope.spawn(|| block_on(scribe.write(&store, "from another thread")));
    });
    block_on(scribe.write(&store, "from another runtime"));
    let later = scribe.next("started before the end");
    let mut append = store.append(later);
    opener.block_on(async { assert!(futures::poll!(&mut append).is_pending()) });
    drop(opener);
    block_on(append).unwrap();
    let sealed = scribe.seal("started before the end");
    (scribe.version, scribe.hash) = (sealed.version, sealed.hash);
    block_on(store.release(&scribe.run, 1)).unwrap();
    assert_eq!(block_on(store.claim(&scribe.run)), Ok(2));
    assert_eq!(block_on(store.append(scribe.next("late"))), Err(AppendError::Fenced));
    scribe.epoch = Some(2);
    block_on(scribe.write(&store, "after its end"));
    assert_eq!(block_on(verify_store(&store)), Ok(Vec::new()));
}

#[test]
fn a_runtime_without_io_can_open_a_store_and_append() {
    let url = server().database();
    block_on(async {
        let store = connect(&url);
        let mut scribe = HistoryWriter::new("aaaa");
        for text in ["one", "two"] {
            scribe.write(&store, text).await;
        }
    });
}

#[tokio::test]
async fn a_lost_connection_is_reestablished() {
    let url = server().database();
    let store = connect(&url);
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&store, "one").await;
    for _ in 0..3 {
        cut(&url);
        assert_eq!(store.load(&scribe.run).await.unwrap().unwrap().head(), (scribe.version, scribe.hash));
        cut(&url);
        // Whether the loss is already known when the append is sent depends on timing; the reported outcome is correct in
        // either case.
        match scribe.clone().append(&store, scribe.next("more")).await {
            Ok(()) => {}
            Err(AppendError::Store(StoreError::OutcomeUnknown(_))) => {}
            Err(other) => panic!("{other:?}"),
        }
        (scribe.version, scribe.hash) = store.load(&scribe.run).await.unwrap().unwrap().head();
        scribe.write(&store, "after").await;
    }
    assert_eq!(verify_store(&store).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_commit_wakes_only_waiters_of_its_run() {
    let url = server().database();
    let (store, other) = (Arc::new(connect(&url)), connect(&url));
    let (mut waited, mut busy) = (HistoryWriter::new("aaaa"), HistoryWriter::new("bbbb"));
    waited.write(&other, "one").await;
    busy.write(&other, "one").await;
    let (woken, mut wakes) = tokio::sync::watch::channel(0);
    let (looker, run, mut marker) = (store.clone(), waited.run.clone(), store.changes());
    let waiting = tokio::spawn(async move {
        loop {
            marker = looker.run_changed(&run, marker, None).await.unwrap();
            woken.send_modify(|count| *count += 1);
        }
    });
    let mut marker = store.changes();
    for _ in 0..50 {
        busy.write(&other, "more").await;
        marker = store.changed(marker).await.unwrap();
    }
    let spurious = *wakes.borrow_and_update();
    // It wakes when it starts to wait, when the run is first compared, and for earlier commits, but not with every commit.
    assert!(spurious <= 3, "{spurious}");
    waited.write(&other, "two").await;
    wakes.wait_for(|count| *count > spurious).await.unwrap();
    waiting.abort();
}

#[tokio::test]
async fn a_commit_without_a_notification_is_still_seen() {
    let url = server().database();
    let store = connect(&url);
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&store, "one").await;
    let mut marker = store.changes();
    for _ in 0..3 {
        // As left by a process that ended between its commit and its notification.
        let silently = "INSERT INTO lockgate.commits SELECT run_key, max(version) + 1, '\\x00', '\\x00' FROM lockgate.commits GROUP BY run_key";
        let waiting = store.run_changed(&scribe.run, marker, None);
        server().perform(&url, silently);
        marker = waiting.await.unwrap();
    }
}

#[tokio::test]
async fn a_newer_format_is_refused() {
    let url = server().database();
    drop(connect(&url));
    server().perform(&url, "UPDATE lockgate.format SET version = 99");
    let error = PostgresStore::connect(&url).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("use a newer release"), "{error}");
}

#[tokio::test]
async fn modified_tables_are_found() {
    let url = server().database();
    let store = connect(&url);
    for run in ["aaaa", "bbbb"] {
        let mut scribe = HistoryWriter::new(run);
        for text in ["one", "two", "three"] {
            scribe.write(&store, text).await;
        }
    }
    assert_eq!(verify_store(&store).await, Ok(Vec::new()));
    for change in [
        "UPDATE lockgate.commits SET payload = payload || '\\x00' WHERE run_key = 1 AND version = 2",
        "DELETE FROM lockgate.commits WHERE run_key = 2 AND version = 2",
        "DELETE FROM lockgate.runs WHERE key = 2",
        "UPDATE lockgate.commits SET hash = '\\x00' WHERE run_key = 1 AND version = 1",
    ] {
        let before = verify_store(&store).await.unwrap();
        server().perform(&url, change);
        assert_ne!(verify_store(&store).await.unwrap(), before, "{change}");
    }
}

#[tokio::test]
async fn non_ascii_run_ids_and_features_are_stored_and_found() {
    let store = connect(&server().database());
    let mut scribe = HistoryWriter::new("läuft🦀");
    let mut append = scribe.next("one");
    append.index.run.as_mut().unwrap().feature = Some("日本語 'quoted' \\".to_owned());
    scribe.append(&store, append).await.unwrap();
    let found = store.runs_of_feature("日本語 'quoted' \\").await.unwrap();
    assert_eq!(found[0].row.run, RunId::new("läuft🦀"));
    assert_eq!(found[0].row.kind, run_row(&scribe.run).kind);
    assert_eq!(store.find_runs("läu").await.unwrap().len(), 1);
}

/// An older copy of the tables is restored while a run is driven.
#[tokio::test]
async fn an_append_after_a_deleted_commit_is_a_conflict() {
    for taken_back in [
        "DELETE FROM lockgate.commits WHERE version = 4",
        "UPDATE lockgate.runs SET run = 'bbbb'",
        "DELETE FROM lockgate.commits; DELETE FROM lockgate.runs",
    ] {
        let url = server().database();
        let store = connect(&url);
        let mut scribe = HistoryWriter::new("aaaa");
        for text in ["one", "two", "three", "four"] {
            scribe.write(&store, text).await;
        }
        server().perform(&url, taken_back);
        let refused = store.append(scribe.next("five")).await;
        let is_refused = matches!(refused, Err(AppendError::Conflict | AppendError::Store(StoreError::NoRun(_))));
        assert!(is_refused, "{taken_back}: {refused:?}");
    }
}
