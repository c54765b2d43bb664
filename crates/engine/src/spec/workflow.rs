//! What a checked workflow says. This compiled form is frozen with a run, so its fields only ever grow at the end.

use crate::hold::Choice;
use crate::id::{GateId, PhaseId, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The id of the task that a phase's main script becomes.
pub const MAIN_TASK: &str = "main";

/// A workflow: phases in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The author's version of it.
    pub version: Option<String>,
    /// How phases choose what runs.
    pub execution_mode: Mode,
    /// Where outputs go, as a template; by default the run's own folder.
    pub output_dir: Option<String>,
    /// Values that scripts, conditions and templates see as `context.vars`.
    pub vars: BTreeMap<String, Value>,
    /// Where secrets come from, by name; a name not listed is an environment variable.
    pub secrets: BTreeMap<String, SecretSource>,
    /// How many tasks may run at once; no limit when absent.
    pub max_parallel: Option<u32>,
    /// The phases, in order.
    pub phases: Vec<Phase>,
}

/// How phases choose what runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// What is listed, then the main script.
    #[default]
    Strict,
    /// The main script; suggestions are told to it.
    Loose,
    /// What is always listed, then what a script returns.
    Adaptive,
}

impl Mode {
    /// The word for it in a workflow file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Loose => "loose",
            Self::Adaptive => "adaptive",
        }
    }
}

/// One step of a workflow: tasks, then gates, then perhaps a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Unique in the workflow.
    pub id: PhaseId,
    /// What people call it; the id when absent.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Its tasks, in the order of the file; a main script is the task `main`, which needs all others.
    pub tasks: Vec<Task>,
    /// Automatic checks after the tasks, run in this order.
    pub gates: Vec<Gate>,
    /// Where a person decides, after the gates.
    pub checkpoint: Option<Checkpoint>,
    /// Whether the first failure ends the tasks under way, instead of letting them finish.
    pub fail_fast: bool,
}

/// One unit of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Unique in the phase.
    pub id: TaskId,
    /// What people call it; the id when absent.
    pub name: Option<String>,
    /// The tasks of the same phase that must be done first.
    pub needs: Vec<TaskId>,
    /// What it does.
    pub work: Work,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// How often a failing task is tried.
    pub retry: Retry,
    /// What happens to an attempt that was cut off.
    pub on_interrupt: OnInterrupt,
    /// What happens when the last try failed.
    pub on_fail: OnFail,
    /// Files it must leave behind, inside the output directory; templates.
    pub outputs: Vec<String>,
    /// Environment variables for it; the values are templates.
    pub env: BTreeMap<String, String>,
    /// Names of the secrets that reach it.
    pub secrets: Vec<String>,
    /// Where it runs, under the root; a template.
    pub dir: Option<String>,
}

/// What a task does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A shell command; a template whose values are quoted for the shell.
    Run(String),
    /// A JavaScript function body.
    Script(Script),
    /// Nothing: a join, or a stand-in in tests.
    Pass,
}

impl Work {
    /// The word for it in a workflow file.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Script(_) => "script",
            Self::Pass => "pass",
        }
    }
}

/// JavaScript, parsed once for errors and for what it reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// The source text.
    pub source: String,
    /// The parts of the context that it reads.
    pub reads: Reads,
    /// The line of the workflow file on which the source begins, counted from 1: its line `n` stands on `line + n - 1`.
    /// Zero when that is not known.
    #[serde(default)]
    pub line: u32,
}

/// The parts of the context that a script can touch, found in its syntax tree, so that only these are sent to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// It uses `context` in a way that may reach anything.
    All,
    /// Only these parts, such as `vars.big`, `feature` or `outputs.build`; nothing when empty.
    Parts(BTreeSet<String>),
}

/// How often a failing task is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Tries in all, the first included.
    pub attempts: u32,
    /// How long to wait before the second try; doubled before each further one.
    pub backoff: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 1, backoff: Duration::ZERO }
    }
}

/// What happens to an attempt that was cut off by a crash or a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInterrupt {
    /// It runs again.
    Rerun,
    /// A person decides.
    Ask,
    /// It counts as failed.
    Fail,
}

/// What happens when a task or gate has failed for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFail {
    /// The run fails; resuming it tries again.
    #[default]
    Fail,
    /// A person decides.
    Ask,
    /// The phase runs again, a few times; then a person decides.
    Repeat,
}

/// An automatic check: a command that must succeed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Unique in the phase.
    pub id: GateId,
    /// The shell command; a template.
    pub run: String,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// What happens when it fails.
    pub on_fail: OnFail,
    /// Environment variables for it; the values are templates.
    pub env: BTreeMap<String, String>,
    /// Names of the secrets that reach it.
    pub secrets: Vec<String>,
    /// Where it runs, under the root; a template.
    pub dir: Option<String>,
}

/// Where a person decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// When given, the checkpoint is shown only if this is true.
    pub condition: Option<Script>,
    /// What happens when the condition cannot be evaluated.
    pub on_condition_error: OnConditionError,
    /// The question; a template.
    pub prompt: String,
    /// The files that the decision is about; templates.
    pub show_files: Vec<String>,
    /// What may be answered.
    pub options: Vec<Choice>,
}

/// What happens when a condition cannot be evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConditionError {
    /// The checkpoint is shown, with the error on it.
    #[default]
    Show,
    /// The checkpoint is passed over; the error is kept as a warning.
    Skip,
}

/// Where a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretSource {
    /// An environment variable of Lockgate's own process.
    Env(String),
    /// What a command prints, less its last line break.
    Command(String),
}

impl Workflow {
    /// Where in the order a phase stands.
    pub fn position(&self, phase: &str) -> Option<usize> {
        self.phases.iter().position(|candidate| candidate.id.as_str() == phase)
    }

    /// A phase by its id.
    pub fn phase(&self, phase: &str) -> Option<&Phase> {
        self.phases.iter().find(|candidate| candidate.id.as_str() == phase)
    }
}

impl Phase {
    /// What people call it.
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(self.id.as_str())
    }

    /// A task by its id.
    pub fn task(&self, task: &str) -> Option<&Task> {
        self.tasks.iter().find(|candidate| candidate.id.as_str() == task)
    }

    /// A gate by its id.
    pub fn gate(&self, gate: &str) -> Option<&Gate> {
        self.gates.iter().find(|candidate| candidate.id.as_str() == gate)
    }
}
