//! Small YAML files other than workflows, such as settings and answers. They have the same limits and error messages, and every
//! value has its position.

use super::code::ProblemCode;
use super::problem::{Problem, Report, shown};
use super::syntax::{self, Content, Node, Scalar};
use super::{scalar, suggest};
use crate::time::parse_duration;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// A value with its position in the file.
#[derive(Clone, Debug)]
pub struct Value<'a> {
    source: &'a str,
    node: Node<'a>,
}

#[derive(Clone, Debug)]
pub struct Entry<'a> {
    pub key: String,
    pub value: Value<'a>,
    source: &'a str,
    span: Range<usize>,
}

/// Reads a file that holds one value. An empty file holds null.
pub fn read(source: &str) -> Result<Value<'_>, Problem> {
    let mut report = Report::default();
    let node = syntax::parse(source, &mut report);
    match (report.finish(source).into_iter().next(), node) {
        (Some(problem), _) => Err(problem),
        (None, Some(node)) => Ok(Value { source, node }),
        (None, None) => Err(problem_at(source, &(0..0), "this file cannot be read".into(), None)),
    }
}

fn problem_at(source: &str, span: &Range<usize>, message: String, help: Option<String>) -> Problem {
    let mut report = Report::default();
    report.error(ProblemCode::InvalidValue, span, message).maybe_help(help);
    report.finish(source).remove(0)
}

impl<'a> Value<'a> {
    /// A problem with this value.
    pub fn problem(&self, message: impl Into<String>, help: Option<String>) -> Problem {
        problem_at(self.source, &self.node.span, message.into(), help)
    }

    /// The offset of its first byte in the file.
    pub fn start(&self) -> usize {
        self.node.span.start
    }

    /// Whether the value is null.
    pub fn is_nothing(&self) -> bool {
        self.node.is_null()
    }

    /// The items of a list; `None` for anything else.
    pub fn items(&self) -> Option<Vec<Self>> {
        match &*self.node.content {
            Content::List(items) => Some(items.iter().map(|node| Self { source: self.source, node: node.clone() }).collect()),
            Content::Scalar(_) | Content::Map(_) => None,
        }
    }

    /// The entries of a map, in file order; `None` for anything else.
    pub fn entries(&self) -> Option<Vec<Entry<'a>>> {
        match &*self.node.content {
            Content::Map(entries) => Some(
                entries
                    .iter()
                    .map(|entry| Entry {
                        key: entry.key.to_string(),
                        value: Self { source: self.source, node: entry.value.clone() },
                        source: self.source,
                        span: entry.key_span.clone(),
                    })
                    .collect(),
            ),
            Content::Scalar(_) | Content::List(_) => None,
        }
    }

    /// The text of a scalar, as written; `None` for lists, maps and null.
    pub fn text(&self) -> Option<&str> {
        self.scalar().map(|scalar| &*scalar.text)
    }

    pub fn json(&self) -> Result<serde_json::Value, Problem> {
        let mut refused = Vec::new();
        let value = scalar::to_json(&self.node, &mut refused);
        match refused.first() {
            None => Ok(value),
            Some(span) => Err(problem_at(self.source, span, "JSON has no such number".into(), Some("write it as text".into()))),
        }
    }

    fn scalar(&self) -> Option<&Scalar<'a>> {
        match &*self.node.content {
            Content::Scalar(scalar) if !scalar.is_null() => Some(scalar),
            Content::Scalar(_) | Content::List(_) | Content::Map(_) => None,
        }
    }

    /// A description of the value, for messages.
    pub fn found(&self) -> String {
        self.scalar().map_or_else(|| self.node.kind().to_owned(), |scalar| format!("`{}`", shown(&scalar.text)))
    }

    pub fn boolean(&self, what: &str) -> Result<bool, Problem> {
        self.scalar().and_then(Scalar::boolean).ok_or_else(|| {
            let help = scalar::boolean_help(self.text().unwrap_or_default());
            self.problem(format!("{what} must be true or false, not {}", self.found()), Some(help.into()))
        })
    }

    /// A whole number in a range.
    pub fn count(&self, what: &str, allowed: RangeInclusive<u32>) -> Result<u32, Problem> {
        let count = self.scalar().and_then(Scalar::count).and_then(|count| u32::try_from(count).ok());
        count.filter(|count| allowed.contains(count)).ok_or_else(|| {
            let expected = format!("a whole number from {} to {}", allowed.start(), allowed.end());
            self.problem(
                format!("{what} must be {expected}, not {}", self.found()),
                Some("write it without quotes and units".into()),
            )
        })
    }

    /// A whole number, which may be negative; `None` for anything else.
    pub fn integer(&self) -> Option<i64> {
        self.scalar().and_then(Scalar::integer)
    }

    /// A duration greater than zero.
    pub fn duration(&self, what: &str) -> Result<Duration, Problem> {
        let text = self.text().unwrap_or_default();
        match parse_duration(text) {
            Ok(duration) if duration.is_zero() => {
                Err(self.problem(format!("{what} must be longer than zero"), Some("write it as `30s` or `5m`".into())))
            }
            Ok(duration) => Ok(duration),
            Err(_) => {
                let message = format!("{what} must be a duration, not {}", self.found());
                Err(self.problem(message, Some(scalar::duration_help(text))))
            }
        }
    }

    /// The entries of a map that may have only these keys, without those that are null. The example is shown if the value is not
    /// a map.
    pub fn fields(&self, what: &str, example: &str, known: &[&str]) -> Result<Vec<Entry<'a>>, Problem> {
        let Some(entries) = self.entries() else {
            let message = format!("{what} must be a map such as `{example}`, not {}", self.found());
            return Err(self.problem(message, None));
        };
        for entry in &entries {
            if !known.contains(&entry.key.as_str()) {
                let message = format!("{what} has no key `{}`", shown(&entry.key));
                return Err(entry.problem(message, suggest::meant_or_known(&entry.key, known.iter().copied())));
            }
        }
        Ok(entries.into_iter().filter(|entry| !entry.value.is_nothing()).collect())
    }
}

impl Entry<'_> {
    /// A problem with the key.
    pub fn problem(&self, message: impl Into<String>, help: Option<String>) -> Problem {
        problem_at(self.source, &self.span, message.into(), help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(problem: &Problem) -> (usize, usize, &str) {
        (problem.line, problem.column, problem.message.as_str())
    }

    #[test]
    fn values_are_read_with_their_positions() {
        let root = read("a: [x, 2]\nb:\nc: no\n").expect("a value");
        let fields = root.fields("this", "{ a: [] }", &["a", "b", "c"]).expect("fields");
        assert_eq!(fields.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        let items = fields[0].value.items().expect("a list");
        assert_eq!((items[0].text(), items[1].count("it", 1..=3).ok()), (Some("x"), Some(2)));
        let no = fields[1].value.boolean("`c`").expect_err("text in YAML 1.2");
        assert_eq!(place(&no), (3, 4, "`c` must be true or false, not `no`"));
        assert_eq!(no.help.as_deref(), Some("write `false`, without quotes"));
        assert_eq!(root.json().ok(), Some(serde_json::json!({"a": ["x", 2], "b": null, "c": "no"})));
        assert_eq!(place(&read("a: [.inf]").expect("a value").json().expect_err("no number")), (1, 5, "JSON has no such number"));
    }

    #[test]
    fn a_yaml_error_is_reported_once_with_its_position() {
        assert_eq!(place(&read("a: 1\na: 2\n").expect_err("twice")), (2, 1, "key `a` is given twice in this map"));
        assert!(read("a: [\n").expect_err("open").message.starts_with("this is not YAML: "));
        assert!(read("").expect("nothing").is_nothing());
    }
}
