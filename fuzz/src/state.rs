//! Materialized states and definitions: any bytes are an error, or a value with an equal stored form that can be shown.

use crate::hash_chain::{can_be_shown_and_stored, played};
use crate::play::{self, workflow};
use lockgate_engine::run::Run;
use lockgate_engine::run::history::STATE_FORMAT;
use lockgate_engine::spec::workflow::Workflow;

/// Reads a materialized state if the first byte is even, otherwise a definition.
pub fn run(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let mut stored = vec![STATE_FORMAT];
    stored.extend(rest);
    if kind % 2 == 0 {
        let Ok(mut run) = Run::from_bytes(&stored) else { return };
        if run.attach(workflow()).is_ok() {
            can_be_shown_and_stored(&run);
        }
    } else if let Ok(definition) = Workflow::from_bytes(&stored) {
        crate::spec::can_be_frozen(&definition);
    }
}

/// The states of some plays, and their definition.
pub fn seeds() -> Vec<Vec<u8>> {
    let with_kind = |kind: u8, stored: Vec<u8>| [&[kind], &stored[1..]].concat();
    let plays = play::seeds();
    let states = plays
        .iter()
        .flat_map(|seed| [0, 20, 60, 100, 240].map(|end| played("run00000", &seed[..end.min(seed.len())]).run.to_bytes()));
    let mut seeds: Vec<Vec<u8>> = states.map(|stored| with_kind(0, stored)).collect();
    seeds.push(with_kind(1, workflow().to_bytes()));
    seeds
}
