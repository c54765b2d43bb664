//! The expectations of a test case, and comparing them with a dry run.

use super::test_case::{map, text, texts};
use super::{DryRunOutcome, DryRunReport, Step};
use lockgate_engine::run::Status;
use lockgate_engine::spec::document::{Entry, Value as Written};
use lockgate_engine::spec::problem::Problem;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const LONGEST: usize = 200;

const STATUSES: [Status; 3] = [Status::Complete, Status::Failed, Status::Aborted];

/// The expectations of a test case. Anything it does not mention may have any value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// The final status of the run; complete if absent.
    pub status: Option<Status>,
    /// A part of the error message of a failed run.
    pub error: Option<String>,
    /// The phases in the order of their execution.
    pub path: Option<Vec<String>>,
    /// The holds in the order in which they open: a phase for its checkpoint, an address for others.
    pub holds: Option<Vec<String>>,
    /// The addresses of all omitted tasks.
    pub omitted: Option<Vec<String>>,
    pub context: BTreeMap<String, Value>,
    /// A part of the text of each file; `false` for a file that must not exist, an empty value for any text.
    pub files: BTreeMap<String, ExpectedFile>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedFile {
    /// It exists and contains this text.
    Contains(String),
    /// It does not exist.
    Absent,
}

const EXAMPLE: &str = "{ status: complete, path: [plan, build] }";

pub(super) fn read(value: &Written<'_>) -> Result<Expected, Problem> {
    let mut expected = Expected::default();
    for Entry { key, value, .. } in
        value.fields("`expect`", EXAMPLE, &["status", "error", "path", "holds", "omitted", "context", "files"])?
    {
        match key.as_str() {
            "status" => {
                let word = text(&value, "`status`")?;
                let known = STATUSES.into_iter().find(|status| status.as_str() == word);
                expected.status =
                    Some(known.ok_or_else(|| {
                        value.problem(format!("`status` must be complete, failed or aborted, not `{word}`"), None)
                    })?);
            }
            "error" => expected.error = Some(text(&value, "`error`")?),
            "path" => expected.path = Some(texts(&value, "`path`")?),
            "holds" => expected.holds = Some(texts(&value, "`holds`")?),
            "omitted" => expected.omitted = Some(texts(&value, "`omitted`")?),
            "context" => {
                for entry in map(&value, "`context`", "{ outputs.plan.draft: text }")? {
                    expected.context.insert(entry.key, entry.value.json()?);
                }
            }
            _ => {
                for entry in map(&value, "`files`", "{ report.md: a part of its text }")? {
                    let file = match entry.value.json()? {
                        Value::Bool(false) => ExpectedFile::Absent,
                        Value::Bool(true) | Value::Null => ExpectedFile::Contains(String::new()),
                        Value::Number(_) | Value::String(_) => ExpectedFile::Contains(text(&entry.value, "`files`")?),
                        Value::Array(_) | Value::Object(_) => {
                            let help = "write a part of its text, or `false` if it must not exist".to_owned();
                            return Err(entry.value.problem("what is expected of a file must be text", Some(help)));
                        }
                    };
                    expected.files.insert(entry.key, file);
                }
            }
        }
    }
    Ok(expected)
}

impl Expected {
    /// The differences from the expectations; empty if all are met.
    pub fn compare(&self, came: &DryRunReport) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut differs = |what: &str, expected: String, came: String| {
            wrong.push(format!("{what}\n  expected: {expected}\n  actual:   {came}"));
        };
        let status = self.status.unwrap_or(Status::Complete);
        if came.truncated.is_none() && came.status != status {
            let why = came.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
            differs("status", status.to_string(), format!("{}{why}", came.status));
        }
        if let Some(part) = self.error.as_deref().filter(|part| !came.error.as_deref().unwrap_or_default().contains(part)) {
            differs("error", format!("a message with {part:?}"), came.error.clone().unwrap_or_else(|| "no error".into()));
        }
        if let Some(path) = self.path.as_ref().filter(|path| **path != came.path) {
            differs("path", list(path), list(&came.path));
        }
        if let Some(holds) = &self.holds {
            let same = holds.len() == came.holds.len() && came.holds.iter().zip(holds).all(|(hold, name)| hold.is_named(name));
            if !same {
                let names: Vec<String> = came.holds.iter().map(|hold| hold.names().join(" and ")).collect();
                differs("holds", list(holds), list(&names));
            }
        }
        if let Some(omitted) = &self.omitted {
            let expected: BTreeSet<&str> = omitted.iter().map(String::as_str).collect();
            let left = left_out_steps(came);
            if expected != left {
                differs("omitted", list(&expected), list(&left));
            }
        }
        for (path, expected) in &self.context {
            match found(&came.context, path) {
                None => differs(&format!("context {path}"), shown(expected), "missing".into()),
                Some(value) if !fits(expected, value) => differs(&format!("context {path}"), shown(expected), shown(value)),
                Some(_) => {}
            }
        }
        for (path, expected) in &self.files {
            let there = came.files.contains(path).then(|| std::fs::read(came.files_in.join(path)).unwrap_or_default());
            let there = there.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            match (expected, there) {
                (ExpectedFile::Absent, None) => {}
                (ExpectedFile::Absent, Some(_)) => differs(&format!("file {path}"), "no such file".into(), "it exists".into()),
                (ExpectedFile::Contains(_), None) => {
                    let files = if came.files.is_empty() { "no files".to_owned() } else { list(&came.files) };
                    differs(&format!("file {path}"), "it exists".into(), files);
                }
                (ExpectedFile::Contains(part), Some(text)) if !text.contains(part.as_str()) => {
                    differs(&format!("file {path}"), format!("a text with {part:?}"), cut(format!("{text:?}")));
                }
                (ExpectedFile::Contains(_), Some(_)) => {}
            }
        }
        wrong
    }
}

fn left_out_steps(came: &DryRunReport) -> BTreeSet<&str> {
    let omitted = |step: &&Step| step.outcome == Some(DryRunOutcome::Omitted);
    came.steps.iter().filter(omitted).filter_map(|step| step.address.as_deref()).collect()
}

fn list<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    format!("[{}]", names.join(", "))
}

/// The value at a path such as `outputs.plan.draft` or `checkpoints.0.decision`.
fn found<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if let Some(value) = value.get(path) {
        return Some(value);
    }
    path.split('.').try_fold(value, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        Value::Object(fields) => fields.get(name),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// Whether a value matches an expectation: a map may contain more keys.
fn fits(expected: &Value, value: &Value) -> bool {
    match (expected, value) {
        (Value::Object(expected), value @ Value::Object(_)) => {
            expected.iter().all(|(path, expected)| found(value, path).is_some_and(|value| fits(expected, value)))
        }
        (Value::Array(expected), Value::Array(values)) => {
            expected.len() == values.len() && expected.iter().zip(values).all(|(expected, value)| fits(expected, value))
        }
        (Value::Number(expected), Value::Number(value)) => expected.as_f64() == value.as_f64(),
        (expected, value) => expected == value,
    }
}

fn shown(value: &Value) -> String {
    cut(value.to_string())
}

fn cut(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_expected_context_matches_partially_and_may_use_dotted_paths() {
        let context = json!({"outputs": {"plan": {"draft": {"ok": true, "count": 2}}}, "list": [{"a": 1, "b": 2}, 3]});
        assert!(fits(&json!({"outputs": {"plan": {"draft": {"ok": true}}}}), &context));
        assert!(fits(&json!({"outputs.plan.draft.count": 2.0, "list": [{"a": 1}, 3]}), &context));
        assert!(!fits(&json!({"list": [{"a": 1}]}), &context), "lists match completely");
        assert!(!fits(&json!({"outputs.plan.draft.ok": "true"}), &context));
        assert_eq!(found(&context, "list.0.b"), Some(&json!(2)));
        assert_eq!(found(&context, "list.2"), None);
    }
}
