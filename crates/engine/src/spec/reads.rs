//! What of the context a script can touch, so that only that is sent to it; and what it may not use at all.
//!
//! When in doubt, a script reads everything: to send too much is slow, to send too little is wrong.

use super::javascript::Fault;
use super::workflow::Reads;
use oxc_ast::ast::{
    BigIntLiteral, BindingIdentifier, ComputedMemberExpression, Expression, IdentifierName, IdentifierReference,
    ImportExpression, StaticMemberExpression, StringLiteral, ThisExpression, WithStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use std::collections::BTreeSet;

/// Parts of the context that are large and looked into one name further.
const TWO_LEVELS: [&str; 2] = ["vars", "outputs"];

/// Names through which the context can be reached without naming it.
const WAYS_ROUND: [&str; 5] = ["eval", "Function", "globalThis", "arguments", "constructor"];

/// Names of everything that makes a BigInt.
const BIG: [&str; 5] = ["BigInt", "BigInt64Array", "BigUint64Array", "getBigInt64", "getBigUint64"];

/// Walks a syntax tree and notes what it reads.
pub(crate) struct Reader {
    before: usize,
    all: bool,
    parts: BTreeSet<String>,
    faults: Vec<Fault>,
}

impl Reader {
    /// A reader of source that begins after so many bytes of what is parsed.
    pub(crate) fn new(before: usize) -> Self {
        Self { before, all: false, parts: BTreeSet::new(), faults: Vec::new() }
    }

    /// What was found.
    pub(crate) fn finish(self) -> Result<Reads, Vec<Fault>> {
        match (self.faults.is_empty(), self.all) {
            (false, _) => Err(self.faults),
            (true, true) => Ok(Reads::All),
            (true, false) => Ok(Reads::Parts(self.parts)),
        }
    }

    fn meet_name(&mut self, name: &str, span: Span) {
        if name == "context" || WAYS_ROUND.contains(&name) {
            self.all = true;
        }
        self.meet_property(name, span);
    }

    fn meet_property(&mut self, name: &str, span: Span) {
        if name == "constructor" {
            self.all = true;
        }
        if BIG.contains(&name) {
            self.refuse_big(span);
        }
    }

    fn refuse_big(&mut self, span: Span) {
        self.faults.push(Fault {
            code: "bigint",
            message: "BigInt cannot be used: its arithmetic runs past every time limit".into(),
            span: (span.start as usize).saturating_sub(self.before)..(span.end as usize).saturating_sub(self.before),
            help: Some("use ordinary numbers".into()),
        });
    }

    /// Notes a chain such as `context.vars.name`, if that is what this is.
    fn note_chain(&mut self, chain: &[Option<&str>]) {
        match chain {
            [Some(first), Some(second), ..] if TWO_LEVELS.contains(first) => {
                self.parts.insert(format!("{first}.{second}"));
            }
            [Some(first), ..] if !TWO_LEVELS.contains(first) => {
                self.parts.insert((*first).to_owned());
            }
            _ => self.all = true,
        }
    }

    /// Visits a chain of members as a whole, so that its length costs neither stack nor a look at every part of it.
    fn visit_chain<'a>(&mut self, first: Link<'_, 'a>, object: &Expression<'a>) {
        let (links, root) = chain(first, object);
        if matches!(root, Expression::Identifier(identifier) if identifier.name.as_str() == "context") {
            let names: Vec<Option<&str>> = links.iter().rev().map(|link| link.name).collect();
            self.note_chain(&names);
        } else {
            self.visit_expression(root);
        }
        for link in links {
            if let Some(name) = link.name {
                self.meet_property(name, link.span);
            }
            if let Some(index) = link.index {
                self.visit_expression(index);
            }
        }
    }
}

/// One step of a chain: `.name`, `['name']` or `[index]`.
struct Link<'n, 'a> {
    name: Option<&'n str>,
    index: Option<&'n Expression<'a>>,
    span: Span,
}

fn static_link<'n, 'a>(member: &'n StaticMemberExpression<'a>) -> Link<'n, 'a> {
    Link { name: Some(member.property.name.as_str()), index: None, span: member.property.span }
}

fn computed_link<'n, 'a>(member: &'n ComputedMemberExpression<'a>) -> Link<'n, 'a> {
    match &member.expression {
        Expression::StringLiteral(literal) => Link { name: Some(literal.value.as_str()), index: None, span: literal.span },
        index => Link { name: None, index: Some(index), span: index.span() },
    }
}

/// The links from the outermost to the innermost, and what they hang on.
fn chain<'n, 'a>(first: Link<'n, 'a>, mut object: &'n Expression<'a>) -> (Vec<Link<'n, 'a>>, &'n Expression<'a>) {
    let mut links = vec![first];
    loop {
        match object {
            Expression::StaticMemberExpression(member) => {
                links.push(static_link(member));
                object = &member.object;
            }
            Expression::ComputedMemberExpression(member) => {
                links.push(computed_link(member));
                object = &member.object;
            }
            root => return (links, root),
        }
    }
}

impl<'a> Visit<'a> for Reader {
    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        self.visit_chain(static_link(member), &member.object);
    }

    fn visit_computed_member_expression(&mut self, member: &ComputedMemberExpression<'a>) {
        self.visit_chain(computed_link(member), &member.object);
    }

    fn visit_identifier_reference(&mut self, identifier: &IdentifierReference<'a>) {
        self.meet_name(identifier.name.as_str(), identifier.span);
    }

    fn visit_binding_identifier(&mut self, identifier: &BindingIdentifier<'a>) {
        self.meet_name(identifier.name.as_str(), identifier.span);
    }

    fn visit_identifier_name(&mut self, name: &IdentifierName<'a>) {
        self.meet_property(name.name.as_str(), name.span);
    }

    fn visit_string_literal(&mut self, literal: &StringLiteral<'a>) {
        // A text may name a property, as in `x['constructor']` or a destructuring key.
        self.meet_property(literal.value.as_str(), literal.span);
    }

    fn visit_big_int_literal(&mut self, literal: &BigIntLiteral<'a>) {
        self.refuse_big(literal.span);
    }

    fn visit_this_expression(&mut self, _: &ThisExpression) {
        self.all = true;
    }

    fn visit_with_statement(&mut self, statement: &WithStatement<'a>) {
        self.all = true;
        walk::walk_with_statement(self, statement);
    }

    fn visit_import_expression(&mut self, expression: &ImportExpression<'a>) {
        self.all = true;
        walk::walk_import_expression(self, expression);
    }
}

#[cfg(test)]
mod tests {
    use super::super::javascript::{expression, function_body};
    use super::*;

    fn reads(source: &str) -> Option<Vec<String>> {
        match function_body(source).expect("a script") {
            Reads::All => None,
            Reads::Parts(parts) => Some(parts.into_iter().collect()),
        }
    }

    fn parts(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn named_parts_are_found() {
        assert_eq!(reads("return 1"), parts(&[]));
        assert_eq!(reads("return context.vars.big"), parts(&["vars.big"]));
        assert_eq!(reads("return context.vars.big.more.yet[0]"), parts(&["vars.big"]));
        assert_eq!(reads("return context['vars'].a + context.vars['b c']"), parts(&["vars.a", "vars.b c"]));
        assert_eq!(reads("return context.outputs.build.compile"), parts(&["outputs.build"]));
        assert_eq!(reads("return context.outputs.build[phase.id]"), parts(&["outputs.build"]));
        assert_eq!(reads("return context.feature.flags.includes('x')"), parts(&["feature"]));
        assert_eq!(reads("return context.phases.iteration_counts[phase.id] > 1"), parts(&["phases"]));
        assert_eq!(reads("return context?.vars?.a"), parts(&["vars.a"]));
        assert_eq!(reads("return (context).vars.a"), parts(&["vars.a"]));
        assert_eq!(reads("return context.deliverables.map(d => d.path)"), parts(&["deliverables"]));
        assert_eq!(reads("return context.phases.list[context.vars.index]"), parts(&["phases", "vars.index"]));
        assert_eq!(reads("const f = () => context.vars.a; return f()"), parts(&["vars.a"]));
        assert_eq!(reads("return x.context"), parts(&[]));
        assert_eq!(reads("return {context: 1}"), parts(&[]));
        assert_eq!(reads("return \\u0063ontext.vars.a"), parts(&["vars.a"]));
    }

    #[test]
    fn any_other_use_reads_everything() {
        for source in [
            "return context",
            "return JSON.stringify(context)",
            "return {...context}",
            "return {context}",
            "return [context]",
            "const {vars} = context; return vars.a",
            "const c = context; return c.vars.a",
            "return context[name]",
            "return context[`vars`].a",
            "return context.vars",
            "return context.vars[name]",
            "return Object.keys(context.outputs)",
            "return context['vars'][0]",
            "let context = {}; return context.vars.a",
            "return (context => context.vars.a)({})",
            "function context() {} return 1",
            "context = 1",
            "return eval('con' + 'text')",
            "return new Function('return context')()",
            "return globalThis.context",
            "return this.context",
            "with (x) { y }",
            "return arguments[0]",
            "return [].constructor.constructor('return context')()",
            "return []['constructor']",
            "const {constructor: c} = []; return c",
            "return import('x')",
            "return \\u0063ontext",
            "return context.constructor",
            "return delete context",
            "return typeof context",
            "for (context of []) {}",
            "return context`x`",
            "return context()",
            "return context?.[name]",
            "return context.vars?.[name].x",
        ] {
            assert_eq!(reads(source), None, "{source}");
        }
    }

    #[test]
    fn bigint_is_refused_with_its_place() {
        for (source, big) in [
            ("return 1 + 10n", "10n"),
            ("return BigInt(5)", "BigInt"),
            ("return globalThis.BigInt(5)", "BigInt"),
            ("return globalThis['BigInt'](5)", "'BigInt'"),
            ("return new BigInt64Array(1)", "BigInt64Array"),
            ("return context.vars.a[5n]", "5n"),
            ("return context.vars.BigInt", "BigInt"),
        ] {
            let faults = function_body(source).expect_err(source);
            assert_eq!(faults.len(), 1, "{source}");
            assert_eq!((faults[0].code, &source[faults[0].span.clone()]), ("bigint", big));
        }
        assert_eq!(expression("2n ** 3n").expect_err("two").len(), 2);
    }
}
