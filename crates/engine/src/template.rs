//! Text with `{{path}}` in it: checked when a workflow is read, filled in when it runs.
//!
//! A path is `vars.name`, `outputs.build.result[0]`, `outputs['phase.one'].x` or `vars.list.length`. A path that leads
//! nowhere is an error that names it. In a prompt or a path every `{{…}}` is ours, and `\{{` stands for the braces
//! themselves. In a shell command only `{{…}}` that begins with one of [`ROOTS`] is ours, so that
//! `docker ps --format '{{.Names}}'` stays what it is; there each value becomes one word, whatever it holds.
//! Whole documents can repeat and leave out as well: [`mustache`].

pub mod mustache;
mod nested;
mod path;
mod shell;

use crate::spec::suggest;
use path::Path;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;

/// What a path may begin with.
pub const ROOTS: [&str; 11] =
    ["context", "vars", "feature", "output_dir", "phase", "workflow", "outputs", "run", "task", "flags", "item"];

/// Where a template stands, and so what its paths may begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roots {
    /// In a task or gate.
    Task,
    /// In a checkpoint, which belongs to no task.
    Checkpoint,
    /// In the output directory, which is settled before anything runs.
    OutputDir,
}

impl Roots {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Task => &ROOTS,
            Self::Checkpoint => &["context", "vars", "feature", "output_dir", "phase", "workflow", "outputs", "run", "flags"],
            Self::OutputDir => &["vars", "feature", "workflow", "run", "flags"],
        }
    }

    fn why_not(self, root: &str) -> &'static str {
        match self {
            Self::Task => "leads nowhere",
            Self::Checkpoint if matches!(root, "task" | "item") => "means nothing in a checkpoint, which belongs to no task",
            Self::Checkpoint => "leads nowhere",
            Self::OutputDir if ROOTS.contains(&root) => "is not known yet when the output directory is made",
            Self::OutputDir => "leads nowhere",
        }
    }
}

/// Paths that are known and may have nothing to say: they give an empty text.
const MAY_BE_ABSENT: [[&str; 2]; 4] =
    [["phase", "feedback"], ["phase", "description"], ["feature", "name"], ["task", "feedback"]];

/// How values are written into the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// As they are.
    None,
    /// Quoted for a POSIX shell.
    Shell,
}

/// Why a template cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", help.as_ref().map(|help| format!(": {help}")).unwrap_or_default())]
pub struct TemplateError {
    pub message: String,
    /// The bytes of the template that it is about.
    pub span: Range<usize>,
    /// What would mend it.
    pub help: Option<String>,
}

/// Fills in a template. Text without `{{` comes back as it is.
pub fn render(template: &str, values: &Value, escape: Escape) -> Result<String, TemplateError> {
    if !template.contains("{{") {
        return Ok(template.to_owned());
    }
    let mut filled = String::with_capacity(template.len() + 64);
    for piece in pieces(template, escape) {
        match piece? {
            Piece::Text(text) => filled.push_str(text),
            Piece::Value(tag) => {
                let value = match tag.path.find(values) {
                    Some(value) => value,
                    None if tag.path.is_one_of(&MAY_BE_ABSENT) => path::Found::Value(&Value::Null),
                    None => {
                        let message = format!("`{}` is not known here", tag.path);
                        return Err(TemplateError { message, span: tag.span, help: tag.path.help(values) });
                    }
                };
                match tag.place {
                    shell::Place::Text => value.write(&mut filled),
                    shell::Place::Word => shell::write_word(&value.text(), &mut filled),
                    shell::Place::SingleQuotes => shell::write_in_single_quotes(&value.text(), &mut filled),
                    shell::Place::DoubleQuotes => shell::write_in_double_quotes(&value.text(), &mut filled),
                }
            }
        }
    }
    Ok(filled)
}

/// A text as a template, or a part of a document, that gives just this text.
pub fn escaped(text: &str) -> String {
    text.replace("{{", "\\{{")
}

/// Whether a prompt or path can be filled in, as far as that can be known before there are values.
pub fn check(template: &str) -> Result<(), TemplateError> {
    faults(template, Escape::None, Roots::Task).into_iter().next().map_or(Ok(()), Err)
}

/// Whether a shell command can be filled in, as far as that can be known before there are values.
pub fn check_shell(template: &str) -> Result<(), TemplateError> {
    faults(template, Escape::Shell, Roots::Task).into_iter().next().map_or(Ok(()), Err)
}

/// What the paths of a template begin with, such as `vars` or `feature`.
pub fn roots(template: &str, escape: Escape) -> BTreeSet<String> {
    pieces(template, escape)
        .filter_map(|piece| match piece {
            Ok(Piece::Value(tag)) => Some(tag.path.root().to_owned()),
            Ok(Piece::Text(_)) | Err(_) => None,
        })
        .collect()
}

/// Everything that is wrong with a template before there are values.
pub(crate) fn faults(template: &str, escape: Escape, roots: Roots) -> Vec<TemplateError> {
    let mut faults = Vec::new();
    for piece in pieces(template, escape) {
        match piece {
            Ok(Piece::Text(_)) => {}
            Ok(Piece::Value(tag)) => {
                let root = tag.path.root();
                let names = roots.names();
                if !names.contains(&root) {
                    let near = if ROOTS.contains(&root) { None } else { suggest::did_you_mean(root, names.iter().copied()) };
                    let help = near.or_else(|| {
                        let braces = if ROOTS.contains(&root) { "" } else { "; write `\\{{` for the braces themselves" };
                        Some(format!("a path here begins with one of {}{braces}", names.join(", ")))
                    });
                    let message = format!("`{}` {}", tag.path, roots.why_not(root));
                    faults.push(TemplateError { message, span: tag.span, help });
                }
            }
            Err(fault) => faults.push(fault),
        }
    }
    faults
}

/// The variables that a template names, with their places.
pub(crate) fn vars(template: &str, escape: Escape) -> Vec<(String, Range<usize>)> {
    pieces(template, escape)
        .filter_map(|piece| match piece {
            Ok(Piece::Value(tag)) => tag.path.variable().map(|name| (name.to_owned(), tag.span)),
            Ok(Piece::Text(_)) | Err(_) => None,
        })
        .collect()
}

/// The paths that a shell command names, with their places.
pub fn tags(command: &str) -> Vec<(String, Range<usize>)> {
    pieces(command, Escape::Shell)
        .filter_map(|piece| match piece {
            Ok(Piece::Value(tag)) => Some((tag.path.to_string(), tag.span)),
            Ok(Piece::Text(_)) | Err(_) => None,
        })
        .collect()
}

/// What a path of a template needs to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// The outputs of a phase, or of one of its tasks.
    Output {
        phase: String,
        /// The task, where one is named.
        task: Option<String>,
    },
    /// The item that a task is done for.
    Item,
}

/// What the paths of a template need to be there, with their places.
pub(crate) fn references(template: &str, escape: Escape) -> Vec<(Reference, Range<usize>)> {
    pieces(template, escape)
        .filter_map(|piece| match piece {
            Ok(Piece::Value(tag)) => tag.path.reference().map(|reference| (reference, tag.span)),
            Ok(Piece::Text(_)) | Err(_) => None,
        })
        .collect()
}

/// A value that another shell or interpreter reads as code.
pub(crate) struct ReadTwice {
    pub(crate) path: String,
    pub(crate) span: Range<usize>,
    /// What reads it: `sh -c`, `eval`.
    pub(crate) reader: String,
}

/// The values of a shell command that are quoted for its own shell, and then read as code once more.
pub(crate) fn read_twice(command: &str) -> Vec<ReadTwice> {
    let tags = tags(command);
    let code = if tags.is_empty() { Vec::new() } else { nested::code(command) };
    let reader = |span: &Range<usize>| {
        code.iter().find(|code| code.span.start <= span.start && span.end <= code.span.end).map(|code| code.reader.clone())
    };
    tags.into_iter().filter_map(|(path, span)| Some(ReadTwice { reader: reader(&span)?, path, span })).collect()
}

/// Something in a command that looks like a misspelt path of ours.
pub(crate) struct NearMiss {
    pub(crate) span: Range<usize>,
    /// What was probably meant.
    pub(crate) meant: String,
}

/// What in a shell command is left as it is, and was probably meant to be filled in.
pub(crate) fn near_misses(command: &str) -> Vec<NearMiss> {
    let mut found = Vec::new();
    let mut scanner = shell::Scanner::new(command);
    let mut at = 0;
    while let Some(open) = command[at..].find("{{").map(|open| at + open) {
        let Some(close) = command[open..].find("}}").map(|close| open + close) else { break };
        at = open + 1;
        let inner = &command[open + 2..close];
        let root = path::root_of(inner);
        // `${{…}}` belongs to somebody else, whatever is in it.
        if ROOTS.contains(&root) || command[..open].ends_with('$') {
            continue;
        }
        let Some(meant) = suggest::misspelt(root, ROOTS) else { continue };
        let span = open..close + 2;
        if scanner.place(span.clone()) != Ok(None) {
            let meant = crate::spec::shown(&inner.trim().replacen(root, meant, 1));
            found.push(NearMiss { span, meant: format!("{{{{{meant}}}}}") });
        }
        at = close + 2;
    }
    found
}

/// The literal text of a template, with each value standing as one ordinary letter; for checks of paths.
pub(crate) fn outline(template: &str) -> String {
    pieces(template, Escape::None)
        .map(|piece| match piece {
            Ok(Piece::Text(text)) => text,
            Ok(Piece::Value(_)) | Err(_) => "x",
        })
        .collect()
}

/// A part of a template.
enum Piece<'t> {
    Text(&'t str),
    Value(Tag),
}

/// A `{{path}}` that is ours.
struct Tag {
    path: Path,
    span: Range<usize>,
    place: shell::Place,
}

fn pieces(template: &str, escape: Escape) -> impl Iterator<Item = Result<Piece<'_>, TemplateError>> {
    Pieces { template, at: 0, pending: None, shell: (escape == Escape::Shell).then(|| shell::Scanner::new(template)) }
}

struct Pieces<'t> {
    template: &'t str,
    at: usize,
    pending: Option<Result<Piece<'t>, TemplateError>>,
    shell: Option<shell::Scanner<'t>>,
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Result<Piece<'t>, TemplateError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(pending) = self.pending.take() {
            return Some(pending);
        }
        let begin = self.at;
        let mut search = begin;
        while let Some(found) = self.template[search..].find("{{").map(|found| search + found) {
            let step = match &mut self.shell {
                None => step_in_text(self.template, found),
                Some(scanner) => step_in_shell(self.template, found, scanner),
            };
            match step {
                Step::NotOurs(next) => search = next,
                Step::Braces { backslash } => {
                    // The backslash goes, the braces stay as text.
                    self.at = found + 2;
                    self.pending = Some(Ok(Piece::Text("{{")));
                    return Some(Ok(Piece::Text(&self.template[begin..backslash])));
                }
                Step::Tag { end, piece } => {
                    self.at = end;
                    if found == begin {
                        return Some(piece);
                    }
                    self.pending = Some(piece);
                    return Some(Ok(Piece::Text(&self.template[begin..found])));
                }
            }
        }
        self.at = self.template.len();
        (begin < self.at).then(|| Ok(Piece::Text(&self.template[begin..])))
    }
}

/// What stands at a `{{`.
enum Step<'t> {
    /// Text; look on from here.
    NotOurs(usize),
    /// Braces that were meant as such.
    Braces { backslash: usize },
    /// A path, or something that should have been one.
    Tag { end: usize, piece: Result<Piece<'t>, TemplateError> },
}

fn step_in_text(template: &str, found: usize) -> Step<'_> {
    if template[..found].ends_with('\\') {
        return Step::Braces { backslash: found - 1 };
    }
    let Some(close) = template[found..].find("}}").map(|close| found + close) else {
        return Step::Tag { end: found + 2, piece: Err(not_closed(found)) };
    };
    let span = found..close + 2;
    let inner = &template[found + 2..close];
    let piece = match Path::parse(inner) {
        Some(path) => Ok(Piece::Value(Tag { path, span, place: shell::Place::Text })),
        None => Err(not_a_path(inner, span)),
    };
    Step::Tag { end: close + 2, piece }
}

fn step_in_shell<'t>(template: &'t str, found: usize, scanner: &mut shell::Scanner<'t>) -> Step<'t> {
    let Some(close) = template[found..].find("}}").map(|close| found + close) else { return Step::NotOurs(template.len()) };
    let inner = &template[found + 2..close];
    if !ROOTS.contains(&path::root_of(inner)) {
        // `{{{vars.x}}}` holds a tag of ours one brace further on.
        return Step::NotOurs(found + 1);
    }
    let span = found..close + 2;
    let piece = match (scanner.place(span.clone()), Path::parse(inner)) {
        (_, None) => Err(not_a_path(inner, span)),
        (Ok(Some(place)), Some(path)) => Ok(Piece::Value(Tag { path, span, place })),
        (Ok(None), Some(_)) => return Step::NotOurs(close + 2),
        (Err(reason), Some(path)) => Err(TemplateError {
            message: format!("`{path}` stands {reason}, where its value cannot be quoted safely"),
            span,
            help: Some(format!("pass the value through `env`, such as VALUE: \"{{{{{path}}}}}\", and use \"$VALUE\" here")),
        }),
    };
    Step::Tag { end: close + 2, piece }
}

fn not_closed(found: usize) -> TemplateError {
    TemplateError {
        message: "`{{` is not closed".into(),
        span: found..found + 2,
        help: Some("close it with `}}`, or write `\\{{` for the braces themselves".into()),
    }
}

fn not_a_path(inner: &str, span: Range<usize>) -> TemplateError {
    let inner = inner.trim();
    let help = if inner.starts_with(['#', '/', '^', '>', '!', '&', '{', '*']) || inner.contains(' ') {
        "only paths such as {{vars.name}} can be filled in; compute anything else in a script"
    } else {
        "a path looks like {{vars.name}} or {{outputs.phase.task}}"
    };
    TemplateError { message: format!("`{}` is not a path", crate::spec::shown(inner)), span, help: Some(help.into()) }
}
