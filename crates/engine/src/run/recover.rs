//! Recovery: a run whose history was lost continues from a snapshot of it.

use crate::digest::Digest;
use crate::hold::HoldState;
use crate::id::{DriverId, IdSource, SnapshotId};
use crate::run::Refusal;
use crate::run::apply::ApplyError;
use crate::run::command::Envelope;
use crate::run::decide::restored;
use crate::run::event::{Created, Entry, Event, Origin, RecoveredFrom};
use crate::run::index::TimerKind;
use crate::run::state::{NewTimer, Run, TaskState, Touched};
use crate::spec::workflow::Workflow;
use crate::time::Timestamp;
use std::sync::Arc;

/// A run that continues from a snapshot of itself.
#[derive(Clone, Debug)]
pub struct Recovered {
    pub run: Run,
    pub entries: Vec<Entry>,
    /// The state in the snapshot, a stored value that the first event refers to.
    pub state: (Digest, Vec<u8>),
}

/// Starts a new history of a run from the state in a snapshot, whose last event has the number `seq`. The run is not driven.
///
/// Nothing is known about what happened after the snapshot. So a person is asked about each task before it starts, and an answer
/// that had not taken effect yet is asked for again.
pub fn recover(envelope: &Envelope, base: &Run, snapshot: SnapshotId, seq: u64, driver: DriverId) -> Result<Recovered, Refusal> {
    envelope.caller.may_decide("recover a run")?;
    let bytes = base.to_bytes();
    let state = Digest::of(&bytes);
    let from = RecoveredFrom { snapshot, seq, version: base.version, head: base.head, state };
    let created = Created {
        run: base.id.clone(),
        kind: base.kind,
        origin: Origin::Recovered(Box::new(from.clone())),
        definition: base.definition,
        files: base.files.clone(),
        feature: base.feature.clone(),
        flags: base.flags.clone(),
        vars: base.vars.clone(),
        output_dir: base.output_dir.clone(),
        driver,
        detached: false,
        agent: base.agent.clone(),
        issue: base.issue.clone(),
    };
    let run = Run::recovered(&created, &from, base.workflow.clone(), base.clone(), envelope.at);
    let mut run = run.expect("a state fits the definition that is attached to it");
    let entry = |event| Entry {
        at: envelope.at,
        actor: Some(Box::new(envelope.caller.actor().clone())),
        cause: envelope.id.clone(),
        event,
    };
    let mut ids = IdSource::new(envelope.seed);
    let reason = format!("the run was recovered from snapshot {}, and this answer may have taken effect since", from.snapshot);
    let answered = base.holds.values().filter(|hold| hold.state == HoldState::Checking);
    let asked_again: Vec<Event> = answered.map(|hold| restored(base, hold, &reason, envelope.at, &mut ids)).collect();
    let mut entries = vec![entry(Event::Created(Box::new(created)))];
    for event in asked_again {
        let entry = entry(event);
        run.apply(&entry).expect("events apply to the state on which they were decided");
        entries.push(entry);
    }
    Ok(Recovered { run, entries, state: (state, bytes) })
}

impl Run {
    /// The initial state of a recovered run: that of the snapshot, with nothing running.
    pub(super) fn recovered(
        created: &Created,
        from: &RecoveredFrom,
        workflow: Arc<Workflow>,
        base: Self,
        at: Timestamp,
    ) -> Result<Self, ApplyError> {
        let mut run = Self {
            workflow,
            driver: created.driver.clone(),
            detached: created.detached,
            version: 0,
            next_seq: from.seq.saturating_add(1),
            head: Digest::ZERO,
            stopping: false,
            unverified: true,
            recovered: Some(Box::new(from.clone())),
            resume_point: Some(from.snapshot.clone()),
            offered: None,
            offered_state: None,
            touched: Touched::default(),
            ..base
        };
        run.no_longer_running(TaskState::Interrupted, false);
        if let Some(pipeline) = &mut run.pipeline {
            pipeline.stopped(at);
        }
        run.complete_commit()?;
        run.restore_index();
        run.touched.referenced_values = run.referenced_values();
        run.touched.referenced_values.push(from.state);
        Ok(run)
    }

    /// Writes the index rows of the state again, because the ones of its lost history are lost too.
    fn restore_index(&mut self) {
        let open: Vec<_> = self.holds.values().filter(|hold| hold.state == HoldState::Open).cloned().collect();
        self.touched.holds.extend(open.iter().map(|hold| hold.id.clone()));
        open.iter().for_each(|hold| self.add_timers(hold));
        let Some(phase) = &self.current else { return };
        let backoffs = phase.running().filter_map(|index| Some((phase.key(index), phase.tasks[index].state.next_try()?)));
        let timers = backoffs.map(|(key, (timer, due))| NewTimer {
            timer: timer.clone(),
            due,
            kind: TimerKind::Retry,
            target: key.address(),
        });
        self.touched.timers.extend(timers);
    }
}
