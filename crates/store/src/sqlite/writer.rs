//! The writer: group commit for all waiting requests.
//!
//! A caller that arrives while no commit is in progress commits the waiting requests on its own thread, because two thread
//! handoffs would cost a single caller a tenth of its throughput. Requests that arrive during a commit share the next one,
//! which a helper thread makes. The helper also handles everything that may take long: large values, a lock held by another
//! process, and checkpoints. Nothing is delayed to make a batch larger.

use super::append::Appended;
use super::claims::{Claimed, Granted, Wanted};
use super::committer::Committer;
use super::outbox::Change;
use super::remove::Removed;
use crate::error::{AppendError, ClaimError, RemoveError, StoreError};
use crate::held_claims::{Awaited, HeldClaims};
use crate::store::{Append, RemovedRows, RunRemoval};
use lockgate_engine::id::RunId;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, mpsc};
use std::task::Poll;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Appends with more bytes of values than this are left to the helper.
const LARGE: usize = 64 * 1024;

/// A request that a caller waits for.
#[derive(Debug)]
pub(super) enum Request {
    /// An append, and its outcome inside the transaction.
    Append(Box<Append>, Appended, oneshot::Sender<Result<Option<u64>, AppendError>>),
    /// A claim, and its outcome inside the transaction.
    Claim(Wanted, Claimed, oneshot::Sender<Result<Vec<(RunId, u64)>, ClaimError>>),
    /// A release, and whether the claim was still current. No one waits for the release of an abandoned claim.
    Release(RunId, u64, bool, Option<oneshot::Sender<Result<(), StoreError>>>),
    /// The removal of a run, and what became of it inside the transaction.
    Remove(Box<RunRemoval>, Removed, oneshot::Sender<Result<RemovedRows, RemoveError>>),
    /// A change of the outbox, and whether it changed a row.
    Outbox(Box<Change>, bool, oneshot::Sender<Result<bool, StoreError>>),
}

impl Request {
    /// Sends the outcome to the caller, after the transaction is durable. Returns the claims that no one waits for any more.
    fn settle(self) -> Vec<(RunId, u64)> {
        match self {
            Self::Append(append, appended, reply) => {
                let run = append.run;
                let result = match appended {
                    Appended::Taken(granted) => Ok(granted.map(|granted| granted.hold().1)),
                    Appended::DrivenBy(info) => Err(AppendError::DrivenBy(info)),
                    Appended::Conflict => Err(AppendError::Conflict),
                    Appended::Fenced => Err(AppendError::Fenced),
                    Appended::NoRun => Err(StoreError::NoRun(run.clone()).into()),
                };
                match reply.send(result) {
                    Err(Ok(Some(epoch))) => vec![(run, epoch)],
                    Err(Ok(None) | Err(_)) | Ok(()) => Vec::new(),
                }
            }
            Self::Claim(wanted, claimed, reply) => {
                let result = match claimed {
                    Claimed::Runs(granted) => Ok(granted.into_iter().map(Granted::hold).collect()),
                    Claimed::DrivenBy(info) => Err(ClaimError::DrivenBy(info)),
                    Claimed::NoRun => match wanted {
                        Wanted::Run(run) => Err(StoreError::NoRun(run).into()),
                        Wanted::Any(..) => Ok(Vec::new()),
                    },
                };
                reply.send(result).err().and_then(Result::ok).unwrap_or_default()
            }
            Self::Release(_, _, _, reply) => {
                answer(reply, Ok(()));
                Vec::new()
            }
            Self::Remove(removal, removed, reply) => {
                drop(reply.send(match removed {
                    Removed::Rows(rows) => Ok(rows),
                    Removed::Fenced => Err(RemoveError::Fenced),
                    Removed::Status(status) => Err(RemoveError::Status(status)),
                    Removed::NoRun => Err(StoreError::NoRun(removal.run).into()),
                }));
                Vec::new()
            }
            Self::Outbox(_, changed, reply) => {
                drop(reply.send(Ok(changed)));
                Vec::new()
            }
        }
    }

    /// Whether the caller is gone, so that the request is dropped. A release is always performed: others wait for the run.
    fn is_abandoned(&self) -> bool {
        match self {
            Self::Append(_, _, reply) => reply.is_closed(),
            Self::Claim(_, _, reply) => reply.is_closed(),
            Self::Release(..) => false,
            Self::Remove(_, _, reply) => reply.is_closed(),
            Self::Outbox(_, _, reply) => reply.is_closed(),
        }
    }

    /// Reports to the caller that the transaction failed.
    fn fail(self, error: StoreError) {
        match self {
            Self::Append(_, _, reply) => drop(reply.send(Err(error.into()))),
            Self::Claim(_, _, reply) => drop(reply.send(Err(error.into()))),
            Self::Release(_, _, _, reply) => answer(reply, Err(error)),
            Self::Remove(_, _, reply) => drop(reply.send(Err(error.into()))),
            Self::Outbox(_, _, reply) => drop(reply.send(Err(error))),
        }
    }

    /// Whether it must survive a power failure. Claims need not, because a power failure also ends every process that could
    /// hold one. Nor need the outbox: at worst a notice is delivered twice.
    pub(super) fn must_be_durable(&self) -> bool {
        match self {
            Self::Append(..) | Self::Remove(..) => true,
            Self::Claim(..) | Self::Release(..) | Self::Outbox(..) => false,
        }
    }
}

/// Queues requests and gets them committed.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    helper: OnceLock<Helper>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Vec<Request>>,
    committer: Mutex<Committer>,
    held: Arc<HeldClaims>,
}

impl Writer {
    pub(super) fn new(committer: Committer, held: Arc<HeldClaims>) -> Self {
        let shared = Shared { waiting: Mutex::default(), committer: Mutex::new(committer), held };
        Self { shared: Arc::new(shared), helper: OnceLock::new() }
    }

    /// Opens the writing connection, unless another thread is using it.
    pub(super) fn prepare(&self) {
        if let Ok(mut committer) = self.shared.committer.try_lock()
            && let Err(error) = committer.ensure_open()
        {
            tracing::debug!(%error, "cannot open the writing connection ahead of time");
        }
    }

    pub(super) async fn append(&self, append: Append) -> Result<Option<u64>, AppendError> {
        let (reply, result) = oneshot::channel();
        let large = append.values.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
            + append.materialized.as_ref().map_or(0, Vec::len)
            > LARGE;
        let run = append.run.clone();
        let awaited = Awaited::new(result, |unwanted: Result<Option<u64>, AppendError>| {
            unwanted.ok().flatten().into_iter().for_each(|epoch| self.abandon(run.clone(), epoch));
        });
        self.submit(Request::Append(Box::new(append), Appended::NoRun, reply), large).await;
        awaited.await.unwrap_or_else(|_| Err(stopped().into()))
    }

    pub(super) async fn claim(&self, wanted: Wanted) -> Result<Vec<(RunId, u64)>, ClaimError> {
        let (reply, result) = oneshot::channel();
        let awaited = Awaited::new(result, |unwanted: Result<Vec<(RunId, u64)>, ClaimError>| {
            unwanted.unwrap_or_default().into_iter().for_each(|(run, epoch)| self.abandon(run, epoch));
        });
        self.submit(Request::Claim(wanted, Claimed::NoRun, reply), false).await;
        awaited.await.unwrap_or_else(|_| Err(stopped().into()))
    }

    pub(super) async fn release(&self, run: RunId, epoch: u64) -> Result<(), StoreError> {
        // Do this first: when another process sees the release, the run must be free here too.
        self.shared.held.release(&run, epoch);
        let (reply, result) = oneshot::channel();
        self.submit(Request::Release(run, epoch, false, Some(reply)), false).await;
        result.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Removes a run, on the helper's thread: a long history takes a while.
    pub(super) async fn remove(&self, removal: RunRemoval) -> Result<RemovedRows, RemoveError> {
        let (reply, result) = oneshot::channel();
        let (run, epoch) = (removal.run.clone(), removal.epoch);
        self.submit(Request::Remove(Box::new(removal), Removed::NoRun, reply), true).await;
        let removed = result.await.unwrap_or_else(|_| Err(stopped().into()))?;
        self.shared.held.release(&run, epoch);
        Ok(removed)
    }

    pub(super) async fn change_outbox(&self, change: Change) -> Result<bool, StoreError> {
        let (reply, result) = oneshot::channel();
        self.submit(Request::Outbox(Box::new(change), false, reply), false).await;
        result.await.unwrap_or_else(|_| Err(stopped()))
    }

    pub(super) fn abandon(&self, run: RunId, epoch: u64) {
        self.shared.held.release(&run, epoch);
        self.shared.waiting().push(Request::Release(run, epoch, false, None));
        self.wake_helper();
    }

    async fn submit(&self, request: Request, large: bool) {
        self.shared.waiting().push(request);
        if large {
            return self.wake_helper();
        }
        // Yield once, so that other tasks on this thread can share the transaction.
        let mut yielded = false;
        std::future::poll_fn(|context| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        self.lead();
    }

    /// Commits the waiting requests, unless another thread is doing so.
    fn lead(&self) {
        let mut committer = match self.shared.committer.try_lock() {
            Ok(committer) => committer,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // The thread that holds the lock checks for new requests after releasing it, so this one is not forgotten.
            Err(TryLockError::WouldBlock) => return,
        };
        let done = self.shared.serve(&mut committer, false) && !committer.wal_is_long();
        drop(committer);
        if !done || !self.shared.waiting().is_empty() {
            self.wake_helper();
        }
    }

    fn wake_helper(&self) {
        self.helper.get_or_init(|| Helper::start(self.shared.clone())).wake();
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Vec<Request>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits the waiting requests in one transaction. Returns false if another process has the lock and this call does not
    /// wait for it.
    fn serve(&self, committer: &mut Committer, patient: bool) -> bool {
        let mut batch = std::mem::take(&mut *self.waiting());
        batch.retain(|request| !request.is_abandoned());
        if batch.is_empty() {
            return true;
        }
        match committer.commit(&mut batch, patient) {
            Ok(true) => {
                for (run, epoch) in batch.into_iter().flat_map(Request::settle) {
                    self.held.release(&run, epoch);
                    self.waiting().push(Request::Release(run, epoch, false, None));
                }
            }
            Ok(false) => {
                // These requests came first.
                let mut waiting = self.waiting();
                batch.append(&mut waiting);
                *waiting = batch;
                return false;
            }
            Err(error) => batch.into_iter().for_each(|request| request.fail(error.clone())),
        }
        true
    }
}

/// The thread that commits requests which arrived during another commit, and everything that takes long.
#[derive(Debug)]
struct Helper {
    wakes: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Helper {
    fn start(shared: Arc<Shared>) -> Self {
        let (wakes, woken) = mpsc::channel();
        let work = move || {
            while let Ok(()) = woken.recv() {
                // The following pass covers every wake-up received so far.
                while let Ok(()) = woken.try_recv() {}
                loop {
                    let mut committer = shared.committer.lock().unwrap_or_else(PoisonError::into_inner);
                    shared.serve(&mut committer, true);
                    if committer.wal_is_long() {
                        committer.checkpoint_wal();
                    }
                    drop(committer);
                    if shared.waiting().is_empty() {
                        break;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("lockgate-writer".to_owned()).spawn(work);
        let thread = thread
            .inspect_err(|error| tracing::warn!(%error, "cannot start the writer thread; commits run on the callers' threads"));
        Self { wakes: Some(wakes), thread: thread.ok() }
    }

    fn wake(&self) {
        if let Some(wakes) = &self.wakes
            && wakes.send(()).is_err()
        {
            tracing::debug!("the writer thread has ended");
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.wakes = None;
        if let Some(thread) = self.thread.take() {
            crate::cleanup::join(thread);
        }
    }
}

fn answer<T>(reply: Option<oneshot::Sender<T>>, result: T) {
    if let Some(reply) = reply
        && reply.send(result).is_err()
    {
        tracing::trace!("the caller is gone");
    }
}

fn stopped() -> StoreError {
    StoreError::OutcomeUnknown("the writer thread has ended".to_owned())
}
