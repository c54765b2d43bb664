//! What may be answered to a hold, and what each answer does.

use crate::formats::handover::{Handover, HandoverKind};
use crate::id::{OptionId, PhaseId, TaskId};
use crate::run::budget::BudgetScope;
use crate::spec::workflow::question::Way;
use serde::{Deserialize, Serialize};

/// Something that may be answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Unique in its hold; made from the label.
    pub id: OptionId,
    /// What people read.
    pub label: String,
    /// Whether feedback is asked for.
    pub with_feedback: bool,
    /// What choosing it does.
    pub action: Action,
    /// Further words that mean it.
    #[serde(default)]
    pub signals: Vec<String>,
    /// Whether it means nothing without words of the person.
    #[serde(default)]
    pub needs_words: bool,
}

/// What choosing an option does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The run goes on.
    Continue,
    /// The run goes back to this phase.
    RepeatPhase(PhaseId),
    /// These later phases are passed over.
    SkipPhases(Vec<PhaseId>),
    /// The run ends here.
    Abort,
    /// What was cut off or failed runs again.
    Rerun,
    /// What was cut off or failed counts as done.
    CountAsDone,
    /// As much again may be used under this budget.
    RaiseBudget(BudgetScope),
    /// These tasks are done again, with what was said at hand; then it is asked again.
    Redo(Vec<TaskId>),
    /// What it is about has failed.
    Fail,
}

impl Action {
    /// The word for it in files and records.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::RepeatPhase(_) => "repeat_phase",
            Self::SkipPhases(_) => "skip_phases",
            Self::Abort => "abort",
            Self::Rerun => "rerun",
            Self::CountAsDone => "count_as_done",
            Self::RaiseBudget(_) => "raise_budget",
            Self::Redo(_) => "redo",
            Self::Fail => "fail",
        }
    }

    /// Whether it lets the run go past what was shown, so that what was shown must still be so.
    pub fn goes_on(&self) -> bool {
        match self {
            Self::Continue | Self::SkipPhases(_) | Self::CountAsDone => true,
            Self::RepeatPhase(_) | Self::Abort | Self::Rerun | Self::RaiseBudget(_) | Self::Redo(_) | Self::Fail => false,
        }
    }
}

impl Choice {
    /// Something that may be answered without further words.
    pub fn plain(id: &str, label: &str, action: Action) -> Self {
        Self {
            id: OptionId::from(id),
            label: label.to_owned(),
            with_feedback: false,
            action,
            signals: Vec::new(),
            needs_words: false,
        }
    }

    /// Whether this is its id, whatever the case and the quotes around it.
    pub fn is_called(&self, named: &str) -> bool {
        plain_words(self.id.as_str()) == plain_words(named)
    }

    /// Whether somebody means it: by its id, its label or another word for it, whatever the case and the quotes around it.
    pub fn is_meant_by(&self, named: &str) -> bool {
        let named = plain_words(named);
        [self.id.as_str(), &self.label]
            .into_iter()
            .chain(self.signals.iter().map(String::as_str))
            .any(|known| plain_words(known) == named)
    }
}

/// Words without quotes and white space around them, in lower case.
pub(crate) fn plain_words(words: &str) -> String {
    words.trim().trim_matches(['"', '\'', '`', '“', '”']).trim().to_lowercase()
}

/// What may be answered where a person verifies: nothing but these two.
pub fn verify_options(issues: Action, signal: Option<&str>) -> Vec<Choice> {
    vec![
        Choice {
            signals: signal.map(str::to_owned).into_iter().collect(),
            ..Choice::plain("approved", "Approve", Action::Continue)
        },
        Choice { with_feedback: true, needs_words: true, ..Choice::plain("issues", "Report issues", issues) },
    ]
}

/// What may be answered where a person decides which way to go.
pub fn decision_options(ways: &[Way]) -> Vec<Choice> {
    ways.iter().map(|way| Choice::plain(way.id.as_str(), &way.name, Action::Continue)).collect()
}

/// What may be answered where a person does what no program can do.
pub fn action_options(signal: Option<&str>) -> Vec<Choice> {
    vec![Choice { signals: signal.map(str::to_owned).into_iter().collect(), ..Choice::plain("done", "Done", Action::Continue) }]
}

/// What may be answered where a login is missing.
pub fn authentication_options() -> Vec<Choice> {
    vec![
        Choice::plain("done", "Done", Action::Rerun),
        Choice::plain("failure", "It is another failure", Action::Fail),
        Choice::plain("abort", "Abort", Action::Abort),
    ]
}

/// What may be answered where an agent reached a checkpoint: what it asks for, and it goes on with the answer.
pub fn handover_options(handover: &Handover) -> Vec<Choice> {
    let in_words =
        |id: &str, label: &str| Choice { with_feedback: true, needs_words: true, ..Choice::plain(id, label, Action::Rerun) };
    let mut options = match handover.kind {
        HandoverKind::Verify => {
            vec![Choice::plain("approved", "Approve", Action::Rerun), in_words("issues", "Report issues")]
        }
        HandoverKind::Decision => {
            let ways = named_ways(&handover.details);
            let named = ways.iter().map(|(id, name)| Choice::plain(id, name, Action::Rerun));
            named.chain([in_words("answer", "Answer in words")]).collect()
        }
        HandoverKind::Action => vec![Choice::plain("done", "Done", Action::Rerun)],
    };
    options.push(Choice::plain("abort", "Abort", Action::Abort));
    options
}

/// So many options are taken from what an agent wrote.
const MOST_WAYS: usize = 20;

/// The options that an agent lists: `1. option-id: name`, also as points and in bold.
fn named_ways(details: &str) -> Vec<(String, String)> {
    let mut ways: Vec<(String, String)> = Vec::new();
    for line in details.lines() {
        let line = line.trim();
        let Some(rest) = line.strip_prefix(['-', '*']).map(str::trim_start).or_else(|| numbered(line)) else { continue };
        let rest = rest.replace("**", "").replace('`', "");
        let Some((id, name)) = rest.split_once(':') else { continue };
        let (id, name) = (id.trim().trim_matches(['[', ']', '(', ')']), name.trim());
        let fits = !id.is_empty() && id.len() <= 40 && id.chars().all(|sign| sign.is_alphanumeric() || "-_.".contains(sign));
        // What an agent calls its options must not take the place of ours, nor of their numbers.
        let ours = |words: &str| ["abort", "answer", "answer in words", "pros", "cons"].contains(&plain_words(words).as_str());
        let reserved = ours(id) || ours(name) || id.bytes().all(|byte| byte.is_ascii_digit());
        if fits && !reserved && !name.is_empty() && !ways.iter().any(|(known, _)| known == id) && ways.len() < MOST_WAYS {
            ways.push((id.to_owned(), name.to_owned()));
        }
    }
    ways
}

/// What stands behind the number of a list's point.
fn numbered(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
    if rest.len() == line.len() {
        return None;
    }
    rest.strip_prefix(['.', ')']).map(str::trim_start)
}

/// What may be answered where commits are missing that an agent named.
pub fn commit_options() -> Vec<Choice> {
    vec![Choice::plain("go-on", "Go on all the same", Action::Rerun), Choice::plain("abort", "Abort", Action::Abort)]
}

/// What may be answered where the work of a phase is not whole.
pub fn gap_options(phase: &PhaseId) -> Vec<Choice> {
    vec![
        Choice { with_feedback: true, ..Choice::plain("retry", "Run the phase again", Action::RepeatPhase(phase.clone())) },
        Choice::plain("continue", "Continue anyway", Action::CountAsDone),
        Choice::plain("abort", "Abort", Action::Abort),
    ]
}

/// What may be answered where a budget is used up.
pub fn budget_options(scope: &BudgetScope) -> Vec<Choice> {
    vec![
        Choice::plain("go-on", "Go on with as much again", Action::RaiseBudget(scope.clone())),
        Choice::plain("count-as-done", "Count as done", Action::CountAsDone),
        Choice::plain("abort", "Abort", Action::Abort),
    ]
}

/// What may be answered where a task or gate failed or was cut off.
pub fn task_options() -> Vec<Choice> {
    let choice = Choice::plain;
    vec![
        choice("rerun", "Run again", Action::Rerun),
        choice("count-as-done", "Count as done", Action::CountAsDone),
        choice("abort", "Abort", Action::Abort),
    ]
}

/// What may be answered where a gate of a phase failed: what it found may be for those who did the work. Last, so that the others have the same
/// numbers everywhere.
pub fn gate_options(phase: &PhaseId) -> Vec<Choice> {
    let mut options = task_options();
    let repeat = Choice::plain("repeat", "Run the phase again with what it found", Action::RepeatPhase(phase.clone()));
    options.push(Choice { with_feedback: true, ..repeat });
    options
}
