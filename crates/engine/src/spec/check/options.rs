//! The options of a checkpoint, and what each of them does.

use super::Checker;
use super::fields::{Fields, Format, Key, Rule, Shape, words};
use crate::hold::{Action, Choice, option_ids};
use crate::id::{OptionId, PhaseId};
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use crate::spec::syntax::Node;

/// Labels, in lower case, that have an action by default.
const PLAIN_LABELS: [&str; 2] = ["continue", "abort"];

const ACTIONS: [(&str, Kind); 4] = [
    ("continue", Kind::Continue),
    ("repeat_phase", Kind::RepeatPhase),
    ("skip_phases", Kind::SkipPhases),
    ("abort", Kind::Abort),
];

pub(super) static OPTION: Format = Format {
    name: "option",
    what: "an option",
    known: &[
        Key::required("label", Shape::Filled, "The text that people read, and type in an answer."),
        Key::optional("with_feedback", Shape::Boolean, "Whether choosing it asks for feedback."),
        Key::optional(
            "on_select",
            Shape::Map(&ON_SELECT),
            "What choosing it does. Options labelled Continue and Abort do not need it.",
        ),
    ],
    later: &["id", "description", "pros", "cons", "default", "key", "confirm"],
    rule: Some(Rule::Unless("on_select", "label", &PLAIN_LABELS)),
};

static ON_SELECT: Format = Format {
    name: "on_select",
    what: "`on_select`",
    known: &[
        Key::required(
            "action",
            Shape::Words(&words(&ACTIONS)),
            "`continue` continues the run, `repeat_phase` goes back to a phase and continues from there, `skip_phases` skips later phases, and `abort` ends the run with exit code 2.",
        ),
        Key::optional("target", Shape::Text, "For `repeat_phase`: `current`, or the id of this or an earlier phase.")
            .default("current"),
        Key::optional("phases", Shape::Texts, "For `skip_phases`: the ids of later phases."),
    ],
    later: &["tasks", "vars", "run"],
    rule: Some(Rule::Needs("action", "skip_phases", "phases")),
};

/// The phases of a workflow in order, as seen from one of them.
#[derive(Clone, Copy)]
pub(super) struct Order<'p> {
    /// The ids of all phases; empty for a phase without a valid id.
    pub(super) ids: &'p [&'p str],
    /// The index of this phase.
    pub(super) here: usize,
}

impl<'p> Order<'p> {
    fn position(&self, id: &str) -> Option<usize> {
        self.ids.iter().position(|candidate| *candidate == id)
    }

    pub(super) fn before(&self) -> Option<&'p str> {
        self.ids[..self.here].last().copied().filter(|id| !id.is_empty())
    }

    /// The ids of phases that may be repeated from here.
    fn until_here(&self) -> impl Iterator<Item = &'p str> + Clone + use<'p> {
        self.ids[..=self.here].iter().copied().filter(|id| !id.is_empty())
    }

    /// The ids of phases that may be skipped from here.
    fn later(&self) -> impl Iterator<Item = &'p str> + Clone + use<'p> {
        self.ids[self.here + 1..].iter().copied().filter(|id| !id.is_empty())
    }
}

/// The kinds of actions, before their phases are resolved.
#[derive(Clone, Copy)]
enum Kind {
    Continue,
    RepeatPhase,
    SkipPhases,
    Abort,
}

/// The options if a checkpoint does not set any.
pub fn default_choices(with_feedback: bool) -> Vec<Choice> {
    let choice = |id: &str, label: &str, action| Choice { with_feedback, ..Choice::plain(id, label, action) };
    vec![choice(option_ids::CONTINUE, "Continue", Action::Continue), choice(option_ids::ABORT, "Abort", Action::Abort)]
}

impl Checker<'_, '_> {
    pub(super) fn choices(&mut self, node: &Node<'_>, with_feedback: bool, order: Order<'_>) -> Vec<Choice> {
        let Some(items) = self.list(node, "`options`") else { return Vec::new() };
        if items.is_empty() {
            self.error(ProblemCode::EmptyValue, &node.span, "`options` is empty")
                .help("remove it to get the options Continue and Abort");
        }
        let mut choices: Vec<Choice> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let Some(fields) = self.fields(item, &OPTION) else { continue };
            let label_node = fields.require(self, "label");
            let label = label_node.and_then(|node| self.filled(node, "`label`")).map(str::trim);
            let with_feedback = match fields.get("with_feedback") {
                Some(node) => self.boolean(node, "`with_feedback`").unwrap_or(with_feedback),
                None => with_feedback,
            };
            let action = self.action(&fields, label, order);
            let (Some(label), Some(label_node)) = (label, label_node) else { continue };
            let id = option_id(label, index);
            if let Some(other) = choices.iter().find(|other| other.id == id) {
                let message = format!("options `{}` and `{}` have the same label", shown(&other.label), shown(label));
                self.error(ProblemCode::DuplicateLabel, &label_node.span, message).help("give each option its own label");
            } else {
                // An option whose action was refused keeps its label, so that later ones are still compared with it.
                let plain = Choice::plain(id.as_str(), label, action.unwrap_or(Action::Abort));
                choices.push(Choice { with_feedback, ..plain });
            }
        }
        choices
    }

    fn action(&mut self, option: &Fields<'_, '_>, label: Option<&str>, order: Order<'_>) -> Option<Action> {
        let Some(node) = option.get("on_select") else {
            return match label.map(str::to_lowercase).as_deref() {
                Some("continue") => Some(Action::Continue),
                Some("abort") => Some(Action::Abort),
                Some(_) | None => {
                    let message = "an option needs `on_select`, which says what choosing it does";
                    let help = "add `on_select: { action: continue }`, or repeat_phase, skip_phases or abort";
                    self.error(ProblemCode::MissingKey, option.key("on_select").unwrap_or(&option.span), message).help(help);
                    None
                }
            };
        };
        let fields = self.fields(node, &ON_SELECT)?;
        let kind = fields.require(self, "action").and_then(|node| self.action_kind(node, &ACTIONS))?;
        let (uses_target, uses_phases) = match kind {
            Kind::Continue | Kind::Abort => (false, false),
            Kind::RepeatPhase => (true, false),
            Kind::SkipPhases => (false, true),
        };
        for (key, used, owner) in [("target", uses_target, "repeat_phase"), ("phases", uses_phases, "skip_phases")] {
            if let Some(span) = fields.key(key)
                && !used
            {
                let message = format!("`{key}` has no meaning here; it belongs to `{owner}`");
                self.report.warning(ProblemCode::UnusedKey, span, message).help("remove it");
            }
        }
        match kind {
            Kind::Continue => Some(Action::Continue),
            Kind::Abort => Some(Action::Abort),
            Kind::RepeatPhase => self.repeat_target(&fields, order).map(Action::RepeatPhase),
            Kind::SkipPhases => self.skipped_phases(&fields, order).map(Action::SkipPhases),
        }
    }

    fn action_kind(&mut self, node: &Node<'_>, words: &[(&str, Kind)]) -> Option<Kind> {
        let text = self.text(node, "`action`")?;
        if let Some((_, kind)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*kind);
        }
        let message = format!("`{}` is not an action", shown(text));
        match crate::spec::suggest::did_you_mean(text, words.iter().map(|(word, _)| *word)) {
            Some(help) => self.error(ProblemCode::UnknownAction, &node.span, message).help(help),
            None => {
                self.error(ProblemCode::UnknownAction, &node.span, message)
                    .help("the actions are continue, repeat_phase, skip_phases and abort");
            }
        }
        None
    }

    fn repeat_target(&mut self, fields: &Fields<'_, '_>, order: Order<'_>) -> Option<PhaseId> {
        let here = || Some(order.ids[order.here]).filter(|id| !id.is_empty()).map(PhaseId::new);
        let Some(node) = fields.get("target") else { return here() };
        let target = self.text(node, "`target`")?;
        if target == "current" {
            return here();
        }
        let position = self.phase_position(node, target, order, order.until_here().chain(Some("current")))?;
        if position > order.here {
            let message = format!("phase `{}` comes later and cannot be repeated from here", shown(target));
            self.error(ProblemCode::PhaseOrder, &node.span, message).help("name this phase or an earlier one, or `current`");
            return None;
        }
        Some(PhaseId::new(target))
    }

    fn skipped_phases(&mut self, fields: &Fields<'_, '_>, order: Order<'_>) -> Option<Vec<PhaseId>> {
        let node = fields.require(self, "phases")?;
        let items = self.one_or_more(node);
        if items.is_empty() {
            self.error(ProblemCode::EmptyValue, &node.span, "`phases` is empty: nothing would be skipped")
                .help("name the phases to skip");
            return None;
        }
        let mut phases: Vec<PhaseId> = Vec::new();
        for item in items {
            let Some(id) = self.text(item, "`phases`") else { continue };
            let Some(position) = self.phase_position(item, id, order, order.later()) else { continue };
            if position <= order.here {
                let when = if position == order.here { "is this phase" } else { "comes earlier" };
                let message = format!("phase `{}` {when} and cannot be skipped from here", shown(id));
                self.error(ProblemCode::PhaseOrder, &item.span, message).help("name phases that come later");
            } else if !phases.iter().any(|phase| phase.as_str() == id) {
                phases.push(PhaseId::new(id));
            }
        }
        Some(phases)
    }

    fn phase_position<'c>(
        &mut self,
        node: &Node<'_>,
        id: &str,
        order: Order<'_>,
        candidates: impl Iterator<Item = &'c str> + Clone,
    ) -> Option<usize> {
        let position = order.position(id);
        if position.is_none() {
            self.none_of(ProblemCode::UnknownPhase, &node.span, format!("phase `{}` is not defined", shown(id)), id, candidates);
        }
        position
    }
}

/// The id of an option: its label in lower case, words joined by `-`.
fn option_id(label: &str, index: usize) -> OptionId {
    let lower = label.to_lowercase();
    let words: Vec<&str> = lower.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { OptionId::new(format!("option-{}", index + 1)) } else { OptionId::new(words.join("-")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_id_is_derived_from_its_label() {
        assert_eq!(option_id("Looks good, proceed", 0).as_str(), "looks-good-proceed");
        assert_eq!(option_id("  Skip Next 2 Phases! ", 0).as_str(), "skip-next-2-phases");
        assert_eq!(option_id("Überprüfen", 0).as_str(), "überprüfen");
        assert_eq!(option_id("👍", 1).as_str(), "option-2");
    }
}
