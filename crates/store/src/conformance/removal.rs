//! Claims about removing runs: everything that is stored of a run goes, and nothing of any other.

use super::{Backend, HistoryWriter, hold_row, outbox_row, run_row, start_run, timer_row};
use crate::error::{AppendError, ClaimError, RemoveError, StoreError};
use crate::store::{HoldFilter, OutboxFilter, Page, RemovedRows, RunRemoval, Store, Unreferenced};
use crate::verify::verify_store;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Status;
use lockgate_engine::run::index::{IndexRows, RunRow};
use lockgate_engine::time::Timestamp;
use std::time::Duration;

const SHARED: &[u8] = b"a value of two runs";
const OWN: &[u8] = b"a value of one run only";

/// Writes a run that has something in every table, and ends with this status: 2 commits, 1 state, 2 holds, 1 timer, 2 references, 1 notice.
async fn write_run(store: &dyn Store, run: &str, status: Status) -> HistoryWriter {
    let mut scribe = start_run(store, run, |append| {
        append.index.holds = vec![hold_row(&append.run, &format!("{run}-1"), 5), hold_row(&append.run, &format!("{run}-2"), 6)];
        append.index.timers = vec![timer_row(&append.run, "timer", 1)];
        append.index.outbox = vec![outbox_row(&append.run, 1, 10)];
    })
    .await;
    let mut append = scribe.next("ended");
    let own = [OWN, run.as_bytes()].concat();
    append.values = vec![(Digest::of(SHARED), SHARED.to_vec()), (Digest::of(&own), own.clone())];
    append.index.referenced_values = vec![Digest::of(SHARED), Digest::of(&own)];
    append.index.run = Some(RunRow { status: status.into(), ..run_row(&scribe.run) });
    append.materialized = Some(b"state".to_vec());
    scribe.append(store, append).await.unwrap();
    scribe
}

fn removal(run: &RunId, epoch: u64) -> RunRemoval {
    RunRemoval { run: run.clone(), epoch, statuses: vec![Status::Complete, Status::Aborted] }
}

async fn remove(store: &dyn Store, run: &RunId) -> Result<RemovedRows, RemoveError> {
    let epoch = store.claim(run).await.unwrap();
    store.remove_run(removal(run, epoch)).await
}

/// A claim.
pub async fn a_removed_run_leaves_nothing_behind(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let gone = write_run(&*store, "aaaa", Status::Complete).await;
    let kept = write_run(&*other, "bbbb", Status::Complete).await;
    let before = other.stored_run(&kept.run).await.unwrap();
    let removed = remove(&*store, &gone.run).await.unwrap();
    let values = Unreferenced { count: 1, bytes: (OWN.len() + 4) as u64 };
    assert_eq!(removed, RemovedRows { rows: 10, values });
    for reader in [&store, &other] {
        assert_eq!(reader.load(&gone.run).await.unwrap(), None);
        assert_eq!(reader.stored_run(&gone.run).await.unwrap(), None);
        assert_eq!(reader.commits(&gone.run, 0, 9).await.unwrap(), []);
        assert_eq!(reader.find_runs("aaaa").await.unwrap(), []);
        assert_eq!(reader.find_holds("aaaa").await.unwrap(), []);
        assert_eq!(reader.holds(HoldFilter::Open, Page::ALL).await.unwrap().len(), 2);
        assert_eq!(reader.timers(Timestamp::from_millis(9), 9).await.unwrap().len(), 1);
        assert_eq!(reader.outbox(OutboxFilter::Undelivered, 9).await.unwrap().len(), 1);
        assert_eq!(reader.stored_run(&kept.run).await.unwrap(), before, "another run stays as it was");
        let gone_value = Digest::of(&[OWN, b"aaaa".as_slice()].concat());
        let values = reader.values(&[Digest::of(SHARED), gone_value]).await.unwrap();
        assert_eq!(values, [Some(SHARED.to_vec()), None], "a value stays while a run refers to it");
        assert_eq!(verify_store(&**reader).await, Ok(Vec::new()));
    }
    let removed = remove(&*other, &kept.run).await.unwrap();
    assert_eq!(removed.values.count, 2, "the last run takes the shared value with it");
    assert_eq!(store.runs(Page::ALL).await.unwrap(), []);
    assert_eq!(verify_store(&*store).await, Ok(Vec::new()));
}

/// A claim.
pub async fn only_a_claimed_run_with_an_allowed_status_is_removed(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    for (run, status) in [("aaaa", Status::Failed), ("bbbb", Status::Running), ("cccc", Status::Cancelled)] {
        let scribe = write_run(&*store, run, status).await;
        let epoch = store.claim(&scribe.run).await.unwrap();
        let refused = store.remove_run(removal(&scribe.run, epoch)).await;
        assert_eq!(refused, Err(RemoveError::Status(status.into())));
        assert!(other.stored_run(&scribe.run).await.unwrap().is_some(), "nothing of it is removed");
        store.release(&scribe.run, epoch).await.unwrap();
    }
    let scribe = write_run(&*store, "dddd", Status::Complete).await;
    assert_eq!(store.remove_run(removal(&scribe.run, 0)).await, Err(RemoveError::Fenced), "no one has claimed it");
    let epoch = store.claim(&scribe.run).await.unwrap();
    assert!(matches!(other.claim(&scribe.run).await, Err(ClaimError::DrivenBy(_))), "a live process drives it");
    assert_eq!(other.remove_run(removal(&scribe.run, epoch)).await, Err(RemoveError::Fenced), "the claim is another process's");
    assert_eq!(store.remove_run(removal(&scribe.run, epoch + 1)).await, Err(RemoveError::Fenced));
    assert_eq!(verify_store(&*other).await, Ok(Vec::new()));
    store.remove_run(removal(&scribe.run, epoch)).await.unwrap();
    let missing = RunId::new("dddd");
    assert_eq!(store.remove_run(removal(&missing, epoch)).await, Err(StoreError::NoRun(missing.clone()).into()));
    assert_eq!(store.claim(&missing).await, Err(StoreError::NoRun(missing).into()));
}

/// A claim.
pub async fn a_removed_run_takes_no_commits_and_its_id_can_be_used_again(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let scribe = write_run(&*store, "aaaa", Status::Complete).await;
    remove(&*other, &scribe.run).await.unwrap();
    for (process, index) in
        [(&store, IndexRows::default()), (&other, IndexRows { run: Some(run_row(&scribe.run)), ..IndexRows::default() })]
    {
        let mut append = scribe.next("late");
        append.index = index;
        assert_eq!(process.append(append).await, Err(AppendError::Store(StoreError::NoRun(scribe.run.clone()))));
    }
    let again = write_run(&*store, "aaaa", Status::Complete).await;
    assert_eq!(other.load(&again.run).await.unwrap().unwrap().head(), (2, again.hash));
    write_run(&*other, "bbbb", Status::Complete).await;
    assert_eq!(verify_store(&*store).await, Ok(Vec::new()));
    let listed = store.runs(Page::ALL).await.unwrap();
    assert_eq!(super::run_ids(&listed), ["bbbb", "aaaa"]);
}

/// A claim.
pub async fn a_removal_is_a_change(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let scribe = write_run(&*store, "aaaa", Status::Complete).await;
    let epoch = store.claim(&scribe.run).await.unwrap();
    let (all, one) = (other.changes(), other.changes_of(&scribe.run));
    let waits = async { (other.changed(all).await.unwrap(), other.run_changed(&scribe.run, one, Some(2)).await.unwrap()) };
    let removes = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        store.remove_run(removal(&scribe.run, epoch)).await.unwrap();
    };
    let limit = Duration::from_secs(20);
    let (changed, ()) = tokio::join!(tokio::time::timeout(limit, waits), removes);
    assert!(changed.is_ok(), "the waiter was not notified of the removal");
}

/// A claim.
pub async fn concurrent_appends_and_removals_leave_whole_runs(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    for round in 0..10 {
        let scribe = write_run(&*store, &format!("run{round}"), Status::Complete).await;
        let epoch = store.claim(&scribe.run).await.unwrap();
        let late = other.append(scribe.next("late"));
        let (removed, appended) = tokio::join!(store.remove_run(removal(&scribe.run, epoch)), late);
        assert!(removed.is_ok(), "{removed:?}");
        let gone = Err(AppendError::Store(StoreError::NoRun(scribe.run.clone())));
        assert!(appended == Ok(None) || appended == gone, "{appended:?}");
        assert_eq!(verify_store(&*other).await, Ok(Vec::new()));
    }
}
