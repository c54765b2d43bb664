//! The change feed of a SQLite store.
//!
//! Every process writes the head file after each commit, so a watch on that file notifies all others as soon as the commit is
//! readable, and its records say which runs changed. (A watch on the write-ahead log would fire too early: SQLite writes it
//! before the commit takes effect.) One thread per process and store watches, from the first time that anyone waits. Because
//! writing the head can fail and notifications can be lost, the thread also compares SQLite's own commit counter once a
//! second. It detects dead drivers in the same two ways.

use super::drivers::Drivers;
use super::file_identity::FileIdentity;
use super::head::{Head, HeadFile, OpenHead, RecordBytes};
use super::open::Location;
use super::reader::{Reader, run_key};
use crate::change_feed::ChangeFeed;
use crate::error::StoreError;
use crate::store::Append;
use crate::sys::file_events::{FileChanges, FileEvents, Interrupt};
use lockgate_engine::id::{DriverId, RunId};
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The check interval when files are watched.
const CHECK: Duration = Duration::from_secs(1);
/// The check interval when the system cannot watch files.
const POLL: Duration = Duration::from_millis(50);
/// How long the thread sleeps after a notification, so that commits in quick succession are handled together.
const PAUSE: Duration = Duration::from_millis(1);
/// How long checks may fail before waiters get an error. A removed database does not come back.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many run keys are cached.
const REMEMBERED: usize = 4096;

#[derive(Debug, thiserror::Error)]
enum NotWatched {
    #[error("files cannot be watched ({0})")]
    Failed(rustix::io::Errno),
    #[error("files can no longer be watched ({0})")]
    Lost(rustix::io::Errno),
    #[error("files are not watched")]
    Disabled,
}

/// What this process has seen of the store so far.
#[derive(Debug)]
struct Known {
    last: Option<RecordBytes>,
    /// That record was overwritten before it could be compared.
    overwritten: bool,
    data_version: u64,
}

#[derive(Debug)]
pub(super) struct Changes {
    feed: ChangeFeed,
    location: Location,
    reader: Arc<Reader>,
    drivers: Arc<Drivers>,
    file_identity: Arc<FileIdentity>,
    head: HeadFile,
    known: Mutex<Known>,
    /// The keys of runs that had a waiter. A stale key does no harm, because each record in the head names its run.
    keys: Mutex<HashMap<RunId, i64>>,
    /// This process has claimed or released a run since the last such notification.
    own_claims: AtomicBool,
    /// The thread waits only for [`Changes::awake`].
    dormant: AtomicBool,
    closed: AtomicBool,
    warning: OnceLock<String>,
}

impl Changes {
    pub(super) fn new(location: Location, reader: Arc<Reader>, drivers: Arc<Drivers>, file_identity: Arc<FileIdentity>) -> Self {
        let head = HeadFile::new(&location);
        // If the head cannot be read now, it is read, and the error reported, when a caller waits for a change.
        let known = Known {
            last: head.open().and_then(|head| head.first()),
            overwritten: false,
            data_version: reader.data_version().unwrap_or(u64::MAX),
        };
        Self {
            feed: ChangeFeed::default(),
            location,
            reader,
            drivers,
            file_identity,
            head,
            known: Mutex::new(known),
            keys: Mutex::default(),
            own_claims: AtomicBool::new(false),
            dormant: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            warning: OnceLock::new(),
        }
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<RunId, i64>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn feed(&self) -> &ChangeFeed {
        &self.feed
    }

    pub(super) fn warning(&self) -> Option<String> {
        self.warning.get().cloned()
    }

    /// A marker for the current state.
    pub(super) fn marker(&self) -> u64 {
        self.check_head();
        // A store read without locks has no head that is kept up to date.
        if self.reader.is_without_locks()
            && let Err(error) = self.check_database()
        {
            tracing::debug!(%error, "cannot check for changes of other processes; the next read reports why");
        }
        self.feed.marker()
    }

    /// Handles appends that this process has committed: writes the head and wakes local waiters.
    pub(super) fn committed(&self, head: &mut Head, appended: &[(&Append, i64)], claims: &[&RunId]) {
        {
            let mut known = self.known();
            let before = head.first();
            if let Some(last) = head.acknowledge(appended) {
                known.overwritten |= before.is_some() && before != known.last;
                known.last = Some(last);
            }
        }
        if !claims.is_empty() {
            self.own_claims.store(true, Ordering::SeqCst);
            head.touch();
        }
        let appended = appended.iter().map(|(append, _)| (&append.run, Some(append.commit.version)));
        self.feed.runs_changed(appended.chain(claims.iter().map(|run| (*run, None))));
    }

    /// Handles a change of this process that does not belong to a particular run.
    pub(super) fn all_changed(&self) {
        self.feed.all_changed();
    }

    /// Compares the head with the last known one; a difference means that another process has committed.
    fn check_head(&self) {
        let head = self.head.open();
        let is_new = {
            let mut known = self.known();
            let now = head.as_ref().and_then(OpenHead::first);
            let is_new = now.is_some() && now != known.last;
            if is_new {
                known.last = now;
            }
            std::mem::take(&mut known.overwritten) || is_new
        };
        if is_new {
            let compare = |run: RunId| {
                let version = head.as_ref().and_then(|head| self.version_in_head(head, &run));
                (run, version)
            };
            self.feed.compared(&self.feed.waited_for().into_iter().map(compare).collect());
        }
    }

    fn version_in_head(&self, head: &OpenHead, run: &RunId) -> Option<u64> {
        let known = self.keys().get(run).copied();
        let key = match known {
            Some(key) => key,
            None => {
                let found = self.reader.read(|view| run_key(view, run));
                // Without its key the run counts as changed, and reading it reports the error.
                let key = found.unwrap_or_else(|error| {
                    tracing::debug!(%run, %error, "cannot read the key of a run");
                    None
                })?;
                let mut keys = self.keys();
                if keys.len() >= REMEMBERED {
                    keys.clear();
                }
                keys.insert(run.clone(), key);
                key
            }
        };
        head.version_of(run, key)
    }

    /// Compares SQLite's commit counter, which is always reliable but does not say which runs changed.
    fn check_database(&self) -> Result<(), StoreError> {
        let now = self.reader.data_version()?;
        if std::mem::replace(&mut self.known().data_version, now) != now {
            self.feed.all_changed();
        }
        Ok(())
    }

    /// Detects dead drivers: the end of a driver is a change of its runs even though nothing was committed.
    fn check_drivers(&self, alive: &mut BTreeSet<DriverId>) {
        let now = match self.drivers.all_alive() {
            Ok(now) => now,
            Err(error) => return tracing::debug!(%error, "cannot list the drivers; trying again in a second"),
        };
        let now: BTreeSet<DriverId> = now.into_keys().collect();
        if !alive.is_subset(&now) {
            self.feed.all_changed();
        }
        *alive = now;
    }

    fn check_all(&self, alive: &mut BTreeSet<DriverId>) -> Result<(), StoreError> {
        self.file_identity.check()?;
        self.check_head();
        self.check_database()?;
        self.check_drivers(alive);
        Ok(())
    }

    fn watch(&self, interrupt: &Interrupt) {
        let mut file_events = match self.location.settings.watch_files {
            true => FileEvents::of(&self.location.folder, self.head.path()).map_err(NotWatched::Failed),
            false => Err(NotWatched::Disabled),
        };
        if let Err(why) = &file_events {
            self.warn(why);
        }
        let mut alive = BTreeSet::new();
        let mut checked: Option<Instant> = None;
        let mut failing: Option<Instant> = None;
        while !self.closed.load(Ordering::Acquire) {
            let every = if file_events.is_ok() { CHECK } else { POLL };
            let due = checked.is_none_or(|checked| checked.elapsed() >= every);
            if due && checked.is_some() && !self.feed.is_waited_for() {
                self.dormant.store(true, Ordering::SeqCst);
                // A waiter that came before `dormant` was set has not interrupted this thread.
                if !self.feed.is_waited_for() {
                    interrupt.wait(None, None);
                }
                self.dormant.store(false, Ordering::SeqCst);
                checked = None;
                continue;
            }
            let file_changes = match file_events.as_mut().map(FileEvents::take) {
                Ok(Ok(file_changes)) => file_changes,
                Ok(Err(error)) => {
                    let why = NotWatched::Lost(error);
                    self.warn(&why);
                    file_events = Err(why);
                    continue;
                }
                Err(_) => FileChanges::default(),
            };
            if due || file_changes.lost {
                let is_first = checked.replace(Instant::now()).is_none();
                let is_well = self.check_patiently(&mut alive, &mut failing);
                if is_first && is_well {
                    // A driver may have died after a waiter saw it alive and before its lock was checked here.
                    self.feed.all_changed();
                }
            }
            self.act_on(file_changes, &mut alive);
            if file_changes != FileChanges::default() {
                std::thread::sleep(PAUSE);
            }
            let rest = checked.map_or(every, |checked| every.saturating_sub(checked.elapsed()));
            interrupt.wait(file_events.as_ref().ok(), Some(rest));
        }
    }

    fn warn(&self, why: &NotWatched) {
        let warning = format!("{why}, so the database is polled for changes of other processes");
        tracing::warn!("{warning}");
        self.warning.get_or_init(|| warning);
    }

    /// Checks everything. Waiters get an error only if a failure persists: a temporary one must not stop a driver.
    fn check_patiently(&self, alive: &mut BTreeSet<DriverId>, failing: &mut Option<Instant>) -> bool {
        let Err(error) = self.check_all(alive) else {
            *failing = None;
            self.feed.set_failure(None);
            return true;
        };
        tracing::warn!(%error, "the database cannot be checked for changes");
        let since = *failing.get_or_insert_with(Instant::now);
        if matches!(error, StoreError::Gone(_)) || since.elapsed() > PATIENCE {
            self.feed.set_failure(Some(error));
        }
        false
    }

    /// Watches until the store is closed, restarting after a panic so that waiters are never left hanging.
    fn watch_always(&self, interrupt: &Interrupt) {
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.watch(interrupt))) {
            let detail = panic.downcast_ref::<&str>().copied().unwrap_or("without a message");
            tracing::error!(detail, "the thread that watches the database panicked; restarting it");
            self.feed.set_failure(Some(StoreError::Io(format!("watching the database for changes panicked: {detail}"))));
            std::thread::sleep(CHECK);
        }
    }

    fn act_on(&self, file_changes: FileChanges, alive: &mut BTreeSet<DriverId>) {
        if file_changes.head {
            self.check_head();
        }
        // A claim of this process has already woken its waiters. If another process made a claim in the same millisecond, the
        // next check finds it.
        if file_changes.claims && !self.own_claims.swap(false, Ordering::SeqCst) {
            self.feed.all_changed();
        }
        if file_changes.drivers {
            // The system closes a file before it releases its lock.
            std::thread::sleep(PAUSE);
            self.check_drivers(alive);
        }
    }
}

/// The watching thread, started when a caller first waits and ended on drop.
#[derive(Debug)]
pub(super) struct Watcher {
    changes: Arc<Changes>,
    thread: OnceLock<Option<(Arc<Interrupt>, JoinHandle<()>)>>,
}

impl Watcher {
    pub(super) fn new(changes: Arc<Changes>) -> Self {
        Self { changes, thread: OnceLock::new() }
    }

    /// Ensures that the thread is watching for changes.
    pub(super) fn awake(&self) -> Result<(), StoreError> {
        let started = self.thread.get_or_init(|| start(&self.changes));
        let Some((interrupt, _)) = started else {
            return Err(StoreError::Io("cannot start the thread that watches the database".to_owned()));
        };
        if self.changes.dormant.load(Ordering::SeqCst) && self.changes.dormant.swap(false, Ordering::SeqCst) {
            interrupt.set();
        }
        Ok(())
    }
}

fn start(changes: &Arc<Changes>) -> Option<(Arc<Interrupt>, JoinHandle<()>)> {
    let start = || {
        let interrupt = Arc::new(Interrupt::new()?);
        let (changes, waits) = (changes.clone(), interrupt.clone());
        let thread =
            std::thread::Builder::new().name("lockgate-changes".to_owned()).spawn(move || changes.watch_always(&waits))?;
        Ok::<_, std::io::Error>((interrupt, thread))
    };
    start().inspect_err(|error| tracing::warn!(%error, "cannot start the thread that watches the database")).ok()
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.changes.closed.store(true, Ordering::Release);
        if let Some(Some((interrupt, thread))) = self.thread.take() {
            interrupt.set();
            crate::cleanup::join(thread);
        }
    }
}
