//! What SQLite and the operating system say, in the words of the store.

use crate::error::StoreError;
use rusqlite::{Connection, Error, ErrorCode, ffi};
use rustix::fs::{Access, AtFlags, CWD};
use std::io;
use std::path::Path;

/// Whether somebody else has the lock, so that it is worth trying again.
pub(super) fn is_busy(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed)
    )
}

/// Whether it is about what was read, and not about what was to be written.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::OperationInterrupted)
    )
}

/// Says in the words of the store what went wrong with the database at `path`.
pub(super) fn explain(error: Error, connection: Option<&Connection>, path: &Path) -> StoreError {
    let Error::SqliteFailure(failure, message) = &error else {
        // Everything else that comes out of a query is a column that does not hold what was written there.
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
        // Nobody else interrupts anything.
        ErrorCode::OperationInterrupted => {
            corrupt(path, "there is no end to what it holds: its pages lead to each other in a ring")
        }
        ErrorCode::CannotOpen => cannot_open(path, &message),
        ErrorCode::SystemIoFailure => match connection.and_then(system_error) {
            Some(system) => explain_system(&system, path),
            // The index of the log cannot be made as long as it must be.
            None if matches!(failure.extended_code, ffi::SQLITE_IOERR_SHMOPEN | ffi::SQLITE_IOERR_SHMSIZE) => {
                StoreError::Full(path.to_owned())
            }
            None => StoreError::Io(format!("{}: {message}", path.display())),
        },
        ErrorCode::Unknown if failure.extended_code == ffi::SQLITE_ERROR => corrupt(path, &message),
        _ => StoreError::Io(format!("{}: {message}", path.display())),
    }
}

/// Says in the words of the store what the operating system refused at `path`.
pub(super) fn explain_system(error: &io::Error, path: &Path) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreError::Full(path.to_owned())
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly(path.to_owned()),
        _ => StoreError::Io(format!("{}: {error}", path.display())),
    }
}

/// Says that the database is not what was written.
pub(super) fn corrupt(path: &Path, detail: &str) -> StoreError {
    StoreError::Corrupt(format!("{} is damaged or not a database of Lockgate: {detail}", path.display()))
}

fn cannot_open(path: &Path, message: &str) -> StoreError {
    let folder = path.parent().unwrap_or(path);
    match path.try_exists() {
        Ok(false) => StoreError::NotFound(path.to_owned()),
        // Beside the database, SQLite makes two files of its own.
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
    // SAFETY: the handle is that of a connection which is open for as long as it is borrowed here, and the call only reads from it.
    let number = unsafe { ffi::sqlite3_system_errno(connection.handle()) };
    (number != 0).then(|| io::Error::from_raw_os_error(number))
}
