//! Code fences: where they start and end.

use super::Scan;
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::Report;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Debug)]
pub(in crate::plan) struct Fence<'a> {
    /// The first word after the opening marks, such as `bash`.
    pub(in crate::plan) language: &'a str,
    /// From the start of its first line to the end of its last.
    pub(in crate::plan) whole: Range<usize>,
    /// The lines between the marks.
    pub(in crate::plan) body: Range<usize>,
}

/// The lines of a text from a position on, each with its line break.
pub(super) fn lines(source: &str, from: usize) -> Vec<Range<usize>> {
    let mut start = from;
    let mut lines = Vec::new();
    for line in source[from..].split_inclusive('\n') {
        lines.push(start..start + line.len());
        start += line.len();
    }
    lines
}

/// The opening line of a fence.
pub(super) struct Opening<'a> {
    pub(super) mark: char,
    pub(super) length: usize,
    pub(super) language: &'a str,
}

impl<'a> Opening<'a> {
    pub(super) fn of(line: &'a str) -> Option<Self> {
        let line = after_markers(line);
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        // A line with another backtick is inline code.
        if length < 3 || (mark == '`' && rest.contains('`')) {
            return None;
        }
        Some(Self { mark, length, language: rest.split_whitespace().next().unwrap_or_default() })
    }
}

/// A line without its indentation and the markers of lists and quotations.
pub(super) fn after_markers(line: &str) -> &str {
    let mut rest = line.trim_start();
    loop {
        let digits = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let sign =
            if digits.len() < rest.len() { digits.strip_prefix(['.', ')']) } else { rest.strip_prefix(['-', '*', '+', '>']) };
        match sign {
            Some(after) if after.starts_with([' ', '\t']) || rest.starts_with('>') => rest = after.trim_start(),
            Some(_) | None => return rest,
        }
    }
}

/// The mark and length of a line that can only close a fence.
fn closing(line: &str) -> Option<(char, usize)> {
    let line = line.trim();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    (line.len() >= 3 && line.chars().all(|character| character == mark)).then_some((mark, line.len()))
}

/// The length of the longest closing line after each line, to check in constant time whether a fence is closed.
pub(super) struct Closers {
    after: Vec<[usize; 2]>,
}

impl Closers {
    pub(super) fn of(source: &str, lines: &[Range<usize>]) -> Self {
        let mut longest = [0, 0];
        let mut after: Vec<[usize; 2]> = Vec::with_capacity(lines.len());
        for line in lines.iter().rev() {
            after.push(longest);
            if let Some((mark, length)) = closing(&source[line.clone()]) {
                let longest = &mut longest[usize::from(mark == '~')];
                *longest = length.max(*longest);
            }
        }
        after.reverse();
        Self { after }
    }

    pub(super) fn has_after(&self, line: usize, mark: char, length: usize) -> bool {
        self.after[line][usize::from(mark == '~')] >= length
    }
}

impl<'a> Scan<'a> {
    /// Reads a fence that starts on this line, and returns the line after it.
    pub(super) fn fence(&mut self, lines: &[Range<usize>], first: usize, opening: &Opening<'a>, report: &mut Report) -> usize {
        let source = self.source;
        let language = opening.language;
        let start = lines[first].start;
        let body = lines[first].end;
        // Tags within the code itself.
        let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, line) in lines.iter().enumerate().skip(first + 1) {
            let text = &source[line.clone()];
            if closing(text).is_some_and(|(mark, length)| mark == opening.mark && length >= opening.length) {
                self.fences.push(Fence { language, whole: start..line.end, body: body..line.start });
                return index + 1;
            }
            if let Some(name) = self.left_open(text, &mut shown) {
                let message = format!("this code fence is still open at `</{name}>`; it is read as ending there");
                report
                    .warning(ProblemCode::UnclosedFence, &lines[first], message)
                    .help("close it with a line that contains only the same marks");
                self.fences.push(Fence { language, whole: start..line.start, body: body..line.start });
                return index;
            }
        }
        lines.len()
    }

    /// The name of a tag that was open before the fence and is closed on this line of it.
    fn left_open<'l>(&self, line: &'l str, shown: &mut BTreeMap<&'l str, usize>) -> Option<&'l str> {
        let mut may_end = line.trim_start().starts_with("</");
        for part in line.split('<').skip(1) {
            let (closes, part) = part.strip_prefix('/').map_or((false, part), |part| (true, part));
            let name = &part[..super::line::name_length(part)];
            if !name.is_empty() {
                let count = shown.entry(name).or_default();
                if closes && may_end && *count == 0 && self.open.get(name).is_some_and(|open| *open > 0) {
                    return Some(name);
                }
                *count = if closes { count.saturating_sub(1) } else { *count + 1 };
            }
            may_end = false;
        }
        None
    }
}
