//! The outbox: delivers the notices of commits at least once, off the commit path.
//!
//! A notice is due as soon as its event is durable. Any process with a [`Courier`] delivers the due notices of its project:
//! the process that committed one does so immediately, and the next one to run finds those that a killed process left. A
//! claim keeps two processes from delivering the same notice; it ends with the process that holds it. A failed delivery is
//! retried at growing intervals and then given up. Nothing here can fail or delay a run.
//!
//! | module | what it does |
//! | --- | --- |
//! | this one | lists due notices, claims them, records their delivery |
//! | `backoff` | when a failed delivery is retried |
//! | `command` | delivers by running the configured command |

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

/// How many notices a process delivers concurrently.
const PARALLEL: usize = 4;

const FIRST_LISTED: usize = 64;

/// How often the outbox is checked for notices that a killed process, or one on another machine, has left.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// How long a given-up notice is kept for `doctor` to show.
const KEEP_GIVEN_UP_MILLIS: i64 = 30 * 24 * 60 * 60 * 1000;

/// A channel through which notices reach people.
pub trait Deliver: Send + Sync {
    /// Whether a run belongs to the project that configures this channel. Projects can share a database.
    fn is_ours(&self, run: &RunId) -> bool;

    fn deliver(&self, run: &Run, id: &NoticeId, notice: &Notice) -> BoxFuture<'static, Result<(), NotDelivered>>;

    fn patience(&self) -> Duration;
}

#[derive(Debug, thiserror::Error)]
pub enum NotDelivered {
    #[error("{0}")]
    Command(String),
    #[error("{} cannot be written: {error}", path.display())]
    Directory {
        /// The directory for its lock.
        path: std::path::PathBuf,
        error: std::io::Error,
    },
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The notice was written by another release.
    #[error("the notice cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

pub struct Courier {
    subscriptions: Subscriptions,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    channel: Box<dyn Deliver>,
    /// Notices that this process is delivering or about to deliver.
    in_flight: Mutex<BTreeSet<NoticeId>>,
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

    pub fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Delivers due notices in the background for as long as the courier exists. Must be called inside a runtime.
    pub fn wake(self: &Arc<Self>) {
        if self.is_started.swap(true, Ordering::Relaxed) {
            self.wake.send_replace(());
        } else {
            tokio::spawn(keep_delivering(Arc::downgrade(self), self.wake.subscribe()).in_current_span());
        }
    }

    /// Waits until every notice that is due now was tried once. Failed and slow deliveries are left to the next process.
    pub async fn settle(self: &Arc<Self>) {
        if let Err(error) = self.start_due().await {
            warn!(%error, "cannot read the outbox; notices are delivered later");
        }
        let mut busy = self.busy.subscribe();
        let idle = busy.wait_for(|count| *count == 0);
        if tokio::time::timeout(self.channel.patience(), idle).await.is_err() {
            warn!("some notices are still being delivered; the rest is delivered later");
        }
    }

    fn in_flight(&self) -> MutexGuard<'_, BTreeSet<NoticeId>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts delivering due notices; returns when the next one will be due.
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
            // Notices of other projects may share the store, and any number of them may come first.
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

    /// Claims a notice, delivers it and records the outcome.
    async fn handle(&self, entry: &OutboxEntry) {
        let Ok(_permit) = self.permits.acquire().await else { return };
        match self.store.claim_notice(entry).await {
            Ok(true) => {}
            Ok(false) => return debug!("another process is delivering the notice"),
            Err(error) => return warn!(%error, "cannot claim the notice; retrying"),
        }
        let outcome = self.deliver(&entry.row).await;
        let delivery = self.delivery(entry, outcome);
        if let Err(error) = self.store.settle_notice(&entry.row, delivery).await {
            // The claim ends with this process at the latest.
            warn!(%error, "cannot record the delivery; the notice may be delivered again");
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
                warn!(error, ?pause, "cannot deliver the notice; retrying");
                Delivery::Retry { due: now.plus(pause), error }
            }
            None => {
                warn!(error, attempts = entry.attempts + 1, "cannot deliver the notice; giving up");
                let forget_before = Timestamp::from_millis(now.as_millis().saturating_sub(KEEP_GIVEN_UP_MILLIS));
                Delivery::GivenUp { error, forget_before }
            }
        }
    }
}

/// A notice in delivery; dropping it ends the delivery, however it went.
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

/// The delivery task. If its runtime ends before the courier does, the next wake starts another one.
struct Started(Weak<Courier>);

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(courier) = self.0.upgrade() {
            courier.is_started.store(false, Ordering::Relaxed);
        }
    }
}

/// Delivers due notices until the courier is gone. It is not held between two rounds, so that the store can be closed.
async fn keep_delivering(courier: Weak<Courier>, mut wake: watch::Receiver<()>) {
    let started = Started(courier);
    loop {
        let pause = {
            let Some(courier) = started.0.upgrade() else { return };
            let next = courier.start_due().await.unwrap_or_else(|error| {
                warn!(%error, "cannot read the outbox; retrying");
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

/// The notices that commits must include.
pub(crate) fn subscriptions(runtime: &Runtime) -> &Subscriptions {
    runtime.perform.courier().map_or(&NO_SUBSCRIPTIONS, |courier| courier.subscriptions())
}

/// Delivers due notices, if there is a courier.
pub(crate) fn wake(runtime: &Runtime) {
    if let Some(courier) = runtime.perform.courier() {
        courier.wake();
    }
}
