//! Phases of a plan.

use super::checkpoint::PlannedCheckpoint;
use super::task::{PlannedTask, QuestionKind};
use super::{one_in, task_id};
use lockgate_engine::id::{GateId, PhaseId, TaskId};
use lockgate_engine::run::command::GapsFound;
use lockgate_engine::spec::subagent::Subagent;
use lockgate_engine::spec::workflow::{GapAction, GapCheck, Gate, OnFail, Phase};
use rand::RngExt;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub(in crate::simulation) struct PlannedPhase {
    pub(in crate::simulation) tasks: Vec<PlannedTask>,
    pub(in crate::simulation) gates: u32,
    pub(in crate::simulation) checkpoint: Option<PlannedCheckpoint>,
    pub(in crate::simulation) fail_fast: bool,
    pub(in crate::simulation) gate_fails: bool,
    pub(in crate::simulation) gate_on_fail: OnFail,
    /// How many of its gap checks find gaps; without gap checks if zero.
    pub(in crate::simulation) gaps: u32,
}

impl PlannedPhase {
    pub(super) fn random(index: usize, phases: usize, pipeline: bool, random: &mut SmallRng) -> Self {
        let mut tasks: Vec<PlannedTask> =
            (0..[1, 2, 2, 3, 3, 4][random.random_range(0..6)]).map(|task| PlannedTask::random(task, pipeline, random)).collect();
        only_work_is_redone(&mut tasks);
        let asks = random.random_range(0..3) > 0;
        Self {
            tasks,
            gates: random.random_range(0..=2),
            checkpoint: asks.then(|| PlannedCheckpoint::random(index, phases, pipeline, random)),
            fail_fast: one_in(random, 3),
            gate_fails: one_in(random, 4),
            gate_on_fail: [OnFail::Fail, OnFail::Ask, OnFail::Repeat][random.random_range(0..3)],
            gaps: if one_in(random, 5) { random.random_range(1..5) } else { 0 },
        }
    }

    /// The task that a gate belongs to: only in every other phase, so that both kinds of gates occur.
    fn gated_task(&self, phase: usize, gate: u32) -> Option<TaskId> {
        let task = (gate as usize) % self.tasks.len();
        self.tasks.len().is_multiple_of(2).then(|| task_id(phase, task))
    }

    /// The result of a gap check: a different action in each round.
    pub(in crate::simulation) fn gaps_found(&self, round: u32) -> GapsFound {
        let scout = Subagent { kind: "scout".into(), config: BTreeMap::new() };
        let (action, agents) = match (round + self.gates) % 3 {
            0 => (Some(GapAction::SpawnAdditional), vec![scout]),
            1 => (Some(GapAction::Escalate), Vec::new()),
            _ => (None, Vec::new()),
        };
        GapsFound::Gaps { status: "incomplete".into(), gaps: vec!["a gap".into()], action, agents, message: None }
    }

    pub(super) fn declared(&self, index: usize, phases: usize) -> Phase {
        let id = PhaseId::new(format!("p{index}"));
        let redo: Vec<TaskId> = (0..self.tasks.len()).map(|task| task_id(index, task)).collect();
        Phase {
            tasks: self.tasks.iter().enumerate().map(|(number, task)| task.in_phase(index, number)).collect(),
            gates: (0..self.gates)
                .map(|number| declared_gate(number, self.gate_on_fail, self.gated_task(index, number)))
                .collect(),
            checkpoint: self.checkpoint.as_ref().map(|asked| asked.declared(index, phases, &redo)),
            fail_fast: self.fail_fast,
            gap_check: (self.gaps > 0).then(|| GapCheck {
                criteria: Vec::new(),
                script: None,
                on_failure: GapAction::Retry,
                additional: Vec::new(),
                max_iterations: 3,
                message: None,
            }),
            ..Phase::new(id)
        }
    }
}

/// A question cannot be redone by another one; the first task is never a question.
fn only_work_is_redone(tasks: &mut [PlannedTask]) {
    let questions: Vec<bool> = tasks.iter().map(|task| task.question.is_some()).collect();
    for question in tasks.iter_mut().filter_map(|task| task.question.as_mut()) {
        if let QuestionKind::Verify { redo, .. } = &mut question.kind {
            *redo = (0..=*redo).rev().find(|index| !questions[*index]).unwrap_or(0);
        }
    }
}

fn declared_gate(number: u32, on_fail: OnFail, task: Option<TaskId>) -> Gate {
    Gate { on_fail, task, ..Gate::new(GateId::new(format!("g{number}")), "true".into()) }
}
