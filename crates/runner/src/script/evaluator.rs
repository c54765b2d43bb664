//! The pool of workers, and one call from asking to answer.

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

/// A call is offered to this many workers before it fails because none took it.
const ATTEMPTS: u32 = 6;

/// Evaluates scripts and conditions in worker processes.
///
/// Belongs to the runtime in which it is first called. Dropping it ends its workers.
pub struct Evaluator {
    command: WorkerCommand,
    permits: Semaphore,
    pool: Mutex<Pool>,
}

#[derive(Default)]
struct Pool {
    /// The one that answered last is at the back.
    idle: VecDeque<Worker>,
    coming: VecDeque<oneshot::Receiver<io::Result<Started>>>,
}

impl Evaluator {
    /// An evaluator that starts its workers when they are needed.
    pub fn new(worker: WorkerCommand) -> Self {
        let workers = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4));
        Self { command: worker, permits: Semaphore::new(workers), pool: Mutex::default() }
    }

    /// Starts a worker ahead, without waiting, unless there is one.
    pub fn warm(&self) {
        let mut pool = self.pool();
        if pool.idle.is_empty() && pool.coming.is_empty() {
            pool.coming.push_back(start(&self.command));
        }
    }

    /// Evaluates. If the future is dropped, the worker is ended and the next call gets another.
    pub async fn call(&self, call: Call) -> Result<Returned, ScriptError> {
        self.evaluate(&call).await.map_err(|failed| failed.error)
    }

    /// Evaluates, and also says what a failed script had logged and written.
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
                return Err(ScriptError::Worker(format!("what the script is given exceeds {CALL_LIMIT} bytes")));
            };
            let answer = match worker.exchange(&frame, kill_timeout(call.limits.time)).await {
                Ok(frame) => read_answer(frame),
                // It ended while it rested. Nothing was evaluated, so another may try.
                Err(Broken::NotSent(_)) if attempts < ATTEMPTS => continue,
                Err(Broken::NotSent(what) | Broken::Ended(what)) => return Err(ScriptError::Worker(what.to_string())),
                Err(Broken::Late) => return Err(ScriptError::Timeout(call.limits.time)),
            };
            let answer = answer.map_err(|_| ScriptError::Worker("its answer is malformed".into()))?;
            self.pool().idle.push_back(worker);
            return Ok(answer);
        }
    }

    /// A worker from the pool, or a new one. The permits see to it that there are never more than that many at work.
    async fn worker(&self) -> Result<Worker, ScriptError> {
        let coming = {
            let mut pool = self.pool();
            pool.collect_started();
            // The one that answered last: it is still awake.
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
        // Nothing that holds the lock leaves the pool half changed.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// Takes in the workers that were started ahead and have arrived.
    fn collect_started(&mut self) {
        while let Some(first) = self.coming.front_mut() {
            let arrived = match first.try_recv() {
                Ok(started) => started
                    .and_then(Worker::adopt)
                    .inspect_err(|error| tracing::debug!(%error, "a script worker was not started ahead of time"))
                    .ok(),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Closed) => None,
            };
            self.coming.pop_front();
            // One that could not be started is told about when a call has no other.
            self.idle.extend(arrived);
        }
    }
}

/// How long to wait for an answer before the worker is killed: twice the time, and never less than a tenth of a
/// second more than the time, since a busy machine may take as long to get the answer across.
fn kill_timeout(time: Duration) -> Duration {
    time.saturating_mul(2).max(time.saturating_add(Duration::from_millis(100)))
}
