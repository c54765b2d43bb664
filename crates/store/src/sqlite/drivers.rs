//! Drivers: which processes drive runs, and which of them are alive.
//!
//! A driver is alive for as long as it holds the lock on `drivers/<id>.lock`; the operating system releases that lock when
//! the process ends, however it ends. The file is locked before it gets its final name, and ids are never reused, so a
//! process that can lock a named file has found a dead driver.

use super::errors::explain_system;
use crate::cleanup;
use crate::error::StoreError;
use crate::held_claims::HeldClaims;
use crate::store::DriverInfo;
use crate::sys::process::start_ticks;
use lockgate_engine::id::{DriverId, IdSource};
use lockgate_engine::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub(super) struct Drivers {
    folder: PathBuf,
    own: DriverId,
    held: Arc<HeldClaims>,
    lock: Mutex<Option<Lock>>,
}

/// This process's lock: held while the file is open.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    info: DriverInfo,
    _file: File,
}

/// The content of a lock file.
#[derive(Serialize, Deserialize)]
struct Content {
    pid: u32,
    host: String,
    started: Timestamp,
    /// When the process was started, in the kernel's clock ticks: together with the pid it identifies a process uniquely.
    start_ticks: Option<u64>,
}

impl Drivers {
    pub(super) fn new(store: &Path) -> Self {
        let mut ids = IdSource::new(rand::random());
        let own = DriverId(format!("{}{}", ids.next_id(), ids.next_id()));
        Self { folder: store.join("drivers"), own, held: Arc::default(), lock: Mutex::default() }
    }

    pub(super) fn own(&self) -> &DriverId {
        &self.own
    }

    pub(super) fn held(&self) -> &Arc<HeldClaims> {
        &self.held
    }

    /// Registers this process's driver as alive, before it claims its first run.
    pub(super) fn register(&self) -> Result<(), StoreError> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_none() {
            *lock = Some(self.create_lock().map_err(|error| explain_system(&error, &self.folder))?);
            drop(lock);
            self.remove_dead();
        }
        Ok(())
    }

    fn create_lock(&self) -> io::Result<Lock> {
        fs::create_dir_all(&self.folder)?;
        let content = Content { pid: std::process::id(), host: host(), started: now(), start_ticks: start_ticks() };
        let unnamed = self.folder.join(format!("{}.new", self.own));
        let path = self.path_of(&self.own);
        let mut file = File::create_new(&unnamed)?;
        let named = file.try_lock().map_err(io::Error::from).and_then(|()| {
            file.write_all(&serde_json::to_vec(&content)?)?;
            fs::rename(&unnamed, &path)
        });
        if let Err(error) = named {
            cleanup::remove_file(&unnamed);
            return Err(error);
        }
        let Content { pid, host, started: since, .. } = content;
        Ok(Lock { path, info: DriverInfo { driver: self.own.clone(), pid, host, since, until: None }, _file: file })
    }

    fn path_of(&self, driver: &DriverId) -> PathBuf {
        self.folder.join(format!("{driver}.lock"))
    }

    /// The driver's details, if it is alive. The lock file of a dead driver is removed.
    pub(super) fn alive(&self, driver: &DriverId) -> Result<Option<DriverInfo>, StoreError> {
        if *driver == self.own {
            // Our own lock would refuse a second one.
            let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(lock.as_ref().map(|lock| lock.info.clone()));
        }
        let path = self.path_of(driver);
        self.look(driver, &path).map_err(|error| explain_system(&error, &path))
    }

    fn look(&self, driver: &DriverId, path: &Path) -> io::Result<Option<DriverInfo>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // A shared lock, so that two concurrent checks do not take each other for the driver.
        match file.try_lock_shared() {
            Ok(()) => {
                tracing::debug!(%driver, "a driver has ended; removing its lock file");
                cleanup::remove_file(path);
                Ok(None)
            }
            Err(TryLockError::WouldBlock) => {
                let content = serde_json::from_reader(&file).unwrap_or_else(|error| {
                    tracing::debug!(%driver, %error, "cannot read the lock file of a live driver");
                    Content { pid: 0, host: "an unknown host".to_owned(), started: Timestamp::from_millis(0), start_ticks: None }
                });
                let Content { pid, host, started: since, .. } = content;
                Ok(Some(DriverInfo { driver: driver.clone(), pid, host, since, until: None }))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// All live drivers.
    pub(super) fn all_alive(&self) -> Result<BTreeMap<DriverId, DriverInfo>, StoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(explain_system(&error, &self.folder)),
        };
        let mut alive = BTreeMap::new();
        for entry in entries {
            let name = entry.map_err(|error| explain_system(&error, &self.folder))?.file_name();
            let Some(driver) = name.to_str().and_then(|name| name.strip_suffix(".lock")).map(DriverId::from) else { continue };
            if let Some(info) = self.alive(&driver)? {
                alive.insert(driver, info);
            }
        }
        Ok(alive)
    }

    fn remove_dead(&self) {
        // Listing them removes the files of dead ones.
        if let Err(error) = self.all_alive() {
            tracing::debug!(%error, "cannot remove the lock files of dead drivers");
        }
    }
}

impl Drop for Drivers {
    fn drop(&mut self) {
        let lock = self.lock.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = lock {
            cleanup::remove_file(&lock.path);
        }
    }
}

fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
