//! Phases: the steps of a workflow.

use super::Checker;
use super::checkpoint::CHECKPOINT;
use super::choice::Order;
use super::fields::{Fields, Format, Key, Shape, words};
use super::gate::GATE;
use super::task::{RawTask, TASK};
use crate::id::{PhaseId, TaskId};
use crate::spec::code::ProblemCode;
use crate::spec::syntax::Node;
use crate::spec::workflow::{OnFail, OnInterrupt, Phase, Retry, Script, Task, Work};
use std::collections::BTreeMap;

const BEHAVIORS: [(&str, Behavior); 3] =
    [("parallel", Behavior::Parallel), ("sequential", Behavior::Sequential), ("main-only", Behavior::MainOnly)];

/// A phase.
pub(super) static PHASE: Format = Format {
    name: "phase",
    what: "a phase",
    known: &[
        Key::required("id", Shape::Id, "Unique in the workflow."),
        Key::optional("name", Shape::Text, "What people call it; the id when absent."),
        Key::optional("description", Shape::Text, "What it is for, for people."),
        Key::optional(
            "behavior",
            Shape::Words(&words(&BEHAVIORS)),
            "How tasks follow each other: `parallel` when their needs are done; `sequential`, where a task without `needs` also needs the one before it; `main-only` for the main script alone.",
        )
        .default("parallel"),
        Key::optional("tasks", Shape::List(&TASK, 0), "What to do."),
        Key::optional("gates", Shape::List(&GATE, 0), "Automatic checks after the tasks, in this order."),
        Key::optional("checkpoint", Shape::Map(&CHECKPOINT), "Where a person decides, after the gates."),
        Key::optional("main_agent", Shape::Map(&MAIN_AGENT), "A script that runs after all tasks, as the task `main`."),
        Key::optional(
            "fail_fast",
            Shape::Truth,
            "Whether the first failure ends the tasks under way; otherwise they may finish.",
        )
        .default("false"),
    ],
    later: &[
        "subagents",
        "suggested_subagents",
        "gap_check",
        "skills",
        "execution_mode",
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
        Key::required("script", Shape::Filled, "The body of a JavaScript function."),
        Key::optional("description", Shape::Text, "What it is for, for people."),
    ],
    later: &["prompt", "skills", "outputs", "timeout", "agent", "name"],
    rule: None,
};

/// The task that a main script becomes.
const MAIN: &str = "main";

/// How the tasks of a phase follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behavior {
    Parallel,
    Sequential,
    MainOnly,
}

impl Checker<'_, '_> {
    /// One phase.
    pub(super) fn phase(&mut self, node: &Node<'_>, order: Order<'_>) -> Option<Phase> {
        let fields = self.fields(node, &PHASE)?;
        let id = fields.require(self, "id").and_then(|node| self.id(node, "the id of a phase"));
        let name = fields.get("name").and_then(|node| self.text(node, "`name`")).map(str::to_owned);
        let description = fields.get("description").and_then(|node| self.text(node, "`description`")).map(str::to_owned);
        let behavior =
            fields.get("behavior").and_then(|node| self.word(node, "`behavior`", &BEHAVIORS)).unwrap_or(Behavior::Parallel);
        let tasks = self.tasks(&fields, behavior);
        let gates = self.gates(&fields);
        let checkpoint = fields.get("checkpoint").and_then(|node| self.checkpoint(node, order));
        let fail_fast = fields.get("fail_fast").and_then(|node| self.truth(node, "`fail_fast`")).unwrap_or(false);
        if ["tasks", "gates", "checkpoint", "main_agent"].iter().all(|key| fields.get(key).is_none()) {
            let help = "give it `tasks`, `gates`, a `main_agent` or a `checkpoint`";
            self.report.warning(ProblemCode::EmptyPhase, &fields.span, "this phase does nothing").help(help);
        }
        Some(Phase { id: PhaseId::new(id?), name, description, tasks, gates, checkpoint, fail_fast })
    }

    fn tasks(&mut self, phase: &Fields<'_, '_>, behavior: Behavior) -> Vec<Task> {
        let nodes = phase.get("tasks").and_then(|node| self.list(node, "`tasks`")).unwrap_or_default();
        let mut raw: Vec<RawTask<'_, '_>> = nodes.iter().filter_map(|node| self.task(node)).collect();
        self.needs(&mut raw, behavior == Behavior::Sequential);
        let main = self.main_script(phase);
        if behavior == Behavior::MainOnly {
            match phase.key("tasks") {
                Some(span) if !nodes.is_empty() => {
                    let help = "move the work into `main_agent`, or choose `parallel` or `sequential`";
                    self.error(ProblemCode::MainOnly, span, "a `main-only` phase has no tasks of its own").help(help);
                }
                Some(_) | None => {}
            }
            if phase.key("main_agent").is_none() {
                let span = phase.key("behavior").unwrap_or(&phase.span);
                self.report.warning(ProblemCode::MainOnly, span, "this `main-only` phase has no `main_agent`, so nothing runs");
            }
        }
        if main.is_some()
            && let Some(clash) = raw.iter().find(|task| task.task.id.as_str() == MAIN)
        {
            let help = "rename the task, or leave out `main_agent`";
            self.error(ProblemCode::DuplicateId, &clash.id.span, "`main` is the task that `main_agent` makes").help(help);
        }
        let mut tasks: Vec<Task> = raw.into_iter().map(|raw| raw.task).collect();
        if let Some(script) = main {
            let needs = tasks.iter().map(|task| task.id.clone()).collect();
            tasks.push(main_task(script, needs));
        }
        tasks
    }

    fn main_script(&mut self, phase: &Fields<'_, '_>) -> Option<Script> {
        let fields = phase.get("main_agent").and_then(|node| self.fields(node, &MAIN_AGENT))?;
        fields.get("description").map(|node| self.text(node, "`description`"));
        let node = fields.require(self, "script")?;
        self.script(node, "`script`")
    }

    /// The ids of the phases in order, so that checkpoints can name them; told twice is told once.
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

fn id_of<'n, 'a>(phase: &'n Node<'a>) -> Option<(&'n Node<'a>, &'n str)> {
    use crate::spec::syntax::Content;
    let Content::Map(entries) = &*phase.content else { return None };
    let id = &entries.iter().find(|entry| entry.key == "id")?.value;
    match &*id.content {
        Content::Scalar(scalar) if !scalar.is_null() => Some((id, &scalar.text)),
        Content::Scalar(_) | Content::List(_) | Content::Map(_) => None,
    }
}

fn main_task(script: Script, needs: Vec<TaskId>) -> Task {
    Task {
        id: TaskId::new(MAIN),
        name: None,
        needs,
        work: Work::Script(script),
        timeout: None,
        retry: Retry::default(),
        on_interrupt: OnInterrupt::Rerun,
        on_fail: OnFail::Fail,
        outputs: Vec::new(),
        env: BTreeMap::new(),
        secrets: Vec::new(),
        dir: None,
    }
}
