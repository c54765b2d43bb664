//! Going back to an earlier state of the same run.

use super::ApplyError;
use crate::digest::Digest;
use crate::hold::{HoldState, Scope};
use crate::id::{HoldId, PhaseId, SnapshotId, TaskKey};
use crate::run::budget::Spent;
use crate::run::event::{Requester, Rewound};
use crate::run::refusal::scope_of;
use crate::run::state::{Decision, Run, TaskState, VoidedHold};
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// Why a hold or an answer no longer counts after the run went back.
pub(in crate::run) fn rewound_reason(snapshot: &SnapshotId) -> String {
    format!("the run was rewound to snapshot {snapshot}")
}

impl Run {
    /// Provides an earlier state, with its definition, that the next event may refer to.
    pub fn offer_state(&mut self, digest: Digest, state: Self) {
        self.offered_state = Some((digest, Box::new(state)));
    }

    /// The highest revision that anyone can have seen of a hold; 0 if there is no such hold.
    pub(in crate::run) fn highest_revision(&self, hold: &HoldId) -> u32 {
        let open = self.holds.get(hold).map(|hold| hold.revision);
        let answered = self.decisions.iter().filter(|decision| decision.hold == *hold).map(|decision| decision.revision);
        let voided = self.voided.iter().filter(|voided| voided.hold == *hold).map(|voided| voided.revision);
        open.into_iter().chain(answered).chain(voided).max().unwrap_or(0)
    }

    /// The run has the progress of the earlier state, and keeps what must never be taken back.
    pub(super) fn rewound(&mut self, rewound: &Rewound, at: Timestamp) -> Result<(), ApplyError> {
        let offered = self.offered_state.take().filter(|(digest, _)| *digest == rewound.state);
        let (_, base) = offered.ok_or_else(|| ApplyError(format!("the state {} was not provided", rewound.state)))?;
        self.timers_removed();
        self.holds.values().cloned().collect::<Vec<_>>().iter().for_each(|hold| self.remove_timers(hold));
        let mut now = std::mem::replace(self, *base);
        let touched = std::mem::take(&mut now.touched);
        self.touched = touched;
        self.touched.referenced_values.extend([rewound.state, self.definition]);
        self.touched.referenced_values.extend(self.files.iter().map(|file| file.digest));
        self.touched.closed.retain(|closed| !self.holds.contains_key(&closed.id));
        self.keep_counts(&now);
        self.keep_answers(&now, &rewound_reason(&rewound.snapshot), at);
        self.keep_sessions(&now);
        self.no_longer_running(TaskState::Waiting, true);
        self.new_iteration(&now.iteration_counts);
        // Records that only grow stay as they are: warnings, attempts that were refused, messages between agents.
        self.warnings = now.warnings;
        self.refused_attempts = now.refused_attempts;
        self.team = now.team;
        self.forget_closed_questions();
        (self.version, self.next_seq, self.head) = (now.version, now.next_seq, now.head);
        (self.started_at, self.parent, self.listed) = (now.started_at, now.parent, now.listed);
        (self.detached, self.presets) = (now.detached, now.presets);
        self.unverified |= now.unverified;
        self.recovered = now.recovered;
        self.resume_point = Some(rewound.snapshot.clone());
        if let (Some(pipeline), Some(now)) = (&mut self.pipeline, now.pipeline) {
            pipeline.notes = now.notes;
            pipeline.moved |= now.moved;
            pipeline.stopped(at);
        }
        self.resumed(now.driver);
        self.end = None;
        self.complete_commit()
    }

    /// A conflict whose question to a person no longer counts is put to a person again.
    fn forget_closed_questions(&mut self) {
        let holds = &self.holds;
        for conflict in self.team.iter_mut().flat_map(|team| &mut team.conflicts) {
            if conflict.resolution.is_none() {
                conflict.hold = conflict.hold.take().filter(|hold| holds.contains_key(hold));
            }
        }
    }

    /// What was spent stays spent. A budget that was raised since is no longer raised, because that answer no longer counts.
    fn keep_counts(&mut self, now: &Self) {
        self.subagents_spawned = self.subagents_spawned.max(now.subagents_spawned);
        for (scope, spent) in &now.spent {
            let kept = self.spent_mut(scope);
            *kept = Spent { raised: kept.raised, accepted_unknown: kept.accepted_unknown, ..*spent };
        }
    }

    /// Answers since then stay in the list, but no longer count. Open holds get a revision that no earlier answer names.
    fn keep_answers(&mut self, now: &Self, reason: &str, at: Timestamp) {
        for hold in self.holds.values_mut() {
            hold.revision = hold.revision.max(now.highest_revision(&hold.id));
            if hold.state == HoldState::Checking {
                // Its answer was given before the snapshot and still counts, but no late check of an earlier revision does.
                hold.revision = hold.revision.saturating_add(1);
                self.touched.holds.push(hold.id.clone());
            }
        }
        self.voided.clone_from(&now.voided);
        let later = now.decisions.get(self.decisions.len()..).unwrap_or_default();
        for decision in later {
            if !decision.void && !self.holds.contains_key(&decision.hold) {
                let (hold, scope, revision) = (decision.hold.clone(), scope_of(decision), decision.revision);
                self.voided.push(VoidedHold { hold, scope, reason: reason.to_owned(), at, revision });
            }
            self.decisions.push(Decision { void: true, ..decision.clone() });
        }
    }

    /// A session that continued since then has used more than the earlier state knows, and that must not be counted twice.
    fn keep_sessions(&mut self, now: &Self) {
        for known in self.sessions.by_task.values_mut().chain(self.sessions.by_agent.values_mut()) {
            known.usage = now.session_known(&known.id).and_then(|now| now.usage).or(known.usage);
        }
    }

    /// The current phase continues as a new execution, so that its tasks, their logs and late outcomes are never mistaken for
    /// those of an execution before.
    fn new_iteration(&mut self, now: &BTreeMap<PhaseId, u32>) {
        for (phase, count) in now {
            let known = self.iteration_counts.entry(phase.clone()).or_default();
            *known = (*known).max(*count);
        }
        let Some(phase) = &mut self.current else { return };
        let count = self.iteration_counts.entry(phase.id.clone()).or_default();
        *count = count.saturating_add(1).max(phase.iteration.saturating_add(1));
        phase.iteration = *count;
        let (id, iteration) = (phase.id.clone(), phase.iteration);
        for query in &mut phase.agent_queries {
            match &mut query.requester {
                Requester::Task(key) => key.iteration = iteration,
                Requester::Gaps { iteration: known, .. } => *known = iteration,
            }
        }
        for hold in self.holds.values_mut().filter(|hold| hold.scope.phase() == Some(&id)) {
            hold.scope.set_iteration(iteration);
        }
        if let Some(pipeline) = &mut self.pipeline {
            let unchecked = std::mem::take(&mut pipeline.artifacts_unchecked);
            let renumbered = |key: TaskKey| if key.phase == id { TaskKey { iteration, ..key } } else { key };
            pipeline.artifacts_unchecked = unchecked.into_iter().map(renumbered).collect();
        }
    }
}

impl Scope {
    fn set_iteration(&mut self, now: u32) {
        match self {
            Self::Run => {}
            Self::Phase { iteration, .. } | Self::Gate { iteration, .. } | Self::Gaps { iteration, .. } => *iteration = now,
            Self::Tasks(keys) => keys.iter_mut().for_each(|key| key.iteration = now),
        }
    }
}
