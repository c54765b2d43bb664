//! Checkpoints: questions to a person.

use super::Checker;
use super::diff::{SHOW_DIFF_ABOUT, SHOW_DIFF_SHAPES};
use super::fields::{Format, Key, Shape, words};
use super::options::{OPTION, Order, default_choices};
use super::question::{
    ACTION, ACTION_ABOUT, BLOCKING_ABOUT, DEADLINE_ABOUT, DECISION, DECISION_ABOUT, DEFAULT_ABOUT, ON_DEADLINE_ABOUT,
    ON_DEADLINE_SHAPES, QUESTIONS, REMIND_ABOUT, SIGNAL_ABOUT, VERIFY, VERIFY_ABOUT, options as question_options,
    question_checkpoint,
};
use crate::hold::Action;
use crate::id::PhaseId;
use crate::spec::code::ProblemCode;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{Checkpoint, OnConditionError};
use crate::template::Roots;

const ON_CONDITION_ERROR: [(&str, OnConditionError); 2] = [("show", OnConditionError::Show), ("skip", OnConditionError::Skip)];

pub(super) static CHECKPOINT: Format = Format {
    name: "checkpoint",
    what: "a checkpoint",
    known: &[
        Key::optional(
            "approval_required",
            Shape::Boolean,
            "`true` alone asks \"Continue with next phase?\"; `false` alone disables the checkpoint.",
        ),
        Key::valued("condition", Shape::Text, "A JavaScript expression. The checkpoint is shown only if it is true."),
        Key::optional(
            "on_condition_error",
            Shape::Words(&words(&ON_CONDITION_ERROR)),
            "What happens if the condition cannot be evaluated: the checkpoint is shown with the error, or skipped with a warning.",
        )
        .default("show"),
        Key::optional("prompt", Shape::Text, "The question; a template.").default(DEFAULT_PROMPT),
        Key::optional("show_files", Shape::Texts, "Files and directories that the decision is about, in the output directory or under the root; templates."),
        Key::optional("show_diff", Shape::AnyOf(&SHOW_DIFF_SHAPES), SHOW_DIFF_ABOUT),
        Key::optional("with_feedback", Shape::Boolean, "Whether options ask for feedback by default.").default("false"),
        Key::optional("options", Shape::List(&OPTION, 1), "The possible answers; Continue and Abort if absent."),
        Key::valued("verify", Shape::Map(&VERIFY), VERIFY_ABOUT),
        Key::valued("decision", Shape::Map(&DECISION), DECISION_ABOUT),
        Key::valued("action", Shape::Map(&ACTION), ACTION_ABOUT),
        Key::optional("resume_signal", Shape::Filled, SIGNAL_ABOUT),
        Key::optional("blocking", Shape::Boolean, BLOCKING_ABOUT).default("true"),
        Key::optional("default", Shape::Filled, DEFAULT_ABOUT),
        Key::optional("deadline", Shape::Duration, DEADLINE_ABOUT),
        Key::optional("remind", Shape::Duration, REMIND_ABOUT),
        Key::optional("on_deadline", Shape::AnyOf(&ON_DEADLINE_SHAPES), ON_DEADLINE_ABOUT).default("escalate"),
    ],
    later: &["type", "gate", "reminders", "approvers", "approvals", "on_timeout", "timeout", "policy", "id", "name"],
    rule: None,
};

/// The prompt of a checkpoint that does not set one.
pub const DEFAULT_PROMPT: &str = "Continue with next phase?";

impl Checker<'_, '_> {
    /// The checkpoint of a phase, unless it is disabled.
    pub(super) fn checkpoint(&mut self, node: &Node<'_>, order: Order<'_>) -> Option<Checkpoint> {
        if let Content::Scalar(_) = &*node.content {
            self.wrong_kind(node, "a checkpoint", "a map of keys and values")
                .help("write `checkpoint: { approval_required: true }`");
            return None;
        }
        let fields = self.fields(node, &CHECKPOINT)?;
        let approval_required = fields.get("approval_required").and_then(|node| self.boolean(node, "`approval_required`"));
        let condition = fields.get("condition").and_then(|node| self.condition(node));
        let on_condition_error =
            fields.get("on_condition_error").and_then(|node| self.word(node, "`on_condition_error`", &ON_CONDITION_ERROR));
        let prompt = fields.get("prompt").and_then(|node| self.template(node, "`prompt`", Roots::Checkpoint));
        let show_files = fields.get("show_files").map(|node| self.paths(node, "the file to show", Roots::Checkpoint));
        let show_files = show_files.unwrap_or_default();
        let show_diff = fields.get("show_diff").and_then(|node| self.show_diff(node, Roots::Checkpoint));
        let with_feedback = fields.get("with_feedback").and_then(|node| self.boolean(node, "`with_feedback`")).unwrap_or(false);
        let options = fields.get("options").map(|node| self.choices(node, with_feedback, order));

        if let Some(span) = fields.key("condition")
            && fields.get("condition").is_none()
        {
            self.error(ProblemCode::EmptyCondition, span, "the condition is empty")
                .help("remove `condition` to always show the checkpoint");
        }
        let question = self.question(&fields, Roots::Checkpoint);
        if QUESTIONS.iter().any(|kind| fields.key(kind).is_some()) {
            for key in ["prompt", "options", "with_feedback"] {
                if let Some(span) = fields.key(key) {
                    let message = format!("`{key}` does not apply here: the question has its own");
                    self.error(ProblemCode::ConflictingKeys, span, message).help("remove it");
                }
            }
            let here = PhaseId::from(order.ids[order.here]);
            let question = question?;
            if let Some(node) = fields.get("verify")
                && let Content::Map(entries) = &*node.content
            {
                for entry in entries.iter().filter(|entry| &*entry.key == "redo") {
                    let message =
                        format!("`{}` applies to verifications among tasks; here, issues repeat the whole phase", entry.key);
                    self.report.warning(ProblemCode::UnusedKey, &entry.key_span, message).help("remove it");
                }
            }
            let options = question_options(&question, &Action::RepeatPhase(here), self.signal(&fields).as_deref());
            let waits = self.waits(&fields, &options, Some(&question));
            let plain = question_checkpoint(question, options, show_files, waits);
            let on_condition_error = on_condition_error.unwrap_or_default();
            return Some(Checkpoint { condition, on_condition_error, show_diff, ..plain });
        }
        if let Some(span) = fields.key("resume_signal") {
            let message = "`resume_signal` belongs to `verify` and `action`";
            self.report.warning(ProblemCode::UnusedKey, span, message).help("remove it");
        }
        let custom = prompt.is_some() || options.is_some();
        let shows = fields.get("show_files").is_some() || show_diff.is_some();
        let says_something = custom || shows || fields.get("condition").is_some();
        let asks = match approval_required {
            Some(true) => true,
            Some(false) => custom,
            None => says_something,
        };
        if !asks {
            if says_something || approval_required.is_none() {
                let message = "this checkpoint never asks anything";
                self.report
                    .warning(ProblemCode::DisabledCheckpoint, &fields.span, message)
                    .help("write `approval_required: true`, or give it a `prompt`");
            }
            return None;
        }
        let options = options.unwrap_or_else(|| default_choices(with_feedback));
        let waits = self.waits(&fields, &options, None);
        Some(Checkpoint {
            condition,
            on_condition_error: on_condition_error.unwrap_or_default(),
            prompt: prompt.unwrap_or_else(|| DEFAULT_PROMPT.to_owned()),
            show_files,
            options,
            question: None,
            waits,
            show_diff,
        })
    }
}
