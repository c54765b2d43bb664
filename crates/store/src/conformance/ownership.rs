//! Conformance tests for claims: claiming with a commit, releasing, and taking the next run that wants a driver.

use super::{Backend, HistoryWriter, start_run, timer_row};
use crate::error::{AppendError, ClaimError, StoreError};
use crate::store::{Append, Page, Store};
use lockgate_engine::id::{RunId, TimerId};
use lockgate_engine::run::history::DRIVE_TIMER;
use lockgate_engine::run::index::TimerKind;

fn claiming(scribe: &HistoryWriter, store: &dyn Store, text: &str) -> Append {
    Append { claim: Some(store.driver().clone()), epoch: None, ..scribe.next(text) }
}

async fn start_detached(store: &dyn Store, run: &str) -> HistoryWriter {
    start_run(store, run, |append| {
        let mut wants = timer_row(&append.run, DRIVE_TIMER, 0);
        (wants.timer, wants.kind) = (TimerId::new(DRIVE_TIMER), TimerKind::Drive.into());
        append.index.timers = vec![wants];
    })
    .await
}

pub async fn a_released_run_can_be_claimed_by_another_live_process(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let mut scribe = start_run(&*store, "aaaa", |_| ()).await;
    let first = store.claim(&scribe.run).await.unwrap();
    assert!(matches!(other.claim(&scribe.run).await, Err(ClaimError::DrivenBy(_))));
    store.release(&scribe.run, first).await.unwrap();
    for reader in [&store, &other] {
        assert_eq!(reader.driver_of(&scribe.run).await, Ok(None));
        assert!(!reader.runs(Page::ALL).await.unwrap()[0].driven);
    }
    let second = other.claim(&scribe.run).await.unwrap();
    assert!(second > first);
    scribe.epoch = Some(first);
    assert_eq!(store.append(scribe.next("late")).await, Err(AppendError::Fenced));
    scribe.epoch = Some(second);
    scribe.write(&*other, "two").await;
}

pub async fn only_the_current_claim_can_be_released(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let scribe = start_run(&*store, "aaaa", |_| ()).await;
    let first = store.claim(&scribe.run).await.unwrap();
    store.release(&scribe.run, first).await.unwrap();
    let second = store.claim(&scribe.run).await.unwrap();
    store.release(&scribe.run, first).await.unwrap();
    other.release(&scribe.run, second).await.unwrap();
    store.release(&RunId::new("nowhere"), 1).await.unwrap();
    assert_eq!(other.driver_of(&scribe.run).await.unwrap().unwrap().driver, *store.driver());
    store.release(&scribe.run, second).await.unwrap();
    store.release(&scribe.run, second).await.unwrap();
    assert_eq!(other.driver_of(&scribe.run).await, Ok(None));
}

pub async fn a_commit_can_claim_its_run(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let mut scribe = start_run(&*store, "aaaa", |_| ()).await;
    let first = store.claim(&scribe.run).await.unwrap();
    store.release(&scribe.run, first).await.unwrap();
    let append = claiming(&scribe, &*other, "two");
    let hash = append.commit.hash;
    let second = other.append(append).await.unwrap().expect("the append made a claim");
    (scribe.version, scribe.hash) = (2, hash);
    assert!(second > first);
    assert_eq!(store.driver_of(&scribe.run).await.unwrap().unwrap().driver, *other.driver());
    scribe.epoch = Some(second);
    scribe.write(&*other, "three").await;
    scribe.epoch = Some(first);
    assert_eq!(store.append(scribe.next("late")).await, Err(AppendError::Fenced));
}

pub async fn a_commit_that_cannot_claim_changes_nothing(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let scribe = start_run(&*store, "aaaa", |_| ()).await;
    let epoch = store.claim(&scribe.run).await.unwrap();
    let before = store.stored_run(&scribe.run).await.unwrap();
    let refused = other.append(claiming(&scribe, &*other, "two")).await;
    assert!(matches!(&refused, Err(AppendError::DrivenBy(info)) if info.driver == *store.driver()), "{refused:?}");
    store.release(&scribe.run, epoch).await.unwrap();
    let free = store.stored_run(&scribe.run).await.unwrap();
    assert_ne!(free, before);
    let ahead = HistoryWriter { version: 2, ..scribe.clone() };
    assert_eq!(other.append(claiming(&ahead, &*other, "three")).await, Err(AppendError::Conflict));
    assert_eq!(store.stored_run(&scribe.run).await.unwrap(), free, "a conflict claims nothing");
    assert_eq!(store.commits(&scribe.run, 0, 9).await.unwrap().len(), 1);
    let both = Append { epoch: Some(1), ..claiming(&scribe, &*other, "two") };
    assert!(matches!(other.append(both).await, Err(AppendError::Store(StoreError::Misused(_)))));
}

pub async fn a_commit_takes_a_run_over_from_a_dead_driver(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let mut scribe = start_run(&*store, "aaaa", |_| ()).await;
    let first = store.claim(&scribe.run).await.unwrap();
    drop(store);
    let second = other.append(claiming(&scribe, &*other, "two")).await.unwrap();
    assert!(second > Some(first));
    (scribe.version, scribe.hash) = other.load(&scribe.run).await.unwrap().unwrap().head();
    scribe.epoch = second;
    scribe.write(&*other, "three").await;
}

pub async fn the_next_run_is_one_that_no_live_process_drives(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    for run in ["aaaa", "bbbb", "cccc", "dddd"] {
        start_detached(&*store, run).await;
    }
    start_run(&*store, "attended", |_| ()).await;
    let any = |_: &RunId| true;
    let not_b = |run: &RunId| run.as_str() != "bbbb";
    let [a, b, c, d] = ["aaaa", "bbbb", "cccc", "dddd"].map(RunId::new);
    assert_eq!(store.claim_next(&not_b, 1).await, Ok(vec![(a.clone(), 1)]));
    assert_eq!(other.claim_next(&not_b, 1).await, Ok(vec![(c.clone(), 1)]));
    assert_eq!(other.claim_next(&|run| run.as_str() == "aaaa", 1).await, Ok(vec![]), "a live process drives it");
    for process in [&store, &other] {
        assert_eq!(process.undriven(9).await.unwrap(), [b.clone(), d.clone()], "neither lists its own runs");
        assert_eq!(process.undriven(1).await, Ok(vec![b.clone()]));
    }
    store.release(&a, 1).await.unwrap();
    assert_eq!(other.claim_next(&any, 0).await, Ok(vec![]));
    assert_eq!(other.claim_next(&any, 2).await, Ok(vec![(a.clone(), 2), (b.clone(), 1)]));
    assert_eq!(other.claim_next(&any, 9).await, Ok(vec![(d.clone(), 1)]));
    drop(other);
    assert_eq!(store.claim_next(&any, 9).await, Ok(vec![(a, 3), (b, 2), (c, 2), (d, 2)]), "their driver died");
}

pub async fn a_run_that_this_process_drives_cannot_be_claimed_here_again(backend: &dyn Backend) {
    let store = backend.process();
    let scribe = start_detached(&*store, "aaaa").await;
    let epoch = store.claim(&scribe.run).await.unwrap();
    let again = store.claim(&scribe.run).await;
    assert!(matches!(&again, Err(ClaimError::DrivenBy(info)) if info.driver == *store.driver()), "{again:?}");
    let appended = store.append(claiming(&scribe, &*store, "two")).await;
    assert!(matches!(&appended, Err(AppendError::DrivenBy(info)) if info.driver == *store.driver()), "{appended:?}");
    assert_eq!(store.undriven(9).await, Ok(vec![]));
    assert_eq!(store.claim_any(std::slice::from_ref(&scribe.run), 1).await, Ok(vec![]));
    store.release(&scribe.run, epoch).await.unwrap();
    let claimed = store.append(claiming(&scribe, &*store, "two")).await.unwrap();
    assert_eq!(claimed, Some(epoch + 1), "it was free, and the commit claimed it");
    assert!(matches!(store.claim(&scribe.run).await, Err(ClaimError::DrivenBy(_))));

    let created = HistoryWriter::new("bbbb");
    store.append(claiming(&created, &*store, "one")).await.unwrap();
    assert!(matches!(store.claim(&created.run).await, Err(ClaimError::DrivenBy(_))), "it was claimed as it was created");
}

pub async fn of_two_concurrent_claims_in_one_process_one_is_taken(backend: &dyn Backend) {
    let store = backend.process();
    for number in 0..5 {
        let scribe = start_detached(&*store, &format!("run{number}")).await;
        let (one, two) = futures::future::join(store.claim(&scribe.run), store.claim(&scribe.run)).await;
        assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    }
}

pub async fn an_abandoned_claim_is_released(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let scribe = start_run(&*store, "aaaa", |_| ()).await;
    let epoch = store.claim(&scribe.run).await.unwrap();
    let mut marker = other.changes_of(&scribe.run);
    store.abandon(&scribe.run, epoch);
    while other.driver_of(&scribe.run).await.unwrap().is_some() {
        marker = other.run_changed(&scribe.run, marker, None).await.unwrap();
    }
    assert!(other.claim(&scribe.run).await.unwrap() > epoch);
}

pub async fn a_run_that_no_longer_wants_a_driver_is_not_claimed(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let mut ended = start_detached(&*store, "aaaa").await;
    let wanted = start_detached(&*store, "bbbb").await;
    let listed = other.undriven(9).await.unwrap();
    assert_eq!(listed, [ended.run.clone(), wanted.run.clone()]);
    // Between listing and claiming, this process drives the first run to its end.
    ended.epoch = Some(store.claim(&ended.run).await.unwrap());
    let mut last = ended.next("failed");
    last.index.timers_removed = vec![TimerId::new(DRIVE_TIMER)];
    ended.append(&*store, last).await.unwrap();
    store.release(&ended.run, 1).await.unwrap();
    assert_eq!(other.claim_any(&listed, 9).await, Ok(vec![(wanted.run.clone(), 1)]));
    assert_eq!(other.driver_of(&ended.run).await, Ok(None));
    assert!(other.claim(&ended.run).await.is_ok(), "a person may still resume it");
}

pub async fn a_release_and_the_end_of_a_driver_are_changes(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let scribe = start_run(&*store, "aaaa", |_| ()).await;
    let epoch = other.claim(&scribe.run).await.unwrap();
    let mut marker = store.changes_of(&scribe.run);
    other.release(&scribe.run, epoch).await.unwrap();
    while store.driver_of(&scribe.run).await.unwrap().is_some() {
        marker = store.run_changed(&scribe.run, marker, None).await.unwrap();
    }
    other.claim(&scribe.run).await.unwrap();
    while store.driver_of(&scribe.run).await.unwrap().is_none() {
        marker = store.run_changed(&scribe.run, marker, None).await.unwrap();
    }
    // The store knows which drivers are alive once it has waited, and notices when one is gone.
    let waiting = async {
        while store.driver_of(&scribe.run).await.unwrap().is_some() {
            marker = store.run_changed(&scribe.run, marker, None).await.unwrap();
        }
    };
    futures::future::join(waiting, async { drop(other) }).await;
}
