//! Applying messages, conflicts and knowledge of agents.

use super::ApplyError;
use crate::id::ConflictId;
use crate::run::event::AttemptReason;
use crate::run::state::{Run, TaskState};
use crate::run::team::{Conflict, Delivery, MessageKind, Sender, TeamEvent};
use crate::time::Timestamp;

impl Run {
    pub(super) fn team_event(&mut self, event: &TeamEvent, at: Timestamp) -> Result<(), ApplyError> {
        match event {
            TeamEvent::MessageSent(message) => {
                self.touched.referenced_values.extend(message.payload.stored());
                if let (MessageKind::Handoff, Sender::Member { key, .. }) = (message.kind, &message.from) {
                    let phase = self.current_phase_mut()?;
                    let index = phase.find(key).ok_or_else(|| ApplyError(format!("unknown task {}", key.address())))?;
                    phase.tasks[index].exchange_mut().handed_to.clone_from(&message.to);
                }
                let team = self.team_mut();
                // A response says that its sender has read the message.
                if let (MessageKind::Response, Some(name), Some(id)) = (message.kind, message.from.member(), &message.correlation)
                    && let Some(asked) = team.messages.iter_mut().find(|known| known.id == *id)
                {
                    asked.acknowledge(name);
                }
                team.messages.push(message.clone());
            }
            TeamEvent::MessagesDelivered { key, attempt, messages } => {
                let to = self.member_name(key);
                for message in self.team_mut().messages.iter_mut().filter(|message| messages.contains(&message.id)) {
                    message.deliveries.push(Delivery { to: to.clone(), key: key.clone(), attempt: *attempt });
                }
            }
            TeamEvent::MessageAcknowledged { message, by } => {
                let known = self.team_mut().messages.iter_mut().find(|known| known.id == *message);
                known.ok_or_else(|| ApplyError(format!("unknown message {message}")))?.acknowledge(by);
            }
            TeamEvent::HandedOff { key, attempt, agent, .. } => {
                self.agent_reported(key, agent.as_deref(), at)?;
                self.team_mut().acknowledge_delivered(key, *attempt);
                self.task(key, at, |task| {
                    task.next_reason = AttemptReason::Handoff;
                    TaskState::Waiting
                })?;
            }
            TeamEvent::ConflictOpened(conflict) => self.team_mut().conflicts.push(conflict.clone()),
            TeamEvent::Voted { conflict, vote } => self.conflict(conflict)?.votes.push(vote.clone()),
            TeamEvent::RoundStarted { conflict, round } => self.conflict(conflict)?.round = *round,
            TeamEvent::ConflictEscalated { conflict, hold, .. } => self.conflict(conflict)?.hold = Some(hold.clone()),
            TeamEvent::ConflictResolved { conflict, resolution } => {
                self.conflict(conflict)?.resolution = Some(resolution.clone());
            }
            TeamEvent::KnowledgeCaptured(entry) => {
                self.touched.referenced_values.extend(entry.content.stored());
                self.team_mut().knowledge.captured.push(entry.clone());
            }
            TeamEvent::KnowledgeInjected { key, ids, entries } => {
                self.touched.referenced_values.extend(entries.iter().filter_map(|entry| entry.content.stored()));
                let knowledge = &mut self.team_mut().knowledge;
                knowledge.injected.extend(entries.iter().cloned());
                knowledge.selections.insert(key.address(), ids.clone());
            }
        }
        Ok(())
    }

    fn conflict(&mut self, id: &ConflictId) -> Result<&mut Conflict, ApplyError> {
        let found = self.team.as_mut().and_then(|team| team.conflict_mut(id));
        found.ok_or_else(|| ApplyError(format!("unknown conflict {id}")))
    }
}
