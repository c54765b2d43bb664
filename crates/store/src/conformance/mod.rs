//! The conformance suite for store backends: `lockgate_store::conformance_tests!(backend)` generates one test per function.

mod lists;
mod maintenance;
mod outbox;
mod ownership;
mod removal;

pub use lists::*;
pub use maintenance::*;
pub use outbox::*;
pub use ownership::*;
pub use removal::*;

use crate::error::{AppendError, ClaimError, StoreError};
use crate::store::{Append, ListedHold, ListedRun, MaterializedState, OutboxFilter, Page, Store};
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{HoldKind, HoldState};
use lockgate_engine::id::{HoldId, RunId, TimerId};
use lockgate_engine::run::Status;
use lockgate_engine::run::event::{Entry, Event, RunKind};
use lockgate_engine::run::hash_chain::{Commit, SealedCommit};
use lockgate_engine::run::index::{HoldRow, IndexRows, RunRow, TimerKind, TimerRow};
use lockgate_engine::time::Timestamp;

/// A location where stores can be opened. Each store acts as a separate process, which ends when the store is dropped.
pub trait Backend {
    /// Opens the store as another process.
    fn process(&self) -> Box<dyn Store>;
}

/// Writes the history of one run.
#[derive(Clone, Debug)]
pub struct HistoryWriter {
    pub run: RunId,
    /// The version of the last commit.
    pub version: u64,
    pub hash: Digest,
    /// The epoch that appends carry.
    pub epoch: Option<u64>,
}

impl HistoryWriter {
    pub fn new(run: &str) -> Self {
        Self { run: RunId::new(run), version: 0, hash: Digest::ZERO, epoch: None }
    }

    /// The next commit, holding one event with this text.
    pub fn seal(&self, text: &str) -> SealedCommit {
        let event = Event::Failed { message: text.to_owned() };
        let entry = Entry { at: Timestamp::from_millis(1), actor: None, cause: None, event };
        Commit { first_seq: self.version + 1, entries: vec![entry] }.seal(&self.run, self.version + 1, self.hash)
    }

    /// An append of the next commit.
    pub fn next(&self, text: &str) -> Append {
        let run = (self.version == 0).then(|| run_row(&self.run));
        Append {
            run: self.run.clone(),
            expected: self.version,
            epoch: self.epoch,
            claim: None,
            commit: self.seal(text),
            values: Vec::new(),
            index: IndexRows { run, ..IndexRows::default() },
            materialized: None,
        }
    }

    /// Appends, and advances to the new end of the history.
    pub async fn append(&mut self, store: &dyn Store, append: Append) -> Result<(), AppendError> {
        let (version, hash) = (append.commit.version, append.commit.hash);
        store.append(append).await?;
        (self.version, self.hash) = (version, hash);
        Ok(())
    }

    /// Appends the next commit, which must succeed.
    pub async fn write(&mut self, store: &dyn Store, text: &str) {
        self.append(store, self.next(text)).await.expect("the append is taken");
    }
}

pub fn run_row(run: &RunId) -> RunRow {
    RunRow {
        run: run.clone(),
        kind: RunKind::Workflow.into(),
        workflow: "ship".to_owned(),
        feature: None,
        status: Status::Running.into(),
        phase: None,
        created_at: Timestamp::from_millis(10),
        changed_at: Timestamp::from_millis(10),
        parent: None,
    }
}

pub fn hold_row(run: &RunId, hold: &str, since: i64) -> HoldRow {
    HoldRow {
        hold: HoldId::new(hold),
        run: run.clone(),
        kind: HoldKind::Checkpoint.into(),
        state: HoldState::Open,
        revision: 1,
        since: Timestamp::from_millis(since),
        shown: format!("{{\"prompt\":\"{hold}?\"}}"),
    }
}

pub fn timer_row(run: &RunId, timer: &str, due: i64) -> TimerRow {
    let (kind, target) = (TimerKind::Retry.into(), "build/compile".to_owned());
    TimerRow { timer: TimerId::new(timer), run: run.clone(), due: Timestamp::from_millis(due), kind, target }
}

pub fn run_ids(listed: &[ListedRun]) -> Vec<&str> {
    listed.iter().map(|listed| listed.row.run.as_str()).collect()
}

pub fn hold_ids(listed: &[ListedHold]) -> Vec<&str> {
    listed.iter().map(|listed| listed.row.hold.as_str()).collect()
}

/// Generates a test for every conformance function, on a fresh backend from this expression.
#[macro_export]
macro_rules! conformance_tests {
    ($backend:expr) => {
        $crate::conformance_tests! { $backend;
            commits_are_loaded_in_append_order
            a_version_is_taken_once
            a_gap_in_the_versions_is_a_conflict
            a_run_is_created_once
            appending_to_an_unknown_run_is_an_error
            misuse_is_reported_and_changes_nothing
            a_rejected_append_leaves_nothing_behind
            the_materialized_state_replaces_the_commits_before_it
            commits_are_read_in_pages
            values_are_stored_once_and_read_by_digest
            a_new_run_can_be_claimed_as_it_is_created
            a_live_driver_keeps_its_run
            a_dead_driver_loses_its_run_and_is_fenced
            claiming_again_raises_the_epoch
            answering_requires_no_epoch
            a_released_run_can_be_claimed_by_another_live_process
            only_the_current_claim_can_be_released
            a_commit_can_claim_its_run
            a_commit_that_cannot_claim_changes_nothing
            a_commit_takes_a_run_over_from_a_dead_driver
            the_next_run_is_one_that_no_live_process_drives
            a_run_that_this_process_drives_cannot_be_claimed_here_again
            of_two_concurrent_claims_in_one_process_one_is_taken
            an_abandoned_claim_is_released
            a_run_that_no_longer_wants_a_driver_is_not_claimed
            a_release_and_the_end_of_a_driver_are_changes
            runs_are_listed_newest_first_in_pages
            runs_are_found_by_prefix_and_by_feature
            runs_are_listed_by_status_workflow_feature_and_age
            a_run_row_is_replaced_by_its_successor
            open_holds_are_listed_longest_waiting_first_in_pages
            holds_of_a_run_are_listed_in_order
            holds_are_found_by_prefix
            timers_come_due_in_order_and_are_removed
            notices_are_listed_by_the_time_when_they_are_due
            notices_of_a_rejected_append_are_not_queued
            a_notice_is_claimed_by_one_live_process
            a_notice_that_a_dead_process_claimed_can_be_claimed_again
            a_failed_delivery_is_due_again_later
            a_notice_that_was_given_up_is_kept_for_a_while
            only_the_process_that_claimed_a_notice_settles_it
            commits_of_any_process_are_changes
            everything_is_scanned_in_pages
            orphans_are_found
            an_append_dropped_before_it_started_does_nothing
            only_unreferenced_values_are_removed
            a_backup_holds_all_runs_and_overwrites_nothing
            a_removed_run_leaves_nothing_behind
            only_a_claimed_run_with_an_allowed_status_is_removed
            a_removed_run_takes_no_commits_and_its_id_can_be_used_again
            a_removal_is_a_change
            concurrent_appends_and_removals_leave_whole_runs
        }
    };
    ($backend:expr; $($claim:ident)*) => {
        $(
            #[tokio::test]
            async fn $claim() {
                $crate::conformance::$claim(&$backend).await;
            }
        )*
    };
}

pub async fn commits_are_loaded_in_append_order(backend: &dyn Backend) {
    let store = backend.process();
    let mut scribe = HistoryWriter::new("aaaa");
    let mut expected = Vec::new();
    for text in ["one", "two", "three"] {
        expected.push(scribe.seal(text));
        scribe.write(&*store, text).await;
    }
    for store in [store, backend.process()] {
        let loaded = store.load(&scribe.run).await.unwrap().expect("the run is there");
        assert_eq!((loaded.materialized.clone(), loaded.before), (None, Digest::ZERO));
        assert_eq!(loaded.head(), (3, scribe.hash));
        assert_eq!(loaded.commits, expected);
        assert_eq!(store.load(&RunId::new("aaab")).await.unwrap(), None);
    }
}

pub async fn a_version_is_taken_once(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&*store, "one").await;
    let mut rival = scribe.clone();
    scribe.write(&*store, "two").await;
    for store in [&store, &other] {
        assert_eq!(rival.append(&**store, rival.next("also two")).await, Err(AppendError::Conflict));
    }
    assert_eq!(other.load(&scribe.run).await.unwrap().unwrap().head(), (2, scribe.hash));
}

pub async fn a_gap_in_the_versions_is_a_conflict(backend: &dyn Backend) {
    let store = backend.process();
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&*store, "one").await;
    let ahead = HistoryWriter { version: 2, ..scribe.clone() };
    assert_eq!(store.append(ahead.next("three")).await, Err(AppendError::Conflict));
    assert_eq!(store.commits(&scribe.run, 0, 9).await.unwrap().len(), 1);
}

pub async fn a_run_is_created_once(backend: &dyn Backend) {
    let store = backend.process();
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&*store, "one").await;
    assert_eq!(backend.process().append(HistoryWriter::new("aaaa").next("another")).await, Err(AppendError::Conflict));
    assert_eq!(store.load(&scribe.run).await.unwrap().unwrap().head(), (1, scribe.hash));
}

pub async fn appending_to_an_unknown_run_is_an_error(backend: &dyn Backend) {
    let store = backend.process();
    let unknown = HistoryWriter { version: 4, ..HistoryWriter::new("aaaa") };
    let missing = StoreError::NoRun(unknown.run.clone());
    assert_eq!(store.append(unknown.next("five")).await, Err(AppendError::Store(missing.clone())));
    assert_eq!(store.claim(&unknown.run).await, Err(ClaimError::Store(missing)));
    assert_eq!(store.driver_of(&unknown.run).await, Ok(None));
    assert_eq!(store.commits(&unknown.run, 0, 9).await, Ok(Vec::new()));
}

pub async fn misuse_is_reported_and_changes_nothing(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let scribe = HistoryWriter::new("aaaa");
    let good = scribe.next("one");
    let mut wrong_version = good.clone();
    wrong_version.expected = 1;
    let mut no_row = good.clone();
    no_row.index.run = None;
    let mut row_of_another = good.clone();
    row_of_another.index.holds = vec![hold_row(&RunId::new("bbbb"), "hold", 1)];
    let mut claim_for_another = good.clone();
    claim_for_another.claim = Some(other.driver().clone());
    for wrong in [wrong_version, no_row, row_of_another, claim_for_another] {
        let result = store.append(wrong.clone()).await;
        assert!(matches!(result, Err(AppendError::Store(StoreError::Misused(_)))), "{wrong:?}: {result:?}");
    }
    assert_eq!(store.runs(Page::ALL).await, Ok(Vec::new()));
}

pub async fn a_rejected_append_leaves_nothing_behind(backend: &dyn Backend) {
    let store = backend.process();
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&*store, "one").await;
    let before = store.stored_run(&scribe.run).await.unwrap();
    let digest = Digest::of(b"value");
    let full = |scribe: &HistoryWriter| {
        let mut append = scribe.next("full");
        append.values = vec![(digest, b"value".to_vec())];
        append.index = IndexRows {
            run: Some(RunRow { status: Status::Failed.into(), ..run_row(&scribe.run) }),
            holds: vec![hold_row(&scribe.run, "hold", 1)],
            timers: vec![timer_row(&scribe.run, "timer", 1)],
            timers_removed: Vec::new(),
            referenced_values: vec![digest],
            outbox: vec![outbox_row(&scribe.run, 2, 1)],
        };
        append.materialized = Some(b"state".to_vec());
        append
    };
    let conflict = full(&HistoryWriter { version: 7, ..scribe.clone() });
    let fenced = full(&HistoryWriter { epoch: Some(9), ..scribe.clone() });
    assert_eq!(store.append(conflict).await, Err(AppendError::Conflict));
    assert_eq!(store.append(fenced).await, Err(AppendError::Fenced));
    assert_eq!(store.stored_run(&scribe.run).await.unwrap(), before);
    assert_eq!(store.values(&[digest]).await, Ok(vec![None]));
    assert_eq!(store.outbox(OutboxFilter::Undelivered, 9).await, Ok(Vec::new()));
    scribe.append(&*store, full(&scribe)).await.expect("the same append succeeds at the right version");
    assert_ne!(store.stored_run(&scribe.run).await.unwrap(), before);
    assert_eq!(store.values(&[digest]).await, Ok(vec![Some(b"value".to_vec())]));
}

pub async fn the_materialized_state_replaces_the_commits_before_it(backend: &dyn Backend) {
    let store = backend.process();
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&*store, "one").await;
    for text in ["two", "three"] {
        let append = Append { materialized: Some(text.as_bytes().to_vec()), ..scribe.next(text) };
        scribe.append(&*store, append).await.unwrap();
        let loaded = store.load(&scribe.run).await.unwrap().unwrap();
        assert_eq!(loaded.materialized, Some(MaterializedState { version: scribe.version, state: text.as_bytes().to_vec() }));
        assert_eq!((loaded.head(), loaded.commits), ((scribe.version, scribe.hash), Vec::new()));
    }
    let materialized = scribe.hash;
    let four = scribe.seal("four");
    scribe.write(&*store, "four").await;
    let loaded = store.load(&scribe.run).await.unwrap().unwrap();
    assert_eq!(loaded.materialized.as_ref().map(|materialized| materialized.version), Some(3));
    assert_eq!((loaded.before, loaded.head()), (materialized, (4, scribe.hash)));
    assert_eq!(loaded.commits, [four]);
}

pub async fn commits_are_read_in_pages(backend: &dyn Backend) {
    let store = backend.process();
    // Two interleaved histories, so that a page could run over into the next one.
    let (mut one, mut two) = (HistoryWriter::new("aaaa"), HistoryWriter::new("bbbb"));
    for number in 0..5 {
        one.write(&*store, &format!("one {number}")).await;
        two.write(&*store, &format!("two {number}")).await;
    }
    let versions = async |run: &RunId, after, limit| {
        store.commits(run, after, limit).await.unwrap().iter().map(|commit| commit.version).collect::<Vec<_>>()
    };
    assert_eq!(versions(&one.run, 0, 2).await, [1, 2]);
    assert_eq!(versions(&one.run, 2, 2).await, [3, 4]);
    assert_eq!(versions(&one.run, 4, 2).await, [5]);
    assert_eq!(versions(&one.run, 5, 2).await, [] as [u64; 0]);
    assert_eq!(versions(&two.run, 3, usize::MAX).await, [4, 5]);
    assert_eq!(versions(&two.run, u64::MAX, 1).await, [] as [u64; 0]);
}

pub async fn values_are_stored_once_and_read_by_digest(backend: &dyn Backend) {
    let store = backend.process();
    let large = vec![7; 300_000];
    let (small_digest, large_digest, nowhere) = (Digest::of(b""), Digest::of(&large), Digest::of(b"nowhere"));
    for run in ["aaaa", "bbbb"] {
        let mut scribe = HistoryWriter::new(run);
        let mut append = scribe.next("one");
        append.values = vec![(small_digest, Vec::new()), (large_digest, large.clone())];
        append.index.referenced_values = vec![small_digest, large_digest, small_digest];
        scribe.append(&*store, append).await.unwrap();
    }
    let read = backend.process().values(&[large_digest, nowhere, small_digest, large_digest]).await.unwrap();
    assert_eq!(read, [Some(large.clone()), None, Some(Vec::new()), Some(large)]);
    assert_eq!(store.scan_values(None, 9).await.unwrap().len(), 2);
    let referenced_values = store.stored_run(&RunId::new("bbbb")).await.unwrap().unwrap().referenced_values;
    assert_eq!(referenced_values.len(), 2);
}

pub async fn a_new_run_can_be_claimed_as_it_is_created(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let mut scribe = HistoryWriter::new("aaaa");
    let append = Append { claim: Some(store.driver().clone()), ..scribe.next("one") };
    scribe.append(&*store, append).await.unwrap();
    scribe.epoch = Some(1);
    scribe.write(&*store, "two").await;
    assert_eq!(other.driver_of(&scribe.run).await.unwrap().unwrap().driver, *store.driver());
    assert!(matches!(other.claim(&scribe.run).await, Err(ClaimError::DrivenBy(info)) if info.driver == *store.driver()));
    assert!(other.runs(Page::ALL).await.unwrap()[0].driven);
}

pub async fn a_live_driver_keeps_its_run(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    assert_ne!(store.driver(), other.driver());
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&*store, "one").await;
    assert_eq!(store.driver_of(&scribe.run).await, Ok(None));
    assert!(!store.runs(Page::ALL).await.unwrap()[0].driven);
    scribe.epoch = Some(store.claim(&scribe.run).await.unwrap());
    for looker in [&store, &other] {
        assert_eq!(looker.driver_of(&scribe.run).await.unwrap().unwrap().driver, *store.driver());
        assert!(looker.runs(Page::ALL).await.unwrap()[0].driven);
    }
    for _ in 0..2 {
        let refused = other.claim(&scribe.run).await;
        assert!(matches!(&refused, Err(ClaimError::DrivenBy(info)) if info.driver == *store.driver()), "{refused:?}");
    }
    scribe.write(&*store, "two").await;
}

pub async fn a_dead_driver_loses_its_run_and_is_fenced(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&*store, "one").await;
    let first = store.claim(&scribe.run).await.unwrap();
    drop(store);
    assert_eq!(other.driver_of(&scribe.run).await, Ok(None));
    assert!(!other.runs(Page::ALL).await.unwrap()[0].driven);
    let second = other.claim(&scribe.run).await.unwrap();
    assert!(second > first);
    // A late append of the dead driver is rejected, no matter which process sends it.
    let late = HistoryWriter { epoch: Some(first), ..scribe.clone() };
    assert_eq!(backend.process().append(late.next("two")).await, Err(AppendError::Fenced));
    scribe.epoch = Some(second);
    scribe.write(&*other, "two").await;
}

pub async fn claiming_again_raises_the_epoch(backend: &dyn Backend) {
    let store = backend.process();
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&*store, "one").await;
    let first = store.claim(&scribe.run).await.unwrap();
    store.release(&scribe.run, first).await.unwrap();
    let second = store.claim(&scribe.run).await.unwrap();
    assert_eq!(second, first + 1);
    scribe.epoch = Some(first);
    assert_eq!(store.append(scribe.next("two")).await, Err(AppendError::Fenced));
}

pub async fn answering_requires_no_epoch(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&*store, "one").await;
    scribe.epoch = Some(store.claim(&scribe.run).await.unwrap());
    let mut answerer = HistoryWriter { epoch: None, ..scribe.clone() };
    answerer.write(&*other, "an answer").await;
    assert_eq!(scribe.append(&*store, scribe.next("two")).await, Err(AppendError::Conflict));
    let loaded = store.load(&scribe.run).await.unwrap().unwrap();
    (scribe.version, scribe.hash) = loaded.head();
    scribe.write(&*store, "three").await;
}
