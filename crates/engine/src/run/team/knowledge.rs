//! What a project learned: entries that runs capture, and that later prompts include.

use super::Sender;
use crate::digest::Digest;
use crate::id::KnowledgeId;
use crate::stored_value::StoredValue;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How many entries a prompt includes at most.
pub const MAX_INJECTED: usize = 5;

/// How many hexadecimal digits of the hash an id has.
const HASH_DIGITS: usize = 16;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnowledgeEntry {
    pub id: KnowledgeId,
    /// `decision`, `resolution`, `pattern`, `incident` or any other word.
    pub kind: String,
    /// JSON.
    pub content: StoredValue,
    pub tags: Vec<String>,
    pub by: Sender,
    pub at: Timestamp,
}

/// An entry that is to be captured.
#[derive(Clone, Debug, PartialEq)]
pub struct KnowledgeDraft {
    /// The hash of type and content, from [`knowledge_id`].
    pub id: KnowledgeId,
    pub kind: String,
    pub content: StoredValue,
    pub tags: Vec<String>,
}

/// The knowledge that a run captured, and the knowledge that its prompts included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    pub captured: Vec<KnowledgeEntry>,
    /// Entries that were injected, as they were then.
    pub injected: Vec<KnowledgeEntry>,
    /// What was injected into the prompt of a task, by task address.
    pub selections: BTreeMap<String, Vec<KnowledgeId>>,
}

impl Knowledge {
    /// The entries for the prompts of a task, once they were selected.
    pub fn selection(&self, address: &str) -> Option<Vec<&KnowledgeEntry>> {
        let ids = self.selections.get(address)?;
        Some(ids.iter().filter_map(|id| self.injected.iter().find(|entry| entry.id == *id)).collect())
    }

    pub(super) fn injected_ids(&self) -> Vec<&KnowledgeId> {
        self.injected.iter().map(|entry| &entry.id).collect()
    }

    pub(super) fn stored_values(&self) -> impl Iterator<Item = Digest> + '_ {
        self.captured.iter().chain(&self.injected).filter_map(|entry| entry.content.stored())
    }
}

/// The id of an entry. The same type and content always have the same id, whatever the order of keys.
pub fn knowledge_id(kind: &str, content: &Value) -> KnowledgeId {
    let canonical = canonical(&serde_json::json!({"type": kind, "content": content})).to_string();
    let hash = Digest::of(canonical.as_bytes()).to_string();
    KnowledgeId::new(format!("KE-{kind}-{}", &hash[..HASH_DIGITS]))
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            let sorted: BTreeMap<&String, &Value> = entries.iter().collect();
            Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), canonical(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The entries that match tags: those with the most matching tags first, then the newest.
pub fn select(entries: Vec<KnowledgeEntry>, tags: &[String]) -> Vec<KnowledgeEntry> {
    let wanted: BTreeSet<&str> = tags.iter().map(String::as_str).collect();
    let matching = |entry: &KnowledgeEntry| entry.tags.iter().filter(|tag| wanted.contains(tag.as_str())).count();
    let mut found: Vec<(usize, KnowledgeEntry)> = entries.into_iter().map(|entry| (matching(&entry), entry)).collect();
    found.retain(|(count, _)| *count > 0);
    found.sort_by(|(one, first), (other, second)| {
        other.cmp(one).then_with(|| second.at.cmp(&first.at)).then_with(|| first.id.cmp(&second.id))
    });
    found.dedup_by(|(_, one), (_, other)| one.id == other.id);
    found.into_iter().map(|(_, entry)| entry).take(MAX_INJECTED).collect()
}
