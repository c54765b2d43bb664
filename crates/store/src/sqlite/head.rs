//! The head: a small file next to the database that says which commits were acknowledged last, of all runs and of each.
//!
//! SQLite reads its write-ahead log up to the first page that is not as it was written, and takes what follows for something that was never committed.
//! So a flipped byte in the log of a process that was killed, or a log that was deleted, takes the end of histories away, and nothing in the database shows
//! it. The head does. It is written after the commit is durable, and not synced: it outlives the process. After a power failure it may be older than the
//! database, which claims less, and is never newer.

use super::append::commit_key;
use super::errors::explain_system;
use super::open::Location;
use super::reader::Reader;
use crate::error::StoreError;
use crate::store::{Append, Missing};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use rusqlite::{Connection, OptionalExtension, params};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How long a record is. The first is that of the last commit of all; after it comes one for each run, at its number.
const RECORD: usize = 64;
const HASH: usize = 16;
const NAME: usize = 31;
const CHECKED: usize = 8 + HASH + 1 + NAME;

/// A record as it is written.
pub(super) type RecordBytes = [u8; RECORD];

/// A commit that was acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    run: RunId,
    run_key: i64,
    version: u64,
    hash: Digest,
}

impl Record {
    /// None where the name of the run is too long, which no run that Lockgate names is.
    fn to_bytes(&self) -> Option<RecordBytes> {
        let name = self.run.as_str().as_bytes();
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&commit_key(self.run_key, self.version).to_le_bytes());
        bytes[8..8 + HASH].copy_from_slice(&self.hash.0[..HASH]);
        bytes[8 + HASH] = u8::try_from(name.len()).ok()?;
        bytes[8 + HASH + 1..CHECKED].get_mut(..name.len())?.copy_from_slice(name);
        let sum = blake3::hash(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&sum.as_bytes()[..RECORD - CHECKED]);
        Some(bytes)
    }

    /// Nothing where it was never written, or only in part.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; RECORD] = bytes.try_into().ok()?;
        if blake3::hash(&bytes[..CHECKED]).as_bytes()[..RECORD - CHECKED] != bytes[CHECKED..] {
            return None;
        }
        let key = i64::from_le_bytes(bytes[..8].try_into().ok()?);
        let mut hash = Digest::ZERO;
        hash.0[..HASH].copy_from_slice(&bytes[8..8 + HASH]);
        let name = bytes[8 + HASH + 1..CHECKED].get(..usize::from(bytes[8 + HASH]))?;
        let run = RunId::new(std::str::from_utf8(name).ok()?);
        Some(Self { run, run_key: key >> 32, version: (key & i64::from(u32::MAX)).cast_unsigned(), hash })
    }
}

/// The head as the process that writes has it.
#[derive(Debug)]
pub(super) struct Head {
    path: PathBuf,
    file: Option<File>,
}

impl Head {
    pub(super) fn new(location: &Location) -> Self {
        Self { path: path(location), file: None }
    }

    /// Writes down that these commits are durable, each with the number of its run; gives the record of the last one. That this fails makes the head claim
    /// less, and other processes learn of the commits a second later.
    pub(super) fn acknowledge(&mut self, commits: &[(&Append, i64)]) -> Option<RecordBytes> {
        let file = self.file()?;
        let mut last = None;
        for (append, run_key) in commits {
            let Append { run, commit, .. } = append;
            let record = Record { run: run.clone(), run_key: *run_key, version: commit.version, hash: commit.hash };
            let (Some(bytes), Ok(number)) = (record.to_bytes(), u64::try_from(record.run_key)) else { continue };
            log_failure(file.write_all_at(&bytes, number * RECORD as u64));
            last = Some(bytes);
        }
        if let Some(bytes) = &last {
            log_failure(file.write_all_at(bytes, 0));
        }
        last
    }

    /// Sets the times of the file, which other processes notice: a claim changed, which the head does not record.
    pub(super) fn touch(&mut self) {
        if let Some(file) = self.file() {
            log_failure(file.set_modified(SystemTime::now()));
        }
    }

    /// The first record as it is now.
    pub(super) fn first(&mut self) -> Option<RecordBytes> {
        bytes_at(self.file()?, 0)
    }

    fn file(&mut self) -> Option<&File> {
        if self.file.is_none() {
            match File::options().read(true).write(true).create(true).truncate(false).open(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(error) => log_failure(Err(error)),
            }
        }
        self.file.as_ref()
    }
}

/// A head that cannot be written claims less than it could, and other processes learn of commits a second later.
fn log_failure(written: io::Result<()>) {
    if let Err(error) = written {
        tracing::debug!(%error, "the head of the database could not be written");
    }
}

/// The head as a process reads it that waits for the commits of others. It is opened each time, because it can be another file by then.
#[derive(Debug)]
pub(super) struct HeadFile(PathBuf);

impl HeadFile {
    pub(super) fn new(location: &Location) -> Self {
        Self(path(location))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Opens the head for one look at it; nothing where there is none, or none that can be read: then the database itself is compared.
    pub(super) fn open(&self) -> Option<OpenHead> {
        match File::open(&self.0) {
            Ok(file) => Some(OpenHead(file)),
            Err(error) => {
                tracing::trace!(%error, "the head of the database cannot be read");
                None
            }
        }
    }
}

/// The head during one look at it.
#[derive(Debug)]
pub(super) struct OpenHead(File);

impl OpenHead {
    /// The first record: that of the last commit of all.
    pub(super) fn first(&self) -> Option<RecordBytes> {
        bytes_at(&self.0, 0)
    }

    /// The version of this run's last commit, where there is a record of it.
    pub(super) fn version_of(&self, run: &RunId, run_key: i64) -> Option<u64> {
        let record = read_at(&self.0, u64::try_from(run_key).ok()? * RECORD as u64)?;
        (record.run == *run).then_some(record.version)
    }
}

/// Empties the head: a backup was put in the place of the database, or a person has accepted the loss. The file stays, because another process may have it open.
pub(super) fn forget(location: &Location) -> Result<(), StoreError> {
    match File::options().write(true).open(path(location)).and_then(|file| file.set_len(0)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(explain_system(&error, &path(location))),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What is missing, where the last commit of all is: a log that lost its end lost that one first. Cheap, because it is done whenever a store is opened.
pub(super) fn missing_at_the_end(location: &Location, reader: &Reader) -> Result<Vec<Missing>, StoreError> {
    // The head first: what it claims is in the database then, whatever others commit meanwhile.
    let Ok(file) = File::open(path(location)) else { return Ok(Vec::new()) };
    // Where the first record is damaged, those of the runs may be whole.
    let Some(last) = read_at(&file, 0) else { return missing(location, reader) };
    // What cannot be read is told by whoever reads it.
    match reader.read(|view| is_there(view, &last)).unwrap_or(true) {
        true => Ok(Vec::new()),
        false => missing(location, reader),
    }
}

/// What is missing, run by run.
pub(super) fn missing(location: &Location, reader: &Reader) -> Result<Vec<Missing>, StoreError> {
    let mut records: Vec<Record> = match fs::read(path(location)) {
        Ok(bytes) => bytes.chunks(RECORD).filter_map(Record::from_bytes).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(explain_system(&error, &path(location))),
    };
    // The last one of all is that of a run, too.
    records.sort_by(|one, two| (one.run_key, two.version).cmp(&(two.run_key, one.version)));
    records.dedup_by_key(|record| record.run_key);
    reader.read(|view| {
        let mut found = Vec::new();
        for record in &records {
            if !is_there(view, record)? && !was_removed(view, record)? {
                let present = last_version(view, record)?;
                // A commit that is there and another one than was acknowledged came after the loss.
                let first = (present + 1).min(record.version);
                found.push(Missing { run: record.run.clone(), first, last: record.version });
            }
        }
        Ok(found)
    })
}

fn is_there(view: &Connection, record: &Record) -> rusqlite::Result<bool> {
    let key = commit_key(record.run_key, record.version);
    let hash: Option<Vec<u8>> =
        view.prepare_cached("SELECT hash FROM commits WHERE key = ?1")?.query_row([key], |row| row.get(0)).optional()?;
    Ok(hash.is_some_and(|hash| hash.get(..HASH) == Some(&record.hash.0[..HASH])))
}

/// Whether the run was removed on purpose.
fn was_removed(view: &Connection, record: &Record) -> rusqlite::Result<bool> {
    let mut statement = view.prepare_cached("SELECT 1 FROM removed_runs WHERE key = ?1 AND run = ?2")?;
    statement.exists(params![record.run_key, record.run.as_str()])
}

fn last_version(view: &Connection, record: &Record) -> rusqlite::Result<u64> {
    let (first, last) = (commit_key(record.run_key, 0), commit_key(record.run_key, u64::from(u32::MAX)));
    let key: Option<i64> = view
        .prepare_cached("SELECT max(key) FROM commits WHERE key BETWEEN ?1 AND ?2")?
        .query_row(params![first, last], |row| row.get(0))?;
    Ok(key.map_or(0, |key| (key & i64::from(u32::MAX)).cast_unsigned()))
}

fn read_at(file: &File, offset: u64) -> Option<Record> {
    Record::from_bytes(&bytes_at(file, offset)?)
}

fn bytes_at(file: &File, offset: u64) -> Option<RecordBytes> {
    let mut bytes = [0; RECORD];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

fn path(location: &Location) -> PathBuf {
    let mut name = location.database.as_os_str().to_owned();
    name.push("-head");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_round_trips_or_is_rejected() {
        let record = Record { run: RunId::new("4mx81tzc"), run_key: 7, version: 12, hash: Digest::of(b"x") };
        let bytes = record.to_bytes().unwrap();
        let read = Record::from_bytes(&bytes).unwrap();
        assert_eq!((read.run, read.run_key, read.version), (record.run.clone(), 7, 12));
        for location in 0..RECORD {
            let mut torn = bytes;
            torn[location] ^= 1;
            assert_eq!(Record::from_bytes(&torn), None, "byte {location}");
        }
        assert_eq!(Record::from_bytes(&[0; RECORD]), None);
        assert!(Record { run: RunId::new("x".repeat(32)), ..record.clone() }.to_bytes().is_none());
        assert!(Record { run: RunId::new("x".repeat(31)), ..record }.to_bytes().is_some());
    }
}
