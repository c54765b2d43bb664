//! What a workflow that was an EXECUTION-SPEC says beyond its phases and tasks: what its state file is made from.

use crate::id::{GateId, PhaseId, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A pipeline: workstreams in phases, with gates, whose state others read in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    /// What it is known by, such as `PRD-009`; safe as a file name.
    pub prd: String,
    pub title: String,
    /// Its phases, in step with those of the workflow.
    pub phases: Vec<PipelinePhase>,
    /// Its workstreams, in the order of the file.
    pub workstreams: Vec<Workstream>,
    /// Gates that no command decides, in the order of their phases.
    #[serde(default)]
    pub manual_gates: Vec<ManualGate>,
    /// The shell command that runs when all phases are done; no template.
    #[serde(default)]
    pub on_complete: Option<String>,
    /// Where its state file lies, under the root; the default place when absent.
    #[serde(default)]
    pub state_file: Option<String>,
    /// What must hold for a gate to pass, as the file says it, by the gate's name.
    #[serde(default)]
    pub criteria: BTreeMap<String, String>,
    /// Workstreams that the file defers: they stand in no phase and do not run.
    #[serde(default)]
    pub deferred: Vec<TaskId>,
    /// Gates that the file defines and nothing names.
    #[serde(default)]
    pub unused_gates: Vec<String>,
    /// Whether a review must let it begin.
    #[serde(default)]
    pub review: bool,
}

/// A phase as the file says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelinePhase {
    pub name: String,
    /// Its workstreams, each a task of the workflow's phase.
    pub workstreams: Vec<TaskId>,
    /// All gates of the workflow's phase, those of its workstreams included, in the order in which they are listed.
    pub gates: Vec<GateId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workstream {
    /// Its id, such as `WS1`; unique in the whole pipeline, and the id of its task.
    pub id: TaskId,
    pub name: String,
    /// Who works, where an agent does.
    #[serde(default)]
    pub executor: Option<String>,
    /// What it is to leave behind.
    #[serde(default)]
    pub outputs: Vec<Output>,
    /// Its own gates, by the names that the file gives them.
    #[serde(default)]
    pub gates: Vec<String>,
}

/// Something that a workstream is to leave behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// As the file says it: a path, a path with a remark, or a few words.
    pub said: String,
    /// The file to look for, under the root; nothing where only words say what it is. `*` stands for any part of one name,
    /// every other character for itself.
    #[serde(default)]
    pub path: Option<String>,
}

/// A gate that no command decides: whoever lets the run go on past its phase says that it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualGate {
    /// As in the state file: `review`, or `review (WS2)` where it belongs to a workstream.
    pub title: String,
    /// The phase whose checkpoint asks for it.
    pub phase: PhaseId,
    #[serde(default)]
    pub criteria: Option<String>,
    /// Its name, where the file names it by convention without defining it: the settings may have a command for it.
    #[serde(default)]
    pub convention: Option<String>,
    /// The workstream that it belongs to.
    #[serde(default)]
    pub task: Option<TaskId>,
}

impl Pipeline {
    pub fn workstream(&self, id: &str) -> Option<&Workstream> {
        self.workstreams.iter().find(|workstream| workstream.id.as_str() == id)
    }

    /// The phase that a workstream belongs to, counted from 0.
    pub fn phase_of(&self, workstream: &str) -> Option<usize> {
        self.phases.iter().position(|phase| phase.workstreams.iter().any(|id| id.as_str() == workstream))
    }
}

impl Output {
    /// Whether its path stands for more than one file.
    pub fn is_pattern(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.contains('*'))
    }
}
