//! Conformance tests for the outbox: notices are part of a commit, one process at a time delivers them, and none is lost.

use super::{Backend, HistoryWriter, start_run};
use crate::error::AppendError;
use crate::store::{Delivery, OutboxEntry, OutboxFilter, Store};
use lockgate_engine::id::RunId;
use lockgate_engine::run::index::OutboxRow;
use lockgate_engine::run::outbox::{NoticeChannel, NoticeId};
use lockgate_engine::time::Timestamp;

pub fn outbox_row(run: &RunId, seq: u64, at: i64) -> OutboxRow {
    let notice = NoticeId { run: run.clone(), seq };
    let payload = format!("{{\"seq\":{seq}}}");
    OutboxRow { notice, channel: NoticeChannel::Command.into(), at: Timestamp::from_millis(at), payload }
}

async fn begin_notifying(store: &dyn Store, run: &str, notices: &[(u64, i64)]) -> HistoryWriter {
    start_run(store, run, |append| {
        append.index.outbox = notices.iter().map(|(seq, at)| outbox_row(&append.run, *seq, *at)).collect();
    })
    .await
}

async fn undelivered(store: &dyn Store) -> Vec<OutboxEntry> {
    store.outbox(OutboxFilter::Undelivered, usize::MAX).await.unwrap()
}

async fn given_up(store: &dyn Store) -> Vec<OutboxEntry> {
    store.outbox(OutboxFilter::GivenUp, usize::MAX).await.unwrap()
}

fn ids(listed: &[OutboxEntry]) -> Vec<String> {
    listed.iter().map(|entry| entry.row.notice.to_string()).collect()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub async fn notices_are_listed_by_the_time_when_they_are_due(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let mut scribe = begin_notifying(&*store, "aaaa", &[(1, 30), (2, 10)]).await;
    begin_notifying(&*other, "bbbb", &[(1, 20)]).await;
    for reader in [&store, &other] {
        let listed = undelivered(&**reader).await;
        assert_eq!(ids(&listed), ["aaaa-2", "bbbb-1", "aaaa-1"]);
        let first = OutboxEntry {
            row: outbox_row(&scribe.run, 2, 10),
            attempts: 0,
            due: Some(at(10)),
            error: None,
            driver: None,
            claimed: false,
        };
        assert_eq!(listed[0], first);
        assert_eq!(ids(&reader.outbox(OutboxFilter::Undelivered, 2).await.unwrap()), ["aaaa-2", "bbbb-1"]);
        assert_eq!(given_up(&**reader).await, []);
    }
    let mut append = scribe.next("two");
    append.index.outbox = vec![outbox_row(&scribe.run, 3, 15)];
    scribe.append(&*store, append).await.unwrap();
    assert_eq!(ids(&undelivered(&*other).await), ["aaaa-2", "aaaa-3", "bbbb-1", "aaaa-1"]);
}

pub async fn notices_of_a_rejected_append_are_not_queued(backend: &dyn Backend) {
    let store = backend.process();
    let scribe = start_run(&*store, "aaaa", |_| ()).await;
    let mut late = HistoryWriter { version: 2, ..scribe.clone() }.next("three");
    late.index.outbox = vec![outbox_row(&scribe.run, 3, 1)];
    assert_eq!(store.append(late).await, Err(AppendError::Conflict));
    let mut stray = scribe.next("two");
    stray.index.outbox = vec![outbox_row(&RunId::new("bbbb"), 2, 1)];
    assert!(matches!(store.append(stray).await, Err(AppendError::Store(_))), "the notice belongs to another run");
    assert_eq!(undelivered(&*store).await, []);
}

pub async fn a_notice_is_claimed_by_one_live_process(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    begin_notifying(&*store, "aaaa", &[(1, 10)]).await;
    let (seen, seen_by_other) = (undelivered(&*store).await, undelivered(&*other).await);
    assert_eq!(store.claim_notice(&seen[0]).await, Ok(true));
    assert_eq!(other.claim_notice(&seen_by_other[0]).await, Ok(false), "the first claim counts");
    assert!(undelivered(&*other).await[0].claimed);
    let own = undelivered(&*store).await;
    assert_eq!((own[0].claimed, own[0].driver.as_ref()), (false, Some(store.driver())), "this process knows what it delivers");
    assert_eq!(store.claim_notice(&own[0]).await, Ok(true));
    store.settle_notice(&own[0].row, Delivery::Delivered).await.unwrap();
    assert_eq!(undelivered(&*other).await, []);
    assert_eq!(other.claim_notice(&own[0]).await, Ok(false), "it was delivered");
}

pub async fn a_notice_that_a_dead_process_claimed_can_be_claimed_again(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    begin_notifying(&*store, "aaaa", &[(1, 10)]).await;
    assert_eq!(store.claim_notice(&undelivered(&*store).await[0]).await, Ok(true));
    drop(store);
    let left = undelivered(&*other).await;
    assert!(!left[0].claimed && left[0].driver.is_some(), "{left:?}");
    assert_eq!(other.claim_notice(&left[0]).await, Ok(true));
    other.settle_notice(&left[0].row, Delivery::Delivered).await.unwrap();
    assert_eq!(undelivered(&*other).await, []);
}

pub async fn a_failed_delivery_is_due_again_later(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    begin_notifying(&*store, "aaaa", &[(1, 10), (2, 20)]).await;
    let first = undelivered(&*store).await.remove(0);
    assert_eq!(store.claim_notice(&first).await, Ok(true));
    let again = Delivery::Retry { due: at(500), error: "exit code 1".to_owned() };
    store.settle_notice(&first.row, again).await.unwrap();
    let listed = undelivered(&*other).await;
    assert_eq!(ids(&listed), ["aaaa-2", "aaaa-1"], "it is due after the other one now");
    let OutboxEntry { attempts, due, error, driver, .. } = &listed[1];
    assert_eq!((*attempts, *due, error.as_deref(), driver), (1, Some(at(500)), Some("exit code 1"), &None));
    assert_eq!(other.claim_notice(&first).await, Ok(false), "it was listed before the failure");
    assert_eq!(other.claim_notice(&listed[1]).await, Ok(true));
}

pub async fn a_notice_that_was_given_up_is_kept_for_a_while(backend: &dyn Backend) {
    let store = backend.process();
    begin_notifying(&*store, "aaaa", &[(1, 10), (2, 2_000), (3, 15)]).await;
    for (notice, forget_before) in [(0, 5), (1, 1_000)] {
        let listed = undelivered(&*store).await;
        let entry = listed.iter().find(|entry| entry.row.notice.seq == notice + 1).expect("it is listed");
        assert_eq!(store.claim_notice(entry).await, Ok(true));
        let given_up = Delivery::GivenUp { error: "no such program".to_owned(), forget_before: at(forget_before) };
        store.settle_notice(&entry.row, given_up).await.unwrap();
        if notice == 0 {
            let kept = self::given_up(&*store).await;
            assert_eq!((ids(&kept), kept[0].attempts, kept[0].due), (vec!["aaaa-1".to_owned()], 1, None));
            assert_eq!(kept[0].error.as_deref(), Some("no such program"));
            assert_eq!(store.claim_notice(&kept[0]).await, Ok(false), "it is no longer delivered");
        }
    }
    assert_eq!(ids(&given_up(&*store).await), ["aaaa-2"], "the older one was removed");
    assert_eq!(ids(&undelivered(&*store).await), ["aaaa-3"], "undelivered notices are never removed");
}

pub async fn only_the_process_that_claimed_a_notice_settles_it(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    begin_notifying(&*store, "aaaa", &[(1, 10)]).await;
    let seen = undelivered(&*store).await.remove(0);
    assert_eq!(store.claim_notice(&seen).await, Ok(true));
    other.settle_notice(&seen.row, Delivery::Delivered).await.unwrap();
    other.settle_notice(&seen.row, Delivery::Retry { due: at(99), error: String::new() }).await.unwrap();
    let kept = undelivered(&*store).await;
    assert_eq!((kept.len(), kept[0].attempts, kept[0].due), (1, 0, Some(at(10))));
}
