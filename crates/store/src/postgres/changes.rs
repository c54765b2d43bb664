//! Changes: who waits for commits of others is told of them.
//!
//! The snapshot that PostgreSQL gives to a statement is another one after every commit: to compare it with the one before is to look. It is
//! looked at every 200 ms while somebody waits. Notifications make it sooner; they are sent after the commit, a few at most in a moment,
//! because PostgreSQL lets transactions that notify commit only one after the other.

use super::errors::explain;
use super::link::{Link, Session};
use crate::error::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How long a commit of another process can stay unnoticed.
const LOOK: Duration = Duration::from_millis(200);
/// How long a process waits after it notified others before it does so again.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the database may be out of reach before those who wait are told.
const PATIENCE: Duration = Duration::from_secs(10);

/// What those who wait are told.
#[derive(Clone, Debug, Default)]
struct Seen {
    marker: u64,
    failed: Option<StoreError>,
}

/// The changes of a store, seen from one process.
#[derive(Debug)]
pub(super) struct Changes {
    seen: watch::Sender<Seen>,
    waiting: AtomicUsize,
    begun: Notify,
    untold: AtomicBool,
    tell: Notify,
}

/// Counts one who waits.
struct Waiter<'a>(&'a Changes);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Changes {
    pub(super) fn new() -> Self {
        Self {
            seen: watch::Sender::default(),
            waiting: AtomicUsize::new(0),
            begun: Notify::new(),
            untold: AtomicBool::new(false),
            tell: Notify::new(),
        }
    }

    /// A marker of the present state, as far as it was seen.
    pub(super) fn marker(&self) -> u64 {
        self.seen.borrow().marker
    }

    /// Ends when something else was seen.
    pub(super) async fn changed(&self, since: u64) -> Result<u64, StoreError> {
        let mut seen = self.seen.subscribe();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiter = Waiter(self);
        if seen.borrow_and_update().marker == since {
            self.begun.notify_one();
        }
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
            if seen.changed().await.is_err() {
                return Err(StoreError::Io("the store was closed".to_owned()));
            }
        }
    }

    /// This process has committed.
    pub(super) fn committed(&self) {
        self.bump();
        self.untold.store(true, Ordering::Relaxed);
        self.tell.notify_one();
    }

    fn bump(&self) {
        self.seen.send_modify(|seen| seen.marker += 1);
    }

    /// Looks for commits of others while somebody waits for them; `snapshot` is what was seen when the store was opened.
    pub(super) async fn look(self: Arc<Self>, link: Arc<Link>, mut snapshot: String) {
        let mut failing: Option<Instant> = None;
        let mut listening = None;
        loop {
            if self.waiting.load(Ordering::Relaxed) == 0 {
                self.begun.notified().await;
            }
            match listen_and_look(&link, &mut listening).await {
                Ok(now) => {
                    failing = None;
                    if now != snapshot {
                        snapshot = now;
                        self.bump();
                    }
                    self.seen.send_if_modified(|seen| seen.failed.take().is_some());
                }
                Err(error) => {
                    if failing.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                        self.seen.send_modify(|seen| seen.failed = Some(error));
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = link.notified().notified() => {}
                () = self.begun.notified() => {}
            }
        }
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
        if self.untold.swap(false, Ordering::Relaxed)
            && let Ok(session) = link.session().await
        {
            session.query("SELECT pg_notify('lockgate', '')", &[]).await.ok();
        }
    }
}

async fn listen_and_look(link: &Link, listening: &mut Option<Arc<Session>>) -> Result<String, StoreError> {
    let session = link.session().await?;
    if !listening.as_ref().is_some_and(|listening| Arc::ptr_eq(listening, &session)) {
        session.client.batch_execute("LISTEN lockgate").await.map_err(|error| explain(&error, &link.place))?;
        *listening = Some(session);
    }
    let rows = link.read(SNAPSHOT, &[]).await?;
    Ok(rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_default())
}

/// Gives the snapshot that a statement sees now.
pub(super) const SNAPSHOT: &str = "SELECT pg_current_snapshot()::text";
