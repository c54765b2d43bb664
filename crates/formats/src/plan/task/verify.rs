//! How a task is verified: commands and prose.

use super::super::layout::Part;
use super::super::text::unindented;
use super::super::{Verify, VerifyCommand};
use super::{Reader, append};
use lockgate_engine::spec::code::ProblemCode;
use std::ops::Range;

impl Reader<'_, '_> {
    /// Reads a `<verify>`: `<automated>` and shell code fences are commands, the rest is prose.
    pub(super) fn verify(&mut self, part: &Part, verify: &mut Verify) {
        let tags = &self.markup.tags;
        let mut automated: Vec<Part> = Vec::new();
        let mut from = part.inner.start;
        for open in part.tags.clone() {
            let tag = &tags[open];
            if !tag.opens("automated") || tag.is_empty || tag.start < from {
                continue;
            }
            let close = self.markup.closed_by[open].filter(|close| *close < part.tags.end);
            let end = close.map_or_else(|| self.end_of_line(tag.end).min(part.inner.end), |close| tags[close].start);
            if close.is_none() {
                self.report
                    .warning(
                        ProblemCode::UnclosedTag,
                        &(tag.start..tag.end),
                        "`<automated>` is not closed; it is read as ending with its line",
                    )
                    .help("write `</automated>` where it ends");
            }
            from = close.map_or(end, |close| tags[close].end);
            automated.push(Part { open, tags: open + 1..close.unwrap_or(open + 1), inner: tag.end..end });
        }
        let mut prose = String::new();
        let mut from = part.inner.start;
        for inside in &automated {
            self.fences_and_prose(from..tags[inside.open].start, verify, &mut prose);
            self.automated(inside, verify);
            from = self.markup.closed_by[inside.open]
                .filter(|close| *close < part.tags.end)
                .map_or(inside.inner.end, |close| tags[close].end);
        }
        self.fences_and_prose(from..part.inner.end, verify, &mut prose);
        append(&mut verify.prose, &unindented(&prose));
    }

    /// Reads the content of an `<automated>`.
    pub(super) fn automated(&mut self, part: &Part, verify: &mut Verify) {
        let tag = &self.markup.tags[part.open];
        let place = tag.start..tag.end;
        let fences: Vec<Range<usize>> = self.fences(&part.inner).map(|fence| fence.body.clone()).collect();
        let bodies = if fences.is_empty() { vec![part.inner.clone()] } else { fences };
        for body in bodies {
            let command = unindented(&self.source[body.clone()]);
            let inline = command.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).filter(|rest| !rest.contains('`'));
            let command = inline.unwrap_or(&command).to_owned();
            if command.is_empty() {
                self.report
                    .warning(ProblemCode::EmptyValue, &place, "`<automated>` contains no command")
                    .help("add a command, or remove the tag");
            } else if command.starts_with("MISSING") {
                // The format uses this word for a test that an earlier plan will write.
                self.report
                    .warning(ProblemCode::EmptyValue, &place, "this check is marked as missing; it is read as prose")
                    .help("write the command that checks the task");
                append(&mut verify.prose, &command);
            } else {
                self.push(body.start, command, verify);
            }
        }
    }

    fn push(&mut self, from: usize, command: String, verify: &mut Verify) {
        if let Some(at) = command.find("&amp;") {
            let offset = self.source[from..].find("&amp;").unwrap_or(at);
            self.report
                .warning(ProblemCode::InvalidValue, &(from + offset..from + offset + 5), "`&amp;` in a command is not unescaped")
                .help("write `&`, because a plan is not XML");
        }
        let blank = self.source[from..].len() - self.source[from..].trim_start().len();
        let place = self.place(from + blank);
        verify.commands.push(VerifyCommand { command, place });
    }

    fn fences_and_prose(&mut self, range: Range<usize>, verify: &mut Verify, prose: &mut String) {
        let runs: Vec<(Range<usize>, Range<usize>)> = self
            .fences(&range)
            .filter(|fence| matches!(fence.language, "sh" | "bash"))
            .map(|fence| (fence.whole.clone(), fence.body.clone()))
            .collect();
        let mut from = range.start;
        for (whole, body) in runs {
            prose.push_str(&self.source[from..whole.start]);
            let command = unindented(&self.source[body.clone()]);
            if !command.is_empty() {
                self.push(body.start, command, verify);
            }
            from = whole.end;
        }
        prose.push_str(&self.source[from..range.end]);
    }

    fn fences(&self, range: &Range<usize>) -> impl Iterator<Item = &super::super::tag::Fence<'_>> {
        let fences = &self.markup.fences;
        let first = fences.partition_point(|fence| fence.whole.start < range.start);
        fences[first..].iter().take_while(|fence| fence.whole.end <= range.end)
    }

    fn end_of_line(&self, from: usize) -> usize {
        self.source[from..].find('\n').map_or(self.source.len(), |length| from + length)
    }
}
