//! A hold as a person sees it before answering: the question, what must be said with it, the files, the options.

use crate::columns;
use crate::diff_text::{self, Cut};
use crate::error::CommandError;
use crate::print::{FAINT, STRONG, WARNING, styled};
use crate::tree::Size;
use anstream::adapter::strip_str;
use lockgate::sanitize;
use lockgate::view::{self, DiffView, FileView, HoldView};
use lockgate_engine::hold::{Hold, HoldKind};
use lockgate_engine::run::Run;
use lockgate_engine::words::counted;
use lockgate_runner::runtime::{Clock as _, SystemClock};
use lockgate_store::Store;

/// So many files are named however small the window is.
const FILES_NAMED: usize = 3;

/// Fewer whole lines than this say less of a file than the beginnings of more.
const LINES_WORTH_THEIR_ROWS: usize = 3;

/// What stands before everything about a file.
const INDENT: &str = "  ";

/// How many columns stand before each line of a file: the indent, a bar and a space.
const BESIDE_LINES: usize = INDENT.len() + 2;

/// A hold with its files as they were when it was opened.
pub(crate) struct HoldText {
    question: String,
    diff: Option<DiffView>,
    files: Vec<FileView>,
    options: String,
}

impl HoldText {
    /// What is shown of a hold.
    pub(crate) async fn of(run: &Run, hold: &Hold, store: &dyn Store) -> Result<Self, CommandError> {
        let view = HoldView::with_previews(hold, store).await?;
        let mut question = format!("\n{}\n", styled(STRONG, title(run, hold)));
        match &hold.asked {
            Some(asked) => question += &format!("{}\n", sanitize::lines(asked.prompt().trim_end())),
            None => question += &format!("{}\n", sanitize::lines(&hold.prompt)),
        }
        for note in &hold.notes {
            question += &format!("{} {}\n", styled(WARNING, "note:"), crate::run_text::hanging(note, "      "));
        }
        question.extend(crate::run_text::deadline_line(&view, SystemClock.now()).map(|line| format!("{line}\n")));
        question.extend(crate::run_text::previously(&view).map(|line| format!("{line}\n")));
        let mut options = String::from("\n");
        for (at, choice) in hold.options.iter().enumerate() {
            let before = hold.previous_choice().is_some_and(|previous| previous.id == choice.id);
            let before = if before { " (previous answer)" } else { "" };
            options += &format!("  {}{before}\n", sanitize::line(&view::option_line(at, choice)));
            let said = hold.asked.iter().flat_map(|asked| asked.pros_and_cons(&choice.id));
            options.extend(said.map(|said| format!("     {}\n", crate::run_text::hanging(&said, "     "))));
        }
        if let Some(stop) = hold.stop() {
            let line = format!("{}: {} (Ctrl+C leaves it for later)", stop.id, stop.label);
            options += &format!("\n  {}\n", styled(FAINT, sanitize::line(&line)));
        }
        Ok(Self { question, diff: view.diff, files: view.files, options })
    }

    /// The whole as text. Of the files only so much is shown that the question and the options stay in sight, with so many rows
    /// free below them.
    pub(crate) fn text(&self, size: Size, below: usize) -> String {
        let taken = rows(&self.question, size) + rows(&self.options, size) + below;
        let room = size.rows.saturating_sub(taken);
        let diff = self.diff_in(size, room);
        let files = self.files_in(size, room.saturating_sub(rows(&diff, size)));
        format!("{}{files}{diff}{}", self.question, self.options)
    }

    /// The change in so many rows: with fewer lines of its patch, then with fewer files. How much changed is always shown.
    fn diff_in(&self, size: Size, room: usize) -> String {
        let Some(diff) = &self.diff else { return String::new() };
        // Files next to it need some of the room.
        let room = if self.files.is_empty() { room } else { room / 2 };
        let short = diff_text::SHORT;
        let shown = |cut: Cut| format!("\n{}", diff_text::cut(diff, INDENT, Cut { columns: size.columns, ..cut }));
        let lines = (0..=short.lines).rev().map(|lines| Cut { lines, ..short });
        let files = (0..short.files).rev().map(|files| Cut { lines: 0, files, ..short });
        lines
            .chain(files)
            .map(shown)
            .find(|text| rows(text, size) <= room)
            .unwrap_or_else(|| shown(Cut { lines: 0, files: 0, ..short }))
    }

    /// The files in so many rows: with fewer lines of each, then with the beginnings of lines, then without any, then only the
    /// first of them.
    fn files_in(&self, size: Size, room: usize) -> String {
        let longest = self.files.iter().filter_map(|file| Some(file.preview.as_ref()?.lines.len())).max().unwrap_or(0);
        let all = |most: usize, wide: usize| self.files.iter().map(|file| format!("\n{}", cut(file, most, wide))).collect();
        let whole = (LINES_WORTH_THEIR_ROWS.min(longest).max(1)..=longest).rev().map(|most| all(most, usize::MAX));
        let beginnings = (1..=longest).rev().map(|most| all(most, size.columns));
        let named = std::iter::once_with(|| self.named(self.files.len()));
        let fitting = whole.chain(beginnings).chain(named).find(|text: &String| rows(text, size) <= room);
        // One row stays empty, and one says how many are left out.
        fitting.unwrap_or_else(|| self.named(room.saturating_sub(2).max(FILES_NAMED)))
    }

    /// The first files without what is in them.
    fn named(&self, count: usize) -> String {
        let (named, left) = self.files.split_at(count.min(self.files.len()));
        let mut text: String = named.iter().map(|file| cut(file, 0, 0)).collect();
        if !left.is_empty() {
            text += &format!("{INDENT}{}\n", styled(FAINT, format_args!("… and {}", counted(left.len(), "more file"))));
        }
        if text.is_empty() { text } else { format!("\n{text}") }
    }
}

/// A file with no more than so many of its lines, which take no more than so many columns.
fn cut(file: &FileView, most: usize, wide: usize) -> String {
    let mut file = file.clone();
    if let Some(preview) = &mut file.preview {
        let omitted = preview.lines.len().saturating_sub(most);
        preview.lines.truncate(most);
        for line in &mut preview.lines {
            *line = columns::fitted(&sanitize::line(&line.replace('\t', "    ")), wide.saturating_sub(BESIDE_LINES));
        }
        // Its size says enough where none of its lines is shown.
        preview.more = if most == 0 { 0 } else { preview.more + omitted };
    }
    crate::run_text::file_text(&file, INDENT)
}

fn rows(text: &str, size: Size) -> usize {
    columns::rows(&strip_str(text).to_string(), size.columns)
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
    };
    let phase = hold.scope.phase().map(|id| run.workflow.phase(id.as_str()).map_or(id.as_str(), |phase| phase.title()));
    let phase = phase.map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    sanitize::line(&format!("{what}{phase} (run {}, hold {}@{})", run.id, hold.id, hold.revision)).into_owned()
}
