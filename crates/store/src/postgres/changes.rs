//! The change feed of a PostgreSQL store.
//!
//! Every process notifies all others after its commits, naming the runs and their versions. Notifications are sent after the
//! commit and coalesced, because PostgreSQL serializes transactions that notify. A notification can be lost together with the
//! process that should have sent it. While anyone waits, the current snapshot, which changes with every commit, is therefore
//! compared once a second; if it differs, the versions of the awaited runs show which of them changed. Live drivers are
//! compared at the same interval, because the death of a driver changes nothing else in the database.

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

/// The check interval without notifications.
const CHECK: Duration = Duration::from_secs(1);
/// The minimum time between two notifications of a process.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the database may be unreachable before waiters get an error.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum bytes of run ids in a notification; a longer one refers to all runs.
const NAMES: usize = 7000;

/// Changes that other processes have not been notified of yet.
#[derive(Debug, Default, PartialEq, Eq)]
struct PendingNotice {
    /// Each with its new version, if it has one.
    runs: BTreeMap<String, Option<u64>>,
    all: bool,
}

#[derive(Debug)]
pub(super) struct Changes {
    own: DriverId,
    feed: ChangeFeed,
    started: Notify,
    pending_notice: Mutex<PendingNotice>,
    notify_now: Notify,
}

/// The state seen by the last check.
#[derive(Debug)]
struct Checked {
    snapshot: String,
    alive: BTreeSet<DriverId>,
    listening: Option<Arc<Session>>,
}

impl Checked {
    fn new(snapshot: String) -> Self {
        Self { snapshot, alive: BTreeSet::new(), listening: None }
    }
}

impl Changes {
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

    /// A marker for the state as observed so far.
    pub(super) fn marker(&self) -> u64 {
        self.feed.marker()
    }

    /// A marker for [`Changes::run_changed`]; take it before reading the run.
    pub(super) fn marker_of(&self, run: &RunId) -> u64 {
        self.feed.marker_of(run)
    }

    fn watch(&self) -> Result<(), StoreError> {
        self.started.notify_one();
        Ok(())
    }

    /// Resolves when a change was observed.
    pub(super) async fn changed(&self, since: u64) -> Result<u64, StoreError> {
        self.feed.changed(since, || self.watch()).await
    }

    /// Like [`Changes::changed`], for one run.
    pub(super) async fn run_changed(&self, run: &RunId, since: u64, known: Option<u64>) -> Result<u64, StoreError> {
        self.feed.run_changed(run, since, known, || self.watch()).await
    }

    /// Handles commits of this process to these runs, each with its new version if it has one.
    pub(super) fn committed<'a>(&self, committed: impl Iterator<Item = (&'a RunId, Option<u64>)> + Clone) {
        {
            let mut pending_notice = self.pending_notice();
            for (run, version) in committed.clone() {
                // A commit that also claims the run must wake even waiters that know its version.
                let announced = pending_notice.runs.entry(run.as_str().to_owned()).or_insert(version);
                *announced = announced.zip(version).map(|(announced, version)| announced.max(version));
            }
        }
        self.feed.runs_changed(committed);
        self.notify_now.notify_one();
    }

    /// Handles a change of this process that does not belong to a particular run.
    pub(super) fn all_changed(&self) {
        self.pending_notice().all = true;
        self.feed.all_changed();
        self.notify_now.notify_one();
    }

    /// Handles a notification from any process, including this one.
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

    /// Checks for changes of other processes while the store is open, restarting after a panic so that waiters are never left
    /// hanging.
    pub(super) async fn check(self: Arc<Self>, connection: Arc<Connection>, snapshot: String) {
        let mut checked = Checked::new(snapshot);
        loop {
            let checking = AssertUnwindSafe(self.check_while_waited_for(&connection, checked)).catch_unwind();
            let Err(panic) = checking.await;
            let detail = panic.downcast_ref::<&str>().copied().unwrap_or("without a message");
            tracing::error!(detail, "checking the database for changes panicked; restarting");
            self.feed.set_failure(Some(StoreError::Io(format!("checking the database for changes panicked: {detail}"))));
            tokio::time::sleep(CHECK).await;
            // The empty snapshot differs from every real one, so everything is compared.
            checked = Checked::new(String::new());
        }
    }

    /// Checks for changes of other processes while anyone waits for them.
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
                        // A driver may have died after a waiter saw it alive and before its lease was checked here.
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

    pub(super) async fn notify(self: Arc<Self>, connection: Arc<Connection>) {
        loop {
            self.notify_now.notified().await;
            self.notify_others(&connection).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Sends pending notifications. If this fails, other processes only notice the changes later.
    pub(super) async fn notify_others(&self, connection: &Connection) {
        let pending_notice = std::mem::take(&mut *self.pending_notice());
        if pending_notice == PendingNotice::default() {
            return;
        }
        let payload = pending_notice.payload(&self.own);
        let sent = async {
            let session = connection.session().await?;
            session.query(NOTIFY, &[&payload]).await.map_err(|error| explain(&error, &connection.address))
        };
        if let Err(error) = sent.await {
            tracing::debug!(%error, "cannot notify other processes; they see the change at their next check");
        }
    }
}

impl PendingNotice {
    /// The sender's driver id, then one line per run with its version; without lines it refers to all runs.
    fn payload(&self, own: &DriverId) -> String {
        let mut payload = own.to_string();
        for (run, version) in &self.runs {
            // Without a version, a waiter has to read the run.
            let version = version.map(|version| version.to_string()).unwrap_or_default();
            payload += &format!("\n{version} {run}");
        }
        let is_too_much = payload.len() > NAMES || self.runs.keys().any(|run| run.contains(['\n', '\r']));
        if self.all || is_too_much { String::new() } else { payload }
    }
}

/// The snapshot that a statement sees.
pub(super) const SNAPSHOT: &str = "SELECT pg_current_snapshot()::text";

/// Notifies without waiting for the disk: the commits are already durable.
const NOTIFY: &str = "SELECT pg_notify('lockgate', $1), set_config('synchronous_commit', 'off', true)";

/// The versions of runs. Each subquery reads only the last entry of an index.
const VERSIONS: &str = "SELECT r.run, coalesce((SELECT c.version FROM lockgate.commits c WHERE c.run_key = r.key \
    ORDER BY c.version DESC LIMIT 1), 0) FROM lockgate.runs r WHERE r.run = ANY($1::text[])";
