//! PostgreSQL: raw commits over one connection and over many, compared with W1 over one connection and W2 over all of a process.

use super::concurrent_runs::{Harness, runtime};
use super::project::{Root, sequential_phase};
use super::table::{Row, Target, Unit};
use super::{Bench, Workload};
use lockgate_store::PostgresStore;
use lockgate_store::postgres::test_server::Server;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Barrier;

const STEPS: usize = 1000;
const RUNS: usize = 1000;
const STEPS_EACH: usize = 10;
/// Connections of the second raw program.
const CONNECTIONS: usize = 32;
const RAW_BYTES: usize = 300;

#[derive(Default)]
pub(crate) struct OnPostgres {
    server: Option<Server>,
    raw_one: Vec<f64>,
    raw_many: Vec<f64>,
    w1: Vec<f64>,
    w2: Vec<f64>,
}

impl Workload for OnPostgres {
    fn name(&self) -> &'static str {
        "pg"
    }

    fn prepare(&mut self, bench: &Bench) -> Result<(), String> {
        // On the same disk as everything else; another user runs the server if this one may not.
        let reachable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&bench.directory, reachable).map_err(|error| error.to_string())?;
        self.server = Some(Server::start_in(&bench.directory).map_err(|error| error.to_string())?);
        Ok(())
    }

    fn round(&mut self, bench: &Bench) -> Result<(), String> {
        let server = self.server.as_ref().ok_or("the server was not started")?;
        self.raw_one.push(raw(&server.database(), 1, 2000)?);
        if let Some(lockgate) = &bench.lockgate {
            let directory = bench.fresh()?;
            let root = Root::make(lockgate, directory.path(), &workflow(STEPS))?;
            root.put(".lockgate/config.yaml", &format!("database: {}\n", server.database()))?;
            root.output(&["run", "workflow.yaml", "--json"])?;
            let history = root.history(&root.newest_run()?)?;
            if history.finished != STEPS {
                return Err(format!("W1 on PostgreSQL: {} tasks finished, not {STEPS}", history.finished));
            }
            self.w1.push(STEPS as f64 * 1000.0 / history.milliseconds.max(1) as f64);
        }
        self.raw_many.push(raw(&server.database(), CONNECTIONS, 300)?);
        if bench.lockgate.is_some() {
            let directory = bench.fresh()?;
            let store = PostgresStore::connect(&server.database()).map_err(|error| error.to_string())?;
            let stage = Harness::new(directory.path(), Arc::new(store), &workflow(STEPS_EACH))?;
            let (took, waiting) = runtime()?.block_on(stage.drive(RUNS, RUNS))?;
            if !waiting.is_empty() {
                return Err(format!("W2 on PostgreSQL: {} runs did not end", waiting.len()));
            }
            self.w2.push((RUNS * STEPS_EACH) as f64 / took.as_secs_f64());
        }
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        let row = |what: &str, raw: &[f64], ours: &[f64]| Row {
            what: what.to_owned(),
            unit: Unit::StepsPerSecond,
            raw: raw.to_vec(),
            baseline: Vec::new(),
            ours: ours.to_vec(),
            target: Target::OfRaw(0.5),
        };
        vec![
            row("PostgreSQL, raw with 1 connection: W1 pass", &self.raw_one, &self.w1),
            row("PostgreSQL, raw with 32 connections: W2, 1,000 runs of 10 tasks", &self.raw_many, &self.w2),
        ]
    }
}

fn workflow(steps: usize) -> String {
    format!("name: steps\nphases:\n{}", sequential_phase("work", steps, "pass: true"))
}

/// Commits rows over several connections in parallel, and returns the number of commits per second.
fn raw(url: &str, connections: usize, each: usize) -> Result<f64, String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let took = runtime.block_on(async {
        connect(url).await?.batch_execute("CREATE TABLE rows(key bigserial PRIMARY KEY, body bytea NOT NULL)").await?;
        let ready = Arc::new(Barrier::new(connections + 1));
        let mut tasks = Vec::new();
        for _ in 0..connections {
            let client = connect(url).await?;
            let insert = client.prepare("INSERT INTO rows(body) VALUES ($1)").await?;
            let ready = ready.clone();
            tasks.push(tokio::spawn(async move {
                let body = vec![7_u8; RAW_BYTES];
                ready.wait().await;
                for _ in 0..each {
                    client.execute(&insert, &[&body]).await?;
                }
                Ok::<(), tokio_postgres::Error>(())
            }));
        }
        ready.wait().await;
        let started = Instant::now();
        for task in tasks {
            // A task that panicked has already printed the reason.
            if let Ok(done) = task.await {
                done?;
            }
        }
        Ok::<_, tokio_postgres::Error>(started.elapsed())
    });
    let took = took.map_err(|error| format!("raw on PostgreSQL: {error}"))?;
    Ok((connections * each) as f64 / took.as_secs_f64())
}

async fn connect(url: &str) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("SET synchronous_commit = on").await?;
    Ok(client)
}
