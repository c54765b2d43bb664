//! What a checked workflow says. This compiled form is frozen with a run, so its fields only ever grow at the end.

mod agent;
mod fan_out;
mod gap;
mod pipeline;
mod plan;
pub mod question;
mod shell;
mod stored;

pub use agent::{AgentSetting, AgentWork, Budget, DEFAULT_AGENT, MAX_ASKS, Prompt, PromptBy, Session, Tools};
pub use fan_out::CHECK_FAILED;
pub use fan_out::{Commit, ForEach, Input, InputError, InputKind, ItemSource, Join, Until, UntilCondition, Worktree};
pub use gap::{Criterion, Finalization, GapAction, GapCheck};
pub use pipeline::{ManualGate, Output, Pipeline, PipelinePhase, Workstream};
pub use plan::PlanPart;
pub use question::{Automatic, Check, Deadline, OnDeadline, Policy, Question, WaitSettings};
pub use shell::Shell;

use crate::hold::Choice;
use crate::id::{GateId, PhaseId, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use stored::StoredTask;

/// The id of the task that a phase's main script becomes.
pub const MAIN_TASK: &str = "main";

/// The id of the task that a phase's adaptive script becomes.
pub const ADAPTIVE_TASK: &str = "adaptive";

/// A workflow: phases in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    pub name: String,
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
    pub phases: Vec<Phase>,
    /// What is made from the context when all phases are done.
    #[serde(default)]
    pub finalization: Option<Finalization>,
    /// How agents are started, by the names under which tasks ask for them.
    #[serde(default)]
    pub agents: BTreeMap<String, AgentSetting>,
    /// What subagents are told, by their type: the documents beside the workflow file.
    #[serde(default)]
    pub prompts: BTreeMap<String, String>,
    /// How much all agents together may use before a person is asked.
    #[serde(default)]
    pub budget: Budget,
    /// Values that are given when a run begins.
    #[serde(default)]
    pub inputs: BTreeMap<String, Input>,
    /// Where the work of a run happens.
    #[serde(default)]
    pub worktree: Worktree,
    /// Which questions may be answered without a person.
    #[serde(default)]
    pub policy: Policy,
    /// What an EXECUTION-SPEC says beyond phases and tasks.
    #[serde(default)]
    pub pipeline: Option<Box<Pipeline>>,
    /// The plans that it was made from.
    #[serde(default)]
    pub plans: Vec<PlanPart>,
    /// The shell that runs commands, where neither the task or gate nor its phase says which.
    #[serde(default)]
    pub shell: Option<Shell>,
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
    pub id: PhaseId,
    /// What people call it; the id when absent.
    pub name: Option<String>,
    pub description: Option<String>,
    /// Its tasks, in the order of the file; a main script is the task `main`, which needs all others.
    pub tasks: Vec<Task>,
    /// Automatic checks after the tasks, run in this order.
    pub gates: Vec<Gate>,
    /// Where a person decides, after the gates.
    pub checkpoint: Option<Checkpoint>,
    /// Whether the first failure ends the tasks under way, instead of letting them finish.
    pub fail_fast: bool,
    /// How it chooses what runs; as the workflow says when absent.
    #[serde(default)]
    pub execution_mode: Option<Mode>,
    /// Looks whether its work is whole.
    #[serde(default)]
    pub gap_check: Option<GapCheck>,
    /// Skills that its agents are told to use.
    #[serde(default)]
    pub skills: Vec<String>,
    /// Types of agents that its main script is told about.
    #[serde(default)]
    pub suggested: Vec<String>,
    /// How much its agents together may use before a person is asked.
    #[serde(default)]
    pub budget: Budget,
    /// Values that go before those of the run.
    #[serde(default)]
    pub vars: BTreeMap<String, Value>,
    /// Whether its tasks follow each other.
    #[serde(default)]
    pub sequential: bool,
    /// The shell of its tasks and gates that do not say which.
    #[serde(default)]
    pub shell: Option<Shell>,
}

/// One unit of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredTask", into = "StoredTask")]
pub struct Task {
    pub id: TaskId,
    /// What people call it; the id when absent.
    pub name: Option<String>,
    /// The tasks of the same phase that must be done first.
    pub needs: Vec<TaskId>,
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
    /// When given, it is left out unless this is true.
    pub when: Option<Script>,
    /// When it may start, as far as others are concerned.
    pub join: Join,
    /// When given, it is done once for each item of a list.
    pub for_each: Option<ForEach>,
    /// When given, it is done until this holds.
    pub until: Option<Until>,
    /// Whether the run goes on when it has failed for good.
    pub continue_on_error: bool,
    /// How much its agent may use before a person is asked.
    pub budget: Budget,
    /// Where its work happens.
    pub worktree: Worktree,
    /// How what it changed is committed with git when it is done; it is not where this is absent.
    pub commit: Option<Commit>,
    /// The shell that runs its commands.
    pub shell: Option<Shell>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A shell command; a template whose values are quoted for the shell.
    Run(String),
    /// A JavaScript function body.
    Script(Script),
    /// Nothing: a join, or a stand-in in tests.
    Pass,
    /// Something that an agent does.
    Agent(Box<AgentWork>),
    /// A JavaScript function body that returns the agents that shall work.
    Adaptive(Script),
    /// A question to a person.
    Checkpoint(Box<Checkpoint>),
}

impl Work {
    /// The word for it in a workflow file.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Script(_) => "script",
            Self::Pass => "pass",
            Self::Agent(_) => "agent",
            Self::Adaptive(_) => "adaptive",
            Self::Checkpoint(checkpoint) => checkpoint.word(),
        }
    }
}

/// JavaScript, parsed once for errors and for what it reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
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
    /// The task of its phase that it follows, and that tasks which need that one wait for too; all tasks when absent.
    #[serde(default)]
    pub task: Option<TaskId>,
    /// What people call it; the id when absent.
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub shell: Option<Shell>,
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
    /// What is asked, where that is more than the prompt.
    #[serde(default)]
    pub question: Option<Question>,
    /// How it waits for its answer.
    #[serde(default)]
    pub waits: WaitSettings,
}

impl Checkpoint {
    /// The word for what it asks.
    pub fn word(&self) -> &'static str {
        self.question.as_ref().map_or("checkpoint", Question::word)
    }
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
    /// Whether the work of a task is committed.
    pub fn commits(&self) -> bool {
        self.phases.iter().any(Phase::commits)
    }

    /// Where in the order a phase stands.
    pub fn position(&self, phase: &str) -> Option<usize> {
        self.phases.iter().position(|candidate| candidate.id.as_str() == phase)
    }

    /// Takes over what a policy says where the workflow says nothing itself. Who lets a pipeline go on is a setting of its own.
    pub fn apply_policy(&mut self, policy: &Policy) {
        let Policy { checkpoint, verify, decision, collect_phase } = policy.clone();
        if self.pipeline.is_none() {
            self.policy.checkpoint = self.policy.checkpoint.take().or(checkpoint);
        }
        self.policy.verify = self.policy.verify.take().or(verify);
        self.policy.decision = self.policy.decision.take().or(decision);
        if collect_phase && !self.policy.collect_phase {
            self.policy.collect_phase = true;
            self.phases.iter_mut().for_each(crate::spec::verify_last);
        }
    }

    /// The shell of a task or gate of a phase, given what it says itself; none where nothing says which.
    pub fn shell_in<'w>(&'w self, phase: &'w Phase, own: Option<&'w Shell>) -> Option<&'w Shell> {
        own.or(phase.shell.as_ref()).or(self.shell.as_ref())
    }

    pub fn phase(&self, phase: &str) -> Option<&Phase> {
        self.phases.iter().find(|candidate| candidate.id.as_str() == phase)
    }
}

impl Gate {
    /// A gate that says nothing but what it runs.
    pub fn new(id: GateId, run: String) -> Self {
        Self {
            id,
            run,
            timeout: None,
            on_fail: OnFail::default(),
            env: BTreeMap::new(),
            secrets: Vec::new(),
            dir: None,
            task: None,
            title: None,
            shell: None,
        }
    }

    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(self.id.as_str())
    }
}

impl Task {
    /// A task that says nothing but what it does.
    pub fn new(id: TaskId, work: Work) -> Self {
        let on_interrupt = match &work {
            Work::Run(_) | Work::Agent(_) => OnInterrupt::Ask,
            Work::Script(_) | Work::Pass | Work::Adaptive(_) | Work::Checkpoint(_) => OnInterrupt::Rerun,
        };
        Self {
            id,
            name: None,
            needs: Vec::new(),
            work,
            timeout: None,
            retry: Retry::default(),
            on_interrupt,
            on_fail: OnFail::default(),
            outputs: Vec::new(),
            env: BTreeMap::new(),
            secrets: Vec::new(),
            dir: None,
            when: None,
            join: Join::default(),
            for_each: None,
            until: None,
            continue_on_error: false,
            budget: Budget::default(),
            worktree: Worktree::default(),
            commit: None,
            shell: None,
        }
    }

    /// Its agent's work, where it is an agent's.
    pub fn agent(&self) -> Option<&AgentWork> {
        match &self.work {
            Work::Agent(work) => Some(work),
            Work::Run(_) | Work::Script(_) | Work::Pass | Work::Adaptive(_) | Work::Checkpoint(_) => None,
        }
    }

    /// The question that it is, where it is one.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        match &self.work {
            Work::Checkpoint(checkpoint) => Some(checkpoint),
            Work::Run(_) | Work::Script(_) | Work::Pass | Work::Adaptive(_) | Work::Agent(_) => None,
        }
    }

    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(self.id.as_str())
    }

    /// The files that it is to leave behind, as templates.
    pub fn expected(&self) -> impl Iterator<Item = &str> {
        let agent = self.agent().and_then(|work| work.output_path.as_deref());
        self.outputs.iter().map(String::as_str).chain(agent)
    }
}

impl Phase {
    /// A phase that does nothing.
    pub fn new(id: PhaseId) -> Self {
        Self {
            id,
            name: None,
            description: None,
            tasks: Vec::new(),
            gates: Vec::new(),
            checkpoint: None,
            fail_fast: false,
            execution_mode: None,
            gap_check: None,
            skills: Vec::new(),
            suggested: Vec::new(),
            budget: Budget::default(),
            vars: BTreeMap::new(),
            sequential: false,
            shell: None,
        }
    }

    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(self.id.as_str())
    }

    /// Whether the work of a task is committed.
    pub fn commits(&self) -> bool {
        self.tasks.iter().any(|task| task.commit.is_some())
    }

    pub fn task(&self, task: &str) -> Option<&Task> {
        self.tasks.iter().find(|candidate| candidate.id.as_str() == task)
    }

    /// Some of its tasks, and all that need them, directly or not.
    pub(crate) fn with_dependents(&self, mut tasks: Vec<TaskId>) -> Vec<TaskId> {
        let mut open = tasks.clone();
        while let Some(task) = open.pop() {
            for dependent in self.tasks.iter().filter(|candidate| candidate.needs.contains(&task)) {
                if !tasks.contains(&dependent.id) {
                    tasks.push(dependent.id.clone());
                    open.push(dependent.id.clone());
                }
            }
        }
        tasks
    }

    /// What may be answered at its checkpoints, that of the phase and those among its tasks.
    pub(crate) fn choices(&self) -> impl Iterator<Item = &Choice> {
        let tasks = self.tasks.iter().filter_map(|task| task.checkpoint());
        self.checkpoint.iter().chain(tasks).flat_map(|checkpoint| &checkpoint.options)
    }

    /// The same, to be changed.
    pub(crate) fn choices_mut(&mut self) -> impl Iterator<Item = &mut Choice> {
        let tasks = self.tasks.iter_mut().filter_map(|task| match &mut task.work {
            Work::Checkpoint(checkpoint) => Some(&mut **checkpoint),
            Work::Run(_) | Work::Script(_) | Work::Pass | Work::Adaptive(_) | Work::Agent(_) => None,
        });
        self.checkpoint.iter_mut().chain(tasks).flat_map(|checkpoint| &mut checkpoint.options)
    }

    pub fn gate(&self, gate: &str) -> Option<&Gate> {
        self.gates.iter().find(|candidate| candidate.id.as_str() == gate)
    }
}
