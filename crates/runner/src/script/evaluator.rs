//! The pool of workers, and one call from request to reply.

use super::{
    Call, Failed, Returned, ScriptError, WorkerCommand,
    message::{CALL_LIMIT, read_answer, write_call},
    worker_process::{Broken, Started, Worker, start},
};
use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{Semaphore, oneshot, oneshot::error::TryRecvError};

/// How many workers a call is offered to before it fails.
const ATTEMPTS: u32 = 6;

/// Evaluates scripts and conditions in worker processes.
///
/// It belongs to the runtime in which it is first called. Dropping it ends its workers.
pub struct Evaluator {
    command: WorkerCommand,
    permits: Semaphore,
    pool: Mutex<Pool>,
}

#[derive(Default)]
struct Pool {
    /// The most recently used worker is at the back.
    idle: VecDeque<Worker>,
    coming: VecDeque<oneshot::Receiver<io::Result<Started>>>,
}

impl Evaluator {
    /// An evaluator that starts its workers on demand.
    pub fn new(worker: WorkerCommand) -> Self {
        let workers = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4));
        Self { command: worker, permits: Semaphore::new(workers), pool: Mutex::default() }
    }

    /// Starts a worker in advance, without waiting, unless there is one.
    pub fn warm(&self) {
        let mut pool = self.pool();
        if pool.idle.is_empty() && pool.coming.is_empty() {
            pool.coming.push_back(start(&self.command));
        }
    }

    /// Evaluates a call. If the future is dropped, the worker is ended and the next call gets another.
    pub async fn call(&self, call: Call) -> Result<Returned, ScriptError> {
        self.evaluate(&call).await.map_err(|failed| failed.error)
    }

    /// Like [`Evaluator::call`], but a failure includes the script's log and written files.
    pub async fn evaluate(&self, call: &Call) -> Result<Returned, Failed> {
        match self.ask(call).await {
            Ok(answer) => answer,
            Err(error) => Err(Failed { error, log: Vec::new(), wrote: Vec::new() }),
        }
    }

    async fn ask(&self, call: &Call) -> Result<Result<Returned, Failed>, ScriptError> {
        let _permit = self.permits.acquire().await.map_err(|error| ScriptError::Worker(error.to_string()))?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut worker = self.worker().await?;
            let cache_update = worker.value_cache.update(&call.stored);
            let Some(frame) = write_call(call, &cache_update) else {
                return Err(ScriptError::Worker(format!("the input of the script exceeds {CALL_LIMIT} bytes")));
            };
            let answer = match worker.exchange(&frame, kill_timeout(call.limits.time)).await {
                Ok(frame) => read_answer(frame),
                // It ended while it was idle. Nothing was evaluated, so another worker can try.
                Err(Broken::NotSent(_)) if attempts < ATTEMPTS => continue,
                Err(Broken::NotSent(what) | Broken::Ended(what)) => return Err(ScriptError::Worker(what.to_string())),
                Err(Broken::Late) => return Err(ScriptError::Timeout(call.limits.time)),
            };
            let answer = answer.map_err(|_| ScriptError::Worker("its answer is malformed".into()))?;
            self.pool().idle.push_back(worker);
            return Ok(answer);
        }
    }

    /// A worker from the pool, or a new one. The permits limit the number of active workers.
    async fn worker(&self) -> Result<Worker, ScriptError> {
        let coming = {
            let mut pool = self.pool();
            pool.collect_started();
            // The most recently used one is still awake.
            if let Some(worker) = pool.idle.pop_back() {
                return Ok(worker);
            }
            pool.coming.pop_front().unwrap_or_else(|| start(&self.command))
        };
        let cannot = |why: &str| ScriptError::Worker(format!("cannot start {}: {why}", self.command.program.display()));
        let started = coming.await.map_err(|_| cannot("no thread could be started"))?;
        started.and_then(Worker::adopt).map_err(|error| cannot(&error.to_string()))
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        // No code that holds the lock leaves the pool half changed.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// Adds workers that were started in advance and are ready.
    fn collect_started(&mut self) {
        while let Some(first) = self.coming.front_mut() {
            let arrived = match first.try_recv() {
                Ok(started) => started
                    .and_then(Worker::adopt)
                    .inspect_err(|error| tracing::debug!(%error, "cannot start a script worker in advance"))
                    .ok(),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Closed) => None,
            };
            self.coming.pop_front();
            // A worker that failed to start is reported when a call has no other.
            self.idle.extend(arrived);
        }
    }
}

/// How long to wait for a reply before the worker is killed: twice the time limit, and at least 100 ms more, because a busy
/// machine may take that long to transfer the reply.
fn kill_timeout(time: Duration) -> Duration {
    time.saturating_mul(2).max(time.saturating_add(Duration::from_millis(100)))
}
