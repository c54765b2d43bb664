//! The current phase: its tasks, gates and checkpoint, and which tasks can start.

mod batches;
mod gates;
mod ready;
mod rework;
mod stored;

pub use batches::Batches;

use crate::id::{HoldId, PhaseId, TaskId, TaskKey};
use crate::run::agent::AgentReport;
use crate::run::event::{AttemptReason, PlannedTask, Requester, SessionStart};
use crate::run::handover::Handover;
use crate::run::state::{AgentQuery, CheckpointRun, EndedTask, GapRun, GapState, GateRun, TaskState};
use crate::spec::workflow::{Join, Phase, Task};
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use gates::GateLookup;
use ready::Ready;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use stored::StoredTaskRun;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseRun {
    pub id: PhaseId,
    /// Its index in the definition.
    pub position: usize,
    /// Counted from 1.
    pub iteration: u32,
    /// The feedback with which it was repeated.
    pub feedback: Option<String>,
    pub started_at: Timestamp,
    /// Empty until the tasks are planned.
    pub tasks: Vec<TaskRun>,
    pub gates: Vec<GateRun>,
    pub checkpoint: CheckpointRun,
    #[serde(default)]
    pub gap: GapRun,
    /// The queries of its scripts to agents.
    #[serde(default)]
    pub agent_queries: Vec<AgentQuery>,
    /// Derived from `tasks` and the definition.
    #[serde(skip)]
    lookup: Lookup,
}

/// A task of the current phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredTaskRun", into = "StoredTaskRun")]
pub struct TaskRun {
    pub task: TaskId,
    /// The key of the fan-out item.
    pub item: Option<String>,
    pub state: TaskState,
    pub attempts: u32,
    /// Failed attempts since the task was last requested.
    pub failures: u32,
    /// The reason for the next attempt.
    pub next_reason: AttemptReason,
    /// The hold that asks about it.
    pub hold: Option<HoldId>,
    /// When the last attempt started or ended.
    pub since: Option<Timestamp>,
    pub value: Option<StoredValue>,
    /// The task itself, if the definition does not declare it.
    pub spec: Option<Box<Task>>,
    /// The task that was split into this one and others.
    pub parent: Option<TaskId>,
    /// Whether its `when` was true.
    pub admitted: bool,
    /// How many times it ran because of `until`.
    pub rounds: u32,
    /// The result of the previous round.
    pub previous: Option<StoredValue>,
    pub session: Option<SessionStart>,
    /// The last report of its agent.
    pub agent: Option<Box<AgentReport>>,
    /// Its exchange with people.
    pub exchange: Option<Box<Exchange>>,
    /// Whether a person said that it may run, although it may already have run before the history was lost.
    pub confirmed: bool,
}

/// The exchange between a task and people. Few tasks have one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// What a person or a check found wrong with the last attempt.
    pub feedback: Option<String>,
    /// For questions: how many times issues were found.
    pub rounds: u32,
    /// The handover of its agents, with the completed tasks of all of them.
    #[serde(default)]
    pub handover: Option<Box<Handover>>,
    /// A person's response to the handover.
    #[serde(default)]
    pub response: Option<Response>,
    /// Whether a person accepted that the commits named in the handover do not exist.
    #[serde(default)]
    pub unchecked: bool,
    /// Issues that a person found and that no successful attempt has addressed since.
    #[serde(default)]
    pub issues: Option<String>,
    /// Rework that must end before this task starts again.
    #[serde(default)]
    pub after: Vec<TaskId>,
    /// Whether a person skipped the task before it ever ran, so that it counts as done when its turn comes.
    #[serde(default)]
    pub skipped: bool,
    /// The agent that the task was handed to.
    #[serde(default)]
    pub handed_to: Option<String>,
}

/// A person's response at an agent's checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    pub text: String,
    /// Whether the person found issues with the work.
    pub issues: bool,
}

impl TaskRun {
    /// The exchange for writing, created if absent.
    pub(super) fn exchange_mut(&mut self) -> &mut Exchange {
        self.exchange.get_or_insert_default()
    }

    /// Adds the finding of a check about the last attempt. Earlier findings of a person still count.
    pub(super) fn found_by_check(&mut self, why: &str) {
        if !why.is_empty() {
            let exchange = self.exchange_mut();
            exchange.feedback = Some(match &exchange.issues {
                Some(issues) => format!("{issues}\n\n{why}"),
                None => why.to_owned(),
            });
        }
    }

    /// Resets the count of issues, because a person requested another attempt.
    pub(super) fn found_anew(&mut self) {
        if let Some(exchange) = &mut self.exchange {
            exchange.rounds = 0;
        }
    }

    /// What a person or a check found wrong with the last attempt.
    pub fn feedback(&self) -> Option<&str> {
        self.exchange.as_ref()?.feedback.as_deref()
    }
}

impl TaskRun {
    fn planned(planned: &PlannedTask) -> Self {
        Self {
            task: planned.task.clone(),
            item: planned.item.clone(),
            state: TaskState::Waiting,
            attempts: 0,
            failures: 0,
            next_reason: AttemptReason::First,
            hold: None,
            since: None,
            value: planned.value.clone(),
            spec: planned.spec.clone(),
            parent: planned.parent.clone(),
            admitted: false,
            rounds: 0,
            previous: None,
            session: None,
            agent: None,
            exchange: None,
            confirmed: false,
        }
    }
}

/// An index over the tasks, so that no step has to scan all of them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Lookup {
    by_name: BTreeMap<TaskId, BTreeMap<Option<String>, usize>>,
    declared: Vec<Option<usize>>,
    links: Vec<Links>,
    ready: Ready,
    running: BTreeSet<usize>,
    failed_or_interrupted: BTreeSet<usize>,
    fanned_out: BTreeSet<usize>,
    unfinished: usize,
    gates: GateLookup,
}

/// The dependencies of a task.
#[derive(Clone, Debug, Default, PartialEq)]
struct Links {
    dependents: Vec<usize>,
    parent: Option<usize>,
    /// How many of its dependencies must have ended, and how.
    join: Join,
    /// Whether it has a `when` of its own. A fan-out task evaluates `when` per item.
    conditional: bool,
    /// Dependencies that have not ended.
    missing: usize,
    /// Dependencies that are done.
    good: usize,
    /// Dependencies that failed.
    bad: usize,
    /// Fan-out tasks that have not ended.
    children: usize,
    /// Rework that the task waits for and that has not ended.
    rework: usize,
    /// Tasks that wait for the rework of this one.
    awaited_by: Vec<usize>,
}

/// How a task ended, as far as its dependents are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It is done or skipped.
    Well,
    Omitted,
    /// It failed, and the run continues.
    Badly,
}

fn ended(state: &TaskState) -> Option<Ended> {
    match state {
        TaskState::Done | TaskState::Skipped => Some(Ended::Well),
        TaskState::Omitted { failed: false, .. } => Some(Ended::Omitted),
        TaskState::Omitted { failed: true, .. } | TaskState::Tolerated(_) => Some(Ended::Badly),
        TaskState::Waiting
        | TaskState::Running
        | TaskState::Backoff { .. }
        | TaskState::Interrupted
        | TaskState::Failed(_)
        | TaskState::FannedOut
        | TaskState::Blocked => None,
    }
}

impl PhaseRun {
    pub(super) fn start(phase: &Phase, position: usize, iteration: u32, feedback: Option<String>, at: Timestamp) -> Self {
        let gates = phase.gates.iter();
        Self {
            id: phase.id.clone(),
            position,
            iteration,
            feedback,
            started_at: at,
            tasks: Vec::new(),
            gates: gates.map(|gate| GateRun::waiting(&gate.id)).collect(),
            checkpoint: CheckpointRun::default(),
            gap: GapRun::default(),
            agent_queries: Vec::new(),
            lookup: Lookup::default(),
        }
    }

    /// Adds tasks to this execution.
    pub(super) fn plan(&mut self, phase: &Phase, planned: &[PlannedTask]) {
        let known = self.known_items(planned);
        for planned in planned {
            match planned.item.as_ref().and_then(|item| known.get(&(planned.task.clone(), item.clone()))) {
                Some(index) => self.tasks[*index].listed_again(planned),
                None => self.tasks.push(TaskRun::planned(planned)),
            }
        }
        self.look_up(phase);
    }

    /// Whether another definition lacks a task that has not ended and could therefore no longer run.
    pub(super) fn is_lost(&self, index: usize, phase: &Phase) -> bool {
        let root = &self.tasks[self.parent(index).unwrap_or(index)];
        let known = root.spec.is_some() || phase.task(root.task.as_str()).is_some();
        !known && ended(&root.state).is_none()
    }

    /// Switches to another definition: tasks that it lacks are dropped unless they have ended, and new ones are added.
    pub(super) fn replan(&mut self, phase: &Phase, added: Vec<GateRun>) {
        let lost: Vec<bool> = (0..self.tasks.len()).map(|index| self.is_lost(index, phase)).collect();
        let mut lost = lost.into_iter();
        self.tasks.retain(|_| !lost.next().unwrap_or(false));
        if self.checkpoint.hold.is_none() {
            self.checkpoint.condition = None;
        }
        if self.gap.hold.is_none() && matches!(self.gap.state, GapState::Open { .. }) {
            self.gap = GapRun::default();
        }
        let new = phase.tasks.iter().filter(|task| !self.tasks.iter().any(|known| known.task == task.id));
        let new: Vec<PlannedTask> = new.map(|task| PlannedTask::declared(task.id.clone())).collect();
        self.gates = phase
            .gates
            .iter()
            .map(|gate| {
                self.gates.iter().find(|known| known.gate == gate.id).cloned().unwrap_or_else(|| GateRun::waiting(&gate.id))
            })
            .chain(added)
            .collect();
        self.plan(phase, &new);
        self.drop_cycles();
        self.look_up(phase);
    }

    /// Rebuilds the lookup after the tasks were planned or the state was loaded.
    pub(super) fn look_up(&mut self, phase: &Phase) {
        let declared: BTreeMap<&str, usize> =
            phase.tasks.iter().enumerate().map(|(index, task)| (task.id.as_str(), index)).collect();
        let mut lookup = Lookup { unfinished: self.tasks.len(), ..Lookup::default() };
        for (index, task) in self.tasks.iter().enumerate() {
            lookup.by_name.entry(task.task.clone()).or_default().entry(task.item.clone()).or_insert(index);
            lookup.declared.push(declared.get(task.task.as_str()).copied());
        }
        lookup.links = vec![Links::default(); self.tasks.len()];
        // Fan-out tasks share the name of their parent, but others depend on the parent.
        let whole = |name: &TaskId| lookup.by_name.get(name.as_str())?.get(&None).copied();
        for index in 0..self.tasks.len() {
            let task = &self.tasks[index];
            if let Some(parent) = task.parent.as_ref().and_then(&whole) {
                lookup.links[index].parent = Some(parent);
                lookup.links[parent].children += 1;
            }
            let Some(spec) = task.spec.as_deref().or(lookup.declared[index].map(|at| &phase.tasks[at])) else { continue };
            if !spec.needs.is_empty() {
                lookup.links[index].join = spec.join;
            }
            lookup.links[index].conditional = spec.when.is_some() && (spec.for_each.is_none() || task.item.is_some());
            for need in spec.needs.iter().filter_map(&whole) {
                lookup.links[need].dependents.push(index);
                lookup.links[index].missing += 1;
            }
        }
        for index in 0..self.tasks.len() {
            let after = self.tasks[index].exchange.as_ref().map(|exchange| &exchange.after);
            for awaited in after.into_iter().flatten().filter_map(&whole) {
                lookup.links[awaited].awaited_by.push(index);
                lookup.links[index].rework += 1;
            }
        }
        lookup.gates = GateLookup::of(&self.gates, phase, &whole);
        self.lookup = lookup;
        let waiting = vec![TaskState::Waiting; self.tasks.len()];
        let states: Vec<TaskState> =
            self.tasks.iter_mut().zip(waiting).map(|(task, waiting)| std::mem::replace(&mut task.state, waiting)).collect();
        for (index, state) in states.into_iter().enumerate() {
            self.set(index, state);
        }
    }

    /// Restores the tasks that keep their result when a phase is repeated.
    pub(super) fn carry(&mut self, carried: &[EndedTask]) {
        for EndedTask { task, state } in carried {
            if let Some(index) = self.tasks.iter().position(|known| known.task == *task && known.item.is_none()) {
                self.set(index, state.clone());
            }
        }
    }

    /// The task with this id, not one of its fan-out tasks.
    pub(super) fn whole(&self, task: &TaskId) -> Option<&TaskRun> {
        self.tasks.iter().find(|known| known.task == *task && known.item.is_none())
    }

    /// Tasks that ended without being done.
    pub(super) fn not_done(&self) -> Vec<EndedTask> {
        let whole = self.tasks.iter().filter(|task| task.item.is_none() && task.parent.is_none());
        let other = whole.filter(|task| task.state != TaskState::Done);
        other.map(|task| EndedTask { task: task.task.clone(), state: task.state.clone() }).collect()
    }

    /// Sets the state of a task, and makes the tasks ready that only waited for it.
    pub(super) fn set(&mut self, index: usize, state: TaskState) {
        let before = self.ending(index);
        self.tasks[index].state = state;
        self.gates_follow(index);
        let now = self.ending(index);
        self.lookup.ready.remove(index, self.lookup.links[index].parent);
        for set in [&mut self.lookup.running, &mut self.lookup.failed_or_interrupted, &mut self.lookup.fanned_out] {
            set.remove(&index);
        }
        match &self.tasks[index].state {
            TaskState::Waiting => self.if_ready(index),
            TaskState::Running | TaskState::Backoff { .. } => drop(self.lookup.running.insert(index)),
            TaskState::Interrupted | TaskState::Failed(_) => drop(self.lookup.failed_or_interrupted.insert(index)),
            TaskState::FannedOut => drop(self.lookup.fanned_out.insert(index)),
            TaskState::Done | TaskState::Skipped | TaskState::Blocked | TaskState::Omitted { .. } | TaskState::Tolerated(_) => {}
        }
        if before != now {
            self.notify_dependents(index, before, now);
        }
    }

    /// How a task ended, once its own gates have passed too.
    fn ending(&self, index: usize) -> Option<Ended> {
        match ended(&self.tasks[index].state) {
            Some(Ended::Well) if self.gates_of(index).any(|gate| !self.gates[gate].state.is_settled()) => None,
            ended => ended,
        }
    }

    /// Updates the counters of the tasks that depend on a task, and of its parent. No rule ever reverts an ended task, but a
    /// history might, so the counters work in both directions.
    fn notify_dependents(&mut self, index: usize, before: Option<Ended>, now: Option<Ended>) {
        let lookup = &mut self.lookup;
        let one = |counts: bool| usize::from(counts);
        lookup.unfinished = lookup.unfinished + one(now.is_none()) - one(before.is_none());
        if let Some(parent) = lookup.links[index].parent {
            let children = &mut lookup.links[parent].children;
            *children = *children + one(now.is_none()) - one(before.is_none());
        }
        for dependent in lookup.links[index].dependents.clone() {
            let links = &mut self.lookup.links[dependent];
            links.missing = links.missing + one(now.is_none()) - one(before.is_none());
            links.good = links.good + one(now == Some(Ended::Well)) - one(before == Some(Ended::Well));
            links.bad = links.bad + one(now == Some(Ended::Badly)) - one(before == Some(Ended::Badly));
            self.check_ready(dependent);
        }
        for waiting in self.lookup.links[index].awaited_by.clone() {
            let links = &mut self.lookup.links[waiting];
            links.rework = links.rework + one(now.is_none()) - one(before.is_none());
            self.check_ready(waiting);
        }
    }

    fn check_ready(&mut self, index: usize) {
        self.lookup.ready.remove(index, self.lookup.links[index].parent);
        if self.tasks[index].state == TaskState::Waiting {
            self.if_ready(index);
        }
    }

    fn if_ready(&mut self, index: usize) {
        let links = &self.lookup.links[index];
        if links.rework > 0 || (links.missing > 0 && (links.join != Join::Any || links.good == 0)) {
            return;
        }
        let task = &self.tasks[index];
        if links.conditional && !task.admitted && !task.stays_skipped() && !self.lacks(index) {
            self.lookup.ready.insert_undecided(index);
        } else {
            self.lookup.ready.insert(index, links.parent);
        }
    }

    /// Whether a task that could start is left out, because too few of its dependencies are done.
    pub(super) fn lacks(&self, index: usize) -> bool {
        let links = &self.lookup.links[index];
        match links.join {
            Join::All => links.bad > 0,
            Join::Any => links.good == 0,
            Join::Done => false,
        }
    }

    /// Fan-out parents whose tasks have all ended.
    pub(super) fn gathered(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.fanned_out.iter().copied().filter(|index| self.lookup.links[*index].children == 0)
    }

    /// How many tasks of a fan-out failed, and how many there are, not counting those that were left out.
    pub(super) fn children_failed(&self, parent: usize) -> (usize, usize) {
        let (mut bad, mut all) = (0, 0);
        for index in self.children(parent) {
            let ending = ended(&self.tasks[index].state);
            all += usize::from(ending != Some(Ended::Omitted));
            bad += usize::from(ending == Some(Ended::Badly));
        }
        (bad, all)
    }

    /// The index of a task's fan-out parent.
    pub(super) fn parent(&self, index: usize) -> Option<usize> {
        self.lookup.links[index].parent
    }

    /// The index of a task in `tasks`.
    pub fn find(&self, key: &TaskKey) -> Option<usize> {
        if key.phase != self.id || key.iteration != self.iteration {
            return None;
        }
        self.lookup.by_name.get(key.task.as_str())?.get(&key.item).copied()
    }

    pub fn key(&self, index: usize) -> TaskKey {
        let task = &self.tasks[index];
        TaskKey { phase: self.id.clone(), iteration: self.iteration, task: task.task.clone(), item: task.item.clone() }
    }

    /// The definition of a task.
    pub fn declared<'a>(&'a self, phase: &'a Phase, index: usize) -> Option<&'a Task> {
        self.tasks[index].spec.as_deref().or(self.lookup.declared[index].map(|at| &phase.tasks[at]))
    }

    /// The last query of a script that no agent has answered yet, and its number.
    pub fn open_query(&self, requester: &Requester) -> Option<(u32, &AgentQuery)> {
        let mut asked = self.agent_queries.iter().filter(|query| query.requester == *requester);
        let number = asked.clone().count() as u32;
        asked.next_back().filter(|query| query.text.is_none()).map(|query| (number, query))
    }

    /// Tasks that are running or backing off.
    pub fn running(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.running.iter().copied()
    }

    /// Tasks that failed or were interrupted.
    pub fn failed_or_interrupted(&self) -> impl Iterator<Item = usize> + '_ {
        self.lookup.failed_or_interrupted.iter().copied()
    }

    /// The tasks that a hold asks about, or that wait for its answer.
    pub(super) fn asked_about<'a>(&'a self, hold: &'a HoldId) -> impl Iterator<Item = TaskKey> + 'a {
        (0..self.tasks.len()).filter(|index| self.tasks[*index].hold.as_ref() == Some(hold)).map(|index| self.key(index))
    }

    /// Whether the gap check, if there is one, found the work complete.
    pub fn gaps_closed(&self, phase: &Phase) -> bool {
        phase.gap_check.is_none() || matches!(self.gap.state, GapState::Closed | GapState::Waived)
    }

    /// Whether a task has ended with all its fan-out tasks, and the run continues from it.
    pub(super) fn has_ended(&self, task: &TaskId) -> bool {
        self.whole(task).is_some_and(|known| ended(&known.state).is_some())
    }

    /// The tasks of a fan-out.
    pub(super) fn children(&self, parent: usize) -> Vec<usize> {
        (0..self.tasks.len()).filter(|index| self.lookup.links[*index].parent == Some(parent)).collect()
    }

    /// The transitive dependents of some tasks, by index.
    pub(super) fn dependents(&self, of: &[usize]) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open: Vec<usize> = of.to_vec();
        while let Some(index) = open.pop() {
            open.extend(self.lookup.links[index].dependents.iter().copied().filter(|dependent| found.insert(*dependent)));
        }
        found
    }

    /// How many of the declared tasks have ended.
    pub(super) fn declared_done(&self) -> usize {
        let whole = self.tasks.iter().zip(&self.lookup.declared).filter(|(task, at)| at.is_some() && task.item.is_none());
        whole.filter(|(task, _)| ended(&task.state).is_some()).count()
    }

    /// Whether all tasks are done, and the gates that belong to them have passed.
    pub fn tasks_done(&self) -> bool {
        self.lookup.unfinished == 0
    }

    /// Whether nothing is running and nothing can start until a person answers.
    pub(super) fn is_idle(&self) -> bool {
        self.lookup.ready.is_empty()
            && self.lookup.running.is_empty()
            && self.lookup.gates.running.is_empty()
            && self.lookup.gates.ready.is_empty()
    }
}
