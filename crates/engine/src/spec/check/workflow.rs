//! The top level of a workflow file.

use super::Checker;
use super::choice::Order;
use super::fields::{Fields, Format, Key, Shape, words};
use super::phase::PHASE;
use super::secret::SOURCE;
use crate::spec::code::ProblemCode;
use crate::spec::problem::{Report, shown};
use crate::spec::scalar;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{Mode, Phase, Workflow};
use crate::template::Roots;
use serde_json::Value;
use std::collections::BTreeMap;

const MODES: [(&str, Mode); 3] = {
    let [strict, loose, adaptive] = [Mode::Strict, Mode::Loose, Mode::Adaptive];
    [(strict.word(), strict), (loose.word(), loose), (adaptive.word(), adaptive)]
};

const MOST_PARALLEL: u32 = 100_000;

/// The top level.
pub(in crate::spec) static WORKFLOW: Format = Format {
    name: "workflow",
    what: "a workflow",
    known: &[
        Key::required("name", Shape::Filled, "What the workflow is called."),
        Key::optional("description", Shape::Text, "What it is for, for people."),
        Key::optional("version", Shape::Text, "The author's version of it, for people."),
        Key::optional(
            "execution_mode",
            Shape::Words(&words(&MODES)),
            "How phases choose what runs: `strict` runs what is listed, then the main script. `loose` and `adaptive` are accepted, but run like `strict` in this release.",
        )
        .default("strict"),
        Key::optional(
            "output_dir",
            Shape::Filled,
            "Where outputs go, under the root; a template. `.lockgate/runs/RUN/out` when absent.",
        ),
        Key::optional(
            "vars",
            Shape::Values,
            "Values that scripts, conditions and templates see; `--var NAME=VALUE` goes before them.",
        ),
        Key::optional(
            "secrets",
            Shape::Secrets(&SOURCE),
            "Where secrets come from: `NAME: { env: VARIABLE }`, `NAME: { command: … }`, or a list of names; one that is not listed is an environment variable of its name.",
        ),
        Key::optional("max_parallel", Shape::Count(1, MOST_PARALLEL), "How many tasks may run at once; no limit when absent."),
        Key::required("phases", Shape::List(&PHASE, 1), "The phases, in order."),
    ],
    later: &[
        "finalization",
        "subagents",
        "suggested_subagents",
        "agents",
        "gap_check",
        "skills",
        "inputs",
        "for_each",
        "policy",
        "notify",
        "deadline",
        "budget",
        "on_complete",
        "on_fail",
        "env",
        "gates",
        "tasks",
        "checkpoint",
        "triggers",
        "timeout",
        "review",
        "session_timeout",
    ],
    rule: None,
};

/// Keys that only the successor of this format has at its top.
const SUCCESSOR: [&str; 3] = ["checkpoints", "base_dir", "scope"];

/// Checks the tree of a whole file.
pub(in crate::spec) fn workflow(source: &str, root: &Node<'_>, report: &mut Report) -> Option<Workflow> {
    let mut checker = Checker::new(source, report);
    if root.is_null() {
        let help = "a workflow needs at least `name` and `phases`";
        checker.error(ProblemCode::EmptyValue, &(0..0), "the file holds nothing").help(help);
        return None;
    }
    if checker.is_successor(root) {
        return None;
    }
    let fields = checker.fields(root, &WORKFLOW)?;
    let name = fields.require(&mut checker, "name").and_then(|node| checker.filled(node, "`name`"));
    let text = |checker: &mut Checker<'_, '_>, key: &str| {
        fields.get(key).and_then(|node| checker.text(node, &format!("`{key}`"))).map(str::to_owned)
    };
    let description = text(&mut checker, "description");
    let version = text(&mut checker, "version");
    let execution_mode =
        fields.get("execution_mode").and_then(|node| checker.word(node, "`execution_mode`", &MODES)).unwrap_or_default();
    let vars = checker.vars(&fields);
    let output_dir = fields.get("output_dir").and_then(|node| checker.path(node, "`output_dir`", Roots::OutputDir));
    let secrets = checker.secrets(&fields);
    let max_parallel = fields.get("max_parallel").and_then(|node| checker.count(node, "`max_parallel`", 1..=MOST_PARALLEL));
    let phases = checker.phases(&fields);
    Some(Workflow {
        name: name?.trim().to_owned(),
        description,
        version,
        execution_mode,
        output_dir,
        vars,
        secrets,
        max_parallel,
        phases: phases?,
    })
}

impl Checker<'_, '_> {
    /// A file of the successor format is not full of misspelt keys; it is another kind of file.
    fn is_successor(&mut self, root: &Node<'_>) -> bool {
        let Content::Map(entries) = &*root.content else { return false };
        let Some(entry) = entries.iter().find(|entry| SUCCESSOR.contains(&&*entry.key)) else { return false };
        let message = format!("this is a file of the successor format: it has `{}` at its top", entry.key);
        let help = "Lockgate reads the format in which each phase has its own `checkpoint`; use that one";
        self.error(ProblemCode::SuccessorFormat, &entry.key_span, message).help(help);
        true
    }

    fn vars(&mut self, fields: &Fields<'_, '_>) -> BTreeMap<String, Value> {
        let mut vars = BTreeMap::new();
        let mut refused = Vec::new();
        let entries = match fields.get("vars") {
            Some(node) => self.entries(node, "`vars`"),
            None => Some(Default::default()),
        };
        self.declared_vars = entries.map(|entries| entries.iter().map(|entry| entry.key.to_string()).collect());
        for entry in entries.unwrap_or_default() {
            vars.insert(entry.key.to_string(), scalar::to_json(&entry.value, &mut refused));
        }
        for span in refused {
            let message = format!("`{}` is not a number that JSON can hold", shown(self.source.get(span.clone()).unwrap_or("")));
            self.error(ProblemCode::WrongValue, &span, message).help("write it in quotes, as text");
        }
        vars
    }

    fn phases(&mut self, fields: &Fields<'_, '_>) -> Option<Vec<Phase>> {
        let node = fields.require(self, "phases")?;
        let nodes = self.list(node, "`phases`")?;
        if nodes.is_empty() {
            self.error(ProblemCode::EmptyValue, &node.span, "`phases` is empty").help("a workflow needs at least one phase");
            return None;
        }
        let ids = self.phase_ids(nodes);
        let phases = nodes.iter().enumerate().filter_map(|(here, node)| self.phase(node, Order { ids: &ids, here })).collect();
        Some(phases)
    }
}
