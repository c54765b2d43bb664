//! Plans: what a seed makes. A plan is data, so that a failing one can be made smaller.

use lockgate_engine::hold::{Action, Choice};
use lockgate_engine::id::{GateId, PhaseId, TaskId};
use lockgate_engine::run::command::GapsFound;
use lockgate_engine::run::event::Preset;
use lockgate_engine::spec::subagent::Subagent;
use lockgate_engine::spec::workflow::{
    Checkpoint, ForEach, GapAction, GapCheck, Gate, Join, OnConditionError, OnFail, OnInterrupt, Output, Over, Phase, Pipeline,
    PipelinePhase, Reads, Retry, Script, Task, Work, Workflow, Workstream,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// More tasks than any phase has.
pub(super) const TASKS: usize = 100;

/// A workflow, and what befalls it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) phases: Vec<PlannedPhase>,
    /// A process lives this many polls, then is dropped where it stands; after the last one, processes live on.
    pub(super) lives: Vec<u32>,
    /// A process is asked to stop in good order after this many polls instead of being dropped, for every other life.
    pub(super) halts: bool,
    /// How an append fails, at which reading of the clock.
    pub(super) faults: BTreeMap<u32, PlannedFault>,
    /// By how many milliseconds the clock jumps, at which of its readings.
    pub(super) jumps: BTreeMap<u32, i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PlannedFault {
    BeforeCommit,
    AfterCommit,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedPhase {
    pub(super) tasks: Vec<PlannedTask>,
    pub(super) gates: u32,
    pub(super) checkpoint: bool,
    pub(super) condition: bool,
    pub(super) fail_fast: bool,
    /// Whether its gates fail at first.
    pub(super) gate_fails: bool,
    pub(super) gate_on_fail: OnFail,
    /// Whether an answer for its checkpoint is given in advance.
    pub(super) preset: bool,
    /// How many of its gap checks find gaps; it has none when this is zero.
    pub(super) gaps: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlannedTask {
    /// Needs some of the tasks before it, by their numbers.
    pub(super) needs: BTreeSet<usize>,
    /// Polls that it takes.
    pub(super) takes: u32,
    /// Polls that it takes to end once it is asked to.
    pub(super) ends_in: u32,
    /// How many of its first attempts fail.
    pub(super) fails: u32,
    pub(super) attempts: u32,
    pub(super) on_interrupt: OnInterrupt,
    pub(super) on_fail: OnFail,
    /// How many items it is done for; once when this is zero.
    pub(super) items: u32,
    pub(super) when: bool,
    pub(super) join: Join,
    pub(super) continue_on_error: bool,
}

impl Plan {
    pub(super) fn from_seed(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let phases = (0..random.random_range(1..=3)).map(|_| PlannedPhase::random(&mut random)).collect();
        let lives = (0..random.random_range(0..5)).map(|_| random.random_range(1..40)).collect();
        let faults = (0..random.random_range(0..4)).map(|_| {
            let fault = if random.random() { PlannedFault::BeforeCommit } else { PlannedFault::AfterCommit };
            (random.random_range(0..60), fault)
        });
        let faults = faults.collect();
        let jumps = (0..random.random_range(0..3)).map(|_| (random.random_range(0..60), random.random_range(-100_000..100_000)));
        let jumps = jumps.collect();
        let halts = random.random();
        Self { seed, phases, lives, halts, faults, jumps }
    }

    /// Plans that lack one thing of this one.
    pub(super) fn smaller(&self) -> Vec<Self> {
        let mut plans = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut plan = self.clone();
            change(&mut plan);
            plans.push(plan);
        };
        for index in 0..self.lives.len() {
            with(&|plan| {
                plan.lives.remove(index);
            });
        }
        for number in self.faults.keys() {
            with(&|plan| {
                plan.faults.remove(number);
            });
        }
        for number in self.jumps.keys() {
            with(&|plan| {
                plan.jumps.remove(number);
            });
        }
        for index in 0..self.phases.len() {
            if self.phases.len() > 1 {
                with(&|plan| drop(plan.phases.remove(index)));
            }
            let phase = &self.phases[index];
            if phase.tasks.len() > 1 {
                with(&|plan| {
                    plan.phases[index].tasks.pop();
                });
            }
            if phase.gates > 0 {
                with(&|plan| plan.phases[index].gates = 0);
            }
            if phase.checkpoint {
                with(&|plan| plan.phases[index].checkpoint = false);
            }
            for task in 0..phase.tasks.len() {
                if phase.tasks[task].fails > 0 {
                    with(&|plan| plan.phases[index].tasks[task].fails = 0);
                }
            }
        }
        plans
    }

    /// Answers in advance: at first a repeat, then going on.
    pub(super) fn presets(&self) -> Vec<Preset> {
        let phases = self.phases.iter().enumerate().filter(|(_, phase)| phase.checkpoint && phase.preset);
        let preset = |index: usize, option: &str| Preset {
            selector: format!("p{index}"),
            option: option.into(),
            feedback: Some("again".into()),
        };
        phases.flat_map(|(index, _)| [preset(index, "redo"), preset(index, "continue")]).collect()
    }

    pub(super) fn workflow(&self) -> Workflow {
        Workflow {
            name: "simulated".into(),
            max_parallel: self.seed.is_multiple_of(3).then_some(2),
            phases: self.phases.iter().enumerate().map(|(index, phase)| phase.declared(index)).collect(),
            pipeline: self.seed.is_multiple_of(2).then(|| Box::new(self.pipeline())),
            ..Workflow::default()
        }
    }

    /// Every other plan is played as a pipeline, whose state file is then claimed to be right.
    fn pipeline(&self) -> Pipeline {
        let phases = self.phases.iter().enumerate().map(|(index, phase)| PipelinePhase {
            name: format!("p{index}"),
            workstreams: (0..phase.tasks.len()).map(|task| task_id(index, task)).collect(),
            gates: (0..phase.gates).map(|gate| GateId::new(format!("g{gate}"))).collect(),
        });
        let phases: Vec<PipelinePhase> = phases.collect();
        let workstreams = phases.iter().flat_map(|phase| &phase.workstreams).map(|id| Workstream {
            id: id.clone(),
            name: String::new(),
            executor: None,
            outputs: vec![Output { said: "made.txt".into(), path: Some("made.txt".into()) }],
            gates: Vec::new(),
        });
        let workstreams = workstreams.collect();
        Pipeline { prd: "PRD-001".into(), title: "simulated".into(), phases, workstreams, ..Pipeline::default() }
    }
}

impl PlannedPhase {
    fn random(random: &mut SmallRng) -> Self {
        let tasks = (0..random.random_range(1..=4)).map(|index| PlannedTask::random(index, random)).collect();
        Self {
            tasks,
            gates: random.random_range(0..=2),
            checkpoint: random.random_range(0..3) > 0,
            condition: random.random_range(0..4) == 0,
            fail_fast: random.random_range(0..3) == 0,
            gate_fails: random.random_range(0..4) == 0,
            gate_on_fail: [OnFail::Fail, OnFail::Ask, OnFail::Repeat][random.random_range(0..3)],
            preset: random.random_range(0..4) == 0,
            gaps: if random.random_range(0..3) == 0 { random.random_range(1..5) } else { 0 },
        }
    }

    /// The task that a gate belongs to: in every other kind of phase one of them, so that both kinds of gates are played.
    fn gated_task(&self, phase: usize, gate: u32) -> Option<TaskId> {
        let task = (gate as usize) % self.tasks.len();
        self.tasks.len().is_multiple_of(2).then(|| task_id(phase, task))
    }

    /// What a gap check finds: each in turn another way out.
    pub(super) fn gaps_found(&self, round: u32) -> GapsFound {
        let scout = Subagent { kind: "scout".into(), config: BTreeMap::new() };
        let (action, agents) = match (round + self.gates) % 3 {
            0 => (Some(GapAction::SpawnAdditional), vec![scout]),
            1 => (Some(GapAction::Escalate), Vec::new()),
            _ => (None, Vec::new()),
        };
        GapsFound::Gaps { status: "incomplete".into(), gaps: vec!["a gap".into()], action, agents, message: None }
    }

    fn declared(&self, index: usize) -> Phase {
        let id = PhaseId::new(format!("p{index}"));
        let choice = |label: &str, action| Choice { with_feedback: true, ..Choice::plain(label, label, action) };
        let condition = Script { source: "true".into(), reads: Reads::Parts(BTreeSet::new()), line: 0 };
        Phase {
            tasks: self.tasks.iter().enumerate().map(|(number, task)| task.declared(index, number)).collect(),
            gates: (0..self.gates)
                .map(|number| declared_gate(number, self.gate_on_fail, self.gated_task(index, number)))
                .collect(),
            checkpoint: self.checkpoint.then(|| Checkpoint {
                condition: self.condition.then_some(condition),
                on_condition_error: OnConditionError::Show,
                prompt: "?".into(),
                show_files: vec!["plan.md".into()],
                options: vec![choice("continue", Action::Continue), choice("redo", Action::RepeatPhase(id.clone()))],
                question: None,
                waits: Default::default(),
            }),
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

/// Unique in the whole plan, as those of workstreams are.
fn task_id(phase: usize, task: usize) -> TaskId {
    TaskId::new(format!("t{}", phase * TASKS + task))
}

fn declared_gate(number: u32, on_fail: OnFail, task: Option<TaskId>) -> Gate {
    Gate { on_fail, task, ..Gate::new(GateId::new(format!("g{number}")), "true".into()) }
}

impl PlannedTask {
    fn random(index: usize, random: &mut SmallRng) -> Self {
        let on_interrupt = [OnInterrupt::Rerun, OnInterrupt::Ask, OnInterrupt::Fail][random.random_range(0..3)];
        let on_fail = [OnFail::Fail, OnFail::Ask, OnFail::Repeat][random.random_range(0..3)];
        Self {
            needs: (0..index).filter(|_| random.random_range(0..3) == 0).collect(),
            takes: random.random_range(0..6),
            ends_in: random.random_range(0..8),
            fails: if random.random_range(0..4) == 0 { random.random_range(1..3) } else { 0 },
            attempts: random.random_range(1..3),
            on_interrupt,
            on_fail,
            items: if random.random_range(0..4) == 0 { random.random_range(1..5) } else { 0 },
            when: random.random_range(0..5) == 0,
            join: [Join::All, Join::Any, Join::Done][random.random_range(0..3)],
            continue_on_error: random.random_range(0..4) == 0,
        }
    }

    fn declared(&self, phase: usize, index: usize) -> Task {
        Task {
            needs: self.needs.iter().map(|need| task_id(phase, *need)).collect(),
            retry: Retry { attempts: self.attempts, backoff: Duration::from_secs(1) },
            on_interrupt: self.on_interrupt,
            on_fail: self.on_fail,
            for_each: (self.items > 0).then(|| ForEach {
                over: Over::List((0..self.items).map(|item| json!(10_u32.pow(item))).collect()),
                max_parallel: (self.items > 2).then_some(2),
            }),
            when: self.when.then(|| Script { source: "true".into(), reads: Reads::Parts(BTreeSet::new()), line: 0 }),
            join: self.join,
            continue_on_error: self.continue_on_error,
            ..Task::new(task_id(phase, index), Work::Run("work".into()))
        }
    }
}
