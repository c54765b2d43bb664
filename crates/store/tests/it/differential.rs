//! The same random requests to all backends give the same results and leave the same data.

use lockgate_engine::digest::Digest;
use lockgate_engine::hold::HoldState;
use lockgate_engine::id::{DriverId, RunId, TimerId};
use lockgate_engine::run::Status;
use lockgate_engine::run::history::DRIVE_TIMER;
use lockgate_engine::run::index::RunRow;
use lockgate_engine::run::index::TimerKind;
use lockgate_engine::time::Timestamp;
use lockgate_store::conformance::{HistoryWriter, hold_row, run_row, timer_row};
use lockgate_store::postgres::test_server::server;
use lockgate_store::{
    Append, AppendError, ClaimError, HoldFilter, MemoryStore, Page, PostgresStore, RunRemoval, SqliteStore, Store, StoredRun,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::path::Path;

/// One backend with two processes, each of which may be replaced by a successor.
struct Side {
    processes: Vec<Box<dyn Store>>,
    /// All drivers ever started: backends are compared by a driver's index in this list.
    drivers: Vec<DriverId>,
    open: Box<dyn Fn() -> Box<dyn Store>>,
}

impl Side {
    fn new(open: Box<dyn Fn() -> Box<dyn Store>>) -> Self {
        let mut side = Self { processes: Vec::new(), drivers: Vec::new(), open };
        side.begin();
        side.begin();
        side
    }

    fn begin(&mut self) {
        let store = (self.open)();
        self.drivers.push(store.driver().clone());
        self.processes.push(store);
    }

    fn replace(&mut self, process: usize) {
        drop(self.processes.remove(process));
        self.begin();
    }

    fn number(&self, driver: &DriverId) -> Option<usize> {
        self.drivers.iter().position(|known| known == driver)
    }
}

/// A request to all backends.
#[derive(Clone, Debug)]
enum Step {
    Append { process: usize, append: Box<Append>, claim: bool },
    Claim { process: usize, run: RunId },
    Release { process: usize, run: RunId, epoch: u64 },
    Remove { process: usize, run: RunId },
    Replace { process: usize },
    Look { process: usize, run: RunId, prefix: String, moment: i64, limit: usize },
}

struct Generator {
    random: StdRng,
    heads: Vec<HistoryWriter>,
}

impl Generator {
    fn step(&mut self) -> Step {
        let process = self.random.random_range(0..2);
        let run = self.random.random_range(0..self.heads.len());
        match self.random.random_range(0..23) {
            22 => Step::Remove { process, run: self.heads[run].run.clone() },
            20..22 => Step::Release { process, run: self.heads[run].run.clone(), epoch: self.random.random_range(0..4) },
            0..12 => {
                let mut scribe = self.heads[run].clone();
                match self.random.random_range(0..12) {
                    0 => scribe.version += 1,
                    1 => scribe.version = scribe.version.saturating_sub(1),
                    _ => (),
                }
                scribe.epoch = self.random.random_bool(0.3).then(|| self.random.random_range(0..4));
                let mut append = scribe.next("step");
                self.decorate(&mut append);
                let claims = if append.expected == 0 { 0.5 } else { 0.3 };
                Step::Append { process, claim: self.random.random_bool(claims), append: Box::new(append) }
            }
            12..15 => Step::Claim { process, run: self.heads[run].run.clone() },
            15 => Step::Replace { process },
            _ => Step::Look {
                process,
                run: self.heads[run].run.clone(),
                prefix: ["", "r", "r1", "h", "h2", "x"][self.random.random_range(0..6)].to_owned(),
                moment: self.random.random_range(0..100),
                limit: self.random.random_range(0..6),
            },
        }
    }

    fn decorate(&mut self, append: &mut Append) {
        let (random, run) = (&mut self.random, append.run.clone());
        let states = [HoldState::Open, HoldState::Checking, HoldState::Settled, HoldState::Void];
        if append.index.run.is_some() || random.random_bool(0.3) {
            let status = ["running", "waiting", "of a newer release"][random.random_range(0..3)].to_owned().into();
            let feature = random.random_bool(0.5).then(|| format!("f{}", random.random_range(0..3)));
            append.index.run = Some(RunRow { status, feature, ..run_row(&run) });
        }
        for _ in 0..random.random_range(0..3) {
            let mut row = hold_row(&run, &format!("h{}", random.random_range(0..30)), random.random_range(0..100));
            row.state = states[random.random_range(0..4)];
            append.index.holds.push(row);
        }
        for _ in 0..random.random_range(0..3) {
            append.index.timers.push(timer_row(&run, &format!("t{}", random.random_range(0..9)), random.random_range(0..100)));
            append.index.timers_removed.push(TimerId(format!("t{}", random.random_range(0..9))));
        }
        if random.random_bool(0.3) {
            let mut wants = timer_row(&run, DRIVE_TIMER, 0);
            (wants.timer, wants.kind) = (TimerId::new(DRIVE_TIMER), TimerKind::Drive.into());
            append.index.timers.push(wants);
        }
        for _ in 0..random.random_range(0..3) {
            let bytes = vec![random.random_range(0..20); 20];
            append.index.referenced_values.push(Digest::of(&bytes));
            if random.random_bool(0.8) {
                append.values.push((Digest::of(&bytes), bytes));
            }
        }
        append.materialized = random.random_bool(0.2).then(|| vec![random.random(); 10]);
    }
}

async fn perform(side: &mut Side, step: &Step) -> String {
    match step {
        Step::Append { process, append, claim } => {
            let store = &side.processes[*process];
            let claim = claim.then(|| store.driver().clone());
            match store.append(Append { claim, ..(**append).clone() }).await {
                Err(AppendError::DrivenBy(info)) => format!("driven by {:?}", side.number(&info.driver)),
                other => format!("{other:?}"),
            }
        }
        Step::Release { process, run, epoch } => format!("{:?}", side.processes[*process].release(run, *epoch).await),
        Step::Claim { process, run } => match side.processes[*process].claim(run).await {
            Err(ClaimError::DrivenBy(info)) => format!("driven by {:?}", side.number(&info.driver)),
            other => format!("{other:?}"),
        },
        Step::Remove { process, run } => {
            let store = &side.processes[*process];
            let Ok(epoch) = store.claim(run).await else { return "not claimed".to_owned() };
            let statuses = vec![Status::Running];
            let removed = store.remove_run(RunRemoval { run: run.clone(), epoch, statuses }).await;
            if removed.is_err() {
                store.release(run, epoch).await.unwrap();
            }
            format!("{removed:?}")
        }
        Step::Replace { process } => {
            side.replace(*process);
            String::new()
        }
        Step::Look { process, run, prefix, moment, limit } => {
            let store = &side.processes[*process];
            let runs = store.runs(Page::first(*limit)).await.unwrap();
            let more = store.runs(Page { after: runs.last().map(|run| run.cursor), limit: *limit }).await;
            let holds = store.holds(HoldFilter::Open, Page::first(*limit)).await.unwrap();
            let more_holds =
                store.holds(HoldFilter::Open, Page { after: holds.last().map(|hold| hold.cursor), limit: *limit }).await;
            let of_run = store.holds(HoldFilter::OfRun(run.clone()), Page::first(*limit)).await;
            let found = (store.find_runs(prefix).await, store.find_holds(prefix).await, store.runs_of_feature("f1").await);
            let timers = store.timers(Timestamp::from_millis(*moment), *limit).await;
            let undriven = store.undriven(*limit).await;
            let driver = store.driver_of(run).await.unwrap().map(|info| side.number(&info.driver));
            let commits = store.commits(run, 2, *limit).await;
            format!(
                "{runs:#?}\n{more:#?}\n{holds:#?}\n{more_holds:#?}\n{of_run:#?}\n{found:#?}\n{timers:#?}\n{undriven:?}\n{driver:?}\n{commits:?}\n{:?}",
                store.load(run).await
            )
        }
    }
}

/// Everything that a backend has stored, with drivers by index.
async fn everything(side: &Side) -> String {
    let store = &side.processes[0];
    let runs = store.scan_runs(None, usize::MAX).await.unwrap().into_iter().map(|run| {
        let driver = run.driver.as_ref().map(|driver| side.number(driver));
        (driver, StoredRun { driver: None, ..run })
    });
    let runs: Vec<_> = runs.collect();
    let (commits, values) = (store.scan_commits(None, usize::MAX).await, store.scan_values(None, usize::MAX).await);
    format!("{runs:#?}\n{commits:?}\n{values:?}\n{:?}", store.orphans().await)
}

async fn compare(seed: u64, steps: usize, folder: &Path, url: &str) {
    let memory = MemoryStore::new();
    let path = folder.to_owned();
    let url = url.to_owned();
    let mut sides = [
        Side::new(Box::new(move || Box::new(memory.another_process()))),
        Side::new(Box::new(move || Box::new(SqliteStore::open(&path).unwrap()))),
        Side::new(Box::new(move || Box::new(PostgresStore::connect(&url).unwrap()))),
    ];
    let heads = (0..6).map(|number| HistoryWriter::new(&format!("r{number}"))).collect();
    let mut generator = Generator { random: StdRng::seed_from_u64(seed), heads };
    for number in 0..steps {
        let step = generator.step();
        let [memory, sqlite, postgres] = &mut sides;
        let expected = perform(memory, &step).await;
        assert_eq!(expected, perform(sqlite, &step).await, "SQLite, seed {seed}, step {number}: {step:?}");
        assert_eq!(expected, perform(postgres, &step).await, "PostgreSQL, seed {seed}, step {number}: {step:?}");
        if let (Step::Append { append, .. }, true) = (&step, expected.starts_with("Ok(")) {
            let head = generator.heads.iter_mut().find(|head| head.run == append.run).unwrap();
            (head.version, head.hash) = (append.commit.version, append.commit.hash);
        }
        if let (Step::Remove { run, .. }, true) = (&step, expected.starts_with("Ok(")) {
            let head = generator.heads.iter_mut().find(|head| head.run == *run).unwrap();
            *head = HistoryWriter::new(run.as_str());
        }
    }
    let expected = everything(&sides[0]).await;
    for (side, name) in sides[1..].iter().zip(["SQLite", "PostgreSQL"]) {
        assert_eq!(expected, everything(side).await, "{name}, seed {seed}");
    }
}

#[tokio::test]
async fn all_backends_give_the_same_results_for_random_requests() {
    let url = server().database();
    for seed in 0..20 {
        server().perform(&url, "DROP SCHEMA IF EXISTS lockgate CASCADE");
        let folder = tempfile::tempdir().unwrap();
        compare(seed, 150, folder.path(), &url).await;
    }
}
