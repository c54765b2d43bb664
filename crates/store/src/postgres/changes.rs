//! The change feed of a store in PostgreSQL.
//!
//! Every process notifies all others after its commits, and names the runs with their versions. Notifications are sent after the commit, a few at most in a
//! moment, because PostgreSQL lets transactions that notify commit only one after the other. One can be lost with the process that should have
//! sent it. So while anyone waits, the snapshot that PostgreSQL gives to a statement, which is another one after every commit, is compared once a second; if it
//! is another one, the versions of the runs that are waited for tell which of them changed. The drivers that are alive are compared as often: the death of one
//! changes nothing else in the database.

use super::connection::{Connection, Session};
use super::drivers::Drivers;
use super::errors::explain;
use crate::change_feed::ChangeFeed;
use crate::error::StoreError;
use futures::FutureExt;
use lockgate_engine::id::{DriverId, RunId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How often the database is checked without a notification.
const CHECK: Duration = Duration::from_secs(1);
/// How long a process waits after it notified others before it does so again.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the database may be out of reach before those who wait are told.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many bytes of names a notification takes; with more it is about all runs.
const NAMES: usize = 7000;

/// What other processes are to be told.
#[derive(Debug, Default, PartialEq, Eq)]
struct PendingNotice {
    /// Each with the version that it has now, where it has a new one.
    runs: BTreeMap<String, Option<u64>>,
    all: bool,
}

/// The changes of a store, seen from one process.
#[derive(Debug)]
pub(super) struct Changes {
    own: DriverId,
    feed: ChangeFeed,
    started: Notify,
    pending_notice: Mutex<PendingNotice>,
    notify_now: Notify,
}

/// What was seen when the database was last checked.
#[derive(Debug)]
struct Checked {
    snapshot: String,
    alive: BTreeSet<DriverId>,
    listening: Option<Arc<Session>>,
}

impl Checked {
    /// The state when the store was opened.
    fn new(snapshot: String) -> Self {
        Self { snapshot, alive: BTreeSet::new(), listening: None }
    }
}

impl Changes {
    /// For the process with this driver.
    pub(super) fn new(own: DriverId) -> Self {
        Self {
            own,
            feed: ChangeFeed::default(),
            started: Notify::new(),
            pending_notice: Mutex::default(),
            notify_now: Notify::new(),
        }
    }

    fn pending_notice(&self) -> MutexGuard<'_, PendingNotice> {
        self.pending_notice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A marker of the present state, as far as it was seen.
    pub(super) fn marker(&self) -> u64 {
        self.feed.marker()
    }

    /// A marker for [`Changes::run_changed`], to be taken before the run is read.
    pub(super) fn marker_of(&self, run: &RunId) -> u64 {
        self.feed.marker_of(run)
    }

    fn watch(&self) -> Result<(), StoreError> {
        self.started.notify_one();
        Ok(())
    }

    /// Ends when something else was seen.
    pub(super) async fn changed(&self, since: u64) -> Result<u64, StoreError> {
        self.feed.changed(since, || self.watch()).await
    }

    /// The same for one run.
    pub(super) async fn run_changed(&self, run: &RunId, since: u64, known: Option<u64>) -> Result<u64, StoreError> {
        self.feed.run_changed(run, since, known, || self.watch()).await
    }

    /// This process has committed to these runs, each with this version where it has a new one.
    pub(super) fn committed<'a>(&self, committed: impl Iterator<Item = (&'a RunId, Option<u64>)> + Clone) {
        {
            let mut pending_notice = self.pending_notice();
            for (run, version) in committed.clone() {
                // A claim that comes with a commit must wake even those who know that version.
                let told = pending_notice.runs.entry(run.as_str().to_owned()).or_insert(version);
                *told = told.zip(version).map(|(told, version)| told.max(version));
            }
        }
        self.feed.runs_changed(committed);
        self.notify_now.notify_one();
    }

    /// This process has changed something that belongs to no run in particular.
    pub(super) fn all_changed(&self) {
        self.pending_notice().all = true;
        self.feed.all_changed();
        self.notify_now.notify_one();
    }

    /// A notification of another process, or of this one.
    pub(super) fn heard(&self, payload: &str) {
        let mut lines = payload.lines();
        match lines.next() {
            Some(driver) if driver == self.own.as_str() => {}
            Some(_) => {
                let changed = lines.map(|line| match line.split_once(' ') {
                    Some((version, run)) => (RunId::new(run), version.parse().ok()),
                    None => (RunId::new(line), None),
                });
                let changed: Vec<(RunId, Option<u64>)> = changed.collect();
                self.feed.runs_changed(changed.iter().map(|(run, version)| (run, *version)));
            }
            None => self.feed.all_changed(),
        }
    }

    /// Checks for changes of others for as long as the store is open. A panic must not leave those who wait without a word.
    pub(super) async fn check(self: Arc<Self>, connection: Arc<Connection>, snapshot: String) {
        let mut checked = Checked::new(snapshot);
        loop {
            let checking = AssertUnwindSafe(self.check_while_waited_for(&connection, checked)).catch_unwind();
            let Err(panic) = checking.await;
            let detail = panic.downcast_ref::<&str>().copied().unwrap_or("without a message");
            tracing::error!(detail, "checking the database for changes panicked; it starts again");
            self.feed.set_failure(Some(StoreError::Io(format!("checking the database for changes panicked: {detail}"))));
            tokio::time::sleep(CHECK).await;
            // Another snapshot than any: everything is compared.
            checked = Checked::new(String::new());
        }
    }

    /// Checks for changes of others while anyone waits for them.
    async fn check_while_waited_for(&self, connection: &Connection, mut checked: Checked) -> Infallible {
        let mut failing: Option<Instant> = None;
        let mut is_first = true;
        loop {
            if !self.feed.is_waited_for() {
                self.started.notified().await;
                is_first = true;
            }
            match self.listen_and_check(connection, &mut checked).await {
                Ok(()) => {
                    failing = None;
                    self.feed.set_failure(None);
                    if std::mem::take(&mut is_first) {
                        // A driver may have died after a waiter saw it alive and before its lease was looked at here.
                        self.feed.all_changed();
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "the database cannot be checked for changes");
                    if failing.get_or_insert_with(Instant::now).elapsed() > UNREACHABLE_TIMEOUT {
                        self.feed.set_failure(Some(error));
                    }
                }
            }
            tokio::time::sleep(CHECK).await;
        }
    }

    async fn listen_and_check(&self, connection: &Connection, checked: &mut Checked) -> Result<(), StoreError> {
        let session = connection.session().await?;
        if !checked.listening.as_ref().is_some_and(|listening| Arc::ptr_eq(listening, &session)) {
            session.client.batch_execute("LISTEN lockgate").await.map_err(|error| explain(&error, &connection.address))?;
            checked.listening = Some(session);
        }
        let now: String = connection.list(SNAPSHOT, &[], |row| row.get(0)).await?.pop().unwrap_or_default();
        if now != checked.snapshot {
            let waited: Vec<String> = self.feed.waited_for().into_iter().map(|run| run.as_str().to_owned()).collect();
            let versions: Vec<(String, i64)> = match waited.is_empty() {
                true => Vec::new(),
                false => connection.list(VERSIONS, &[&waited], |row| Ok((row.get(0)?, row.get(1)?))).await?,
            };
            checked.snapshot = now;
            let versions = versions.into_iter().map(|(run, version)| (RunId::new(run), u64::try_from(version).ok()));
            self.feed.compared(&versions.collect::<HashMap<RunId, Option<u64>>>());
        }
        let alive = Drivers::all_alive(connection).await?;
        if !checked.alive.is_subset(&alive) {
            self.feed.all_changed();
        }
        checked.alive = alive;
        Ok(())
    }

    /// Tells other processes of commits.
    pub(super) async fn notify(self: Arc<Self>, connection: Arc<Connection>) {
        loop {
            self.notify_now.notified().await;
            self.notify_others(&connection).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Tells other processes of what they were not told yet. That this fails only makes them see it later.
    pub(super) async fn notify_others(&self, connection: &Connection) {
        let pending_notice = std::mem::take(&mut *self.pending_notice());
        if pending_notice == PendingNotice::default() {
            return;
        }
        let payload = pending_notice.payload(&self.own);
        let told = async {
            let session = connection.session().await?;
            session.query(NOTIFY, &[&payload]).await.map_err(|error| explain(&error, &connection.address))
        };
        if let Err(error) = told.await {
            tracing::debug!(%error, "other processes are not notified; they see the change at their next check");
        }
    }
}

impl PendingNotice {
    /// Who tells it, and the runs that it is about, a line each with the version before it; nothing when it is about all.
    fn payload(&self, own: &DriverId) -> String {
        let mut payload = own.to_string();
        for (run, version) in &self.runs {
            // Without a version, whoever waits has to read the run.
            let version = version.map(|version| version.to_string()).unwrap_or_default();
            payload += &format!("\n{version} {run}");
        }
        let is_too_much = payload.len() > NAMES || self.runs.keys().any(|run| run.contains(['\n', '\r']));
        if self.all || is_too_much { String::new() } else { payload }
    }
}

/// Gives the snapshot that a statement sees now.
pub(super) const SNAPSHOT: &str = "SELECT pg_current_snapshot()::text";

/// Notifies others without waiting for the disk: the commits that this is about are durable already.
const NOTIFY: &str = "SELECT pg_notify('lockgate', $1), set_config('synchronous_commit', 'off', true)";

/// The versions of runs. The last commit is the first that an index on them finds from its end.
const VERSIONS: &str = "SELECT r.run, coalesce((SELECT c.version FROM lockgate.commits c WHERE c.run_key = r.key \
    ORDER BY c.version DESC LIMIT 1), 0) FROM lockgate.runs r WHERE r.run = ANY($1::text[])";
