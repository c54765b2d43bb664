//! The thread that owns a store's connections.

use crate::error::StoreError;
use std::future::Future;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// How long closing a store may take. After that the server counts as gone and the lease expires by itself.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// A thread with its own runtime.
#[derive(Debug)]
pub(super) struct Thread {
    runtime: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Thread {
    /// Starts a thread that opens a resource, and closes it before it ends.
    pub(super) fn start<T, C>(
        open: impl Future<Output = Result<Arc<T>, StoreError>> + Send + 'static,
        close: impl FnOnce(Arc<T>) -> C + Send + 'static,
    ) -> Result<(Self, Arc<T>), StoreError>
    where
        T: Send + Sync + 'static,
        C: Future<Output = ()>,
    {
        let failed = |error: std::io::Error| StoreError::Io(format!("a thread for the database cannot be started: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (opened, result) = mpsc::channel();
        let (end, ended) = oneshot::channel::<()>();
        let work = move || {
            runtime.block_on(async {
                match open.await {
                    Ok(made) => {
                        let is_wanted = opened.send(Ok(made.clone())).is_ok();
                        // An error means that the store is gone, which also ends the thread.
                        if is_wanted && ended.await.is_err() {
                            tracing::debug!("the store was dropped without being closed");
                        }
                        if tokio::time::timeout(CLOSE_TIMEOUT, close(made)).await.is_err() {
                            tracing::warn!("the database did not answer in time to close the store; its lease expires");
                        }
                    }
                    Err(error) => {
                        if let Err(unheard) = opened.send(Err(error)) {
                            tracing::debug!(error = %unheard, "the caller is gone");
                        }
                    }
                }
            });
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("lockgate-postgres".to_owned()).spawn(work).map_err(failed)?;
        let made = result.recv().unwrap_or_else(|_| Err(ended_early()))?;
        Ok((Self { runtime: handle, end: Some(end), thread: Some(thread) }, made))
    }

    /// Runs a task on the thread and waits for it.
    pub(super) async fn perform<R: Send + 'static>(
        &self,
        work: impl Future<Output = Result<R, StoreError>> + Send + 'static,
    ) -> Result<R, StoreError> {
        self.runtime.spawn(work).await.unwrap_or_else(|_| Err(ended_early()))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(end) = self.end.take()
            && end.send(()).is_err()
        {
            tracing::debug!("the database thread has already ended");
        }
        if let Some(thread) = self.thread.take() {
            crate::cleanup::join(thread);
        }
    }
}

fn ended_early() -> StoreError {
    StoreError::Io("the database thread has ended".to_owned())
}
