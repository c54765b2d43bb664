//! Maintenance without blocking other processes: backups, and removing unreferenced values.

use super::errors::{explain, is_damage};
use super::open::Location;
use super::reader::Reader;
use super::scan_guard::ScanGuard;
use crate::backup::{put_in_place, require_dir, temporary_name};
use crate::error::StoreError;
use crate::store::Unreferenced;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

const UNREFERENCED: &str = "FROM stored_values WHERE digest NOT IN (SELECT digest FROM value_refs)";

/// Writes a consistent copy of the database, on a separate connection that neither waits for others nor blocks them.
pub(super) fn back_up(location: &Location, file: &Path) -> Result<(), StoreError> {
    let fresh = temporary_name(file);
    let Some(name) = fresh.to_str() else {
        return Err(StoreError::Io(format!("{} cannot be the name of a backup; use one that is UTF-8", file.display())));
    };
    require_dir(file)?;
    // This also works from a full disk to another one.
    let source = location.open_read_only(&ScanGuard::default())?;
    let copied = source.execute("VACUUM INTO ?1", [name]).map_err(|error| {
        let path = if is_damage(&error) { &location.database } else { file };
        explain(error, Some(&source), path)
    });
    let unchanged = || match source.is_up_to_date(location) {
        true => Ok(()),
        false => Err(StoreError::Locked(location.database.clone())),
    };
    let placed = copied.and_then(|_| unchanged()).and_then(|()| put_in_place(&fresh, file));
    if placed.is_err() {
        crate::cleanup::remove_file(&fresh);
    }
    placed
}

pub(super) fn unreferenced(reader: &Reader) -> Result<Unreferenced, StoreError> {
    reader.read(count)
}

/// Values and their references are written in the same transaction, so this one cannot see a value without its reference.
pub(super) fn remove_unreferenced(location: &Location) -> Result<Unreferenced, StoreError> {
    let mut connection = location.connect(&ScanGuard::default())?;
    let removed = (|| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = count(&transaction)?;
        transaction.execute(&format!("DELETE {UNREFERENCED}"), [])?;
        transaction.commit()?;
        Ok(found)
    })();
    removed.map_err(|error| explain(error, Some(&connection), &location.database))
}

fn count(view: &Connection) -> rusqlite::Result<Unreferenced> {
    view.query_row(&format!("SELECT count(*), coalesce(sum(length(bytes)), 0) {UNREFERENCED}"), [], |row| {
        Ok(Unreferenced { count: row.get(0)?, bytes: row.get(1)? })
    })
}
