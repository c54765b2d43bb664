//! Loops: tasks that repeat `until` a condition is met.

use super::Checker;
use super::fields::{Fields, Format, Key, Rule, Shape};
use crate::spec::code::ProblemCode;
use crate::spec::syntax::Content;
use crate::spec::workflow::{Until, UntilCondition};

const MAX_ROUNDS: u32 = 1_000;

/// The default number of rounds.
const ROUNDS: u32 = 10;

pub(super) static UNTIL: Format = Format {
    name: "until",
    what: "`until`",
    known: &[
        Key::valued("condition", Shape::Filled, "A JavaScript expression; `output` is the result of the round."),
        Key::valued("run", Shape::Filled, "A shell command that must succeed; a template."),
        Key::optional("limit", Shape::Count(1, MAX_ROUNDS), "The maximum number of rounds; then the task has failed.")
            .default("10"),
    ],
    later: &["wait", "backoff"],
    rule: Some(Rule::OneOf(&["condition", "run"])),
};

pub(super) const UNTIL_SHAPES: [Shape; 2] = [Shape::Filled, Shape::Map(&UNTIL)];

impl Checker<'_, '_> {
    /// Reads the condition of a loop.
    pub(super) fn until(&mut self, fields: &Fields<'_, '_>) -> Option<Until> {
        let node = fields.get("until")?;
        if let Content::Scalar(_) = &*node.content {
            let condition = self.expression(node, "`until`")?;
            return Some(Until {
                condition: UntilCondition::Condition(condition),
                limit: ROUNDS,
                timeout: None,
                checks: Vec::new(),
            });
        }
        let fields = self.fields(node, &UNTIL)?;
        let limit = fields.get("limit").and_then(|node| self.count(node, "`limit`", 1..=MAX_ROUNDS)).unwrap_or(ROUNDS);
        let condition = match (fields.key("condition"), fields.key("run")) {
            (Some(_), None) => {
                let node = fields.require(self, "condition")?;
                self.filled(node, "`condition`")?;
                self.expression(node, "`condition`").map(UntilCondition::Condition)
            }
            (None, Some(_)) => {
                let node = fields.require(self, "run")?;
                self.command(node, "`run`").map(UntilCondition::Run)
            }
            (None, None) | (Some(_), Some(_)) => {
                let message = "`until` needs one of `condition`, `run`";
                self.error(ProblemCode::MissingKey, &fields.span, message)
                    .help("write `until: output.done`, or a command that must succeed");
                None
            }
        };
        Some(Until { condition: condition?, limit, timeout: None, checks: Vec::new() })
    }
}
