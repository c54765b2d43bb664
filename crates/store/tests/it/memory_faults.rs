//! Injected faults of the in-memory store.

use lockgate_store::conformance::HistoryWriter;
use lockgate_store::{AppendError, Fault, MemoryStore, Store, StoreError};

#[tokio::test]
async fn a_fault_before_the_commit_leaves_nothing_and_one_after_it_leaves_everything() {
    let store = MemoryStore::new();
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&store, "one").await;
    for (fault, version) in [(Fault::BeforeCommit, 1), (Fault::AfterCommit, 2)] {
        store.set_fault(fault);
        let unknown = scribe.append(&store, scribe.next("two")).await;
        assert!(matches!(unknown, Err(AppendError::Store(StoreError::OutcomeUnknown(_)))), "{unknown:?}");
        assert_eq!(store.load(&scribe.run).await.unwrap().unwrap().head().0, version);
    }
    (scribe.version, scribe.hash) = store.load(&scribe.run).await.unwrap().unwrap().head();
    scribe.write(&store, "three").await;
}

#[tokio::test]
async fn a_fault_affects_one_append_of_its_own_process() {
    let store = MemoryStore::new();
    let (other, same) = (store.another_process(), store.clone());
    let mut scribe = HistoryWriter::new("aaaa");
    store.set_fault(Fault::Error(StoreError::Full("disk".into())));
    scribe.write(&other, "one").await;
    let full = scribe.append(&same, scribe.next("two")).await;
    assert_eq!(full, Err(AppendError::Store(StoreError::Full("disk".into()))));
    scribe.write(&store, "two").await;
}

#[tokio::test]
async fn clones_share_one_process_that_lives_as_long_as_any_of_them() {
    let store = MemoryStore::new();
    let other = store.another_process();
    let clone = store.clone();
    let mut scribe = HistoryWriter::new("aaaa");
    scribe.write(&store, "one").await;
    store.claim(&scribe.run).await.unwrap();
    drop(store);
    assert_eq!(other.driver_of(&scribe.run).await.unwrap().unwrap().driver, *clone.driver());
    drop(clone);
    assert_eq!(other.driver_of(&scribe.run).await, Ok(None));
}
