//! Templates and paths.

use super::Checker;
use crate::spec::place;
use crate::spec::problem::shown;
use crate::spec::syntax::Node;
use crate::template::{self, Escape};

impl Checker<'_, '_> {
    /// Text with `{{path}}` in it.
    pub(super) fn template(&mut self, node: &Node<'_>, what: &str) -> Option<String> {
        let text = self.text(node, what)?;
        self.check_template(node, text, Escape::None);
        Some(text.to_owned())
    }

    /// A shell command.
    pub(super) fn command(&mut self, node: &Node<'_>, what: &str) -> Option<String> {
        let text = self.filled(node, what)?;
        self.check_template(node, text, Escape::Shell);
        Some(text.to_owned())
    }

    fn check_template(&mut self, node: &Node<'_>, text: &str, escape: Escape) {
        for fault in template::faults(text, escape) {
            let span = place::in_file(self.source, node, &fault.span);
            self.error("template", &span, fault.message).maybe_help(fault.help);
        }
    }

    /// A path that stays where it begins, as far as its letters say.
    pub(super) fn path(&mut self, node: &Node<'_>, what: &str) -> Option<String> {
        let text = self.filled(node, what)?;
        self.check_template(node, text, Escape::None);
        let outline = template::outline(text);
        let reason = if outline.starts_with('/') {
            "is an absolute path"
        } else if outline.split('/').any(|component| component == "..") {
            "leads upwards with `..`"
        } else {
            return Some(text.to_owned());
        };
        let message = format!("{what} `{}` {reason}", shown(text));
        self.error("path-outside", &node.span, message).help("write a relative path without `..`");
        None
    }

    /// One or more paths.
    pub(super) fn paths(&mut self, node: &Node<'_>, what: &str) -> Vec<String> {
        self.one_or_more(node).iter().filter_map(|item| self.path(item, what)).collect()
    }
}
