//! Text with `{{path}}` in it: checked when a workflow is read, rendered when it runs.
//!
//! A path is `vars.name`, `outputs.build.result[0]`, `outputs['phase.one'].x` or `vars.list.length`. A path that does not exist
//! is an error that names it. In a prompt or a path every `{{…}}` is a tag, and `\{{` is a literal `{{`. In a shell command only
//! `{{…}}` that starts with one of [`ROOTS`] is a tag, so that `docker ps --format '{{.Names}}'` stays unchanged; there each
//! value becomes one word, whatever it contains. Whole documents also have loops and conditions: [`mustache`].

pub mod mustache;
mod nested;
mod path;
mod shell;

use crate::spec::suggest;
use path::Path;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;

/// The first names of paths.
pub const ROOTS: [&str; 11] =
    ["context", "vars", "feature", "output_dir", "phase", "workflow", "outputs", "run", "task", "flags", "item"];

/// Where a template is used, which determines the roots of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roots {
    Task,
    /// In a checkpoint, which does not belong to a task.
    Checkpoint,
    /// In the output directory, which is determined before anything runs.
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
            Self::Task => "is not a known path",
            Self::Checkpoint if matches!(root, "task" | "item") => {
                "is not available in a checkpoint, which does not belong to a task"
            }
            Self::Checkpoint => "is not a known path",
            Self::OutputDir if ROOTS.contains(&root) => "is not known when the output directory is created",
            Self::OutputDir => "is not a known path",
        }
    }
}

/// Known paths whose value may be absent. They render as empty text.
const MAY_BE_ABSENT: [[&str; 2]; 4] =
    [["phase", "feedback"], ["phase", "description"], ["feature", "name"], ["task", "feedback"]];

/// How values are inserted into the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    None,
    /// Quoted for a POSIX shell.
    Shell,
}

/// Why a template cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", help.as_ref().map(|help| format!(": {help}")).unwrap_or_default())]
pub struct TemplateError {
    pub message: String,
    /// The byte range in the template.
    pub span: Range<usize>,
    /// How to fix it.
    pub help: Option<String>,
}

/// Renders a template. Text without `{{` is returned unchanged.
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
                        let message = format!("`{}` is not defined here", tag.path);
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

/// Escapes text, so that as a template or as part of a document it renders as itself.
pub fn escaped(text: &str) -> String {
    text.replace("{{", "\\{{")
}

/// Checks a prompt or path, as far as possible without values.
pub fn check(template: &str) -> Result<(), TemplateError> {
    faults(template, Escape::None, Roots::Task).into_iter().next().map_or(Ok(()), Err)
}

/// Checks a shell command, as far as possible without values.
pub fn check_shell(template: &str) -> Result<(), TemplateError> {
    faults(template, Escape::Shell, Roots::Task).into_iter().next().map_or(Ok(()), Err)
}

/// The roots of the paths in a template, such as `vars` or `feature`.
pub fn roots(template: &str, escape: Escape) -> BTreeSet<String> {
    pieces(template, escape)
        .filter_map(|piece| match piece {
            Ok(Piece::Value(tag)) => Some(tag.path.root().to_owned()),
            Ok(Piece::Text(_)) | Err(_) => None,
        })
        .collect()
}

/// All errors of a template that can be found without values.
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
                        let braces = if ROOTS.contains(&root) { "" } else { "; write `\\{{` for literal braces" };
                        Some(format!("a path here starts with one of {}{braces}", names.join(", ")))
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

/// The variables in a template, with their positions.
pub(crate) fn vars(template: &str, escape: Escape) -> Vec<(String, Range<usize>)> {
    pieces(template, escape)
        .filter_map(|piece| match piece {
            Ok(Piece::Value(tag)) => tag.path.variable().map(|name| (name.to_owned(), tag.span)),
            Ok(Piece::Text(_)) | Err(_) => None,
        })
        .collect()
}

/// The paths in a shell command, with their positions.
pub fn tags(command: &str) -> Vec<(String, Range<usize>)> {
    pieces(command, Escape::Shell)
        .filter_map(|piece| match piece {
            Ok(Piece::Value(tag)) => Some((tag.path.to_string(), tag.span)),
            Ok(Piece::Text(_)) | Err(_) => None,
        })
        .collect()
}

/// Something that must exist for a path to have a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// The outputs of a phase, or of one of its tasks.
    Output { phase: String, task: Option<String> },
    /// The item of a fan-out.
    Item,
}

/// What must exist for the paths of a template to have values, with positions.
pub(crate) fn references(template: &str, escape: Escape) -> Vec<(Reference, Range<usize>)> {
    pieces(template, escape)
        .filter_map(|piece| match piece {
            Ok(Piece::Value(tag)) => tag.path.reference().map(|reference| (reference, tag.span)),
            Ok(Piece::Text(_)) | Err(_) => None,
        })
        .collect()
}

/// A value that a nested shell or interpreter reads as code.
pub(crate) struct ReadTwice {
    pub(crate) path: String,
    pub(crate) span: Range<usize>,
    /// The program that reads it: `sh -c`, `eval`.
    pub(crate) reader: String,
}

/// The values in a shell command that are quoted for its own shell and then read as code by another one.
pub(crate) fn read_twice(command: &str) -> Vec<ReadTwice> {
    let tags = tags(command);
    let code = if tags.is_empty() { Vec::new() } else { nested::code(command) };
    let reader = |span: &Range<usize>| {
        code.iter().find(|code| code.span.start <= span.start && span.end <= code.span.end).map(|code| code.reader.clone())
    };
    tags.into_iter().filter_map(|(path, span)| Some(ReadTwice { reader: reader(&span)?, path, span })).collect()
}

/// A part of a command that looks like a misspelled path.
pub(crate) struct NearMiss {
    pub(crate) span: Range<usize>,
    /// The suggested path.
    pub(crate) meant: String,
}

/// The parts of a shell command that are left unchanged, but were probably meant as tags.
pub(crate) fn near_misses(command: &str) -> Vec<NearMiss> {
    let mut found = Vec::new();
    let mut scanner = shell::Scanner::new(command);
    let mut at = 0;
    while let Some(open) = command[at..].find("{{").map(|open| at + open) {
        let Some(close) = command[open..].find("}}").map(|close| open + close) else { break };
        at = open + 1;
        let inner = &command[open + 2..close];
        let root = path::root_of(inner);
        // `${{…}}` belongs to another tool, whatever is in it.
        if ROOTS.contains(&root) || command[..open].ends_with('$') {
            continue;
        }
        let Some(meant) = suggest::typo_of(root, ROOTS) else { continue };
        let span = open..close + 2;
        if scanner.place(span.clone()) != Ok(None) {
            let meant = crate::spec::shown(&inner.trim().replacen(root, meant, 1));
            found.push(NearMiss { span, meant: format!("{{{{{meant}}}}}") });
        }
        at = close + 2;
    }
    found
}

/// The literal text of a template, with each value replaced by one ordinary letter; used to check paths.
pub(crate) fn outline(template: &str) -> String {
    pieces(template, Escape::None)
        .map(|piece| match piece {
            Ok(Piece::Text(text)) => text,
            Ok(Piece::Value(_)) | Err(_) => "x",
        })
        .collect()
}

enum Piece<'t> {
    Text(&'t str),
    Value(Tag),
}

/// A `{{path}}`.
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
                    // The backslash is dropped, and the braces stay as text.
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

/// The kind of tag at a `{{`.
enum Step<'t> {
    /// Plain text; continue the search here.
    NotOurs(usize),
    /// Escaped braces.
    Braces { backslash: usize },
    /// A path, or an invalid tag.
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
        // `{{{vars.x}}}` contains a tag one brace further on.
        return Step::NotOurs(found + 1);
    }
    let span = found..close + 2;
    let piece = match (scanner.place(span.clone()), Path::parse(inner)) {
        (_, None) => Err(not_a_path(inner, span)),
        (Ok(Some(place)), Some(path)) => Ok(Piece::Value(Tag { path, span, place })),
        (Ok(None), Some(_)) => return Step::NotOurs(close + 2),
        (Err(reason), Some(path)) => Err(TemplateError {
            message: format!("`{path}` is {reason}, where its value cannot be quoted safely"),
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
        help: Some("close it with `}}`, or write `\\{{` for literal braces".into()),
    }
}

fn not_a_path(inner: &str, span: Range<usize>) -> TemplateError {
    let inner = inner.trim();
    let help = if inner.starts_with(['#', '/', '^', '>', '!', '&', '{', '*']) || inner.contains(' ') {
        "only paths such as {{vars.name}} are supported; compute anything else in a script"
    } else {
        "a path looks like {{vars.name}} or {{outputs.phase.task}}"
    };
    TemplateError { message: format!("`{}` is not a path", crate::spec::shown(inner)), span, help: Some(help.into()) }
}
