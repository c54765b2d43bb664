//! The members of a team: the agents of a workflow, their roles, and how far their tasks are.

use crate::id::{PhaseId, TaskKey};
use crate::run::phase::TaskRun;
use crate::run::state::{Run, TaskState};
use crate::spec::workflow::{DEFAULT_AGENT, Phase, Task, Work};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A member of the team and its part of the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub agent: String,
    /// The role from the settings of the team.
    pub role: Option<String>,
    pub status: MemberStatus,
    /// Addresses of its finished tasks.
    pub completed: Vec<String>,
    /// Addresses of its other tasks.
    pub pending: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberStatus {
    /// One of its tasks is running.
    Active,
    /// It has tasks that have not started.
    Idle,
    /// One of its tasks waits for a person or for another attempt.
    Waiting,
    /// It has no tasks left.
    Done,
}

impl MemberStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Idle => "idle",
            Self::Waiting => "waiting",
            Self::Done => "done",
        }
    }
}

/// The part of a member in one task.
enum Part {
    Completed,
    Running,
    Waiting,
    NotStarted,
    LeftOut,
}

/// What a member is called: its agent, or the task where no agent does the work.
fn name_of(task: &Task) -> &str {
    match &task.work {
        Work::Agent(work) => work.agent.as_deref().unwrap_or(DEFAULT_AGENT),
        Work::Run(_) | Work::Script(_) | Work::Pass | Work::Adaptive(_) | Work::Checkpoint(_) => task.id.as_str(),
    }
}

impl Run {
    /// The agent that works on a task: the one that it was handed to, or else the declared one. Absent if no agent does the work.
    pub fn agent_of(&self, key: &TaskKey) -> Option<&str> {
        let declared = self.declared(key)?;
        declared.agent()?;
        let handed_to = self.task_run(key).and_then(|task| task.exchange.as_ref()?.handed_to.as_deref());
        Some(handed_to.unwrap_or_else(|| name_of(declared)))
    }

    /// The name under which a task takes part in the team.
    pub(in crate::run) fn member_name(&self, key: &TaskKey) -> String {
        self.agent_of(key).unwrap_or(key.task.as_str()).to_owned()
    }

    /// The names that messages can be sent to: the agents, the members in the settings, and tasks that no agent works on.
    pub fn known_members(&self) -> Vec<String> {
        let listed = self.workflow.team.iter().flat_map(|team| team.members.keys().cloned());
        let declared = self.workflow.phases.iter().flat_map(|phase| &phase.tasks).map(|task| name_of(task).to_owned());
        let planned = self.current.iter().flat_map(|phase| &phase.tasks).filter_map(|task| task.spec.as_deref());
        let planned = planned.map(|task| name_of(task).to_owned());
        let agents = self.workflow.agents.keys().chain(self.workflow.prompts.keys()).cloned();
        let mut names: Vec<String> = listed.chain(declared).chain(planned).chain(agents).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The members of the team: every agent that a task names, and every member in the settings.
    pub fn team_members(&self) -> Vec<Member> {
        let mut members: BTreeMap<&str, Vec<(String, Part)>> = BTreeMap::new();
        let listed = |name: &str| self.workflow.team.as_ref().is_some_and(|team| team.members.contains_key(name));
        for name in self.workflow.team.iter().flat_map(|team| team.members.keys()) {
            members.entry(name).or_default();
        }
        for (position, phase) in self.workflow.phases.iter().enumerate() {
            for task in &phase.tasks {
                let state = self.current_state(&phase.id, task);
                let handed_to = state.and_then(|state| state.exchange.as_ref()?.handed_to.as_deref());
                let name = handed_to.unwrap_or_else(|| name_of(task));
                if task.agent().is_some() || listed(name) {
                    let part = self.part_in(position, phase, task, state);
                    members.entry(name).or_default().push((format!("{}/{}", phase.id, task.id), part));
                }
            }
        }
        members.into_iter().map(|(name, parts)| self.member(name, parts)).collect()
    }

    fn current_state(&self, phase: &PhaseId, task: &Task) -> Option<&TaskRun> {
        self.current.as_ref().filter(|current| current.id == *phase)?.whole(&task.id)
    }

    fn part_in(&self, position: usize, phase: &Phase, task: &Task, state: Option<&TaskRun>) -> Part {
        if let Some(state) = state {
            return part_of(&state.state);
        }
        if self.completed.contains(&phase.id) {
            let not_done =
                self.not_done.get(phase.id.as_str()).and_then(|tasks| tasks.iter().find(|known| known.task == task.id));
            return not_done.map_or(Part::Completed, |known| part_of(&known.state));
        }
        let left_out = self.skip_list.contains(&phase.id) || position < self.position || self.end.is_some();
        if left_out { Part::LeftOut } else { Part::NotStarted }
    }

    fn member(&self, name: &str, parts: Vec<(String, Part)>) -> Member {
        let any = |wanted: fn(&Part) -> bool| parts.iter().any(|(_, part)| wanted(part));
        let status = match () {
            () if any(|part| matches!(part, Part::Running)) => MemberStatus::Active,
            () if any(|part| matches!(part, Part::Waiting)) => MemberStatus::Waiting,
            () if any(|part| matches!(part, Part::NotStarted)) => MemberStatus::Idle,
            () if parts.is_empty() => MemberStatus::Idle,
            () => MemberStatus::Done,
        };
        let mut member = Member {
            agent: name.to_owned(),
            role: self.workflow.team.as_ref().and_then(|team| team.members.get(name)?.role.clone()),
            status,
            completed: Vec::new(),
            pending: Vec::new(),
        };
        for (address, part) in parts {
            match part {
                Part::Completed => member.completed.push(address),
                Part::Running | Part::Waiting | Part::NotStarted => member.pending.push(address),
                Part::LeftOut => {}
            }
        }
        member
    }
}

fn part_of(state: &TaskState) -> Part {
    match state {
        TaskState::Running | TaskState::FannedOut => Part::Running,
        TaskState::Waiting => Part::NotStarted,
        TaskState::Backoff { .. } | TaskState::Interrupted | TaskState::Failed(_) | TaskState::Blocked => Part::Waiting,
        TaskState::Done | TaskState::Skipped => Part::Completed,
        TaskState::Omitted { .. } | TaskState::Tolerated(_) => Part::LeftOut,
    }
}
