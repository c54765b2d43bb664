//! Measures how long it takes until a process that waits for a run learns of another process's commit: `change_latency
//! [POSTGRES_URL]`.
//!
//! The two stores in this program act as two processes. The time counts from when the commit is durable.
#![expect(clippy::print_stdout, reason = "it prints measurements")]

use lockgate_store::conformance::HistoryWriter;
use lockgate_store::{PostgresStore, SqliteStore, Store};
use std::sync::Arc;
use std::time::{Duration, Instant};

const COMMITS: usize = 200;

fn main() {
    let folder = std::env::temp_dir().join(format!("lockgate-latency-{}", std::process::id()));
    let url = std::env::args().nth(1);
    let open = || -> Arc<dyn Store> {
        match &url {
            Some(url) => Arc::new(PostgresStore::connect(url).expect("a database")),
            None => Arc::new(SqliteStore::open(&folder).expect("a store")),
        }
    };
    let (writer, waiter) = (open(), open());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let mut took = runtime.block_on(measure(&writer, &waiter));
    took.sort();
    println!("median {:?}, nine of ten within {:?}", took[COMMITS / 2], took[COMMITS * 9 / 10]);
    drop((writer, waiter));
    std::fs::remove_dir_all(&folder).ok();
}

async fn measure(writer: &Arc<dyn Store>, waiter: &Arc<dyn Store>) -> Vec<Duration> {
    let mut scribe = HistoryWriter::new(&format!("run{:08x}", std::process::id()));
    scribe.write(&**writer, "one").await;
    let mut took = Vec::new();
    for _ in 0..COMMITS {
        let (store, run, known) = (waiter.clone(), scribe.run.clone(), scribe.version);
        let mut marker = store.changes_of(&run);
        let waiting = tokio::spawn(async move {
            loop {
                marker = store.run_changed(&run, marker, Some(known)).await.expect("a change");
                if !store.commits(&run, known, 1).await.expect("commits").is_empty() {
                    return Instant::now();
                }
            }
        });
        // Long enough for the other side to fall asleep.
        tokio::time::sleep(Duration::from_millis(10)).await;
        scribe.write(&**writer, "more").await;
        let durable = Instant::now();
        took.push(waiting.await.expect("no panic").saturating_duration_since(durable));
    }
    took
}
