//! Renders a hold before it is answered: the question, its notes, the files, the options.

use super::fit::{Level, Parts, diff_in, files_in};
use super::hint;
use crate::columns::{self, fitted, folded};
use crate::error::CommandError;
use crate::print::{FAINT, STRONG, WARNING, styled};
use anstyle::Style;
use lockgate::view::{self, HoldView};
use lockgate::{human_time, sanitize};
use lockgate_engine::hold::{Hold, HoldKind};
use lockgate_engine::id::HoldId;
use lockgate_engine::run::Run;
use lockgate_engine::time::Timestamp;
use lockgate_store::Store;

/// The indentation of files and options.
pub(super) const INDENT: &str = "  ";

/// The indentation of an option's details.
const BELOW_OPTION: &str = "     ";

/// The label of notes.
const NOTE: &str = "note:";

/// A hold with its files as they were when it was opened.
pub(crate) struct HoldText {
    pub(super) hold: HoldId,
    title: String,
    text: String,
    notes: Vec<String>,
    view: HoldView,
    options: Vec<OptionText>,
    stop: Option<String>,
}

/// An option and its details.
struct OptionText {
    line: String,
    details: Vec<String>,
}

impl HoldText {
    pub(crate) async fn of(run: &Run, hold: &Hold, store: &dyn Store) -> Result<Self, CommandError> {
        let view = HoldView::with_previews(hold, store).await?;
        let text = hold.question.as_ref().map_or_else(|| hold.prompt.clone(), |asked| asked.prompt().trim_end().to_owned());
        let options = hold.options.iter().enumerate().map(|(at, choice)| {
            let before = hold.previous_choice().is_some_and(|previous| previous.id == choice.id);
            let before = if before { " (previous answer)" } else { "" };
            OptionText {
                line: format!("{}{before}", sanitize::line(&view::option_line(at, choice))),
                details: hold.question.iter().flat_map(|asked| asked.pros_and_cons(&choice.id)).collect(),
            }
        });
        Ok(Self {
            hold: hold.id.clone(),
            title: title(run, hold),
            text: sanitize::lines(&text).into_owned(),
            notes: hold.notes.iter().map(|note| sanitize::lines(note.trim_end()).into_owned()).collect(),
            options: options.collect(),
            stop: hold.stop().map(|stop| sanitize::line(&format!("{}: {}", stop.id, stop.label)).into_owned()),
            view,
        })
    }

    /// The hint that Ctrl+O shows more.
    pub(super) fn in_full_hint(&self) -> Option<&'static str> {
        hint::in_full(!self.view.files.is_empty(), self.view.diff.is_some())
    }

    /// The question without files and options, for a pager.
    pub(super) fn in_full(&self, now: Timestamp) -> String {
        self.body(now, usize::MAX).iter().map(|row| format!("{row}\n")).collect()
    }

    /// The parts as rows of at most `wide` columns.
    pub(super) fn parts(&self, now: Timestamp, position: Option<&str>, wide: usize, level: Level, files: usize) -> Parts {
        let title = match position {
            Some(position) => format!("{position} · {}", self.title),
            None => self.title.clone(),
        };
        let title = if level.is_roomy() { folded(&title, wide) } else { vec![fitted(&title, wide)] };
        Parts {
            title: if level.has_title() { styled_rows(STRONG, title) } else { Vec::new() },
            body: self.body(now, wide),
            files: self.shown_rows(wide, files, level),
            options: self.options.iter().map(|option| option.rows(wide, level)).collect(),
            stop: self.stop_rows(wide, level),
        }
    }

    /// The rows of the files and the change, which share `room`.
    fn shown_rows(&self, wide: usize, room: usize, level: Level) -> Vec<String> {
        let files = &self.view.files;
        let Some(diff) = &self.view.diff else { return files_in(files, wide, room, level) };
        let diff = diff_in(diff, wide, if files.is_empty() { room } else { room / 2 }, level);
        let mut rows = files_in(files, wide, room.saturating_sub(diff.len()), level);
        rows.extend(diff);
        rows
    }

    fn body(&self, now: Timestamp, wide: usize) -> Vec<String> {
        let mut rows = folded(&self.text, wide);
        for note in &self.notes {
            let indented = format!("{NOTE} {}", note.replace('\n', "\n      "));
            rows.extend(folded(&indented, wide).into_iter().map(|row| match row.strip_prefix(NOTE) {
                Some(rest) => format!("{}{rest}", styled(WARNING, NOTE)),
                None => row,
            }));
        }
        rows.extend(self.view.deadline_line(now).into_iter().flat_map(|line| styled_rows(WARNING, folded(&line, wide))));
        rows.extend(self.view.answered_before().into_iter().flat_map(|line| folded(&human_time::localize(&line), wide)));
        rows
    }

    fn stop_rows(&self, wide: usize, level: Level) -> Vec<String> {
        let Some(stop) = &self.stop else { return Vec::new() };
        let line = format!("{INDENT}{stop} (Ctrl+C leaves it for later)");
        match level.is_roomy() {
            true => [String::new()].into_iter().chain(styled_rows(FAINT, folded(&line, wide))).collect(),
            false => styled_rows(FAINT, vec![fitted(&line, wide)]),
        }
    }
}

impl OptionText {
    fn rows(&self, wide: usize, level: Level) -> Vec<String> {
        let line = format!("{INDENT}{}", self.line);
        if !level.has_details() {
            return vec![fitted(&line, wide)];
        }
        let details = self.details.iter().map(|said| format!("{BELOW_OPTION}{}", crate::run_text::hanging(said, BELOW_OPTION)));
        folded(&line, wide).into_iter().chain(details.flat_map(|said| folded(&said, wide))).collect()
    }
}

/// Applies a style to each row separately, so that a drawing can start with any row.
pub(super) fn styled_rows(style: Style, rows: Vec<String>) -> Vec<String> {
    rows.into_iter().map(|row| styled(style, row)).collect()
}

/// A line of a file next to its bar, wrapped into rows.
pub(super) fn file_rows(line: &str, wide: usize) -> Vec<String> {
    let bar = format!("{INDENT}{} ", styled(FAINT, "│"));
    let text = sanitize::line(&line.replace('\t', "    ")).into_owned();
    let room = wide.saturating_sub(INDENT.len() + 2).max(1);
    let (mut rows, mut rest) = (Vec::new(), text.as_str());
    loop {
        let piece = columns::first(rest, room);
        let end = if piece.is_empty() { rest.chars().next().map_or(0, char::len_utf8) } else { piece.len() };
        rows.push(format!("{bar}{}", &rest[..end]));
        rest = &rest[end..];
        if rest.is_empty() {
            return rows;
        }
    }
}

fn title(run: &Run, hold: &Hold) -> String {
    let what = match hold.kind {
        HoldKind::Checkpoint => "Checkpoint",
        HoldKind::Interrupted => "Interrupted",
        HoldKind::Failed => "Failed",
        HoldKind::Gaps => "Gaps",
        HoldKind::Budget => "Budget",
        HoldKind::Verify => "Verification",
        HoldKind::Decision => "Decision",
        HoldKind::Action => "Action",
        HoldKind::Authentication => "Authentication",
        HoldKind::Handover => "Handover",
        HoldKind::Escalation => "Escalation",
        HoldKind::Conflict => "Conflict",
    };
    let phase = hold.scope.phase().map(|id| run.workflow.phase(id.as_str()).map_or(id.as_str(), |phase| phase.title()));
    let phase = phase.map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    sanitize::line(&format!("{what}{phase} (run {}, hold {}@{})", run.id, hold.id, hold.revision)).into_owned()
}
