//! Changes of the definition during a run.

use super::TASKS;
use super::task::PlannedTask;
use lockgate_engine::id::{GateId, PhaseId};
use lockgate_engine::spec::workflow::{Gate, Phase, Retry, Work, Workflow};
use rand::RngExt;
use rand::rngs::SmallRng;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::simulation) enum Change {
    /// Adds a task that needs all others to a phase.
    AddTask(usize),
    /// Adds a gate to a phase.
    AddGate(usize),
    /// Gives all tasks of a phase one more attempt and a longer backoff.
    Retry(usize),
    /// Changes the limit for parallel tasks.
    MaxParallel(Option<u32>),
    /// Adds a phase at the end.
    AddPhase,
    /// The checkpoint of a phase no longer shows files.
    ShowNothing(usize),
}

impl Change {
    pub(super) fn random(phases: usize, random: &mut SmallRng) -> Self {
        let phase = random.random_range(0..phases);
        match random.random_range(0..6) {
            0 => Self::AddTask(phase),
            1 => Self::AddGate(phase),
            2 => Self::Retry(phase),
            3 => Self::MaxParallel([None, Some(1), Some(3)][random.random_range(0..3)]),
            4 => Self::AddPhase,
            _ => Self::ShowNothing(phase),
        }
    }

    pub(super) fn make(self, workflow: &mut Workflow) {
        match self {
            Self::AddTask(index) => {
                let Some(phase) = workflow.phases.get_mut(index) else { return };
                let mut task = PlannedTask::default().declared(index, TASKS - 1, Work::Run("added".into()));
                task.needs = phase.tasks.iter().map(|task| task.id.clone()).collect();
                phase.tasks.push(task);
            }
            Self::AddGate(index) => {
                let Some(phase) = workflow.phases.get_mut(index) else { return };
                phase.gates.push(Gate::new(GateId::from("added"), "true".into()));
            }
            Self::Retry(index) => {
                let tasks = workflow.phases.get_mut(index).into_iter().flat_map(|phase| &mut phase.tasks);
                tasks.for_each(|task| {
                    task.retry = Retry { attempts: task.retry.attempts + 1, backoff: Duration::from_secs(5) };
                });
            }
            Self::MaxParallel(limit) => workflow.max_parallel = limit,
            Self::AddPhase => {
                let index = workflow.phases.len();
                let task = PlannedTask::default().declared(index, 0, Work::Run("added".into()));
                workflow.phases.push(Phase { tasks: vec![task], ..Phase::new(PhaseId::from("added")) });
            }
            Self::ShowNothing(index) => {
                let checkpoint = workflow.phases.get_mut(index).and_then(|phase| phase.checkpoint.as_mut());
                if let Some(checkpoint) = checkpoint {
                    checkpoint.show_files.clear();
                }
            }
        }
    }
}
