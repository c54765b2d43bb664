//! The stored values that a state refers to.

use crate::digest::Digest;
use crate::hold::Hold;
use crate::run::event::OutputFile;
use crate::run::phase::PhaseRun;
use crate::run::state::Run;
use crate::stored_value::StoredValue;
use std::collections::{BTreeMap, BTreeSet};

impl Run {
    /// Every stored value that the state refers to, each once. Another store needs them to continue the run.
    pub fn referenced_values(&self) -> Vec<Digest> {
        let outputs = self.outputs.values().flat_map(BTreeMap::values);
        let items = self.item_outputs.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values);
        let values = self.vars.values().chain(outputs).chain(items).filter_map(StoredValue::stored);
        let written = self.deliverables.iter().map(|known| &known.file).chain(&self.finalized).filter_map(stored_file);
        let asked_before = self.decisions.iter().filter_map(|decision| decision.changeable.as_deref());
        let asked = self.holds.values().chain(asked_before).flat_map(shown_by);
        let imported = self.pipeline.as_ref().and_then(|known| Some(known.imported.as_ref()?.file.digest));
        let frozen = std::iter::once(self.definition).chain(self.files.iter().map(|file| file.digest));
        let issue = self.issue.iter().filter_map(|issue| issue.body.stored());
        let team = self.team.iter().flat_map(|team| team.stored_values());
        let known = frozen.chain(issue).chain(team).chain(values).chain(written).chain(asked).chain(imported);
        let of_phase = self.current.iter().flat_map(values_of_phase);
        known.chain(of_phase).collect::<BTreeSet<Digest>>().into_iter().collect()
    }
}

fn stored_file(file: &OutputFile) -> Option<Digest> {
    file.stored.then_some(file.digest)
}

fn shown_by(hold: &Hold) -> Vec<Digest> {
    let kept = hold.files.iter().filter(|file| file.not_kept.is_none()).filter_map(|file| file.seen.digest());
    kept.chain(hold.diff.as_ref().and_then(|diff| diff.change()?.text)).collect()
}

fn values_of_phase(phase: &PhaseRun) -> Vec<Digest> {
    let tasks = phase.tasks.iter().flat_map(|task| task.value.iter().chain(&task.previous));
    let queries = phase.agent_queries.iter().flat_map(|query| std::iter::once(&query.prompt).chain(&query.text));
    tasks.chain(queries).filter_map(StoredValue::stored).collect()
}
