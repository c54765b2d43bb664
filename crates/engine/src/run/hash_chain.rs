//! Commits: the stored form of the history. Each holds the events that became durable together, and a hash that covers everything
//! before it.

use crate::digest::Digest;
use crate::id::RunId;
use crate::messagepack;
use crate::run::event::{Entry, Event, Origin};
use serde::{Deserialize, Serialize};

/// The format version that this release writes.
pub const FORMAT: u8 = 1;

/// A commit as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedCommit {
    /// Counted from 1 in each run.
    pub version: u64,
    /// A format byte, then the events in compact form.
    pub payload: Vec<u8>,
    /// Covers the previous hash, the run id, the version and the payload.
    pub hash: Digest,
}

/// A commit as read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Commit {
    /// The number of its first event, counted from 1 in each run.
    pub first_seq: u64,
    pub entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    #[error("commit {version} has format {format}, but this release of Lockgate reads up to {FORMAT}; use a newer release")]
    Newer { version: u64, format: u8 },
    /// The commit was modified after it was written.
    #[error("commit {version} is damaged: {detail}")]
    Damaged { version: u64, detail: String },
}

impl Commit {
    /// Seals a commit, chained to the previous one.
    pub fn seal(&self, run: &RunId, version: u64, before: Digest) -> SealedCommit {
        let mut payload = vec![FORMAT];
        rmp_serde::encode::write(&mut payload, self).expect("events always serialize");
        let hash = chain(run, version, before, &payload);
        SealedCommit { version, payload, hash }
    }

    /// The number that the first event of a history must have, if this is its first commit. A recovered run continues the numbers
    /// of the history that was lost.
    pub fn first_number(&self) -> u64 {
        let Some(Event::Created(created)) = self.entries.first().map(|entry| &entry.event) else { return 1 };
        match &created.origin {
            Origin::Recovered(from) => from.seq.saturating_add(1),
            Origin::New | Origin::Imported(_) | Origin::Forked(_) => 1,
        }
    }
}

impl SealedCommit {
    pub fn open(&self) -> Result<Commit, CommitError> {
        let damaged = |detail: String| CommitError::Damaged { version: self.version, detail };
        match self.payload.split_first() {
            None => Err(damaged("it is empty".into())),
            Some((&FORMAT, rest)) => messagepack::from_slice(rest).map_err(|error| damaged(error.to_string())),
            Some((&format, _)) if format > FORMAT => Err(CommitError::Newer { version: self.version, format }),
            Some((&format, _)) => Err(damaged(format!("unknown format {format}"))),
        }
    }

    /// Whether it is unmodified and follows the commit with the hash `before`.
    pub fn follows(&self, run: &RunId, before: Digest) -> bool {
        self.hash == chain(run, self.version, before, &self.payload)
    }
}

fn chain(run: &RunId, version: u64, before: Digest, payload: &[u8]) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before.0);
    hasher.update(run.as_str().as_bytes());
    hasher.update(&version.to_le_bytes());
    hasher.update(payload);
    Digest(*hasher.finalize().as_bytes())
}
