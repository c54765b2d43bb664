//! Templates and paths.

use super::Checker;
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use crate::spec::syntax::Node;
use crate::template::{self, Escape, Roots};

impl Checker<'_, '_> {
    /// Text with `{{path}}` in it.
    pub(super) fn template(&mut self, node: &Node<'_>, what: &str, roots: Roots) -> Option<String> {
        let text = self.text(node, what)?;
        self.check_template(node, text, Escape::None, roots);
        Some(text.to_owned())
    }

    /// A shell command.
    pub(crate) fn command(&mut self, node: &Node<'_>, what: &str) -> Option<String> {
        let text = self.filled(node, what)?;
        self.check_template(node, text, Escape::Shell, Roots::Task);
        for near in template::near_misses(text) {
            let span = self.part_of(node, &near.span);
            let message = format!("`{}` is left in the command as it is", shown(&text[near.span]));
            self.report.warning(ProblemCode::BadTemplate, &span, message).help(format!("did you mean `{}`?", near.meant));
        }
        Some(text.to_owned())
    }

    fn check_template(&mut self, node: &Node<'_>, text: &str, escape: Escape, roots: Roots) {
        for fault in template::faults(text, escape, roots) {
            let span = self.part_of(node, &fault.span);
            self.error(ProblemCode::BadTemplate, &span, fault.message).maybe_help(fault.help);
        }
        for (name, span) in template::vars(text, escape) {
            self.read_var(&name, node, &span);
        }
    }

    /// A path that stays where it begins, as far as its letters say.
    pub(crate) fn path(&mut self, node: &Node<'_>, what: &str, roots: Roots) -> Option<String> {
        let text = self.filled(node, what)?;
        self.check_template(node, text, Escape::None, roots);
        let outline = template::outline(text);
        let reason = if outline.starts_with('/') {
            "is an absolute path"
        } else if outline.split('/').any(|component| component == "..") {
            "leads upwards with `..`"
        } else {
            return Some(text.to_owned());
        };
        let message = format!("{what} `{}` {reason}", shown(text));
        self.error(ProblemCode::PathOutside, &node.span, message).help("write a relative path without `..`");
        None
    }

    /// One or more paths.
    pub(super) fn paths(&mut self, node: &Node<'_>, what: &str, roots: Roots) -> Vec<String> {
        self.one_or_more(node).iter().filter_map(|item| self.path(item, what, roots)).collect()
    }
}
