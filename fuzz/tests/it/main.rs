//! Replays the kept inputs, the seeds, and small changes of both that are the same each time.

use lockgate_fuzz::{TARGETS, Target};
use std::panic::catch_unwind;
use std::path::PathBuf;

#[test]
fn no_corpus_input_breaks_a_claim() {
    for target in TARGETS {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
        let kept = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for file in kept {
            let path = file.expect("a kept input").path();
            let bytes = std::fs::read(&path).expect("a kept input");
            holds(target, &bytes, &path.display().to_string());
        }
    }
}

#[test]
fn no_seed_violates_an_invariant() {
    for target in TARGETS {
        for (number, seed) in (target.seeds)().iter().enumerate() {
            holds(target, seed, &format!("seed {number} of {}", target.name));
        }
    }
}

/// `LOCKGATE_FUZZ_ROUNDS` says how often for each target (300 unless set), `LOCKGATE_SEED` which changes.
#[test]
fn no_mutated_seed_breaks_a_claim() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (rounds, first) = (number("LOCKGATE_FUZZ_ROUNDS").unwrap_or(300), number("LOCKGATE_SEED").unwrap_or(0));
    for target in TARGETS.iter().filter(|target| target.name != "database") {
        let seeds = (target.seeds)();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_add(first.wrapping_mul(0x1234_5679));
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap_or(0) % below.max(1)
        };
        for round in 0..rounds {
            let mut bytes = seeds[random(seeds.len())].clone();
            for _ in 0..=random(4) {
                let at = random(bytes.len());
                match random(4) {
                    0 if at < bytes.len() => drop(bytes.remove(at)),
                    1 => bytes.insert(at, u8::try_from(random(128)).unwrap_or(0)),
                    2 if at < bytes.len() => bytes[at] ^= 1 << random(8),
                    _ => {
                        let other = &seeds[random(seeds.len())];
                        let from = random(other.len());
                        let to = (from + random(32)).min(other.len());
                        bytes.splice(at..at, other[from..to].iter().copied());
                    }
                }
            }
            holds(target, &bytes, &format!("round {round} of {}", target.name));
        }
    }
}

fn holds(target: &Target, bytes: &[u8], what: &str) {
    let input = bytes.to_vec();
    assert!(catch_unwind(|| (target.run)(&input)).is_ok(), "{what} breaks a claim: {:?}", String::from_utf8_lossy(bytes));
}
