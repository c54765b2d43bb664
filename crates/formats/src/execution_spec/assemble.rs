//! Assembles the workflow from the parts of an EXECUTION-SPEC.

use super::assign_phases;
use super::checkpoints;
use super::gate::Definitions;
use super::phase::{self, Placed, RawPhase, covers};
use super::prompt::{self, Sections};
use super::workstream::{RawWorkstream, workstreams};
use super::{head, map, text};
use lockgate_engine::id::{GateId, PhaseId, TaskId};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Checker, Node};
use lockgate_engine::spec::workflow::{
    AgentWork, Gate, ManualGate, Phase, Pipeline, PipelinePhase, Prompt, Task, Work, Workflow, Workstream,
};
use lockgate_engine::time::parse_duration;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum length of an id derived from a name.
const MAX_ID: usize = 60;

/// The checked workflow; `None` if too much is missing. Errors are in the report either way.
pub(super) fn workflow(checker: &mut Checker<'_, '_>, root: &Node<'_>, body: &str) -> Option<Workflow> {
    let Some(top) = map(root) else {
        checker.wrong_kind(root, "the frontmatter of an EXECUTION-SPEC", "a map of keys and values");
        return None;
    };
    let span = top.entries.first().map_or(0..0, |entry| entry.key_span.clone());
    let head = head(checker, top, &span);
    let mut gates = Definitions::read(checker, top);
    let mut streams = workstreams(checker, top, &span, &mut gates);
    let mut phases = phase::phases(checker, top, &span, &mut streams, &mut gates);
    let placed = assign_phases::assign_phases(checker, &mut streams, &mut phases);
    gates.warn_of_unused(checker);
    let prd = head.prd?;
    let title = head.title.unwrap_or_else(|| prd.clone());
    let pipeline = format!("{prd} ({title})");
    let sections = Sections::of(body);
    let names: BTreeMap<&str, &str> = streams.iter().map(|stream| (stream.id.text, stream.name.as_str())).collect();
    let mut made = Made { ids: phase_ids(&phases), ..Made::default() };
    for (number, phase) in phases.iter().enumerate() {
        if phase.members.is_empty() && phase.gates.is_empty() && !checker.report.has_error() {
            let help = "list its workstreams under `parallel`, or remove it";
            checker.report.warning(ProblemCode::EmptyPhase, &phase.span, "this phase does nothing").help(help);
        }
        let one = One {
            number,
            phase,
            streams: &streams,
            placed: &placed,
            gates: &gates,
            pipeline: &pipeline,
            sections: &sections,
            names: &names,
            fail_fast: head.fail_fast,
        };
        one.make(&mut made);
    }
    let workstreams = streams.iter().enumerate().filter(|(position, _)| placed.phase_of[*position].is_some());
    let pipeline = Pipeline {
        prd: prd.clone(),
        title: title.clone(),
        phases: made.pipeline_phases,
        workstreams: workstreams.map(|(_, stream)| stream.checked()).collect(),
        manual_gates: made.manual_gates,
        on_complete: head.on_complete,
        state_file: head.state_file,
        criteria: gates.criteria(),
        unused_gates: gates.unused().map(str::to_owned).collect(),
        review: ["review", "adversarial_review"].iter().any(|key| top.asks_for(key)),
        deferred: streams.iter().filter(|stream| stream.placed.is_none()).map(|stream| TaskId::new(stream.id.text)).collect(),
    };
    let mut workflow = Workflow {
        name: prd,
        description: Some(title),
        version: top.get("version").and_then(text).map(str::to_owned),
        max_parallel: head.max_parallel,
        phases: made.phases,
        pipeline: Some(Box::new(pipeline)),
        ..Workflow::default()
    };
    checkpoints::ask_between_phases(&mut workflow);
    Some(workflow)
}

impl RawWorkstream<'_, '_> {
    fn checked(&self) -> Workstream {
        Workstream {
            id: TaskId::new(self.id.text),
            name: self.name.clone(),
            executor: self.executor.clone().filter(|_| self.run.is_none()),
            outputs: self.outputs.clone(),
            gates: self.gates.iter().map(|gate| gate.text.to_owned()).collect(),
        }
    }
}

/// The parts assembled so far.
#[derive(Default)]
struct Made {
    ids: Vec<String>,
    phases: Vec<Phase>,
    pipeline_phases: Vec<PipelinePhase>,
    manual_gates: Vec<ManualGate>,
}

/// One phase and everything needed to assemble it.
struct One<'t, 'n, 'a> {
    number: usize,
    phase: &'t RawPhase<'n>,
    streams: &'t [RawWorkstream<'n, 'a>],
    placed: &'t Placed,
    gates: &'t Definitions,
    pipeline: &'t str,
    sections: &'t Sections<'t>,
    names: &'t BTreeMap<&'t str, &'t str>,
    fail_fast: bool,
}

impl One<'_, '_, '_> {
    fn make(&self, made: &mut Made) {
        let id = PhaseId::new(made.ids[self.number].clone());
        let tasks: Vec<Task> = self.phase.members.iter().map(|member| self.task(*member)).collect();
        let mut taken: BTreeSet<String> = tasks.iter().map(|task| task.id.to_string()).collect();
        let mut gates = Vec::new();
        let mut add = |name: &str, owner: Option<&TaskId>| {
            let Some(definition) = self.gates.get(name) else { return };
            let title = owner.map_or_else(|| name.to_owned(), |owner| format!("{name} ({owner})"));
            let Some(run) = &definition.run else {
                let convention = definition.by_convention.then(|| name.to_owned());
                let (phase, criteria, task) = (id.clone(), definition.criteria.clone(), owner.cloned());
                made.manual_gates.push(ManualGate { title, phase, criteria, convention, task });
                return;
            };
            let plain = owner.map_or_else(|| safe(name), |owner| format!("{}-{owner}", safe(name)));
            let gate = GateId::new(unique(&plain, "gate", &mut taken));
            let (task, title) = (owner.cloned(), Some(title));
            gates.push(Gate { timeout: definition.timeout, task, title, ..Gate::new(gate, run.clone()) });
        };
        for member in &self.phase.members {
            let stream = &self.streams[*member];
            stream.gates.iter().for_each(|gate| add(gate.text, Some(&TaskId::new(stream.id.text))));
        }
        for gate in &self.phase.gates {
            let names_it = |member: &&usize| self.streams[**member].gates.iter().any(|own| own.text == gate.text);
            let naming: Vec<usize> = self.phase.members.iter().filter(names_it).copied().collect();
            if !covers(&self.phase.members, &self.placed.needs, &naming) {
                add(gate.text, None);
            }
        }
        made.pipeline_phases.push(PipelinePhase {
            name: self.phase.name.clone(),
            workstreams: tasks.iter().map(|task| task.id.clone()).collect(),
            gates: gates.iter().map(|gate| gate.id.clone()).collect(),
        });
        let description = (!self.phase.notes.is_empty()).then(|| self.phase.notes.join("\n"));
        let name = Some(self.phase.name.clone());
        made.phases.push(Phase {
            name,
            description,
            tasks,
            gates,
            fail_fast: self.fail_fast || self.phase.fail_fast,
            ..Phase::new(id)
        });
    }

    fn task(&self, member: usize) -> Task {
        let stream = &self.streams[member];
        let work = match &stream.run {
            Some(run) => Work::Run(run.clone()),
            None => {
                let prompt = Prompt::Text(literal(&self.prompt(member)));
                Work::Agent(Box::new(AgentWork { agent: stream.executor.clone(), prompt, ..AgentWork::default() }))
            }
        };
        let timeout = stream.fields.get("timeout").and_then(text).and_then(|text| parse_duration(text).ok());
        Task {
            name: Some(stream.name.clone()),
            needs: self.placed.needs[member].iter().map(|other| TaskId::new(self.streams[*other].id.text)).collect(),
            timeout: timeout.filter(|timeout| !timeout.is_zero()),
            ..Task::new(TaskId::new(stream.id.text), work)
        }
    }

    fn prompt(&self, member: usize) -> String {
        let stream = &self.streams[member];
        let name_of = |id: &str| self.names.get(id).copied();
        let needs: Vec<String> =
            stream.needs.iter().map(|need| format!("{}: {}", need.text, name_of(need.text).unwrap_or_default())).collect();
        let gates: Vec<String> = stream.gates.iter().filter_map(|gate| self.describe_gate(gate.text)).collect();
        let context = prompt::PromptContext {
            pipeline: self.pipeline,
            phase: &self.phase.name,
            notes: &self.phase.notes,
            needs: &needs,
            gates: &gates,
            sections: self.sections,
        };
        prompt::prompt(stream, &context)
    }

    fn describe_gate(&self, name: &str) -> Option<String> {
        let definition = self.gates.get(name)?;
        let run = match &definition.run {
            Some(run) => format!(": `{run}`"),
            None if definition.by_convention => ", as defined by this project".to_owned(),
            None => ", decided by a person".to_owned(),
        };
        let criteria = definition.criteria.as_ref().map(|criteria| format!(" ({criteria})")).unwrap_or_default();
        Some(format!("{name}{run}{criteria}"))
    }
}

/// Escapes a text so that it contains no template expressions.
pub(super) fn literal(text: &str) -> String {
    text.replace("{{", "\\{{")
}

/// The ids of the phases: `phase-2` if the name starts with a number like that, otherwise the whole name; all unique.
fn phase_ids(phases: &[RawPhase<'_>]) -> Vec<String> {
    let short: Vec<String> = phases.iter().map(|phase| numbered(&phase.name).unwrap_or_else(|| safe(&phase.name))).collect();
    // As a target, `current` means the phase itself.
    let mut taken = BTreeSet::from(["current".to_owned()]);
    let mut ids = Vec::with_capacity(phases.len());
    for (phase, candidate) in phases.iter().zip(&short) {
        let alone = short.iter().filter(|other| *other == candidate).count() == 1;
        let plain = if alone { candidate.clone() } else { safe(&phase.name) };
        ids.push(unique(&plain, "phase", &mut taken));
    }
    ids
}

/// `phase-2b` out of `Phase 2b — Service layer`.
fn numbered(name: &str) -> Option<String> {
    let rest = name
        .get(..5)
        .filter(|word| word.eq_ignore_ascii_case("phase"))
        .map(|_| name[5..].trim_start_matches([' ', '_', '-', '#']))?;
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.').unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    (number.starts_with(|first: char| first.is_ascii_digit()) && number.len() <= 8)
        .then(|| format!("phase-{}", number.to_ascii_lowercase()))
}

/// The characters of a name that are allowed in an id.
pub(super) fn safe(name: &str) -> String {
    let mut id = String::new();
    for letter in name.chars() {
        match letter {
            'a'..='z' | '0'..='9' | '_' | '.' if !(id.is_empty() && letter == '.') => id.push(letter),
            'A'..='Z' => id.push(letter.to_ascii_lowercase()),
            _ if !id.is_empty() && !id.ends_with('-') => id.push('-'),
            _ => {}
        }
    }
    id.truncate(MAX_ID);
    id.trim_end_matches(['-', '.']).to_owned()
}

/// The id, with a numeric suffix if it is taken.
pub(super) fn unique(plain: &str, otherwise: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = if plain.is_empty() || plain.starts_with('-') { format!("{otherwise}{plain}") } else { plain.to_owned() };
    let mut id = plain.clone();
    let mut number = 1;
    while !taken.insert(id.clone()) {
        number += 1;
        id = format!("{plain}-{number}");
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_derived_from_names() {
        assert_eq!(numbered("Phase 2b — Service layer").as_deref(), Some("phase-2b"));
        assert_eq!(numbered("phase_1").as_deref(), Some("phase-1"));
        assert_eq!(numbered("Phases"), None);
        assert_eq!(safe("Deferred — Child/Spec (Ünder)."), "deferred-child-spec-nder");
        assert_eq!(safe("../.."), "");
        let mut taken = BTreeSet::new();
        let ids: Vec<String> = ["a", "a", "", "-x"].iter().map(|plain| unique(plain, "gate", &mut taken)).collect();
        assert_eq!(ids, ["a", "a-2", "gate", "gate-x"]);
    }
}
