//! Renders a state file, and keeps the keys that other tools added.

use super::document::Document;
use lockgate_engine::run::pipeline::Lifecycle;
use serde_json::{Map, Value};

/// The only key that is removed from a file when the run has no value for it.
const ERROR: &str = "error";

/// The review, to which other tools add keys of their own.
const REVIEW: &str = "adversarial_review";

/// The outputs of workstreams, merged per workstream.
const ARTIFACTS: &str = "artifacts";

/// Lists that people and agents also write by hand.
const NOTES: [&str; 3] = ["eslint_fixes", "cleanup_done", "key_fixes"];

/// The file is not overwritten, because its status cannot change to that of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file has status `{}`, which cannot change to `{}`", before.as_str(), now.as_str())]
pub struct WrongTransition {
    /// The status in the file.
    pub before: Lifecycle,
    /// The status of the run.
    pub now: Lifecycle,
}

/// The existing state file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Before {
    pub keys: Map<String, Value>,
    /// The file that the run was imported from, if any.
    pub original: Option<Original>,
}

/// A file that a run was imported from. Values whose meaning has not changed are written as they were there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Original {
    pub keys: Map<String, Value>,
    /// The document of the run right after the import.
    pub meant: Map<String, Value>,
}

impl Before {
    /// The keys of a file; `None` if it is not a JSON object.
    pub fn of_text(text: &str) -> Option<Self> {
        Some(Self { keys: keys_of(text)?, original: None })
    }
}

impl Original {
    /// Records the text that a run was imported from, and the document of the run at that time.
    pub fn new(text: &str, document: &Document) -> Self {
        Self { keys: keys_of(text).unwrap_or_default(), meant: document.to_json() }
    }

    /// The original form of a value, if it still has the same meaning.
    fn wrote(&self, key: &str, said: Option<&Value>) -> Option<&Value> {
        self.keys.get(key).filter(|_| self.meant.get(key) == said)
    }
}

fn keys_of(text: &str) -> Option<Map<String, Value>> {
    // Some editors write a byte order mark.
    match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(Value::Object(keys)) => Some(keys),
        Ok(_) | Err(_) => None,
    }
}

/// Renders a state file. Existing keys keep their position, and unknown keys their value.
pub fn render(before: Option<&Before>, document: &Document) -> Result<String, WrongTransition> {
    if let Some(before) = before {
        allowed(before, document.status)?;
    }
    Ok(text(&merged(before, document)))
}

/// Renders the file regardless of its current status, for export.
pub fn exported(before: Option<&Before>, document: &Document) -> String {
    text(&merged(before, document))
}

fn allowed(before: &Before, now: Lifecycle) -> Result<(), WrongTransition> {
    // An unknown status was imported leniently, so every status may follow it.
    let said = before.keys.get("status").and_then(Value::as_str).and_then(Lifecycle::of_word);
    match said {
        Some(before) if !before.leads_to(now) => Err(WrongTransition { before, now }),
        Some(_) | None => Ok(()),
    }
}

fn merged(before: Option<&Before>, document: &Document) -> Map<String, Value> {
    let mut now = document.to_json();
    let Some(before) = before else { return now };
    let wrote =
        |key: &str, said: Option<&Value>| before.original.as_ref().and_then(|original| original.wrote(key, said)).cloned();
    let mut keys = Map::new();
    for (key, value) in &before.keys {
        let kept = match now.shift_remove(key) {
            Some(said) if key == REVIEW => Some(wrote(key, Some(&said)).unwrap_or_else(|| over(value, said))),
            Some(said) if NOTES.contains(&key.as_str()) => Some(joined(value, said)),
            Some(said) if key == ARTIFACTS && wrote(key, Some(&said)).is_none() => Some(artifacts(value, said, before, document)),
            Some(said) => Some(wrote(key, Some(&said)).unwrap_or(said)),
            None if key == ERROR => wrote(key, None),
            None => Some(value.clone()),
        };
        keys.extend(kept.map(|value| (key.clone(), value)));
    }
    keys.extend(now);
    keys
}

/// Keeps entries of workstreams that the run does not know; the run provides all others.
fn artifacts(has: &Value, said: Value, before: &Before, document: &Document) -> Value {
    let (Value::Object(has), Value::Object(mut said)) = (has, said.clone()) else { return said };
    let original = before.original.as_ref();
    let part =
        |of: fn(&Original) -> &Map<String, Value>, key: &str| original.and_then(|original| of(original).get(ARTIFACTS)?.get(key));
    let lists = [&document.completed, &document.in_progress, &document.pending];
    let is_ours = |key: &String| lists.iter().any(|list| list.contains(key));
    let mut kept = Map::new();
    for (key, value) in has {
        match said.shift_remove(key) {
            Some(paths) => {
                let wrote =
                    part(|original| &original.keys, key).filter(|_| part(|original| &original.meant, key) == Some(&paths));
                kept.insert(key.clone(), wrote.cloned().unwrap_or(paths));
            }
            None if is_ours(key) => {}
            None => drop(kept.insert(key.clone(), value.clone())),
        }
    }
    kept.extend(said);
    Value::Object(kept)
}

/// The values of the run, plus other keys from the file.
fn over(has: &Value, said: Value) -> Value {
    let (Value::Object(has), Value::Object(mut said)) = (has, said.clone()) else { return said };
    // A reason belongs to the verdict it was given for, so an old one is dropped.
    let ours = ["findings_path", "override_reason"];
    let mut keys = Map::new();
    for (key, value) in has {
        match said.shift_remove(key) {
            Some(said) => drop(keys.insert(key.clone(), said)),
            None if ours.contains(&key.as_str()) => {}
            None => drop(keys.insert(key.clone(), value.clone())),
        }
    }
    keys.extend(said);
    Value::Object(keys)
}

/// The entries of the file, followed by those that only the run has.
fn joined(has: &Value, said: Value) -> Value {
    let (Value::Array(has), Value::Array(said)) = (has, &said) else { return said };
    let mut list = has.clone();
    list.extend(said.iter().filter(|entry| !has.contains(entry)).cloned());
    Value::Array(list)
}

fn text(keys: &Map<String, Value>) -> String {
    let mut text = serde_json::to_string_pretty(keys).expect("a map with string keys serializes to JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_engine::run::pipeline::{FileError, Fix, Notes, Review, Verdict};
    use serde_json::json;

    fn document(status: Lifecycle) -> Document {
        Document {
            prd: "PRD-009".into(),
            title: "Cashier Workflows".into(),
            current_phase: 1,
            status,
            completed: vec!["WS1".into()],
            in_progress: Vec::new(),
            pending: vec!["WS2".into()],
            artifacts: vec![("WS1".into(), vec!["a.sql".into()])],
            gates_passed: vec!["lint (WS1)".into()],
            gates_pending: vec!["tests".into()],
            timestamp: "2026-11-16T10:00:00.000Z".into(),
            error: None,
            review: None,
            notes: Notes::default(),
        }
    }

    fn keys(text: &str) -> Vec<String> {
        keys_of(text).unwrap().keys().cloned().collect()
    }

    #[test]
    fn a_byte_order_mark_is_accepted() {
        let before = Before::of_text("\u{feff}{\"owner\": 1}").expect("an object");
        assert_eq!(before.keys["owner"], 1);
    }

    #[test]
    fn a_new_file_has_the_keys_and_order_of_the_reference_format() {
        let text = render(None, &document(Lifecycle::Paused)).unwrap();
        assert_eq!(
            keys(&text),
            [
                "prd",
                "prd_title",
                "current_phase",
                "status",
                "completed_workstreams",
                "in_progress_workstreams",
                "pending_workstreams",
                "artifacts",
                "gates_passed",
                "gates_pending",
                "timestamp"
            ]
        );
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn foreign_keys_keep_their_position() {
        let before = Before::of_text(r#"{"owner": {"x": [1]}, "status": "in_progress", "prd": "PRD-009", "spec": null}"#);
        let text = render(before.as_ref(), &document(Lifecycle::Paused)).unwrap();
        assert_eq!(keys(&text)[..4], ["owner", "status", "prd", "spec"]);
        let now = keys_of(&text).unwrap();
        assert_eq!((&now["owner"], &now["status"], &now["spec"]), (&json!({"x": [1]}), &json!("paused"), &Value::Null));
    }

    #[test]
    fn foreign_notes_are_kept_next_to_ours() {
        let before = Before::of_text(r#"{"key_fixes": [{"file": "a.ts", "change": "by hand"}]}"#);
        let mut document = document(Lifecycle::Paused);
        document.notes.key_fixes.push(Fix { file: "b.ts".into(), change: "ours".into() });
        let once = render(before.as_ref(), &document).unwrap();
        let twice = render(Before::of_text(&once).as_ref(), &document).unwrap();
        assert_eq!(once, twice);
        let fixes = &keys_of(&twice).unwrap()["key_fixes"];
        assert_eq!(*fixes, json!([{"file": "a.ts", "change": "by hand"}, {"file": "b.ts", "change": "ours"}]));
    }

    #[test]
    fn foreign_review_entries_are_kept_next_to_ours() {
        let before = Before::of_text(r#"{"adversarial_review": {"round": 3, "verdict": "revised", "override_reason": "old"}}"#);
        let mut document = document(Lifecycle::Initialized);
        let (findings, override_reason, gates) = (None, None, Vec::new());
        document.review = Some(Review { verdict: Verdict::Ship, p0: 0, p1: 1, attempt: 1, findings, override_reason, gates });
        let review = keys_of(&render(before.as_ref(), &document).unwrap()).unwrap()["adversarial_review"].clone();
        assert_eq!(review, json!({"round": 3, "verdict": "ship", "p0_count": 0, "p1_count": 1, "attempt": 1}));
    }

    #[test]
    fn an_error_is_removed_once_it_is_fixed() {
        let mut failed = document(Lifecycle::Failed);
        failed.error = Some(FileError { workstream: "WS2".into(), message: "x".into(), file: None, line: None });
        let text = render(None, &failed).unwrap();
        let fixed = render(Before::of_text(&text).as_ref(), &document(Lifecycle::InProgress)).unwrap();
        assert!(keys(&text).contains(&"error".to_owned()) && !keys(&fixed).contains(&"error".to_owned()));
    }

    #[test]
    fn an_invalid_status_transition_is_not_written() {
        let before = Before::of_text(r#"{"status": "complete"}"#);
        let message = render(before.as_ref(), &document(Lifecycle::Paused)).unwrap_err().to_string();
        assert_eq!(message, "the file has status `complete`, which cannot change to `paused`");
        let before = Before::of_text(r#"{"status": "mostly done"}"#);
        assert!(render(before.as_ref(), &document(Lifecycle::Paused)).is_ok());
    }

    #[test]
    fn an_imported_value_is_kept_verbatim_while_its_meaning_is_unchanged() {
        let source =
            r#"{"prd_id": "PRD-009", "status": "on hold", "completed_workstreams": [{"id": "WS1", "by": "x"}], "error": null}"#;
        let meant = document(Lifecycle::Paused);
        let before = |text: &str| Before { original: Some(Original::new(source, &meant)), ..Before::of_text(text).unwrap() };
        let first = exported(Some(&before(source)), &meant);
        let now = keys_of(&first).unwrap();
        let original = keys_of(source).unwrap();
        assert!(original.iter().all(|(key, value)| now.get(key) == Some(value)), "{first}");

        let mut moved = document(Lifecycle::InProgress);
        moved.in_progress.push("WS2".into());
        moved.pending.clear();
        let second = render(Some(&before(&first)), &moved).unwrap();
        let now = keys_of(&second).unwrap();
        assert_eq!((&now["status"], &now["completed_workstreams"]), (&json!("in_progress"), &original["completed_workstreams"]));
        let third = render(Some(&before(&second)), &meant).unwrap();
        assert_eq!(keys_of(&third).unwrap()["status"], original["status"]);
    }
}
