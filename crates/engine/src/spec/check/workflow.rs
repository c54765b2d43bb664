//! The top level of a workflow file.

use super::Checker;
use super::agent::{AGENT_SHAPES, BUDGET, BUDGET_ABOUT};
use super::fields::{Fields, Format, Key, Shape, words};
use super::gap::FINALIZATION;
use super::inputs::INPUT;
use super::options::Order;
use super::phase::{Found, PHASE};
use super::policy::{POLICY, POLICY_ABOUT, verify_last};
use super::references::Here;
use super::reuse::mean_used;
use super::secret::SOURCE;
use super::team::{KNOWLEDGE, KNOWLEDGE_ABOUT, TEAM, TEAM_ABOUT};
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
    [(strict.as_str(), strict), (loose.as_str(), loose), (adaptive.as_str(), adaptive)]
};

const MAX_PARALLEL: u32 = 100_000;

pub(in crate::spec) static WORKFLOW: Format = Format {
    name: "workflow",
    what: "a workflow",
    known: &[
        Key::required("name", Shape::Filled, "The name of the workflow."),
        Key::optional("description", Shape::Text, "A description for people."),
        Key::optional("version", Shape::Text, "The author's own version number, for people."),
        Key::optional(
            "execution_mode",
            Shape::Words(&words(&MODES)),
            "How phases choose the agents to run: `strict` runs the listed ones, then the main script; `loose` runs the main script, and suggests the listed ones to it; `adaptive` runs those listed under `always`, then those that a script chooses, then the main script. `tasks` run in every mode.",
        )
        .default("strict"),
        Key::optional(
            "output_dir",
            Shape::Filled,
            "The output directory, relative to the root; a template. `.lockgate/runs/RUN/out` if absent.",
        ),
        Key::optional(
            "vars",
            Shape::Values,
            "Values for scripts, conditions and templates. `--var NAME=VALUE` overrides them.",
        ),
        Key::optional(
            "secrets",
            Shape::Secrets(&SOURCE),
            "The sources of secrets: `NAME: { env: VARIABLE }`, `NAME: { command: … }`, or a list of names. A secret that is not listed comes from the environment variable of that name.",
        ),
        Key::optional("max_parallel", Shape::Count(1, MAX_PARALLEL), "How many tasks may run in parallel; unlimited if absent."),
        Key::optional("inputs", Shape::MapOf(&INPUT_SHAPE), "Values that are given when a run starts, with `--var NAME=VALUE`. They become `vars`."),
        Key::optional("agents", Shape::MapOf(&AGENT_SHAPE), "How agents are started, by the names that tasks use. `default` is used if a task names no other."),
        Key::optional("budget", Shape::Map(&BUDGET), BUDGET_ABOUT),
        Key::optional("worktree", Shape::Boolean, "Whether each run works in its own git worktree and branch.").default("false"),
        Key::optional("shell", Shape::Shell, "The shell for all commands, unless the task, gate or phase sets one. If absent, the shell from the settings, or else `bash`, or `sh` on a machine without bash."),
        Key::optional("policy", Shape::Map(&POLICY), POLICY_ABOUT),
        Key::optional("team", Shape::Map(&TEAM), TEAM_ABOUT),
        Key::optional("knowledge", Shape::Map(&KNOWLEDGE), KNOWLEDGE_ABOUT),
        Key::required("phases", Shape::List(&PHASE, 1), "The phases, in order."),
        Key::optional("finalization", Shape::Map(&FINALIZATION), "A file that is rendered from the context when all phases are done."),
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

/// Top-level keys that only the successor of this format has.
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
        checker.error(ProblemCode::EmptyValue, &(0..0), "the file is empty").help(help);
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
    let team = checker.team(&fields);
    let (shell, mut phases) = checker.with_shell(&fields, |checker| checker.phases(&fields, execution_mode));
    if policy.collect_phase {
        let span = fields.key("policy").cloned().unwrap_or_default();
        phases.iter().flatten().for_each(|phase| checker.asked_later(phase, &span));
        phases.iter_mut().flatten().for_each(verify_last);
    }
    let finalization = checker.finalization(&fields);
    let mut secrets = secrets;
    // Settings of this file override those of a used workflow.
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
        team,
    })
}

impl Checker<'_, '_> {
    /// A file in the successor format is reported as such, instead of reporting its keys as misspelled.
    fn is_successor(&mut self, root: &Node<'_>) -> bool {
        let Content::Map(entries) = &*root.content else { return false };
        let Some(entry) = entries.iter().find(|entry| SUCCESSOR_KEYS.contains(&&*entry.key)) else { return false };
        let message = format!("this file is in the successor format: it has the top-level key `{}`", entry.key);
        let help = "use the format in which each phase has its own `checkpoint`";
        self.error(ProblemCode::SuccessorFormat, &entry.key_span, message).help(help);
        true
    }

    /// The prompts of subagents that a script may name at run time.
    fn prompts(&mut self, phases: &[Phase]) -> BTreeMap<String, String> {
        let names_agents = |phase: &Phase| {
            phase.gap_check.as_ref().is_some_and(|check| check.script.is_some())
                || phase.tasks.iter().any(|task| matches!(task.work, Work::Adaptive(_)))
        };
        if !phases.iter().any(names_agents) {
            return BTreeMap::new();
        }
        let kinds = includes::kinds(self.includes);
        let prompts = kinds.into_iter().filter_map(|kind| Some((includes::prompt(self.includes, &kind).ok()??, kind)));
        prompts.map(|(text, kind)| (kind, text)).collect()
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
            let message = format!("`{}` is not a valid JSON number", shown(self.source.get(span.clone()).unwrap_or("")));
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
