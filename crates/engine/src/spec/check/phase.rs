//! Phases: the steps of a workflow.

use super::Checker;
use super::agent::{BUDGET, BUDGET_ABOUT};
use super::checkpoint::CHECKPOINT;
use super::fields::{Fields, Format, Key, Rule, Shape, words};
use super::gap::GAP_CHECK;
use super::gate::GATE;
use super::options::Order;
use super::subagent::{SUBAGENT_LIST, SUBAGENTS_SHAPES, Subagents, adaptive_task};
use super::task::{RawTask, TASK};
use super::workflow::MODES;
use crate::id::{PhaseId, TaskId};
use crate::spec::code::ProblemCode;
use crate::spec::syntax::Node;
use crate::spec::workflow::{ADAPTIVE_TASK, MAIN_TASK, Mode, Phase, Task, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

const BEHAVIORS: [(&str, Behavior); 3] =
    [("parallel", Behavior::Parallel), ("sequential", Behavior::Sequential), ("main-only", Behavior::MainOnly)];

pub(super) static PHASE: Format = Format {
    name: "phase",
    what: "a phase",
    known: &[
        Key::required("id", Shape::Id, "Unique in the workflow."),
        Key::optional("name", Shape::Text, "The display name; the id if absent."),
        Key::optional("description", Shape::Text, "A description for people."),
        Key::optional(
            "behavior",
            Shape::Words(&words(&BEHAVIORS)),
            "In which order tasks run: `parallel` starts each when its needs are done; `sequential` also makes a task without `needs` wait for the one before it; `main-only` runs only the main script.",
        )
        .default("parallel"),
        Key::optional("tasks", Shape::List(&TASK, 0), "The tasks of the phase."),
        Key::optional("gates", Shape::List(&GATE, 0), "Automatic checks after the tasks, in this order. A gate with `task` runs after that task."),
        Key::optional("checkpoint", Shape::Map(&CHECKPOINT), "A question to a person, after the gates."),
        Key::optional("execution_mode", Shape::Words(&words(&MODES)), "How the phase chooses what to run; overrides that of the workflow."),
        Key::optional("subagents", Shape::AnyOf(&SUBAGENTS_SHAPES), "The agents to run, each as a task: a list, or `{ always, adaptive }`."),
        Key::optional("suggested_subagents", SUBAGENT_LIST, "Agents that are suggested to the main script, as `phase.suggested_subagents`."),
        Key::optional("skills", Shape::Texts, "Skills that its agents should use."),
        Key::optional("gap_check", Shape::Map(&GAP_CHECK), "Checks whether the work of the tasks is complete, before the gates."),
        Key::optional("main_agent", Shape::Map(&MAIN_AGENT), "A script or an agent that runs after all tasks, as the task `main`."),
        Key::optional("budget", Shape::Map(&BUDGET), BUDGET_ABOUT),
        Key::optional("shell", Shape::Shell, "The shell for its tasks and gates; overrides that of the workflow."),
        Key::optional("use", Shape::Filled, "A workflow file next to this one. Its phases are inserted here, their ids prefixed with the id of this phase."),
        Key::optional("with", Shape::Values, "With `use`: values for the `inputs` and `vars` of that workflow."),
        Key::optional(
            "fail_fast",
            Shape::Boolean,
            "Whether the first failure stops the running tasks; otherwise they may finish.",
        )
        .default("false"),
    ],
    later: &[
        "agents",
        "agent",
        "for_each",
        "inputs",
        "finalization",
        "state_label",
        "condition",
        "when",
        "needs",
        "outputs",
        "deliverables",
        "script",
        "run",
        "env",
        "timeout",
        "retry",
        "on_fail",
    ],
    rule: None,
};

static MAIN_AGENT: Format = Format {
    name: "main_agent",
    what: "`main_agent`",
    known: &[
        Key::valued("script", Shape::Filled, "The body of a JavaScript function."),
        Key::valued("prompt", Shape::Filled, "The prompt of an agent; a template."),
        Key::optional("agent", Shape::Filled, "With `prompt`: the agent."),
        Key::optional("output_path", Shape::Filled, "The file that receives the agent's answer; a template."),
        Key::optional("description", Shape::Text, "A description for people."),
    ],
    later: &["skills", "outputs", "timeout", "name"],
    rule: Some(Rule::OneOf(&["script", "prompt"])),
};

/// The order in which the tasks of a phase run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behavior {
    Parallel,
    Sequential,
    MainOnly,
}

/// An entry in the list of phases.
pub(super) enum Found {
    /// A phase, unless it has too many errors.
    Phase(Option<Box<Phase>>),
    /// The phases of another workflow.
    Used(Vec<Phase>),
}

impl Checker<'_, '_> {
    /// Reads an entry in the list of phases.
    pub(super) fn phase_or_used(&mut self, node: &Node<'_>, mode: Mode, order: Order<'_>) -> Found {
        let Some(fields) = self.fields(node, &PHASE) else { return Found::Phase(None) };
        if fields.get("use").is_some() {
            return Found::Used(self.used_phases(&fields, mode).unwrap_or_default());
        }
        if let Some(span) = fields.key("with") {
            self.error(ProblemCode::UnusedKey, span, "`with` requires `use`").help("remove it");
        }
        Found::Phase(self.phase(&fields, mode, order).map(Box::new))
    }

    fn phase(&mut self, fields: &Fields<'_, '_>, mode: Mode, order: Order<'_>) -> Option<Phase> {
        let (shell, phase) = self.with_shell(fields, |checker| checker.phase_without_shell(fields, mode, order));
        phase.map(|phase| Phase { shell, ..phase })
    }

    fn phase_without_shell(&mut self, fields: &Fields<'_, '_>, mode: Mode, order: Order<'_>) -> Option<Phase> {
        let id = fields.require(self, "id").and_then(|node| self.id(node, "the id of a phase"));
        let name = fields.get("name").and_then(|node| self.text(node, "`name`")).map(str::to_owned);
        let description = fields.get("description").and_then(|node| self.text(node, "`description`")).map(str::to_owned);
        let behavior =
            fields.get("behavior").and_then(|node| self.word(node, "`behavior`", &BEHAVIORS)).unwrap_or(Behavior::Parallel);
        let own_mode = fields.get("execution_mode").and_then(|node| self.word(node, "`execution_mode`", &MODES));
        let mut taken = BTreeSet::from([MAIN_TASK.to_owned(), ADAPTIVE_TASK.to_owned()]);
        let (tasks, suggestions) = self.tasks(fields, behavior, own_mode.unwrap_or(mode), &mut taken, order);
        let gap_check = self.gap_check(fields, &mut taken);
        let mut suggested = self.suggestions(fields);
        suggested.extend(suggestions);
        let (skills, budget) = (self.names(fields, "skills"), self.budget(fields));
        let gates = self.gates(fields, &tasks);
        let checkpoint = fields.get("checkpoint").and_then(|node| self.checkpoint(node, order));
        let fail_fast = fields.get("fail_fast").and_then(|node| self.boolean(node, "`fail_fast`")).unwrap_or(false);
        if ["tasks", "subagents", "gates", "checkpoint", "main_agent", "use"].iter().all(|key| fields.get(key).is_none()) {
            let help = "give it `tasks`, `subagents`, `gates`, a `main_agent` or a `checkpoint`";
            self.report.warning(ProblemCode::EmptyPhase, &fields.span, "this phase does nothing").help(help);
        }
        Some(Phase {
            id: PhaseId::new(id?),
            name,
            description,
            tasks,
            gates,
            checkpoint,
            fail_fast,
            execution_mode: own_mode,
            gap_check,
            skills,
            suggested,
            budget,
            vars: BTreeMap::new(),
            sequential: behavior == Behavior::Sequential,
            shell: None,
        })
    }

    /// The tasks of a phase: its own, those of its subagents, the adaptive script, the main script; and the suggested agent
    /// types.
    fn tasks(
        &mut self,
        phase: &Fields<'_, '_>,
        behavior: Behavior,
        mode: Mode,
        taken: &mut BTreeSet<String>,
        order: Order<'_>,
    ) -> (Vec<Task>, Vec<String>) {
        let nodes = phase.get("tasks").and_then(|node| self.list(node, "`tasks`")).unwrap_or_default();
        let mut raw: Vec<RawTask<'_, '_>> = nodes.iter().filter_map(|node| self.task(node)).collect();
        self.needs(&mut raw, behavior == Behavior::Sequential);
        let main = self.main_agent(phase);
        taken.extend(raw.iter().map(|task| task.task.id.to_string()));
        let Subagents { tasks: mut listed, adaptive } = self.subagents(phase, taken);
        if behavior == Behavior::Sequential {
            let mut before = raw.last().map(|task| task.task.id.clone());
            for task in &mut listed {
                task.needs.extend(before.replace(task.id.clone()));
            }
        }
        if behavior == Behavior::MainOnly {
            match phase.key("tasks").or(phase.key("subagents")) {
                Some(span) if !nodes.is_empty() || !listed.is_empty() || adaptive.is_some() => {
                    let help = "move the work into `main_agent`, or choose `parallel` or `sequential`";
                    self.error(ProblemCode::MainOnly, span, "a `main-only` phase has no tasks of its own").help(help);
                }
                Some(_) | None => {}
            }
            if phase.key("main_agent").is_none() && phase.key("checkpoint").is_none() && phase.key("gates").is_none() {
                let span = phase.key("behavior").unwrap_or(&phase.span);
                self.report.warning(ProblemCode::MainOnly, span, "this `main-only` phase has no `main_agent`, so nothing runs");
            }
        }
        if main.is_some()
            && let Some(clash) = raw.iter().find(|task| task.task.id.as_str() == MAIN_TASK)
        {
            let help = "rename the task, or remove `main_agent`";
            self.error(ProblemCode::DuplicateId, &clash.id.span, "`main` is the id of the task that `main_agent` creates")
                .help(help);
        }
        let spans: Vec<Range<usize>> = raw.iter().map(|raw| raw.id.span.clone()).collect();
        let mut tasks: Vec<Task> = raw.into_iter().map(|raw| raw.task).collect();
        self.redo(&mut tasks, &spans, order.before().map(PhaseId::from).as_ref());
        let suggestions = match mode {
            Mode::Strict | Mode::Adaptive => {
                tasks.extend(listed);
                Vec::new()
            }
            // The main script decides; the listed agents are only suggested to it.
            Mode::Loose => listed.iter().filter_map(|task| task.agent()?.agent.clone()).collect(),
        };
        match (adaptive, mode) {
            (Some(script), Mode::Adaptive) => {
                let needs = tasks.iter().map(|task| task.id.clone()).collect();
                tasks.push(adaptive_task(script, needs));
            }
            (Some(_), Mode::Strict | Mode::Loose) => {
                let span = phase.key("subagents").unwrap_or(&phase.span);
                let message = format!("the script under `adaptive` does not run in the mode `{}`", mode.as_str());
                self.report.warning(ProblemCode::UnusedKey, span, message).help("write `execution_mode: adaptive`, or remove it");
            }
            (None, Mode::Strict | Mode::Loose | Mode::Adaptive) => {}
        }
        if let Some(work) = main {
            let needs = tasks.iter().map(|task| task.id.clone()).collect();
            tasks.push(Task { needs, ..Task::new(TaskId::new(MAIN_TASK), work) });
        }
        (tasks, suggestions)
    }

    fn main_agent(&mut self, phase: &Fields<'_, '_>) -> Option<Work> {
        let fields = phase.get("main_agent").and_then(|node| self.fields(node, &MAIN_AGENT))?;
        fields.get("description").map(|node| self.text(node, "`description`"));
        match (fields.get("script"), fields.get("prompt")) {
            (Some(node), None) => self.script(node, "`script`").map(Work::Script),
            (None, Some(_)) => Some(Work::Agent(Box::new(self.agent_work(&fields)))),
            (None, None) => {
                fields.require(self, "script");
                None
            }
            (Some(_), Some(node)) => {
                let message = "`main_agent` has a `script` or a `prompt`; this one has both";
                self.error(ProblemCode::ConflictingKeys, &node.span, message).help("call `thinkHard` from the script");
                None
            }
        }
    }

    /// The ids of the phases in order, so that checkpoints can name them. Duplicates are reported once.
    pub(super) fn phase_ids<'n>(&mut self, nodes: &'n [Node<'_>]) -> Vec<&'n str> {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut ids = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some((id, text)) = id_of(node) else {
                ids.push("");
                continue;
            };
            if text == "current" {
                let message = "a phase cannot be called `current`: as a target that means the phase itself";
                self.error(ProblemCode::ReservedId, &id.span, message).help("choose another id");
            }
            match seen.get(text) {
                Some(first) => self.repeated_id("phase", id, text, *first),
                None => {
                    seen.insert(text, id.span.start);
                }
            }
            ids.push(text);
        }
        ids
    }
}

pub(super) fn id_of<'n, 'a>(phase: &'n Node<'a>) -> Option<(&'n Node<'a>, &'n str)> {
    use crate::spec::syntax::Content;
    let Content::Map(entries) = &*phase.content else { return None };
    let id = &entries.iter().find(|entry| entry.key == "id")?.value;
    match &*id.content {
        Content::Scalar(scalar) if !scalar.is_null() => Some((id, &scalar.text)),
        Content::Scalar(_) | Content::List(_) | Content::Map(_) => None,
    }
}
