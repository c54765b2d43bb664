//! Which writer takes a request: one beside whoever asks, or the one on the store's own thread.
//!
//! To hand a commit to another thread and to get word back takes two wake-ups beside the server's two. So where a store is opened on a runtime that
//! has a single thread, a writer with a connection of its own lives on that runtime, and serves who asks from there: who asks keeps the
//! runtime going. Everybody else asks the writer on the store's own thread, as does everybody once that runtime has ended. A history is
//! kept in order by its versions and epochs, not by who writes.

use super::writer::Writer;
use crate::error::{AppendError, ClaimError, RemoveError, StoreError};
use crate::store::{Append, RemovedRows, RunRemoval};
use lockgate_engine::id::RunId;
use std::sync::Arc;
use std::thread::ThreadId;
use tokio::runtime::{Handle, Id, RuntimeFlavor};
use tokio::task::AbortHandle;

/// A runtime with a single thread, and that thread.
#[derive(Debug)]
pub(super) struct CallerRuntime {
    runtime: Handle,
    thread: ThreadId,
}

impl CallerRuntime {
    /// The one that this is called on, if it is on one.
    pub(super) fn present() -> Option<Self> {
        let runtime = Handle::try_current().ok().filter(|runtime| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread)?;
        Some(Self { runtime, thread: std::thread::current().id() })
    }
}

/// A writer on a runtime of somebody else.
#[derive(Debug)]
struct CallerWriter {
    runtime: Id,
    thread: ThreadId,
    writer: Arc<Writer>,
    task: AbortHandle,
}

impl CallerWriter {
    /// Whether this is called from there. A thread that only lends itself to the runtime's blocking work does not keep it going.
    fn is_here(&self) -> bool {
        std::thread::current().id() == self.thread && Handle::try_current().is_ok_and(|present| present.id() == self.runtime)
    }
}

/// The writers of a store.
#[derive(Debug)]
pub(super) struct Writers {
    own: Arc<Writer>,
    caller_writer: Option<CallerWriter>,
}

impl Writers {
    /// Begins a writer here, and one beside who opens the store where there can be one. They connect when they are needed.
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

    /// Left to the writer on the store's own thread: whoever drops a claim may not keep its own runtime going.
    pub(super) fn abandon(&self, run: RunId, epoch: u64) {
        self.own.abandon(run, epoch);
    }

    pub(super) async fn release(&self, run: RunId, epoch: u64) -> Result<(), StoreError> {
        self.present().release(run, epoch).await
    }

    /// Gives the connections up; that of a runtime of somebody else ends when it goes on, or with it.
    pub(super) async fn close(&self) {
        if let Some(caller_writer) = &self.caller_writer {
            caller_writer.task.abort();
        }
        self.own.close().await;
    }
}
