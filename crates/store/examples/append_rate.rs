//! Measures how many appends per second one sequential caller reaches, compared with SQLite itself at one row per
//! transaction.
//!
//! `cargo run --release -p lockgate-store --example append_rate [DIRECTORY]`
#![expect(clippy::print_stdout, reason = "it prints measurements")]

use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{HoldKind, HoldState};
use lockgate_engine::id::{HoldId, RunId};
use lockgate_engine::run::Status;
use lockgate_engine::run::event::RunKind;
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::index::{HoldRow, IndexRows, RunRow};
use lockgate_engine::time::Timestamp;
use lockgate_store::{Append, HoldFilter, Page, SqliteStore, Store};
use rusqlite::Connection;
use std::path::Path;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const COMMITS: u32 = 1000;
const PAYLOAD: usize = 260;

fn append(run: &RunId, version: u64) -> Append {
    let at = Timestamp::from_millis(0);
    let row = RunRow {
        run: run.clone(),
        kind: RunKind::Workflow.into(),
        workflow: "rate".into(),
        feature: None,
        status: Status::Running.into(),
        phase: None,
        created_at: at,
        changed_at: at,
        parent: None,
    };
    Append {
        run: run.clone(),
        expected: version - 1,
        epoch: None,
        claim: None,
        commit: SealedCommit { version, payload: vec![1; PAYLOAD], hash: Digest::ZERO },
        values: Vec::new(),
        index: IndexRows { run: (version == 1).then_some(row), ..IndexRows::default() },
        materialized: None,
    }
}

fn rate(count: u32, took: Duration) -> f64 {
    f64::from(count) / took.as_secs_f64()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

struct Raw(Connection);

impl Raw {
    fn open(folder: &Path) -> Self {
        let connection = Connection::open(folder.join("raw.db")).expect("a database");
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE rows(key INTEGER PRIMARY KEY, bytes BLOB);",
            )
            .expect("a table");
        Self(connection)
    }

    fn measure(&self) -> f64 {
        let started = Instant::now();
        for _ in 0..COMMITS {
            let mut statement = self.0.prepare_cached("INSERT INTO rows(bytes) VALUES(?1)").expect("a statement");
            statement.execute([&[1u8; 300][..]]).expect("a row");
        }
        rate(COMMITS, started.elapsed())
    }
}

async fn measure(store: &SqliteStore, run: &RunId, version: &mut u64) -> f64 {
    let started = Instant::now();
    for _ in 0..COMMITS {
        *version += 1;
        store.append(append(run, *version)).await.expect("an append");
    }
    rate(COMMITS, started.elapsed())
}

async fn measure_many(store: &SqliteStore, round: usize) -> f64 {
    let runs: Vec<RunId> = (0..64).map(|number| RunId(format!("many-{round}-{number}"))).collect();
    let started = Instant::now();
    for version in 1..=100 {
        let appends = runs.iter().map(|run| store.append(append(run, version)));
        futures::future::try_join_all(appends).await.expect("appends");
    }
    rate(6400, started.elapsed())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = match std::env::args_os().nth(1) {
        Some(base) => tempfile::tempdir_in(base),
        None => tempfile::tempdir(),
    }
    .expect("a directory");
    let raw = Raw::open(folder.path());

    let started = Instant::now();
    let store = SqliteStore::open(&folder.path().join("store")).expect("a store");
    let fresh = started.elapsed();
    let crowded = SqliteStore::open(&folder.path().join("crowded")).expect("a store");
    let run = RunId::new("rate");
    let mut version = 0;
    let (mut raws, mut ours, mut many) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        raws.push(raw.measure());
        ours.push(measure(&store, &run, &mut version).await);
        many.push(measure_many(&crowded, round).await);
    }
    let (raw_rate, our_rate) = (median(raws.clone()), median(ours.clone()));
    let ratios = raws.iter().zip(&ours).map(|(raw, ours)| ours / raw).collect();
    println!(
        "raw {raw_rate:.0}/s, ours {our_rate:.0}/s, median ratio {:.3}; 64 concurrent {:.0}/s",
        median(ratios),
        median(many)
    );

    let started = Instant::now();
    drop(store);
    let closed = started.elapsed();
    let started = Instant::now();
    let again = SqliteStore::open(&folder.path().join("store")).expect("a store");
    let opened = started.elapsed();
    drop(again);
    let bytes = std::fs::metadata(folder.path().join("store/lockgate.db")).expect("a file").len();
    println!("opening: fresh {fresh:?}, again {opened:?}; closing {closed:?}; {} bytes a commit", bytes / version);
    measure_lists(&SqliteStore::open(&folder.path().join("lists")).expect("a store")).await;
}

async fn measure_lists(store: &SqliteStore) {
    let runs: Vec<RunId> = (0..10_000).map(|number| RunId(format!("list-{number}"))).collect();
    for runs in runs.chunks(500) {
        let appends = runs.iter().map(|run| {
            let mut append = append(run, 1);
            append.index.holds.push(HoldRow {
                hold: HoldId(format!("hold-{run}")),
                run: run.clone(),
                kind: HoldKind::Checkpoint.into(),
                state: HoldState::Open,
                revision: 1,
                since: Timestamp::from_millis(0),
                shown: "{}".repeat(100),
            });
            store.append(append)
        });
        futures::future::try_join_all(appends).await.expect("appends");
    }
    for round in 1..=2 {
        let started = Instant::now();
        let runs = store.runs(Page::ALL).await.expect("runs").len();
        let (listed, started) = (started.elapsed(), Instant::now());
        let holds = store.holds(HoldFilter::Open, Page::ALL).await.expect("holds").len();
        println!("listing, round {round}: {runs} runs {listed:?}, {holds} open holds {:?}", started.elapsed());
    }
}
