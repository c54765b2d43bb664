//! Stored commits: any bytes are an error, or a value with an equal stored form; the hash chain detects every change.

use crate::play::{self, Play, workflow};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::hash_chain::{Commit, FORMAT, SealedCommit};
use lockgate_engine::spec::workflow::Reads;
use lockgate_store::hash_chain::HashChain;
use std::sync::OnceLock;

/// Reads a history: for each commit, two bytes of length and the stored bytes.
pub fn run(bytes: &[u8]) {
    let run = RunId::from("run00000");
    let (mut head, mut version) = (Digest::ZERO, 0);
    let mut replayed: Option<Run> = None;
    let mut onto = running();
    for payload in payloads(bytes) {
        version += 1;
        let sealed = sealed(&run, version, head, payload.to_vec());
        changes_are_detected(&sealed, &run, head);
        head = sealed.hash;
        if let Ok(commit) = sealed.open() {
            let again = commit.seal(&run, version, head).open();
            assert_eq!(again.as_ref(), Ok(&commit), "a commit does not round-trip");
            let other = rmp_serde::from_slice::<Commit>(payload);
            assert_eq!(other.as_ref().ok(), Some(&commit), "rmp_serde reads something else: {other:?}");
        }
        replayed = match replayed {
            None => Run::first(&sealed, workflow()).ok().map(|(run, _)| run),
            Some(mut run) => run.apply_commit(&sealed).is_ok().then_some(run),
        };
        replayed.iter().for_each(can_be_shown_and_stored);
        if onto.apply_commit(&sealed).is_ok() {
            can_be_shown_and_stored(&onto);
        }
    }
}

/// The histories of some plays.
pub fn seeds() -> Vec<Vec<u8>> {
    play::seeds().iter().map(|seed| history(&played("run00000", seed))).collect()
}

pub(crate) fn played(id: &str, seed: &[u8]) -> Play {
    let mut play = Play::new(id, seed.len() % 2 == 1);
    seed.chunks_exact(2).for_each(|command| play.step(command[0], command[1]));
    play
}

fn history(play: &Play) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (commit, _) in play.commits.iter().take(30) {
        let payload = &commit.payload[1..];
        bytes.extend(u16::try_from(payload.len()).unwrap_or(u16::MAX).to_le_bytes());
        bytes.extend(payload);
    }
    bytes
}

fn payloads(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let (payload, after) = after.split_at(usize::from(u16::from_le_bytes(*length)).min(after.len()));
        rest = after;
        Some(payload)
    })
}

fn sealed(run: &RunId, version: u64, before: Digest, rest: Vec<u8>) -> SealedCommit {
    let mut payload = vec![FORMAT];
    payload.extend(rest);
    // The hash is computed here a second time, so that the stored form cannot change unnoticed.
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before.0).update(run.as_str().as_bytes()).update(&version.to_le_bytes()).update(&payload);
    SealedCommit { version, payload, hash: Digest(*hasher.finalize().as_bytes()) }
}

/// A commit follows the previous one only as it was sealed.
fn changes_are_detected(sealed: &SealedCommit, run: &RunId, before: Digest) {
    assert!(sealed.follows(run, before));
    let place = sealed.payload.iter().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let changed = |change: &dyn Fn(&mut SealedCommit)| {
        let mut other = sealed.clone();
        change(&mut other);
        other
    };
    let length = sealed.payload.len();
    for other in [
        changed(&|other| other.payload[place % length] ^= 1 << (place / length % 8)),
        changed(&|other| other.payload.push(0)),
        changed(&|other| other.payload.truncate(length - 1)),
        changed(&|other| other.version += 1),
        changed(&|other| other.hash.0[place % 32] ^= 1),
    ] {
        assert!(!other.follows(run, before), "a change is not detected: {sealed:?} and {other:?}");
        let mut findings = Vec::new();
        let mut chain = HashChain::new(run.clone());
        chain.check_next(&other, &mut findings);
        assert!(!findings.is_empty(), "a change is not found");
    }
    assert!(!sealed.follows(&RunId::from("run00001"), before), "a commit of one run is accepted in another");
    let mut earlier = before;
    earlier.0[place % 32] ^= 1;
    assert!(!sealed.follows(run, earlier), "a commit follows two others");
}

/// Any state can be shown and stored.
pub(crate) fn can_be_shown_and_stored(run: &Run) {
    run.pending();
    run.pending_read();
    run.status();
    run.open_holds();
    run.context(&Reads::All);
    run.full_context(&|_| None);
    let bytes = run.to_bytes();
    let mut again = Run::from_bytes(&bytes).unwrap_or_else(|error| panic!("a state that was written: {error}"));
    if again.attach(workflow()).is_ok() {
        assert_eq!(again, *run, "a state does not round-trip");
    }
    assert_eq!(bytes, again.to_bytes(), "a state has two stored forms");
}

/// A run in the middle of its phases.
fn running() -> Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| played("run00000", &[0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0]).run).clone()
}
