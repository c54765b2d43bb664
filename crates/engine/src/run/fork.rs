//! Forks: new runs that continue from the state of another run.

use crate::digest::Digest;
use crate::id::{DriverId, RunId};
use crate::run::Refusal;
use crate::run::command::{AnswerChange, Envelope};
use crate::run::decide::change_answer;
use crate::run::event::{Created, Entry, Event, Forked, Origin};
use crate::run::state::Run;
use crate::spec::workflow::Workflow;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The properties of a fork that differ from its parent's.
#[derive(Clone, Debug)]
pub struct ForkAs {
    pub run: RunId,
    /// Relative to the root.
    pub output_dir: String,
    pub driver: DriverId,
}

/// A new run that continues from another one.
#[derive(Clone, Debug)]
pub struct Fork {
    pub run: Run,
    pub entries: Vec<Entry>,
    /// The parent's state, a stored value that the first events refer to.
    pub state: (Digest, Vec<u8>),
}

/// Starts a run that continues from another one with a changed answer.
pub fn fork(envelope: &Envelope, change: &AnswerChange, parent: &Run, own: ForkAs) -> Result<Fork, Refusal> {
    let bytes = parent.to_bytes();
    let state = Digest::of(&bytes);
    let forked = Forked { parent: parent.id.clone(), version: parent.version, head: parent.head, state };
    let created = Created {
        run: own.run,
        kind: parent.kind,
        origin: Origin::Forked(Box::new(forked)),
        definition: parent.definition,
        files: parent.files.clone(),
        feature: parent.feature.clone(),
        flags: parent.flags.clone(),
        vars: parent.vars.clone(),
        output_dir: own.output_dir,
        driver: own.driver,
        detached: false,
        agent: parent.agent.clone(),
        issue: parent.issue.clone(),
    };
    let mut run = Run::forked(&created, parent.workflow.clone(), parent.clone(), envelope.at);
    let events = change_answer(&run, envelope, change)?;
    let entry = |event| Entry {
        at: envelope.at,
        actor: Some(Box::new(envelope.caller.actor().clone())),
        cause: envelope.id.clone(),
        event,
    };
    let mut entries = vec![entry(Event::Created(Box::new(created)))];
    for event in events {
        let entry = entry(event);
        run.apply(&entry).expect("events apply to the state on which they were decided");
        entries.push(entry);
    }
    Ok(Fork { run, entries, state: (state, bytes) })
}

impl Run {
    /// The initial state of a forked run: completed work stays completed, and the run has not ended.
    pub(super) fn forked(created: &Created, workflow: Arc<Workflow>, base: Self, at: Timestamp) -> Self {
        let started = Self::start(created, workflow, at);
        let (parent, state) = match &created.origin {
            Origin::Forked(forked) => (Some(forked.parent.clone()), Some(forked.state)),
            Origin::New | Origin::Imported(_) | Origin::Recovered(_) => (None, None),
        };
        // Open holds, presets, warnings and the parent's end stay with the parent.
        let mut run = Self {
            parent,
            outputs: base.outputs,
            item_outputs: base.item_outputs,
            deliverables: base.deliverables,
            decisions: base.decisions,
            completed: base.completed,
            iteration_counts: base.iteration_counts,
            skip_list: base.skip_list,
            not_done: base.not_done,
            voided: base.voided,
            position: base.position,
            subagents_spawned: base.subagents_spawned,
            gap_checks: base.gap_checks,
            spent: base.spent,
            sessions: base.sessions,
            pipeline: base.pipeline.map(|known| Box::new(known.continued(at))),
            consecutive_automatic: base.consecutive_automatic,
            team: base.team.map(|team| Box::new(team.continued())),
            ..started
        };
        let outputs = run.outputs.values().flat_map(BTreeMap::values).filter_map(|stored_value| stored_value.stored());
        let items = run.item_outputs.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values);
        let files = run.deliverables.iter().filter(|known| known.file.stored).map(|known| known.file.digest);
        let team = run.team.iter().flat_map(|team| team.stored_values());
        let kept: Vec<Digest> =
            outputs.chain(items.filter_map(|stored_value| stored_value.stored())).chain(files).chain(team).chain(state).collect();
        run.touched.referenced_values.extend(kept);
        run
    }
}
