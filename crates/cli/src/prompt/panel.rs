//! What is on the terminal while a person is asked: the hold, hints, and the row to type in. It is a picture of the moment, made for any
//! window.

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

/// A person is asked this, and has typed so much.
#[derive(Clone)]
pub(crate) struct Panel {
    /// The hold; none where the question stands alone.
    shown: Option<Arc<HoldText>>,
    /// Which of several holds it is.
    pub(super) position: Option<Position>,
    pub(super) hints: Vec<&'static str>,
    /// The question that was answered before this one, with its answer.
    pub(super) settled: Option<String>,
    /// The keys that there are, where they are more than the label says.
    pub(super) keys: Option<String>,
    /// What became of the last key.
    pub(super) message: Option<String>,
    /// What stands before the typed text.
    pub(super) label: String,
    pub(super) line: Line,
    /// The option that the arrows have chosen.
    pub(super) chosen: Option<usize>,
}

impl Panel {
    /// Asks about a hold, or without one.
    pub(super) fn new(shown: Option<Arc<HoldText>>, label: impl Into<String>) -> Self {
        let hints = if shown.as_ref().is_some_and(|shown| shown.has_files()) { vec![hint::FILES] } else { Vec::new() };
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

    /// A question about a hold with an option typed, for a picture.
    pub(crate) fn typed(shown: HoldText, options: usize, typed: &str) -> Self {
        let mut panel = Self::new(Some(Arc::new(shown)), hint::question(options));
        panel.line.set(typed);
        panel
    }

    /// The rows below the options, the last of them to type in, and the column of the cursor there.
    fn tail(&self, wide: usize, level: Level) -> (Vec<String>, usize) {
        let mut rows = Vec::new();
        if level.has_hints() {
            rows.extend(self.hints.iter().flat_map(|hint| styled_rows(FAINT, folded(hint, wide))));
            rows.extend(self.settled.iter().flat_map(|settled| folded(settled, wide)));
            rows.extend(self.keys.iter().flat_map(|keys| styled_rows(FAINT, folded(keys, wide))));
        }
        rows.extend(self.message.iter().flat_map(|message| folded(message, wide)));
        // In a narrow window the label is above the row, which is always one.
        let label = if line::fits(&self.label, wide) { self.label.as_str() } else { "> " };
        if label != self.label && level.has_hints() {
            rows.extend(folded(&self.label, wide));
        }
        let (before, after) = self.line.visible(label, wide);
        rows.push(format!("{label}{before}{after}"));
        (rows, columns(label) + columns(&before))
    }
}

impl Question for Panel {
    fn frame(&self, now: Timestamp, columns: usize, most: usize, reserved: usize) -> Frame {
        // The last column stays free, because terminals go to the next row when it is filled.
        let wide = columns.saturating_sub(1).max(1);
        let position = self.position.filter(|position| position.of > 1).map(|position| position.to_string());
        let parts = |level: Level, files: usize| {
            let shown = self.shown.as_ref();
            shown.map(|shown| shown.parts(now, position.as_deref(), wide, level, files))
        };
        // Where the whole question is in sight without it, room is left for the tree.
        let mut candidates = vec![(Level::Roomy, most.saturating_sub(reserved))];
        candidates.extend(Level::ALL.map(|level| (level, most)));
        let fits = |(level, room): &(Level, usize)| {
            let least = parts(*level, 0).map_or(0, |parts: Parts| parts.rows_beside_body(*level) + parts.least_body(*level));
            least + self.tail(wide, *level).0.len() <= *room
        };
        let (level, room) = candidates.into_iter().find(fits).unwrap_or((Level::Least, most));
        let (tail, column) = self.tail(wide, level);
        let room = room.saturating_sub(tail.len());
        let without_files =
            parts(level, 0).map_or(0, |parts| parts.rows_beside_body(level) + parts.body.len() - parts.files.len());
        let mut rows = parts(level, room.saturating_sub(without_files))
            .map_or_else(Vec::new, |parts| parts.rows(room, level, self.chosen, wide));
        rows.extend(tail);
        // The row to type in is there whatever else is not.
        let over = rows.len().saturating_sub(most);
        rows.drain(..over);
        let row = rows.len() - 1;
        Frame { rows, cursor: Some(Cursor { row, column }) }
    }

    fn hold(&self) -> Option<&HoldId> {
        self.shown.as_ref().map(|shown| &shown.hold)
    }
}
