//! Measures how many appends per second PostgreSQL takes from one sequential caller and from many concurrent ones, compared
//! with PostgreSQL itself at one row per transaction on 1 and on 32 connections. It starts its own server in a temporary
//! directory.
//!
//! `cargo run --release -p lockgate-store --example postgres_rate`
#![expect(clippy::print_stdout, reason = "it prints measurements")]

use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_store::conformance::{HistoryWriter, run_row};
use lockgate_store::postgres::test_server::server;
use lockgate_store::{Append, PostgresStore, Store};
use std::time::{Duration, Instant};
use tokio_postgres::{Client, NoTls, Statement};

const ROUNDS: usize = 5;
const COMMITS: u32 = 500;
const MANY: u32 = 32;

fn append(run: &RunId, version: u64) -> Append {
    let mut append = HistoryWriter::new("none").next("");
    append.run = run.clone();
    append.expected = version - 1;
    append.commit = SealedCommit { version, payload: vec![1; 260], hash: Digest::ZERO };
    append.index.run = (version == 1).then(|| run_row(run));
    append
}

fn rate(count: u32, took: Duration) -> f64 {
    f64::from(count) / took.as_secs_f64()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

async fn raw(url: &str) -> (Client, Statement) {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(connection);
    let statement = client.prepare("INSERT INTO rows(bytes) VALUES($1)").await.expect("a statement");
    (client, statement)
}

async fn insert((client, statement): &(Client, Statement), count: u32) {
    for _ in 0..count {
        client.execute(statement, &[&&[1u8; 300][..]]).await.expect("a row");
    }
}

async fn sequential(store: &PostgresStore, run: &RunId, version: &mut u64) -> f64 {
    let started = Instant::now();
    for _ in 0..COMMITS {
        *version += 1;
        store.append(append(run, *version)).await.expect("an append");
    }
    rate(COMMITS, started.elapsed())
}

/// Many runs, each appending its next commit as soon as the previous one is stored.
async fn concurrent(store: &PostgresStore, round: usize, runs: u32, commits: u64) -> f64 {
    let started = Instant::now();
    let each = (0..runs).map(|number| async move {
        let run = RunId(format!("{runs}-{round}-{number}"));
        for version in 1..=commits {
            store.append(append(&run, version)).await.expect("an append");
        }
    });
    futures::future::join_all(each).await;
    f64::from(runs) * commits as f64 / started.elapsed().as_secs_f64()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let url = server().database();
    server().perform(&url, "CREATE TABLE rows(key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, bytes bytea)");
    let one = raw(&url).await;
    let many: Vec<_> = futures::future::join_all((0..MANY).map(|_| raw(&url))).await;
    let started = Instant::now();
    let store = PostgresStore::connect(&url).expect("a store");
    println!("opening: {:?}", started.elapsed());
    let (run, mut version) = (RunId::new("rate"), 0);
    let mut figures: [Vec<f64>; 5] = Default::default();
    for round in 0..ROUNDS {
        let started = Instant::now();
        insert(&one, COMMITS).await;
        figures[0].push(rate(COMMITS, started.elapsed()));
        figures[1].push(sequential(&store, &run, &mut version).await);
        let started = Instant::now();
        futures::future::join_all(many.iter().map(|connection| insert(connection, COMMITS / 10))).await;
        figures[2].push(rate(MANY * (COMMITS / 10), started.elapsed()));
        figures[3].push(concurrent(&store, round, 64, 20).await);
        figures[4].push(concurrent(&store, round, 1000, 5).await);
    }
    let [raw_one, sequential, raw_many, concurrent_64, concurrent_1000] = figures.map(median);
    println!("1 connection: raw {raw_one:.0}/s, ours {sequential:.0}/s, ratio {:.2}", sequential / raw_one);
    println!(
        "{MANY} connections: raw {raw_many:.0}/s; ours with 64 runs {concurrent_64:.0}/s, ratio {:.2}; with 1000 runs {concurrent_1000:.0}/s, ratio {:.2}",
        concurrent_64 / raw_many,
        concurrent_1000 / raw_many
    );
}
