//! Text with `{{path}}` in it: checked when a workflow is read, filled in when it runs.
//!
//! A path is `vars.name`, `outputs.build.result[0]`, `outputs['phase.one'].x` or `vars.list.length`. A path that leads
//! nowhere is an error that names it. In a prompt or a path every `{{…}}` is ours, and `\{{` stands for the braces
//! themselves. In a shell command only `{{…}}` that begins with one of [`ROOTS`] is ours, so that
//! `docker ps --format '{{.Names}}'` stays what it is; there each value becomes one word, whatever it holds.

mod path;
mod shell;

use crate::spec::suggest;
use path::Path;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;

/// What a path may begin with.
pub const ROOTS: [&str; 10] =
    ["context", "vars", "feature", "output_dir", "phase", "workflow", "outputs", "run", "task", "flags"];

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
#[error("{message}")]
pub struct TemplateError {
    /// What is wrong.
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
                let value = tag.path.find(values).ok_or_else(|| TemplateError {
                    message: format!("`{}` is not known here", tag.path),
                    span: tag.span.clone(),
                    help: tag.path.nearest(values).map(|near| format!("did you mean `{near}`?")),
                })?;
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

/// Whether a prompt or path can be filled in, as far as that can be known before there are values.
pub fn check(template: &str) -> Result<(), TemplateError> {
    faults(template, Escape::None).into_iter().next().map_or(Ok(()), Err)
}

/// Whether a shell command can be filled in, as far as that can be known before there are values.
pub fn check_shell(template: &str) -> Result<(), TemplateError> {
    faults(template, Escape::Shell).into_iter().next().map_or(Ok(()), Err)
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
pub(crate) fn faults(template: &str, escape: Escape) -> Vec<TemplateError> {
    let mut faults = Vec::new();
    for piece in pieces(template, escape) {
        match piece {
            Ok(Piece::Text(_)) => {}
            Ok(Piece::Value(tag)) => {
                let root = tag.path.root();
                if !ROOTS.contains(&root) {
                    let help = suggest::did_you_mean(root, ROOTS).or_else(|| {
                        Some(format!("a path begins with one of {}; write `\\{{{{` for the braces themselves", ROOTS.join(", ")))
                    });
                    faults.push(TemplateError { message: format!("`{}` leads nowhere", tag.path), span: tag.span, help });
                }
            }
            Err(fault) => faults.push(fault),
        }
    }
    faults
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
        let fault = TemplateError {
            message: "`{{` is not closed".into(),
            span: found..found + 2,
            help: Some("close it with `}}`, or write `\\{{` for the braces themselves".into()),
        };
        return Step::Tag { end: found + 2, piece: Err(fault) };
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
            help: Some(format!("give the value a name under `env`, such as VALUE: \"{{{{{path}}}}}\", and use \"$VALUE\" here")),
        }),
    };
    Step::Tag { end: close + 2, piece }
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
