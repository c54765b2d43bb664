//! Selects values in a line of output: paths, patterns for values, and text templates with paths.

use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// Alternative paths, tried in order, such as `session_id|sessionId`. In a path, `*` matches every member of an object or a
/// list, and a final `@key` matches the member names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(from = "String")]
pub(super) struct Paths(Vec<Vec<String>>);

impl From<String> for Paths {
    fn from(text: String) -> Self {
        Self(text.split('|').map(|path| path.split('.').map(|key| key.trim().to_owned()).collect()).collect())
    }
}

enum Found<'v> {
    Value(&'v Value),
    Key(&'v str),
}

fn walk<'v>(path: &[String], value: &'v Value, found: &mut Vec<Found<'v>>) {
    let Some((key, rest)) = path.split_first() else {
        if !value.is_null() {
            found.push(Found::Value(value));
        }
        return;
    };
    match (key.as_str(), value) {
        ("*", Value::Object(members)) => members.values().for_each(|member| walk(rest, member, found)),
        ("*", Value::Array(members)) => members.iter().for_each(|member| walk(rest, member, found)),
        ("@key", Value::Object(members)) => found.extend(members.keys().map(|key| Found::Key(key))),
        (key, Value::Object(members)) => {
            if let Some(member) = members.get(key) {
                walk(rest, member, found);
            }
        }
        (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {}
    }
}

impl Paths {
    fn first<'v, T>(&self, value: &'v Value, read: impl Fn(Vec<Found<'v>>) -> Option<T>) -> Option<T> {
        self.0.iter().find_map(|path| {
            let mut found = Vec::new();
            walk(path, value, &mut found);
            read(found)
        })
    }

    /// The text at the first path with a value; several matches are joined.
    pub(super) fn text<'v>(&self, value: &'v Value) -> Option<Cow<'v, str>> {
        self.first(value, |found| {
            let mut texts = found.into_iter().map(|one| match one {
                Found::Value(value) => text_of(value),
                Found::Key(key) => Cow::Borrowed(key),
            });
            let first = texts.next()?;
            let all = texts.fold(first, |mut all, more| {
                all.to_mut().push_str(&more);
                all
            });
            (!all.is_empty()).then_some(all)
        })
    }

    /// The number at the first path with a value; several matches are summed. Negative numbers are rejected.
    pub(super) fn number(&self, value: &Value) -> Option<f64> {
        self.first(value, |found| {
            let numbers = found.iter().filter_map(|one| match one {
                Found::Value(Value::Number(number)) => number.as_f64(),
                Found::Value(Value::String(text)) => text.parse().ok(),
                Found::Value(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | Found::Key(_) => None,
            });
            let sum = numbers.filter(|number: &f64| number.is_finite()).reduce(|sum, number| sum + number)?;
            (sum >= 0.0).then_some(sum)
        })
    }

    /// The members of the list at the first path with one.
    pub(super) fn members<'v>(&self, value: &'v Value) -> &'v [Value] {
        let list = self.first(value, |found| {
            found.into_iter().find_map(|one| match one {
                Found::Value(Value::Array(members)) => Some(members.as_slice()),
                Found::Value(_) | Found::Key(_) => None,
            })
        });
        list.unwrap_or_default()
    }

    /// Whether the value at the paths matches a pattern.
    pub(super) fn fit(&self, value: &Value, pattern: &Pattern) -> bool {
        let mut found = Vec::new();
        self.0.iter().for_each(|path| walk(path, value, &mut found));
        pattern.0.iter().any(|wanted| match wanted {
            Value::Null => found.is_empty(),
            Value::String(wanted) if wanted == ANY => !found.is_empty(),
            wanted => found.iter().any(|one| match (one, wanted) {
                (Found::Value(Value::String(text)), Value::String(wanted)) => glob(wanted, text),
                (Found::Value(value), wanted) => *value == wanted,
                (Found::Key(_), _) => false,
            }),
        })
    }
}

/// Matches any value that is present.
const ANY: &str = "<any>";

/// Alternatives that a value may match. A string may contain `*`, null matches an absent value, and `<any>` any present one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Value")]
pub(super) struct Pattern(Vec<Value>);

impl From<Value> for Pattern {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(several) => Self(several),
            one => Self(vec![one]),
        }
    }
}

fn glob(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(end)
}

/// A value as text for people.
fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(members) if members.iter().all(Value::is_string) => {
            Cow::Owned(members.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; "))
        }
        Value::Null => Cow::Borrowed(""),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Cow::Owned(value.to_string()),
    }
}

/// A text template with `{path}` placeholders.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Line(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Value(Paths),
}

#[derive(Debug, thiserror::Error)]
#[error("`{{` is not closed in {0:?}")]
pub(super) struct UnclosedBrace(String);

impl TryFrom<String> for Line {
    type Error = UnclosedBrace;

    fn try_from(text: String) -> Result<Self, UnclosedBrace> {
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (path, after) = after.split_once('}').ok_or_else(|| UnclosedBrace(text.clone()))?;
            parts.extend([Part::Text(before.to_owned()), Part::Value(Paths::from(path.to_owned()))]);
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }
}

impl Line {
    /// Fills in the template; `None` if none of its values is present.
    pub(super) fn fill(&self, value: &Value) -> Option<String> {
        let mut filled = String::new();
        let mut any = false;
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Value(paths) => {
                    if let Some(text) = paths.text(value) {
                        any = true;
                        filled.push_str(&text);
                    }
                }
            }
        }
        any.then(|| filled.trim().to_owned()).filter(|filled| !filled.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(text: &str) -> Paths {
        Paths::from(text.to_owned())
    }

    #[test]
    fn the_first_path_with_a_value_wins() {
        let value =
            json!({"a": {"b": null}, "c": "see", "list": [{"n": 1}, {"n": 2.5}, {"x": "text"}], "errors": ["one", "two"]});
        assert_eq!(paths("a.b|c").text(&value).unwrap(), "see");
        assert_eq!(paths("a.b|d").text(&value), None);
        assert_eq!(paths("nowhere|list.*.n").number(&value), Some(3.5));
        assert_eq!(paths("errors").text(&value).unwrap(), "one; two");
        assert_eq!(paths("a.@key").text(&value).unwrap(), "b");
        assert_eq!(paths("list").members(&value).len(), 3);
        assert_eq!(paths("c").members(&value).len(), 0);
    }

    #[test]
    fn an_invalid_amount_is_unknown() {
        let value = json!({"minus": -1, "flag": true, "text": "12", "word": "many", "zero": 0});
        assert_eq!(paths("minus").number(&value), None);
        assert_eq!(paths("flag|word").number(&value), None);
        assert_eq!(paths("text").number(&value), Some(12.0));
        assert_eq!(paths("zero|text").number(&value), Some(0.0));
    }

    #[test]
    fn patterns_match_as_documented() {
        let value = json!({"type": "error_max_turns", "ok": false, "none": null, "object": {}});
        let fits = |path: &str, pattern: Value| paths(path).fit(&value, &Pattern::from(pattern));
        assert!(fits("type", json!("error*")) && fits("type", json!("*max*")) && fits("type", json!("*_turns")));
        assert!(fits("type", json!("error_*_turns")) && fits("type", json!(["other", "error_max_turns"])));
        assert!(!fits("type", json!("error")) && !fits("type", json!("error*x")) && !fits("type", json!("*error_max_turns_*")));
        assert!(fits("none", json!(null)) && fits("absent", json!([true, null])) && !fits("ok", json!(null)));
        assert!(fits("ok", json!(false)) && !fits("ok", json!("false")));
        assert!(fits("object", json!("<any>")) && !fits("none", json!("<any>")));
        assert!(!fits("absent", json!("*")));
    }

    #[test]
    fn a_line_template_without_any_value_gives_none() {
        let line = Line::try_from("run {command|path} now".to_owned()).unwrap();
        assert_eq!(line.fill(&json!({"path": "/tmp"})).unwrap(), "run /tmp now");
        assert_eq!(line.fill(&json!({"other": 1})), None);
        assert!(Line::try_from("run {command".to_owned()).is_err());
    }
}
