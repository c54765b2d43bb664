//! The keys of the maps in a workflow file: which are allowed, and which are present.

use super::Checker;
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use crate::spec::syntax::{Content, Entry, Node};
use std::ops::Range;

/// The keys that a map may have. The checks and the schema for editors are both derived from this.
pub(in crate::spec) struct Format {
    /// The name of the map in the schema: "task".
    pub(in crate::spec) name: &'static str,
    /// The name of the map in messages: "a task".
    pub(in crate::spec) what: &'static str,
    /// Supported keys.
    pub(in crate::spec) known: &'static [Key],
    /// Keys of the format that this release does not support.
    pub(in crate::spec) later: &'static [&'static str],
    pub(in crate::spec) rule: Option<Rule>,
}

pub(in crate::spec) struct Key {
    pub(in crate::spec) name: &'static str,
    pub(in crate::spec) presence: Presence,
    pub(in crate::spec) shape: Shape,
    /// A description in one sentence.
    pub(in crate::spec) about: &'static str,
    /// The default value as it would be written, if there is a single one.
    pub(in crate::spec) default: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::spec) enum Presence {
    Required,
    /// It may be absent or null.
    Optional,
    /// It may be absent, but not null.
    Valued,
}

/// The shape of a value.
pub(in crate::spec) enum Shape {
    /// Any scalar, as written.
    Text,
    /// Text with more than white space.
    Filled,
    /// A name that is valid in addresses, file names and commands.
    Id,
    Boolean,
    /// Only `true`.
    True,
    /// A whole number in a range.
    Count(u32, u32),
    Duration,
    Words(&'static [&'static str]),
    /// One text, or a list of texts.
    Texts,
    /// One name of an environment variable, or a list of names.
    Variables,
    Variable,
    /// A map from names of environment variables to values.
    Environment,
    /// A map with any keys and values.
    Values,
    /// A map from names of secrets to sources, or a list of names.
    Secrets(&'static Format),
    Map(&'static Format),
    /// A list of maps with this minimum length.
    List(&'static Format, u32),
    /// A number, or a map with more settings.
    CountOrMap(u32, u32, &'static Format),
    Number,
    /// A list of anything, or the name of one.
    Items,
    /// The name of a shell, or a command with `{0}` for the script file.
    Shell,
    Any,
    AnyOf(&'static [Shape]),
    ListOf(&'static Shape),
    /// A map with any keys and values of one shape.
    MapOf(&'static Shape),
}

/// A rule that involves several keys of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::spec) enum Rule {
    /// Exactly one of these is present.
    OneOf(&'static [&'static str]),
    /// Exactly one of these groups is present, each by any of its keys.
    OneGroup(&'static [&'static [&'static str]]),
    /// At least one of these is present.
    AnyOf(&'static [&'static str]),
    /// This key may be absent only if another one is one of these words, ignoring case.
    Unless(&'static str, &'static str, &'static [&'static str]),
    /// If a key is this word, another one is required.
    Needs(&'static str, &'static str, &'static str),
}

impl Key {
    pub(super) const fn required(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, presence: Presence::Required, shape, about, default: None }
    }

    pub(super) const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, presence: Presence::Optional, shape, about, default: None }
    }

    /// The same key with a default value.
    pub(super) const fn default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    /// A key that may be absent, but not null.
    pub(super) const fn valued(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, presence: Presence::Valued, shape, about, default: None }
    }
}

impl Format {
    pub(in crate::spec) fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.known.iter().map(|key| key.name)
    }
}

/// The words of a table of words and meanings.
pub(super) const fn words<const COUNT: usize, T: Copy>(table: &[(&'static str, T); COUNT]) -> [&'static str; COUNT] {
    let mut words = [""; COUNT];
    let mut at = 0;
    while at < COUNT {
        words[at] = table[at].0;
        at += 1;
    }
    words
}

/// A map whose keys have been checked.
pub(super) struct Fields<'n, 'a> {
    what: &'static str,
    /// The start of the map.
    pub(super) span: Range<usize>,
    entries: &'n [Entry<'a>],
}

impl<'n, 'a> Fields<'n, 'a> {
    /// The value of a key. A key without a value counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node<'a>> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value).filter(|value| !value.is_null())
    }

    /// The position of a key, with or without a value.
    pub(super) fn key(&self, key: &str) -> Option<&'n Range<usize>> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.key_span)
    }

    /// The value of a required key.
    pub(super) fn require(&self, checker: &mut Checker<'_, '_>, key: &str) -> Option<&'n Node<'a>> {
        let value = self.get(key);
        if value.is_none() {
            let (span, message) = match self.key(key) {
                Some(span) => (span, format!("`{key}` has no value")),
                None => (&self.span, format!("{} needs `{key}`", self.what)),
            };
            checker.error(ProblemCode::MissingKey, span, message);
        }
        value
    }
}

impl Checker<'_, '_> {
    /// Opens a map and reports every unknown key.
    pub(super) fn fields<'n, 'a>(&mut self, node: &'n Node<'a>, format: &Format) -> Option<Fields<'n, 'a>> {
        let Content::Map(entries) = &*node.content else {
            self.wrong_kind(node, format.what, "a map of keys and values");
            return None;
        };
        for entry in entries {
            let key: &str = &entry.key;
            if format.names().any(|known| known == key) {
                continue;
            }
            if format.later.contains(&key) {
                let message = format!("`{key}` is not supported by this release");
                let names: Vec<&str> = format.names().collect();
                let help = format!("{} may have {}", format.what, names.join(", "));
                self.error(ProblemCode::NotSupported, &entry.key_span, message).help(help);
            } else if key == "<<" {
                let message = "merge keys (`<<`) are not supported";
                self.error(ProblemCode::UnknownKey, &entry.key_span, message)
                    .help("write the keys out, or use an alias for a whole value");
            } else {
                let message = format!("`{}` is not a key of {}", shown(key), format.what);
                self.unknown(ProblemCode::UnknownKey, &entry.key_span, message, key, format.names());
            }
        }
        let start = node.span.start;
        // The position for "something is missing here": the first key, or the braces of an empty map.
        let span = entries.first().map_or(start..node.span.end, |first| first.key_span.clone());
        Some(Fields { what: format.what, span, entries })
    }

    /// The entries of a map with arbitrary keys.
    pub(crate) fn entries<'n, 'a>(&mut self, node: &'n Node<'a>, what: &str) -> Option<&'n [Entry<'a>]> {
        match &*node.content {
            Content::Map(entries) => Some(entries),
            Content::Scalar(_) | Content::List(_) => {
                self.wrong_kind(node, what, "a map of names and values");
                None
            }
        }
    }
}
