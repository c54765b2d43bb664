//! Parses a document into texts, values and sections.

use super::super::path::Path;
use super::super::{TemplateError, not_closed};
use super::MAX_NESTING;
use crate::spec::shown;
use serde_json::Value;
use std::ops::Range;

pub(super) enum Node<'t> {
    Text(&'t str),
    Value(Subject),
    Section(Section<'t>),
}

/// The content between an opening and a closing tag.
pub(super) struct Section<'t> {
    pub(super) kind: Kind,
    /// The opening tag.
    pub(super) span: Range<usize>,
    pub(super) body: Vec<Node<'t>>,
    /// The content after `{{else}}`.
    pub(super) otherwise: Vec<Node<'t>>,
}

/// When a section is rendered, how often, and with which current item.
pub(super) enum Kind {
    /// `{{#path}}`: a list repeats; any other value is rendered once, as the current item.
    Scope(Subject),
    /// `{{#each path}}`.
    Each(Subject),
    /// `{{#if …}}`, `{{#unless …}}`, `{{^path}}`: once, with the same current item.
    When { condition: Condition, holds: bool },
}

/// The condition of `if` and `unless`.
pub(super) enum Condition {
    Something(Subject),
    Compared { left: Operand, right: Operand, are_same: bool },
}

pub(super) enum Operand {
    Subject(Subject),
    Literal(Value),
}

/// The subject of a tag.
pub(super) enum Subject {
    /// The current item.
    This,
    /// A path that starts in the current item.
    InThis(Path),
    /// A path that starts in the current item or an enclosing one.
    Path(Path),
    Index,
    First,
    Last,
}

/// Parses a document, and returns all its errors, sorted by position.
pub(super) fn parse(template: &str) -> (Vec<Node<'_>>, Vec<TemplateError>) {
    let mut parser = Parser { template, at: 0, has_dashed_end: true, nodes: Vec::new(), open: Vec::new(), faults: Vec::new() };
    parser.read_all();
    while let Some(frame) = parser.open.pop() {
        parser.not_closed_section(&frame);
        parser.put_section(frame);
    }
    parser.faults.sort_by_key(|fault| fault.span.start);
    (parser.nodes, parser.faults)
}

struct Parser<'t> {
    template: &'t str,
    at: usize,
    /// Whether there may be another `--}}`. After one failed search, the parser does not search again.
    has_dashed_end: bool,
    nodes: Vec<Node<'t>>,
    /// The open sections; the last one is the innermost.
    open: Vec<Frame<'t>>,
    faults: Vec<TemplateError>,
}

struct Frame<'t> {
    section: Section<'t>,
    /// The name in the closing tag.
    name: &'t str,
    is_in_otherwise: bool,
    /// Whether it started with `{{else if …}}`, and so closes together with the enclosing section.
    is_chained: bool,
}

impl<'t> Parser<'t> {
    fn read_all(&mut self) {
        let template = self.template;
        while let Some(found) = template[self.at..].find("{{").map(|found| self.at + found) {
            if template[self.at..found].ends_with('\\') {
                self.put_text(found - 1);
                self.put(Node::Text("{{"));
                self.at = found + 2;
                continue;
            }
            let Some(end) = self.read_tag(found) else { return };
            self.at = end;
        }
        self.put_text(template.len());
    }

    /// Reads the tag that starts here, and returns where the text continues; `None` to stop reading.
    fn read_tag(&mut self, found: usize) -> Option<usize> {
        let rest = &self.template[found + 2..];
        if let Some(comment) = rest.strip_prefix('!') {
            let dashed = if comment.starts_with("--") && self.has_dashed_end { comment.find("--}}") } else { None };
            self.has_dashed_end &= dashed.is_some() || !comment.starts_with("--");
            let Some(length) = dashed.map(|length| length + 4).or_else(|| comment.find("}}").map(|length| length + 2)) else {
                self.put_text(found);
                self.faults.push(not_closed(found));
                return None;
            };
            return Some(self.alone_on_its_line(found..found + 3 + length));
        }
        let is_triple = rest.starts_with('{');
        let begin = found + if is_triple { 3 } else { 2 };
        let Some(close) = next_braces(self.template, begin) else {
            self.put_text(found);
            self.faults.push(not_closed(found));
            return None;
        };
        let closing = if is_triple { "}}}" } else { "}}" };
        if !self.template[close..].starts_with(closing) {
            self.put_text(found);
            let fault = not_closed(found);
            let help = is_triple.then(|| "close it with `}}}`".to_owned()).or(fault.help);
            self.faults.push(TemplateError { help, ..fault });
            return Some(begin);
        }
        let span = found..close + closing.len();
        let inner = self.template[begin..close].trim();
        if is_triple {
            return Some(self.value(inner, span));
        }
        let after = |sigil: char| inner.strip_prefix(sigil).map(str::trim);
        if let Some(inner) = after('&') {
            return Some(self.value(inner, span));
        }
        let is_else = inner == "else" || inner == "^";
        let end = if is_else || inner.starts_with("else ") || inner.starts_with(['#', '^', '/']) {
            self.alone_on_its_line(span.clone())
        } else {
            return Some(self.value(inner, span));
        };
        if is_else {
            self.otherwise(span);
        } else if let Some(name) = after('/') {
            self.close(name, span);
        } else if let Some(inner) = after('^') {
            let kind = self.understood(subject(inner, &span));
            let kind = kind.map(|subject| Kind::When { condition: Condition::Something(subject), holds: false });
            self.open(kind, inner, span)?;
        } else if let Some(inner) = after('#') {
            let word = inner.split([' ', '\t', '\n', '\r']).next().unwrap_or_default();
            // A path may contain blanks in its brackets.
            let is_path = !WORDS.contains(&word) && (word == inner || Path::parse(inner).is_some());
            let (kind, name) = if is_path {
                (subject(inner, &span).map(Kind::Scope), inner)
            } else {
                (block(word, &inner[word.len()..], &span), word)
            };
            let kind = self.understood(kind);
            self.open(kind, name, span)?;
        } else if let Some(inner) = inner.strip_prefix("else ").map(str::trim) {
            self.otherwise_if(inner, span)?;
        }
        Some(end)
    }

    /// A tag that renders a value.
    fn value(&mut self, inner: &str, span: Range<usize>) -> usize {
        self.put_text(span.start);
        let end = span.end;
        if let Some(subject) = self.understood(value(inner, &span)) {
            self.put(Node::Value(subject));
        }
        end
    }

    fn understood<T>(&mut self, read: Result<T, TemplateError>) -> Option<T> {
        read.map_err(|fault| self.faults.push(fault)).ok()
    }

    /// Opens a section, even an invalid one, so that its closing tag is not reported too. Returns `None` if it is nested too
    /// deeply.
    fn open(&mut self, kind: Option<Kind>, name: &'t str, span: Range<usize>) -> Option<()> {
        self.open_frame(kind, name, span, false)
    }

    fn open_frame(&mut self, kind: Option<Kind>, name: &'t str, span: Range<usize>, is_chained: bool) -> Option<()> {
        if self.open.len() == MAX_NESTING {
            let message = format!("sections are nested more than {MAX_NESTING} levels deep");
            // The others are unclosed only because reading stops here.
            self.open.clear();
            self.faults.push(TemplateError { message, span, help: Some("close sections where they end".into()) });
            return None;
        }
        let kind = kind.unwrap_or(Kind::Scope(Subject::This));
        let section = Section { kind, span, body: Vec::new(), otherwise: Vec::new() };
        self.open.push(Frame { section, name, is_in_otherwise: false, is_chained });
        Some(())
    }

    fn otherwise(&mut self, span: Range<usize>) {
        let message = match self.open.last_mut() {
            Some(frame) if !frame.is_in_otherwise => {
                frame.is_in_otherwise = true;
                return;
            }
            Some(_) => "a section has only one `{{else}}`",
            None => "`{{else}}` is outside of a section",
        };
        let help = Some("it belongs between a tag such as {{#if path}} and the one that closes it".into());
        self.faults.push(TemplateError { message: message.into(), span, help });
    }

    fn otherwise_if(&mut self, inner: &'t str, span: Range<usize>) -> Option<()> {
        let before = self.faults.len();
        self.otherwise(span.clone());
        if self.faults.len() > before {
            return Some(());
        }
        let word = inner.split([' ', '\t', '\n', '\r']).next().unwrap_or_default();
        let kind = self.understood(block(word, &inner[word.len()..], &span));
        self.open_frame(kind, word, span, true)
    }

    fn close(&mut self, name: &str, span: Range<usize>) {
        let is_meant = |frame: &Frame<'_>| !frame.is_chained && frame.name == name;
        if !self.open.iter().any(is_meant) {
            let last = self.open.iter().rev().find(|frame| !frame.is_chained);
            let help = match last {
                Some(frame) => format!("the open section closes with {{{{/{}}}}}", shown(frame.name)),
                None => "no section is open here; remove it, or open one before it".into(),
            };
            let message = format!("`{{{{/{}}}}}` closes nothing", shown(name));
            self.faults.push(TemplateError { message, span, help: Some(help) });
            return;
        }
        while let Some(frame) = self.open.pop() {
            let is_closed = is_meant(&frame);
            let goes_along = is_closed || frame.is_chained;
            if !goes_along {
                self.not_closed_section(&frame);
            }
            self.put_section(frame);
            if is_closed {
                return;
            }
        }
    }

    fn not_closed_section(&mut self, frame: &Frame<'_>) {
        if !frame.is_chained {
            let span = frame.section.span.clone();
            let message = format!("`{}` is not closed", shown(&self.template[span.clone()]));
            let help = Some(format!("close it with {{{{/{}}}}}", shown(frame.name)));
            self.faults.push(TemplateError { message, span, help });
        }
    }

    /// Adds the text before a tag that renders no value, and returns where the text after it starts. If the tag is alone on its
    /// line, the line is removed.
    fn alone_on_its_line(&mut self, span: Range<usize>) -> usize {
        let blank = [' ', '\t'];
        let before = self.template[..span.start].trim_end_matches(blank);
        let after = self.template[span.end..].trim_start_matches(blank);
        let next = after.strip_prefix("\r\n").or_else(|| after.strip_prefix('\n')).or(after.is_empty().then_some(after));
        match next {
            Some(next) if before.is_empty() || before.ends_with('\n') => {
                self.put_text(before.len());
                self.template.len() - next.len()
            }
            Some(_) | None => {
                self.put_text(span.start);
                span.end
            }
        }
    }

    /// Adds the text up to this position.
    fn put_text(&mut self, end: usize) {
        if self.at < end {
            self.put(Node::Text(&self.template[self.at..end]));
        }
    }

    fn put(&mut self, node: Node<'t>) {
        let to = match self.open.last_mut() {
            Some(Frame { section, is_in_otherwise: true, .. }) => &mut section.otherwise,
            Some(Frame { section, .. }) => &mut section.body,
            None => &mut self.nodes,
        };
        to.push(node);
    }

    fn put_section(&mut self, frame: Frame<'t>) {
        self.put(Node::Section(frame.section));
    }
}

/// The next `}}` or `{{`, whichever comes first.
fn next_braces(template: &str, from: usize) -> Option<usize> {
    let pairs = template.as_bytes()[from..].windows(2);
    pairs.into_iter().position(|pair| pair == b"}}" || pair == b"{{").map(|found| from + found)
}

/// The words that open a section without being a path.
const WORDS: [&str; 3] = ["if", "unless", "each"];

fn block(word: &str, rest: &str, span: &Range<usize>) -> Result<Kind, TemplateError> {
    match word {
        "if" => condition(rest, span).map(|condition| Kind::When { condition, holds: true }),
        "unless" => condition(rest, span).map(|condition| Kind::When { condition, holds: false }),
        "each" => subject(rest, span).map(Kind::Each),
        other => Err(TemplateError {
            message: format!("`{}` is not defined here", shown(other)),
            span: span.clone(),
            help: Some(format!("a section starts with {{{{#path}}}}, or with one of {}", WORDS.join(", "))),
        }),
    }
}

fn condition(inner: &str, span: &Range<usize>) -> Result<Condition, TemplateError> {
    let inner = inner.trim();
    let Some(compared) = inner.strip_prefix('(') else { return subject(inner, span).map(Condition::Something) };
    let unknown = || TemplateError {
        message: format!("`{}` is not a valid condition", shown(inner)),
        span: span.clone(),
        help: Some("a condition is a path, (eq path \"text\") or (ne path \"text\")".into()),
    };
    let mut words = words(compared.strip_suffix(')').ok_or_else(unknown)?).ok_or_else(unknown)?.into_iter();
    let are_same = match words.next() {
        Some("eq") => true,
        Some("ne") => false,
        Some(_) | None => return Err(unknown()),
    };
    let (Some(left), Some(right), None) = (words.next(), words.next(), words.next()) else { return Err(unknown()) };
    Ok(Condition::Compared { left: operand(left, span)?, right: operand(right, span)?, are_same })
}

/// Splits at blanks, except those in quotes and brackets.
fn words(text: &str) -> Option<Vec<&str>> {
    let mut words = Vec::new();
    let mut begin = None;
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match quote {
            Some(mark) if mark == character => quote = None,
            Some(_) => {}
            None if character.is_whitespace() => {
                if let Some(begin) = begin.take() {
                    words.push(&text[begin..at]);
                }
            }
            None => {
                begin.get_or_insert(at);
                if matches!(character, '"' | '\'') {
                    quote = Some(character);
                }
            }
        }
    }
    if let Some(begin) = begin {
        words.push(&text[begin..]);
    }
    quote.is_none().then_some(words)
}

fn operand(word: &str, span: &Range<usize>) -> Result<Operand, TemplateError> {
    for quote in ['"', '\''] {
        if let Some(text) = word.strip_prefix(quote).and_then(|word| word.strip_suffix(quote)) {
            return Ok(Operand::Literal(text.into()));
        }
    }
    // Numbers, true, false and null are written as in JSON.
    if let Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Null)) = serde_json::from_str(word) {
        return Ok(Operand::Literal(value));
    }
    subject(word, span).map(Operand::Subject)
}

/// The value of a tag that is not a section. An unknown helper, such as one that formats dates, renders its first argument
/// unchanged, because a document without the formatting is better than none.
fn value(inner: &str, span: &Range<usize>) -> Result<Subject, TemplateError> {
    let given = words(inner).unwrap_or_default();
    match given.as_slice() {
        [helper, first, ..]
            if helper.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) && !matches!(*helper, "eq" | "ne") =>
        {
            subject(first, span)
        }
        _ => subject(inner, span),
    }
}

fn subject(inner: &str, span: &Range<usize>) -> Result<Subject, TemplateError> {
    let inner = inner.trim();
    // Names are also looked up in the enclosing items, so `../` can be dropped.
    let inner = inner.trim_start_matches("../");
    let inner = inner.strip_prefix("@root.").unwrap_or(inner);
    match inner {
        "." | "this" => return Ok(Subject::This),
        "@index" => return Ok(Subject::Index),
        "@first" => return Ok(Subject::First),
        "@last" => return Ok(Subject::Last),
        _ => {}
    }
    match Path::parse(inner) {
        Some(path) if path.root() == "this" => match path.without_root() {
            Some(path) => Ok(Subject::InThis(path)),
            None => Ok(Subject::This),
        },
        Some(path) => Ok(Subject::Path(path)),
        None => Err(not_a_subject(inner, span.clone())),
    }
}

fn not_a_subject(inner: &str, span: Range<usize>) -> TemplateError {
    let help = if inner.is_empty() {
        "a path is missing here"
    } else if inner.starts_with('>') {
        "a document cannot include another; insert its text here"
    } else if inner.starts_with('=') {
        "the braces cannot be changed"
    } else if inner.starts_with('@') {
        "only @index, @first and @last are supported"
    } else if inner.starts_with('~') || inner.ends_with('~') {
        "remove ~; a tag alone on its line does not leave an empty line"
    } else if inner.starts_with("eq ") || inner.starts_with("ne ") {
        "put a comparison into parentheses: {{#if (eq path \"text\")}}"
    } else if inner.contains(char::is_whitespace) {
        "only values are supported, such as {{feature.name}}; compute anything else in a script"
    } else {
        "a path looks like {{feature.name}} or {{phases.completed.length}}; write `\\{{` for literal braces"
    };
    TemplateError { message: format!("`{}` is not a path", shown(inner)), span, help: Some(help.into()) }
}
