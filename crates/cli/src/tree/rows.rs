//! Renders the tree as rows that fit the window, for any number of tasks.

use super::visible::{ALL_SHOWN, VisibleRow};
use super::{GapNode, PhaseNode, QuestionNode, StepNode, Tree};
use crate::columns::{columns, fitted};
use crate::print::{ERROR, FAINT, STRONG, WARNING, styled};
use crate::style::Styled as _;
use anstyle::Style;
use lockgate::graph::Mark;
use lockgate::human_time::elapsed;
use lockgate::sanitize;
use lockgate::view::RunStatus;
use lockgate_engine::id::HoldId;
use lockgate_engine::time::Timestamp;
use std::time::Duration;

/// The width of times.
const TIME: usize = 7;

/// The minimum width of names before details are shown.
const NAME: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Size {
    /// The maximum height of the tree: the last events stay visible above it, and one row stays free for the cursor.
    pub(crate) fn most_rows(self) -> usize {
        (self.rows * 2 / 3).max(8).min(self.rows.saturating_sub(2))
    }
}

/// A row before it is fitted into the window.
struct Row {
    indent: usize,
    sign: (Style, char),
    name: RowText,
    time: String,
    detail: RowText,
}

/// Styled text in several forms, of which the longest that fits is shown.
struct RowText {
    style: Style,
    forms: Vec<String>,
}

impl RowText {
    /// Text that may be truncated.
    fn words(style: Style, text: impl Into<String>) -> Self {
        Self { style, forms: vec![text.into()] }
    }

    /// Numbers, the longest form first. They are never truncated, because a truncated number is a different number.
    fn counts(forms: Vec<String>) -> Self {
        Self { style: FAINT, forms }
    }

    /// A list of numbers: the last ones are dropped first, then the word after the first one.
    fn counts_of(parts: &[String]) -> Self {
        let mut forms: Vec<String> = (1..=parts.len()).rev().map(|count| parts[..count].join(", ")).collect();
        forms.extend(parts.first().and_then(|first| Some(first.rsplit_once(' ')?.0.to_owned())));
        Self::counts(forms)
    }

    fn whole(&self) -> &str {
        self.forms.first().map_or("", String::as_str)
    }

    /// The longest form that fits into `most` columns.
    fn fitted(&self, most: usize) -> String {
        let sanitized: Vec<_> = self.forms.iter().map(|form| sanitize::line(form)).collect();
        match (sanitized.iter().find(|form| columns(form) <= most), &sanitized[..]) {
            (Some(form), _) => form.to_string(),
            (None, [words]) => fitted(words, most),
            (None, _) => String::new(),
        }
    }
}

/// How much of the phases before or after the current one is shown.
#[derive(Clone, Copy)]
enum Others {
    All,
    Counted,
    None,
}

impl Others {
    fn rows(self, count: usize) -> usize {
        match self {
            Self::All => count,
            Self::Counted => 1,
            Self::None => 0,
        }
    }

    /// The most that fits. Counted phases give way to steps, and the current phase with two of its steps is more important than any
    /// other phase.
    fn chosen(most: usize, (before, after): (usize, usize), rest: usize, least: usize) -> (Self, Self) {
        let counted = |count: usize| if count > 1 { Self::Counted } else { Self::All };
        let (counted_before, counted_after) = (counted(before), counted(after));
        let fits = |one: Self, other: Self, rest: usize| one.rows(before) + other.rows(after) + rest <= most;
        if fits(Self::All, Self::All, rest) {
            (Self::All, Self::All)
        } else if fits(counted_before, Self::All, rest) {
            (counted_before, Self::All)
        } else if fits(counted_before, counted_after, least) {
            (counted_before, counted_after)
        } else if fits(Self::None, counted_after, least) {
            (Self::None, counted_after)
        } else {
            (Self::None, Self::None)
        }
    }
}

impl Tree {
    /// The tree as rows. `line_of` returns the last output line of a step by its address.
    #[cfg(test)]
    pub(crate) fn rows(&self, now: Timestamp, size: Size, line_of: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        self.rows_in(now, size.columns, size.most_rows(), None, line_of)
    }

    /// The tree in at most `most` rows. The hold of the open question has no row, because its question is visible.
    pub(crate) fn rows_in(
        &self,
        now: Timestamp,
        wide: usize,
        most: usize,
        asked: Option<&HoldId>,
        line_of: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<String> {
        let questions: Vec<&QuestionNode> = self.questions.iter().filter(|question| Some(&question.hold) != asked).collect();
        let (before, after) = self.around();
        let steps = self.shown_steps();
        let here = self.phases.iter().find(|phase| phase.current);
        let needed = |steps: usize| 1 + usize::from(here.is_some()) + questions.len() + steps;
        let (shown_before, shown_after) =
            Others::chosen(most, (before.len(), after.len()), needed(steps.len()), needed(steps.len().min(2)));
        let mut rows = vec![self.heading(now)];
        match shown_before {
            Others::All => rows.extend(before.iter().map(|phase| phase_row(phase, now, &[]))),
            Others::Counted => {
                let count = before.len();
                rows.push(many(Mark::Done, vec![format!("{count} phases done"), format!("{count} done"), count.to_string()]));
            }
            Others::None => {}
        }
        rows.extend(here.map(|phase| phase_row(phase, now, &self.counts())));
        rows.extend(questions.iter().map(|question| question_row(question, now)));
        let room = most.saturating_sub(rows.len() + shown_after.rows(after.len()));
        let shown = if steps.len() > room { room.saturating_sub(1) } else { steps.len() };
        rows.extend(steps[..shown].iter().map(|step| shown_row(step, now, line_of)));
        if shown < steps.len() && room > 0 {
            let left = &steps[shown..];
            let running = left.iter().filter(|step| step.mark() == Mark::Running).count();
            let mut forms = vec![format!("and {} more", left.len()), format!("+{}", left.len())];
            if running == left.len() {
                forms.insert(0, format!("and {running} more running"));
            }
            rows.push(Row { indent: 4, ..many(Mark::Pending, forms) });
        }
        match shown_after {
            Others::All => rows.extend(after.iter().map(|phase| phase_row(phase, now, &[]))),
            Others::Counted => {
                let count = after.len();
                rows.push(many(
                    Mark::Pending,
                    vec![format!("{count} more phases"), format!("{count} more"), format!("+{count}")],
                ));
            }
            Others::None => {}
        }
        rows.truncate(most);
        let widest = rows.iter().skip(1).map(|row| row.indent + 2 + columns(row.name.whole())).max().unwrap_or(0).max(6 + NAME);
        // The last column stays free, because terminals wrap when it is filled.
        rows.iter().map(|row| row.fitted(wide.saturating_sub(1), widest)).collect()
    }

    /// The phases before and after the current one.
    fn around(&self) -> (Vec<&PhaseNode>, Vec<&PhaseNode>) {
        let here = self.phases.iter().position(|phase| phase.current);
        let here = here.unwrap_or_else(|| self.phases.iter().take_while(|phase| phase.mark != Mark::Pending).count());
        let (before, rest) = self.phases.split_at(here);
        (before.iter().collect(), rest.iter().filter(|phase| !phase.current).collect())
    }

    fn heading(&self, now: Timestamp) -> Row {
        let mark = Mark::of_run(self.status);
        let time = self.ended_at.unwrap_or(now).since(self.started_at);
        let detail = match self.status {
            RunStatus::Running if self.ending => "stopping; press Ctrl+C again to kill running tasks".to_owned(),
            RunStatus::Running => String::new(),
            RunStatus::Interrupted => "no process drives it".to_owned(),
            RunStatus::Waiting => "waits for a person".to_owned(),
            RunStatus::Failed | RunStatus::Aborted | RunStatus::Cancelled | RunStatus::Complete | RunStatus::Unknown => {
                self.status.as_str().to_owned()
            }
        };
        Row {
            indent: 0,
            sign: (mark.style(), mark.sign()),
            name: RowText::words(STRONG, format!("{} {}", self.run, self.title)),
            time: elapsed(time),
            detail: RowText::words(mark.style(), detail),
        }
    }

    /// How many steps of the current phase have which state; empty if all of them are visible.
    fn counts(&self) -> Vec<String> {
        let all = self.whole_steps().count();
        if all <= ALL_SHOWN {
            return Vec::new();
        }
        let count = |marks: &[Mark]| self.whole_steps().filter(|step| marks.contains(&step.mark)).count();
        let mut counts = vec![format!("{} of {all} done", count(&[Mark::Done, Mark::Skipped]))];
        for (marks, word) in [
            (&[Mark::Failed, Mark::Ended] as &[Mark], "failed"),
            (&[Mark::Interrupted], "interrupted"),
            (&[Mark::Running], "running"),
            (&[Mark::Pending], "waiting"),
        ] {
            let count = count(marks);
            if count > 0 {
                counts.push(format!("{count} {word}"));
            }
        }
        counts
    }
}

fn many(mark: Mark, forms: Vec<String>) -> Row {
    Row {
        indent: 2,
        sign: (mark.style(), mark.sign()),
        name: RowText::counts(forms),
        time: String::new(),
        detail: RowText::words(FAINT, ""),
    }
}

fn question_row(question: &QuestionNode, now: Timestamp) -> Row {
    let until = question.deadline.as_ref().map(|until| format!(" ({})", sanitize::line(&until.words(now)))).unwrap_or_default();
    let mark = Mark::Asking;
    Row {
        indent: 4,
        sign: (mark.style(), mark.sign()),
        name: RowText::words(WARNING, "hold"),
        time: String::new(),
        detail: RowText::words(WARNING, format!("{}{until}", question.text)),
    }
}

fn phase_row(phase: &PhaseNode, now: Timestamp, counts: &[String]) -> Row {
    let again = if phase.iteration > 1 { format!(" (execution {})", phase.iteration) } else { String::new() };
    let style = if phase.current { STRONG } else { quiet(phase.mark) };
    let until = if phase.current { Some(now) } else { phase.ended };
    let took = phase.began.zip(until).map(|(began, until)| until.since(began));
    Row {
        indent: 2,
        sign: (phase.mark.style(), phase.mark.sign()),
        name: RowText::words(style, format!("{}{again}", phase.id)),
        time: took.map(elapsed).unwrap_or_default(),
        detail: if phase.mark == Mark::Skipped { RowText::words(FAINT, "skipped") } else { RowText::counts_of(counts) },
    }
}

fn shown_row(shown: &VisibleRow<'_>, now: Timestamp, line_of: &dyn Fn(&str) -> Option<String>) -> Row {
    match shown {
        VisibleRow::Step(step) => step_row(step, now, line_of),
        VisibleRow::Item(item) => Row { indent: 6, ..step_row(item, now, line_of) },
        VisibleRow::FannedOut(step, tally) => Row { detail: RowText::counts_of(tally), ..step_row(step, now, &|_| None) },
        VisibleRow::Gap(gap) => gap_row(gap),
    }
}

fn gap_row(gap: &GapNode) -> Row {
    let style = if gap.mark == Mark::Failed || gap.mark == Mark::Asking { WARNING } else { FAINT };
    Row {
        indent: 4,
        sign: (gap.mark.style(), gap.mark.sign()),
        name: RowText::words(quiet(gap.mark), "gap check"),
        time: String::new(),
        detail: RowText::words(style, &gap.text),
    }
}

fn step_row(step: &StepNode, now: Timestamp, line_of: &dyn Fn(&str) -> Option<String>) -> Row {
    let attempt = if step.attempt > 1 { format!(" (attempt {})", step.attempt) } else { String::new() };
    let took: Option<Duration> = match step.mark {
        Mark::Running => step.began.map(|began| now.since(began)).filter(|_| step.due.is_none()),
        Mark::Pending | Mark::Skipped => None,
        Mark::Done | Mark::Asking | Mark::Interrupted | Mark::Ended | Mark::Failed => step.took,
    };
    let detail = match (&step.error, step.due) {
        (Some(reason), _) if step.mark == Mark::Skipped => RowText::words(FAINT, format!("left out: {reason}")),
        (Some(error), _) => RowText::words(ERROR, error),
        (None, Some(due)) => RowText::words(FAINT, format!("retries in {}", elapsed(due.since(now)))),
        (None, None) if step.mark == Mark::Running => {
            let line = line_of(&step.key.address());
            RowText::words(FAINT, line.or_else(|| step.agent.clone()).unwrap_or_default())
        }
        (None, None) if step.mark == Mark::Interrupted => RowText::words(FAINT, "interrupted"),
        (None, None) => RowText::words(FAINT, step.agent.clone().unwrap_or_default()),
    };
    Row {
        indent: 4,
        sign: (step.mark.style(), step.mark.sign()),
        name: RowText::words(quiet(step.mark), format!("{}{attempt}", step.label)),
        time: took.map(elapsed).unwrap_or_default(),
        detail,
    }
}

/// Steps that are done or have not started are faint.
fn quiet(mark: Mark) -> Style {
    match mark {
        Mark::Done | Mark::Skipped | Mark::Pending => FAINT,
        Mark::Running | Mark::Asking | Mark::Interrupted | Mark::Ended | Mark::Failed => Style::new(),
    }
}

impl Row {
    /// Fits the row into `room` columns. Names are padded so that times align. In a narrow window, details are truncated first, then
    /// the name; then the time is dropped.
    fn fitted(&self, room: usize, widest: usize) -> String {
        let lead = self.indent + 2;
        let has_time = room >= lead + NAME + 1 + TIME;
        let beyond = if has_time { 1 + TIME } else { 0 };
        let alone = self.time.is_empty() && self.detail.whole().is_empty();
        // The heading is longer than the names below, so it is not padded.
        let padded = self.indent > 0 && has_time && !alone;
        // Without space for details, names use the whole width.
        let names = if room / 2 + beyond + 2 + NAME <= room { room / 2 } else { room.saturating_sub(beyond) };
        let width = if padded { widest.min(names).saturating_sub(lead) } else { columns(self.name.whole()) };
        let width = width.min(room.saturating_sub(lead + if alone { 0 } else { beyond }));
        let name = self.name.fitted(width);
        let mut row = format!(
            "{:indent$}{} {}",
            "",
            styled(self.sign.0, self.sign.1),
            styled(self.name.style, &name),
            indent = self.indent
        );
        let mut used = lead + columns(&name);
        if used > room {
            return fitted(&format!("{:indent$}{}", "", self.sign.1, indent = self.indent), room);
        }
        if !has_time || alone {
            return row;
        }
        if self.indent == 0 {
            // The heading's time follows directly, because nothing aligns with it.
            row += &format!("  {}", styled(FAINT, &self.time));
            used += 2 + columns(&self.time);
        } else {
            let pad = width - columns(&name) + 1;
            row += &format!("{:pad$}{}", "", styled(FAINT, format_args!("{:>TIME$}", self.time)));
            used += pad + TIME;
        }
        let detail = self.detail.fitted(room.saturating_sub(used + 2));
        // A truncated word is not useful.
        if detail.is_empty() || (self.detail.forms.len() == 1 && used + 2 + NAME > room) {
            return row;
        }
        row += &format!("  {}", styled(self.detail.style, detail));
        row
    }
}
