//! Upkeep while others go on: a copy of the whole database, and the end of values that nobody refers to.

use super::bound::Bound;
use super::errors::{explain, is_damage};
use super::open::Place;
use super::reader::Reader;
use crate::backup::{beside, put_in_place, require_folder};
use crate::error::StoreError;
use crate::store::Unreferred;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

const UNREFERRED: &str = "FROM stored_values WHERE digest NOT IN (SELECT digest FROM value_refs)";

/// Copies the database as of one moment, on a connection of its own, which waits for nobody and keeps nobody waiting.
pub(super) fn back_up(place: &Place, file: &Path) -> Result<(), StoreError> {
    let fresh = beside(file);
    let Some(name) = fresh.to_str() else {
        return Err(StoreError::Io(format!("{} cannot be the name of a backup; use one that is UTF-8", file.display())));
    };
    require_folder(file)?;
    // Also from a disk that is full, to another one.
    let source = place.open_to_read(&Bound::default())?;
    let copied = source.execute("VACUUM INTO ?1", [name]).map_err(|error| {
        let path = if is_damage(&error) { &place.database } else { file };
        explain(error, Some(&source), path)
    });
    let unchanged = || match source.is_up_to_date(place) {
        true => Ok(()),
        false => Err(StoreError::Locked(place.database.clone())),
    };
    let placed = copied.and_then(|_| unchanged()).and_then(|()| put_in_place(&fresh, file));
    if placed.is_err() {
        crate::cleanup::remove_file(&fresh);
    }
    placed
}

pub(super) fn unreferred(reader: &Reader) -> Result<Unreferred, StoreError> {
    reader.read(count)
}

/// Values come with what refers to them, in one transaction, so within another one nothing can be on its way.
pub(super) fn remove_unreferred(place: &Place) -> Result<Unreferred, StoreError> {
    let mut connection = place.connect(&Bound::default())?;
    let removed = (|| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = count(&transaction)?;
        transaction.execute(&format!("DELETE {UNREFERRED}"), [])?;
        transaction.commit()?;
        Ok(found)
    })();
    removed.map_err(|error| explain(error, Some(&connection), &place.database))
}

fn count(view: &Connection) -> rusqlite::Result<Unreferred> {
    view.query_row(&format!("SELECT count(*), coalesce(sum(length(bytes)), 0) {UNREFERRED}"), [], |row| {
        Ok(Unreferred { count: row.get(0)?, bytes: row.get(1)? })
    })
}
