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

    pub fn command(&mut self, node: &Node<'_>, what: &str) -> Option<String> {
        let text = self.filled(node, what)?;
        self.check_template(node, text, Escape::Shell, Roots::Task);
        self.values_fit_shell(node, text);
        self.values_read_once(node, text);
        for near in template::near_misses(text) {
            let span = self.part_of(node, &near.span);
            let message = format!("`{}` stays in the command unchanged", shown(&text[near.span]));
            self.report.warning(ProblemCode::InvalidTemplate, &span, message).help(format!("did you mean `{}`?", near.meant));
        }
        Some(text.to_owned())
    }

    /// Values are quoted for POSIX shells, which does not protect them in any other language.
    fn values_fit_shell(&mut self, node: &Node<'_>, text: &str) {
        let Some(shell) = self.shell.clone().filter(|shell| !shell.is_posix()) else { return };
        for (path, span) in template::tags(text) {
            let span = self.part_of(node, &span);
            let message = format!("the value of `{path}` cannot be quoted for `{}`", shown(shell.text()));
            self.error(ProblemCode::InvalidTemplate, &span, message)
                .help(format!("pass the value through `env`, such as VALUE: \"{{{{{path}}}}}\", and read that variable"));
        }
    }

    /// A value that is passed to a nested shell has lost its quotes there.
    fn values_read_once(&mut self, node: &Node<'_>, text: &str) {
        for found in template::read_twice(text) {
            let span = self.part_of(node, &found.span);
            let (path, reader) = (&found.path, &found.reader);
            let message = format!("`{path}` is quoted for the shell, but `{reader}` then reads it as code");
            let help = match reader.as_str() {
                "ssh" => format!(
                    "pass the value through `env`, such as VALUE: \"{{{{{path}}}}}\", and quote it for the other shell: ssh HOST \"… $(printf %q \"$VALUE\")\""
                ),
                _ => format!(
                    "pass the value through `env`, such as VALUE: \"{{{{{path}}}}}\", and let the inner command read \"$VALUE\", inside single quotes"
                ),
            };
            self.error(ProblemCode::NestedShell, &span, message).help(help);
        }
    }

    fn check_template(&mut self, node: &Node<'_>, text: &str, escape: Escape, roots: Roots) {
        for fault in template::faults(text, escape, roots) {
            let span = self.part_of(node, &fault.span);
            self.error(ProblemCode::InvalidTemplate, &span, fault.message).maybe_help(fault.help);
        }
        for (name, span) in template::vars(text, escape) {
            self.read_var(&name, node, &span);
        }
        self.read_references(node, text, escape);
    }

    /// A path that, as written, does not lead out of its directory.
    pub fn path(&mut self, node: &Node<'_>, what: &str, roots: Roots) -> Option<String> {
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
        self.error(ProblemCode::PathTraversal, &node.span, message).help("write a relative path without `..`");
        None
    }

    pub(super) fn paths(&mut self, node: &Node<'_>, what: &str, roots: Roots) -> Vec<String> {
        self.one_or_more(node).iter().filter_map(|item| self.path(item, what, roots)).collect()
    }
}
