//! Reads state files as other tools write them, and notes every deviation from the reference format.

mod gates;
mod workstreams;

use crate::json::{self, Content, JsonError, Placed};
use lockgate_engine::id::TaskId;
use lockgate_engine::plural::counted;
use lockgate_engine::run::event::FrozenFile;
use lockgate_engine::run::pipeline::{FileError, Imported, Lifecycle, Review, Verdict};
use lockgate_engine::spec::reader::shown;
use lockgate_engine::spec::suggest;
use std::collections::BTreeSet;
use workstreams::{Lists, meaning};

/// The content of a state file, as far as it can be recognized.
#[derive(Clone, Debug, PartialEq)]
pub struct StateFile {
    /// The id of the pipeline, if the file has one.
    pub prd: Option<String>,
    pub title: Option<String>,
    /// The EXECUTION-SPEC that the file names.
    pub spec: Option<String>,
    pub status: Lifecycle,
    /// The number of the current phase; 0 before the first.
    pub current_phase: u32,
    pub completed: Vec<String>,
    pub in_progress: Vec<String>,
    /// Workstreams that have not started, or that failed.
    pub pending: Vec<String>,
    /// Files by workstream, in the order of the file.
    pub artifacts: Vec<(String, Vec<String>)>,
    /// Passed gates: `lint`, or `lint (WS3)`.
    pub gates_passed: Vec<String>,
    pub gates_pending: Vec<String>,
    /// The timestamp as written in the file.
    pub timestamp: Option<String>,
    pub error: Option<FileError>,
    pub review: Option<Review>,
    /// The whole file, with all keys in order.
    pub whole: Placed,
}

impl StateFile {
    /// What a run created from this file records about it; `file` is the stored text.
    pub fn imported(&self, file: FrozenFile) -> Imported {
        let ids = |list: &[String]| list.iter().map(|id| TaskId::new(id.as_str())).collect();
        Imported {
            file,
            status: self.status,
            current_phase: self.current_phase,
            completed: ids(&self.completed),
            in_progress: ids(&self.in_progress),
            pending: ids(&self.pending),
            artifacts: self.artifacts.iter().map(|(id, paths)| (TaskId::new(id.as_str()), paths.clone())).collect(),
            gates_passed: self.gates_passed.clone(),
            gates_pending: self.gates_pending.clone(),
            timestamp: self.timestamp.clone(),
            error: self.error.clone(),
            review: self.review.clone(),
        }
    }
}

/// Keys for the id of the pipeline, in order of preference.
const PRD_KEYS: [&str; 6] = ["prd", "prd_id", "id", "exec_id", "spec_id", "exec_spec_id"];
const TITLE_KEYS: [&str; 4] = ["prd_title", "title", "feature_name", "name"];
const SPEC_KEYS: [&str; 6] = ["exec_spec_path", "execution_spec_path", "exec_spec", "execution_spec", "spec_path", "spec_file"];
const TIMESTAMP_KEYS: [&str; 5] = ["timestamp", "updated_at", "last_updated", "completed_at", "created_at"];

/// Reads a state file of any known shape, and returns notes about everything that was read leniently.
pub fn lenient(text: &str) -> Result<(StateFile, Vec<String>), JsonError> {
    let whole = json::parse(text)?;
    if !matches!(whole.content, Content::Map(_)) {
        let message = format!("a state file must be an object, not {}", whole.kind());
        return Err(JsonError { message, at: whole.span.start });
    }
    let mut reader = Reader { whole: &whole, notes: Vec::new() };
    reader.repeated_keys();
    let prd = reader.prd();
    let title = reader.first(&TITLE_KEYS);
    let spec =
        SPEC_KEYS.iter().find_map(|key| whole.get(key)?.text().filter(|text| text.contains(['/', '.']))).map(str::to_owned);
    let lists = reader.workstreams();
    let status = reader.status(&lists);
    let current_phase = reader.current_phase();
    let artifacts = reader.artifacts();
    let (gates_passed, gates_pending) = reader.gates();
    let timestamp = reader.first(&TIMESTAMP_KEYS);
    let error = reader.error();
    let review = reader.review();
    let notes = reader.notes;
    let Lists { completed, in_progress, pending, .. } = lists;
    let state = StateFile {
        prd,
        title,
        spec,
        status,
        current_phase,
        completed,
        in_progress,
        pending,
        artifacts,
        gates_passed,
        gates_pending,
        timestamp,
        error,
        review,
        whole,
    };
    Ok((state, notes))
}

struct Reader<'f> {
    whole: &'f Placed,
    notes: Vec<String>,
}

impl Reader<'_> {
    fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn repeated_keys(&mut self) {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let again = self.whole.entries().iter().filter(|entry| !seen.insert(&entry.key)).map(|entry| entry.key.as_str());
        if let Some(names) = suggest::known(again) {
            self.note(format!("listed more than once: {names}; the last value counts"));
        }
    }

    /// The text of the first of these keys that is present. A key other than the first gets a note.
    fn first(&mut self, keys: &[&str]) -> Option<String> {
        let (at, key, text) = keys.iter().enumerate().find_map(|(at, key)| Some((at, key, self.whole.get(key)?.text()?)))?;
        if at > 0 {
            self.note(format!("`{key}` is used as `{}`", keys[0]));
        }
        Some(text.to_owned())
    }

    /// The id of the pipeline: the first key whose value can be a file name.
    fn prd(&mut self) -> Option<String> {
        for (at, key) in PRD_KEYS.iter().enumerate() {
            let Some(text) = self.whole.get(key).and_then(Placed::text) else { continue };
            if !is_safe(text) {
                self.note(format!("`{key}` is `{}`, which cannot be a file name", shown(text)));
                continue;
            }
            if at > 0 {
                self.note(format!("`{key}` is used as `prd`"));
            }
            return Some(text.to_owned());
        }
        None
    }

    fn status(&mut self, lists: &Lists) -> Lifecycle {
        let Some(word) = self.whole.get("status").and_then(Placed::text) else {
            let guess = if lists.completed.is_empty() { Lifecycle::Initialized } else { Lifecycle::Paused };
            self.note(format!("there is no `status`; assuming `{}`", guess.as_str()));
            return guess;
        };
        if let Some(status) = Lifecycle::of_word(word) {
            return status;
        }
        let status = meaning(word).unwrap_or(Lifecycle::Paused);
        self.note(format!("status `{}` was read as `{}`", shown(word), status.as_str()));
        status
    }

    fn current_phase(&mut self) -> u32 {
        let value = self.whole.get("current_phase");
        let number = match value.map(|value| &value.content) {
            Some(Content::Number(number)) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
            Some(Content::Text(text)) => {
                let digits: String =
                    text.chars().skip_while(|letter| !letter.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
                digits.parse().ok()
            }
            Some(Content::Null | Content::Boolean(_) | Content::List(_) | Content::Map(_)) | None => None,
        };
        if !matches!((value.map(|value| &value.content), number), (Some(Content::Number(_)), Some(_))) {
            self.note(format!("`current_phase` is not a whole number; it was read as {}", number.unwrap_or(0)));
        }
        number.unwrap_or(0)
    }

    fn artifacts(&mut self) -> Vec<(String, Vec<String>)> {
        let Some(value) = self.whole.get("artifacts") else { return Vec::new() };
        let mut artifacts = Vec::new();
        let mut leniently = 0;
        for entry in value.entries() {
            let mut paths = Vec::new();
            let strictly = entry.value.items().is_some_and(|items| items.iter().all(|item| item.text().is_some()));
            leniently += usize::from(!strictly);
            gather(&entry.value, &mut paths);
            artifacts.push((entry.key.clone(), paths));
        }
        if leniently > 0 {
            self.note(format!("`artifacts` has {} other than a list of strings", counted(leniently, "value")));
        } else if !matches!(value.content, Content::Map(_)) {
            self.note(format!("`artifacts` is {}, not an object with a list per workstream", value.kind()));
        }
        artifacts
    }

    fn error(&mut self) -> Option<FileError> {
        let value = self.whole.get("error")?;
        let field = |key: &str| value.get(key).and_then(Placed::text).map(str::to_owned);
        if let Some(text) = value.text() {
            self.note("`error` is a string, so the failed workstream is unknown");
            return Some(FileError { workstream: String::new(), message: text.to_owned(), file: None, line: None });
        }
        let line = match value.get("line").map(|line| &line.content) {
            Some(Content::Number(number)) => number.as_u64(),
            _ => None,
        };
        let message = field("message").or_else(|| field("error")).unwrap_or_default();
        let (workstream, file) = (field("workstream").or_else(|| field("gate")).unwrap_or_default(), field("file"));
        if workstream.is_empty() || message.is_empty() {
            self.note("`error` does not contain both `workstream` and `message`");
        }
        Some(FileError { workstream, message, file, line })
    }

    /// The review. The gates that it added are among the other gates.
    fn review(&mut self) -> Option<Review> {
        let value = self.whole.get("adversarial_review").filter(|value| !matches!(value.content, Content::Null))?;
        let field = |key: &str| value.get(key).and_then(Placed::text).map(str::to_owned);
        let number = |key: &str| match value.get(key).map(|number| &number.content) {
            Some(Content::Number(number)) => number.as_u64().and_then(|number| u32::try_from(number).ok()),
            _ => None,
        };
        let word = field("verdict").or_else(|| value.text().map(str::to_owned)).unwrap_or_default();
        let word = word.trim().to_lowercase().replace(['-', ' '], "_");
        let Some((_, verdict)) = Verdict::ALL.into_iter().find(|(known, _)| *known == word) else {
            self.note("`adversarial_review` has no known verdict, so it is ignored");
            return None;
        };
        Some(Review {
            verdict,
            p0: number("p0_count").unwrap_or(0),
            p1: number("p1_count").unwrap_or(0),
            attempt: number("attempt").unwrap_or(1).max(1),
            findings: field("findings_path"),
            override_reason: field("override_reason").filter(|_| verdict == Verdict::Overridden),
            gates: Vec::new(),
        })
    }
}

/// Collects all strings in a value.
fn gather(value: &Placed, texts: &mut Vec<String>) {
    match &value.content {
        Content::Text(text) => texts.push(text.clone()),
        Content::List(items) => items.iter().for_each(|item| gather(item, texts)),
        Content::Map(entries) => match ["path", "file"].iter().find_map(|key| value.get(key)) {
            Some(path) => gather(path, texts),
            None => entries.iter().for_each(|entry| gather(&entry.value, texts)),
        },
        Content::Null | Content::Boolean(_) | Content::Number(_) => {}
    }
}

/// Whether a name is a safe file name, without a path.
fn is_safe(name: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    name.len() <= 100
        && name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (StateFile, Vec<String>) {
        lenient(text).expect(text)
    }

    #[test]
    fn a_file_in_the_reference_format_needs_no_leniency() {
        let text = r#"{"prd": "PRD-009", "prd_title": "Cashier", "current_phase": 2, "status": "failed",
            "completed_workstreams": ["WS1"], "in_progress_workstreams": [], "pending_workstreams": ["WS2"],
            "artifacts": {"WS1": ["a.sql"]}, "gates_passed": ["schema (WS1)"], "gates_pending": ["lint"],
            "timestamp": "2025-12-11T10:00:00Z", "error": {"workstream": "WS2", "message": "no", "file": "a.ts", "line": 4}, "more": 1}"#;
        let (state, notes) = read(text);
        assert_eq!(notes, [] as [&str; 0]);
        assert_eq!((state.prd.as_deref(), state.status, state.current_phase), (Some("PRD-009"), Lifecycle::Failed, 2));
        assert_eq!((state.completed, state.pending), (vec!["WS1".to_owned()], vec!["WS2".to_owned()]));
        assert_eq!(state.error.map(|error| (error.workstream, error.line)), Some(("WS2".into(), Some(4))));
        assert_eq!(state.whole.to_value()["more"], 1);
    }

    #[test]
    fn deviations_of_other_tools_are_accepted_and_reported() {
        let (state, notes) = read(
            r#"{"prd": "docs/x.md", "id": "PRD-077", "title": "T", "status": "in-progress", "current_phase": "phase 3",
            "completed_workstreams": [{"id": "WS1", "outputs": []}], "failed_workstreams": ["WS9"],
            "workstreams": {"WS1": {"status": "complete"}, "WS2": {"status": "running"}, "WS3": "pending"},
            "phases": [{"workstreams": ["WS3", "WS4"], "status": "pending"}, {"parallel": ["WS5"], "status": "done"}],
            "artifacts": {"WS1": "a.ts", "spec": {"files": ["b.ts"], "ok": true}},
            "gates_passed": [{"gate": "lint", "workstreams": ["WS1", "WS2"]}, "WS1:test", "phase_1:build"],
            "updated_at": "2026-01-01", "error": "broken"}"#,
        );
        assert_eq!((state.prd.as_deref(), state.title.as_deref()), (Some("PRD-077"), Some("T")));
        assert_eq!((state.status, state.current_phase), (Lifecycle::InProgress, 3));
        assert_eq!(state.completed, ["WS1", "WS5"]);
        assert_eq!(
            (state.in_progress, state.pending),
            (vec!["WS2".to_owned()], ["WS9", "WS3", "WS4"].map(str::to_owned).to_vec())
        );
        assert_eq!(state.artifacts, [("WS1".to_owned(), vec!["a.ts".to_owned()]), ("spec".to_owned(), vec!["b.ts".to_owned()])]);
        assert_eq!(state.gates_passed, ["lint (WS1+WS2)", "test (WS1)", "build"]);
        assert_eq!(state.timestamp.as_deref(), Some("2026-01-01"));
        assert_eq!(notes.len(), 13, "{notes:#?}");
    }

    #[test]
    fn an_unknown_status_waits_for_a_person() {
        let (state, notes) = read(r#"{"prd": "A", "current_phase": 1, "status": "awaiting_child_specs"}"#);
        assert_eq!(
            (state.status, &notes[..]),
            (Lifecycle::Paused, &["status `awaiting_child_specs` was read as `paused`".to_owned()][..])
        );
        let (state, notes) = read(r#"{"prd": "A", "current_phase": 1, "gate_results": {"lint": "PASS", "test": "failed"}}"#);
        assert_eq!((state.gates_passed, state.gates_pending), (vec!["lint".to_owned()], vec!["test".to_owned()]));
        assert_eq!((state.status, notes.len()), (Lifecycle::Initialized, 2), "{notes:?}");
    }

    #[test]
    fn a_non_object_is_refused() {
        assert_eq!(lenient("[1]").expect_err("a list").message, "a state file must be an object, not a list");
        assert!(lenient("{").is_err());
    }
}
