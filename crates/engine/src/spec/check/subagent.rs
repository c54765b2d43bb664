//! Subagents: agent tasks in a phase.

use super::Checker;
use super::fields::{Fields, Format, Key, Shape};
use crate::id::TaskId;
use crate::spec::code::ProblemCode;
use crate::spec::includes;
use crate::spec::problem::shown;
use crate::spec::scalar;
use crate::spec::subagent::{Subagent, free_id};
use crate::spec::suggest;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{Prompt, Script, Task, Work};
use crate::time::parse_duration;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(super) static SUBAGENT: Format = Format {
    name: "subagent",
    what: "a subagent",
    known: &[
        Key::required(
            "type",
            Shape::Filled,
            "The type: the name of its prompt document, and of its agent if one with that name is configured.",
        ),
        Key::optional(
            "config",
            Shape::Values,
            "Its configuration, passed to the agent. `output_path`, `prompt`, `model` and `timeout` have the same meaning as in a task.",
        ),
        Key::optional("name", Shape::Text, "The display name."),
        Key::optional("description", Shape::Text, "A description for people."),
    ],
    later: &["when", "needs", "id"],
    rule: None,
};

/// A subagent: its type, or a map with more settings.
pub(super) const SUBAGENT_SHAPES: [Shape; 2] = [Shape::Filled, Shape::Map(&SUBAGENT)];

pub(super) const SUBAGENT_LIST: Shape = Shape::ListOf(&Shape::AnyOf(&SUBAGENT_SHAPES));

pub(super) static SUBAGENTS: Format = Format {
    name: "subagents",
    what: "`subagents`",
    known: &[
        Key::optional("always", SUBAGENT_LIST, "Agents that always run."),
        Key::optional("adaptive", Shape::Map(&ADAPTIVE), "Chooses further agents, once these are done."),
    ],
    later: &[],
    rule: None,
};

static ADAPTIVE: Format = Format {
    name: "adaptive",
    what: "`adaptive`",
    known: &[Key::required("script", Shape::Filled, "A function body that returns `[{ type, config }]`.")],
    later: &[],
    rule: None,
};

pub(super) const SUBAGENTS_SHAPES: [Shape; 2] = [SUBAGENT_LIST, Shape::Map(&SUBAGENTS)];

#[derive(Default)]
pub(super) struct Subagents {
    /// The tasks of the listed subagents.
    pub(super) tasks: Vec<Task>,
    /// The script that chooses further ones.
    pub(super) adaptive: Option<Script>,
}

impl Checker<'_, '_> {
    /// The subagents of a phase. Their ids avoid those that are taken.
    pub(super) fn subagents(&mut self, phase: &Fields<'_, '_>, taken: &mut BTreeSet<String>) -> Subagents {
        let Some(node) = phase.get("subagents") else { return Subagents::default() };
        match &*node.content {
            Content::List(_) => Subagents { tasks: self.subagent_list(node, taken), adaptive: None },
            Content::Map(_) => {
                let Some(fields) = self.fields(node, &SUBAGENTS) else { return Subagents::default() };
                let tasks = fields.get("always").map(|node| self.subagent_list(node, taken)).unwrap_or_default();
                let adaptive = fields.get("adaptive").and_then(|node| self.fields(node, &ADAPTIVE));
                let script = adaptive.and_then(|fields| fields.require(self, "script"));
                Subagents { tasks, adaptive: script.and_then(|node| self.script(node, "`script`")) }
            }
            Content::Scalar(_) => {
                self.wrong_kind(node, "`subagents`", "a list").help("write `- type: …` for each of them");
                Subagents::default()
            }
        }
    }

    /// A list of subagents, as tasks.
    pub(super) fn subagent_list(&mut self, node: &Node<'_>, taken: &mut BTreeSet<String>) -> Vec<Task> {
        let items = self.list(node, "the list of subagents").unwrap_or_default();
        items.iter().filter_map(|item| self.subagent(item, taken)).collect()
    }

    fn subagent(&mut self, node: &Node<'_>, taken: &mut BTreeSet<String>) -> Option<Task> {
        if let Content::Scalar(_) = &*node.content {
            let kind = self.filled(node, "the type of a subagent")?.trim().to_owned();
            return Some(self.subagent_task(node, Subagent { kind, config: BTreeMap::new() }, None, taken));
        }
        let fields = self.fields(node, &SUBAGENT)?;
        let kind_node = fields.require(self, "type")?;
        let kind = self.filled(kind_node, "`type`")?.trim().to_owned();
        let name = fields.get("name").and_then(|node| self.text(node, "`name`")).map(str::to_owned);
        fields.get("description").map(|node| self.text(node, "`description`"));
        let config = fields.get("config").and_then(|node| self.subagent_config(node)).unwrap_or_default();
        Some(self.subagent_task(kind_node, Subagent { kind, config }, name, taken))
    }

    fn subagent_task(&mut self, node: &Node<'_>, agent: Subagent, name: Option<String>, taken: &mut BTreeSet<String>) -> Task {
        let mut task = agent.task(free_id(&agent.kind, taken), &BTreeMap::new());
        task.name = name;
        if let Work::Agent(work) = &mut task.work
            && work.prompt == Prompt::Phase
        {
            work.prompt = self.included_prompt(&agent.kind, node).unwrap_or_default();
            if work.prompt == Prompt::Phase {
                self.warn_of_typo(&agent.kind, node);
            }
        }
        task
    }

    /// A type without a prompt whose name is close to one with a prompt is probably misspelled.
    fn warn_of_typo(&mut self, kind: &str, node: &Node<'_>) {
        let kinds = includes::kinds(self.includes);
        if let Some(meant) = suggest::typo_of(kind, kinds.iter().map(String::as_str)) {
            let message =
                format!("there is no prompt for the subagent `{}`, so it gets the description of the phase", shown(kind));
            let help = format!("did you mean `{}`?", shown(meant));
            self.report.warning(ProblemCode::MissingFile, &node.span, message).help(help);
        }
    }

    fn subagent_config(&mut self, node: &Node<'_>) -> Option<BTreeMap<String, Value>> {
        let mut refused = Vec::new();
        let mut config = BTreeMap::new();
        for entry in self.entries(node, "`config`")? {
            match &*entry.key {
                "output_path" => {
                    self.path(&entry.value, "`output_path`", crate::template::Roots::Task);
                }
                "timeout" => {
                    self.timeout(&entry.value, "`timeout`");
                }
                _ => {}
            }
            config.insert(entry.key.to_string(), scalar::to_json(&entry.value, &mut refused));
        }
        for span in refused {
            let message = format!("`{}` is not a valid JSON number", shown(self.source.get(span.clone()).unwrap_or("")));
            self.error(ProblemCode::InvalidValue, &span, message).help("write it in quotes, as text");
        }
        // A timeout may have been written as a number, and one that is not a duration was already reported.
        config.retain(|key, value| key != "timeout" || value.as_str().is_some_and(|text| parse_duration(text).is_ok()));
        Some(config)
    }

    /// The agent types that are suggested to a main script.
    pub(super) fn suggestions(&mut self, phase: &Fields<'_, '_>) -> Vec<String> {
        let Some(node) = phase.get("suggested_subagents") else { return Vec::new() };
        let mut taken = BTreeSet::new();
        let tasks = self.subagent_list(node, &mut taken);
        tasks.iter().filter_map(|task| task.agent()?.agent.clone()).collect()
    }
}

/// The task of a phase's adaptive script. It runs after the agents that always run.
pub(super) fn adaptive_task(script: Script, needs: Vec<TaskId>) -> Task {
    Task { needs, ..Task::new(TaskId::new(crate::spec::workflow::ADAPTIVE_TASK), Work::Adaptive(script)) }
}
