//! The prompt of a workstream's agent: everything that the file says about the workstream.

use super::workstream::{NOT_LISTED_IN_PROMPT, RawWorkstream};
use super::{frontmatter, text};
use lockgate_engine::spec::reader::{Content, Node};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Markdown marks that may precede the first word of a heading.
const MARKS: [char; 4] = ['*', '`', '[', '('];

/// The maximum length of Markdown sections in a prompt.
const MAX_SECTIONS: usize = 64 << 10;

/// What the rest of the file says about a workstream.
pub(super) struct PromptContext<'t> {
    /// The pipeline: `PRD-009 (Cashier Workflows)`.
    pub(super) pipeline: &'t str,
    pub(super) phase: &'t str,
    /// The notes of that phase.
    pub(super) notes: &'t [String],
    /// The workstreams that complete before it, each with its name.
    pub(super) needs: &'t [String],
    /// Its gates: name, command, criteria.
    pub(super) gates: &'t [String],
    pub(super) sections: &'t Sections<'t>,
}

pub(super) fn prompt(workstream: &RawWorkstream<'_, '_>, context: &PromptContext<'_>) -> String {
    let id = workstream.id.text;
    let mut prompt = format!(
        "# {id}: {}\n\nThis is workstream {id} of {}, in the phase \"{}\".\n",
        workstream.name, context.pipeline, context.phase
    );
    if let Some(executor) = &workstream.executor {
        match workstream.fields.get("executor_type").and_then(text) {
            Some(kind) => _ = writeln!(prompt, "Work as the {kind} `{executor}`."),
            None => _ = writeln!(prompt, "Work as `{executor}`."),
        }
    }
    for note in context.notes {
        let _ = writeln!(prompt, "About the phase: {note}");
    }
    if let Some(description) = workstream.fields.get("description").and_then(text) {
        let _ = write!(prompt, "\n{description}\n");
    }
    list(&mut prompt, "Done before", context.needs);
    for entry in workstream.fields.entries {
        if !NOT_LISTED_IN_PROMPT.contains(&&*entry.key) && !entry.value.is_null() {
            let _ = write!(prompt, "\n## {}\n\n", heading(&entry.key));
            write_value(&mut prompt, &entry.value, 0);
        }
    }
    list(&mut prompt, "Gates that must pass afterwards", context.gates);
    let sections = context.sections.about(id);
    if !sections.is_empty() {
        let _ = write!(prompt, "\n---\n\nFrom the specification:\n\n{}\n", sections.trim_end());
    }
    prompt
}

fn list(prompt: &mut String, title: &str, items: &[String]) {
    if !items.is_empty() {
        let _ = write!(prompt, "\n## {title}\n\n");
        for item in items {
            let _ = writeln!(prompt, "- {item}");
        }
    }
}

/// `implementation_hints` as `Implementation hints`.
fn heading(key: &str) -> String {
    let words = key.replace(['_', '-'], " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn write_value(prompt: &mut String, node: &Node<'_>, depth: usize) {
    let indent = "  ".repeat(depth);
    match &*node.content {
        Content::Scalar(scalar) => {
            let _ = writeln!(prompt, "{indent}{}", indented(&scalar.text, &indent));
        }
        Content::List(items) => {
            for item in items {
                match &*item.content {
                    Content::Scalar(scalar) => {
                        let _ = writeln!(prompt, "{indent}- {}", indented(&scalar.text, &format!("{indent}  ")));
                    }
                    Content::List(_) | Content::Map(_) => {
                        let mut inner = String::new();
                        write_value(&mut inner, item, depth + 1);
                        // The first line of a nested value follows the dash.
                        let _ = writeln!(prompt, "{indent}- {}", inner.trim());
                    }
                }
            }
        }
        Content::Map(entries) => {
            for entry in entries {
                match &*entry.value.content {
                    Content::Scalar(scalar) => {
                        let _ = writeln!(prompt, "{indent}{}: {}", entry.key, indented(&scalar.text, &format!("{indent}  ")));
                    }
                    Content::List(_) | Content::Map(_) => {
                        let _ = writeln!(prompt, "{indent}{}:", entry.key);
                        write_value(prompt, &entry.value, depth + 1);
                    }
                }
            }
        }
    }
}

fn indented(text: &str, indent: &str) -> String {
    text.trim_end().replace('\n', &format!("\n{indent}"))
}

/// The sections of the Markdown, indexed by the first word of their headings.
#[derive(Default)]
pub(super) struct Sections<'t> {
    body: &'t str,
    found: BTreeMap<&'t str, Vec<(&'t str, Range<usize>)>>,
}

impl<'t> Sections<'t> {
    /// Finds the sections. Each ends at the next heading of the same or a higher level.
    pub(super) fn of(body: &'t str) -> Self {
        let mut sections = Self { body, found: BTreeMap::new() };
        let mut open: Vec<(usize, &'t str, usize)> = Vec::new();
        let mut fence: Option<&str> = None;
        for (range, line) in frontmatter::lines(body) {
            let trimmed = line.trim_start();
            match fence {
                Some(mark) if trimmed.starts_with(mark) => fence = None,
                Some(_) => {}
                None => {
                    fence = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
                    if let Some((level, title)) = heading_of(line) {
                        while let Some((_, title, start)) = open.pop_if(|(outer, ..)| level <= *outer) {
                            sections.add(title, start..range.start);
                        }
                        open.push((level, title, range.start));
                    }
                }
            }
        }
        open.into_iter().for_each(|(_, title, start)| sections.add(title, start..body.len()));
        sections
    }

    fn add(&mut self, title: &'t str, range: Range<usize>) {
        let word = first_word(title);
        if !word.is_empty() {
            self.found.entry(word).or_default().push((title, range));
        }
    }

    /// The sections whose headings start with an id, in order, without those nested in another one.
    fn about(&self, id: &str) -> String {
        let candidates = self.found.get(first_word(id)).map_or(&[][..], Vec::as_slice);
        let mut ranges: Vec<Range<usize>> =
            candidates.iter().filter(|(title, _)| starts_with_id(title, id)).map(|(_, range)| range.clone()).collect();
        ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        let mut text = String::new();
        let mut end = 0;
        for range in ranges.into_iter() {
            if range.start < end {
                continue;
            }
            end = range.end;
            text.push_str(&self.body[range]);
            if text.len() > MAX_SECTIONS {
                let cut = (0..=MAX_SECTIONS).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                text.truncate(cut);
                text.push_str("\n(The rest is in the specification.)\n");
                break;
            }
        }
        text
    }
}

/// The letters, digits and `_` at the start of a heading, after marks for bold or links.
fn first_word(title: &str) -> &str {
    let title = title.trim_start_matches(MARKS);
    let end = title.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(title.len());
    &title[..end]
}

fn heading_of(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line.get(level..)?;
    ((1..=6).contains(&level) && title.starts_with([' ', '\t'])).then(|| (level, title.trim()))
}

fn starts_with_id(title: &str, id: &str) -> bool {
    let title = title.trim_start_matches(MARKS);
    let rest = title.strip_prefix(id);
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found_by_the_id_at_the_start_of_their_heading() {
        let body =
            "# All\n### WS1: One\na\n```\n## no heading\n```\n#### Deeper\nb\n### WS10 Ten\nc\n## WS1 again\nd\n# End\ne\n";
        let sections = |id: &str| Sections::of(body).about(id);
        assert_eq!(sections("WS1"), "### WS1: One\na\n```\n## no heading\n```\n#### Deeper\nb\n## WS1 again\nd\n");
        assert_eq!(sections("WS10"), "### WS10 Ten\nc\n");
        assert_eq!(sections("WS2"), "");
    }

    #[test]
    fn keys_become_headings() {
        assert_eq!(heading("implementation_hints"), "Implementation hints");
        assert_eq!(heading(""), "");
    }
}
