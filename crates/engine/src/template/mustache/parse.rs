//! A document taken apart: texts, values and sections.

use super::super::path::Path;
use super::super::{TemplateError, not_closed};
use super::MAX_NESTING;
use crate::spec::shown;
use serde_json::Value;
use std::ops::Range;

/// A part of a document.
pub(super) enum Node<'t> {
    Text(&'t str),
    Value(Subject),
    Section(Section<'t>),
}

/// What stands between a tag that opens and one that closes.
pub(super) struct Section<'t> {
    pub(super) kind: Kind,
    /// The tag that opens it.
    pub(super) span: Range<usize>,
    pub(super) body: Vec<Node<'t>>,
    /// What stands after `{{else}}`.
    pub(super) otherwise: Vec<Node<'t>>,
}

/// When a section is given, how often, and with what at hand.
pub(super) enum Kind {
    /// `{{#path}}`: a list repeats, anything else is at hand once.
    Scope(Subject),
    /// `{{#each path}}`.
    Each(Subject),
    /// `{{#if …}}`, `{{#unless …}}`, `{{^path}}`: once, with nothing new at hand.
    When { condition: Condition, holds: bool },
}

/// What `if` and `unless` ask.
pub(super) enum Condition {
    Something(Subject),
    Compared { left: Operand, right: Operand, are_same: bool },
}

/// One side of a comparison.
pub(super) enum Operand {
    Subject(Subject),
    Literal(Value),
}

/// What a tag is about.
pub(super) enum Subject {
    /// The item at hand.
    This,
    /// A path that begins in the item at hand.
    InThis(Path),
    /// A path that begins in the item at hand, or in one that encloses it.
    Path(Path),
    Index,
    First,
    Last,
}

/// Takes a document apart, and says everything that is wrong with it, in the order of its places.
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
    /// Whether a `--}}` may be ahead. Looked for in vain once, it is not looked for again.
    has_dashed_end: bool,
    nodes: Vec<Node<'t>>,
    /// The sections that are open; the innermost is the last.
    open: Vec<Frame<'t>>,
    faults: Vec<TemplateError>,
}

/// A section that is open.
struct Frame<'t> {
    section: Section<'t>,
    /// What the tag that closes it says.
    name: &'t str,
    is_in_otherwise: bool,
    /// Whether it came with `{{else if …}}`, and so closes together with the one around it.
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

    /// Reads the tag that begins here, and gives where the text goes on; nothing if there is no use in reading on.
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
            // A path may hold blanks in its brackets.
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

    /// A tag that gives a value.
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

    /// Opens a section, also one that is not understood: what closes it is not at fault. Gives nothing if it is too deep.
    fn open(&mut self, kind: Option<Kind>, name: &'t str, span: Range<usize>) -> Option<()> {
        self.open_frame(kind, name, span, false)
    }

    fn open_frame(&mut self, kind: Option<Kind>, name: &'t str, span: Range<usize>, is_chained: bool) -> Option<()> {
        if self.open.len() == MAX_NESTING {
            let message = format!("sections are nested more than {MAX_NESTING} deep");
            // The others are not closed only because nothing is read any more.
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
        let told = match self.open.last_mut() {
            Some(frame) if !frame.is_in_otherwise => {
                frame.is_in_otherwise = true;
                return;
            }
            Some(_) => "a section has only one `{{else}}`",
            None => "`{{else}}` stands in no section",
        };
        let help = Some("it belongs between a tag such as {{#if path}} and the one that closes it".into());
        self.faults.push(TemplateError { message: told.into(), span, help });
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
                Some(frame) => format!("the section that is open here closes with {{{{/{}}}}}", shown(frame.name)),
                None => "no section is open here; take it away, or open one before it".into(),
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

    /// Puts the text before a tag that gives no value, and says where the text after it begins: if nothing else stands
    /// on its line, that line goes.
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

    /// Puts the text from where we are up to this place.
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
            message: format!("`{}` is not known here", shown(other)),
            span: span.clone(),
            help: Some(format!("a section begins with {{{{#path}}}}, or with one of {}", WORDS.join(", "))),
        }),
    }
}

fn condition(inner: &str, span: &Range<usize>) -> Result<Condition, TemplateError> {
    let inner = inner.trim();
    let Some(compared) = inner.strip_prefix('(') else { return subject(inner, span).map(Condition::Something) };
    let unknown = || TemplateError {
        message: format!("`{}` is not understood", shown(inner)),
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

/// Words with blanks between them; blanks in quotes and brackets are part of a word.
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

/// What a tag gives that is no section. A helper that nobody knows gives its first argument as it is: what it would have made of
/// it, such as a date in another form, is worth less than the document.
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
    // Names are looked for in what encloses the item at hand as well, so the way outwards need not be told.
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
        "a document cannot take in another; put its text here"
    } else if inner.starts_with('=') {
        "the braces cannot be changed"
    } else if inner.starts_with('@') {
        "only @index, @first and @last are known"
    } else if inner.starts_with('~') || inner.ends_with('~') {
        "leave out ~; a tag that stands alone on its line leaves no empty line behind"
    } else if inner.starts_with("eq ") || inner.starts_with("ne ") {
        "put a comparison into parentheses: {{#if (eq path \"text\")}}"
    } else if inner.contains(char::is_whitespace) {
        "only values can be filled in, such as {{feature.name}}; compute anything else in a script"
    } else {
        "a path looks like {{feature.name}} or {{phases.completed.length}}; write `\\{{` for the braces themselves"
    };
    TemplateError { message: format!("`{}` is not a path", shown(inner)), span, help: Some(help.into()) }
}
