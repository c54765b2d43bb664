//! What PostgreSQL and the network say, in the words of the store.

use super::address::Address;
use super::tls;
use crate::error::StoreError;
use std::error::Error as _;
use std::path::PathBuf;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Whether transactions got into each other's way, so that it is worth trying again.
pub(super) fn is_worth_retrying(error: &Error) -> bool {
    matches!(error.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED))
}

/// Whether the database refused the statement, so that nothing of it is recorded. Of anything else that is not known: the connection
/// may have been lost before or after the commit.
pub(super) fn is_refused(error: &Error) -> bool {
    error.as_db_error().is_some_and(|error| error.parsed_severity() == Some(Severity::Error))
}

/// Says in the words of the store what went wrong.
pub(super) fn explain(error: &Error, address: &Address) -> StoreError {
    match error.as_db_error() {
        Some(refusal) => explain_refusal(refusal, address),
        None => {
            if let Some(told) = error.source().and_then(tls::explain) {
                return StoreError::Io(format!("{} {told}", address.name));
            }
            let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            StoreError::Io(format!(
                "{} cannot be reached: {cause}; is the server running, and is its address right?",
                address.name
            ))
        }
    }
}

/// Says that the server has no TLS where the address asks for it.
pub(super) fn without_tls(address: &Address) -> StoreError {
    StoreError::Io(format!(
        "{} has no TLS, and its address asks for it; switch it on there, or write sslmode=disable in the address if nobody else is on the \
         network between",
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
            "{name} refuses the user without TLS: {message}; take sslmode=disable out of its address, or check the user"
        )),
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            StoreError::Io(format!("{name} refuses the user: {message}; check user and password in its address"))
        }
        SqlState::INVALID_CATALOG_NAME => StoreError::Io(format!("{name} is not there: {message}; make it with `createdb`")),
        SqlState::INSUFFICIENT_PRIVILEGE => {
            StoreError::Io(format!("{name}: {message}; the user needs the right to create a schema, and to use it"))
        }
        SqlState::CHARACTER_NOT_IN_REPERTOIRE | SqlState::UNTRANSLATABLE_CHARACTER => {
            StoreError::Io(format!("{name} cannot keep this text: {message}; take the character out of the workflow"))
        }
        _ => StoreError::Io(format!("{name}: {message}")),
    }
}

/// Says that the database does not hold what was written.
pub(super) fn corrupt(address: &Address, detail: &str) -> StoreError {
    StoreError::Corrupt(format!("{} is damaged or not one of Lockgate: {detail}", address.name))
}
