//! The keys of one map of the format: which there may be, and which are there.

use super::Checker;
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use crate::spec::syntax::{Content, Entry, Node};
use std::ops::Range;

/// The keys that a map of the format may have. Checks and the schema for editors are both made from this.
pub(in crate::spec) struct Format {
    /// What the schema calls the map: "task".
    pub(in crate::spec) name: &'static str,
    /// What the map is, for messages: "a task".
    pub(in crate::spec) what: &'static str,
    /// Keys that mean something.
    pub(in crate::spec) known: &'static [Key],
    /// Keys of the format that this release does not run.
    pub(in crate::spec) later: &'static [&'static str],
    /// What holds between several keys.
    pub(in crate::spec) rule: Option<Rule>,
}

/// One key of a map.
pub(in crate::spec) struct Key {
    pub(in crate::spec) name: &'static str,
    /// Whether it must be there.
    pub(in crate::spec) presence: Presence,
    pub(in crate::spec) shape: Shape,
    /// What it means, in one sentence.
    pub(in crate::spec) about: &'static str,
    /// What counts when it is absent, as it would be written; where that is one thing.
    pub(in crate::spec) default: Option<&'static str>,
}

/// Whether a key must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::spec) enum Presence {
    /// Always.
    Required,
    /// It may be absent, or have no value.
    Optional,
    /// When it is there, it has a value.
    Valued,
}

/// What a value looks like.
pub(in crate::spec) enum Shape {
    /// Any single value, as it was written.
    Text,
    /// Text that is more than white space.
    Filled,
    /// A name that may stand in addresses, file names and commands.
    Id,
    Boolean,
    /// Only true.
    True,
    /// A whole number between two others.
    Count(u32, u32),
    Duration,
    /// One of a few words.
    Words(&'static [&'static str]),
    /// One text, or a list of them.
    Texts,
    /// Names of environment variables, one or a list.
    Variables,
    /// The name of an environment variable.
    Variable,
    /// Values by the names of environment variables.
    Environment,
    /// Values of any kind by names that people choose.
    Values,
    /// Sources by the names of secrets, or a list of names.
    Secrets(&'static Format),
    /// A map of the format.
    Map(&'static Format),
    /// A list of maps, at least so many.
    List(&'static Format, u32),
    /// A number, or a map that says more.
    CountOrMap(u32, u32, &'static Format),
    /// A number above zero.
    Number,
    /// A list of anything, or the name of one.
    Items,
    /// The name of a shell, or a command with a place for the script file.
    Shell,
    Any,
    /// One of several shapes.
    AnyOf(&'static [Shape]),
    /// A list of things of one shape.
    ListOf(&'static Shape),
    /// Things of one shape by names that people choose.
    MapOf(&'static Shape),
}

/// What holds between several keys of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::spec) enum Rule {
    /// Exactly one of these is there.
    OneOf(&'static [&'static str]),
    /// Exactly one of these groups is there, each by any of its keys.
    OneGroup(&'static [&'static [&'static str]]),
    /// At least one of these is there.
    AnyOf(&'static [&'static str]),
    /// This key may only be absent where another one is one of these words, whatever their case.
    Unless(&'static str, &'static str, &'static [&'static str]),
    /// Where a key is this word, another one is needed.
    Needs(&'static str, &'static str, &'static str),
}

impl Key {
    /// A key that must be there.
    pub(super) const fn required(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, presence: Presence::Required, shape, about, default: None }
    }

    /// A key that may be absent.
    pub(super) const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, presence: Presence::Optional, shape, about, default: None }
    }

    /// The same key with what counts when it is absent.
    pub(super) const fn default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    /// A key that has a value when it is there.
    pub(super) const fn valued(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, presence: Presence::Valued, shape, about, default: None }
    }
}

impl Format {
    /// The names of the keys that mean something.
    pub(in crate::spec) fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.known.iter().map(|key| key.name)
    }
}

/// The words of a table of words and their meanings.
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
    /// Where the map begins.
    pub(super) span: Range<usize>,
    entries: &'n [Entry<'a>],
}

impl<'n, 'a> Fields<'n, 'a> {
    /// The value of a key; a key without a value counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node<'a>> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value).filter(|value| !value.is_null())
    }

    /// Where a key stands, with or without a value.
    pub(super) fn key(&self, key: &str) -> Option<&'n Range<usize>> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.key_span)
    }

    /// The value of a key that must be there.
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
    /// Opens a map and tells of every key that does not belong there.
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
        // A place for "something is missing here": the first key, or the braces of an empty map.
        let span = entries.first().map_or(start..node.span.end, |first| first.key_span.clone());
        Some(Fields { what: format.what, span, entries })
    }

    /// The entries of a map whose keys people choose.
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
