//! State files of pipelines: `lockgate pipeline check` must report exactly what `expected-findings.tsv` lists, and each file must survive an import and an
//! export with every key and value.

use super::{CorpusReport, call, messages, root};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The list of violations by file, in words.
const EXPECTED: &str = "expected-findings.tsv";

/// Lockgate's rules in the words of that list.
const WORDS: [(&str, &str); 34] = [
    ("prd-missing", "missing prd"),
    ("prd-pattern", "prd pattern"),
    ("prd-differs-from-file-name", "prd != filename"),
    ("prd-title-missing", "missing prd_title"),
    ("prd-title-not-a-string", "prd_title not string"),
    ("current-phase-invalid", "current_phase not int"),
    ("status-missing", "missing status"),
    ("status-unknown", "bad status"),
    ("completed-workstreams-missing", "missing completed_workstreams"),
    ("completed-workstreams-not-strings", "completed_workstreams not string[]"),
    ("in-progress-workstreams-missing", "missing in_progress_workstreams"),
    ("in-progress-workstreams-not-strings", "in_progress_workstreams not string[]"),
    ("pending-workstreams-missing", "missing pending_workstreams"),
    ("pending-workstreams-not-strings", "pending_workstreams not string[]"),
    ("artifacts-missing", "missing artifacts"),
    ("artifacts-not-an-object", "artifacts not object"),
    ("artifact-paths-not-strings", "artifact value not string[]"),
    ("artifact-of-unfinished-workstream", "artifact keys not subset of completed"),
    ("gates-passed-missing", "missing gates_passed"),
    ("gates-passed-not-strings", "gates_passed not string[]"),
    ("gates-pending-missing", "missing gates_pending"),
    ("gates-pending-not-strings", "gates_pending not string[]"),
    ("timestamp-missing", "missing timestamp"),
    ("timestamp-not-iso-8601", "bad timestamp"),
    ("workstream-listed-twice", "workstream in two lists"),
    ("no-workstream-in-progress", "in_progress without in_progress_workstreams"),
    ("workstream-still-in-progress", "in_progress_workstreams not empty"),
    ("error-missing", "failed without error"),
    ("error-without-failure", "error without failed"),
    ("error-incomplete", "error not {workstream, message}"),
    ("complete-with-pending-workstreams", "complete with pending_workstreams"),
    ("complete-with-pending-gates", "complete with gates_pending"),
    ("workstreams-differ-from-spec", "workstreams != spec"),
    ("gates-differ-from-spec", "gates != spec"),
];

/// Checks all state files in a directory.
pub(super) fn check(lockgate: &Path, directory: &Path, report: &mut CorpusReport) {
    let expected = expected(&std::fs::read_to_string(directory.join(EXPECTED)).unwrap_or_default());
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let outcome = as_expected(lockgate, &file, expected.get(&name))
            .and_then(|summary| Ok(format!("{summary}; {}", imported(lockgate, &file)?)));
        report.count(&file, outcome, |report| report.pipelines += 1);
    }
}

/// The expected violations of each file, sorted.
fn expected(list: &str) -> BTreeMap<String, Vec<String>> {
    let line = |line: &str| {
        let (file, rest) = line.split_once('\t')?;
        let words = rest.split('\t').nth(1).unwrap_or_default().split("; ").map(str::trim).filter(|word| !word.is_empty());
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        words.sort();
        Some((file.to_owned(), words))
    };
    list.lines().skip(1).filter_map(line).collect()
}

fn as_expected(lockgate: &Path, file: &Path, expected: Option<&Vec<String>>) -> Result<String, String> {
    let output = call(lockgate, None, &["pipeline", "check", "--json", &file.to_string_lossy()])?;
    let view: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", messages(&output)))?;
    let findings: Vec<&Value> = view[0]["findings"].as_array().into_iter().flatten().collect();
    let code = i32::from(!findings.is_empty());
    if output.status.code() != Some(code) {
        return Err(format!("{} with {} findings: {}", output.status, findings.len(), messages(&output)));
    }
    if let Some(without) = findings.iter().find(|finding| finding["line"].as_u64() < Some(1) || finding["help"] == "") {
        return Err(format!("a finding has no position or no help: {without}"));
    }
    let mut found: Vec<String> = findings.iter().map(|finding| words(finding["rule"].as_str().unwrap_or_default())).collect();
    found.sort();
    match expected {
        Some(expected) if found != *expected => Err(format!("found {found:?}, expected {expected:?}")),
        Some(_) => Ok(format!("{} findings, as expected", found.len())),
        None => Ok(format!("{} findings, without an expectation: {}", found.len(), found.join("; "))),
    }
}

fn words(rule: &str) -> String {
    WORDS.iter().find(|(known, _)| *known == rule).map_or(rule, |(_, words)| words).to_owned()
}

/// Imports a file as a run, and exports it again: every key must keep its position and value.
fn imported(lockgate: &Path, file: &Path) -> Result<String, String> {
    let root = root()?;
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    std::fs::write(root.path().join(&name), &text).map_err(|error| error.to_string())?;
    let output = call(lockgate, Some(root.path()), &["pipeline", "import", &name, "--json"])?;
    if output.status.code() != Some(0) {
        return Err(format!("it cannot be imported: {}", messages(&output)));
    }
    let made: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {}", messages(&output)))?;
    let exported = call(lockgate, Some(root.path()), &["pipeline", "export", made["run"].as_str().unwrap_or_default()])?;
    let again: Value = serde_json::from_slice(&exported.stdout).map_err(|error| format!("{error}: {}", messages(&exported)))?;
    let before: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    kept(&before, &again)?;
    let leniently = made["notes"].as_array().map_or(0, Vec::len);
    Ok(format!(
        "imported as {}, {leniently} values read leniently, and exported with every key",
        made["status"].as_str().unwrap_or_default()
    ))
}

/// Whether every key has the same position and value, compared as text because the order of keys does not affect equality. Keys that the
/// reference format requires may have been added.
fn kept(before: &Value, again: &Value) -> Result<(), String> {
    let (Value::Object(before), Value::Object(again)) = (before, again) else { return Err("not an object".to_owned()) };
    if let Some((key, value)) =
        before.iter().find(|(key, value)| again.get(*key).map(Value::to_string) != Some(value.to_string()))
    {
        return Err(format!("`{key}` was {value} and is {}", again.get(key).unwrap_or(&Value::Null)));
    }
    let order: Vec<&String> = again.keys().filter(|key| before.contains_key(*key)).collect();
    if order != before.keys().collect::<Vec<_>>() { Err(format!("the order of keys changed: {order:?}")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_unique_description() {
        let source = include_str!("../../../crates/formats/src/state_file/rule.rs");
        let rules: Vec<&str> = source
            .lines()
            .filter_map(|line| line.trim().strip_suffix("\",")?.split_once(" = \""))
            .map(|(_, rule)| rule)
            .collect();
        assert_eq!(rules.len(), WORDS.len());
        assert!(rules.iter().all(|rule| WORDS.iter().any(|(known, _)| known == rule)), "{rules:?}");
        let different: std::collections::BTreeSet<&str> = WORDS.iter().map(|(_, words)| *words).collect();
        assert_eq!(different.len(), WORDS.len());
    }

    #[test]
    fn lost_changed_and_moved_keys_are_detected() {
        let seen = |again: &str| kept(&serde_json::json!({"b": {"y": 1, "x": 2}, "a": 3}), &serde_json::from_str(again).unwrap());
        assert_eq!(seen(r#"{"b": {"y": 1, "x": 2}, "c": 4, "a": 3}"#), Ok(()));
        assert!(seen(r#"{"b": {"y": 1, "x": 2}}"#).is_err());
        assert!(seen(r#"{"b": {"x": 2, "y": 1}, "a": 3}"#).is_err(), "the order within a value");
        assert!(seen(r#"{"a": 3, "b": {"y": 1, "x": 2}}"#).is_err(), "the order of keys");
    }

    #[test]
    fn expected_rules_are_grouped_by_file() {
        let list = "file\tstatus\trules\na.json\tcomplete\tmissing prd; bad status\nb.json\tpaused\t\n";
        let expected = expected(list);
        assert_eq!(expected["a.json"], ["bad status", "missing prd"]);
        assert_eq!(expected["b.json"], Vec::<String>::new());
    }
}
