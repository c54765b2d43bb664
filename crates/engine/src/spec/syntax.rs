//! The text of a file as a tree of scalars, lists and maps, each with its place.
//!
//! The tree is built from the YAML parser's events under limits of our own: how deep, how many nodes, how much text.
//! An alias shares the node it names and counts as if that were written out, so no short file becomes a large one.

use super::code::ProblemCode;
use super::problem::{Report, line_of, shown};
use serde_saphyr::granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, ScanError, Span, Tag};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// How deep lists and maps may be nested.
pub const MAX_DEPTH: usize = 64;
/// How many scalars, lists and maps a file may hold, with its aliases written out.
pub const MAX_NODES: usize = 200_000;
/// How many bytes of text a file may hold, with its aliases written out.
pub const MAX_TEXT: usize = 4 * super::MAX_BYTES;

/// Something in a file, with its place.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// The bytes of the file that it was made from.
    pub span: Range<usize>,
    pub content: Rc<Content<'a>>,
    weight: Weight,
}

/// What a node is.
#[derive(Debug)]
pub enum Content<'a> {
    /// A piece of text, perhaps a number, a truth value or nothing.
    Scalar(Scalar<'a>),
    /// Things in order.
    List(Vec<Node<'a>>),
    /// Things by name, in the order of the file; no name twice.
    Map(Vec<Entry<'a>>),
}

/// A piece of text.
#[derive(Clone, Debug)]
pub struct Scalar<'a> {
    /// What it says, after YAML's own rules for escapes and line breaks.
    pub text: Cow<'a, str>,
    pub(crate) style: ScalarStyle,
    /// Whether it was written without quotes, so that it may be a number, a truth value or nothing.
    pub(crate) plain: bool,
}

/// A name in a map and what it stands for.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The name.
    pub key: Cow<'a, str>,
    pub key_span: Range<usize>,
    /// What it stands for.
    pub value: Node<'a>,
}

/// What a node costs when it is written out.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    nodes: usize,
    text: usize,
    depth: usize,
}

impl Weight {
    fn add(&mut self, child: Self) {
        self.nodes = self.nodes.saturating_add(child.nodes);
        self.text = self.text.saturating_add(child.text);
        self.depth = self.depth.max(child.depth + 1);
    }
}

impl<'a> Node<'a> {
    fn new(span: Range<usize>, content: Content<'a>, mut weight: Weight) -> Self {
        weight.nodes += 1;
        Self { span, content: Rc::new(content), weight }
    }

    /// Whether nothing stands here: an empty value, `~` or `null`.
    pub fn is_null(&self) -> bool {
        match &*self.content {
            Content::Scalar(scalar) => scalar.is_null(),
            Content::List(_) | Content::Map(_) => false,
        }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match &*self.content {
            Content::Scalar(scalar) if scalar.is_null() => "nothing",
            Content::Scalar(_) => "a single value",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }
}

/// Reads one YAML document. What is wrong is told to the report; nothing is given back when no whole tree came of it.
pub fn parse<'a>(source: &'a str, report: &mut Report) -> Option<Node<'a>> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.emit_unresolved_aliases = true;
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    let mut builder =
        Builder { source, report, open: Vec::new(), anchors: BTreeMap::new(), spent: Weight::default(), root: None };
    let mut documents = 0;
    for event in Parser::new_from_str_with_options(source, options) {
        match event {
            Err(error) => {
                builder.refuse_syntax(&error);
                return None;
            }
            Ok((Event::DocumentStart(..), span)) => {
                documents += 1;
                if documents > 1 {
                    let message = "a second document begins here; a file holds one";
                    builder
                        .report
                        .error(ProblemCode::MultipleDocuments, &range(span), message)
                        .help("put each into a file of its own");
                    return None;
                }
            }
            Ok((event, span)) => builder.take(event, span).ok()?,
        }
    }
    Some(builder.root.unwrap_or_else(|| nothing(0..0)))
}

/// The file is beyond a limit; what was wrong has been told.
struct Stopped;

struct Builder<'a, 'r> {
    source: &'a str,
    report: &'r mut Report,
    open: Vec<Open<'a>>,
    anchors: BTreeMap<usize, Node<'a>>,
    spent: Weight,
    root: Option<Node<'a>>,
}

/// A list or map whose end has not come yet.
struct Open<'a> {
    start: usize,
    anchor: usize,
    weight: Weight,
    inside: Inside<'a>,
}

enum Inside<'a> {
    List(Vec<Node<'a>>),
    Map { entries: Vec<Entry<'a>>, seen: BTreeMap<Cow<'a, str>, usize>, key: Pending<'a> },
}

/// The name in a map whose value comes next.
enum Pending<'a> {
    None,
    Key(Cow<'a, str>, Range<usize>),
    /// The name was refused; its value is read and dropped.
    Refused,
}

impl<'a> Builder<'a, '_> {
    fn take(&mut self, event: Event<'a>, span: Span) -> Result<(), Stopped> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = self.is_plain(style, tag.as_deref(), &span);
                let weight = Weight { nodes: 0, text: text.len(), depth: 0 };
                let node = Node::new(range(span), Content::Scalar(Scalar { text, style, plain }), weight);
                self.remember(anchor, &node);
                self.attach(node)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), &span, "seq");
                self.open(span, anchor, Inside::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), &span, "map");
                let inside = Inside::Map { entries: Vec::new(), seen: BTreeMap::new(), key: Pending::None };
                self.open(span, anchor, inside)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(&range(span)),
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    self.report.error(
                        ProblemCode::InvalidAlias,
                        &range(span),
                        "this alias stands inside the thing that it names",
                    );
                    return self.attach(nothing(range(span)));
                };
                if self.open.len() + node.weight.depth > MAX_DEPTH {
                    return self.refuse(
                        ProblemCode::TooDeep,
                        &range(span),
                        format!("this is nested more than {MAX_DEPTH} levels deep"),
                    );
                }
                self.attach(node)
            }
            Event::UnresolvedAlias(name) => {
                let message = format!("alias `*{}` names an anchor that is not defined before it", shown(&name));
                self.report.error(ProblemCode::InvalidAlias, &range(span), message);
                self.attach(nothing(range(span)))
            }
            // Everything else says nothing about what the file holds.
            _ => Ok(()),
        }
    }

    fn open(&mut self, span: Span, anchor: usize, inside: Inside<'a>) -> Result<(), Stopped> {
        let span = range(span);
        if self.open.len() >= MAX_DEPTH {
            return self.refuse(ProblemCode::TooDeep, &span, format!("this is nested more than {MAX_DEPTH} levels deep"));
        }
        self.open.push(Open { start: span.start, anchor, weight: Weight::default(), inside });
        Ok(())
    }

    fn close(&mut self, end: &Range<usize>) -> Result<(), Stopped> {
        let Some(Open { start, anchor, weight, inside }) = self.open.pop() else { return Ok(()) };
        let content = match inside {
            Inside::List(items) => Content::List(items),
            Inside::Map { entries, .. } => Content::Map(entries),
        };
        let node = Node::new(start..end.end.max(start), content, weight);
        self.remember(anchor, &node);
        self.place(node);
        Ok(())
    }

    fn remember(&mut self, anchor: usize, node: &Node<'a>) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
    }

    /// Pays for a scalar or an alias, then puts it where it belongs. Lists and maps were paid for piece by piece.
    fn attach(&mut self, node: Node<'a>) -> Result<(), Stopped> {
        self.spent.add(node.weight);
        if self.spent.nodes > MAX_NODES {
            let message = format!("the file holds more than {MAX_NODES} values, aliases written out");
            return self.refuse(ProblemCode::TooLarge, &node.span, message);
        }
        if self.spent.text > MAX_TEXT {
            let message = format!("the file holds more than {MAX_TEXT} bytes of text, aliases written out");
            return self.refuse(ProblemCode::TooLarge, &node.span, message);
        }
        self.place(node);
        Ok(())
    }

    fn place(&mut self, node: Node<'a>) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        open.weight.add(node.weight);
        match &mut open.inside {
            Inside::List(items) => items.push(node),
            Inside::Map { entries, seen, key } => match std::mem::replace(key, Pending::None) {
                Pending::None => match &*node.content {
                    Content::Scalar(scalar) => match seen.get(&scalar.text) {
                        None => {
                            seen.insert(scalar.text.clone(), node.span.start);
                            *key = Pending::Key(scalar.text.clone(), node.span);
                        }
                        Some(first) => {
                            *key = Pending::Refused;
                            if self.report.is_full() {
                                self.report.count();
                            } else {
                                let message = format!("key `{}` is given twice in this map", shown(&scalar.text));
                                let help = format!("the first one is on line {}; keep one of them", line_of(self.source, *first));
                                self.report.error(ProblemCode::DuplicateKey, &node.span, message).help(help);
                            }
                        }
                    },
                    Content::List(_) | Content::Map(_) => {
                        *key = Pending::Refused;
                        self.report.error(
                            ProblemCode::InvalidKey,
                            &node.span,
                            format!("a key must be a single value, not {}", node.kind()),
                        );
                    }
                },
                Pending::Key(key, key_span) => entries.push(Entry { key, key_span, value: node }),
                Pending::Refused => {}
            },
        }
    }

    fn is_plain(&mut self, style: ScalarStyle, tag: Option<&Tag>, span: &Span) -> bool {
        let Some(tag) = tag else { return style == ScalarStyle::Plain };
        match tag.core_suffix() {
            Some("str") => false,
            Some("int" | "float" | "bool" | "null") => true,
            _ => {
                self.refuse_tag(tag, span);
                style == ScalarStyle::Plain
            }
        }
    }

    fn check_tag(&mut self, tag: Option<&Tag>, span: &Span, expected: &str) {
        if let Some(tag) = tag
            && tag.core_suffix() != Some(expected)
        {
            self.refuse_tag(tag, span);
        }
    }

    fn refuse_tag(&mut self, tag: &Tag, span: &Span) {
        let place = range(span.tag_span().unwrap_or(*span));
        let message = format!("the tag `{}` means nothing here", shown(&tag.original()));
        self.report.error(ProblemCode::YamlTag, &place, message).help("remove it");
    }

    fn refuse(&mut self, code: ProblemCode, span: &Range<usize>, message: String) -> Result<(), Stopped> {
        self.report.error(code, span, message);
        Err(Stopped)
    }

    fn refuse_syntax(&mut self, error: &ScanError) {
        let start = error.marker().byte_offset().unwrap_or(0);
        let span = start..start + 1;
        if *error.kind() == ErrorKind::RecursionLimitExceeded {
            self.report.error(ProblemCode::TooDeep, &span, format!("this is nested more than {MAX_DEPTH} levels deep"));
            return;
        }
        let help = match error.kind() {
            ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => "indent with spaces",
            ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidSimpleKey => {
                "put quotes around text that holds `: `, and check the indentation"
            }
            ErrorKind::UnclosedQuotedScalar => "close the quotes",
            _ => "check the indentation and the quotes here and in the line before",
        };
        let message = format!("this is not YAML: {}", error.info());
        self.report.error(ProblemCode::InvalidYaml, &span, message).help(help);
    }
}

fn nothing<'a>(span: Range<usize>) -> Node<'a> {
    let scalar = Scalar { text: Cow::Borrowed(""), style: ScalarStyle::Plain, plain: true };
    Node::new(span, Content::Scalar(scalar), Weight::default())
}

fn range(span: Span) -> Range<usize> {
    let range = span.byte_range().unwrap_or(0..0);
    range.start..range.end.max(range.start)
}
