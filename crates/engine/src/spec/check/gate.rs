//! Gates: commands that must succeed before a phase is done.

use super::Checker;
use super::fields::{Fields, Format, Key, Shape, words};
use super::process::{ON_FAIL, ON_FAIL_ABOUT};
use crate::id::GateId;
use crate::spec::code::ProblemCode;
use crate::spec::problem::line_of;
use crate::spec::syntax::Node;
use crate::spec::workflow::Gate;
use std::collections::BTreeMap;

/// A gate.
pub(super) static GATE: Format = Format {
    name: "gate",
    what: "a gate",
    known: &[
        Key::required("id", Shape::Id, "Unique in the phase."),
        Key::optional("name", Shape::Text, "What people call it; the id when absent."),
        Key::optional("description", Shape::Text, "What it is for, for people."),
        Key::required("run", Shape::Filled, "The shell command that must succeed; a template."),
        Key::optional("timeout", Shape::Duration, "How long it may take: `30s`, `5m`, `1h 30m` or `PT30M`."),
        Key::optional("on_fail", Shape::Words(&words(&ON_FAIL)), ON_FAIL_ABOUT).default("fail"),
        Key::optional("env", Shape::Environment, "Environment variables for it; the values are templates."),
        Key::optional("secrets", Shape::Variables, "Names of the secrets that reach it, as environment variables."),
        Key::optional("dir", Shape::Filled, "Where it runs, under the root; a template."),
    ],
    later: &["script", "retry", "agent", "task", "on_interrupt", "type"],
    rule: None,
};

impl Checker<'_, '_> {
    /// The gates of a phase, in order.
    pub(super) fn gates(&mut self, phase: &Fields<'_, '_>) -> Vec<Gate> {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut gates = Vec::new();
        for node in phase.get("gates").and_then(|node| self.list(node, "`gates`")).unwrap_or_default() {
            let Some(fields) = self.fields(node, &GATE) else { continue };
            let gate = self.gate(&fields);
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

    fn gate(&mut self, fields: &Fields<'_, '_>) -> Option<Gate> {
        let id = fields.require(self, "id").and_then(|node| self.id(node, "the id of a gate"));
        let run = fields.require(self, "run").and_then(|node| self.command(node, "`run`"));
        for key in ["name", "description"] {
            fields.get(key).map(|node| self.text(node, &format!("`{key}`")));
        }
        let timeout = fields.get("timeout").and_then(|node| self.timeout(node, "`timeout`"));
        let on_fail = self.on_fail(fields);
        let (env, secrets, dir) = (self.env(fields), self.secret_names(fields), self.dir(fields));
        Some(Gate { id: GateId::new(id?), run: run?, timeout, on_fail, env, secrets, dir })
    }

    /// Two things of one kind have the same id.
    pub(super) fn repeated_id(&mut self, kind: &str, node: &Node<'_>, id: &str, first: usize) {
        if self.report.is_full() {
            return;
        }
        let line = line_of(self.source, first);
        let message = format!("there are two {kind}s called `{id}`");
        self.error(ProblemCode::DuplicateId, &node.span, message)
            .help(format!("the first one is on line {line}; rename one of them"));
    }
}
