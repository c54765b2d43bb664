//! The text of a file as a tree of scalars, lists and maps, each with its position.
//!
//! The tree is built from the events of the YAML parser under our own limits for depth, number of nodes and amount of text. An
//! alias shares the node that it refers to, but counts as if it were expanded, so no short file becomes a large one.

use super::code::ProblemCode;
use super::problem::{Report, line_of, shown};
use serde_saphyr::granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, ScanError, Span, Tag};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// How deep lists and maps may be nested.
pub const MAX_DEPTH: usize = 64;
/// How many scalars, lists and maps a file may hold, with aliases expanded.
pub const MAX_NODES: usize = 200_000;
/// How many bytes of text a file may hold, with aliases expanded.
pub const MAX_TEXT: usize = 4 * super::MAX_BYTES;

/// A part of a file, with its position.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// The byte range in the file.
    pub span: Range<usize>,
    pub content: Rc<Content<'a>>,
    weight: Weight,
}

#[derive(Debug)]
pub enum Content<'a> {
    /// Text, or a number, boolean or null.
    Scalar(Scalar<'a>),
    List(Vec<Node<'a>>),
    /// In file order; keys are unique.
    Map(Vec<Entry<'a>>),
}

#[derive(Clone, Debug)]
pub struct Scalar<'a> {
    /// The value, after YAML's rules for escapes and line breaks.
    pub text: Cow<'a, str>,
    pub(crate) style: ScalarStyle,
    /// Whether it was written without quotes, so that it may be a number, a boolean or null.
    pub(crate) plain: bool,
}

#[derive(Debug)]
pub struct Entry<'a> {
    pub key: Cow<'a, str>,
    pub key_span: Range<usize>,
    pub value: Node<'a>,
}

/// The cost of a node with its aliases expanded.
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

    /// Whether it is an empty value, `~` or `null`.
    pub fn is_null(&self) -> bool {
        match &*self.content {
            Content::Scalar(scalar) => scalar.is_null(),
            Content::List(_) | Content::Map(_) => false,
        }
    }

    /// A description for messages.
    pub fn kind(&self) -> &'static str {
        match &*self.content {
            Content::Scalar(scalar) if scalar.is_null() => "nothing",
            Content::Scalar(_) => "a single value",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }
}

/// Parses one YAML document. Problems go to the report; the result is `None` if there is no complete tree.
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
                    let message = "a second document starts here; a file may hold only one";
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

/// The file exceeds a limit, and the problem has been reported.
struct Stopped;

struct Builder<'a, 'r> {
    source: &'a str,
    report: &'r mut Report,
    open: Vec<Open<'a>>,
    anchors: BTreeMap<usize, Node<'a>>,
    spent: Weight,
    root: Option<Node<'a>>,
}

/// A list or map that has not ended yet.
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

/// The key whose value comes next.
enum Pending<'a> {
    None,
    Key(Cow<'a, str>, Range<usize>),
    /// The key was refused; its value is read and dropped.
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
                        "this alias is inside the value that it refers to",
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
                let message = format!("alias `*{}` refers to an anchor that is not defined before it", shown(&name));
                self.report.error(ProblemCode::InvalidAlias, &range(span), message);
                self.attach(nothing(range(span)))
            }
            // Other events do not affect the content.
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

    /// Counts a scalar or an alias against the limits, then attaches it. Lists and maps were counted piece by piece.
    fn attach(&mut self, node: Node<'a>) -> Result<(), Stopped> {
        self.spent.add(node.weight);
        if self.spent.nodes > MAX_NODES {
            let message = format!("the file holds more than {MAX_NODES} values with its aliases expanded");
            return self.refuse(ProblemCode::TooLarge, &node.span, message);
        }
        if self.spent.text > MAX_TEXT {
            let message = format!("the file holds more than {MAX_TEXT} bytes of text with its aliases expanded");
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
        let message = format!("the tag `{}` has no meaning here", shown(&tag.original()));
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
                "quote text that contains `: `, and check the indentation"
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
