//! JavaScript in a workflow file, with the positions of errors in that file.

use super::Checker;
use crate::spec::context_reads::Found;
use crate::spec::javascript::{self, Fault};
use crate::spec::source_position;
use crate::spec::syntax::Node;
use crate::spec::workflow::Script;

impl Checker<'_, '_> {
    pub(super) fn script(&mut self, node: &Node<'_>, what: &str) -> Option<Script> {
        let source = self.filled(node, what)?;
        let checked = javascript::function_body(source);
        self.settle_script(node, source, checked)
    }

    pub(super) fn condition(&mut self, node: &Node<'_>) -> Option<Script> {
        self.expression(node, "`condition`")
    }

    pub(super) fn expression(&mut self, node: &Node<'_>, what: &str) -> Option<Script> {
        let source = self.text(node, what)?;
        let checked = javascript::expression(source);
        self.settle_script(node, source, checked)
    }

    fn settle_script(&mut self, node: &Node<'_>, source: &str, checked: Result<Found, Vec<Fault>>) -> Option<Script> {
        match checked {
            Ok(Found { reads, vars }) => {
                for (name, span) in vars {
                    self.read_var(&name, node, &span);
                }
                let (first_text_byte, before) = source_position::first_text_byte(self.source, node);
                let line = self.line_at(first_text_byte).saturating_sub(u32::try_from(before).unwrap_or(u32::MAX));
                Some(Script { source: source.to_owned(), reads, line })
            }
            Err(faults) => {
                for fault in faults {
                    let span = self.part_of(node, &fault.span);
                    self.error(fault.code, &span, fault.message).maybe_help(fault.help);
                }
                None
            }
        }
    }
}
