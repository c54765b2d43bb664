//! Translates errors of SQLite and the operating system into store errors.

use crate::error::StoreError;
use rusqlite::{Connection, Error, ErrorCode, ffi};
use rustix::fs::{Access, AtFlags, CWD};
use std::io;
use std::path::Path;

/// Whether another connection has the lock, so that a retry makes sense.
pub(super) fn is_busy(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed)
    )
}

/// Whether the error concerns stored data, rather than data to be written.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::OperationInterrupted)
    )
}

/// Translates an error about the database at `path`.
pub(super) fn explain(error: Error, connection: Option<&Connection>, path: &Path) -> StoreError {
    let Error::SqliteFailure(failure, message) = &error else {
        // Any other error of a query means that a column does not hold what was written there.
        return corrupt(path, &error.to_string());
    };
    let message = message.clone().unwrap_or_else(|| failure.to_string());
    match failure.code {
        ErrorCode::DiskFull => StoreError::Full(path.to_owned()),
        ErrorCode::ReadOnly => StoreError::ReadOnly(path.to_owned()),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            StoreError::Locked(path.to_owned())
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => corrupt(path, &message),
        // Only the scan guard interrupts queries.
        ErrorCode::OperationInterrupted => corrupt(path, "its pages form a cycle"),
        ErrorCode::CannotOpen => cannot_open(path, &message),
        ErrorCode::SystemIoFailure => match connection.and_then(system_error) {
            Some(system) => explain_system(&system, path),
            // The index of the log cannot be extended.
            None if matches!(failure.extended_code, ffi::SQLITE_IOERR_SHMOPEN | ffi::SQLITE_IOERR_SHMSIZE) => {
                StoreError::Full(path.to_owned())
            }
            None => StoreError::Io(format!("{}: {message}", path.display())),
        },
        ErrorCode::Unknown if failure.extended_code == ffi::SQLITE_ERROR => corrupt(path, &message),
        _ => StoreError::Io(format!("{}: {message}", path.display())),
    }
}

/// Translates an error of the operating system about `path`.
pub(super) fn explain_system(error: &io::Error, path: &Path) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreError::Full(path.to_owned())
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly(path.to_owned()),
        _ => StoreError::Io(format!("{}: {error}", path.display())),
    }
}

pub(super) fn corrupt(path: &Path, detail: &str) -> StoreError {
    StoreError::Corrupt(format!("{} is damaged or not a Lockgate database: {detail}", path.display()))
}

fn cannot_open(path: &Path, message: &str) -> StoreError {
    let folder = path.parent().unwrap_or(path);
    match path.try_exists() {
        Ok(false) => StoreError::NotFound(path.to_owned()),
        // SQLite creates two more files next to the database.
        Ok(true) if rustix::fs::accessat(CWD, folder, Access::WRITE_OK, AtFlags::EACCESS).is_err() => {
            StoreError::ReadOnly(folder.to_owned())
        }
        Ok(true)
            if rustix::fs::statvfs(folder)
                .is_ok_and(|system| system.f_bavail == 0 || (system.f_files > 0 && system.f_favail == 0)) =>
        {
            StoreError::Full(path.to_owned())
        }
        Ok(true) => StoreError::Io(format!("{}: {message}", path.display())),
        Err(error) => explain_system(&error, path),
    }
}

fn system_error(connection: &Connection) -> Option<io::Error> {
    // SAFETY: the handle belongs to a connection that stays open while it is borrowed here, and the call only reads from it.
    let number = unsafe { ffi::sqlite3_system_errno(connection.handle()) };
    (number != 0).then(|| io::Error::from_raw_os_error(number))
}
