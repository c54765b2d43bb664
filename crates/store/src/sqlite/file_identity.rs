//! Whether the open database is still the one at its path. SQLite keeps writing to a file that was deleted or moved.

use super::errors::explain_system;
use crate::error::StoreError;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The path is checked at most this often, because each step of a run asks for it.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The identity of the database file when it was opened.
#[derive(Debug)]
pub(super) struct FileIdentity {
    database: PathBuf,
    /// `None` if it could not be read; then nothing is checked.
    identity: Option<(u64, u64)>,
    looked: Mutex<Instant>,
}

impl FileIdentity {
    pub(super) fn of(database: PathBuf) -> Self {
        let identity = identity(&database)
            .inspect_err(|error| tracing::warn!(%error, "cannot check whether the database file is removed or moved"))
            .ok();
        Self { database, identity, looked: Mutex::new(Instant::now()) }
    }

    /// Fails if the file is gone or was replaced. Being unable to check for another reason is not a failure.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let Some(known) = self.identity else { return Ok(()) };
        match identity(&self.database) {
            Ok(now) if now == known => Ok(()),
            Err(error) if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(explain_system(&error, &self.database))
            }
            Ok(_) | Err(_) => Err(StoreError::Gone(self.database.clone())),
        }
    }

    /// Like [`FileIdentity::check`], but skipped if the last check was recent.
    pub(super) fn check_sometimes(&self) -> Result<(), StoreError> {
        let now = Instant::now();
        {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            if now.duration_since(*looked) < CHECK_INTERVAL {
                return Ok(());
            }
            *looked = now;
        }
        self.check()
    }
}

fn identity(database: &Path) -> io::Result<(u64, u64)> {
    database.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}
