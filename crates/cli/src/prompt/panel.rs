//! Renders an open question: the hold, hints, and the input row. It is a snapshot that can be drawn in any window.

use super::fit::{Level, Parts};
use super::line::{self, Line};
use super::show::{HoldText, styled_rows};
use super::{Position, hint};
use crate::columns::{columns, folded};
use crate::live::{Cursor, Frame, Question};
use crate::print::FAINT;
use lockgate_engine::id::HoldId;
use lockgate_engine::time::Timestamp;
use std::sync::Arc;

/// A snapshot of a question and its input.
#[derive(Clone)]
pub(crate) struct Panel {
    /// The hold, if the question is about one.
    shown: Option<Arc<HoldText>>,
    /// The position of the hold among others.
    pub(super) position: Option<Position>,
    pub(super) hints: Vec<&'static str>,
    /// The previous question with its answer.
    pub(super) settled: Option<String>,
    /// The available keys, unless the label names them.
    pub(super) keys: Option<String>,
    /// The result of the last key.
    pub(super) message: Option<String>,
    /// The text before the input.
    pub(super) label: String,
    pub(super) line: Line,
    /// The option chosen with the arrow keys.
    pub(super) chosen: Option<usize>,
}

impl Panel {
    pub(super) fn new(shown: Option<Arc<HoldText>>, label: impl Into<String>) -> Self {
        let hints = shown.as_ref().and_then(|shown| shown.in_full_hint()).into_iter().collect();
        Self {
            shown,
            position: None,
            hints,
            settled: None,
            keys: None,
            message: None,
            label: label.into(),
            line: Line::default(),
            chosen: None,
        }
    }

    /// A question with typed text, for a picture.
    pub(crate) fn typed(shown: HoldText, options: usize, typed: &str) -> Self {
        let mut panel = Self::new(Some(Arc::new(shown)), hint::question(options));
        panel.line.set(typed);
        panel
    }

    /// The rows below the options, the last of which is the input row, and the column of the cursor in it.
    fn tail(&self, wide: usize, level: Level) -> (Vec<String>, usize) {
        let mut rows = Vec::new();
        if level.has_hints() {
            rows.extend(self.hints.iter().flat_map(|hint| styled_rows(FAINT, folded(hint, wide))));
            rows.extend(self.settled.iter().flat_map(|settled| folded(settled, wide)));
            rows.extend(self.keys.iter().flat_map(|keys| styled_rows(FAINT, folded(keys, wide))));
        }
        rows.extend(self.message.iter().flat_map(|message| folded(message, wide)));
        // In a narrow window, the label is above the input row.
        let label = if line::fits(&self.label, wide) { self.label.as_str() } else { "> " };
        if label != self.label && level.has_hints() {
            rows.extend(folded(&self.label, wide));
        }
        let (before, after) = self.line.visible(label, wide);
        rows.push(format!("{label}{before}{after}"));
        (rows, columns(label) + columns(&before))
    }
}

/// A way to lay out the question.
struct Candidate {
    level: Level,
    room: usize,
    /// Whether every row of the question must be visible.
    is_whole: bool,
}

impl Question for Panel {
    fn frame(&self, now: Timestamp, columns: usize, most: usize, reserved: usize) -> Frame {
        // The last column stays free, because terminals wrap when it is filled.
        let wide = columns.saturating_sub(1).max(1);
        let position = self.position.filter(|position| position.of > 1).map(|position| position.to_string());
        let parts = |level: Level, files: usize| {
            let shown = self.shown.as_ref();
            shown.map(|shown| shown.parts(now, position.as_deref(), wide, level, files))
        };
        let with_tree = most.saturating_sub(reserved);
        // The whole question is more important than the tree, and the tree more than the last rows of a truncated question.
        let mut candidates = vec![
            Candidate { level: Level::Roomy, room: with_tree, is_whole: true },
            Candidate { level: Level::Roomy, room: most, is_whole: true },
            Candidate { level: Level::Dense, room: most, is_whole: true },
            Candidate { level: Level::Dense, room: with_tree, is_whole: false },
        ];
        let smaller = [Level::Dense, Level::Short, Level::Bare, Level::Least];
        candidates.extend(smaller.map(|level| Candidate { level, room: most, is_whole: false }));
        let fits = |candidate: &Candidate| {
            let level = candidate.level;
            let least = parts(level, 0).map_or(0, |parts: Parts| {
                parts.rows_without_body(level) + if candidate.is_whole { parts.body.len() } else { parts.least_body(level) }
            });
            least + self.tail(wide, level).0.len() <= candidate.room
        };
        let last = Candidate { level: Level::Least, room: most, is_whole: false };
        let Candidate { level, room, .. } = candidates.into_iter().find(fits).unwrap_or(last);
        let (tail, column) = self.tail(wide, level);
        let room = room.saturating_sub(tail.len());
        let without_files =
            parts(level, 0).map_or(0, |parts| parts.rows_without_body(level) + parts.body.len() - parts.files.len());
        let mut rows = parts(level, room.saturating_sub(without_files))
            .map_or_else(Vec::new, |parts| parts.rows(room, level, self.chosen, wide));
        rows.extend(tail);
        // The input row is always visible.
        let over = rows.len().saturating_sub(most);
        rows.drain(..over);
        let row = rows.len() - 1;
        Frame { rows, cursor: Some(Cursor { row, column }) }
    }

    fn hold(&self) -> Option<&HoldId> {
        self.shown.as_ref().map(|shown| &shown.hold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::scripted_run::ScriptedRun;
    use anstream::adapter::strip_str;

    /// A checkpoint with a question of `lines` lines, two files and four options.
    fn panel(lines: usize) -> Panel {
        let question: String = (1..=lines).map(|at| format!("        line {at} asks 日本語 something\n")).collect();
        let flow = format!(
            "name: flow\nphases:\n  - id: review\n    checkpoint:\n      prompt: |\n{question}      show_files: [one.md, two.md]\n      options:\n        - {{ label: Publish, on_select: {{ action: continue }} }}\n        - {{ label: Again, with_feedback: true, on_select: {{ action: repeat_phase, target: current }} }}\n        - {{ label: Later, on_select: {{ action: continue }} }}\n        - {{ label: Stop, on_select: {{ action: abort }} }}\n"
        );
        let text = "a line of text that is rather long, and longer than many windows are wide\n".repeat(9);
        let play = ScriptedRun::with_files(&flow, None, &[("one.md", &text), ("two.md", "short\n")]);
        let hold = play.run.open_holds()[0].clone();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let shown = runtime.block_on(async { HoldText::of(&play.run, &hold, &play.store().await).await });
        Panel::typed(shown.ok().unwrap(), hold.options.len(), "Publ")
    }

    fn rows(panel: &Panel, columns: usize, most: usize, reserved: usize) -> Vec<String> {
        let frame = panel.frame(Timestamp::from_millis(0), columns, most, reserved);
        let cursor = frame.cursor.unwrap();
        assert_eq!(cursor.row, frame.rows.len() - 1, "a person types in the last row");
        assert!(cursor.column < columns);
        frame.rows.iter().map(|row| strip_str(row).to_string()).collect()
    }

    #[test]
    fn a_question_fits_every_window_and_never_loses_its_options() {
        for lines in [1, 3, 70] {
            let panel = panel(lines);
            for columns in [4, 12, 24, 40, 80, 200] {
                for most in 1..60 {
                    let rows = rows(&panel, columns, most, 6);
                    assert!(rows.len() <= most, "{columns}x{most}: {rows:#?}");
                    assert!(rows.iter().all(|row| crate::columns::columns(row) <= columns), "{columns}x{most}: {rows:#?}");
                    if most >= 6 && columns >= 24 {
                        let has = |part: &str| rows.iter().any(|row| row.starts_with(part));
                        assert!(has("line 1 asks") || has("… and "), "{columns}x{most}: {rows:#?}");
                        assert!(has("  1. Publish") && has("  4. Stop"), "{columns}x{most}: {rows:#?}");
                    }
                }
            }
        }
    }

    #[test]
    fn files_give_way_to_the_tree_and_the_question_does_not() {
        let count = |most, reserved| rows(&panel(3), 80, most, reserved).len();
        assert_eq!(count(60, 0), count(60, 6), "there is room for both");
        assert!(count(24, 6) <= 18, "files are cut");
        assert!(rows(&panel(3), 80, 24, 6).iter().any(|row| row.starts_with("  │ a line of text")));
        assert!(count(14, 6) > 8, "the question is whole first");
    }

    #[test]
    fn omitted_rows_of_a_question_are_counted() {
        let rows = rows(&panel(70), 80, 23, 6);
        assert!(rows.iter().any(|row| row.ends_with("more rows: Ctrl+O shows all")), "{rows:#?}");
        assert!(rows.len() <= 17, "the rest is for the tree: {rows:#?}");
    }

    #[test]
    fn the_title_names_the_position_among_several_holds() {
        let mut panel = panel(1);
        panel.position = Some(Position { at: 1, of: 1 });
        assert!(rows(&panel, 80, 40, 0)[0].starts_with("Checkpoint in phase review"));
        panel.position = Some(Position { at: 2, of: 3 });
        assert!(rows(&panel, 80, 40, 0)[0].starts_with("2 of 3 · Checkpoint in phase review"));
    }
}
