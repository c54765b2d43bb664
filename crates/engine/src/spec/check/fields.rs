//! The keys of one map of the format: which there may be, and which are there.

use super::Checker;
use crate::spec::problem::shown;
use crate::spec::syntax::{Content, Entry, Node};
use std::ops::Range;

/// The keys that a map of the format may have.
pub(super) struct Format {
    /// What the map is, for messages: "a task".
    pub(super) what: &'static str,
    /// Keys that mean something.
    pub(super) known: &'static [&'static str],
    /// Keys of the format that this release does not run.
    pub(super) later: &'static [&'static str],
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
            checker.error("missing-key", span, message);
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
            if format.known.contains(&key) {
                continue;
            }
            if format.later.contains(&key) {
                let message = format!("`{key}` is not supported by this release");
                let help = format!("{} may have {}", format.what, format.known.join(", "));
                self.error("not-supported", &entry.key_span, message).help(help);
            } else if key == "<<" {
                let message = "merge keys (`<<`) are not supported";
                self.error("unknown-key", &entry.key_span, message).help("write the keys out, or use an alias for a whole value");
            } else {
                let message = format!("`{}` is not a key of {}", shown(key), format.what);
                self.unknown("unknown-key", &entry.key_span, message, key, format.known.iter().copied());
            }
        }
        let start = node.span.start;
        // A place for "something is missing here": the first key, or the braces of an empty map.
        let span = entries.first().map_or(start..node.span.end, |first| first.key_span.clone());
        Some(Fields { what: format.what, span, entries })
    }

    /// The entries of a map whose keys people choose.
    pub(super) fn entries<'n, 'a>(&mut self, node: &'n Node<'a>, what: &str) -> Option<&'n [Entry<'a>]> {
        match &*node.content {
            Content::Map(entries) => Some(entries),
            Content::Scalar(_) | Content::List(_) => {
                self.wrong_kind(node, what, "a map of names and values");
                None
            }
        }
    }
}
