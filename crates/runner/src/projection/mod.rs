//! Generated files: written off the commit path, atomically, and only for the newest state.
//!
//! They may lag behind the history while work is in progress, but are complete before a pause or an end is reported. If a
//! process is killed before it has written them, the next process that drives or inspects the run does.

mod state_file;

pub(crate) use state_file::is_own;
pub use state_file::{DEFAULT_DIR, StateFile, StateFileError, archive, is_there, runs_of};

use crate::runtime::Runtime;
use lockgate_engine::run::Run;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;
use tracing::{Instrument, debug, warn};

/// Writes the newest offered state of a run, in a separate task.
pub(crate) struct Projector {
    offered: watch::Sender<Option<Arc<StateFile>>>,
    done: watch::Receiver<Done>,
    last: u64,
    /// How many of the moved files were already reported.
    reported: usize,
}

/// The last version that was handled, and why it could not be written.
#[derive(Clone, Debug, Default)]
struct Done {
    version: u64,
    failure: Option<String>,
    /// Where files that occupied the path were moved.
    aside: Vec<PathBuf>,
}

impl Projector {
    fn start() -> Self {
        let (offered, mut wanted) = watch::channel(None::<Arc<StateFile>>);
        let (tell, done) = watch::channel(Done::default());
        let writing = async move {
            while wanted.changed().await.is_ok() {
                // The newest state includes everything before it, so nothing else need be written.
                let newest = wanted.borrow_and_update().clone();
                let Some(file) = newest else { continue };
                let version = file.version();
                let written = file.write().await;
                match &written {
                    Ok(aside) => debug!(version, ?aside, "state file written"),
                    Err(error) => warn!(version, %error, "state file not written"),
                }
                tell.send_modify(|done| {
                    done.version = version;
                    match written {
                        Ok(aside) => {
                            done.failure = None;
                            done.aside.extend(aside);
                        }
                        Err(error) => done.failure = Some(error.to_string()),
                    }
                });
            }
        };
        tokio::spawn(writing.in_current_span());
        Self { offered, done, last: 0, reported: 0 }
    }

    /// Offers the current state of a run without waiting.
    pub(crate) fn offer(projector: &mut Option<Self>, runtime: &Runtime, run: &Run) {
        let Some(file) = runtime.perform.project(run) else { return };
        let projector = projector.get_or_insert_with(Self::start);
        projector.last = file.version();
        projector.offered.send_replace(Some(Arc::new(file)));
    }

    /// Waits until the last offered state is written. Returns the error, if any, and the files that were moved aside since
    /// the last report.
    pub(crate) async fn settled(&mut self) -> (Option<String>, Vec<PathBuf>) {
        let last = self.last;
        match self.done.wait_for(|done| done.version >= last).await {
            Ok(done) => {
                let unreported = done.aside[self.reported..].to_vec();
                self.reported = done.aside.len();
                (done.failure.clone(), unreported)
            }
            Err(_) => (Some("the task that writes it has ended".to_owned()), Vec::new()),
        }
    }
}

/// Writes the current state of a run and waits for it. Returns where a file that occupied the path was moved. A driver does
/// this by itself.
pub async fn refresh_files(runtime: &Runtime, run: &Run) -> Result<Option<PathBuf>, StateFileError> {
    match runtime.perform.project(run) {
        Some(file) => file.write().await,
        None => Ok(None),
    }
}
