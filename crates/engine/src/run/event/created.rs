//! How a run starts: its definition and its inputs.

use crate::digest::Digest;
use crate::id::{DriverId, RunId, SnapshotId};
use crate::run::index::NamedVariants;
use crate::run::issue::Issue;
use crate::run::pipeline::Imported;
use crate::stored_value::StoredValue;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Created {
    pub run: RunId,
    pub kind: RunKind,
    pub origin: Origin,
    /// The compiled definition, which is a stored value.
    pub definition: Digest,
    /// The files from which the definition was compiled.
    pub files: Vec<FrozenFile>,
    pub feature: Option<String>,
    /// Flags, without their dashes.
    pub flags: Vec<String>,
    /// Variables of the definition, overridden by those of the command line.
    pub vars: BTreeMap<String, StoredValue>,
    /// The output directory, relative to the root.
    pub output_dir: String,
    pub driver: DriverId,
    /// Whether the run is left to a background driver.
    #[serde(default)]
    pub detached: bool,
    /// The agent's command; it overrides every other agent setting.
    #[serde(default)]
    pub agent: Option<String>,
    /// The issue that the run works on.
    #[serde(default)]
    pub issue: Option<Box<Issue>>,
}

impl Created {
    /// A workflow run without inputs, driven by the process that starts it.
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
            issue: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// An execution of a workflow.
    Workflow,
    /// A state machine of stages that an agent drives.
    Plan,
}

impl RunKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Plan => "plan",
        }
    }
}

impl NamedVariants for RunKind {
    const ALL: &'static [Self] = &[Self::Workflow, Self::Plan];

    fn as_str(self) -> &'static str {
        self.as_str()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    New,
    /// Created from another tool's state file.
    Imported(Box<Imported>),
    /// Continues from the state of another run.
    Forked(Box<Forked>),
    /// The same run, continued from a snapshot because its history was lost.
    Recovered(Box<RecoveredFrom>),
}

/// The state of another run from which this one continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    pub parent: RunId,
    /// The number of commits in the parent's history.
    pub version: u64,
    /// The hash of the last of these commits.
    pub head: Digest,
    /// The parent's state, which is a stored value.
    pub state: Digest,
}

/// The snapshot from which a lost run was recovered, and the end of its lost history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveredFrom {
    pub snapshot: SnapshotId,
    /// The number of the snapshot's last event. The events of the recovered run are numbered on from there.
    pub seq: u64,
    /// The number of commits in the lost history that the snapshot contains.
    pub version: u64,
    /// The hash of the last of these commits.
    pub head: Digest,
    /// The state in the snapshot, which is a stored value.
    pub state: Digest,
}

/// A file from which a definition was compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenFile {
    /// Relative to the root if the file is inside it.
    pub path: String,
    /// The file's bytes, which are a stored value.
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresetAnswer {
    /// A phase id, a task address or a hold id.
    pub selector: String,
    /// The id, label or number of the option.
    pub option: String,
    pub feedback: Option<String>,
}
