//! The full question of a hold, and its text for people.

use super::option_ids;
use super::{Choice, HoldKind};
use crate::id::OptionId;
use crate::run::handover::{Handover, HandoverKind};
use crate::spec::workflow::Question;
use crate::spec::workflow::question::{Action, Decision, DecisionOption, Verify};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The full question of a hold, and the progress of the run when it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldQuestion {
    /// The title of the task or phase that asks.
    pub task: String,
    /// The number of tasks that were done.
    pub done: u32,
    /// The number of tasks.
    pub total: u32,
    pub topic: Topic,
    /// A word that is accepted in addition to `approved` or `done`.
    #[serde(default)]
    pub signal: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// A question of the workflow, rendered.
    Question(Question),
    Authentication(Authentication),
    /// The question of an agent at a checkpoint.
    Handover(Box<Handover>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authentication {
    /// The attempted command, if known.
    pub attempted: String,
    /// The line of output that shows it.
    pub error: String,
    /// What a person has to do, in order.
    pub steps: Vec<String>,
    /// How Lockgate checks that it was done, in words.
    pub verified_by: String,
    /// The message of the failure, if a person treats it as one.
    pub message: String,
    pub tail: String,
}

impl Topic {
    pub fn kind(&self) -> HoldKind {
        match self {
            Self::Question(question) => HoldKind::of(Some(question)),
            Self::Authentication(_) => HoldKind::Authentication,
            Self::Handover(handover) => match handover.kind {
                HandoverKind::Verify => HoldKind::Verify,
                HandoverKind::Decision => HoldKind::Decision,
                HandoverKind::Action => HoldKind::Action,
            },
        }
    }
}

impl HoldQuestion {
    /// The text of the question, the same in a terminal and elsewhere.
    pub fn text(&self) -> String {
        let select = self.select();
        let (title, action) = match self.topic.kind() {
            HoldKind::Verify => ("Verification Required", "Type \"approved\" or describe issues"),
            HoldKind::Decision => ("Decision Required", select.as_str()),
            HoldKind::Authentication => ("Authentication Required", "Type \"done\" when authenticated"),
            HoldKind::Action
            | HoldKind::Checkpoint
            | HoldKind::Interrupted
            | HoldKind::Failed
            | HoldKind::Gaps
            | HoldKind::Budget
            | HoldKind::Handover
            | HoldKind::Escalation
            | HoldKind::Conflict => ("Action Required", "Type \"done\" when complete"),
        };
        let agreed = self.signal.as_deref().filter(|word| ![option_ids::APPROVED, option_ids::DONE].contains(word));
        let action = match (agreed, action.split_once("\" ")) {
            (Some(word), Some((before, after))) => format!("{before}\" (or \"{word}\") {after}"),
            (Some(_), None) | (None, _) => action.to_owned(),
        };
        format!("CHECKPOINT: {title}\n\n{}\n{}\n---\nYOUR ACTION: {action}\n---\n", self.progress(), self.details())
    }

    /// The text for a prompt that lists the options itself: without heading and options.
    pub fn prompt(&self) -> String {
        let details = match &self.topic {
            Topic::Question(Question::Decision(decision)) => self::decision(decision),
            Topic::Question(Question::Verify(_) | Question::Action(_)) | Topic::Authentication(_) | Topic::Handover(_) => {
                self.details()
            }
        };
        format!("{}\n{details}", self.progress())
    }

    /// The pros and cons of a decision's option.
    pub fn pros_and_cons(&self, option: &OptionId) -> Vec<String> {
        let Topic::Question(Question::Decision(decision)) = &self.topic else { return Vec::new() };
        decision.options.iter().find(|way| way.id == *option).map(pros_and_cons).unwrap_or_default()
    }

    /// The words that select an option of a decision.
    fn select(&self) -> String {
        match &self.topic {
            Topic::Question(Question::Decision(decision)) => {
                let ids: Vec<&str> = decision.options.iter().map(|way| way.id.as_str()).collect();
                format!("Select: {}", ids.join(" or "))
            }
            Topic::Question(Question::Verify(_) | Question::Action(_)) | Topic::Authentication(_) | Topic::Handover(_) => {
                "Select one of the options, or answer in words".to_owned()
            }
        }
    }

    /// The progress, and the task that asks.
    fn progress(&self) -> String {
        let (done, total, task) = match &self.topic {
            // The agent counts the tasks of its own plan.
            Topic::Handover(handover) if handover.total > 0 => (handover.done, handover.total, &handover.current.name),
            Topic::Question(_) | Topic::Authentication(_) | Topic::Handover(_) => (self.done, self.total, &self.task),
        };
        format!("Progress: {done}/{total} tasks complete\nTask: {task}\n")
    }

    /// The part between the progress and the requested action.
    pub fn details(&self) -> String {
        match &self.topic {
            Topic::Question(Question::Verify(verify)) => verification(verify),
            Topic::Question(Question::Decision(decision)) => with_options(decision),
            Topic::Question(Question::Action(action)) => self::action(action),
            Topic::Authentication(missing) => authentication(missing),
            Topic::Handover(handover) => {
                let mut text = handover.details.trim().to_owned();
                if !handover.awaiting.trim().is_empty() {
                    let _ = write!(text, "\n\nAwaiting: {}", handover.awaiting.trim());
                }
                text.push('\n');
                text
            }
        }
    }

    /// The input that is needed from a person.
    pub fn awaiting(&self) -> String {
        match &self.topic {
            Topic::Question(Question::Verify(_)) => "\"approved\", or the issues found".to_owned(),
            Topic::Question(Question::Decision(decision)) => {
                let ids: Vec<&str> = decision.options.iter().map(|way| way.id.as_str()).collect();
                format!("One of: {}", ids.join(", "))
            }
            Topic::Question(Question::Action(action)) => format!("{} Then \"done\".", full_stop(&action.needed)),
            Topic::Authentication(_) => "\"done\" when authenticated".to_owned(),
            Topic::Handover(handover) => handover.awaiting.clone(),
        }
    }
}

fn full_stop(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

fn verification(verify: &Verify) -> String {
    let mut text = format!("Built: {}\n", verify.built.trim());
    if !verify.steps.is_empty() {
        text.push_str("\nHow to verify:\n");
        numbered(&mut text, &verify.steps);
    }
    text
}

fn decision(decision: &Decision) -> String {
    let mut text = format!("Decision needed: {}\n", decision.question.trim());
    if let Some(context) = &decision.context {
        let _ = write!(text, "\nContext: {}\n", context.trim());
    }
    text
}

fn with_options(decision: &Decision) -> String {
    let options =
        decision.options.iter().map(|way| (way.id.as_str(), way.name.as_str(), way.pros.as_deref(), way.cons.as_deref()));
    format!("{}\n{}", self::decision(decision), options_text(options))
}

/// Options in the layout of the protocol. Continuation lines are indented, so that none looks like another option.
fn options_text<'a>(options: impl Iterator<Item = (&'a str, &'a str, Option<&'a str>, Option<&'a str>)>) -> String {
    let within = |text: &str| text.trim().replace('\n', "\n      ");
    let mut text = "Options:\n".to_owned();
    for (index, (id, name, pros, cons)) in options.enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let _ = writeln!(text, "{}. {id}: {}", index + 1, within(name));
        for (label, said) in [("Pros", pros), ("Cons", cons)] {
            if let Some(said) = said {
                let _ = writeln!(text, "   {label}: {}", within(said));
            }
        }
    }
    text
}

/// The options of a hold in the layout of the protocol.
pub fn offered_text(options: &[Choice]) -> String {
    options_text(
        options.iter().map(|choice| (choice.id.as_str(), choice.label.as_str(), choice.pros.as_deref(), choice.cons.as_deref())),
    )
}

fn pros_and_cons(way: &DecisionOption) -> Vec<String> {
    let said = [("Pros", &way.pros), ("Cons", &way.cons)];
    said.into_iter().filter_map(|(label, said)| Some(format!("{label}: {}", said.as_ref()?.trim()))).collect()
}

fn action(action: &Action) -> String {
    let mut text = String::new();
    if let Some(automated) = &action.automated {
        let _ = write!(text, "I automated: {}\n\n", automated.trim());
    }
    let _ = writeln!(text, "Need your help with: {}", action.needed.trim());
    if let Some(instructions) = &action.instructions {
        let _ = write!(text, "\nInstructions:\n{}\n", instructions.trim());
    }
    if let Some(check) = &action.check {
        let _ = write!(text, "\nI'll verify after: {}\n", check.shown().trim());
    }
    text
}

fn authentication(missing: &Authentication) -> String {
    let mut text = format!("Attempted: {}\nError: {}\n\nWhat you need to do:\n", missing.attempted.trim(), missing.error.trim());
    numbered(&mut text, &missing.steps);
    let _ = write!(text, "\nI'll verify: {}\n", missing.verified_by.trim());
    text
}

fn numbered(text: &mut String, steps: &[String]) {
    for (index, step) in steps.iter().enumerate() {
        let _ = writeln!(text, "  {}. {}", index + 1, step.trim().replace('\n', "\n     "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::workflow::question::Check;

    fn asked(topic: Topic) -> String {
        HoldQuestion { task: "Deploy".into(), done: 2, total: 8, topic, signal: None }.text()
    }

    #[test]
    fn the_resume_signal_is_shown() {
        let topic = Topic::Question(Question::Verify(Verify::default()));
        let asked = HoldQuestion { task: "Deploy".into(), done: 2, total: 8, topic, signal: Some("token ready".into()) };
        let text = asked.text();
        assert!(text.contains("YOUR ACTION: Type \"approved\" (or \"token ready\") or describe issues\n"), "{text}");
        let same = HoldQuestion { signal: Some("approved".into()), ..asked }.text();
        assert!(same.contains("YOUR ACTION: Type \"approved\" or describe issues\n"), "{same}");
    }

    #[test]
    fn a_verification_is_rendered_as_the_protocol_specifies() {
        let verify = Verify { built: "the dashboard".into(), steps: vec!["open it".into(), "look".into()], ..Verify::default() };
        assert_eq!(
            asked(Topic::Question(Question::Verify(verify))),
            "CHECKPOINT: Verification Required\n\nProgress: 2/8 tasks complete\nTask: Deploy\n\nBuilt: the dashboard\n\n\
             How to verify:\n  1. open it\n  2. look\n\n---\nYOUR ACTION: Type \"approved\" or describe issues\n---\n"
        );
    }

    #[test]
    fn a_decision_is_rendered_as_the_protocol_specifies() {
        let way = |id: &str, name: &str, cons: Option<&str>| DecisionOption {
            id: OptionId::from(id),
            name: name.into(),
            pros: Some("simple".into()),
            cons: cons.map(str::to_owned),
        };
        let decision = Decision {
            question: "Which database?".into(),
            context: Some("It stays.".into()),
            options: vec![way("sqlite", "SQLite", Some("one machine")), way("postgres", "PostgreSQL", None)],
        };
        assert_eq!(
            asked(Topic::Question(Question::Decision(decision))),
            "CHECKPOINT: Decision Required\n\nProgress: 2/8 tasks complete\nTask: Deploy\n\nDecision needed: Which database?\n\n\
             Context: It stays.\n\nOptions:\n1. sqlite: SQLite\n   Pros: simple\n   Cons: one machine\n\n\
             2. postgres: PostgreSQL\n   Pros: simple\n\n---\nYOUR ACTION: Select: sqlite or postgres\n---\n"
        );
    }

    #[test]
    fn the_prompt_text_omits_headings_and_options_that_the_caller_renders() {
        let way = |id: &str| DecisionOption {
            id: OptionId::from(id),
            name: id.to_uppercase(),
            pros: Some(format!("{id} is cheap")),
            cons: None,
        };
        let decision = Decision { question: "Which?".into(), context: None, options: vec![way("one"), way("two")] };
        let topic = Topic::Question(Question::Decision(decision));
        let asked = HoldQuestion { task: "Deploy".into(), done: 2, total: 8, topic, signal: None };
        assert_eq!(asked.prompt(), "Progress: 2/8 tasks complete\nTask: Deploy\n\nDecision needed: Which?\n");
        assert_eq!(asked.pros_and_cons(&OptionId::from("two")), ["Pros: two is cheap"]);
        assert!(asked.text().contains("YOUR ACTION: Select: one or two\n"), "{}", asked.text());
    }

    #[test]
    fn an_action_is_rendered_as_the_protocol_specifies() {
        let action = Action {
            automated: Some("made the account".into()),
            needed: "the link in the mail".into(),
            instructions: Some("Click it.".into()),
            check: Some(Check { run: "mail verified".into(), timeout: None, description: None }),
        };
        assert_eq!(
            asked(Topic::Question(Question::Action(action))),
            "CHECKPOINT: Action Required\n\nProgress: 2/8 tasks complete\nTask: Deploy\n\nI automated: made the account\n\n\
             Need your help with: the link in the mail\n\nInstructions:\nClick it.\n\nI'll verify after: mail verified\n\n\
             ---\nYOUR ACTION: Type \"done\" when complete\n---\n"
        );
    }

    #[test]
    fn an_auth_gate_is_rendered_as_the_protocol_specifies() {
        let missing = Authentication {
            attempted: "vercel --yes".into(),
            error: "Not authenticated".into(),
            steps: vec!["Run: vercel login".into(), "Complete browser authentication".into()],
            verified_by: "vercel whoami returns your account".into(),
            message: String::new(),
            tail: String::new(),
        };
        assert_eq!(
            asked(Topic::Authentication(missing)),
            "CHECKPOINT: Authentication Required\n\nProgress: 2/8 tasks complete\nTask: Deploy\n\nAttempted: vercel --yes\n\
             Error: Not authenticated\n\nWhat you need to do:\n  1. Run: vercel login\n  2. Complete browser authentication\n\n\
             I'll verify: vercel whoami returns your account\n\n---\nYOUR ACTION: Type \"done\" when authenticated\n---\n"
        );
    }
}
