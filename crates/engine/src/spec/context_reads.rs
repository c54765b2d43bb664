//! Which parts of the context a script can read, so that only these are sent to it; and what it may not use at all.
//!
//! When in doubt, a script reads everything: sending too much is slow, sending too little is wrong.

use super::code::ProblemCode;
use super::javascript::Fault;
use super::workflow::Reads;
use oxc_ast::ast::{
    BigIntLiteral, BindingIdentifier, CallExpression, ChainElement, ComputedMemberExpression, Expression, IdentifierName,
    IdentifierReference, ImportExpression, StaticMemberExpression, StringLiteral, TaggedTemplateExpression, ThisExpression,
    WithStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Large parts of the context that are split by one more name.
const TWO_LEVELS: [&str; 2] = ["vars", "outputs"];

/// Names through which the context can be reached without naming it.
const BYPASSES: [&str; 4] = ["eval", "Function", "globalThis", "arguments"];

/// Property names through which inherited properties of all objects can be reached or changed.
const SHARED: [&str; 5] = ["constructor", "prototype", "__proto__", "getPrototypeOf", "setPrototypeOf"];

/// Members of every object. On the context itself, or on a part that is split by one more name, they depend on the whole:
/// `context.outputs.hasOwnProperty('build')` must not be evaluated on an object that lacks `build`.
const INHERITED: [&str; 12] = [
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
    "__proto__",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];

/// Everything that creates a BigInt.
const BIG: [&str; 5] = ["BigInt", "BigInt64Array", "BigUint64Array", "getBigInt64", "getBigUint64"];

/// The result for a piece of JavaScript that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) reads: Reads,
    /// The variables that it names, each with the position of its first use.
    pub(crate) vars: BTreeMap<String, Range<usize>>,
}

/// Walks a syntax tree and records the parts that are read.
pub(crate) struct Reader {
    before: usize,
    all: bool,
    parts: BTreeSet<String>,
    vars: BTreeMap<String, Range<usize>>,
    faults: Vec<Fault>,
}

impl Reader {
    /// A reader for source that starts at this offset of the parsed text.
    pub(crate) fn new(before: usize) -> Self {
        Self { before, all: false, parts: BTreeSet::new(), vars: BTreeMap::new(), faults: Vec::new() }
    }

    pub(crate) fn finish(self) -> Result<Found, Vec<Fault>> {
        if !self.faults.is_empty() {
            return Err(self.faults);
        }
        let reads = if self.all { Reads::All } else { Reads::Parts(self.parts) };
        Ok(Found { reads, vars: self.vars })
    }

    fn meet_name(&mut self, name: &str, span: Span) {
        if name == "context" || BYPASSES.contains(&name) {
            self.all = true;
        }
        self.meet_property(name, span);
    }

    fn meet_property(&mut self, name: &str, span: Span) {
        if SHARED.contains(&name) {
            self.all = true;
        }
        if BIG.contains(&name) {
            self.refuse_big(span);
        }
    }

    fn refuse_big(&mut self, span: Span) {
        self.faults.push(Fault {
            code: ProblemCode::Bigint,
            message: "BigInt cannot be used: its arithmetic runs past every time limit".into(),
            span: self.place(span),
            help: Some("use ordinary numbers".into()),
        });
    }

    /// A position in the source as the author wrote it.
    fn place(&self, span: Span) -> Range<usize> {
        (span.start as usize).saturating_sub(self.before)..(span.end as usize).saturating_sub(self.before)
    }

    /// Records a chain such as `context.vars.name`.
    fn note_chain<'n>(&mut self, links: impl Iterator<Item = &'n Link<'n, 'n>>) {
        let mut names = links.map(|link| (link.name, link.span));
        let (first, second) = (names.next(), names.next());
        match (first, second) {
            (Some((Some(first), _)), _) if INHERITED.contains(&first) => self.all = true,
            (Some((Some(first), _)), Some((Some(second), span))) if TWO_LEVELS.contains(&first) => {
                if INHERITED.contains(&second) {
                    self.all = true;
                    return;
                }
                self.parts.insert(format!("{first}.{second}"));
                if first == "vars" {
                    let place = self.place(span);
                    self.vars.entry(second.to_owned()).or_insert(place);
                }
            }
            (Some((Some(first), _)), _) if !TWO_LEVELS.contains(&first) => {
                self.parts.insert(first.to_owned());
            }
            _ => self.all = true,
        }
    }

    /// Records a call such as `context.outputs.x()`. It passes the object as `this`, and only the named parts of the context
    /// would be there. Data has no functions, so the callee is a member of every object.
    fn note_call(&mut self, called: &Expression<'_>) {
        let (first, object) = match called {
            Expression::StaticMemberExpression(member) => (static_link(member), &member.object),
            Expression::ComputedMemberExpression(member) => (computed_link(member), &member.object),
            Expression::ChainExpression(chain) => match &chain.expression {
                ChainElement::StaticMemberExpression(member) => (static_link(member), &member.object),
                ChainElement::ComputedMemberExpression(member) => (computed_link(member), &member.object),
                _ => return,
            },
            _ => return,
        };
        let (links, root) = chain(first, object);
        let whole = match links.as_slice() {
            [_] => true,
            [_, part] => part.name.is_none_or(|name| TWO_LEVELS.contains(&name)),
            _ => false,
        };
        if whole && is_context(root) {
            self.all = true;
        }
    }

    /// Visits a member chain as a whole, so that its length costs neither stack nor time per part.
    fn visit_chain<'a>(&mut self, first: Link<'_, 'a>, object: &Expression<'a>) {
        let (links, root) = chain(first, object);
        if is_context(root) {
            self.note_chain(links.iter().rev());
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
        // A lone surrogate cannot occur in the name of a part.
        Expression::StringLiteral(literal) if !literal.lone_surrogates => {
            Link { name: Some(literal.value.as_str()), index: None, span: literal.span }
        }
        index => Link { name: None, index: Some(index), span: index.span() },
    }
}

fn is_context(root: &Expression<'_>) -> bool {
    matches!(root, Expression::Identifier(identifier) if identifier.name.as_str() == "context")
}

/// The links from the outermost to the innermost, and the object at the end.
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

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.note_call(&call.callee);
        walk::walk_call_expression(self, call);
    }

    fn visit_tagged_template_expression(&mut self, template: &TaggedTemplateExpression<'a>) {
        self.note_call(&template.tag);
        walk::walk_tagged_template_expression(self, template);
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
        // A string may name a property, as in `x['constructor']` or a destructuring key.
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
        match function_body(source).expect("a script").reads {
            Reads::All => None,
            Reads::Parts(parts) => Some(parts.into_iter().collect()),
        }
    }

    fn parts(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn context_parts_named_in_a_script_are_found() {
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
        assert_eq!(reads("return context.feature.hasOwnProperty('name')"), parts(&["feature"]));
        assert_eq!(reads("return context.outputs.build.hasOwnProperty('x')"), parts(&["outputs.build"]));
        assert_eq!(reads("return 'x' in context.outputs.build"), parts(&["outputs.build"]));
        assert_eq!(reads("for (const x in context.vars.list) log(x)"), parts(&["vars.list"]));
        assert_eq!(reads("const build = context.outputs.build; return build.x"), parts(&["outputs.build"]));
        assert_eq!(reads("context.vars.a = context.vars.b; delete context.vars.c"), parts(&["vars.a", "vars.b", "vars.c"]));
        assert_eq!(reads("return context.vars.name.toString()"), parts(&["vars.name"]));
    }

    #[test]
    fn names_are_compared_as_javascript_reads_them() {
        assert_eq!(reads("return \\u0063ontext.vars.a"), parts(&["vars.a"]));
        assert_eq!(reads("return context.\\u0076ars.\\u{61}"), parts(&["vars.a"]));
        assert_eq!(reads("return context['\\x76ars']['\\u0061']"), parts(&["vars.a"]));
        for source in [
            "return \\u0063ontext",
            "return {...c\\u006fntext}",
            "return context.\\u0076ars",
            "return context['v\\x61rs']",
            "return context.outputs.\\u0068asOwnProperty('x')",
            "return context.outputs['hasOwn\\x50roperty']('x')",
            "return \\u{65}val('1')",
            "let c\\u006fntext = 1; return c\\u006fntext",
            "return context.vars['\\ud800']",
        ] {
            assert_eq!(reads(source), None, "{source}");
        }
    }

    #[test]
    fn reading_an_inherited_property_reads_the_whole_object() {
        for name in INHERITED {
            assert_eq!(reads(&format!("return context.{name}")), None, "{name}");
            assert_eq!(reads(&format!("return context.{name}('vars')")), None, "{name}");
            assert_eq!(reads(&format!("return context.vars.{name}('a')")), None, "{name}");
            assert_eq!(reads(&format!("return context?.outputs?.{name}?.('a')")), None, "{name}");
            assert_eq!(reads(&format!("return context['outputs']['{name}']('a')")), None, "{name}");
            assert_eq!(reads(&format!("const f = context.outputs.{name}; return f")), None, "{name}");
        }
        for source in [
            "return context.outputs.anything()",
            "return (context.outputs?.anything)()",
            "return context.vars.anything`x`",
            "return context.anything()",
            "Object.prototype.all = 1; return context.vars.all",
            "Object.getPrototypeOf({}).all = 1; return context.vars.all",
            "({}).__proto__.all = 1; return context.vars.all",
        ] {
            assert_eq!(reads(source), None, "{source}");
        }
    }

    #[test]
    fn variables_are_found_with_the_position_of_their_first_use() {
        let vars = function_body("if (context.vars.a) { return context.vars['b c'] + context.vars.a }").expect("a script").vars;
        assert_eq!(vars, [("a".to_owned(), 17..18), ("b c".to_owned(), 42..47)].into());
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
            "return 'vars' in context",
            "return 'a' in context.vars",
            "for (const name in context.vars) log(name)",
            "for (const name in context) log(name)",
            "for (context.vars of [1]) {}",
            "return Object.keys(context.vars).length",
            "return Object.hasOwn(context.outputs, 'build')",
            "context.vars = {}",
            "[context.vars] = [1]",
            "delete context.vars",
            "const {a} = context.vars; return a",
            "const {outputs: {build}} = context; return build",
            "const vars = context.vars; return vars.a",
            "return (context?.vars).a",
            "return {...context.vars}",
            "return `${context.outputs}`",
            "return context()",
            "return context?.[name]",
            "return context.vars?.[name].x",
        ] {
            assert_eq!(reads(source), None, "{source}");
        }
    }

    #[test]
    fn bigint_is_refused_with_its_position() {
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
            assert_eq!((faults[0].code, &source[faults[0].span.clone()]), (ProblemCode::Bigint, big));
        }
        assert_eq!(expression("2n ** 3n").expect_err("two").len(), 2);
    }
}
