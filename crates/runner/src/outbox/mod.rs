//! The outbox: notices that commits brought are delivered off the commit path, at least once.
//!
//! A notice is due from the moment its event is durable. Any process with a [`Courier`] delivers what is due in its project: the one that
//! committed it does so immediately, and the next one that runs finds what a killed process left. A claim keeps two processes from
//! delivering the same notice; it ends with the process that holds it. A delivery that fails is retried with growing pauses and then
//! given up. Nothing here can fail or delay a run.
//!
//! | module | what it does |
//! | --- | --- |
//! | this one | finds what is due, claims it, records what became of it |
//! | `backoff` | when a failed delivery is tried again |
//! | `command` | delivers by running the command of the settings |

mod backoff;
pub(crate) mod command;

pub use command::Render;

use crate::load::{LoadError, load};
use crate::runtime::{Clock, Runtime};
use futures::future::BoxFuture;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::index::OutboxRow;
use lockgate_engine::run::outbox::{Notice, NoticeId, Subscriptions};
use lockgate_engine::time::Timestamp;
use lockgate_store::{Delivery, OutboxEntry, OutboxFilter, Store, StoreError};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tracing::{Instrument, debug, info, warn};

/// How many notices a process delivers in parallel.
const PARALLEL: usize = 4;

/// How many notices are listed first.
const FIRST_LISTED: usize = 64;

/// How often the outbox is checked for what a process that was killed, or that runs elsewhere, has left.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// How long a notice that was given up is kept for `doctor` to show.
const KEEP_GIVEN_UP_MILLIS: i64 = 30 * 24 * 60 * 60 * 1000;

/// A channel through which notices reach people.
pub trait Deliver: Send + Sync {
    /// Whether a run belongs to the project whose settings name the channel. Projects can share a database.
    fn is_ours(&self, run: &RunId) -> bool;

    /// Delivers a notice of a run.
    fn deliver(&self, run: &Run, id: &NoticeId, notice: &Notice) -> BoxFuture<'static, Result<(), NotDelivered>>;

    /// How long a delivery may take.
    fn patience(&self) -> Duration;
}

/// Why a notice was not delivered.
#[derive(Debug, thiserror::Error)]
pub enum NotDelivered {
    /// The command failed.
    #[error("{0}")]
    Command(String),
    /// The command cannot be started, because its directory cannot be written.
    #[error("{} cannot be written: {error}", path.display())]
    Directory {
        /// The directory for its lock.
        path: std::path::PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The run cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The notice was written by another release.
    #[error("the notice cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// Delivers the notices of one project.
pub struct Courier {
    subscriptions: Subscriptions,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    channel: Box<dyn Deliver>,
    /// What this process delivers now, or is about to.
    in_flight: Mutex<BTreeSet<NoticeId>>,
    /// How many those are.
    busy: watch::Sender<usize>,
    permits: Semaphore,
    wake: watch::Sender<()>,
    is_started: AtomicBool,
}

impl Courier {
    /// Nothing is delivered before the first [`Courier::wake`].
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        subscriptions: Subscriptions,
        channel: Box<dyn Deliver>,
    ) -> Arc<Self> {
        Arc::new(Self {
            subscriptions,
            store,
            clock,
            channel,
            in_flight: Mutex::default(),
            busy: watch::Sender::new(0),
            permits: Semaphore::new(PARALLEL),
            wake: watch::Sender::default(),
            is_started: AtomicBool::new(false),
        })
    }

    /// What is delivered.
    pub fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Delivers what is due, in the background, from now on for as long as this is there. Must be called inside a runtime.
    pub fn wake(self: &Arc<Self>) {
        if self.is_started.swap(true, Ordering::Relaxed) {
            self.wake.send_replace(());
        } else {
            tokio::spawn(keep_delivering(Arc::downgrade(self), self.wake.subscribe()).in_current_span());
        }
    }

    /// Waits until everything that is due now was tried once. What fails is left to whichever process runs next, as is what takes too long.
    pub async fn settle(self: &Arc<Self>) {
        if let Err(error) = self.start_due().await {
            warn!(%error, "the outbox cannot be read; notices are delivered later");
        }
        let mut busy = self.busy.subscribe();
        let idle = busy.wait_for(|count| *count == 0);
        if tokio::time::timeout(self.channel.patience(), idle).await.is_err() {
            warn!("notices are still being delivered; what is left is delivered later");
        }
    }

    fn in_flight(&self) -> MutexGuard<'_, BTreeSet<NoticeId>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to deliver what is due; gives when the next notice will be.
    async fn start_due(self: &Arc<Self>) -> Result<Option<Timestamp>, StoreError> {
        let mut limit = FIRST_LISTED;
        loop {
            let listed = self.store.outbox(OutboxFilter::Undelivered, limit).await?;
            let all = listed.len() < limit;
            let now = self.clock.now();
            for entry in listed {
                if entry.claimed || entry.row.channel.known().is_none() || !self.channel.is_ours(&entry.row.notice.run) {
                    continue;
                }
                match entry.due.filter(|due| *due > now) {
                    Some(next) => return Ok(Some(next)),
                    None => self.start(entry),
                }
            }
            if all {
                return Ok(None);
            }
            // However many of other projects share the store, ours may be listed behind them.
            limit = limit.saturating_mul(4);
        }
    }

    fn start(self: &Arc<Self>, entry: OutboxEntry) {
        let id = entry.row.notice.clone();
        if self.in_flight().insert(id.clone()) {
            self.busy.send_modify(|count| *count += 1);
            let underway = Underway { courier: self.clone(), id };
            let span = tracing::info_span!("notice", notice = %underway.id, channel = entry.row.channel.as_str());
            tokio::spawn(async move { underway.courier.handle(&entry).await }.instrument(span));
        }
    }

    /// Claims a notice, delivers it, and records what became of it.
    async fn handle(&self, entry: &OutboxEntry) {
        let Ok(_permit) = self.permits.acquire().await else { return };
        match self.store.claim_notice(entry).await {
            Ok(true) => {}
            Ok(false) => return debug!("another process delivers it"),
            Err(error) => return warn!(%error, "it cannot be claimed; it is tried again"),
        }
        let outcome = self.deliver(&entry.row).await;
        let delivery = self.delivery(entry, outcome);
        if let Err(error) = self.store.settle_notice(&entry.row, delivery).await {
            // The claim ends with this process at the latest.
            warn!(%error, "what became of it cannot be recorded; it may be delivered again");
        }
    }

    async fn deliver(&self, row: &OutboxRow) -> Result<(), NotDelivered> {
        let notice: Notice = serde_json::from_str(&row.payload)?;
        let run = load(&*self.store, &row.notice.run).await?;
        self.channel.deliver(&run, &row.notice, &notice).await
    }

    fn delivery(&self, entry: &OutboxEntry, outcome: Result<(), NotDelivered>) -> Delivery {
        let Err(error) = outcome else {
            info!(attempts = entry.attempts + 1, "delivered");
            return Delivery::Delivered;
        };
        let (now, error) = (self.clock.now(), error.to_string());
        match backoff::pause(entry.attempts + 1) {
            Some(pause) => {
                warn!(error, ?pause, "not delivered; it is tried again");
                Delivery::Retry { due: now.plus(pause), error }
            }
            None => {
                warn!(error, attempts = entry.attempts + 1, "not delivered, and given up");
                let forget_before = Timestamp::from_millis(now.as_millis().saturating_sub(KEEP_GIVEN_UP_MILLIS));
                Delivery::GivenUp { error, forget_before }
            }
        }
    }
}

/// A notice that is being delivered. However that ends, it is no longer in flight then.
struct Underway {
    courier: Arc<Courier>,
    id: NoticeId,
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.courier.in_flight().remove(&self.id);
        self.courier.busy.send_modify(|count| *count -= 1);
    }
}

/// The task that delivers. When its runtime ends before the courier does, the next wake starts another one.
struct Started(Weak<Courier>);

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(courier) = self.0.upgrade() {
            courier.is_started.store(false, Ordering::Relaxed);
        }
    }
}

/// Delivers what is due until the courier is gone. It is not held between two rounds, so that the store can be closed.
async fn keep_delivering(courier: Weak<Courier>, mut wake: watch::Receiver<()>) {
    let started = Started(courier);
    loop {
        let pause = {
            let Some(courier) = started.0.upgrade() else { return };
            let next = courier.start_due().await.unwrap_or_else(|error| {
                warn!(%error, "the outbox cannot be read; it is tried again");
                None
            });
            next.map_or(CHECK_EVERY, |next| next.since(courier.clock.now()).min(CHECK_EVERY))
        };
        tokio::select! {
            woken = wake.changed() => {
                if woken.is_err() {
                    return;
                }
            }
            () = tokio::time::sleep(pause) => {}
        }
    }
}

static NO_SUBSCRIPTIONS: Subscriptions = Subscriptions::NONE;

/// What a commit in this world must bring notices of.
pub(crate) fn subscriptions(runtime: &Runtime) -> &Subscriptions {
    runtime.perform.courier().map_or(&NO_SUBSCRIPTIONS, |courier| courier.subscriptions())
}

/// Delivers what is due in this world, if anything is delivered at all.
pub(crate) fn wake(runtime: &Runtime) {
    if let Some(courier) = runtime.perform.courier() {
        courier.wake();
    }
}
