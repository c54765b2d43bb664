//! The checked workflow. This compiled form is frozen with a run, so add new fields only at the end.

mod agent;
mod diff;
mod fan_out;
mod gap;
mod git;
mod inputs;
mod loops;
mod pipeline;
mod plan;
pub mod question;
mod shell;
mod stored;
mod team;

pub use agent::{AgentSetting, AgentWork, Budget, DEFAULT_AGENT, MAX_ASKS, Prompt, PromptBy, Session, Tools};
pub use diff::{DiffSince, ShowDiff};
pub use fan_out::{ForEach, ItemSource, Join};
pub use gap::{Criterion, Finalization, GapAction, GapCheck};
pub use git::{Commit, Worktree};
pub use inputs::{Input, InputError, InputKind};
pub use loops::{FIRST_CHECK_STATUS, NUMBERED_CHECKS, Until, UntilCondition};
pub use pipeline::{ManualGate, Output, Pipeline, PipelinePhase, Workstream};
pub use plan::PlanPart;
pub use question::{Automatic, Check, Deadline, OnDeadline, Policy, Question, WaitSettings};
pub use shell::{NotAShell, Shell};
pub use team::{Team, TeamMember};

use crate::hold::Choice;
use crate::id::{GateId, PhaseId, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use stored::StoredTask;

/// The id of the task for a phase's main script.
pub const MAIN_TASK: &str = "main";

/// The id of the task for a phase's adaptive script.
pub const ADAPTIVE_TASK: &str = "adaptive";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    pub name: String,
    pub description: Option<String>,
    /// The author's own version number.
    pub version: Option<String>,
    pub execution_mode: Mode,
    /// A template for the output directory; by default the run's own directory.
    pub output_dir: Option<String>,
    /// Available to scripts, conditions and templates as `context.vars`.
    pub vars: BTreeMap<String, Value>,
    /// The sources of secrets, by name. A name that is not listed refers to an environment variable.
    pub secrets: BTreeMap<String, SecretSource>,
    /// How many tasks may run in parallel; unlimited if absent.
    pub max_parallel: Option<u32>,
    pub phases: Vec<Phase>,
    /// The file that is rendered from the context when all phases are done.
    #[serde(default)]
    pub finalization: Option<Finalization>,
    /// How agents are started, by the names that tasks use.
    #[serde(default)]
    pub agents: BTreeMap<String, AgentSetting>,
    /// The prompts of subagents by type, from documents next to the workflow file.
    #[serde(default)]
    pub prompts: BTreeMap<String, String>,
    /// How much all agents together may use before a person is asked.
    #[serde(default)]
    pub budget: Budget,
    /// Values that are given when a run starts.
    #[serde(default)]
    pub inputs: BTreeMap<String, Input>,
    #[serde(default)]
    pub worktree: Worktree,
    /// Which questions may be answered without a person.
    #[serde(default)]
    pub policy: Policy,
    /// The content of an EXECUTION-SPEC beyond phases and tasks.
    #[serde(default)]
    pub pipeline: Option<Box<Pipeline>>,
    /// The plans from which the workflow was compiled.
    #[serde(default)]
    pub plans: Vec<PlanPart>,
    /// The shell for commands, unless the task, gate or phase sets one.
    #[serde(default)]
    pub shell: Option<Shell>,
    /// The settings of the team, if there are any.
    #[serde(default)]
    pub team: Option<Box<Team>>,
}

/// How a phase chooses the tasks to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The listed tasks, then the main script.
    #[default]
    Strict,
    /// The main script, which sees the suggested agents.
    Loose,
    /// The tasks that are always listed, then those that a script returns.
    Adaptive,
}

impl Mode {
    /// The name in a workflow file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Loose => "loose",
            Self::Adaptive => "adaptive",
        }
    }
}

/// A step of a workflow: tasks, then gates, then an optional checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    pub id: PhaseId,
    /// The display name; the id if absent.
    pub name: Option<String>,
    pub description: Option<String>,
    /// In file order. A main script is the task `main`, which needs all others.
    pub tasks: Vec<Task>,
    /// Automatic checks after the tasks, in the order in which they run.
    pub gates: Vec<Gate>,
    /// The decision of a person, after the gates.
    pub checkpoint: Option<Checkpoint>,
    /// Whether the first failure stops the running tasks, instead of letting them finish.
    pub fail_fast: bool,
    /// Overrides the mode of the workflow.
    #[serde(default)]
    pub execution_mode: Option<Mode>,
    /// Checks whether the work of the phase is complete.
    #[serde(default)]
    pub gap_check: Option<GapCheck>,
    /// Skills that its agents should use.
    #[serde(default)]
    pub skills: Vec<String>,
    /// Agent types that are suggested to its main script.
    #[serde(default)]
    pub suggested: Vec<String>,
    /// How much its agents together may use before a person is asked.
    #[serde(default)]
    pub budget: Budget,
    /// Values that override those of the run.
    #[serde(default)]
    pub vars: BTreeMap<String, Value>,
    /// Whether each task needs the one before it.
    #[serde(default)]
    pub sequential: bool,
    /// The shell for its tasks and gates that do not set one.
    #[serde(default)]
    pub shell: Option<Shell>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredTask", into = "StoredTask")]
pub struct Task {
    pub id: TaskId,
    /// The display name; the id if absent.
    pub name: Option<String>,
    /// The tasks of the same phase that must be done first.
    pub needs: Vec<TaskId>,
    pub work: Work,
    /// The maximum duration of one attempt.
    pub timeout: Option<Duration>,
    pub retry: Retry,
    /// What happens to an interrupted attempt.
    pub on_interrupt: OnInterrupt,
    /// What happens when the last attempt has failed.
    pub on_fail: OnFail,
    /// Templates for the files that it must write to the output directory.
    pub outputs: Vec<String>,
    /// The values are templates.
    pub env: BTreeMap<String, String>,
    /// The names of the secrets that it receives.
    pub secrets: Vec<String>,
    /// A template for the working directory, relative to the root.
    pub dir: Option<String>,
    /// If present, the task is left out unless this is true.
    pub when: Option<Script>,
    /// How many of its dependencies must be done before it starts.
    pub join: Join,
    /// If present, the task runs once per item of a list.
    pub for_each: Option<ForEach>,
    /// If present, the task repeats until this holds.
    pub until: Option<Until>,
    /// Whether the run continues after the task has failed for good.
    pub continue_on_error: bool,
    /// How much its agent may use before a person is asked.
    pub budget: Budget,
    pub worktree: Worktree,
    /// How its changes are committed with git when it is done. They are not committed if absent.
    pub commit: Option<Commit>,
    pub shell: Option<Shell>,
    /// The tags of the knowledge that its prompt includes.
    pub inject: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// A shell command: a template whose values are quoted for the shell.
    Run(String),
    /// A JavaScript function body.
    Script(Script),
    /// Nothing: a join, or a placeholder in tests.
    Pass,
    Agent(Box<AgentWork>),
    /// A JavaScript function body that returns the agents to start.
    Adaptive(Script),
    Checkpoint(Box<Checkpoint>),
}

impl Work {
    /// The name in a workflow file.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Script(_) => "script",
            Self::Pass => "pass",
            Self::Agent(_) => "agent",
            Self::Adaptive(_) => "adaptive",
            Self::Checkpoint(checkpoint) => checkpoint.as_str(),
        }
    }
}

/// JavaScript, parsed once to find errors and the parts of the context that it reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    pub source: String,
    pub reads: Reads,
    /// The line of the workflow file on which the source starts, counted from 1: line `n` of the source is line `line + n - 1` of
    /// the file. Zero if unknown.
    #[serde(default)]
    pub line: u32,
}

/// The parts of the context that a script can read, found in its syntax tree, so that only these are sent to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// The script uses `context` in a way that may reach anything.
    All,
    /// Only these parts, such as `vars.big`, `feature` or `outputs.build`.
    Parts(BTreeSet<String>),
}

/// How often a failing task is attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// All attempts, including the first.
    pub attempts: u32,
    /// The delay before the second attempt; doubled before each further one.
    pub backoff: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 1, backoff: Duration::ZERO }
    }
}

/// What happens to an attempt that was interrupted by a crash or a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInterrupt {
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
    /// The run fails. Resuming it retries the task or gate.
    #[default]
    Fail,
    /// A person decides.
    Ask,
    /// The phase is repeated a few times; then a person decides.
    Repeat,
}

/// An automatic check: a command that must succeed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    pub id: GateId,
    /// A template.
    pub run: String,
    pub timeout: Option<Duration>,
    pub on_fail: OnFail,
    /// The values are templates.
    pub env: BTreeMap<String, String>,
    /// The names of the secrets that it receives.
    pub secrets: Vec<String>,
    /// A template for the working directory, relative to the root.
    pub dir: Option<String>,
    /// The task of the phase after which the gate runs; dependents of that task wait for the gate too. All tasks if absent.
    #[serde(default)]
    pub task: Option<TaskId>,
    /// The display name; the id if absent.
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub shell: Option<Shell>,
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// If present, the checkpoint is shown only if this is true.
    pub condition: Option<Script>,
    pub on_condition_error: OnConditionError,
    /// A template.
    pub prompt: String,
    /// Templates for the files that the answer is bound to.
    pub show_files: Vec<String>,
    pub options: Vec<Choice>,
    /// The full question, if there is more to it than the prompt.
    #[serde(default)]
    pub question: Option<Question>,
    #[serde(default)]
    pub waits: WaitSettings,
    /// The git change that the decision is about.
    #[serde(default)]
    pub show_diff: Option<ShowDiff>,
}

impl Checkpoint {
    /// The name of its kind of question.
    pub fn as_str(&self) -> &'static str {
        self.question.as_ref().map_or("checkpoint", Question::as_str)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConditionError {
    /// The checkpoint is shown with the error.
    #[default]
    Show,
    /// The checkpoint is skipped, and the error becomes a warning.
    Skip,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretSource {
    /// An environment variable of Lockgate's own process.
    Env(String),
    /// The output of a command, without its last line break.
    Command(String),
}

impl Workflow {
    /// Whether it may use prompts of subagents in files next to its own, including files that do not exist yet.
    pub fn may_use_prompt_files(&self) -> bool {
        self.phases.iter().any(Phase::may_use_prompt_files)
    }

    /// Whether any task commits its work.
    pub fn commits(&self) -> bool {
        self.phases.iter().any(Phase::commits)
    }

    /// The index of a phase.
    pub fn position(&self, phase: &str) -> Option<usize> {
        self.phases.iter().position(|candidate| candidate.id.as_str() == phase)
    }

    /// Adopts a policy where the workflow does not set one. The checkpoints of a pipeline have their own setting.
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

    /// The shell for a task or gate of a phase, given its own setting; `None` if no shell is set anywhere.
    pub fn shell_in<'w>(&'w self, phase: &'w Phase, own: Option<&'w Shell>) -> Option<&'w Shell> {
        own.or(phase.shell.as_ref()).or(self.shell.as_ref())
    }

    pub fn phase(&self, phase: &str) -> Option<&Phase> {
        self.phases.iter().find(|candidate| candidate.id.as_str() == phase)
    }
}

impl Gate {
    /// A gate with default settings.
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
    /// A task with default settings.
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
            inject: Vec::new(),
        }
    }

    /// The work of its agent, if it is an agent task.
    pub fn agent(&self) -> Option<&AgentWork> {
        match &self.work {
            Work::Agent(work) => Some(work),
            Work::Run(_) | Work::Script(_) | Work::Pass | Work::Adaptive(_) | Work::Checkpoint(_) => None,
        }
    }

    /// Its question, if it is one.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        match &self.work {
            Work::Checkpoint(checkpoint) => Some(checkpoint),
            Work::Run(_) | Work::Script(_) | Work::Pass | Work::Adaptive(_) | Work::Agent(_) => None,
        }
    }

    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(self.id.as_str())
    }

    /// Templates for the files that it is expected to write.
    pub fn expected(&self) -> impl Iterator<Item = &str> {
        let agent = self.agent().and_then(|work| work.output_path.as_deref());
        self.outputs.iter().map(String::as_str).chain(agent)
    }
}

impl Phase {
    fn may_use_prompt_files(&self) -> bool {
        self.gap_check.as_ref().is_some_and(|check| check.script.is_some())
            || self.tasks.iter().any(|task| match task.work {
                Work::Agent(_) | Work::Adaptive(_) => true,
                Work::Run(_) | Work::Script(_) | Work::Pass | Work::Checkpoint(_) => false,
            })
    }

    /// A phase without tasks.
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

    /// Whether any task commits its work.
    pub fn commits(&self) -> bool {
        self.tasks.iter().any(|task| task.commit.is_some())
    }

    pub fn task(&self, task: &str) -> Option<&Task> {
        self.tasks.iter().find(|candidate| candidate.id.as_str() == task)
    }

    /// These tasks and their transitive dependents.
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

    /// The options of its checkpoint and of the questions among its tasks.
    pub(crate) fn choices(&self) -> impl Iterator<Item = &Choice> {
        let tasks = self.tasks.iter().filter_map(|task| task.checkpoint());
        self.checkpoint.iter().chain(tasks).flat_map(|checkpoint| &checkpoint.options)
    }

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
