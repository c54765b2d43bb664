//! Fits a question into the rows of a window.
//!
//! If not everything fits, the contents of files are dropped first, then empty rows and the details of options, then hints, then the
//! title. The options, the start of the question and the input row always stay. Omissions are marked.

use super::show::{INDENT, file_rows, styled_rows};
use crate::columns::{columns, fitted};
use crate::diff_text::{self, Cut};
use crate::print::{FAINT, STRONG, styled};
use anstream::adapter::strip_str;
use lockgate::sanitize;
use lockgate::view::{DiffView, FileView};
use lockgate_engine::plural::counted;

/// The minimum number of files that are named.
const FILES_NAMED: usize = 3;

/// Fewer complete lines than this say less about a file than the starts of more lines.
const LINES_WORTH_THEIR_ROWS: usize = 3;

/// The minimum number of rows of a long question before other parts are dropped.
const LEAST_OF_A_QUESTION: usize = 3;

/// How much of a question is shown, in decreasing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Everything, with empty rows between the parts.
    Roomy,
    /// No empty rows, and only the names of files.
    Dense,
    /// No details of options; files are only counted.
    Short,
    /// No hints.
    Bare,
    /// The start of the question, the options, and the input row.
    Least,
}

impl Level {
    pub(super) fn is_roomy(self) -> bool {
        self == Self::Roomy
    }

    pub(super) fn has_details(self) -> bool {
        self <= Self::Dense
    }

    pub(super) fn has_hints(self) -> bool {
        self <= Self::Short
    }

    pub(super) fn has_title(self) -> bool {
        self <= Self::Bare
    }
}

/// The rows of a question, part by part.
pub(super) struct Parts {
    pub(super) title: Vec<String>,
    pub(super) body: Vec<String>,
    pub(super) files: Vec<String>,
    pub(super) options: Vec<Vec<String>>,
    pub(super) stop: Vec<String>,
}

impl Parts {
    /// The number of rows without the question itself.
    pub(super) fn rows_without_body(&self, level: Level) -> usize {
        let options: usize = self.options.iter().map(Vec::len).sum();
        let gap = usize::from(level.is_roomy() && options > 0);
        self.title.len() + self.files.len() + gap + options + self.stop.len()
    }

    /// The minimum number of rows of the question at a level.
    pub(super) fn least_body(&self, level: Level) -> usize {
        match level {
            Level::Roomy | Level::Dense | Level::Short => self.body.len().min(LEAST_OF_A_QUESTION),
            Level::Bare | Level::Least => self.body.len().min(1),
        }
    }

    /// All rows, at most `room`. A long question is cut at the end, and long lists of options are cut around the chosen one.
    pub(super) fn rows(mut self, room: usize, level: Level, chosen: Option<usize>, wide: usize) -> Vec<String> {
        self.cut_options(room.saturating_sub(self.least_body(level)), chosen, wide);
        let others = self.rows_without_body(level);
        if others + self.body.len() > room {
            let kept = room.saturating_sub(others + 1);
            let left = self.body.len() - kept;
            self.body.truncate(kept);
            let said = format!("… and {}: Ctrl+O shows all", counted(left, "more row"));
            self.body.push(styled(FAINT, fitted(&said, wide)));
        }
        let mut rows = self.title;
        rows.extend(self.body);
        rows.extend(self.files);
        if level.is_roomy() && !self.options.is_empty() {
            rows.push(String::new());
        }
        rows.extend(self.options.into_iter().flatten());
        rows.extend(self.stop);
        rows
    }

    /// Drops options far from the chosen one until the rest fits.
    fn cut_options(&mut self, room: usize, chosen: Option<usize>, wide: usize) {
        let others = self.title.len() + self.files.len() + self.stop.len();
        let most = room.saturating_sub(others).max(1);
        let count = self.options.len();
        if self.options.iter().map(Vec::len).sum::<usize>() <= most || self.options.iter().any(|rows| rows.len() > 1) {
            return;
        }
        let kept = most.saturating_sub(1).max(1);
        let first = chosen.unwrap_or(0).saturating_sub(kept / 2).min(count - kept);
        self.options = self.options.drain(first..first + kept).collect();
        let said = format!("{INDENT}… {} more: number, label or arrows", count - kept);
        self.options.push(vec![styled(FAINT, fitted(&said, wide))]);
    }
}

/// The files in `room` rows: first with fewer lines each, then with the starts of lines, then names only, then only the first names,
/// then only the count.
pub(super) fn files_in(files: &[FileView], wide: usize, room: usize, level: Level) -> Vec<String> {
    match level {
        _ if files.is_empty() => Vec::new(),
        Level::Roomy => {
            let longest = files.iter().filter_map(|file| Some(file.preview.as_ref()?.lines.len())).max().unwrap_or(0);
            let all = |most: usize, is_whole: bool| -> Vec<String> {
                files.iter().flat_map(|file| [String::new()].into_iter().chain(file_with(file, most, wide, is_whole))).collect()
            };
            let whole = (LINES_WORTH_THEIR_ROWS.min(longest).max(1)..=longest).rev().map(|most| all(most, true));
            let beginnings = (1..=longest).rev().map(|most| all(most, false));
            let named = |count| [String::new()].into_iter().chain(named(files, count, wide)).collect();
            let all_named = std::iter::once_with(|| named(files.len()));
            let fitting = whole.chain(beginnings).chain(all_named).find(|rows| rows.len() <= room);
            // One row is empty, and one counts the omitted files.
            fitting.unwrap_or_else(|| named(room.saturating_sub(2).max(FILES_NAMED)))
        }
        Level::Dense => named(files, FILES_NAMED, wide),
        Level::Short | Level::Bare => {
            let said = format!("{INDENT}{}: Ctrl+O shows their contents", counted(files.len(), "file"));
            vec![styled(FAINT, fitted(&said, wide))]
        }
        Level::Least => Vec::new(),
    }
}

/// The change in `room` rows: first with fewer lines of the patch, then with fewer files. The totals always stay.
pub(super) fn diff_in(diff: &DiffView, wide: usize, room: usize, level: Level) -> Vec<String> {
    let short = diff_text::SHORT;
    let rows = |cut: Cut| -> Vec<String> {
        let text = diff_text::cut(diff, INDENT, Cut { columns: wide, ..cut });
        text.lines().map(|row| in_one_row(row, wide)).collect()
    };
    let least = Cut { lines: 0, files: 0, ..short };
    match level {
        Level::Roomy => {
            let lines = (0..=short.lines).rev().map(|lines| Cut { lines, ..short });
            let files = (0..short.files).rev().map(|files| Cut { lines: 0, files, ..short });
            let fitting = lines.chain(files).map(rows).find(|rows| rows.len() < room);
            [String::new()].into_iter().chain(fitting.unwrap_or_else(|| rows(least))).collect()
        }
        Level::Dense => rows(Cut { lines: 0, files: FILES_NAMED, ..short }),
        Level::Short | Level::Bare => rows(least),
        Level::Least => Vec::new(),
    }
}

/// Truncates a row that is too long, which also drops its colours.
fn in_one_row(row: &str, wide: usize) -> String {
    let plain = strip_str(row).to_string();
    if columns(&plain) <= wide { row.to_owned() } else { fitted(&plain, wide) }
}

/// The names of the first files.
fn named(files: &[FileView], count: usize, wide: usize) -> Vec<String> {
    let (named, left) = files.split_at(count.min(files.len()));
    let mut rows: Vec<String> = named.iter().map(|file| heading(file, wide)).collect();
    if !left.is_empty() {
        let said = format!("{INDENT}… and {}", counted(left.len(), "more file"));
        rows.push(styled(FAINT, fitted(&said, wide)));
    }
    rows
}

/// A file with at most `most` of its lines.
fn file_with(file: &FileView, most: usize, wide: usize, is_whole: bool) -> Vec<String> {
    let mut rows = vec![heading(file, wide)];
    let Some(preview) = &file.preview else { return rows };
    for line in preview.lines.iter().take(most) {
        let line_rows = file_rows(line, wide);
        match is_whole || line_rows.len() == 1 {
            true => rows.extend(line_rows),
            false => {
                let text = sanitize::line(&line.replace('\t', "    ")).into_owned();
                rows.extend(file_rows(&fitted(&text, wide.saturating_sub(INDENT.len() + 2)), wide));
            }
        }
    }
    let more = preview.more + preview.lines.len().saturating_sub(most);
    if more > 0 {
        rows.extend(styled_rows(FAINT, vec![fitted(&format!("{INDENT}│ … and {}", counted(more, "more line")), wide)]));
    }
    rows
}

fn heading(file: &FileView, wide: usize) -> String {
    let size = file.preview.as_ref().map(|preview| format!(" ({})", sanitize::line(&preview.size))).unwrap_or_default();
    let lead = format!("{INDENT}file ");
    let path = sanitize::line(&file.path);
    let room = wide.saturating_sub(columns(&lead) + columns(&size));
    let row = format!("{lead}{}{size}", styled(STRONG, fitted(&path, room.max(1))));
    if columns(&strip_str(&row).to_string()) <= wide { row } else { fitted(&format!("{lead}{path}"), wide) }
}
