//! Fan-out, joins, loops and commits of tasks, and the inputs of a workflow.

use super::Checker;
use super::fields::{Fields, Format, Key, Rule, Shape, words};
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use crate::spec::scalar;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{Commit, ForEach, Input, InputError, InputKind, ItemSource, Join, Until, UntilCondition, Worktree};
use crate::template::Roots;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const JOINS: [(&str, Join); 3] = [("all", Join::All), ("any", Join::Any), ("done", Join::Done)];

const KINDS: [(&str, Kind); 5] = [
    ("string", Kind::String),
    ("number", Kind::Number),
    ("boolean", Kind::Boolean),
    ("list", Kind::List),
    ("choice", Kind::Choice),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    String,
    Number,
    Boolean,
    List,
    Choice,
}

const MAX_CONCURRENT: u32 = 100_000;

const MAX_ROUNDS: u32 = 1_000;

/// The default number of rounds.
const ROUNDS: u32 = 10;

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

pub(super) static COMMIT: Format = Format {
    name: "commit",
    what: "`commit`",
    known: &[
        Key::optional("message", Shape::Filled, "The commit message, a template; by default the task's address and name."),
        Key::optional("hooks", Shape::Boolean, "Whether to run the repository's hooks.").default("true"),
    ],
    later: &[],
    rule: None,
};

pub(super) const COMMIT_SHAPES: [Shape; 2] = [Shape::Boolean, Shape::Map(&COMMIT)];

pub(super) static INPUT: Format = Format {
    name: "input",
    what: "an input",
    known: &[
        Key::optional("type", Shape::Words(&words(&KINDS)), "The type; `choice` if there are `choices`.").default("string"),
        Key::optional("description", Shape::Text, "Shown to people who are asked for the value."),
        Key::optional("default", Shape::Any, "The value if none is given."),
        Key::optional("choices", Shape::Texts, "The allowed values."),
        Key::optional(
            "required",
            Shape::Boolean,
            "Whether a run cannot start without it. By default, true if there is no `default`.",
        ),
    ],
    later: &["pattern", "secret", "min", "max"],
    rule: Some(Rule::Needs("type", "choice", "choices")),
};

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

    /// Reads the condition of a loop.
    pub(super) fn until(&mut self, fields: &Fields<'_, '_>) -> Option<Until> {
        let node = fields.get("until")?;
        if let Content::Scalar(_) = &*node.content {
            let condition = self.expression(node, "`until`")?;
            return Some(Until { holds: UntilCondition::Condition(condition), limit: ROUNDS, timeout: None, checks: Vec::new() });
        }
        let fields = self.fields(node, &UNTIL)?;
        let limit = fields.get("limit").and_then(|node| self.count(node, "`limit`", 1..=MAX_ROUNDS)).unwrap_or(ROUNDS);
        let holds = match (fields.key("condition"), fields.key("run")) {
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
        Some(Until { holds: holds?, limit, timeout: None, checks: Vec::new() })
    }

    /// Whether something works in its own git worktree.
    pub(super) fn worktree(&mut self, fields: &Fields<'_, '_>) -> Worktree {
        match fields.get("worktree").and_then(|node| self.boolean(node, "`worktree`")) {
            Some(true) => Worktree::Own,
            Some(false) | None => Worktree::No,
        }
    }

    /// Reads how the changes of a task are committed.
    pub(super) fn commit(&mut self, fields: &Fields<'_, '_>) -> Option<Commit> {
        let node = fields.get("commit")?;
        let Content::Map(_) = &*node.content else {
            return self.boolean(node, "`commit`").filter(|commits| *commits).map(|_| Commit::default());
        };
        let fields = self.fields(node, &COMMIT)?;
        let message = fields.get("message").and_then(|node| {
            self.filled(node, "`message`")?;
            self.template(node, "`message`", Roots::Task)
        });
        Some(Commit { message, hooks: fields.get("hooks").and_then(|node| self.boolean(node, "`hooks`")) })
    }

    /// Reads the inputs of a workflow.
    pub(super) fn inputs(&mut self, fields: &Fields<'_, '_>) -> BTreeMap<String, Input> {
        let mut inputs = BTreeMap::new();
        for entry in fields.get("inputs").and_then(|node| self.entries(node, "`inputs`")).unwrap_or_default() {
            if let Some(input) = self.input(&entry.value, &entry.key) {
                inputs.insert(entry.key.to_string(), input);
            }
        }
        inputs
    }

    fn input(&mut self, node: &Node<'_>, name: &str) -> Option<Input> {
        if node.is_null() {
            return Some(Input { description: None, kind: InputKind::String, default: None, required: true });
        }
        if let Content::Scalar(_) = &*node.content {
            let kind = self.word(node, "the type of an input", &KINDS)?;
            return Some(Input {
                description: None,
                kind: self.input_kind(kind, Vec::new(), node)?,
                default: None,
                required: true,
            });
        }
        let fields = self.fields(node, &INPUT)?;
        let choices = self.names(&fields, "choices");
        let kind = fields.get("type").and_then(|node| self.word(node, "`type`", &KINDS));
        let kind = kind.unwrap_or(if choices.is_empty() { Kind::String } else { Kind::Choice });
        let description = fields.get("description").and_then(|node| self.text(node, "`description`")).map(str::to_owned);
        let default_node = fields.get("default");
        let mut refused = Vec::new();
        let default = default_node.map(|node| scalar::to_json(node, &mut refused));
        let required = fields.get("required").and_then(|node| self.boolean(node, "`required`"));
        let kind = self.input_kind(kind, choices, node)?;
        if let (Some(node), Some(default)) = (default_node, &default)
            && let Err(why) = kind.read(default)
        {
            self.error(ProblemCode::InvalidValue, &node.span, format!("the default of `{}` {why}", shown(name)));
        }
        let required = required.unwrap_or(default.is_none());
        Some(Input { description, kind, default, required })
    }

    fn input_kind(&mut self, kind: Kind, choices: Vec<String>, node: &Node<'_>) -> Option<InputKind> {
        Some(match kind {
            Kind::String => InputKind::String,
            Kind::Number => InputKind::Number,
            Kind::Boolean => InputKind::Boolean,
            Kind::List => InputKind::List,
            Kind::Choice if choices.is_empty() => {
                self.error(ProblemCode::MissingKey, &node.span, "a `choice` needs `choices`")
                    .help("write `choices: [small, large]`");
                return None;
            }
            Kind::Choice => InputKind::Choice(choices),
        })
    }
}

impl InputKind {
    /// Converts a given value to this type, or says why it is not valid.
    pub fn read(&self, given: &Value) -> Result<Value, InputError> {
        let text = match given {
            Value::String(text) => Some(text.as_str()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let parsed = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let value = parsed.as_ref().unwrap_or(given);
        match self {
            Self::String => Ok(match given {
                Value::String(_) => given.clone(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    Value::String(given.to_string())
                }
            }),
            Self::Number if value.is_number() => Ok(value.clone()),
            Self::Number => Err(InputError::NotANumber(given.clone())),
            Self::Boolean if value.is_boolean() => Ok(value.clone()),
            Self::Boolean => Err(InputError::NotABoolean(given.clone())),
            Self::List if value.is_array() => Ok(value.clone()),
            Self::List => match text {
                Some(text) => Ok(text.split(',').map(|item| Value::String(item.trim().to_owned())).collect()),
                None => Err(InputError::NotAList(given.clone())),
            },
            Self::Choice(choices) => {
                let plain = text.map_or_else(|| given.to_string(), str::to_owned);
                if choices.contains(&plain) {
                    return Ok(Value::String(plain));
                }
                Err(InputError::NotAChoice { choices: choices.join(", "), given: given.clone() })
            }
        }
    }
}
