//! State files of pipelines: valid ones, and violations of every rule. D4.

use lockgate_engine::spec::includes::NoIncludes;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_formats::file_format;
use lockgate_formats::state_file::check::check;
use lockgate_formats::state_file::import::lenient;
use lockgate_formats::state_file::rule::Rule;
use serde_json::{Value, json};

fn good() -> Value {
    json!({
        "prd": "PRD-009",
        "prd_title": "Cashier Workflows",
        "current_phase": 1,
        "status": "paused",
        "completed_workstreams": ["WS1"],
        "in_progress_workstreams": [],
        "pending_workstreams": ["WS2", "WS3"],
        "artifacts": {"WS1": ["a.sql"]},
        "gates_passed": ["schema (WS1)"],
        "gates_pending": ["lint"],
        "timestamp": "2025-12-11T10:16:00Z"
    })
}

/// The rules that a valid file violates after these changes; the value `-` removes a key.
fn with(changes: Value) -> Vec<&'static str> {
    let mut file = good();
    let map = file.as_object_mut().expect("an object");
    for (key, value) in changes.as_object().expect("an object") {
        if value == "-" {
            map.shift_remove(key);
        } else {
            map.insert(key.clone(), value.clone());
        }
    }
    rules(&file, None)
}

fn rules(file: &Value, spec: Option<&Workflow>) -> Vec<&'static str> {
    let text = serde_json::to_string_pretty(file).expect("JSON");
    let findings = check(&text, Some("PRD-009"), spec).expect("an object");
    findings.iter().map(|finding| finding.rule.text()).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn d4_a_reference_file_has_no_findings_in_any_status() {
    assert_eq!(with(json!({})), NONE);
    assert_eq!(with(json!({"error": null, "unknown": {"kept": 1}})), NONE, "null counts as absent, and other keys are allowed");
    assert_eq!(
        with(
            json!({"status": "initialized", "current_phase": 0, "completed_workstreams": [], "pending_workstreams": ["WS1", "WS2"], "artifacts": {}})
        ),
        NONE
    );
    assert_eq!(with(json!({"status": "in_progress", "in_progress_workstreams": ["WS2"], "pending_workstreams": ["WS3"]})), NONE);
    assert_eq!(with(json!({"status": "failed", "error": {"workstream": "WS2", "message": "no"}})), NONE);
    assert_eq!(with(json!({"status": "complete", "pending_workstreams": [], "gates_pending": []})), NONE);
}

#[test]
fn d4_every_missing_required_key_is_reported() {
    for (key, rule) in [
        ("prd", "prd-missing"),
        ("prd_title", "prd-title-missing"),
        ("current_phase", "current-phase-invalid"),
        ("status", "status-missing"),
        ("completed_workstreams", "completed-workstreams-missing"),
        ("in_progress_workstreams", "in-progress-workstreams-missing"),
        ("pending_workstreams", "pending-workstreams-missing"),
        ("artifacts", "artifacts-missing"),
        ("gates_passed", "gates-passed-missing"),
        ("gates_pending", "gates-pending-missing"),
        ("timestamp", "timestamp-missing"),
    ] {
        for absent in [json!("-"), json!(null)] {
            let found = with(json!({key: absent}));
            assert!(found.contains(&rule), "{key}: {found:?}");
            let also = usize::from(key == "completed_workstreams");
            assert_eq!(found.len(), 1 + also, "{key}: {found:?}");
        }
    }
}

#[test]
fn d4_malformed_values_are_reported() {
    for (change, rule) in [
        (json!({"prd_title": 9}), "prd-title-not-a-string"),
        (json!({"current_phase": "1"}), "current-phase-invalid"),
        (json!({"current_phase": 1.5}), "current-phase-invalid"),
        (json!({"current_phase": -1}), "current-phase-invalid"),
        (json!({"status": "in-progress"}), "status-unknown"),
        (json!({"status": 3}), "status-unknown"),
        (json!({"completed_workstreams": [{"id": "WS1"}]}), "completed-workstreams-not-strings"),
        (json!({"in_progress_workstreams": {}}), "in-progress-workstreams-not-strings"),
        (json!({"pending_workstreams": "WS2"}), "pending-workstreams-not-strings"),
        (json!({"artifacts": []}), "artifacts-not-an-object"),
        (json!({"artifacts": {"WS1": "a.sql"}}), "artifact-paths-not-strings"),
        (json!({"artifacts": {"WS1": ["a.sql", 1]}}), "artifact-paths-not-strings"),
        (json!({"artifacts": {"WS2": ["a.sql"]}}), "artifact-of-unfinished-workstream"),
        (json!({"gates_passed": [{"gate": "schema"}]}), "gates-passed-not-strings"),
        (json!({"gates_pending": [1]}), "gates-pending-not-strings"),
        (json!({"timestamp": "yesterday"}), "timestamp-not-iso-8601"),
        (json!({"timestamp": 1_765_448_000}), "timestamp-not-iso-8601"),
    ] {
        assert_eq!(with(change.clone()), [rule], "{change}");
    }
    assert_eq!(with(json!({"prd": "ADR-035"})), ["prd-pattern", "prd-differs-from-file-name"]);
    assert_eq!(with(json!({"prd": "PRD-0090"})), ["prd-pattern", "prd-differs-from-file-name"]);
    assert_eq!(with(json!({"prd": "PRD-010"})), ["prd-differs-from-file-name"]);
}

#[test]
fn d4_each_status_requires_exactly_its_keys() {
    let error = json!({"workstream": "WS2", "message": "no"});
    for status in ["initialized", "paused", "complete", "failed"] {
        let found = with(json!({"status": status, "in_progress_workstreams": ["WS2"], "pending_workstreams": ["WS3"]}));
        assert!(found.contains(&"workstream-still-in-progress"), "{status}: {found:?}");
    }
    assert_eq!(with(json!({"status": "in_progress"})), ["no-workstream-in-progress"]);
    assert_eq!(with(json!({"status": "failed"})), ["error-missing"]);
    for status in ["initialized", "paused"] {
        assert_eq!(with(json!({"status": status, "error": error})), ["error-without-failure"]);
    }
    assert_eq!(with(json!({"status": "failed", "error": "broken"})), ["error-incomplete"]);
    assert_eq!(with(json!({"status": "complete"})), ["complete-with-pending-workstreams", "complete-with-pending-gates"]);
    assert_eq!(with(json!({"pending_workstreams": ["WS1", "WS2"]})), ["workstream-listed-twice"]);
}

fn spec() -> Workflow {
    let source = "prd: PRD-009
workstreams:
  WS1: { gate: schema }
  WS2: { gates: [lint, test], depends_on: WS1 }
  WS3: { command: make }
  WS4: { deferred: true }
execution_phases: [{ parallel: [WS1] }, { parallel: [WS2, WS3], gates: [lint] }]
gates: { schema: make schema, lint: make lint, test: make test, build: make }
";
    file_format::read_with_includes(source, &mut NoIncludes).read.workflow.expect("a workflow")
}

#[test]
fn d4_workstreams_and_gates_must_match_the_spec() {
    let spec = spec();
    let with = |completed: Value, pending: Value, passed: Value, waiting: Value| {
        let mut file = good();
        file["completed_workstreams"] = completed;
        file["pending_workstreams"] = pending;
        file["gates_passed"] = passed;
        file["gates_pending"] = waiting;
        rules(&file, Some(&spec))
    };
    let all = json!(["WS2", "WS3"]);
    let exact = json!(["lint (WS2)", "test (WS2)", "lint"]);
    assert_eq!(with(json!(["WS1"]), all.clone(), json!(["schema (WS1)"]), exact), NONE);
    assert_eq!(
        with(json!(["WS1"]), all.clone(), json!(["schema"]), json!(["lint", "test"])),
        NONE,
        "without suffixes, names are compared"
    );
    assert_eq!(with(json!(["WS1"]), all.clone(), json!(["schema (WS1)", "lint (WS2+WS3)"]), json!(["test", "build"])), NONE);
    assert_eq!(
        with(json!(["WS1"]), json!(["WS2", "WS3", "WS4"]), json!(["schema", "lint"]), json!(["test"])),
        NONE,
        "deferred workstreams may be listed"
    );
    assert_eq!(
        with(json!(["WS1"]), json!(["WS2"]), json!(["schema", "lint"]), json!(["test"])),
        ["workstreams-differ-from-spec"]
    );
    assert_eq!(
        with(json!(["WS1"]), json!(["WS2", "WS3", "WS9"]), json!(["schema", "lint"]), json!(["test"])),
        ["workstreams-differ-from-spec"]
    );
    assert_eq!(with(json!(["WS1"]), all.clone(), json!(["schema"]), json!(["lint"])), ["gates-differ-from-spec"]);
    assert_eq!(
        with(json!(["WS1"]), all.clone(), json!(["schema"]), json!(["lint", "test", "review"])),
        ["gates-differ-from-spec"]
    );
    assert_eq!(
        with(json!(["WS1"]), all, json!(["schema"]), json!(["lint (WS3)", "test"])),
        ["gates-differ-from-spec"],
        "that of WS2 is missing"
    );
}

#[test]
fn d4_findings_have_a_position_and_a_fix() {
    let text = "{\n  \"prd\": \"PRD-9\",\n  \"prd_id\": 1, \"ä\": \"ö\", \"status\": \"done\"\n}";
    let findings = check(text, None, None).expect("an object");
    let places: Vec<(&str, usize, usize)> =
        findings.iter().map(|finding| (finding.rule.text(), finding.line, finding.column)).collect();
    assert!(places.contains(&("prd-pattern", 2, 10)) && places.contains(&("status-unknown", 3, 36)), "{places:?}");
    assert!(findings.iter().all(|finding| !finding.help.is_empty() && !finding.message.is_empty()));
    let renamed = check("{\"prd_id\": \"PRD-009\"}", None, None).expect("an object");
    assert!(renamed[0].help.contains("rename `prd_id` to `prd`"), "{renamed:?}");
}

#[test]
fn every_rule_has_a_unique_plain_name() {
    let mut names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.text()).collect();
    let is_plain = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    assert!(names.iter().all(|name| name.chars().all(is_plain)), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Rule::ALL.len());
}

#[test]
fn d4_lenient_parsing_keeps_every_key_and_reports_its_changes() {
    let text = "{\"id\": \"PRD-077\", \"z\": [1, {\"y\": null}], \"status\": \"done\", \"a\": 1.50, \"current_phase\": 3}";
    let (state, diagnostics) = lenient(text).expect("an object");
    assert_eq!(state.whole.to_value(), serde_json::from_str::<Value>(text).expect("JSON"));
    let keys: Vec<&str> = state.whole.entries().iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["id", "z", "status", "a", "current_phase"]);
    assert_eq!(diagnostics, ["`id` is used as `prd`", "status `done` was read as `complete`"]);
}

#[test]
fn d4_non_objects_and_deep_nesting_are_refused() {
    assert!(check("[]", None, None).is_err());
    assert!(check(&"[".repeat(1_000_000), None, None).is_err());
    assert!(check("{\"a\": 1} {}", None, None).is_err());
}
