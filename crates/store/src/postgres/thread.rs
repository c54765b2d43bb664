//! The thread on which a store's connections live.

use crate::error::StoreError;
use std::future::Future;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// How long the end of a store may take; then the server is gone, and the rest ends by itself.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// A thread with a runtime of its own.
#[derive(Debug)]
pub(super) struct Thread {
    runtime: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Thread {
    /// Starts a thread that makes something, and closes it before it ends.
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
                        // An error says that the store is gone, which is the end as well.
                        if is_wanted && ended.await.is_err() {
                            tracing::debug!("the store was dropped without being closed");
                        }
                        if tokio::time::timeout(CLOSE_TIMEOUT, close(made)).await.is_err() {
                            tracing::warn!("the database did not answer in time to close the store; its lease expires");
                        }
                    }
                    Err(error) => {
                        if let Err(unheard) = opened.send(Err(error)) {
                            tracing::debug!(error = %unheard, "no one waits for the store any more");
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

    /// Does something on the thread, and waits for it.
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
            tracing::debug!("the thread for the database has ended already");
        }
        if let Some(thread) = self.thread.take() {
            crate::cleanup::join(thread);
        }
    }
}

fn ended_early() -> StoreError {
    StoreError::Io("the thread for the database has ended".to_owned())
}
