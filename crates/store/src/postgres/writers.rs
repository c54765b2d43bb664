//! Which writer takes a request: one on the caller's runtime, or the one on the store's thread.
//!
//! Handing a commit to another thread and back takes two wake-ups in addition to the server's two. If a store is opened on a
//! single-threaded runtime, a writer with its own connection therefore lives on that runtime and serves callers there, since
//! a waiting caller keeps the runtime going. All other callers use the writer on the store's thread, as do all callers once
//! that runtime has ended. The order of a history depends on versions and epochs, not on which writer is used.

use super::writer::Writer;
use crate::error::{AppendError, ClaimError, RemoveError, StoreError};
use crate::store::{Append, RemovedRows, RunRemoval};
use lockgate_engine::id::RunId;
use std::sync::Arc;
use std::thread::ThreadId;
use tokio::runtime::{Handle, Id, RuntimeFlavor};
use tokio::task::AbortHandle;

/// A single-threaded runtime and its thread.
#[derive(Debug)]
pub(super) struct CallerRuntime {
    runtime: Handle,
    thread: ThreadId,
}

impl CallerRuntime {
    /// The runtime of the caller, if it has one.
    pub(super) fn present() -> Option<Self> {
        let runtime = Handle::try_current().ok().filter(|runtime| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread)?;
        Some(Self { runtime, thread: std::thread::current().id() })
    }
}

/// A writer on the caller's runtime.
#[derive(Debug)]
struct CallerWriter {
    runtime: Id,
    thread: ThreadId,
    writer: Arc<Writer>,
    task: AbortHandle,
}

impl CallerWriter {
    /// Whether the caller is on that runtime. A thread that only runs its blocking tasks does not keep it going.
    fn is_here(&self) -> bool {
        std::thread::current().id() == self.thread && Handle::try_current().is_ok_and(|present| present.id() == self.runtime)
    }
}

#[derive(Debug)]
pub(super) struct Writers {
    own: Arc<Writer>,
    caller_writer: Option<CallerWriter>,
}

impl Writers {
    /// Starts a writer on the store's thread and, if possible, one on the runtime of the opener. They connect on demand.
    pub(super) fn begin(writer: impl Fn() -> Writer, opener: Option<CallerRuntime>) -> Self {
        let own = Arc::new(writer());
        tokio::spawn(own.clone().serve());
        let caller_writer = opener.map(|CallerRuntime { runtime, thread }| {
            let writer = Arc::new(writer());
            let task = runtime.spawn(writer.clone().serve_until_ended(own.clone())).abort_handle();
            CallerWriter { runtime: runtime.id(), thread, writer, task }
        });
        Self { own, caller_writer }
    }

    fn present(&self) -> &Writer {
        self.caller_writer
            .as_ref()
            .filter(|caller_writer| caller_writer.is_here())
            .map_or(&self.own, |caller_writer| &caller_writer.writer)
    }

    pub(super) async fn append(&self, append: Append) -> Result<Option<u64>, AppendError> {
        self.present().append(append).await
    }

    pub(super) async fn claim(&self, run: RunId) -> Result<u64, ClaimError> {
        self.present().claim(run).await
    }

    pub(super) async fn claim_any(&self, runs: Vec<RunId>, limit: usize) -> Result<Vec<(RunId, u64)>, StoreError> {
        self.present().claim_any(runs, limit).await
    }

    pub(super) async fn remove(&self, removal: RunRemoval) -> Result<RemovedRows, RemoveError> {
        self.present().remove(removal).await
    }

    /// Uses the writer on the store's thread: a caller that drops a claim may not keep its own runtime going.
    pub(super) fn abandon(&self, run: RunId, epoch: u64) {
        self.own.abandon(run, epoch);
    }

    pub(super) async fn release(&self, run: RunId, epoch: u64) -> Result<(), StoreError> {
        self.present().release(run, epoch).await
    }

    /// Closes the connections; the one on the caller's runtime closes when that runtime next runs, or ends with it.
    pub(super) async fn close(&self) {
        if let Some(caller_writer) = &self.caller_writer {
            caller_writer.task.abort();
        }
        self.own.close().await;
    }
}
