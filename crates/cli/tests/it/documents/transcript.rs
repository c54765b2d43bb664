//! Compares output with what a page shows.

use regex::{Captures, Regex};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// Ids on the page, and the ids that they mean.
#[derive(Clone, Default)]
pub(super) struct Names(BTreeMap<String, String>);

/// Text on a page that may differ: wildcards, times, ages, durations, digests, process ids, ids and runs of spaces.
static VARYING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?P<any>\[\.\.\]|…)|(?P<time>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z| ?[+-]\d\d:\d\d)?)",
        r"|(?P<age>just now|\b[0-9hmsd. ]*[0-9](ms|s|m|h|d| ms| s) ago\b)|(?P<took>\b\d+(\.\d+)? ?(ms|s|m|h|d)\b( \d+ ?(s|m|h)\b)*)",
        r"|(?P<digest>\b[0-9a-f]{12,64}\b)|(?P<process>\bprocess \d+)|(?P<id>\b[0-9a-z]{8}\b)|(?P<spaces> {2,})"
    ))
    .unwrap()
});

impl Names {
    /// A command of the page with the ids that it means.
    pub(super) fn substitute(&self, command: &str) -> String {
        let id = Regex::new(r"\b[0-9a-z]{8}\b").unwrap();
        id.replace_all(command, |found: &Captures<'_>| self.0.get(&found[0]).cloned().unwrap_or_else(|| found[0].to_owned()))
            .into_owned()
    }

    /// Compares output with the page and learns its ids. An error names the line of the first difference, counted from 0.
    pub(super) fn compare(&mut self, shown: &[String], printed: &str) -> Result<(), (usize, String)> {
        let trimmed: Vec<String> = shown.iter().map(|line| line.trim_end().to_owned()).collect();
        let expected = in_any_order(&trimmed);
        let lines: Vec<String> = printed.trim_end().lines().map(|line| line.trim_end().to_owned()).collect();
        let actual = in_any_order(&lines);
        let length = expected.len() - expected.iter().rev().take_while(|line| line.is_empty()).count();
        let mut furthest = (0, 0, self.clone());
        match self.matched(&expected[..length], &actual, (0, 0), &mut furthest) {
            Some(names) => *self = names,
            None => {
                let mut problem = "prints something else here:\n".to_owned();
                let line = |lines: &[String], at: usize| lines.get(at).map_or("(the end)".to_owned(), |line| format!("{line:?}"));
                let _ = writeln!(problem, "  page:   {}", line(&expected[..length], furthest.0));
                let _ = writeln!(problem, "  actual: {}", line(&actual, furthest.1));
                let _ = write!(problem, "  all of the actual output:\n{}", quoted(printed));
                // Later commands may still use the ids that were found.
                *self = furthest.2;
                return Err((furthest.0, problem));
            }
        }
        Ok(())
    }

    /// The ids after a match of the lines from a position on.
    fn matched(
        &self,
        expected: &[String],
        actual: &[String],
        at: (usize, usize),
        furthest: &mut (usize, usize, Self),
    ) -> Option<Self> {
        if (furthest.0, furthest.1) < at {
            *furthest = (at.0, at.1, self.clone());
        }
        let Some(line) = expected.get(at.0) else { return (at.1 == actual.len()).then(|| self.clone()) };
        if line.trim() == "..." {
            return (at.1..=actual.len()).find_map(|next| self.matched(expected, actual, (at.0 + 1, next), furthest));
        }
        let names = self.line_matched(line, actual.get(at.1)?)?;
        names.matched(expected, actual, (at.0 + 1, at.1 + 1), furthest)
    }

    /// The ids after a match of one line.
    fn line_matched(&self, line: &str, actual: &str) -> Option<Self> {
        let (mut pattern, mut end, mut ids) = ("^".to_owned(), 0, Vec::new());
        for found in VARYING.captures_iter(line) {
            let whole = found.get(0)?;
            pattern += &regex::escape(&line[end..whole.start()]);
            end = whole.end();
            let is = |name: &str| found.name(name).is_some();
            let id = whole.as_str();
            pattern += &if is("any") {
                ".*".to_owned()
            } else if is("time") {
                r"\d{4}-\d\d-\d\d[T ][0-9:.]+(Z| ?[+-]\d\d:\d\d)?".to_owned()
            } else if is("age") {
                // The match includes the spaces before an age.
                " *(just now|[0-9hmsd. ]+ ago)".to_owned()
            } else if is("took") {
                "[0-9][0-9hmsd. ]*".to_owned()
            } else if is("digest") {
                "[0-9a-f]+".to_owned()
            } else if is("process") {
                r"process \d+".to_owned()
            } else if is("spaces") {
                if whole.start() == 0 { id.to_owned() } else { " +".to_owned() }
            } else if let Some(known) = self.0.get(id) {
                regex::escape(known)
            } else if is_id(id, &line[..whole.start()]) {
                ids.push(id.to_owned());
                format!("(?P<id{}>[0-9a-z]{{8}})", ids.len() - 1)
            } else {
                regex::escape(id)
            };
        }
        pattern += &format!("{}$", regex::escape(&line[end..]));
        let found = Regex::new(&pattern.replace(" $", " *$")).unwrap().captures(actual)?;
        let mut names = self.clone();
        for (at, id) in ids.into_iter().enumerate() {
            let actual = found[format!("id{at}").as_str()].to_owned();
            // The same new id twice in a line must mean the same one.
            if *names.0.entry(id).or_insert_with(|| actual.clone()) != actual {
                return None;
            }
        }
        Some(names)
    }
}

/// Whether a word of eight characters is an id: ids have no i, l, o and u, and all but a few have a digit.
fn is_id(word: &str, before: &str) -> bool {
    let named = before.ends_with("run ") || before.ends_with("hold ");
    let mixed = word.bytes().any(|byte| byte.is_ascii_digit()) && word.bytes().any(|byte| byte.is_ascii_lowercase());
    mixed || (named && !word.contains(['i', 'l', 'o', 'u']))
}

/// Sorts consecutive lines about tasks that start and end, because tasks run in parallel.
fn in_any_order(lines: &[String]) -> Vec<String> {
    let task = Regex::new(r"^  \S+/\S+ (started|done in .*)$").unwrap();
    let mut sorted = lines.to_vec();
    sorted.chunk_by_mut(|one, other| task.is_match(one) && task.is_match(other)).for_each(<[String]>::sort);
    sorted
}

/// Output as part of a message.
pub(super) fn quoted(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("    {line}\n")).collect()
}
