//! Tasks of a plan: work that fails, loops and fans out, with questions in between.

use super::checkpoint::{PlannedDeadline, PlannedWaits};
use super::{one_in, task_id};
use lockgate_engine::hold::{Action, Choice, action_options, decision_options, verify_options};
use lockgate_engine::id::{OptionId, TaskId};
use lockgate_engine::spec::workflow::question::{Action as Deed, Check, Decision, DecisionOption, Verify};
use lockgate_engine::spec::workflow::{
    Checkpoint, ForEach, ItemSource, Join, OnConditionError, OnFail, OnInterrupt, Question, Reads, Retry, Script, Task, Until,
    UntilCondition, Work,
};
use rand::RngExt;
use rand::rngs::SmallRng;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub(in crate::simulation) struct PlannedTask {
    /// The earlier tasks that it needs, by number.
    pub(in crate::simulation) needs: BTreeSet<usize>,
    /// How many polls it takes.
    pub(in crate::simulation) takes: u32,
    /// How many polls it takes to end once it is asked to.
    pub(in crate::simulation) ends_in: u32,
    /// How many of its first attempts fail.
    pub(in crate::simulation) fails: u32,
    /// In how many iterations of its phase they fail.
    pub(in crate::simulation) fails_in: u32,
    pub(in crate::simulation) attempts: u32,
    pub(in crate::simulation) backoff: Duration,
    pub(in crate::simulation) on_interrupt: OnInterrupt,
    pub(in crate::simulation) on_fail: OnFail,
    /// How many items it fans out over; not at all if zero.
    pub(in crate::simulation) items: u32,
    /// How many of them may run in parallel.
    pub(in crate::simulation) items_parallel: Option<u32>,
    pub(in crate::simulation) when: bool,
    pub(in crate::simulation) join: Join,
    pub(in crate::simulation) continue_on_error: bool,
    /// The maximum number of rounds, and how many attempts ask for another one.
    pub(in crate::simulation) until: Option<(u32, u32)>,
    pub(in crate::simulation) question: Option<PlannedQuestion>,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::simulation) struct PlannedQuestion {
    pub(in crate::simulation) kind: QuestionKind,
    pub(in crate::simulation) waits: PlannedWaits,
    pub(in crate::simulation) shows_files: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::simulation) enum QuestionKind {
    /// Issues redo these earlier tasks, by number, up to this often.
    Verify {
        redo: usize,
        rounds: u32,
    },
    Decision,
    /// Whether a check confirms that it was done.
    Action {
        check: bool,
    },
}

impl Default for PlannedTask {
    fn default() -> Self {
        Self {
            needs: BTreeSet::new(),
            takes: 1,
            ends_in: 1,
            fails: 0,
            fails_in: 0,
            attempts: 1,
            backoff: Duration::ZERO,
            on_interrupt: OnInterrupt::Rerun,
            on_fail: OnFail::Fail,
            items: 0,
            items_parallel: None,
            when: false,
            join: Join::All,
            continue_on_error: false,
            until: None,
            question: None,
        }
    }
}

/// Each removes one thing from a task.
pub(super) const SMALLER: &[fn(&mut PlannedTask)] = &[
    |task| task.fails = 0,
    |task| task.items = 0,
    |task| task.items_parallel = None,
    |task| task.when = false,
    |task| task.until = None,
    |task| task.question = None,
    |task| task.needs.clear(),
    |task| task.join = Join::All,
    |task| task.continue_on_error = false,
    |task| task.on_interrupt = OnInterrupt::Rerun,
    |task| task.attempts = 1,
    |task| {
        if let Some(question) = &mut task.question {
            question.waits = PlannedWaits::default();
        }
    },
];

impl PlannedTask {
    pub(super) fn random(index: usize, pipeline: bool, random: &mut SmallRng) -> Self {
        let on_interrupt = [OnInterrupt::Rerun, OnInterrupt::Ask, OnInterrupt::Fail][random.random_range(0..3)];
        let on_fail = [OnFail::Fail, OnFail::Ask, OnFail::Repeat][random.random_range(0..3)];
        let question = (!pipeline && index > 0 && one_in(random, 4)).then(|| PlannedQuestion::random(index, random));
        let mut needs: BTreeSet<usize> = (0..index).filter(|_| one_in(random, 3)).collect();
        // A question is about earlier work.
        if question.is_some() {
            needs.insert(index - 1);
        }
        let task = Self {
            needs,
            takes: if one_in(random, 6) { random.random_range(20..50) } else { random.random_range(0..8) },
            ends_in: random.random_range(0..8),
            fails: if one_in(random, 3) { random.random_range(1..4) } else { 0 },
            fails_in: random.random_range(1..3),
            attempts: random.random_range(1..4),
            backoff: [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(60)][random.random_range(0..3)],
            on_interrupt,
            on_fail,
            items: if one_in(random, 4) { random.random_range(1..4) } else { 0 },
            items_parallel: one_in(random, 2).then(|| random.random_range(1..=2)),
            when: one_in(random, 5),
            join: [Join::All, Join::All, Join::Any, Join::Done][random.random_range(0..4)],
            continue_on_error: one_in(random, 4),
            until: one_in(random, 6).then(|| (random.random_range(1..4), random.random_range(0..4))),
            question: None,
        };
        match question {
            // A question neither fails nor fans out.
            Some(question) => Self {
                needs: task.needs,
                when: task.when,
                join: task.join,
                on_interrupt: OnInterrupt::Rerun,
                question: Some(question),
                ..Self::default()
            },
            None => task,
        }
    }

    pub(super) fn in_phase(&self, phase: usize, index: usize) -> Task {
        let work = match &self.question {
            Some(question) => Work::Checkpoint(Box::new(question.declared(phase, index))),
            None => Work::Run("work".into()),
        };
        self.declared(phase, index, work)
    }

    pub(super) fn declared(&self, phase: usize, index: usize, work: Work) -> Task {
        Task {
            needs: self.needs.iter().map(|need| task_id(phase, *need)).collect(),
            retry: Retry { attempts: self.attempts, backoff: self.backoff },
            on_interrupt: self.on_interrupt,
            on_fail: self.on_fail,
            for_each: (self.items > 0).then(|| ForEach {
                over: ItemSource::List((0..self.items).map(|item| json!(10_u32.pow(item))).collect()),
                max_parallel: self.items_parallel,
            }),
            when: self.when.then(script),
            join: self.join,
            continue_on_error: self.continue_on_error,
            until: self.until.map(|(limit, _)| Until {
                condition: UntilCondition::Condition(script()),
                limit,
                timeout: None,
                checks: Vec::new(),
            }),
            ..Task::new(task_id(phase, index), work)
        }
    }
}

pub(super) fn script() -> Script {
    Script { source: "true".into(), reads: Reads::Parts(BTreeSet::new()), line: 0 }
}

impl PlannedQuestion {
    fn random(index: usize, random: &mut SmallRng) -> Self {
        let kind = match random.random_range(0..4) {
            0 | 1 => QuestionKind::Verify { redo: random.random_range(0..index), rounds: random.random_range(1..4) },
            2 => QuestionKind::Decision,
            _ => QuestionKind::Action { check: random.random() },
        };
        let mut waits = PlannedWaits::random(random);
        // A default cannot give the feedback that issues require.
        waits.repeats = false;
        // Only a person can report a manual action as done.
        if matches!(kind, QuestionKind::Action { .. }) {
            waits.default = false;
            waits.deadline = waits.deadline.map(|_| PlannedDeadline::Escalate);
        }
        Self { kind, waits, shows_files: one_in(random, 3) }
    }

    fn declared(&self, phase: usize, index: usize) -> Checkpoint {
        let (question, options) = match self.kind {
            QuestionKind::Verify { redo, rounds } => {
                let redo: Vec<TaskId> = vec![task_id(phase, redo.min(index.saturating_sub(1)))];
                let verify = Verify { built: "it".into(), redo: redo.clone(), rounds, ..Verify::default() };
                (Question::Verify(verify), verify_options(Action::Redo(redo), None))
            }
            QuestionKind::Decision => {
                let way = |id: &str| DecisionOption { id: OptionId::from(id), name: id.to_owned(), pros: None, cons: None };
                let ways = vec![way("left"), way("right")];
                let options: Vec<Choice> = decision_options(&ways);
                (Question::Decision(Decision { question: "?".into(), context: None, options: ways }), options)
            }
            QuestionKind::Action { check } => {
                let check = check.then(|| Check { run: "true".into(), timeout: None, description: None });
                (Question::Action(Deed { needed: "it".into(), check, ..Deed::default() }), action_options(None))
            }
        };
        Checkpoint {
            condition: None,
            on_condition_error: OnConditionError::Show,
            prompt: "?".into(),
            show_files: if self.shows_files { vec!["plan.md".into()] } else { Vec::new() },
            show_diff: None,
            waits: self.waits.declared(&options),
            options,
            question: Some(question),
        }
    }
}
