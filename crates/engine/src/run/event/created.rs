//! How a run begins: what it is made from, and what it was given.

use crate::digest::Digest;
use crate::id::{DriverId, RunId};
use crate::run::index::NamedVariants;
use crate::run::pipeline::Imported;
use crate::stored_value::StoredValue;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Created {
    pub run: RunId,
    pub kind: RunKind,
    pub origin: Origin,
    /// Digest of the compiled definition, which is a stored value.
    pub definition: Digest,
    /// The files that the definition was made from.
    pub files: Vec<FrozenFile>,
    pub feature: Option<String>,
    /// Flags, without their dashes.
    pub flags: Vec<String>,
    /// Values of the definition and of the command line together.
    pub vars: BTreeMap<String, StoredValue>,
    /// Where outputs go, relative to the root.
    pub output_dir: String,
    pub driver: DriverId,
    /// Whether it is left to whichever process drives in the background.
    #[serde(default)]
    pub detached: bool,
    /// The command of the agent that works whatever else is configured.
    #[serde(default)]
    pub agent: Option<String>,
}

impl Created {
    /// A run of a workflow that nothing was given to, driven by who began it.
    pub fn new(run: RunId, definition: Digest, output_dir: String, driver: DriverId) -> Self {
        Self {
            run,
            kind: RunKind::Workflow,
            origin: Origin::New,
            definition,
            files: Vec::new(),
            feature: None,
            flags: Vec::new(),
            vars: BTreeMap::new(),
            output_dir,
            driver,
            detached: false,
            agent: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// An execution of a workflow.
    Workflow,
    /// A stage machine that an agent drives.
    Plan,
}

impl RunKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Plan => "plan",
        }
    }
}

impl NamedVariants for RunKind {
    const ALL: &'static [Self] = &[Self::Workflow, Self::Plan];

    fn as_str(self) -> &'static str {
        self.word()
    }
}

/// Where a run came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    New,
    /// It was made from the state file of another tool.
    Imported(Box<Imported>),
    /// It goes on from where another one stood.
    Forked(Box<Forked>),
}

/// Where another run stood that this one goes on from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    pub parent: RunId,
    /// How many commits its history had.
    pub version: u64,
    /// The hash of the last of them.
    pub head: Digest,
    /// Digest of its folded state, which is a stored value.
    pub state: Digest,
}

/// A file that a definition was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenFile {
    /// Relative to the root where it lies under it.
    pub path: String,
    /// Digest of its bytes, which are a stored value.
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresetAnswer {
    /// A phase id, a task address or a hold id.
    pub selector: String,
    /// The option: its id, its label or its number.
    pub option: String,
    /// What is said with it.
    pub feedback: Option<String>,
}
