//! Checks the hash chain of a run: every commit must link to the one before it.

use crate::verify::Finding;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::hash_chain::SealedCommit;

/// Checks the commits of one run in order, starting with the first.
#[derive(Debug)]
pub struct HashChain {
    pub(crate) run: RunId,
    version: u64,
    hash: Digest,
    /// Unknown before the first commit, and after one that cannot be read.
    next_seq: Option<u64>,
}

impl HashChain {
    pub fn new(run: RunId) -> Self {
        Self { run, version: 0, hash: Digest::ZERO, next_seq: None }
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
                let expected = if self.version == 0 { Some(opened.first_number()) } else { self.next_seq };
                if expected.is_some_and(|expected| expected != opened.first_seq) {
                    find(format!("its first event has number {}, which is out of sequence", opened.first_seq));
                }
                self.next_seq = Some(opened.first_seq.saturating_add(opened.entries.len() as u64));
            }
        }
        self.version = commit.version;
        self.hash = commit.hash;
    }
}
