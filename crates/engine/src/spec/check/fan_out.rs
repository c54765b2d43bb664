//! Fan-out over a list (`for_each`) and joins (`join`).

use super::Checker;
use super::fields::{Fields, Format, Key, Rule, Shape};
use crate::spec::code::ProblemCode;
use crate::spec::scalar;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{ForEach, ItemSource, Join};
use crate::template::Roots;

pub(super) const JOINS: [(&str, Join); 3] = [("all", Join::All), ("any", Join::Any), ("done", Join::Done)];

const MAX_CONCURRENT: u32 = 100_000;

pub(super) static FOR_EACH: Format = Format {
    name: "for_each",
    what: "`for_each`",
    known: &[
        Key::valued("in", Shape::Items, "A list, or the name of one in `vars`."),
        Key::valued("script", Shape::Filled, "A function body that returns the list."),
        Key::valued(
            "lines",
            Shape::Filled,
            "A file in the output directory or under the root with one item per line; a template.",
        ),
        Key::optional(
            "max_parallel",
            Shape::Count(1, MAX_CONCURRENT),
            "How many items may run in parallel; unlimited if absent.",
        ),
    ],
    later: &["key", "batch"],
    rule: Some(Rule::OneOf(&["in", "script", "lines"])),
};

pub(super) const FOR_EACH_SHAPES: [Shape; 2] = [Shape::Items, Shape::Map(&FOR_EACH)];

impl Checker<'_, '_> {
    /// Reads the list of a fan-out.
    pub(super) fn for_each(&mut self, fields: &Fields<'_, '_>) -> Option<ForEach> {
        let node = fields.get("for_each")?;
        let Content::Map(_) = &*node.content else {
            return Some(ForEach { over: self.over(node)?, max_parallel: None });
        };
        let fields = self.fields(node, &FOR_EACH)?;
        let given: Vec<&str> = ["in", "script", "lines"].into_iter().filter(|key| fields.key(key).is_some()).collect();
        let over = match given.as_slice() {
            [key] => {
                let node = fields.require(self, key)?;
                match *key {
                    "in" => self.over(node),
                    "script" => self.script(node, "`script`").map(ItemSource::Script),
                    _ => self.path(node, "`lines`", Roots::Task).map(ItemSource::Lines),
                }
            }
            _ => {
                let message = "`for_each` needs one of `in`, `script`, `lines`";
                self.error(ProblemCode::MissingKey, &fields.span, message)
                    .help("write `for_each: [a, b]`, or the name of a list in `vars`");
                None
            }
        };
        let max_parallel = fields.get("max_parallel").and_then(|node| self.count(node, "`max_parallel`", 1..=MAX_CONCURRENT));
        Some(ForEach { over: over?, max_parallel })
    }

    /// Reads a list, or the name of one.
    fn over(&mut self, node: &Node<'_>) -> Option<ItemSource> {
        match &*node.content {
            Content::List(items) => {
                let mut refused = Vec::new();
                let items = items.iter().map(|item| scalar::to_json(item, &mut refused)).collect();
                Some(ItemSource::List(items))
            }
            Content::Scalar(_) => {
                let name = self.filled(node, "`for_each`")?.trim();
                let name = name.strip_prefix("vars.").unwrap_or(name);
                self.read_var(name, node, &(0..name.len()));
                Some(ItemSource::Var(name.to_owned()))
            }
            Content::Map(_) => {
                self.wrong_kind(node, "`in`", "a list, or the name of one in `vars`");
                None
            }
        }
    }
}
