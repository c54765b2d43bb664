//! Checkpoints between phases, and commands from the settings for conventional gates.

use super::assemble::{literal, safe, unique};
use lockgate_engine::id::GateId;
use lockgate_engine::spec::reader::{DEFAULT_PROMPT, default_choices};
use lockgate_engine::spec::workflow::{Checkpoint, Gate, ManualGate, OnConditionError, WaitSettings, Workflow};
use std::collections::{BTreeMap, BTreeSet};

/// Takes the commands of conventional gates from the settings: gates with a command run it, all others stay manual.
pub fn with_gate_commands(workflow: &mut Workflow, commands: &BTreeMap<String, String>) {
    let Some(pipeline) = &mut workflow.pipeline else { return };
    let command = |gate: &ManualGate| gate.convention.as_ref().and_then(|name| commands.get(name)).cloned();
    let (decided, left): (Vec<ManualGate>, Vec<ManualGate>) =
        std::mem::take(&mut pipeline.manual_gates).into_iter().partition(|gate| command(gate).is_some());
    pipeline.manual_gates = left;
    if decided.is_empty() {
        return;
    }
    for gate in &decided {
        let position = workflow.phases.iter().position(|phase| phase.id == gate.phase);
        let Some((phase, said)) =
            position.and_then(|position| Some((&mut workflow.phases[position], pipeline.phases.get_mut(position)?)))
        else {
            continue;
        };
        let (Some(run), Some(name)) = (command(gate), &gate.convention) else { continue };
        let ids = phase.tasks.iter().map(|task| task.id.to_string()).chain(phase.gates.iter().map(|gate| gate.id.to_string()));
        let mut taken: BTreeSet<String> = ids.collect();
        let plain = gate.task.as_ref().map_or_else(|| safe(name), |owner| format!("{}-{owner}", safe(name)));
        let id = GateId::new(unique(&plain, "gate", &mut taken));
        said.gates.push(id.clone());
        phase.gates.push(Gate { task: gate.task.clone(), title: Some(gate.title.clone()), ..Gate::new(id, literal(&run)) });
    }
    ask_between_phases(workflow);
}

/// Adds a checkpoint between phases, and after every phase with a manual gate.
pub(super) fn ask_between_phases(workflow: &mut Workflow) {
    let Some(pipeline) = &workflow.pipeline else { return };
    let count = pipeline.phases.len();
    for number in 0..count.min(workflow.phases.len()) {
        let manual_gates: Vec<&ManualGate> =
            pipeline.manual_gates.iter().filter(|gate| gate.phase == workflow.phases[number].id).collect();
        let next = pipeline.phases.get(number + 1);
        if next.is_none() && manual_gates.is_empty() {
            workflow.phases[number].checkpoint = None;
            continue;
        }
        let mut prompt = format!("{} is done ({} of {count}).\n", pipeline.phases[number].name, number + 1);
        if !manual_gates.is_empty() {
            prompt += "By continuing, you confirm:\n";
            for gate in manual_gates {
                let criteria = gate.criteria.as_ref().map(|criteria| format!(": {criteria}")).unwrap_or_default();
                prompt += &format!("- {}{criteria}\n", gate.title);
            }
        }
        match next {
            Some(next) => {
                let name = |id: &str| pipeline.workstream(id).map(|stream| stream.name.clone()).unwrap_or_default();
                let members: Vec<String> = next.workstreams.iter().map(|id| format!("{id} {}", name(id.as_str()))).collect();
                let members = if members.is_empty() { String::new() } else { format!(" ({})", members.join(", ")) };
                prompt += &format!("Next: {}{members}.\n", next.name);
                let notes = workflow.phases.get(number + 1).and_then(|phase| phase.description.as_ref());
                notes.into_iter().for_each(|notes| prompt += &format!("{notes}\n"));
                prompt += DEFAULT_PROMPT;
            }
            None => prompt += "Is the pipeline complete?",
        }
        workflow.phases[number].checkpoint = Some(Checkpoint {
            condition: None,
            on_condition_error: OnConditionError::default(),
            prompt: literal(&prompt),
            show_files: Vec::new(),
            show_diff: None,
            options: default_choices(false),
            question: None,
            waits: WaitSettings::default(),
        });
    }
}
