//! The top level of a workflow file.

use super::Checker;
use super::agent::{AGENT_SHAPES, BUDGET, BUDGET_ABOUT};
use super::fan_out::INPUT;
use super::fields::{Fields, Format, Key, Shape, words};
use super::gap::FINALIZATION;
use super::options::Order;
use super::phase::{Found, PHASE};
use super::policy::{POLICY, POLICY_ABOUT, verify_last};
use super::references::Here;
use super::reuse::mean_used;
use super::secret::SOURCE;
use crate::id::PhaseId;
use crate::spec::code::ProblemCode;
use crate::spec::includes::{self, Includes};
use crate::spec::problem::{Report, shown};
use crate::spec::scalar;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{Input, Mode, Phase, Work, Workflow};
use crate::template::Roots;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const MODES: [(&str, Mode); 3] = {
    let [strict, loose, adaptive] = [Mode::Strict, Mode::Loose, Mode::Adaptive];
    [(strict.word(), strict), (loose.word(), loose), (adaptive.word(), adaptive)]
};

const MAX_PARALLEL: u32 = 100_000;

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
            "How phases choose what runs: `strict` runs what is listed, then the main script; `loose` runs the main script, and tells it what is listed or suggested; `adaptive` runs what is always listed, then what a script chooses, then the main script. `tasks` run in each of them.",
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
        Key::optional("max_parallel", Shape::Count(1, MAX_PARALLEL), "How many tasks may run at once; no limit when absent."),
        Key::optional("inputs", Shape::MapOf(&INPUT_SHAPE), "Values that a run is given when it begins, with `--var NAME=VALUE`; they become `vars`."),
        Key::optional("agents", Shape::MapOf(&AGENT_SHAPE), "How agents are started, by the names under which tasks ask for them; `default` works where no other is named."),
        Key::optional("budget", Shape::Map(&BUDGET), BUDGET_ABOUT),
        Key::optional("worktree", Shape::Boolean, "Whether each run works in a git worktree and on a branch of its own.").default("false"),
        Key::optional("shell", Shape::Shell, "The shell of all commands, where the task or gate and its phase do not say which; as the settings say when absent, else `bash`, or `sh` on a machine without bash."),
        Key::optional("policy", Shape::Map(&POLICY), POLICY_ABOUT),
        Key::required("phases", Shape::List(&PHASE, 1), "The phases, in order."),
        Key::optional("finalization", Shape::Map(&FINALIZATION), "What is made from the context when all phases are done."),
    ],
    later: &[
        "subagents",
        "suggested_subagents",
        "gap_check",
        "skills",
        "for_each",
        "notify",
        "deadline",
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

static INPUT_SHAPE: Shape = Shape::AnyOf(&[Shape::Text, Shape::Map(&INPUT)]);
static AGENT_SHAPE: Shape = Shape::AnyOf(&AGENT_SHAPES);

/// Keys that only the successor of this format has at its top.
pub const SUCCESSOR_KEYS: [&str; 3] = ["checkpoints", "base_dir", "scope"];

/// Checks the tree of a whole file.
pub(in crate::spec) fn workflow(
    source: &str,
    root: &Node<'_>,
    report: &mut Report,
    includes: &mut dyn Includes,
    depth: u32,
) -> Option<Workflow> {
    let mut checker = Checker::new(source, report, includes, depth);
    if root.is_null() {
        let help = "a workflow needs at least `name` and `phases`";
        checker.error(ProblemCode::EmptyValue, &(0..0), "the file holds nothing").help(help);
        return None;
    }
    if checker.is_successor(root) {
        return None;
    }
    let fields = checker.fields(root, &WORKFLOW)?;
    checker.own_keys =
        WORKFLOW.known.iter().map(|key| key.name).filter(|key| fields.key(key).is_some()).map(str::to_owned).collect();
    let name = fields.require(&mut checker, "name").and_then(|node| checker.filled(node, "`name`"));
    let text = |checker: &mut Checker<'_, '_>, key: &str| {
        fields.get(key).and_then(|node| checker.text(node, &format!("`{key}`"))).map(str::to_owned)
    };
    let description = text(&mut checker, "description");
    let version = text(&mut checker, "version");
    let execution_mode =
        fields.get("execution_mode").and_then(|node| checker.word(node, "`execution_mode`", &MODES)).unwrap_or_default();
    let inputs = checker.inputs(&fields);
    let vars = checker.vars(&fields, &inputs);
    let output_dir = fields.get("output_dir").and_then(|node| checker.path(node, "`output_dir`", Roots::OutputDir));
    let secrets = checker.secrets(&fields);
    let max_parallel = fields.get("max_parallel").and_then(|node| checker.count(node, "`max_parallel`", 1..=MAX_PARALLEL));
    let (mut agents, budget, worktree) = (checker.agents(&fields), checker.budget(&fields), checker.worktree(&fields));
    let policy = checker.policy(&fields);
    let (shell, mut phases) = checker.with_shell(&fields, |checker| checker.phases(&fields, execution_mode));
    if policy.collect_phase {
        let span = fields.key("policy").cloned().unwrap_or_default();
        phases.iter().flatten().for_each(|phase| checker.asked_later(phase, &span));
        phases.iter_mut().flatten().for_each(verify_last);
    }
    let finalization = checker.finalization(&fields);
    let mut secrets = secrets;
    // What is said here goes before what a used workflow says.
    for (name, setting) in std::mem::take(&mut checker.used_agents) {
        agents.entry(name).or_insert(setting);
    }
    for (name, source) in std::mem::take(&mut checker.used_secrets) {
        secrets.entry(name).or_insert(source);
    }
    checker.agents_declared(&agents);
    checker.agents_can(&agents);
    let prompts = phases.as_ref().map(|phases| checker.prompts(phases)).unwrap_or_default();
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
        finalization,
        agents,
        prompts,
        budget,
        inputs,
        worktree,
        policy,
        pipeline: None,
        plans: Vec::new(),
        shell,
    })
}

impl Checker<'_, '_> {
    /// A file of the successor format is not full of misspelt keys; it is another kind of file.
    fn is_successor(&mut self, root: &Node<'_>) -> bool {
        let Content::Map(entries) = &*root.content else { return false };
        let Some(entry) = entries.iter().find(|entry| SUCCESSOR_KEYS.contains(&&*entry.key)) else { return false };
        let message = format!("this is a file of the successor format: it has `{}` at its top", entry.key);
        let help = "Lockgate reads the format in which each phase has its own `checkpoint`; use that one";
        self.error(ProblemCode::SuccessorFormat, &entry.key_span, message).help(help);
        true
    }

    /// What subagents are told whom a script may name while a run is under way.
    fn prompts(&mut self, phases: &[Phase]) -> BTreeMap<String, String> {
        let names_agents = |phase: &Phase| {
            phase.gap_check.as_ref().is_some_and(|check| check.script.is_some())
                || phase.tasks.iter().any(|task| matches!(task.work, Work::Adaptive(_)))
        };
        if !phases.iter().any(names_agents) {
            return BTreeMap::new();
        }
        let kinds = includes::kinds(self.includes);
        let told = kinds.into_iter().filter_map(|kind| Some((includes::prompt(self.includes, &kind).ok()??, kind)));
        told.map(|(text, kind)| (kind, text)).collect()
    }

    fn vars(&mut self, fields: &Fields<'_, '_>, inputs: &BTreeMap<String, Input>) -> BTreeMap<String, Value> {
        let mut vars = BTreeMap::new();
        let mut refused = Vec::new();
        let entries = match fields.get("vars") {
            Some(node) => self.entries(node, "`vars`"),
            None => Some(Default::default()),
        };
        let declared = entries.map(|entries| entries.iter().map(|entry| entry.key.to_string()));
        self.declared_vars = declared.map(|names| names.chain(inputs.keys().cloned()).collect());
        for entry in entries.unwrap_or_default() {
            vars.insert(entry.key.to_string(), scalar::to_json(&entry.value, &mut refused));
        }
        for span in refused {
            let message = format!("`{}` is not a number that JSON can hold", shown(self.source.get(span.clone()).unwrap_or("")));
            self.error(ProblemCode::InvalidValue, &span, message).help("write it in quotes, as text");
        }
        vars
    }

    fn phases(&mut self, fields: &Fields<'_, '_>, mode: Mode) -> Option<Vec<Phase>> {
        let node = fields.require(self, "phases")?;
        let nodes = self.list(node, "`phases`")?;
        if nodes.is_empty() {
            self.error(ProblemCode::EmptyValue, &node.span, "`phases` is empty").help("a workflow needs at least one phase");
            return None;
        }
        let ids = self.phase_ids(nodes);
        let mut phases: Vec<Phase> = Vec::with_capacity(nodes.len());
        let mut used: BTreeMap<String, Vec<PhaseId>> = BTreeMap::new();
        let mut listed: Vec<(usize, Vec<PhaseId>)> = Vec::new();
        for (here, node) in nodes.iter().enumerate() {
            self.here = Here { position: Some(phases.len()), in_list: None };
            let found: Vec<Phase> = match self.phase_or_used(node, mode, Order { ids: &ids, here }) {
                Found::Phase(phase) => phase.map(|phase| *phase).into_iter().collect(),
                Found::Used(several) => {
                    used.insert(ids[here].to_owned(), several.iter().map(|phase| phase.id.clone()).collect());
                    several
                }
            };
            listed.push((here, found.iter().map(|phase| phase.id.clone()).collect()));
            phases.extend(found);
        }
        self.here = Here::default();
        self.collisions(nodes, &listed);
        mean_used(&mut phases, &used);
        self.outputs_exist(&phases, &ids);
        Some(phases)
    }
}
