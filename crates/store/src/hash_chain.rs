//! Checks the hash chain of a run: every commit must link to the one before it.

use crate::verify::Finding;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::event::{Event, Origin};
use lockgate_engine::run::hash_chain::{Commit, SealedCommit};

/// Checks the commits of one run in order, starting with the first.
#[derive(Debug)]
pub struct HashChain {
    pub(crate) run: RunId,
    version: u64,
    hash: Digest,
    next_seq: Option<u64>,
}

impl HashChain {
    pub fn new(run: RunId) -> Self {
        Self { run, version: 0, hash: Digest::ZERO, next_seq: Some(1) }
    }

    /// The version of the last commit that was checked.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Checks the next stored commit and adds its problems to `findings`.
    pub fn check_next(&mut self, commit: &SealedCommit, findings: &mut Vec<Finding>) {
        let place = format!("commit {}", commit.version);
        let mut find = |problem: String| findings.push(Finding::new(Some(&self.run), place.clone(), problem));
        if commit.version != self.version + 1 {
            find(format!("it follows commit {}: the commits between them are missing", self.version));
        }
        if !commit.follows(&self.run, self.hash) {
            find("its hash does not match its contents and the previous commit".to_owned());
        }
        match commit.open() {
            Err(error) => {
                find(error.to_string());
                self.next_seq = None;
            }
            Ok(opened) => {
                if commit.version == 1 {
                    self.next_seq = Some(first_number(&opened));
                }
                if self.next_seq.is_some_and(|expected| expected != opened.first_seq) {
                    find(format!("its first event has number {}, which is out of sequence", opened.first_seq));
                }
                self.next_seq = Some(opened.first_seq.saturating_add(opened.entries.len() as u64));
            }
        }
        self.version = commit.version;
        self.hash = commit.hash;
    }
}

/// The number of the first event: 1, or the one after the last event of the snapshot from which the run was recovered.
fn first_number(commit: &Commit) -> u64 {
    match commit.entries.first().map(|entry| &entry.event) {
        Some(Event::Created(created)) => match &created.origin {
            Origin::Recovered(from) => from.seq.saturating_add(1),
            Origin::New | Origin::Imported(_) | Origin::Forked(_) => 1,
        },
        Some(_) | None => 1,
    }
}
