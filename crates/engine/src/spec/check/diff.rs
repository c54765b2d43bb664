//! `show_diff`: which git change a question shows.

use super::Checker;
use super::fields::{Format, Key, Shape, words};
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use crate::spec::suggest;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{DiffSince, ShowDiff};
use crate::template::Roots;

#[derive(Clone, Copy)]
enum Start {
    Phase,
    Run,
}

const STARTS: [(&str, Start); 2] = [("phase", Start::Phase), ("run", Start::Run)];

pub(super) const SHOW_DIFF_ABOUT: &str = "The git change that the answer is about: `true` or `phase` for what changed since the phase started, \
     `run` for what changed since the run started, or `{ since: REF, paths: [...] }`.";

/// `true`, a word, or a map that says more.
pub(super) static SHOW_DIFF_SHAPES: [Shape; 3] = [Shape::Boolean, Shape::Words(&words(&STARTS)), Shape::Map(&SHOW_DIFF)];

static SHOW_DIFF: Format = Format {
    name: "show_diff",
    what: "`show_diff`",
    known: &[
        Key::optional(
            "since",
            Shape::Filled,
            "`phase`, `run`, or a git revision such as `main`: the change since the current branch left it; a template.",
        )
        .default("phase"),
        Key::optional("paths", Shape::Texts, "Only changes of these files and directories, under the root; templates."),
    ],
    later: &[],
    rule: None,
};

impl Checker<'_, '_> {
    /// The git change that a question shows, if any.
    pub(super) fn show_diff(&mut self, node: &Node<'_>, roots: Roots) -> Option<ShowDiff> {
        if let Content::Scalar(scalar) = &*node.content {
            return match scalar.boolean() {
                Some(true) => Some(ShowDiff { since: DiffSince::Phase, paths: Vec::new() }),
                Some(false) => None,
                None => self.diff_start(node).map(|since| ShowDiff { since, paths: Vec::new() }),
            };
        }
        let fields = self.fields(node, &SHOW_DIFF)?;
        let since = match fields.get("since") {
            None => DiffSince::Phase,
            Some(node) => self.since(node, roots)?,
        };
        let paths = fields.get("paths").map(|node| self.paths(node, "the path to show", roots)).unwrap_or_default();
        Some(ShowDiff { since, paths })
    }

    /// A single word. Revisions are only accepted in the map, so that a misspelt word is not taken for one.
    fn diff_start(&mut self, node: &Node<'_>) -> Option<DiffSince> {
        let text = self.text(node, "`show_diff`")?;
        if let Some((_, start)) = STARTS.iter().find(|(word, _)| *word == text) {
            return Some(start.since());
        }
        let message = format!("`show_diff` must be true, false, phase, run or a map, not `{}`", shown(text));
        let known = ["true", "false"].into_iter().chain(words(&STARTS));
        let help = suggest::did_you_mean(text, known)
            .unwrap_or_else(|| format!("to compare with a git revision, write `show_diff: {{ since: {} }}`", shown(text)));
        self.error(ProblemCode::InvalidValue, &node.span, message).help(help);
        None
    }

    fn since(&mut self, node: &Node<'_>, roots: Roots) -> Option<DiffSince> {
        let text = self.filled(node, "`since`")?.trim();
        if let Some((_, start)) = STARTS.iter().find(|(word, _)| *word == text) {
            return Some(start.since());
        }
        if text.starts_with('-') || text.contains(char::is_control) {
            let message = format!("`{}` cannot be a git revision", shown(text));
            self.error(ProblemCode::InvalidValue, &node.span, message).help("name a branch, a tag or a commit, such as `main`");
            return None;
        }
        if text.contains("..") {
            let message = format!(
                "`{}` is a range: `since` names where the change starts, and it ends with the files as they are",
                shown(text)
            );
            self.error(ProblemCode::InvalidValue, &node.span, message).help("name one branch, tag or commit, such as `main`");
            return None;
        }
        self.template(node, "`since`", roots).map(|text| DiffSince::Ref(text.trim().to_owned()))
    }
}

impl Start {
    fn since(self) -> DiffSince {
        match self {
            Self::Phase => DiffSince::Phase,
            Self::Run => DiffSince::Run,
        }
    }
}
