//! The block in which an agent reports that it has reached a checkpoint, and what it has completed so far.
//!
//! Rendering follows the checkpoint protocol exactly. Parsing accepts what agents write: prose around the block, a code fence,
//! missing bold marks, other columns. A rendered block parses back unchanged.

mod options;

use super::completed_tasks;
use super::escape::{from_block, in_block, in_line, plain};
use lockgate_engine::run::handover::{CurrentTask, Handover, HandoverKind, HandoverStatus};
use lockgate_engine::spec::workflow::question::DecisionOption;
pub use options::MAX_OPTIONS;

/// Only this many bytes at the end of a text are searched, because the last block counts.
pub const MAX_BYTES: usize = 1 << 20;

/// Renders the block as the protocol defines it.
pub fn render(handover: &Handover) -> String {
    // The details already list the options.
    let Handover { kind, plan, done, total, completed, current, details, awaiting, options: _ } = handover;
    let line = |key: &str, value: &str| format!("**{key}:** {value}").trim_end().to_owned();
    let lines = [
        "## CHECKPOINT REACHED".to_owned(),
        String::new(),
        line("Type", kind_word(*kind)),
        line("Plan", &in_line(plan, &[])),
        line("Progress", &format!("{done}/{total} tasks complete")),
        String::new(),
        "### Completed Tasks".to_owned(),
        String::new(),
        completed_tasks::render(completed),
        "### Current Task".to_owned(),
        String::new(),
        line(&format!("Task {}", in_line(&current.number, &[':', '*'])), &in_line(&current.name, &[])),
        line("Status", status_words(current.status)),
        line("Blocked by", &in_line(&current.blocked_by, &[])),
        String::new(),
        "### Checkpoint Details".to_owned(),
        String::new(),
        in_block(details, |line| Heading::of(line).is_some()),
        String::new(),
        "### Awaiting".to_owned(),
        String::new(),
        in_block(awaiting, ends_awaiting),
    ];
    lines.join("\n").trim_end().to_owned() + "\n"
}

/// The options listed in the details and the request of a handover, each with a unique id; none if it does not ask for a decision.
pub fn options(kind: HandoverKind, details: &str, awaiting: &str) -> Vec<DecisionOption> {
    match kind {
        HandoverKind::Decision => options::read(details, awaiting),
        HandoverKind::Verify | HandoverKind::Action => Vec::new(),
    }
}

/// Finds the last block in a text. The text is only read: nothing in it is executed.
pub fn parse(text: &str) -> Option<Handover> {
    let mut from = text.len().saturating_sub(MAX_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let lines: Vec<&str> = text[from..].split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    let mut fenced = false;
    let mut headings: Vec<(usize, bool)> = Vec::new();
    let mut only = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if is_fence(line) {
            fenced = !fenced;
        } else if Heading::of(line) == Some(Heading::Reached) {
            headings.push((index, fenced));
            // A heading with more words is a sentence about checkpoints.
            only.push(!fenced && is_only_heading(line));
        }
    }
    let mut end = lines.len();
    for ((start, fenced), only) in headings.into_iter().zip(only).rev() {
        if let Some(handover) = block(&lines[start + 1..end], fenced, only) {
            return Some(handover);
        }
        end = start;
    }
    None
}

const fn kind_word(kind: HandoverKind) -> &'static str {
    match kind {
        HandoverKind::Verify => "human-verify",
        HandoverKind::Decision => "decision",
        HandoverKind::Action => "human-action",
    }
}

const fn status_words(status: HandoverStatus) -> &'static str {
    match status {
        HandoverStatus::Blocked => "blocked",
        HandoverStatus::AwaitingVerification => "awaiting verification",
        HandoverStatus::AwaitingDecision => "awaiting decision",
    }
}

/// A heading that belongs to the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heading {
    Reached,
    Completed,
    Current,
    Details,
    Awaiting,
}

impl Heading {
    fn of(line: &str) -> Option<Self> {
        // Terminal colors are not part of a heading.
        let plain = if line.contains('\u{1b}') { without_colors(line) } else { String::new() };
        let line = if plain.is_empty() { line.trim() } else { plain.trim() };
        if line == "CHECKPOINT REACHED" {
            return Some(Self::Reached);
        }
        let after = line.trim_start_matches('#');
        let is_bold = after.len() == line.len();
        if is_bold && !(line.starts_with("**") && line.trim_end_matches(':').ends_with("**")) {
            return None;
        }
        let name = after.trim_matches(|sign: char| sign.is_whitespace() || matches!(sign, '*' | ':' | '#')).to_lowercase();
        // Agents set whole sentences in bold; only these exact words are a heading.
        let is_named = |words: &str| {
            let rest = name.strip_prefix(words);
            rest.is_some_and(|rest| rest.is_empty() || (!is_bold && !rest.starts_with(char::is_alphanumeric)))
        };
        if is_named("checkpoint reached") {
            Some(Self::Reached)
        } else if is_named("completed tasks") || is_named("completed task") {
            Some(Self::Completed)
        } else if is_named("current task") {
            Some(Self::Current)
        } else if is_named("checkpoint details") {
            Some(Self::Details)
        } else if is_named("awaiting") {
            Some(Self::Awaiting)
        } else {
            None
        }
    }
}

/// Whether the awaited input ends before this line because a new section starts.
fn ends_awaiting(line: &str) -> bool {
    let after = line.trim_start().trim_start_matches('#');
    let is_heading = after.len() < line.trim_start().len() && (after.is_empty() || after.starts_with([' ', '\t']));
    is_heading || Heading::of(line).is_some()
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// Parses the lines after a heading, up to the next block.
fn block(lines: &[&str], fenced: bool, only: bool) -> Option<Handover> {
    let mut parts: [Option<(usize, usize)>; 5] = [Some((0, lines.len())), None, None, None, None];
    let mut open = 0;
    for (index, line) in lines.iter().enumerate() {
        let ends = open == 4 && (ends_awaiting(line) || (fenced && is_fence(line)));
        let part = match Heading::of(line) {
            Some(Heading::Completed) => Some(1),
            Some(Heading::Current) => Some(2),
            Some(Heading::Details) => Some(3),
            Some(Heading::Awaiting) => Some(4),
            Some(Heading::Reached) | None => None,
        };
        if (part.is_some() || ends)
            && let Some((_, end)) = &mut parts[open]
            && *end == lines.len()
        {
            *end = index;
        }
        if let Some(part) = part {
            open = part;
            parts[part].get_or_insert((index + 1, lines.len()));
        }
    }
    let part = |part: usize| parts[part].map_or(&[][..], |(from, to)| &lines[from..to]);
    let (head, stopped) = (Keys::of(part(0)), Keys::of(part(2)));
    let word = head.value("type").or(stopped.value("type"));
    let said = stopped.value("status").or(head.value("status"));
    // This is a description of the format, not a block.
    if word.is_some_and(|word| word.contains('|')) {
        return None;
    }
    let status = said.map(status);
    if word.is_none() && status.is_none() && parts[1..].iter().all(Option::is_none) {
        // An agent that prints only the heading has stopped. In a code fence the heading is only an example.
        return only.then(|| stopped_there(lines));
    }
    let kind = word.and_then(kind).unwrap_or(match status {
        Some(HandoverStatus::Blocked) => HandoverKind::Action,
        Some(HandoverStatus::AwaitingDecision) => HandoverKind::Decision,
        Some(HandoverStatus::AwaitingVerification) | None => HandoverKind::Verify,
    });
    let status = status.unwrap_or(match kind {
        HandoverKind::Verify => HandoverStatus::AwaitingVerification,
        HandoverKind::Decision => HandoverStatus::AwaitingDecision,
        HandoverKind::Action => HandoverStatus::Blocked,
    });
    let completed = completed_tasks::parse(part(1));
    let counted = u32::try_from(completed.len()).unwrap_or(u32::MAX);
    let (done, total) = head.value("progress").and_then(progress).unwrap_or((counted, counted));
    let (number, name) = stopped.task().unwrap_or_default();
    let blocked_by = stopped.value("blocked by").map(plain).unwrap_or_default();
    let details = from_block(part(3), |line| Heading::of(line).is_some());
    let awaiting = from_block(part(4), ends_awaiting);
    Some(Handover {
        kind,
        plan: head.value("plan").map(plain).unwrap_or_default(),
        done,
        total,
        completed,
        current: CurrentTask { number, name, status, blocked_by },
        options: options(kind, &details, &awaiting),
        details,
        awaiting,
    })
}

/// Whether a line is the heading of a block and nothing else.
fn is_only_heading(line: &str) -> bool {
    let line = without_colors(line);
    line.trim()
        .trim_matches(|sign: char| sign.is_whitespace() || matches!(sign, '*' | ':' | '#'))
        .eq_ignore_ascii_case("checkpoint reached")
}

/// A handover of which there is only the heading: the lines after it become the details for the person.
fn stopped_there(lines: &[&str]) -> Handover {
    let details = from_block(lines, |line| Heading::of(line).is_some());
    let current =
        CurrentTask { number: String::new(), name: String::new(), status: HandoverStatus::Blocked, blocked_by: String::new() };
    Handover {
        kind: HandoverKind::Action,
        plan: String::new(),
        done: 0,
        total: 0,
        completed: Vec::new(),
        current,
        details,
        awaiting: String::new(),
        options: Vec::new(),
    }
}

/// Removes terminal escape sequences from a line.
fn without_colors(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.strip_prefix('[').map(|rest| rest.trim_start_matches(|sign: char| sign.is_ascii_digit() || sign == ';'));
        plain.push_str(rest.map_or(part, |rest| rest.get(1..).unwrap_or_default()));
    }
    plain
}

/// Lines of `**Key:** value`, with or without the bold marks.
struct Keys<'a> {
    pairs: Vec<(String, &'a str)>,
}

impl<'a> Keys<'a> {
    fn of(lines: &[&'a str]) -> Self {
        let pair = |line: &&'a str| {
            let line = line.trim();
            let line = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line);
            let (key, value) = line.split_once(':')?;
            let is_open = key.starts_with("**") && !key[2..].contains("**");
            let key = key.trim_matches(|sign: char| sign == '*' || sign.is_whitespace());
            let value = match value.strip_prefix("**") {
                Some(value) => value,
                // The whole line is bold.
                None if is_open => value.trim_end().strip_suffix("**").unwrap_or(value),
                None => value,
            };
            Some((key.to_owned(), value.trim()))
        };
        Self { pairs: lines.iter().filter_map(pair).collect() }
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(given, _)| given.eq_ignore_ascii_case(key)).map(|(_, value)| *value)
    }

    fn task(&self) -> Option<(String, String)> {
        self.pairs.iter().find_map(|(key, value)| {
            let rest = key.get(..4).filter(|word| word.eq_ignore_ascii_case("task")).map(|_| &key[4..])?;
            let is_number = rest.is_empty() || rest.starts_with(char::is_whitespace);
            is_number.then(|| (plain(rest.trim()), plain(value)))
        })
    }
}

fn kind(word: &str) -> Option<HandoverKind> {
    let word = word.to_lowercase();
    if word.contains("decision") || word.contains("decide") {
        Some(HandoverKind::Decision)
    } else if word.contains("action") || word.contains("auth") {
        Some(HandoverKind::Action)
    } else if word.contains("verif") {
        Some(HandoverKind::Verify)
    } else {
        None
    }
}

fn status(words: &str) -> HandoverStatus {
    let words = words.to_lowercase();
    if words.contains("verif") {
        HandoverStatus::AwaitingVerification
    } else if words.contains("decision") {
        HandoverStatus::AwaitingDecision
    } else {
        HandoverStatus::Blocked
    }
}

/// The two numbers of `2/8 tasks complete`.
fn progress(text: &str) -> Option<(u32, u32)> {
    let (done, rest) = text.split_once('/').or_else(|| text.split_once(" of "))?;
    let done = done.rsplit(|digit: char| !digit.is_ascii_digit()).find(|digits| !digits.is_empty())?;
    let total = rest.split(|digit: char| !digit.is_ascii_digit()).find(|digits| !digits.is_empty())?;
    Some((done.parse().ok()?, total.parse().ok()?))
}

#[cfg(test)]
mod tests;
