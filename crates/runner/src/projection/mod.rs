//! Files for people that follow from a run: written off the path of commits, the newest state only, whole or not at all.
//!
//! They may lag behind the history while work goes on, and are there before a pause or an end is reported. What a process that
//! was killed did not write, whoever drives the run next or looks at it writes.

mod state_file;

pub(crate) use state_file::is_own;
pub use state_file::{DEFAULT_FOLDER, StateFile, StateFileError, archive, is_there, runs_of};

use crate::runtime::Runtime;
use lockgate_engine::run::Run;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;
use tracing::{Instrument, debug, warn};

/// Writes the newest state of a run that it was offered, in a task of its own.
pub(crate) struct Projector {
    offered: watch::Sender<Option<Arc<StateFile>>>,
    done: watch::Receiver<Done>,
    last: u64,
    /// How much of what was put aside was told.
    told: usize,
}

/// Up to which version of the run everything was dealt with, and what could not be written.
#[derive(Clone, Debug, Default)]
struct Done {
    version: u64,
    failure: Option<String>,
    /// Where something was put that stood in the way.
    aside: Vec<PathBuf>,
}

impl Projector {
    fn start() -> Self {
        let (offered, mut wanted) = watch::channel(None::<Arc<StateFile>>);
        let (tell, done) = watch::channel(Done::default());
        let writing = async move {
            while wanted.changed().await.is_ok() {
                // What came in the meantime stands in the newest, so nothing else need be written.
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
        Self { offered, done, last: 0, told: 0 }
    }

    /// Offers what a run says now; nothing is waited for.
    pub(crate) fn offer(projector: &mut Option<Self>, runtime: &Runtime, run: &Run) {
        let Some(file) = runtime.perform.project(run) else { return };
        let projector = projector.get_or_insert_with(Self::start);
        projector.last = file.version();
        projector.offered.send_replace(Some(Arc::new(file)));
    }

    /// Waits until what was offered last is written; gives why it could not be, where that is so, and what was put aside since that was told.
    pub(crate) async fn settled(&mut self) -> (Option<String>, Vec<PathBuf>) {
        let last = self.last;
        match self.done.wait_for(|done| done.version >= last).await {
            Ok(done) => {
                let untold = done.aside[self.told..].to_vec();
                self.told = done.aside.len();
                (done.failure.clone(), untold)
            }
            Err(_) => (Some("whoever writes it has ended".to_owned()), Vec::new()),
        }
    }
}

/// Writes what a run says now, and waits for it; gives where something was put that stood in the way. Whoever drives the run does so by itself.
pub async fn refresh_files(runtime: &Runtime, run: &Run) -> Result<Option<PathBuf>, StateFileError> {
    match runtime.perform.project(run) {
        Some(file) => file.write().await,
        None => Ok(None),
    }
}
