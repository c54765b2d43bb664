//! Checkpoints of a plan: what they ask, their options, and how long they wait.

use super::one_in;
use super::task::script;
use lockgate_engine::hold::{Action, Choice, verify_options};
use lockgate_engine::id::{PhaseId, TaskId};
use lockgate_engine::spec::workflow::question::Verify;
use lockgate_engine::spec::workflow::{Checkpoint, Deadline, OnConditionError, OnDeadline, Question, WaitSettings};
use rand::RngExt;
use rand::rngs::SmallRng;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub(in crate::simulation) struct PlannedCheckpoint {
    pub(in crate::simulation) condition: bool,
    /// Whether it has a preset answer.
    pub(in crate::simulation) preset: bool,
    pub(in crate::simulation) shows_files: bool,
    /// The phase that can be repeated: its own or an earlier one.
    pub(in crate::simulation) repeats: usize,
    /// Whether it can skip later phases.
    pub(in crate::simulation) skips: bool,
    /// Whether it is a verification, and how many of its tasks issues redo.
    pub(in crate::simulation) verify: Option<u32>,
    pub(in crate::simulation) waits: PlannedWaits,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::simulation) struct PlannedWaits {
    /// Whether a default answers it; otherwise the run waits for it.
    pub(in crate::simulation) default: bool,
    /// Whether the automatic answer repeats a phase, if that is an option.
    pub(in crate::simulation) repeats: bool,
    /// Whether the automatic answer skips phases, if that is an option.
    pub(in crate::simulation) skips: bool,
    pub(in crate::simulation) deadline: Option<PlannedDeadline>,
    pub(in crate::simulation) remind: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::simulation) enum PlannedDeadline {
    Answer,
    Escalate,
    Abort,
}

impl PlannedWaits {
    pub(super) fn random(random: &mut SmallRng) -> Self {
        let deadline = match random.random_range(0..10) {
            0 | 1 => Some(PlannedDeadline::Answer),
            2 => Some(PlannedDeadline::Escalate),
            3 => Some(PlannedDeadline::Abort),
            _ => None,
        };
        Self {
            default: one_in(random, 4),
            repeats: one_in(random, 3),
            skips: one_in(random, 3),
            deadline,
            remind: one_in(random, 5),
        }
    }

    pub(super) fn declared(&self, options: &[Choice]) -> WaitSettings {
        let repeats = |choice: &&Choice| matches!(choice.action, Action::RepeatPhase(_)) && !choice.requires_feedback;
        let skips = |choice: &&Choice| matches!(choice.action, Action::SkipPhases(_));
        let repeat = options.iter().find(repeats).filter(|_| self.repeats);
        let skip = options.iter().find(skips).filter(|_| self.skips);
        let answer = repeat.or(skip).or(options.first()).map(|choice| choice.id.clone());
        let then = |deadline: PlannedDeadline| match deadline {
            PlannedDeadline::Answer => OnDeadline::Answer(answer.clone().expect("something can be answered")),
            PlannedDeadline::Escalate => OnDeadline::Escalate(None),
            PlannedDeadline::Abort => OnDeadline::Abort,
        };
        WaitSettings {
            default: answer.clone().filter(|_| self.default),
            deadline: self.deadline.map(|deadline| Deadline { after: Duration::from_secs(3), then: then(deadline) }),
            remind: self.remind.then_some(Duration::from_secs(2)),
            ..WaitSettings::default()
        }
    }
}

impl PlannedCheckpoint {
    pub(super) fn random(index: usize, phases: usize, pipeline: bool, random: &mut SmallRng) -> Self {
        let plain = Self {
            condition: one_in(random, 4),
            preset: one_in(random, 4),
            shows_files: true,
            repeats: index,
            skips: false,
            verify: None,
            waits: PlannedWaits::default(),
        };
        if pipeline {
            return plain;
        }
        Self {
            shows_files: random.random(),
            repeats: random.random_range(0..=index),
            skips: index + 1 < phases && random.random(),
            verify: one_in(random, 4).then(|| random.random_range(1..3)),
            waits: PlannedWaits::random(random),
            ..plain
        }
    }

    /// Removes everything that is not needed to ask at all.
    pub(super) fn simplify(&mut self) {
        self.waits = PlannedWaits::default();
        (self.condition, self.preset, self.verify, self.skips) = (false, false, None, false);
    }

    pub(super) fn declared(&self, index: usize, phases: usize, redo: &[TaskId]) -> Checkpoint {
        let choice = |label: &str, action| Choice { with_feedback: true, ..Choice::plain(label, label, action) };
        let phase = |index: usize| PhaseId::new(format!("p{index}"));
        let mut options = match self.verify {
            Some(_) => verify_options(Action::Redo(redo[..1].to_vec()), None),
            None => {
                let again = phase(self.repeats.min(index));
                vec![choice("continue", Action::Continue), choice("redo", Action::RepeatPhase(again))]
            }
        };
        if self.skips && self.verify.is_none() && index + 1 < phases {
            options.push(choice("skip", Action::SkipPhases(vec![phase(index + 1)])));
        }
        Checkpoint {
            condition: self.condition.then(script),
            on_condition_error: OnConditionError::Show,
            prompt: "?".into(),
            show_files: if self.shows_files { vec!["plan.md".into()] } else { Vec::new() },
            show_diff: None,
            waits: self.waits.declared(&options),
            options,
            question: self.verify.map(|rounds| {
                Question::Verify(Verify { built: "it".into(), redo: redo[..1].to_vec(), rounds, ..Verify::default() })
            }),
        }
    }
}
