//! Conformance tests for maintenance: unreferenced values and backups.

use super::{Backend, HistoryWriter, hold_row, timer_row};
use crate::sqlite::SqliteStore;
use crate::store::{Page, Store, StoredRun, Unreferenced};
use crate::verify::verify_store;
use lockgate_engine::digest::Digest;
use std::path::PathBuf;

pub async fn only_unreferenced_values_are_removed(backend: &dyn Backend) {
    let (store, other) = (backend.process(), backend.process());
    let (kept, lost) = (b"kept".to_vec(), vec![7_u8; 5000]);
    let mut scribe = HistoryWriter::new("aaaa");
    let mut append = scribe.next("one");
    append.values = vec![(Digest::of(&kept), kept.clone()), (Digest::of(&lost), lost.clone())];
    append.index.referenced_values = vec![Digest::of(&kept)];
    scribe.append(&*store, append).await.unwrap();
    let found = Unreferenced { count: 1, bytes: 5000 };
    let before = other.changes();
    assert_eq!(other.unreferenced_values().await, Ok(found));
    assert_eq!(store.values(&[Digest::of(&lost)]).await.unwrap(), [Some(lost.clone())], "listing removes nothing");
    assert_eq!(store.remove_unreferenced_values().await, Ok(found));
    assert_ne!(other.changed(before).await.unwrap(), before);
    assert_eq!(other.values(&[Digest::of(&lost), Digest::of(&kept)]).await.unwrap(), [None, Some(kept)]);
    assert_eq!(store.remove_unreferenced_values().await, Ok(Unreferenced::default()));
    assert_eq!(verify_store(&*other).await, Ok(Vec::new()));
    let mut append = scribe.next("two");
    append.values = vec![(Digest::of(&lost), lost.clone())];
    append.index.referenced_values = vec![Digest::of(&lost)];
    scribe.append(&*store, append).await.unwrap();
    assert_eq!(other.values(&[Digest::of(&lost)]).await.unwrap(), [Some(lost)]);
}

/// A directory that is removed on drop.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("lockgate-backup-{:016x}", rand::random::<u64>()));
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        crate::cleanup::remove_dir(&self.0);
    }
}

pub async fn a_backup_holds_all_runs_and_overwrites_nothing(backend: &dyn Backend) {
    let (store, folder) = (backend.process(), TempDir::new());
    let mut scribes = Vec::new();
    for run in ["aaaa", "bbbb"] {
        let mut scribe = HistoryWriter::new(run);
        scribe.write(&*store, "one").await;
        scribe.epoch = Some(store.claim(&scribe.run).await.unwrap());
        let mut append = scribe.next("two");
        append.values = vec![(Digest::of(run.as_bytes()), run.as_bytes().to_vec())];
        append.index.referenced_values = vec![Digest::of(run.as_bytes())];
        append.index.holds = vec![hold_row(&scribe.run, "z-first", 5), hold_row(&scribe.run, "a-second", 3)];
        append.index.timers = vec![timer_row(&scribe.run, "timer", 1)];
        append.materialized = Some(b"state".to_vec());
        scribe.append(&*store, append).await.unwrap();
        scribe.write(&*store, "three").await;
        scribes.push(scribe);
    }
    let file = folder.0.join("lockgate.db");
    store.back_up(file.clone()).await.unwrap();
    let names: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["lockgate.db"], "no other files are left behind");
    // Later commits are not in the backup, and the backup does not block them.
    scribes[0].write(&*store, "four").await;

    let copy = SqliteStore::open_existing(&folder.0).unwrap();
    assert_eq!(verify_store(&copy).await, Ok(Vec::new()));
    for scribe in &scribes {
        let own = store.commits(&scribe.run, 0, 3).await.unwrap();
        assert_eq!(copy.commits(&scribe.run, 0, 9).await.unwrap(), own);
        let (mut one, two) =
            (store.stored_run(&scribe.run).await.unwrap().unwrap(), copy.stored_run(&scribe.run).await.unwrap().unwrap());
        // A copy does not record who drove a run last.
        one = StoredRun { driver: two.driver.clone(), epoch: two.epoch, ..one };
        assert_eq!(one, two);
        assert_eq!(copy.driver_of(&scribe.run).await, Ok(None));
        assert!(copy.claim(&scribe.run).await.unwrap() > 0);
    }
    assert_eq!(copy.runs(Page::ALL).await.unwrap().len(), 2);
    drop(copy);

    let bytes = std::fs::read(&file).unwrap();
    let refused = store.back_up(file.clone()).await.unwrap_err();
    assert!(refused.to_string().contains("already exists"), "{refused}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    assert!(store.back_up(folder.0.join("missing/backup.db")).await.is_err());
}
