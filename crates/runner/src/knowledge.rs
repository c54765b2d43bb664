//! The knowledge of a project: one file per entry in `.lockgate/knowledge`.

use crate::files::write_atomically;
use crate::root::Root;
use lockgate_engine::id::{KnowledgeId, RunId};
use lockgate_engine::run::team::{KnowledgeEntry, Sender, knowledge_id};
use lockgate_engine::stored_value::StoredValue;
use lockgate_engine::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};

/// A file that is larger is not an entry.
const MAX_BYTES: u64 = 1024 * 1024;

/// An entry as its file contains it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownEntry {
    /// Always computed from type and content, because people may edit the file.
    #[serde(default = "no_id")]
    pub id: KnowledgeId,
    #[serde(rename = "type")]
    pub kind: String,
    pub content: Value,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Who captured it.
    #[serde(default)]
    pub by: String,
    /// The run that captured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default = "unknown_time")]
    pub at: Timestamp,
}

fn no_id() -> KnowledgeId {
    KnowledgeId::new("")
}

fn unknown_time() -> Timestamp {
    Timestamp::from_millis(0)
}

impl KnownEntry {
    /// The entry as a run records it.
    pub fn stored_as(self, content: StoredValue) -> KnowledgeEntry {
        let by = Sender::Outside { name: self.by };
        KnowledgeEntry { id: self.id, kind: self.kind, content, tags: self.tags, by, at: self.at }
    }
}

/// The directory of a project's knowledge.
#[derive(Clone, Debug)]
pub struct KnowledgeDir {
    path: PathBuf,
}

impl KnowledgeDir {
    pub fn of(root: &Root) -> Self {
        Self { path: root.state_dir().join("knowledge") }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the project has an entry that Lockgate wrote.
    pub fn contains(&self, id: &KnowledgeId) -> bool {
        self.path.join(format!("{id}.json")).exists()
    }

    /// Writes an entry, unless it exists; returns whether it was written.
    pub fn add(&self, entry: &KnownEntry) -> io::Result<bool> {
        let path = self.path.join(format!("{}.json", entry.id));
        if path.exists() {
            return Ok(false);
        }
        std::fs::create_dir_all(&self.path)?;
        let mut text = serde_json::to_string_pretty(entry)?;
        text.push('\n');
        write_atomically(&path, text.as_bytes())?;
        Ok(true)
    }

    /// All entries, sorted by id, and what is wrong with files that are not entries.
    pub fn list(&self) -> (Vec<KnownEntry>, Vec<String>) {
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        let files = match std::fs::read_dir(&self.path) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return (entries, problems),
            Err(error) => return (entries, vec![format!("{}: {error}", self.path.display())]),
        };
        let mut paths: Vec<PathBuf> = files.flatten().map(|file| file.path()).filter(|path| is_entry(path)).collect();
        paths.sort();
        for path in paths {
            match read(&path) {
                Ok(entry) => entries.push(entry),
                Err(error) => problems.push(format!("{}: {error}", path.display())),
            }
        }
        entries.sort_by(|one, other| one.id.cmp(&other.id));
        entries.dedup_by(|one, other| one.id == other.id);
        (entries, problems)
    }
}

fn is_entry(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    !hidden && path.extension().is_some_and(|extension| ["json", "yaml", "yml"].iter().any(|known| extension == *known))
}

fn read(path: &Path) -> io::Result<KnownEntry> {
    if path.metadata()?.len() > MAX_BYTES {
        return Err(io::Error::other(format!("it is larger than {MAX_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path)?;
    let entry: KnownEntry = match path.extension().is_some_and(|extension| extension == "json") {
        true => serde_json::from_str(&text)?,
        false => serde_saphyr::from_str(&text).map_err(io::Error::other)?,
    };
    Ok(KnownEntry { id: knowledge_id(&entry.kind, &entry.content), ..entry })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(content: Value) -> KnownEntry {
        let (kind, tags, by) = ("decision".to_owned(), vec!["api".to_owned()], "ana".to_owned());
        KnownEntry { id: knowledge_id(&kind, &content), kind, content, tags, by, run: None, at: Timestamp::from_millis(5) }
    }

    #[test]
    fn an_entry_is_written_once_and_files_that_are_not_entries_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let knowledge = KnowledgeDir::of(&Root::at(dir.path()));
        assert_eq!(knowledge.list(), (Vec::new(), Vec::new()), "there is no directory yet");
        let known = entry(json!({"title": "use sqlite"}));
        assert!(knowledge.add(&known).unwrap());
        assert!(!knowledge.add(&known).unwrap());
        std::fs::write(knowledge.path().join("broken.json"), "{").unwrap();
        std::fs::write(knowledge.path().join("notes.txt"), "not an entry").unwrap();
        let (entries, problems) = knowledge.list();
        assert_eq!(entries, [known]);
        assert!(problems.len() == 1 && problems[0].contains("broken.json"), "{problems:?}");
    }

    #[test]
    fn an_entry_in_yaml_is_read_and_gets_the_id_of_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let knowledge = KnowledgeDir::of(&Root::at(dir.path()));
        std::fs::create_dir_all(knowledge.path()).unwrap();
        let text = "id: KE-decision-edited\ntype: decision\ncontent:\n  title: by hand\ntags: [api]\n";
        std::fs::write(knowledge.path().join("by-hand.yaml"), text).unwrap();
        let (entries, problems) = knowledge.list();
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(entries[0].id, knowledge_id("decision", &json!({"title": "by hand"})));
    }
}
