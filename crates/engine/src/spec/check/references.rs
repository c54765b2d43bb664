//! References that lead nowhere: outputs of tasks that do not exist or have not run yet, `item` outside of a fan-out, undeclared
//! agents. They would fail in the middle of a run, so they are reported when the file is read.

use super::Checker;
use crate::hold::Action;
use crate::id::PhaseId;
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use crate::spec::suggest;
use crate::spec::syntax::Node;
use crate::spec::workflow::{AgentSetting, DEFAULT_AGENT, Phase, Session, Work};
use crate::template::{self, Escape, Reference};
use std::collections::BTreeMap;
use std::ops::Range;

/// How many reads of outputs get an exact position. Further ones get the position of the whole text.
const MAX_PLACED: usize = 200;

/// A read of a task's output.
pub(super) struct OutputRead {
    phase: String,
    task: Option<String>,
    span: Range<usize>,
    /// The index of the phase that reads it.
    position: usize,
}

/// A reference to an agent.
pub(super) struct AgentRead {
    name: String,
    span: Range<usize>,
}

/// What a task requires of its agent that not every agent can do, with the positions in the file.
pub(super) struct AgentDemand {
    pub(super) agent: Option<String>,
    pub(super) session: Option<(Session, Range<usize>)>,
    pub(super) allow: Option<Range<usize>>,
    pub(super) deny: Option<Range<usize>>,
}

/// The position of a template in the workflow.
#[derive(Clone, Copy, Default)]
pub(super) struct Here {
    /// The index of the phase; `None` outside of phases.
    pub(super) position: Option<usize>,
    /// Whether the task is a fan-out; `None` outside of tasks and gates.
    pub(super) in_list: Option<bool>,
}

impl Checker<'_, '_> {
    /// Records the outputs that a template reads, and reports `item` outside of a fan-out.
    pub(super) fn read_references(&mut self, node: &Node<'_>, text: &str, escape: Escape) {
        for (reference, part) in template::references(text, escape) {
            match (reference, self.here) {
                (Reference::Output { phase, task }, Here { position: Some(position), .. }) => {
                    self.read_output(node, part, OutputRead { phase, task, span: node.span.clone(), position });
                }
                (Reference::Item, Here { in_list: Some(false), .. }) => {
                    let span = self.part_of(node, &part);
                    let message = "`item` has no meaning here: the task does not run once per item of a list";
                    self.error(ProblemCode::InvalidTemplate, &span, message).help("give the task a list with `for_each`");
                }
                (Reference::Output { .. } | Reference::Item, _) => {}
            }
        }
    }

    /// Records each output once per reading phase. Finding a position takes time proportional to the text, so the number of exact
    /// positions is limited.
    fn read_output(&mut self, node: &Node<'_>, part: Range<usize>, read: OutputRead) {
        let key = (read.position, read.phase.clone(), read.task.clone());
        if self.outputs_known.contains(&key) {
            return;
        }
        let span = if self.outputs_known.len() < MAX_PLACED { self.part_of(node, &part) } else { read.span };
        self.outputs_known.insert(key);
        self.outputs_read.push(OutputRead { span, ..read });
    }

    /// Records a reference to an agent.
    pub(super) fn read_agent(&mut self, name: &str, span: &Range<usize>) {
        self.agents_read.push(AgentRead { name: name.to_owned(), span: span.clone() });
    }

    /// Reports outputs that cannot exist when they are read. `ids` are the phases as listed in the file, including those that
    /// could not be read.
    pub(super) fn outputs_exist(&mut self, phases: &[Phase], ids: &[&str]) {
        // A workflow that is used by another one may read outputs of that one.
        let is_used = self.depth > 0;
        for read in std::mem::take(&mut self.outputs_read) {
            let found = phases.iter().enumerate().find(|(_, phase)| phase.id.as_str() == read.phase);
            match found {
                None if is_used || ids.contains(&read.phase.as_str()) && !uses(phases, &read.phase) => {}
                None => self.no_such_phase(phases, &read),
                Some((at, _)) if at > read.position => self.not_yet_there(phases, &read, at),
                Some((_, phase)) => self.no_such_output(phase, &read),
            }
        }
    }

    fn no_such_phase(&mut self, phases: &[Phase], read: &OutputRead) {
        let message = format!("there is no phase `{}` to read outputs from", shown(&read.phase));
        let long = read.task.as_ref().map(|task| format!("{}.{task}", read.phase));
        let meant = long.filter(|long| phases.iter().any(|phase| phase.id.as_str() == long.as_str()));
        match meant {
            Some(long) => {
                let help = format!("a phase of a used workflow is named in brackets: `outputs['{}']`", shown(&long));
                self.error(ProblemCode::UnknownPhase, &read.span, message).help(help);
            }
            None => {
                let known = phases.iter().map(|phase| phase.id.as_str());
                self.none_of(ProblemCode::UnknownPhase, &read.span, message, &read.phase, known);
            }
        }
    }

    fn not_yet_there(&mut self, phases: &[Phase], read: &OutputRead, at: usize) {
        let named = shown(&read.phase);
        // Once the run has gone back, the later phase has run.
        if goes_back(phases, at, read.position) {
            let message = format!("phase `{named}` comes later, so its outputs do not exist before the run goes back");
            let help = "give the task a `when` that is true only then, or move it after that phase";
            self.report.warning(ProblemCode::PhaseOrder, &read.span, message).help(help);
        } else {
            let message = format!("phase `{named}` comes later, so its outputs never exist here");
            self.error(ProblemCode::PhaseOrder, &read.span, message)
                .help("move the task after that phase, or read an earlier one");
        }
    }

    fn no_such_output(&mut self, phase: &Phase, read: &OutputRead) {
        let Some(task) = &read.task else { return };
        let chosen_by_script = phase.tasks.iter().any(|task| matches!(task.work, Work::Adaptive(_)));
        if chosen_by_script || phase.tasks.iter().any(|known| known.id.as_str() == task) {
            return;
        }
        let message = format!("phase `{}` has no task `{}`", shown(phase.id.as_str()), shown(task));
        let known = phase.tasks.iter().map(|task| task.id.as_str());
        self.none_of(ProblemCode::UnknownTask, &read.span, message, task, known);
    }

    /// Warns about agents that neither the file nor the project's settings declare.
    pub(super) fn agents_declared(&mut self, agents: &BTreeMap<String, AgentSetting>) {
        let reads = std::mem::take(&mut self.agents_read);
        if reads.is_empty() || self.depth > 0 {
            return;
        }
        let configured = self.includes.agents();
        let known = || agents.keys().chain(&configured).map(String::as_str);
        for read in reads {
            if read.name == DEFAULT_AGENT || known().any(|name| name == read.name) {
                continue;
            }
            let name = shown(&read.name);
            // Without any declared agent there is nothing to misspell: the agent is chosen when the run starts.
            let Some(help) = suggest::meant_or_known(&read.name, known()) else { continue };
            let message = format!("agent `{name}` is not declared, so the default agent is used");
            self.report.warning(ProblemCode::UnknownAgent, &read.span, message).help(help);
        }
    }

    /// Warns about requirements that the agent cannot meet. A run can be started with another agent, so these are not errors.
    pub(super) fn agents_can(&mut self, agents: &BTreeMap<String, AgentSetting>) {
        let demands = std::mem::take(&mut self.agent_demands);
        let mut known = BTreeMap::new();
        for AgentDemand { agent, session, allow, deny } in demands.into_iter().filter(|_| self.depth == 0) {
            let limits = known.entry(agent).or_insert_with_key(|agent| self.includes.agent_limits(agents, agent.as_deref()));
            let Some(limits) = limits else { continue };
            let what = shown(&limits.what);
            if let Some((session, span)) = session.filter(|_| !limits.resumes) {
                let word = if session == Session::Same { "same" } else { "resume" };
                let message = format!("`session: {word}` has no effect: {what} cannot continue a session");
                self.report.warning(ProblemCode::UnusedKey, &span, message).help("use an agent preset, or remove it");
            }
            let tools = [("allow", allow.filter(|_| !limits.allows_tools)), ("deny", deny.filter(|_| !limits.denies_tools))];
            for (key, span) in tools.into_iter().filter_map(|(key, span)| Some((key, span?))) {
                let message = format!("{what} cannot {key} tools, so the task fails when it starts");
                let help = format!("remove `tools.{key}` and restrict the program in its own settings, or use another agent");
                self.report.warning(ProblemCode::NotSupported, &span, message).help(help);
            }
        }
    }
}

/// Whether a phase in the file is replaced by the phases of another workflow.
fn uses(phases: &[Phase], id: &str) -> bool {
    let prefix = format!("{id}.");
    phases.iter().any(|phase| phase.id.as_str().starts_with(&prefix))
}

/// Whether the run can go back from this phase or a later one to another phase or before it.
fn goes_back(phases: &[Phase], from: usize, to: usize) -> bool {
    let position = |id: &PhaseId| phases.iter().position(|phase| phase.id == *id);
    let back = |phase: &Phase| {
        phase.choices().any(|choice| match &choice.action {
            Action::RepeatPhase(target) => position(target).is_some_and(|target| target <= to),
            Action::Continue
            | Action::SkipPhases(_)
            | Action::Abort
            | Action::Rerun
            | Action::CountAsDone
            | Action::RaiseBudget(_)
            | Action::Redo(_)
            | Action::Fail
            | Action::RerunRest
            | Action::Reply => false,
        })
    };
    phases[from..].iter().any(back)
}
