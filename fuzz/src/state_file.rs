//! State files of pipelines: any text is an error with a position, or is checked and read without loss.

use crate::spec::can_be_shown;
use lockgate_formats::json::{self, place};
use lockgate_formats::state_file::check::check;
use lockgate_formats::state_file::import::lenient;
use lockgate_formats::state_file::rule::Rule;
use std::collections::BTreeSet;

/// Reads a text as JSON, as a state file, and leniently.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let parsed = json::parse(text);
    match &parsed {
        Err(error) => {
            assert!(error.at <= text.len(), "{error:?} is outside of the file");
            can_be_shown(&error.message);
        }
        Ok(value) => {
            assert!(value.span.start <= value.span.end && value.span.end <= text.len());
            // Whatever this parser accepts, other parsers accept with the same meaning; only lone surrogates are read by this one alone.
            match serde_json::from_str::<serde_json::Value>(text.trim_start_matches('\u{feff}')) {
                Ok(theirs) => assert_eq!(value.to_value(), theirs, "the parsers disagree"),
                Err(error) => assert!(text.contains("\\u"), "{error}"),
            }
        }
    }
    let (checked, read) = (check(text, Some("PRD-009"), None), lenient(text));
    assert_eq!(checked.is_ok(), read.is_ok(), "a file that can be checked can be read");
    if let Ok(findings) = &checked {
        let rules: BTreeSet<Rule> = findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules.len(), findings.len(), "each rule is reported once");
        let lines = text.split('\n').count();
        for finding in findings {
            assert!((1..=lines).contains(&finding.line) && finding.column >= 1, "{finding:?}");
            can_be_shown(&finding.message);
            can_be_shown(&finding.help);
        }
    }
    if let (Ok((state, notes)), Ok(value)) = (read, parsed) {
        assert_eq!(state.whole, value, "every key is kept");
        notes.iter().for_each(|line| can_be_shown(line));
        let safe = |prd: &String| !prd.contains(['/', '\\', '\0']) && !prd.starts_with('.');
        assert!(state.prd.as_ref().is_none_or(safe), "{:?} cannot be a file name", state.prd);
    }
    place(text, text.len() / 2);
}

/// Files in the reference format, and as other tools write them.
pub fn seeds() -> Vec<Vec<u8>> {
    let source = r#"{"prd": "PRD-009", "prd_title": "T", "current_phase": 1, "status": "failed", "completed_workstreams": ["WS1"],
 "in_progress_workstreams": [], "pending_workstreams": ["WS2"], "artifacts": {"WS1": ["a"]}, "gates_passed": ["g (WS1)"],
 "gates_pending": ["h"], "timestamp": "2025-12-11T10:16:00Z", "error": {"workstream": "WS2", "message": "no", "line": 4}}"#;
    let other = r#"{"prd": "docs/x.md", "id": "PRD-077", "status": "in-progress", "current_phase": "3", "completed_workstreams": [{"id": "WS1"}],
 "workstreams": {"WS2": {"status": "running"}}, "phases": [{"parallel": ["WS3"], "status": "done"}], "artifacts": {"x": {"y": [true, "z"]}},
 "gates_passed": [{"gate": "lint", "workstreams": ["WS1"]}, "WS1:test"], "gate_results": {"a": "PASS"}, "error": "\ud800 \u00e4"}"#;
    [source, other, "{\"status\": \"complete\", \"status\": null}", "[[[[1.5e3, -0, \"\\n\"]]]]"]
        .iter()
        .map(|seed| seed.as_bytes().to_vec())
        .collect()
}
