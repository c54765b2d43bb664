//! The content of an EXECUTION-SPEC beyond its phases and tasks, from which the state file is generated.

use crate::id::{GateId, PhaseId, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A pipeline: workstreams in phases, with gates. Other tools read its state from one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Its id, such as `PRD-009`; safe as a file name.
    pub prd: String,
    pub title: String,
    /// In step with the phases of the workflow.
    pub phases: Vec<PipelinePhase>,
    /// In file order.
    pub workstreams: Vec<Workstream>,
    /// Gates that a person decides, in the order of their phases.
    #[serde(default)]
    pub manual_gates: Vec<ManualGate>,
    /// The shell command that runs when all phases are done; not a template.
    #[serde(default)]
    pub on_complete: Option<String>,
    /// The path of its state file, relative to the root; the default path if absent.
    #[serde(default)]
    pub state_file: Option<String>,
    /// The pass criteria of gates, as written in the file, by gate name.
    #[serde(default)]
    pub criteria: BTreeMap<String, String>,
    /// Workstreams that the file defers: they belong to no phase and do not run.
    #[serde(default)]
    pub deferred: Vec<TaskId>,
    /// Gates that the file defines but does not use.
    #[serde(default)]
    pub unused_gates: Vec<String>,
    /// Whether a review must allow the pipeline to start.
    #[serde(default)]
    pub review: bool,
}

/// A phase as written in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelinePhase {
    pub name: String,
    /// Each is a task of the workflow's phase.
    pub workstreams: Vec<TaskId>,
    /// All gates of the workflow's phase, including those of its workstreams, in file order.
    pub gates: Vec<GateId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workstream {
    /// The id, such as `WS1`. It is unique in the pipeline, and is also the id of its task.
    pub id: TaskId,
    pub name: String,
    /// The agent type, if an agent does the work.
    #[serde(default)]
    pub executor: Option<String>,
    /// The files that it should produce.
    #[serde(default)]
    pub outputs: Vec<Output>,
    /// Its own gates, by their names in the file.
    #[serde(default)]
    pub gates: Vec<String>,
}

/// A file that a workstream should produce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// As written in the file: a path, a path with a remark, or a description.
    pub said: String,
    /// The file to look for, relative to the root; absent if there is only a description. `*` matches any part of one name; every
    /// other character matches itself.
    #[serde(default)]
    pub path: Option<String>,
}

/// A gate that no command decides. A person who lets the run continue past its phase confirms it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualGate {
    /// As in the state file: `review`, or `review (WS2)` if it belongs to a workstream.
    pub title: String,
    /// The phase whose checkpoint asks for it.
    pub phase: PhaseId,
    #[serde(default)]
    pub criteria: Option<String>,
    /// Its name, if the file uses it without defining it. The settings may have a command for it.
    #[serde(default)]
    pub convention: Option<String>,
    #[serde(default)]
    pub task: Option<TaskId>,
}

impl Pipeline {
    pub fn workstream(&self, id: &str) -> Option<&Workstream> {
        self.workstreams.iter().find(|workstream| workstream.id.as_str() == id)
    }

    /// The index of the phase to which a workstream belongs.
    pub fn phase_of(&self, workstream: &str) -> Option<usize> {
        self.phases.iter().position(|phase| phase.workstreams.iter().any(|id| id.as_str() == workstream))
    }
}

impl Output {
    /// Whether its path may match more than one file.
    pub fn is_pattern(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.contains('*'))
    }
}
