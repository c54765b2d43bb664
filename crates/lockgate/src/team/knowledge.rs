//! Capturing and reading the project's knowledge.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Caller;
use lockgate_engine::run::team::TeamRefusal;
use lockgate_engine::run::team::{KnowledgeDraft, TeamRequest, knowledge_id};
use lockgate_engine::run::{Refusal, Run};
use lockgate_engine::stored_value::StoredValue;
use lockgate_runner::knowledge::{KnowledgeDir, KnownEntry};
use lockgate_runner::load::load;
use serde_json::Value;
use std::collections::BTreeSet;

/// Knowledge to capture.
#[derive(Clone, Debug, PartialEq)]
pub struct NewKnowledge {
    /// `decision`, `resolution`, `pattern`, `incident` or any other word.
    pub kind: String,
    /// JSON.
    pub content: Value,
    /// What prompts select it by.
    pub tags: Vec<String>,
}

/// A captured entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// The entry.
    pub entry: KnownEntry,
    /// Whether the project did not have it before.
    pub new: bool,
}

/// The entries of a project.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnowledgeList {
    /// Sorted by id.
    pub entries: Vec<KnownEntry>,
    /// Files that are not entries, and why.
    pub problems: Vec<String>,
}

impl Project {
    /// Captures knowledge for the project. With a run, the run's history records it too.
    pub async fn add_knowledge(&self, run: Option<&RunId>, new: NewKnowledge, caller: Caller) -> Result<Captured, Error> {
        let NewKnowledge { kind, content, tags } = new;
        let is_plain = |kind: &str| {
            kind.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter))
        };
        if kind.is_empty() || !is_plain(&kind) {
            return Err(Refusal::from(TeamRefusal::InvalidKnowledgeType(kind)).into());
        }
        let (content, tags) = match run {
            Some(run) => {
                let masks = self.team_masks(run).await?;
                (masks.mask_value(content), tags.iter().map(|tag| masks.mask_text(tag).into_owned()).collect())
            }
            None => (content, tags),
        };
        let id = knowledge_id(&kind, &content);
        let (by, at) = (caller.actor().name.clone(), self.now());
        let mut entry = KnownEntry { id, kind, content, tags, by, run: run.cloned(), at };
        if let Some(run) = run {
            let (stored, bytes) = StoredValue::keep(&entry.content);
            let (id, kind, tags) = (entry.id.clone(), entry.kind.clone(), entry.tags.clone());
            let draft = KnowledgeDraft { id, kind, content: stored, tags };
            let values: Vec<_> = bytes.into_iter().collect();
            let (state, _) = self.request(run, TeamRequest::Capture(draft), &values, caller).await?;
            let captured = state.team.iter().flat_map(|team| &team.knowledge.captured).find(|known| known.id == entry.id);
            if let Some(captured) = captured {
                (entry.by, entry.at) = (captured.by.name().to_owned(), captured.at);
            }
        }
        let known = self.knowledge();
        if let Some(entry) = known.entries.into_iter().find(|known| known.id == entry.id) {
            return Ok(Captured { entry, new: false });
        }
        let dir = KnowledgeDir::of(&self.root);
        let new = dir.add(&entry).map_err(|error| unwritable(&dir, &error))?;
        Ok(Captured { entry, new })
    }

    /// The entries of the project.
    pub fn knowledge(&self) -> KnowledgeList {
        let (entries, problems) = KnowledgeDir::of(&self.root).list();
        KnowledgeList { entries, problems }
    }

    /// The entry with this id, or the only one whose id starts so.
    pub fn knowledge_entry(&self, named: &str) -> Result<KnownEntry, Error> {
        let matching = |entry: &KnownEntry| entry.id.as_str().starts_with(named) && !named.is_empty();
        let mut found: Vec<KnownEntry> = self.knowledge().entries.into_iter().filter(matching).collect();
        match (found.pop(), found.is_empty()) {
            (Some(entry), true) => Ok(entry),
            (Some(_) | None, _) => Err(Error::new(Code::KnowledgeNotFound, format!("there is no knowledge entry {named:?}"))
                .help("list the entries with `lockgate knowledge list`")),
        }
    }

    /// Writes entries of a run whose files are missing. The run continues without them if that fails.
    pub(crate) async fn restore_knowledge(&self, run: &Run) {
        if run.captured_knowledge().is_empty() {
            return;
        }
        if let Err(error) = self.write_captured_knowledge(&run.id).await {
            tracing::warn!(run = %run.id, %error, "captured knowledge is not written");
        }
    }

    /// Writes the entries that a run captured and whose files are missing, as after a crash. Returns how many were written.
    pub async fn write_captured_knowledge(&self, run: &RunId) -> Result<usize, Error> {
        let state: Run = load(self.store(), run).await?;
        let known: BTreeSet<_> = self.knowledge().entries.into_iter().map(|entry| entry.id).collect();
        let dir = KnowledgeDir::of(&self.root);
        let mut written = 0;
        for entry in state.pending_captures(|id| known.contains(id)) {
            let content = self.team_value(&entry.content).await?;
            let (id, kind, tags, by) = (entry.id.clone(), entry.kind.clone(), entry.tags.clone(), entry.by.name().to_owned());
            let file = KnownEntry { id, kind, content, tags, by, run: Some(run.clone()), at: entry.at };
            written += usize::from(dir.add(&file).map_err(|error| unwritable(&dir, &error))?);
        }
        Ok(written)
    }
}

fn unwritable(dir: &KnowledgeDir, error: &std::io::Error) -> Error {
    Error::new(Code::Unwritable, format!("{} cannot be written: {error}", dir.path().display()))
}
