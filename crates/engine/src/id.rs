//! Ids. Each kind is its own type, so that they cannot be mixed up.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id! {
    /// A run: eight random base32 characters.
    RunId
}
text_id! {
    /// A hold: eight random base32 characters.
    HoldId
}
text_id! {
    /// A timer that belongs to a run.
    TimerId
}
text_id! {
    /// A command. The sender chooses it, so that sending a command twice has no further effect.
    CommandId
}
text_id! {
    /// A process that drives runs.
    DriverId
}
text_id! {
    /// A phase, unique in its workflow.
    PhaseId
}
text_id! {
    /// A task, unique in its phase.
    TaskId
}
text_id! {
    /// A gate, unique in its phase.
    GateId
}
text_id! {
    /// An option of a hold, unique in its hold.
    OptionId
}

text_id! {
    /// A snapshot: `CP-{phase}-{time}-{hash}`, the hash being that of its content.
    SnapshotId
}

text_id! {
    /// A message between agents: `MSG-{milliseconds}-{eight hexadecimal digits}`.
    MessageId
}

text_id! {
    /// A conflict between agents: `CONF-{milliseconds}-{hash}`.
    ConflictId
}

text_id! {
    /// An entry of the project's knowledge: `KE-{type}-{hash of type and content}`.
    KnowledgeId
}

/// A task in one execution of a phase; `item` identifies a task of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskKey {
    pub phase: PhaseId,
    /// Counted from 1.
    pub iteration: u32,
    pub task: TaskId,
    /// The key of the fan-out item.
    #[serde(default)]
    pub item: Option<String>,
}

impl TaskKey {
    /// The address as typed by people: `phase/task`, with `[item]` in a fan-out.
    pub fn address(&self) -> String {
        match &self.item {
            None => format!("{}/{}", self.phase, self.task),
            Some(item) => format!("{}/{}[{item}]", self.phase, self.task),
        }
    }
}

/// A task or a gate of one execution of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKey {
    Task(TaskKey),
    Gate {
        phase: PhaseId,
        /// Counted from 1.
        iteration: u32,
        gate: GateId,
    },
}

impl StepKey {
    /// The address as typed by people: `phase/task` or `phase/gate`.
    pub fn address(&self) -> String {
        match self {
            Self::Task(key) => key.address(),
            Self::Gate { phase, gate, .. } => format!("{phase}/{gate}"),
        }
    }
}

/// Derives ids from a random seed that comes with a command, so that the engine itself needs no randomness.
#[derive(Clone, Debug)]
pub struct IdSource {
    seed: [u8; 16],
    made: u32,
}

const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstvwxyz0123456789";

impl IdSource {
    pub fn new(seed: [u8; 16]) -> Self {
        Self { seed, made: 0 }
    }

    /// Skips the ids before this one.
    pub(crate) fn skip_to(&mut self, made: u32) {
        self.made = made;
    }

    /// The next id as a random UUID, the form that other programs accept.
    pub fn next_uuid(&mut self) -> String {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.next_bytes()[..16]);
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// Eight random hexadecimal digits.
    pub(crate) fn next_hex(&mut self) -> String {
        self.next_bytes()[..4].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn next_bytes(&mut self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed);
        hasher.update(&self.made.to_le_bytes());
        self.made += 1;
        *hasher.finalize().as_bytes()
    }

    /// The next id: eight base32 characters, forty random bits.
    pub fn next_id(&mut self) -> String {
        self.next_bytes()[..8].iter().map(|byte| ALPHABET[usize::from(byte % 32)] as char).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_derived_from_the_seed_and_differ() {
        let mut one = IdSource::new([7; 16]);
        let mut two = IdSource::new([7; 16]);
        let first = one.next_id();
        assert_eq!(first, two.next_id());
        assert_eq!(first.len(), 8);
        assert_ne!(first, one.next_id());
    }
}
