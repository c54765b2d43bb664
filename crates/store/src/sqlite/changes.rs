//! The change feed of a store in a folder.
//!
//! Every process writes the head after each of its commits, so a watch on that file tells all others of the commit as soon as it can be read, and
//! the records in it tell which runs changed. (A watch on the write-ahead log would tell too early: SQLite writes it before the commit counts.) One
//! thread per process and store does this, from the first time that anyone waits. The head can fail to be written and notices can be lost, so
//! the thread also compares SQLite's own count of commits once a second. It finds out that a driver died in the same two ways.

use super::drivers::Drivers;
use super::file_events::{FileChanges, FileEvents, Interrupt};
use super::file_identity::FileIdentity;
use super::head::{Head, HeadFile, OpenHead, RecordBytes};
use super::open::Location;
use super::reader::{Reader, run_key};
use crate::change_feed::ChangeFeed;
use crate::error::StoreError;
use crate::store::Append;
use lockgate_engine::id::{DriverId, RunId};
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the store is checked without a notice.
const CHECK: Duration = Duration::from_secs(1);
/// The same where the system gives no notices.
const POLL: Duration = Duration::from_millis(50);
/// How long the thread sleeps after a notice: what is committed meanwhile is one notice.
const PAUSE: Duration = Duration::from_millis(1);
/// How long the store may fail to be checked before those who wait are told; one that is gone stays gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many numbers of runs are remembered.
const REMEMBERED: usize = 4096;

/// Why files are not watched.
#[derive(Debug, thiserror::Error)]
enum NotWatched {
    #[error("files cannot be watched ({0})")]
    Failed(rustix::io::Errno),
    #[error("files can no longer be watched ({0})")]
    Lost(rustix::io::Errno),
    #[error("files are not watched")]
    Disabled,
}

/// What a process has seen of the store so far.
#[derive(Debug)]
struct Known {
    /// The first record of the head.
    last: Option<RecordBytes>,
    /// That record was overwritten before it could be compared.
    overwritten: bool,
    data_version: u64,
}

/// The changes of a store, seen from one process.
#[derive(Debug)]
pub(super) struct Changes {
    feed: ChangeFeed,
    location: Location,
    reader: Arc<Reader>,
    drivers: Arc<Drivers>,
    file_identity: Arc<FileIdentity>,
    head: HeadFile,
    known: Mutex<Known>,
    /// The numbers of runs that had a waiter; the head says whose a record is, so an old number does no harm.
    keys: Mutex<HashMap<RunId, i64>>,
    /// This process has claimed or released a run since the last notice of that.
    own_claims: AtomicBool,
    /// The thread waits for nothing but [`Changes::awake`].
    dormant: AtomicBool,
    closed: AtomicBool,
    warning: OnceLock<String>,
}

impl Changes {
    pub(super) fn new(location: Location, reader: Arc<Reader>, drivers: Arc<Drivers>, file_identity: Arc<FileIdentity>) -> Self {
        let head = HeadFile::new(&location);
        // What cannot be read now is read, and reported, when someone waits for a change of it.
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

    /// Why changes of other processes are noticed later than they could be.
    pub(super) fn warning(&self) -> Option<String> {
        self.warning.get().cloned()
    }

    /// A marker of the present state.
    pub(super) fn marker(&self) -> u64 {
        self.check_head();
        // Files that nothing can be locked in have no head that is kept up to date.
        if self.reader.is_without_locks()
            && let Err(error) = self.check_database()
        {
            tracing::debug!(%error, "changes of others cannot be seen now; whoever reads the database is told why");
        }
        self.feed.marker()
    }

    /// This process has committed these appends: writes the head, and wakes who waits for them here.
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

    /// This process has changed something that belongs to no run in particular.
    pub(super) fn all_changed(&self) {
        self.feed.all_changed();
    }

    /// Compares the head with what is known of it; another one means that another process has committed.
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
                // Without its number, the run counts as changed, and whoever reads it is told what is wrong.
                let key = found.unwrap_or_else(|error| {
                    tracing::debug!(%run, %error, "the number of a run cannot be read");
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

    /// Compares SQLite's count of commits, which cannot fail to be raised, and says nothing about runs.
    fn check_database(&self) -> Result<(), StoreError> {
        let now = self.reader.data_version()?;
        if std::mem::replace(&mut self.known().data_version, now) != now {
            self.feed.all_changed();
        }
        Ok(())
    }

    /// The drivers that are alive; that one of them is gone is a change of its runs, although no one committed it.
    fn check_drivers(&self, alive: &mut BTreeSet<DriverId>) {
        let now = match self.drivers.all_alive() {
            Ok(now) => now,
            Err(error) => return tracing::debug!(%error, "the drivers cannot be listed; they are read again in a second"),
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
            true => FileEvents::of(&self.location, self.head.path()).map_err(NotWatched::Failed),
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
                // Someone who came before this was set has not interrupted.
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
                    // A driver may have died after a waiter saw it alive and before its lock was looked at here.
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

    /// Checks everything. Those who wait are told only of a failure that lasts: one that passes is no reason to end what is driven.
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

    /// Watches until the store is closed. A panic must not leave those who wait without a word.
    fn watch_always(&self, interrupt: &Interrupt) {
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.watch(interrupt))) {
            let detail = panic.downcast_ref::<&str>().copied().unwrap_or("without a message");
            tracing::error!(detail, "the thread that watches the database panicked; it starts again");
            self.feed.set_failure(Some(StoreError::Io(format!("watching the database for changes panicked: {detail}"))));
            std::thread::sleep(CHECK);
        }
    }

    fn act_on(&self, file_changes: FileChanges, alive: &mut BTreeSet<DriverId>) {
        if file_changes.head {
            self.check_head();
        }
        // A claim of this process has woken those it is about. That one of another process came in the same millisecond is found within a second.
        if file_changes.claims && !self.own_claims.swap(false, Ordering::SeqCst) {
            self.feed.all_changed();
        }
        if file_changes.drivers {
            // The system closes a file before it ends its lock.
            std::thread::sleep(PAUSE);
            self.check_drivers(alive);
        }
    }
}

/// The thread that watches, started when someone waits first. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Watcher {
    changes: Arc<Changes>,
    thread: OnceLock<Option<(Arc<Interrupt>, JoinHandle<()>)>>,
}

impl Watcher {
    pub(super) fn new(changes: Arc<Changes>) -> Self {
        Self { changes, thread: OnceLock::new() }
    }

    /// Sees to it that changes are watched for from now on.
    pub(super) fn awake(&self) -> Result<(), StoreError> {
        let started = self.thread.get_or_init(|| start(&self.changes));
        let Some((interrupt, _)) = started else {
            return Err(StoreError::Io("a thread that watches the database cannot be started".to_owned()));
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
    start().inspect_err(|error| tracing::warn!(%error, "the thread that watches the database cannot be started")).ok()
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
