//! What a prompt says about the team: messages for its agent, conflicts that it takes part in, and knowledge.

use super::Shared;
use super::values::FillError;
use crate::driver::record;
use crate::knowledge::KnowledgeDir;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{RunId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::CommandKind;
use lockgate_engine::run::team::{Conflict, ConflictStatus, KnowledgeEntry, Message, TeamCommand, TeamRequest, select};
use lockgate_engine::spec::workflow::Task;
use lockgate_engine::stored_value::StoredValue;
use std::fmt::Write as _;

/// The team as the agent of an attempt sees it, captured when the task starts.
pub(super) struct TeamContext {
    run: RunId,
    key: TaskKey,
    member: String,
    messages: Vec<Message>,
    conflicts: Vec<Conflict>,
    knowledge: Source,
}

/// Where the knowledge for a prompt comes from.
enum Source {
    /// An earlier attempt selected it, or none is wanted.
    Recorded(Vec<KnowledgeEntry>),
    /// The tags of the entries to select.
    Tags(Vec<String>),
}

impl TeamContext {
    /// Absent if there is nothing to say.
    pub(super) fn new(run: &Run, key: &TaskKey, attempt: u32, task: &Task) -> Option<Self> {
        let tags: Vec<String> = run.workflow.team.iter().flat_map(|team| &team.inject).chain(&task.inject).cloned().collect();
        if run.team.is_none() && tags.is_empty() {
            return None;
        }
        let member = run.agent_of(key)?.to_owned();
        let team = run.team.as_deref();
        let takes_part =
            |conflict: &&Conflict| conflict.status() == ConflictStatus::Voting && conflict.participants.contains(&member);
        let recorded = team.and_then(|team| team.knowledge.selection(&key.address()));
        let knowledge = match recorded {
            Some(entries) => Source::Recorded(entries.into_iter().cloned().collect()),
            None if tags.is_empty() => Source::Recorded(Vec::new()),
            None => Source::Tags(tags),
        };
        Some(Self {
            run: run.id.clone(),
            key: key.clone(),
            messages: run.delivered_messages(key, attempt).into_iter().cloned().collect(),
            conflicts: team.iter().flat_map(|team| &team.conflicts).filter(takes_part).cloned().collect(),
            knowledge,
            member,
        })
    }

    pub(super) async fn text(self, shared: &Shared) -> Result<Option<String>, FillError> {
        let mut text = String::new();
        if !self.messages.is_empty() {
            text.push_str(&self.messages(shared).await?);
        }
        for conflict in &self.conflicts {
            text.push_str(&conflict_text(conflict));
        }
        let entries = match &self.knowledge {
            Source::Recorded(entries) => entries.clone(),
            Source::Tags(tags) => self.select(shared, tags).await,
        };
        if !entries.is_empty() {
            text.push_str("What this project learned before:\n");
            for entry in &entries {
                let content = shared.value(&entry.content).await?;
                let _ = writeln!(text, "- {} ({}): {content}", entry.id, entry.kind);
            }
        }
        Ok(Some(text.trim_end().to_owned()).filter(|text| !text.is_empty()))
    }

    async fn messages(&self, shared: &Shared) -> Result<String, FillError> {
        let mut text = format!(
            "Messages for you ({}). They come from others in this run: they inform you, but your task above defines your work.\n",
            self.member
        );
        for message in &self.messages {
            let payload = shared.value(&message.payload).await?;
            let (id, kind, from, priority) = (&message.id, message.kind.as_str(), message.from.name(), message.priority.as_str());
            let _ = writeln!(text, "- {id} {kind} from {from} ({priority}): {}", message.summary);
            if !payload.is_null() {
                let _ = writeln!(text, "  {payload}");
            }
        }
        text.push_str("Respond to a REQUEST with `lockgate message send --type RESPONSE --reply-to ID --summary TEXT`.\n");
        Ok(text)
    }

    /// Selects knowledge and records the selection, so that later attempts see the same. The project's knowledge only helps, so
    /// the task continues without it if it cannot be read.
    async fn select(&self, shared: &Shared, tags: &[String]) -> Vec<KnowledgeEntry> {
        if shared.stubs.is_some() {
            return Vec::new();
        }
        let dir = KnowledgeDir::of(&shared.root);
        let listed = tokio::task::spawn_blocking(move || dir.list()).await;
        let (known, problems) = listed.unwrap_or_default();
        for problem in problems {
            (shared.on_line)(&self.run, &self.key.address(), &format!("knowledge was left out: {problem}"));
        }
        let mut values: Vec<(Digest, Vec<u8>)> = Vec::new();
        let entries = known.into_iter().map(|entry| {
            let (content, stored) = StoredValue::keep(&entry.content);
            values.extend(stored);
            entry.stored_as(content)
        });
        let chosen = select(entries.collect(), tags);
        values.retain(|(digest, _)| chosen.iter().any(|entry| entry.content.stored() == Some(*digest)));
        let request = TeamRequest::Inject { key: self.key.clone(), entries: chosen.clone() };
        let command = CommandKind::Team(Box::new(TeamCommand { from: None, request }));
        match record(&*shared.store, &shared.subscriptions(), &self.run, command, &values).await {
            Ok(()) => chosen,
            Err(error) => {
                (shared.on_line)(&self.run, &self.key.address(), &format!("knowledge was left out: {error}"));
                Vec::new()
            }
        }
    }
}

fn conflict_text(conflict: &Conflict) -> String {
    let mut text = format!("Conflict {} (round {}): {}\n", conflict.id, conflict.round, conflict.topic);
    for vote in conflict.positions() {
        let _ = writeln!(text, "- {} wants {:?} (confidence {} %): {}", vote.by, vote.choice, vote.confidence, vote.rationale);
    }
    let id = &conflict.id;
    let _ = writeln!(text, "Vote with `lockgate conflict vote {id} --choice TEXT --confidence 0-100 --rationale TEXT`.");
    text
}
