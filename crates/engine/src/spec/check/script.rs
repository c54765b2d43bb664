//! JavaScript in a workflow file, with the places of its errors in that file.

use super::Checker;
use crate::spec::javascript::{self, Fault};
use crate::spec::place;
use crate::spec::syntax::Node;
use crate::spec::workflow::{Reads, Script};

impl Checker<'_, '_> {
    /// A function body.
    pub(super) fn script(&mut self, node: &Node<'_>, what: &str) -> Option<Script> {
        let source = self.filled(node, what)?;
        let checked = javascript::function_body(source);
        self.settle_script(node, source, checked)
    }

    /// An expression.
    pub(super) fn condition(&mut self, node: &Node<'_>) -> Option<Script> {
        let source = self.text(node, "`condition`")?;
        let checked = javascript::expression(source);
        self.settle_script(node, source, checked)
    }

    fn settle_script(&mut self, node: &Node<'_>, source: &str, checked: Result<Reads, Vec<Fault>>) -> Option<Script> {
        match checked {
            Ok(reads) => Some(Script { source: source.to_owned(), reads }),
            Err(faults) => {
                for fault in faults {
                    let span = place::in_file(self.source, node, &fault.span);
                    self.error(fault.code, &span, fault.message).maybe_help(fault.help);
                }
                None
            }
        }
    }
}
