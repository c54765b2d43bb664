//! State files of pipelines as other tools write them, and the output of tools that report an error.

use crate::spec::can_be_shown;
use lockgate_engine::digest::Digest;
use lockgate_engine::run::event::FrozenFile;
use lockgate_engine::spec::workflow::Pipeline;
use lockgate_engine::time::Timestamp;
use lockgate_formats::first_error::output_position;
use lockgate_formats::state_file::check::check;
use lockgate_formats::state_file::document::Document;
use lockgate_formats::state_file::import::lenient;
use lockgate_formats::state_file::render::{Before, Original, exported, render};
use serde_json::{Map, Value};

/// Imports and exports a state file, and searches the same text for an error position.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(place) = output_position(text) {
        assert!(!place.file.is_empty() && !place.message.contains('\n'), "{place:?}");
        assert!(text.contains(place.file.as_str()) || text.contains('\u{1b}'), "{place:?} is not in the text");
    }
    if let Ok(findings) = check(text, Some("PRD-001"), None) {
        let lines = text.split('\n').count();
        findings.iter().for_each(|finding| {
            can_be_shown(&finding.message);
            assert!((1..=lines).contains(&finding.line), "{finding:?}");
        });
    }
    let Ok((state, notes)) = lenient(text) else { return };
    notes.iter().for_each(|note| can_be_shown(note));
    let Some(Value::Object(before)) = serde_json::from_str(text).ok() else { return };
    let digest = Digest::of(bytes);
    let imported = state.imported(FrozenFile { path: "state.json".into(), digest });
    let pipeline = Pipeline { prd: state.prd.unwrap_or_default(), title: state.title.unwrap_or_default(), ..Pipeline::default() };
    let document = Document::of_imported(&pipeline, &imported, Timestamp::from_millis(0));
    keeps_everything(text, &before, &document);
}

/// The export has every key and value of the import at its position, and exporting it again changes nothing.
fn keeps_everything(text: &str, before: &Map<String, Value>, document: &Document) {
    let original = || Some(Original::new(text, document));
    let first = exported(Some(&Before { keys: before.clone(), original: original() }), document);
    let Ok(Value::Object(now)) = serde_json::from_str(&first) else { panic!("the export is an object") };
    for (key, value) in before {
        assert_eq!(now.get(key), Some(value), "{key}");
    }
    let order: Vec<&String> = now.keys().filter(|key| before.contains_key(*key)).collect();
    assert_eq!(order, before.keys().collect::<Vec<_>>(), "keys keep their order");
    let again = Before { original: original(), ..Before::of_text(&first).expect("an object") };
    assert_eq!(exported(Some(&again), document), first, "a second export changes nothing");
    // An impossible transition is refused; a possible one is written exactly like the export.
    if let Ok(written) = render(Some(&again), document) {
        assert_eq!(written, first);
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let files = [
        r#"{"prd": "PRD-001", "prd_title": "x", "current_phase": 1, "status": "paused", "completed_workstreams": ["WS1"], "in_progress_workstreams": [], "pending_workstreams": ["WS2"], "artifacts": {"WS1": ["a"]}, "gates_passed": ["lint (WS1)"], "gates_pending": [], "timestamp": "2025-12-11T10:00:00Z"}"#,
        r#"{"x": {"y": [1, 2.5, null]}, "prd_id": "A", "status": "in-progress", "completed_workstreams": [{"id": "WS1"}], "workstreams": {"WS2": {"status": "done"}}, "artifacts": {"WS1": {"made": ["b"]}}, "error": null}"#,
        r#"{"status": "failed", "error": {"workstream": "WS1", "message": "m", "file": "f", "line": 3}, "key_fixes": [{"file": "a", "change": "b"}], "gates": {"lint": "pass"}}"#,
    ];
    let outputs = [
        "src/a.ts(45,7): error TS2339: no",
        "error[E0425]: no\n --> src/main.rs:2:5\n",
        "/r/a.ts\n  7:10  error  no  rule\n",
        "E   assert 1\ntests/a.py:12: AssertionError\n",
        "\u{1b}[96msrc/a.ts\u{1b}[0m:45:7 - error TS1: no",
    ];
    files.into_iter().chain(outputs).map(|text| text.as_bytes().to_vec()).collect()
}
