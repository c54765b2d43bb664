//! The writer: makes one transaction of all that waits.
//!
//! Whoever comes while nothing is being committed commits himself what waits, on his own thread: two hand-overs between threads would cost a
//! lone caller a tenth of his rate. What comes while a transaction goes to the disk shares the next one, which a helper thread makes; so does
//! all that could take long: large values, a lock that another process holds, and emptying the log. Nothing lingers to make a batch larger.

use super::append::{Appended, Claimed};
use super::committer::Committer;
use super::outbox::Change;
use crate::error::{AppendError, ClaimError, StoreError};
use crate::store::Append;
use lockgate_engine::id::RunId;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, mpsc};
use std::task::Poll;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// An append with more bytes than this beside its commit is left to the helper.
const LARGE: usize = 64 * 1024;

/// What somebody waits for.
#[derive(Debug)]
pub(super) enum Request {
    /// An append, and what became of it inside the transaction.
    Append(Box<Append>, Appended, oneshot::Sender<Result<Option<u64>, AppendError>>),
    /// A claim on the first of these runs that is free, and what became of it inside the transaction.
    Claim(Vec<RunId>, Claimed, oneshot::Sender<Result<(RunId, u64), ClaimError>>),
    /// The end of a claim, and whether it was still the run's.
    Release(RunId, u64, bool, oneshot::Sender<Result<(), StoreError>>),
    /// A change of the outbox, and whether there was anything to change.
    Outbox(Box<Change>, bool, oneshot::Sender<Result<bool, StoreError>>),
}

impl Request {
    /// Tells the caller what became of it, now that the transaction is durable; whoever no longer waits does not miss it.
    fn settle(self) {
        match self {
            Self::Append(append, appended, reply) => drop(reply.send(match appended {
                Appended::Taken(epoch) => Ok(epoch),
                Appended::DrivenBy(info) => Err(AppendError::DrivenBy(info)),
                Appended::Conflict => Err(AppendError::Conflict),
                Appended::Fenced => Err(AppendError::Fenced),
                Appended::NoRun => Err(StoreError::NoRun(append.run).into()),
            })),
            Self::Claim(runs, claimed, reply) => drop(reply.send(match claimed {
                Claimed::Run(run, epoch) => Ok((run, epoch)),
                Claimed::DrivenBy(info) => Err(ClaimError::DrivenBy(info)),
                Claimed::NoRun => Err(StoreError::NoRun(runs.into_iter().next().unwrap_or_else(|| RunId::new(""))).into()),
            })),
            Self::Release(_, _, _, reply) => drop(reply.send(Ok(()))),
            Self::Outbox(_, changed, reply) => drop(reply.send(Ok(changed))),
        }
    }

    /// Whether nobody waits for it any more; then it is not begun.
    fn is_abandoned(&self) -> bool {
        match self {
            Self::Append(_, _, reply) => reply.is_closed(),
            Self::Claim(_, _, reply) => reply.is_closed(),
            Self::Release(_, _, _, reply) => reply.is_closed(),
            Self::Outbox(_, _, reply) => reply.is_closed(),
        }
    }

    /// Tells the caller that the transaction failed.
    fn fail(self, error: StoreError) {
        match self {
            Self::Append(_, _, reply) => drop(reply.send(Err(error.into()))),
            Self::Claim(_, _, reply) => drop(reply.send(Err(error.into()))),
            Self::Release(_, _, _, reply) => drop(reply.send(Err(error))),
            Self::Outbox(_, _, reply) => drop(reply.send(Err(error))),
        }
    }

    /// Whether it must outlive a power failure. Claims need not: it ends every process that could have made or released one. Nor need the outbox:
    /// at worst a notice is delivered once more.
    pub(super) fn must_be_durable(&self) -> bool {
        match self {
            Self::Append(..) => true,
            Self::Claim(..) | Self::Release(..) | Self::Outbox(..) => false,
        }
    }
}

/// Takes requests and sees that they are committed.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    helper: OnceLock<Helper>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Vec<Request>>,
    committer: Mutex<Committer>,
}

impl Writer {
    pub(super) fn new(committer: Committer) -> Self {
        Self { shared: Arc::new(Shared { waiting: Mutex::default(), committer: Mutex::new(committer) }), helper: OnceLock::new() }
    }

    pub(super) async fn append(&self, append: Append) -> Result<Option<u64>, AppendError> {
        let (reply, result) = oneshot::channel();
        let large = append.values.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
            + append.materialized.as_ref().map_or(0, Vec::len)
            > LARGE;
        self.submit(Request::Append(Box::new(append), Appended::NoRun, reply), large).await;
        result.await.unwrap_or_else(|_| Err(stopped().into()))
    }

    pub(super) async fn claim(&self, runs: Vec<RunId>) -> Result<(RunId, u64), ClaimError> {
        let (reply, result) = oneshot::channel();
        self.submit(Request::Claim(runs, Claimed::NoRun, reply), false).await;
        result.await.unwrap_or_else(|_| Err(stopped().into()))
    }

    pub(super) async fn release(&self, run: RunId, epoch: u64) -> Result<(), StoreError> {
        let (reply, result) = oneshot::channel();
        self.submit(Request::Release(run, epoch, false, reply), false).await;
        result.await.unwrap_or_else(|_| Err(stopped()))
    }

    pub(super) async fn change_outbox(&self, change: Change) -> Result<bool, StoreError> {
        let (reply, result) = oneshot::channel();
        self.submit(Request::Outbox(Box::new(change), false, reply), false).await;
        result.await.unwrap_or_else(|_| Err(stopped()))
    }

    async fn submit(&self, request: Request, large: bool) {
        self.shared.waiting().push(request);
        if large {
            return self.wake_helper();
        }
        // Others that are ready to append on this thread get the chance to share the transaction.
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

    /// Commits what waits, if nobody else is doing it.
    fn lead(&self) {
        let mut committer = match self.shared.committer.try_lock() {
            Ok(committer) => committer,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Whoever has it looks for what waits after having let go of it, so this request is not forgotten.
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

    /// Makes one transaction of what waits. False when another process has the lock and this one will not wait for it.
    fn serve(&self, committer: &mut Committer, patient: bool) -> bool {
        let mut batch = std::mem::take(&mut *self.waiting());
        batch.retain(|request| !request.is_abandoned());
        if batch.is_empty() {
            return true;
        }
        match committer.commit(&mut batch, patient) {
            Ok(true) => batch.into_iter().for_each(Request::settle),
            Ok(false) => {
                // They were there first.
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

/// The thread that commits what came while somebody else did, and all that takes long.
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
                // Every wake that came so far is answered by what follows.
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
        let thread = thread.inspect_err(|error| tracing::warn!(%error, "commits are written without a thread of their own"));
        Self { wakes: Some(wakes), thread: thread.ok() }
    }

    fn wake(&self) {
        if let Some(wakes) = &self.wakes
            && wakes.send(()).is_err()
        {
            tracing::debug!("the thread that writes has ended");
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

fn stopped() -> StoreError {
    StoreError::OutcomeUnknown("the thread that writes has ended".to_owned())
}
