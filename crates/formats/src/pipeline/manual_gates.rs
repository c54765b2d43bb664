//! Gates of a state file that have no command here: a person is asked about them at the end.

use super::import::StateFile;
use lockgate_engine::run::pipeline::bare_title;
use lockgate_engine::spec::reader::default_choices;
use lockgate_engine::spec::workflow::{Checkpoint, ManualGate, OnConditionError, WaitSettings, Workflow};

/// Leaves the gates to a person that a state file has as pending and that the pipeline does not know, such as those that a review
/// asked for; gives which.
pub fn leave_to_a_person(workflow: &mut Workflow, state: &StateFile) -> Vec<String> {
    let Workflow { phases, pipeline: Some(pipeline), .. } = workflow else { return Vec::new() };
    let own = phases.iter().flat_map(|phase| &phase.gates).map(|gate| gate.title());
    let known: Vec<&str> = own.chain(pipeline.manual_gates.iter().map(|gate| gate.title.as_str())).map(bare_title).collect();
    let unknown = |title: &&String| !known.contains(&bare_title(title));
    let titles: Vec<String> = state.gates_pending.iter().filter(unknown).cloned().collect();
    let last = pipeline.phases.len().checked_sub(1).and_then(|last| phases.get_mut(last));
    let Some(last) = last.filter(|_| !titles.is_empty()) else { return Vec::new() };
    let list: String = titles.iter().map(|title| format!("- {}\n", title.replace("{{", "\\{{"))).collect();
    let holds = format!("By continuing you say that this holds, which the imported file has as pending:\n{list}");
    let asked = last.checkpoint.take();
    let prompt = match &asked {
        Some(asked) => format!("{holds}{}", asked.prompt),
        None => format!("{holds}Is the pipeline complete?"),
    };
    let blank = || Checkpoint {
        condition: None,
        on_condition_error: OnConditionError::default(),
        prompt: String::new(),
        show_files: Vec::new(),
        show_diff: None,
        options: default_choices(false),
        question: None,
        waits: WaitSettings::default(),
    };
    last.checkpoint = Some(Checkpoint { prompt, ..asked.unwrap_or_else(blank) });
    let manual_gates = titles.iter().map(|title| ManualGate {
        title: title.clone(),
        phase: last.id.clone(),
        criteria: None,
        convention: None,
        task: None,
    });
    pipeline.manual_gates.extend(manual_gates);
    titles
}
