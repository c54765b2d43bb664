//! Gates: commands that must succeed before a phase is done.

use super::Checker;
use super::fields::{Fields, Format, Key, Shape, words};
use super::process::{ON_FAIL, ON_FAIL_ABOUT, SHELL_ABOUT};
use crate::id::{GateId, TaskId};
use crate::spec::code::ProblemCode;
use crate::spec::problem::{line_of, shown};
use crate::spec::syntax::Node;
use crate::spec::workflow::{Gate, Task};
use std::collections::BTreeMap;
use std::ops::Range;

pub(super) static GATE: Format = Format {
    name: "gate",
    what: "a gate",
    known: &[
        Key::required("id", Shape::Id, "Unique in the phase."),
        Key::optional("name", Shape::Text, "The display name; the id if absent."),
        Key::optional("description", Shape::Text, "A description for people."),
        Key::required("run", Shape::Filled, "The shell command that must succeed; a template."),
        Key::optional("timeout", Shape::Duration, "The maximum duration: `30s`, `5m`, `1h 30m` or `PT30M`."),
        Key::optional("on_fail", Shape::Words(&words(&ON_FAIL)), ON_FAIL_ABOUT).default("fail"),
        Key::optional("env", Shape::Environment, "Environment variables; the values are templates."),
        Key::optional("secrets", Shape::Variables, "Names of the secrets that it receives, as environment variables."),
        Key::optional("dir", Shape::Filled, "The working directory, relative to the root; a template."),
        Key::optional("shell", Shape::Shell, SHELL_ABOUT),
        Key::optional(
            "task",
            Shape::Filled,
            "The task after which the gate runs. Tasks that need that task wait for the gate too. If absent, the gate runs after all tasks of the phase.",
        ),
    ],
    later: &["script", "retry", "agent", "on_interrupt", "type"],
    rule: None,
};

impl Checker<'_, '_> {
    /// The gates of a phase with these tasks, in order.
    pub(super) fn gates(&mut self, phase: &Fields<'_, '_>, tasks: &[Task]) -> Vec<Gate> {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut gates = Vec::new();
        for node in phase.get("gates").and_then(|node| self.list(node, "`gates`")).unwrap_or_default() {
            let Some(fields) = self.fields(node, &GATE) else { continue };
            // The gate of a fan-out task runs per item.
            self.here.in_list = fields.get("task").is_none().then_some(false);
            let gate = self.gate(&fields, tasks);
            self.here.in_list = None;
            if let Some(id) = fields.get("id")
                && let crate::spec::syntax::Content::Scalar(scalar) = &*id.content
                && let Some(first) = seen.insert(&scalar.text, id.span.start)
            {
                self.repeated_id("gate", id, &scalar.text, first);
            }
            gates.extend(gate);
        }
        gates
    }

    fn gate(&mut self, fields: &Fields<'_, '_>, tasks: &[Task]) -> Option<Gate> {
        let id = fields.require(self, "id").and_then(|node| self.id(node, "the id of a gate"));
        let (shell, run) =
            self.with_shell(fields, |checker| fields.require(checker, "run").and_then(|node| checker.command(node, "`run`")));
        let name = fields.get("name").and_then(|node| self.text(node, "`name`")).map(str::to_owned);
        fields.get("description").map(|node| self.text(node, "`description`"));
        let timeout = fields.get("timeout").and_then(|node| self.timeout(node, "`timeout`"));
        let on_fail = self.on_fail(fields);
        let (env, secrets, dir) = (self.env(fields), self.secret_names(fields), self.dir(fields));
        let task = fields.get("task").and_then(|node| self.gated_task(node, tasks));
        Some(Gate { id: GateId::new(id?), run: run?, timeout, on_fail, env, secrets, dir, task, title: name, shell })
    }

    /// The task after which a gate runs.
    fn gated_task(&mut self, node: &Node<'_>, tasks: &[Task]) -> Option<TaskId> {
        let name = self.filled(node, "`task`")?;
        if let Some(task) = tasks.iter().find(|task| task.id.as_str() == name) {
            return Some(task.id.clone());
        }
        let message = format!("task `{}` is not defined in this phase", shown(name));
        self.none_of(ProblemCode::UnknownTask, &node.span, message, name, tasks.iter().map(|task| task.id.as_str()));
        None
    }

    /// Reports two elements of one kind with the same id.
    pub(super) fn repeated_id(&mut self, kind: &str, node: &Node<'_>, id: &str, first: usize) {
        self.repeated(kind, &node.span, id, first);
    }

    /// The same if the id is a key instead of a value.
    pub fn repeated(&mut self, kind: &str, span: &Range<usize>, id: &str, first: usize) {
        if self.report.is_full() {
            return self.report.count();
        }
        let line = line_of(self.source, first);
        let message = format!("there are two {kind}s called `{}`", shown(id));
        self.error(ProblemCode::DuplicateId, span, message).help(format!("the first one is on line {line}; rename one of them"));
    }
}
