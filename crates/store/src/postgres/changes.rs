//! Changes: who waits for commits of others is told of them, and who waits for those of one run only of those.
//!
//! The snapshot that PostgreSQL gives to a statement is another one after every commit: to compare it with the one before is to look. It is
//! looked at every 200 ms while somebody waits; if it is another one, the versions of the runs that are waited for tell which of them
//! changed. Notifications make it sooner, and name the runs. They are sent after the commit, a few at most in a moment, because PostgreSQL
//! lets transactions that notify commit only one after the other.

use super::errors::explain;
use super::link::{Link, Session};
use crate::error::StoreError;
use lockgate_engine::id::{DriverId, RunId};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How long a commit of another process can stay unnoticed.
const LOOK: Duration = Duration::from_millis(200);
/// How long a process waits after it notified others before it does so again.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the database may be out of reach before those who wait are told.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many runs are remembered that nobody waits for.
const REMEMBERED: usize = 1024;
/// How many bytes of names a notification takes; with more it is about all runs.
const NAMES: usize = 7000;

/// What those who wait are told.
#[derive(Clone, Debug, Default)]
struct Seen {
    marker: u64,
    failed: Option<StoreError>,
}

/// A run that somebody waits for, or did.
#[derive(Debug, Default)]
struct Watched {
    /// Its last change that was seen.
    marker: u64,
    /// Its version when it was looked at last.
    version: Option<i64>,
    waiting: usize,
    wake: Arc<Notify>,
}

/// What other processes are to be told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Untold {
    runs: BTreeSet<String>,
    all: bool,
}

/// The changes of a store, seen from one process.
#[derive(Debug)]
pub(super) struct Changes {
    own: DriverId,
    seen: watch::Sender<Seen>,
    runs: Mutex<HashMap<RunId, Watched>>,
    waiting: AtomicUsize,
    begun: Notify,
    untold: Mutex<Untold>,
    tell: Notify,
}

/// Counts one who waits.
struct Waiter<'a> {
    changes: &'a Changes,
    run: Option<&'a RunId>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.changes.waiting.fetch_sub(1, Ordering::Relaxed);
        if let Some(run) = self.run
            && let Some(watched) = self.changes.runs().get_mut(run)
        {
            watched.waiting -= 1;
        }
    }
}

impl Changes {
    /// For the process with this driver.
    pub(super) fn new(own: DriverId) -> Self {
        Self {
            own,
            seen: watch::Sender::default(),
            runs: Mutex::default(),
            waiting: AtomicUsize::new(0),
            begun: Notify::new(),
            untold: Mutex::default(),
            tell: Notify::new(),
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Watched>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn untold(&self) -> MutexGuard<'_, Untold> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A marker of the present state, as far as it was seen.
    pub(super) fn marker(&self) -> u64 {
        self.seen.borrow().marker
    }

    fn begin<'a>(&'a self, run: Option<&'a RunId>) -> Waiter<'a> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.begun.notify_one();
        Waiter { changes: self, run }
    }

    /// Ends when something else was seen.
    pub(super) async fn changed(&self, since: u64) -> Result<u64, StoreError> {
        let mut seen = self.seen.subscribe();
        let mut waiter = None;
        loop {
            {
                let now = seen.borrow_and_update();
                if now.marker != since {
                    return Ok(now.marker);
                }
                if let Some(error) = &now.failed {
                    return Err(error.clone());
                }
            }
            waiter.get_or_insert_with(|| self.begin(None));
            if seen.changed().await.is_err() {
                return Err(StoreError::Io("the store was closed".to_owned()));
            }
        }
    }

    /// Ends when a change of this run was seen. Others' changes do not even wake who waits here.
    pub(super) async fn run_changed(&self, run: &RunId, since: u64) -> Result<u64, StoreError> {
        let wake = {
            let mut runs = self.runs();
            if runs.len() >= REMEMBERED {
                runs.retain(|_, watched| watched.waiting > 0);
            }
            // What is not remembered may have changed with anything that was seen since.
            let marker = self.marker();
            let watched = runs.entry(run.clone()).or_insert_with(|| Watched { marker, ..Watched::default() });
            watched.waiting += 1;
            watched.wake.clone()
        };
        let _waiter = self.begin(Some(run));
        loop {
            let woken = wake.notified();
            tokio::pin!(woken);
            // From here on nothing is missed, and what came before is looked at now.
            woken.as_mut().enable();
            let changed = self.runs().get(run).is_none_or(|watched| watched.marker > since);
            {
                let now = self.seen.borrow();
                if changed {
                    return Ok(now.marker);
                }
                if let Some(error) = &now.failed {
                    return Err(error.clone());
                }
            }
            woken.await;
        }
    }

    /// This process has committed to these runs, each with this version where it has a new one.
    pub(super) fn committed<'a>(&self, committed: impl Iterator<Item = (&'a RunId, Option<u64>)>) {
        let (mut untold, mut runs) = (self.untold(), self.runs());
        let marker = self.bump();
        for (run, version) in committed {
            untold.runs.insert(run.as_str().to_owned());
            if let Some(watched) = runs.get_mut(run) {
                watched.change(marker);
                watched.version = version.and_then(|version| i64::try_from(version).ok()).or(watched.version);
            }
        }
        self.tell.notify_one();
    }

    /// This process has changed something that belongs to no run in particular.
    pub(super) fn all_changed(&self) {
        self.untold().all = true;
        self.bump_all();
        self.tell.notify_one();
    }

    fn bump(&self) -> u64 {
        let mut marker = 0;
        self.seen.send_modify(|seen| {
            seen.marker += 1;
            marker = seen.marker;
        });
        marker
    }

    fn bump_all(&self) {
        let mut runs = self.runs();
        let marker = self.bump();
        runs.values_mut().for_each(|watched| watched.change(marker));
    }

    /// A notification of another process, or of this one.
    pub(super) fn heard(&self, payload: &str) {
        let mut lines = payload.lines();
        match lines.next() {
            Some(driver) if driver == self.own.as_str() => {}
            Some(_) => {
                let mut runs = self.runs();
                let marker = self.bump();
                for run in lines {
                    if let Some(watched) = runs.get_mut(&RunId::new(run)) {
                        watched.change(marker);
                    }
                }
            }
            None => self.bump_all(),
        }
    }

    /// Looks for commits of others while somebody waits for them; `snapshot` is what was seen when the store was opened.
    pub(super) async fn look(self: Arc<Self>, link: Arc<Link>, mut snapshot: String) {
        let mut failing: Option<Instant> = None;
        let mut listening = None;
        loop {
            if self.waiting.load(Ordering::Relaxed) == 0 {
                self.begun.notified().await;
            }
            match self.listen_and_look(&link, &mut listening, &mut snapshot).await {
                Ok(()) => {
                    failing = None;
                    self.seen.send_if_modified(|seen| seen.failed.take().is_some());
                }
                Err(error) => {
                    if failing.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                        self.seen.send_modify(|seen| seen.failed = Some(error));
                        self.runs().values().for_each(|watched| watched.wake.notify_waiters());
                    }
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn listen_and_look(
        &self,
        link: &Link,
        listening: &mut Option<Arc<Session>>,
        snapshot: &mut String,
    ) -> Result<(), StoreError> {
        let session = link.session().await?;
        if !listening.as_ref().is_some_and(|listening| Arc::ptr_eq(listening, &session)) {
            session.client.batch_execute("LISTEN lockgate").await.map_err(|error| explain(&error, &link.place))?;
            *listening = Some(session);
        }
        let now: String = link.list(SNAPSHOT, &[], |row| row.get(0)).await?.pop().unwrap_or_default();
        if now == *snapshot {
            return Ok(());
        }
        let waited: Vec<String> = {
            let runs = self.runs();
            runs.iter().filter(|(_, watched)| watched.waiting > 0).map(|(run, _)| run.as_str().to_owned()).collect()
        };
        let versions: Vec<(String, i64)> = match waited.is_empty() {
            true => Vec::new(),
            false => link.list(VERSIONS, &[&waited], |row| Ok((row.get(0)?, row.get(1)?))).await?,
        };
        *snapshot = now;
        let mut runs = self.runs();
        let marker = self.bump();
        for (run, version) in versions {
            if let Some(watched) = runs.get_mut(&RunId::new(run))
                && watched.version != Some(version)
            {
                watched.version = Some(version);
                watched.change(marker);
            }
        }
        Ok(())
    }

    /// Tells other processes of commits.
    pub(super) async fn notify(self: Arc<Self>, link: Arc<Link>) {
        loop {
            self.tell.notified().await;
            self.tell_others(&link).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Tells other processes of what they were not told yet. That this fails only makes them see it later.
    pub(super) async fn tell_others(&self, link: &Link) {
        let untold = std::mem::take(&mut *self.untold());
        if untold == Untold::default() {
            return;
        }
        let payload = untold.payload(&self.own);
        if let Ok(session) = link.session().await {
            session.query(NOTIFY, &[&payload]).await.ok();
        }
    }
}

impl Watched {
    fn change(&mut self, marker: u64) {
        self.marker = marker;
        self.wake.notify_waiters();
    }
}

impl Untold {
    /// Who tells it, and the runs that it is about, a line each; nothing when it is about all.
    fn payload(&self, own: &DriverId) -> String {
        let size: usize = self.runs.iter().map(|run| run.len() + 1).sum();
        if self.all || size > NAMES || self.runs.iter().any(|run| run.contains(['\n', '\r'])) {
            return String::new();
        }
        self.runs.iter().fold(own.to_string(), |payload, run| payload + "\n" + run)
    }
}

/// Gives the snapshot that a statement sees now.
pub(super) const SNAPSHOT: &str = "SELECT pg_current_snapshot()::text";

/// Notifies others without waiting for the disk: the commits that this is about are durable already.
const NOTIFY: &str = "SELECT pg_notify('lockgate', $1), set_config('synchronous_commit', 'off', true)";

/// The versions of runs. The last commit is the first that an index on them finds from its end.
const VERSIONS: &str = "SELECT r.run, coalesce((SELECT c.version FROM lockgate.commits c WHERE c.run_key = r.key \
    ORDER BY c.version DESC LIMIT 1), 0) FROM lockgate.runs r WHERE r.run = ANY($1::text[])";
