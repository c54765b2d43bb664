//! Gates of an imported state file that have no command here: a person confirms them at the end.

use super::import::StateFile;
use lockgate_engine::run::pipeline::bare_title;
use lockgate_engine::spec::reader::default_choices;
use lockgate_engine::spec::workflow::{Checkpoint, ManualGate, OnConditionError, WaitSettings, Workflow};

/// Asks a person about gates that a state file lists as pending and the pipeline does not define, such as those that a review added.
/// Returns their titles.
pub fn leave_to_a_person(workflow: &mut Workflow, state: &StateFile) -> Vec<String> {
    let Workflow { phases, pipeline: Some(pipeline), .. } = workflow else { return Vec::new() };
    let own = phases.iter().flat_map(|phase| &phase.gates).map(|gate| gate.title());
    let known: Vec<&str> = own.chain(pipeline.manual_gates.iter().map(|gate| gate.title.as_str())).map(bare_title).collect();
    let unknown = |title: &&String| !known.contains(&bare_title(title));
    let titles: Vec<String> = state.gates_pending.iter().filter(unknown).cloned().collect();
    let last = pipeline.phases.len().checked_sub(1).and_then(|last| phases.get_mut(last));
    let Some(last) = last.filter(|_| !titles.is_empty()) else { return Vec::new() };
    let list: String = titles.iter().map(|title| format!("- {}\n", title.replace("{{", "\\{{"))).collect();
    let confirmation = format!("By continuing, you confirm these pending gates of the imported file:\n{list}");
    let checkpoint = last.checkpoint.take();
    let prompt = match &checkpoint {
        Some(checkpoint) => format!("{confirmation}{}", checkpoint.prompt),
        None => format!("{confirmation}Is the pipeline complete?"),
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
    last.checkpoint = Some(Checkpoint { prompt, ..checkpoint.unwrap_or_else(blank) });
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
