//! Database files, including backups: every change to one is an error, is found by verification, or does not matter.

use crate::hash_chain::played;
use crate::play;
use lockgate_engine::digest::Digest;
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_runner::verify::verify_all;
use lockgate_store::{Append, Page, SqliteStore, Store, StoreError, StoredRun};
use std::path::Path;
use std::sync::OnceLock;

/// Changes a backup and opens it. Each change has three bytes for a position and one for the new value.
pub fn run(bytes: &[u8]) {
    let (good, known) = good();
    let mut changed = good.clone();
    for change in bytes.chunks_exact(4) {
        let place = u32::from_le_bytes([change[0], change[1], change[2], 0]) as usize % changed.len();
        changed[place] = change[3];
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("lockgate.db"), &changed).expect("the file can be written");
    match within(opened(directory.path())) {
        Err(_) | Ok(None) => assert!(changed != *good, "a valid backup is refused"),
        Ok(Some(found)) => assert!(found == *known, "a change of the stored data is not found"),
    }
}

/// No change, and several changes.
pub fn seeds() -> Vec<Vec<u8>> {
    let place = |place: u32, byte: u8| [&place.to_le_bytes()[..3], &[byte]].concat();
    let header = [18, 19, 28, 40, 44, 56, 60, 96, 100, 103, 105].map(|at| place(at, 2));
    let pages = (0..60_u32).flat_map(|page| [0, 3, 5, 8, 9, 200, 4000].map(|at| place(page * 4096 + at, 1)));
    std::iter::once(Vec::new()).chain(header).chain(pages).collect()
}

/// The content of a store with one run.
type Found = Vec<(StoredRun, Vec<SealedCommit>, Vec<Option<Vec<u8>>>)>;

fn good() -> &'static (Vec<u8>, Found) {
    static GOOD: OnceLock<(Vec<u8>, Found)> = OnceLock::new();
    GOOD.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let backup = directory.path().join("backup.db");
        within(filled(directory.path(), &backup)).expect("a valid store");
        let bytes = std::fs::read(&backup).expect("the backup exists");
        let aside = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(aside.path().join("lockgate.db"), &bytes).expect("the file can be written");
        let found = within(opened(aside.path())).expect("a valid backup");
        (bytes, found.expect("a valid backup has no findings"))
    })
}

async fn filled(directory: &Path, backup: &Path) -> Result<(), StoreError> {
    let store = SqliteStore::open(directory)?;
    let definition = play::workflow().to_bytes();
    for (id, seed) in ["aaaaaaaa", "aaaaaaab", "bbbbbbbb"].iter().zip(play::seeds()) {
        let play = played(id, &seed[..120]);
        for (number, (commit, rows)) in play.commits.iter().enumerate() {
            let values = if number == 0 { vec![(Digest::of(&definition), definition.clone())] } else { Vec::new() };
            let last = number + 1 == play.commits.len();
            let append = Append {
                run: play.run.id.clone(),
                expected: number as u64,
                epoch: None,
                claim: None,
                materialized: last.then(|| play.run.to_bytes()),
                commit: commit.clone(),
                values,
                index: rows.clone(),
            };
            store.append(append).await.unwrap_or_else(|error| panic!("a valid append: {error}"));
        }
    }
    store.back_up(backup.to_owned()).await
}

/// Everything in a store, or `None` if verification finds something.
async fn opened(directory: &Path) -> Result<Option<Found>, StoreError> {
    let store = SqliteStore::open_existing(directory)?;
    let findings = verify_all(&store).await?;
    let runs = store.scan_runs(None, 100).await?;
    let mut found = Vec::new();
    for mut run in runs {
        let commits = store.commits(&run.row.run, 0, 1000).await?;
        let values = store.values(&run.referenced_values).await?;
        values.iter().flatten().for_each(|bytes| drop(Workflow::from_bytes(bytes)));
        store.load(&run.row.run).await?;
        // The driver is not part of the history, and a claim may change it at any time.
        (run.driver, run.epoch) = (None, 0);
        found.push((run, commits, values));
    }
    store.runs(Page::ALL).await?;
    store.find_holds("a").await?;
    Ok(findings.is_empty().then_some(found))
}

fn within<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future)
}
