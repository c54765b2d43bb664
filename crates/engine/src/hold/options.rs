//! The options of a hold: those that Lockgate offers, and how an answer selects one.

use super::action::Action;
use super::option_ids;
use crate::id::{OptionId, PhaseId};
use crate::run::budget::BudgetScope;
use crate::run::handover::{Handover, HandoverKind};
use crate::spec::workflow::question::DecisionOption;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Unique in its hold; derived from the label.
    pub id: OptionId,
    pub label: String,
    /// Whether to ask for feedback.
    pub with_feedback: bool,
    pub action: Action,
    /// Other words that select it.
    #[serde(default)]
    pub signals: Vec<String>,
    /// Whether an answer without feedback is refused.
    #[serde(default)]
    pub requires_feedback: bool,
    #[serde(default)]
    pub pros: Option<String>,
    #[serde(default)]
    pub cons: Option<String>,
    /// For an option that repeats a phase of another workflow: all phases of that workflow, so that none of them stays skipped.
    #[serde(default)]
    pub restores: Vec<PhaseId>,
}

impl Choice {
    /// An option without feedback.
    pub fn plain(id: &str, label: &str, action: Action) -> Self {
        Self {
            id: OptionId::from(id),
            label: label.to_owned(),
            with_feedback: false,
            action,
            signals: Vec::new(),
            requires_feedback: false,
            pros: None,
            cons: None,
            restores: Vec::new(),
        }
    }

    /// Whether this is its id, ignoring case and surrounding quotes.
    pub fn has_id(&self, named: &str) -> bool {
        plain_words(self.id.as_str()) == plain_words(named)
    }

    /// Whether this is its id, its label or a signal word, ignoring case and surrounding quotes.
    pub fn is_selected_by(&self, named: &str) -> bool {
        let named = plain_words(named);
        [self.id.as_str(), &self.label]
            .into_iter()
            .chain(self.signals.iter().map(String::as_str))
            .any(|known| plain_words(known) == named)
    }
}

/// Strips quotes and white space, and converts to lower case.
pub(crate) fn plain_words(words: &str) -> String {
    words.trim().trim_matches(['"', '\'', '`', '“', '”']).trim().to_lowercase()
}

/// Ends the run; separate from the options of the question itself.
pub(super) static STOP: LazyLock<Choice> = LazyLock::new(|| Choice {
    signals: vec!["stop".to_owned()],
    ..Choice::plain(option_ids::ABORT, "Stop the run", Action::Abort)
});

/// The options of a verification: only these two.
pub fn verify_options(issues: Action, signal: Option<&str>) -> Vec<Choice> {
    vec![
        Choice {
            signals: signal.map(str::to_owned).into_iter().collect(),
            ..Choice::plain(option_ids::APPROVED, "Approve", Action::Continue)
        },
        Choice { with_feedback: true, requires_feedback: true, ..Choice::plain(option_ids::ISSUES, "Report issues", issues) },
    ]
}

pub fn decision_options(ways: &[DecisionOption]) -> Vec<Choice> {
    ways.iter().map(|way| offered(way, Action::Continue)).collect()
}

fn offered(way: &DecisionOption, action: Action) -> Choice {
    Choice { pros: way.pros.clone(), cons: way.cons.clone(), ..Choice::plain(way.id.as_str(), &way.name, action) }
}

pub fn action_options(signal: Option<&str>) -> Vec<Choice> {
    vec![Choice {
        signals: signal.map(str::to_owned).into_iter().collect(),
        ..Choice::plain(option_ids::DONE, "Done", Action::Continue)
    }]
}

pub fn authentication_options() -> Vec<Choice> {
    vec![
        Choice::plain(option_ids::DONE, "Done", Action::Rerun),
        Choice::plain(option_ids::FAILURE, "Treat it as a failure", Action::Fail),
        Choice::plain(option_ids::ABORT, "Abort", Action::Abort),
    ]
}

/// The options at an agent's checkpoint. The agent continues with the answer.
pub fn handover_options(handover: &Handover) -> Vec<Choice> {
    let in_words = |id: &str, label: &str| Choice {
        with_feedback: true,
        requires_feedback: true,
        ..Choice::plain(id, label, Action::Rerun)
    };
    let mut options = match handover.kind {
        HandoverKind::Verify => {
            vec![Choice::plain(option_ids::APPROVED, "Approve", Action::Rerun), in_words(option_ids::ISSUES, "Report issues")]
        }
        HandoverKind::Decision => {
            let ways = &handover.options;
            let offered = ways.iter().enumerate().map(|(at, way)| of_agent(way, at, ways));
            offered.chain([in_words(option_ids::ANSWER, "Answer in words")]).collect()
        }
        HandoverKind::Action => vec![Choice::plain(option_ids::DONE, "Done", Action::Rerun)],
    };
    options.push(Choice::plain(option_ids::ABORT, "Abort", Action::Abort));
    options
}

/// The options of an agent's question in a message: those that it offers, and an answer in words.
pub fn escalation_options(offered: &[String]) -> Vec<Choice> {
    with_words(offered.iter().map(String::as_str))
}

/// The options of a conflict: the choices of its participants, and another one in words.
pub fn conflict_options(choices: &[String]) -> Vec<Choice> {
    with_words(choices.iter().map(String::as_str))
}

fn with_words<'a>(labels: impl Iterator<Item = &'a str>) -> Vec<Choice> {
    // A word that selects one of our own options keeps that meaning, whatever an agent offers.
    let ours = |label: &str| {
        let word = plain_words(label);
        STOP.is_selected_by(&word) || [option_ids::ANSWER, "answer in words"].contains(&word.as_str())
    };
    let labelled = labels.enumerate().map(move |(at, label)| {
        let label = if ours(label) { format!("{label} (offered by an agent)") } else { label.to_owned() };
        Choice { with_feedback: true, ..Choice::plain(&format!("option-{}", at + 1), &label, Action::Reply) }
    });
    let in_words = Choice {
        with_feedback: true,
        requires_feedback: true,
        ..Choice::plain(option_ids::ANSWER, "Answer in words", Action::Reply)
    };
    labelled.chain([in_words]).collect()
}

/// An option of an agent. Whatever its name, choosing it only answers the agent: a word that selects one of our own options keeps
/// that meaning, and the agent's option gets another id and label.
fn of_agent(way: &DecisionOption, at: usize, ways: &[DecisionOption]) -> Choice {
    let ours = |words: &str| [option_ids::ABORT, option_ids::ANSWER, "answer in words"].contains(&plain_words(words).as_str());
    let mut choice = offered(way, Action::Rerun);
    if ours(way.id.as_str()) {
        let free = |id: &String| !ways.iter().any(|way| plain_words(way.id.as_str()) == *id);
        let ids = [
            format!("option-{}", plain_words(way.id.as_str())),
            format!("option-{}", at + 1),
            format!("agent-option-{}", at + 1),
        ];
        if let Some(id) = ids.into_iter().find(free) {
            choice.id = OptionId::new(id);
        }
    }
    if ours(&way.name) {
        choice.label = format!("{} (agent's option)", way.name);
    }
    choice
}

/// The options if commits named by an agent do not exist.
pub fn commit_options() -> Vec<Choice> {
    vec![
        Choice::plain(option_ids::CONTINUE, "Continue anyway", Action::Rerun),
        Choice::plain(option_ids::ABORT, "Abort", Action::Abort),
    ]
}

/// The options if the work of a phase is incomplete.
pub fn gap_options(phase: &PhaseId) -> Vec<Choice> {
    vec![
        Choice {
            with_feedback: true,
            ..Choice::plain(option_ids::RETRY, "Run the phase again", Action::RepeatPhase(phase.clone()))
        },
        Choice::plain(option_ids::CONTINUE, "Continue anyway", Action::CountAsDone),
        Choice::plain(option_ids::ABORT, "Abort", Action::Abort),
    ]
}

/// The options if a budget is exhausted.
pub fn budget_options(scope: &BudgetScope) -> Vec<Choice> {
    vec![
        Choice::plain(option_ids::RAISE_BUDGET, "Raise the budget and continue", Action::RaiseBudget(scope.clone())),
        Choice::plain(option_ids::COUNT_AS_DONE, "Count as done", Action::CountAsDone),
        Choice::plain(option_ids::ABORT, "Abort", Action::Abort),
    ]
}

/// The options if a task or gate failed or was interrupted.
pub fn task_options() -> Vec<Choice> {
    let choice = Choice::plain;
    vec![
        choice(option_ids::RERUN, "Run again", Action::Rerun),
        choice(option_ids::COUNT_AS_DONE, "Count as done", Action::CountAsDone),
        choice(option_ids::ABORT, "Abort", Action::Abort),
    ]
}

/// The options for tasks of a recovered run, which may already have run. The last one trusts the rest of the run, so that the other
/// options have the same numbers everywhere.
pub fn recovered_task_options() -> Vec<Choice> {
    let mut options = task_options();
    options.push(Choice::plain(option_ids::RERUN_REST, "Run these and all later tasks without asking", Action::RerunRest));
    options
}

/// The options if a gate of a phase failed. Repeating the phase with the findings comes last, so that the other options have the
/// same numbers everywhere.
pub fn gate_options(phase: &PhaseId) -> Vec<Choice> {
    let mut options = task_options();
    let repeat = Choice::plain(option_ids::REPEAT, "Run the phase again with its findings", Action::RepeatPhase(phase.clone()));
    options.push(Choice { with_feedback: true, ..repeat });
    options
}
