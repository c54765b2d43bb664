//! Translates errors of PostgreSQL and the network into store errors.

use super::address::Address;
use super::tls;
use crate::error::StoreError;
use std::error::Error as _;
use std::path::PathBuf;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Whether transactions conflicted, so that a retry makes sense.
pub(super) fn is_worth_retrying(error: &Error) -> bool {
    matches!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED))
}

/// Whether the database rejected the statement, so that nothing is recorded. For any other error that is unknown: the
/// connection may have been lost before or after the commit.
pub(super) fn is_refused(error: &Error) -> bool {
    error.as_db_error().is_some_and(|error| error.parsed_severity() == Some(Severity::Error))
}

pub(super) fn explain(error: &Error, address: &Address) -> StoreError {
    match error.as_db_error() {
        Some(refusal) => explain_refusal(refusal, address),
        None => {
            if let Some(reason) = error.source().and_then(tls::explain) {
                return StoreError::Io(format!("{} {reason}", address.name));
            }
            let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            StoreError::Io(format!(
                "{} cannot be reached: {cause}; is the server running, and is its address right?",
                address.name
            ))
        }
    }
}

/// The server has no TLS, but the address requires it.
pub(super) fn without_tls(address: &Address) -> StoreError {
    StoreError::Io(format!(
        "{} has no TLS, but its address requires it; enable it on the server, or set sslmode=disable in the address if the network is \
         private",
        address.name
    ))
}

fn explain_refusal(error: &DbError, address: &Address) -> StoreError {
    let (name, message) = (&address.name, error.message());
    let path = || PathBuf::from(name);
    match *error.code() {
        SqlState::DISK_FULL => StoreError::Full(path()),
        SqlState::READ_ONLY_SQL_TRANSACTION => StoreError::ReadOnly(path()),
        SqlState::LOCK_NOT_AVAILABLE => StoreError::Locked(path()),
        SqlState::DATA_CORRUPTED
        | SqlState::INDEX_CORRUPTED
        | SqlState::UNDEFINED_TABLE
        | SqlState::UNDEFINED_COLUMN
        | SqlState::DATATYPE_MISMATCH => corrupt(address, message),
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION if address.in_the_clear() => StoreError::Io(format!(
            "{name} refuses the user without TLS: {message}; remove sslmode=disable from its address, or check the user"
        )),
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            StoreError::Io(format!("{name} refuses the user: {message}; check the user and password in its address"))
        }
        SqlState::INVALID_CATALOG_NAME => StoreError::Io(format!("{name} does not exist: {message}; create it with `createdb`")),
        SqlState::INSUFFICIENT_PRIVILEGE => {
            StoreError::Io(format!("{name}: {message}; the user needs the privileges to create and use a schema"))
        }
        SqlState::CHARACTER_NOT_IN_REPERTOIRE | SqlState::UNTRANSLATABLE_CHARACTER => {
            StoreError::Io(format!("{name} cannot store this text: {message}; remove the character from the workflow"))
        }
        _ => StoreError::Io(format!("{name}: {message}")),
    }
}

pub(super) fn corrupt(address: &Address, detail: &str) -> StoreError {
    StoreError::Corrupt(format!("{} is damaged or not a Lockgate database: {detail}", address.name))
}
