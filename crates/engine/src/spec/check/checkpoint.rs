//! Checkpoints: where a person decides.

use super::Checker;
use super::choice::{OPTION, Order, default_choices};
use super::fields::{Format, Key, Shape, words};
use crate::spec::code::ProblemCode;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{Checkpoint, OnConditionError};
use crate::template::Roots;

const ON_CONDITION_ERROR: [(&str, OnConditionError); 2] = [("show", OnConditionError::Show), ("skip", OnConditionError::Skip)];

/// A checkpoint.
pub(super) static CHECKPOINT: Format = Format {
    name: "checkpoint",
    what: "a checkpoint",
    known: &[
        Key::optional(
            "approval_required",
            Shape::Truth,
            "`true` alone asks \"Continue with next phase?\"; `false` alone is no checkpoint.",
        ),
        Key::valued("condition", Shape::Text, "A JavaScript expression; the checkpoint is shown if it is true."),
        Key::optional(
            "on_condition_error",
            Shape::Words(&words(&ON_CONDITION_ERROR)),
            "What happens when the condition cannot be evaluated: the checkpoint is shown with the error on it, or passed over with a warning.",
        )
        .default("show"),
        Key::optional("prompt", Shape::Text, "The question; a template.").default(PROMPT),
        Key::optional("show_files", Shape::Texts, "Files and folders that the decision is about, in the output directory or under the root; templates."),
        Key::optional("with_feedback", Shape::Truth, "Whether the options ask for feedback unless they say otherwise.").default("false"),
        Key::optional("options", Shape::List(&OPTION, 1), "What may be answered; Continue and Abort when absent."),
    ],
    later: &[
        "type",
        "gate",
        "deadline",
        "remind",
        "reminders",
        "approvers",
        "approvals",
        "blocking",
        "default",
        "on_timeout",
        "timeout",
        "policy",
        "verify",
        "id",
        "name",
    ],
    rule: None,
};

/// The question of a checkpoint that has none of its own.
const PROMPT: &str = "Continue with next phase?";

impl Checker<'_, '_> {
    /// The checkpoint of a phase, if what stands there is one.
    pub(super) fn checkpoint(&mut self, node: &Node<'_>, order: Order<'_>) -> Option<Checkpoint> {
        if let Content::Scalar(_) = &*node.content {
            self.wrong_kind(node, "a checkpoint", "a map of keys and values")
                .help("write `checkpoint: { approval_required: true }`");
            return None;
        }
        let fields = self.fields(node, &CHECKPOINT)?;
        let approval_required = fields.get("approval_required").and_then(|node| self.truth(node, "`approval_required`"));
        let condition = fields.get("condition").and_then(|node| self.condition(node));
        let on_condition_error =
            fields.get("on_condition_error").and_then(|node| self.word(node, "`on_condition_error`", &ON_CONDITION_ERROR));
        let prompt = fields.get("prompt").and_then(|node| self.template(node, "`prompt`", Roots::Checkpoint));
        let show_files = fields.get("show_files").map(|node| self.paths(node, "the file to show", Roots::Checkpoint));
        let show_files = show_files.unwrap_or_default();
        let with_feedback = fields.get("with_feedback").and_then(|node| self.truth(node, "`with_feedback`")).unwrap_or(false);
        let options = fields.get("options").map(|node| self.choices(node, with_feedback, order));

        if let Some(span) = fields.key("condition")
            && fields.get("condition").is_none()
        {
            self.error(ProblemCode::EmptyCondition, span, "the condition is empty")
                .help("leave `condition` out to show the checkpoint always");
        }
        let custom = prompt.is_some() || options.is_some();
        let says_something = custom || fields.get("condition").is_some() || fields.get("show_files").is_some();
        let asks = match approval_required {
            Some(true) => true,
            Some(false) => custom,
            None => says_something,
        };
        if !asks {
            if says_something || approval_required.is_none() {
                let message = "this checkpoint never asks anybody";
                self.report
                    .warning(ProblemCode::NoCheckpoint, &fields.span, message)
                    .help("write `approval_required: true`, or give it a `prompt`");
            }
            return None;
        }
        Some(Checkpoint {
            condition,
            on_condition_error: on_condition_error.unwrap_or_default(),
            prompt: prompt.unwrap_or_else(|| PROMPT.to_owned()),
            show_files,
            options: options.unwrap_or_else(|| default_choices(with_feedback)),
        })
    }
}
