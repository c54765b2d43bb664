//! Whether the database that is open is still the one at its path. SQLite goes on writing to a file that was deleted, and to one that was moved.

use super::errors::explain_system;
use crate::error::StoreError;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// However often a store is asked, the path is looked up no more often than this: each step of a run asks.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The database file as it was when it was opened.
#[derive(Debug)]
pub(super) struct FileIdentity {
    database: PathBuf,
    /// Absent where it could not be read, and then nothing is known.
    identity: Option<(u64, u64)>,
    looked: Mutex<Instant>,
}

impl FileIdentity {
    pub(super) fn of(database: PathBuf) -> Self {
        let identity = identity(&database)
            .inspect_err(|error| tracing::warn!(%error, "whether the database stays where it is cannot be checked"))
            .ok();
        Self { database, identity, looked: Mutex::new(Instant::now()) }
    }

    /// Fails where the file is gone, or another one is there. That it cannot be seen for another reason does not mean that it is gone.
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

    /// The same, unless it was checked a moment ago.
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
