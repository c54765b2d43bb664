//! Paths into values: `vars.list[0].name`.

use super::Reference;
use crate::spec::suggest;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// A path; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    segments: Vec<String>,
}

/// The target of a path.
#[derive(Clone, Copy)]
pub(super) enum Found<'v> {
    Value(&'v Value),
    /// The length of a list or text.
    Length(usize),
}

/// The root of a tag's content, up to the first `.` or `[`; empty if anything else follows it.
pub(super) fn root_of(inner: &str) -> &str {
    let inner = inner.trim();
    let end = inner.find(|character: char| !is_name(character)).unwrap_or(inner.len());
    if inner[end..].is_empty() || inner[end..].starts_with(['.', '[']) { &inner[..end] } else { "" }
}

impl Path {
    /// Parses the content between the braces.
    pub(super) fn parse(inner: &str) -> Option<Self> {
        let mut rest = inner.trim();
        let mut segments = Vec::new();
        loop {
            let end = rest.find(|character: char| !is_name(character)).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            segments.push(rest[..end].to_owned());
            rest = &rest[end..];
            while let Some(inside) = rest.strip_prefix('[') {
                let (segment, after) = index(inside)?;
                segments.push(segment.to_owned());
                rest = after;
            }
            if rest.is_empty() {
                return Some(Self { segments });
            }
            rest = rest.strip_prefix('.')?;
        }
    }

    /// The first name.
    pub(super) fn root(&self) -> &str {
        &self.segments[0]
    }

    /// The path without its first name, if anything is left.
    pub(super) fn without_root(&self) -> Option<Self> {
        (self.segments.len() > 1).then(|| Self { segments: self.segments[1..].to_vec() })
    }

    /// Whether these values have its first name.
    pub(super) fn starts_in(&self, values: &Value) -> bool {
        step(values, self.root()).is_some()
    }

    /// Looks up the path in these values.
    pub(super) fn find<'v>(&self, values: &'v Value) -> Option<Found<'v>> {
        let mut at = values;
        for (position, segment) in self.segments.iter().enumerate() {
            match step(at, segment) {
                Some(next) => at = next,
                None if segment == "length" && position + 1 == self.segments.len() => {
                    return match at {
                        Value::Array(items) => Some(Found::Length(items.len())),
                        Value::String(text) => Some(Found::Length(text.chars().count())),
                        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
                    };
                }
                None => return None,
            }
        }
        Some(Found::Value(at))
    }

    /// The variable: `name` of `vars.name`.
    pub(super) fn variable(&self) -> Option<&str> {
        match self.segments.as_slice() {
            [vars, name, ..] if vars == "vars" => Some(name),
            [context, vars, name, ..] if context == "context" && vars == "vars" => Some(name),
            _ => None,
        }
    }

    /// What must exist for the path to have a value, besides values that always exist.
    pub(super) fn reference(&self) -> Option<Reference> {
        let segments = match self.segments.split_first() {
            Some((context, rest)) if context == "context" => rest,
            Some(_) | None => &self.segments,
        };
        match segments {
            [outputs, phase, rest @ ..] if outputs == "outputs" && phase != "length" => {
                let task = rest.first().filter(|task| *task != "length").cloned();
                Some(Reference::Output { phase: phase.clone(), task })
            }
            [item, ..] if item == "item" => Some(Reference::Item),
            _ => None,
        }
    }

    pub(super) fn is_one_of(&self, paths: &[[&str; 2]]) -> bool {
        paths.iter().any(|path| self.segments == path)
    }

    /// The help for a path that does not exist in these values: a similar one, or else the existing ones.
    pub(super) fn help(&self, values: &Value) -> Option<String> {
        if let Some(near) = self.nearest(values) {
            return Some(format!("did you mean `{near}`?"));
        }
        let mut at = values;
        for (position, segment) in self.segments.iter().enumerate() {
            match (step(at, segment), at) {
                (Some(next), _) => at = next,
                (None, Value::Object(map)) => {
                    let known = suggest::known(map.keys().map(String::as_str));
                    let before = Self { segments: self.segments[..position].to_vec() };
                    return match (position, known) {
                        (0, known) => known.map(|known| format!("a path here starts with {known}")),
                        (_, Some(known)) => Some(format!("`{before}` has {known}")),
                        (_, None) => Some(format!("`{before}` is empty")),
                    };
                }
                (None, _) => return None,
            }
        }
        None
    }

    /// An existing path that is similar.
    fn nearest(&self, values: &Value) -> Option<String> {
        let mut at = values;
        for (position, segment) in self.segments.iter().enumerate() {
            match (step(at, segment), at) {
                (Some(next), _) => at = next,
                (None, Value::Object(map)) => {
                    let near = suggest::nearest(segment, map.keys().map(String::as_str))?;
                    let mut segments = self.segments.clone();
                    near.clone_into(&mut segments[position]);
                    let path = Self { segments };
                    return path.find(values).is_some().then(|| path.to_string());
                }
                (None, _) => return None,
            }
        }
        None
    }
}

fn step<'v>(value: &'v Value, segment: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(segment),
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '-' | '$')
}

/// Parses `0]`, `'name']` or `"name"]`.
fn index(inside: &str) -> Option<(&str, &str)> {
    let inside = inside.trim_start();
    for quote in ['\'', '"'] {
        if let Some(quoted) = inside.strip_prefix(quote) {
            let (name, after) = quoted.split_once(quote)?;
            return after.trim_start().strip_prefix(']').map(|after| (name, after));
        }
    }
    let (number, after) = inside.split_once(']')?;
    let number = number.trim();
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some((number, after))
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.segments.iter().enumerate() {
            match position {
                _ if segment.is_empty() || !segment.chars().all(is_name) => write!(f, "['{}']", crate::spec::shown(segment))?,
                0 => f.write_str(segment)?,
                _ => write!(f, ".{segment}")?,
            }
        }
        Ok(())
    }
}

impl Found<'_> {
    /// The value as text: text unchanged, null as empty text, lists and maps as JSON.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Value(Value::String(text)) => Cow::Borrowed(text),
            Self::Value(Value::Null) => Cow::Borrowed(""),
            Self::Value(value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
                Cow::Owned(value.to_string())
            }
            Self::Length(length) => Cow::Owned(length.to_string()),
        }
    }

    pub(super) fn write(&self, to: &mut String) {
        to.push_str(&self.text());
    }
}
