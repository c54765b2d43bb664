//! The syntax of scripts and conditions, and what they may not contain.
//!
//! A script is the body of an async function, so `return` and `await` are allowed at the top level. A condition is one
//! expression.

use super::bracket_depth;
use super::code::ProblemCode;
use super::context_reads::{Found, Reader};
use super::problem::shown;
use oxc_allocator::Allocator;
use oxc_ast::ast::{Expression, Program, Statement};
use oxc_ast_visit::Visit;
use oxc_parser::{ParseOptions, Parser};
use oxc_span::{GetSpan, SourceType};
use std::ops::Range;

/// An error in a piece of JavaScript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: ProblemCode,
    pub(crate) message: String,
    /// The byte range within the JavaScript.
    pub(crate) span: Range<usize>,
    pub(crate) help: Option<String>,
}

/// The maximum size of a script in bytes.
const MAX_SCRIPT: usize = 128 << 10;
/// The maximum nesting depth of brackets in a script. For some constructs, such as default values of parameters that turn out not
/// to be parameters, the parser's time and memory grow with its square. So the limit is far below what would be possible.
const MAX_BRACKETS: usize = 150;
/// Further faults are usually consequences of the first ones.
const MAX_FAULTS: usize = 5;

/// The parser is recursive, and a stack overflow kills the process. So the maximum stack that a script can need is estimated. The
/// measured maximum was 3 KB per bracket level and 1 KB per token.
const STACK_PER_BRACKET: usize = 6 << 10;
const STACK_PER_TOKEN: usize = 2 << 10;
/// The stack that every thread that reads workflows is assumed to have left.
const STACK_AT_HAND: usize = 1 << 20;

const BEFORE: &str = "(async function () {\n";
const AFTER: &str = "\n})";

/// Checks a function body and finds what it reads.
pub(crate) fn function_body(source: &str) -> Result<Found, Vec<Fault>> {
    with_stack(source, |source| {
        let wrapped = [BEFORE, source, AFTER].concat();
        let allocator = Allocator::default();
        let parsed = Parser::new(&allocator, &wrapped, SourceType::script()).with_options(options()).parse();
        let mut faults: Vec<Fault> = parsed
            .diagnostics
            .into_vec()
            .iter()
            .take(MAX_FAULTS)
            .map(|error| {
                let label = error.labels.first().map(|label| (label.offset(), label.len()));
                syntax_fault(&error.message, label, error.help.as_deref(), BEFORE.len(), source.len())
            })
            .collect();
        if faults.is_empty() && !is_one_function(&parsed.program, wrapped.len()) {
            faults.push(Fault {
                code: ProblemCode::ScriptSyntax,
                message: "unbalanced `}` in this script".into(),
                span: 0..source.len(),
                help: Some("remove the bracket that has no counterpart".into()),
            });
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut reader = Reader::new(BEFORE.len());
        reader.visit_program(&parsed.program);
        reader.finish()
    })
}

/// Checks one expression and finds what it reads.
pub(crate) fn expression(source: &str) -> Result<Found, Vec<Fault>> {
    if source.trim().is_empty() {
        let message = "the condition is empty".into();
        let help = Some("remove `condition` to always show the checkpoint".into());
        return Err(vec![Fault { code: ProblemCode::EmptyCondition, message, span: 0..source.len(), help }]);
    }
    with_stack(source, |source| {
        let allocator = Allocator::default();
        let parser = Parser::new(&allocator, source, SourceType::script()).with_options(options());
        match parser.parse_expression() {
            Err(diagnostics) => Err(diagnostics
                .into_vec()
                .iter()
                .take(MAX_FAULTS)
                .map(|error| {
                    let label = error.labels.first().map(|label| (label.offset(), label.len()));
                    let help = if starts_with_return(source) { Some(WITHOUT_RETURN) } else { error.help.as_deref() };
                    syntax_fault(&error.message, label, help, 0, source.len())
                })
                .collect()),
            Ok(expression) => {
                let mut reader = Reader::new(0);
                reader.visit_expression(&expression);
                reader.finish()
            }
        }
    })
}

const WITHOUT_RETURN: &str = "a condition is an expression: remove `return`";

fn starts_with_return(source: &str) -> bool {
    let after = source.trim_start().strip_prefix("return");
    after.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || matches!(next, '_' | '$')))
}

fn options() -> ParseOptions {
    ParseOptions { parse_regular_expression: true, preserve_parens: false, ..ParseOptions::default() }
}

/// Runs a check on a thread with enough stack.
fn with_stack(source: &str, check: impl FnOnce(&str) -> Result<Found, Vec<Fault>> + Send) -> Result<Found, Vec<Fault>> {
    let refuse = |message: String, help: &str| {
        Err(vec![Fault { code: ProblemCode::ScriptTooLarge, message, span: 0..source.len(), help: Some(help.into()) }])
    };
    if source.len() > MAX_SCRIPT {
        let message = format!("this script has {} bytes; a script may have {MAX_SCRIPT}", source.len());
        return refuse(message, "split it into several tasks");
    }
    let brackets = bracket_depth::depth(source);
    if brackets > MAX_BRACKETS {
        let message = format!("the brackets of this script are nested more than {MAX_BRACKETS} levels deep");
        return refuse(message, "give names to some of the inner parts");
    }
    let needed = brackets * STACK_PER_BRACKET + tokens(source) * STACK_PER_TOKEN;
    if needed <= STACK_AT_HAND {
        return check(source);
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(needed + STACK_AT_HAND).spawn_scoped(scope, || check(source));
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(checked)) => checked,
            Ok(Err(_)) | Err(_) => refuse("this script is too complex to check".into(), "make it shorter"),
        }
    })
}

/// An upper bound of the number of tokens: words, and every other character.
fn tokens(source: &str) -> usize {
    let mut tokens = 0;
    let mut in_word = false;
    for byte in source.bytes() {
        let word = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
        let goes_on = word && in_word;
        if !goes_on && !byte.is_ascii_whitespace() {
            tokens += 1;
        }
        in_word = word;
    }
    tokens
}

fn is_one_function(program: &Program<'_>, length: usize) -> bool {
    let [Statement::ExpressionStatement(statement)] = program.body.as_slice() else { return false };
    let Expression::FunctionExpression(function) = &statement.expression else { return false };
    function.span().end as usize == length - 1
}

/// A parser error, with its message and position converted to the author's source.
fn syntax_fault(message: &str, label: Option<(u32, u32)>, help: Option<&str>, before: usize, length: usize) -> Fault {
    let (offset, size) = label.map_or((before, length), |(offset, size)| (offset as usize, size as usize));
    let start = offset.saturating_sub(before);
    if start >= length && length > 0 {
        // The brackets that we add around the source mean nothing to the author.
        return Fault {
            code: ProblemCode::ScriptSyntax,
            message: "syntax error in JavaScript: unexpected end of the script".into(),
            span: length..length,
            help: Some("close the open brackets and quotes".into()),
        };
    }
    let end = (start + size.max(1)).min(length);
    let message = format!("syntax error in JavaScript: {}", shown(message));
    Fault { code: ProblemCode::ScriptSyntax, message, span: start..end, help: help.map(shown) }
}

#[cfg(test)]
mod tests {
    use super::super::workflow::Reads;
    use super::*;

    fn parts(names: &[&str]) -> Result<Found, Vec<Fault>> {
        let reads = Reads::Parts(names.iter().map(|name| (*name).to_owned()).collect());
        Ok(Found { reads, vars: Default::default() })
    }

    fn fault(checked: Result<Found, Vec<Fault>>) -> (ProblemCode, Range<usize>) {
        let faults = checked.expect_err("a fault");
        (faults[0].code, faults[0].span.clone())
    }

    #[test]
    fn a_script_may_return_and_await_at_the_top_level() {
        assert_eq!(function_body("const x = await readFile('a'); // end\nreturn x.length"), parts(&[]));
        assert_eq!(function_body(""), parts(&[]));
        assert_eq!(function_body("// only a comment"), parts(&[]));
    }

    #[test]
    fn a_syntax_error_has_a_position() {
        assert_eq!(fault(function_body("let a = 1\nlet b = = 2")), (ProblemCode::ScriptSyntax, 18..19));
        assert_eq!(fault(expression("a > > b")), (ProblemCode::ScriptSyntax, 4..5));
        assert_eq!(fault(expression("a b")), (ProblemCode::ScriptSyntax, 2..3));
        assert_eq!(fault(expression("a > ")), (ProblemCode::ScriptSyntax, 4..4));
        assert_eq!(fault(function_body("if (a) {")), (ProblemCode::ScriptSyntax, 8..8));
        assert_eq!(fault(expression("/(/.test(a)")).0, ProblemCode::ScriptSyntax);
    }

    #[test]
    fn a_condition_with_return_suggests_removing_it() {
        for source in ["return true", " return(a)", "return\n1", "return"] {
            let faults = expression(source).expect_err(source);
            assert_eq!(faults[0].help.as_deref(), Some(WITHOUT_RETURN), "{source}");
        }
        assert_ne!(expression("returned +").expect_err("a fault")[0].help.as_deref(), Some(WITHOUT_RETURN));
    }

    #[test]
    fn a_script_cannot_close_the_function_around_it() {
        for source in ["}, function () {", "}) ; (function () {", "} + function () {", "}; {", "}"] {
            assert_eq!(fault(function_body(source)).0, ProblemCode::ScriptSyntax, "{source}");
        }
        assert_eq!(fault(expression("a) + (b")).0, ProblemCode::ScriptSyntax);
        assert_eq!(fault(expression("a; b")).0, ProblemCode::ScriptSyntax);
    }

    #[test]
    fn an_empty_condition_is_an_error() {
        assert_eq!(fault(expression("")).0, ProblemCode::EmptyCondition);
        assert_eq!(fault(expression(" \n ")).0, ProblemCode::EmptyCondition);
        assert_eq!(fault(expression("/* nothing */")).0, ProblemCode::ScriptSyntax);
    }

    #[test]
    fn no_nesting_exhausts_the_stack() {
        let openings = [
            "(",
            "[",
            "{",
            "!",
            "a+",
            "a=>",
            "a=",
            "a?",
            "`${",
            "if(1)",
            "x:",
            "new ",
            "({a:",
            "(a=",
            "async(a=",
            "a.b.",
            "a,",
            "function a(){",
            "class a{a(){",
            "/(",
            "a||",
            "else ",
            "for(;;)",
            "do ",
            "await ",
            "-",
            "a**",
            "a[",
            "a(",
            "try{",
            "switch(a){case ",
            "...",
            "return ",
            "a?.",
            "[...[",
            "({...",
            "`",
            "class extends ",
            "/(?:",
            "/[",
            "a in ",
            "<",
        ];
        for opening in openings {
            // The most that the calling thread may have to provide, and no limit at all.
            for stack in [STACK_AT_HAND, usize::MAX] {
                let brackets = bracket_depth::depth(opening);
                let most = MAX_BRACKETS.checked_div(brackets).unwrap_or((MAX_SCRIPT - 1) / opening.len());
                let length = most.min(stack / (brackets * STACK_PER_BRACKET + tokens(opening) * STACK_PER_TOKEN));
                let source = opening.repeat(length);
                let _ = function_body(&source);
                let _ = expression(&source);
                let _ = expression(&[&source, "a"].concat());
                let _ = function_body(&[&source, "a", &")".repeat(length.min(MAX_BRACKETS))].concat());
            }
        }
    }

    #[test]
    fn a_script_has_a_length_limit() {
        let deep = |levels: usize| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
        assert_eq!(expression(&deep(MAX_BRACKETS)), parts(&[]));
        assert_eq!(fault(expression(&deep(MAX_BRACKETS + 1))).0, ProblemCode::ScriptTooLarge);
        assert_eq!(fault(expression(&"(a=".repeat(40_000))).0, ProblemCode::ScriptTooLarge);
        let long = format!("return 0{}", " + context.feature.x".repeat(6_000));
        assert_eq!(function_body(&long), parts(&["feature"]));
        let lines = "for (const x of y) { if (x > 1) { log(`${x}`) } }\n".repeat(2_000);
        assert_eq!(function_body(&lines), parts(&[]));
        assert_eq!(fault(function_body(&"a;".repeat(MAX_SCRIPT))).0, ProblemCode::ScriptTooLarge);
    }
}
