//! The tags on lines outside of fences.

use super::fence::after_markers;
use super::{Scan, Tag};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::Report;
use std::collections::BTreeMap;
use std::ops::Range;

/// The length of the tag name at the start of a text.
pub(super) fn name_length(text: &str) -> usize {
    if !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        return 0;
    }
    text.find(|next: char| !next.is_ascii_alphanumeric() && !matches!(next, '_' | '-')).unwrap_or(text.len())
}

impl<'a> Scan<'a> {
    /// Scans the rest of a line, and returns where to continue: later than the end of the line if something extends past it.
    pub(super) fn line(&mut self, line: usize, rest: Range<usize>, report: &mut Report) -> usize {
        let source = self.source;
        let Range { start: from, end } = rest;
        let code = inline_code(&source[from..end]);
        let mut code = code.iter().map(|span| from + span.start..from + span.end).peekable();
        let mut at = from;
        while let Some(found) = source[at..end].find('<').map(|offset| at + offset) {
            while code.next_if(|span| span.end <= found).is_some() {}
            if let Some(span) = code.peek()
                && span.start < found
            {
                self.warn_about_code(found, report);
                at = span.end;
                continue;
            }
            if source[found..].starts_with("<!--") {
                match self.comment_end(found) {
                    Some(after) => {
                        self.quiet_from = after;
                        if after >= end {
                            return after;
                        }
                        at = after;
                    }
                    None => {
                        report
                            .warning(
                                ProblemCode::UnclosedTag,
                                &(found..found + 4),
                                "this comment is never closed, so it is read as text",
                            )
                            .help("close it with `-->`");
                        at = found + 4;
                    }
                }
                continue;
            }
            match self.tag(found, line, end) {
                Some(tag) => {
                    at = tag.end;
                    self.push(tag);
                    if at > end {
                        return at;
                    }
                }
                None => at = found + 1,
            }
        }
        end
    }

    fn comment_end(&mut self, start: usize) -> Option<usize> {
        if !self.comments_end {
            return None;
        }
        let end = self.source[start + 4..].find("-->");
        self.comments_end = end.is_some();
        end.map(|end| start + 4 + end + 3)
    }

    /// Warns about a task with a type in inline code. It is probably an example, but may be a task with stray backticks.
    fn warn_about_code(&self, found: usize, report: &mut Report) {
        let rest = &self.source[found..];
        if rest.starts_with("<task ") && rest.lines().next().is_some_and(|line| line.contains("type=")) {
            let message = "this task is in inline code, so it is read as text";
            report.warning(ProblemCode::StrayTag, &(found..found + 5), message).help("remove the backticks if it is a task");
        }
    }

    fn tag(&self, start: usize, line: usize, line_end: usize) -> Option<Tag<'a>> {
        let source = self.source;
        let after = &source[start + 1..];
        let (closes, after) = after.strip_prefix('/').map_or((false, after), |after| (true, after));
        let length = name_length(after);
        let (name, rest) = after.split_at(length);
        let next = rest.chars().next();
        if length == 0 || !next.is_none_or(|next| next.is_whitespace() || matches!(next, '>' | '/')) {
            return None;
        }
        // `Vec<task>` is not a tag.
        if !closes && source[..start].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            return None;
        }
        let may_run_over = !closes && matches!(name, "task" | "option");
        let begin = source.len() - rest.len();
        let limit = if may_run_over { source.len() } else { line_end };
        let (inside, is_whole) = match end_of_tag(&source[begin..limit]) {
            Some(length) => (&source[begin..begin + length], true),
            None if closes || name != "task" => return None,
            None => (source[begin..line_end].split('<').next().unwrap_or_default().trim_end(), false),
        };
        if closes && !inside.trim().is_empty() {
            return None;
        }
        let end = begin + inside.len() + usize::from(is_whole);
        let is_empty = !closes && inside.ends_with('/');
        Some(Tag { name, closes, is_empty, is_whole, leads: self.leads(start, line), inside, start, end })
    }

    fn leads(&self, start: usize, line: usize) -> bool {
        let from = self.quiet_from.max(line);
        let between = &self.source[from..start];
        between.trim().is_empty() || (from == line && after_markers(between).trim().is_empty())
    }
}

/// The length of the text before the `>` of a tag. Another `<` or an empty line means that the tag is not closed.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut line_is_empty = false;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => break,
            b'\n' if line_is_empty => break,
            b'>' if quote.is_none() => return Some(index),
            b'"' | b'\'' => match quote {
                None if text[..index].ends_with('=') => quote = Some(byte),
                Some(open) if open == byte => quote = None,
                Some(_) | None => {}
            },
            _ => {}
        }
        line_is_empty = byte == b'\n' || (line_is_empty && byte.is_ascii_whitespace());
    }
    // A quote that is never closed is ignored.
    let rest = text.split(['<', '\n']).next()?;
    quote.and_then(|_| rest.find('>'))
}

/// The ranges of inline code on a line: from a run of backticks to the next run of the same length.
fn inline_code(line: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, _) in line.match_indices('`') {
        match runs.last_mut() {
            Some(run) if run.end == index => run.end += 1,
            Some(_) | None => runs.push(index..index + 1),
        }
    }
    let mut next_of_length = vec![None; runs.len()];
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate().rev() {
        next_of_length[index] = seen.insert(run.len(), index);
    }
    let mut spans = Vec::new();
    let mut index = 0;
    while index < runs.len() {
        match next_of_length[index] {
            Some(close) => {
                spans.push(runs[index].start..runs[close].end);
                index = close + 1;
            }
            None => index += 1,
        }
    }
    spans
}
