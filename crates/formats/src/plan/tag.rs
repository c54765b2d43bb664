//! The tags of a plan, in the order of the file.
//!
//! Plans are Markdown with tags, not XML: code contains `<` and `&&`, and examples of tags. Text in a code fence, in inline code or in an
//! HTML comment is not a tag.

mod fence;
mod line;

pub(super) use fence::Fence;

use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::Report;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(super) struct Tag<'a> {
    /// The text after `<` or `</`.
    pub(super) name: &'a str,
    /// Whether it is `</name>`.
    pub(super) closes: bool,
    /// Whether it is `<name />`.
    pub(super) is_empty: bool,
    /// Whether its `>` is present; only a task may lack it.
    pub(super) is_whole: bool,
    /// Whether it is at the start of a line, or preceded only by other tags.
    pub(super) leads: bool,
    /// The text between the name and `>`.
    pub(super) inside: &'a str,
    /// The position of `<`.
    pub(super) start: usize,
    /// The position after `>`.
    pub(super) end: usize,
}

impl<'a> Tag<'a> {
    pub(super) fn opens(&self, name: &str) -> bool {
        !self.closes && self.name == name
    }

    pub(super) fn ends(&self, name: &str) -> bool {
        self.closes && self.name == name
    }

    /// The attributes in order, with unquoted values.
    pub(super) fn attributes(&self) -> Vec<(&'a str, &'a str)> {
        let mut attributes = Vec::new();
        let mut rest = self.inside.trim_start();
        while let Some(begin) = rest.find(|character: char| character.is_alphanumeric() || character == '_') {
            rest = &rest[begin..];
            let is_name = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | ':' | '.');
            let length = rest.find(|character| !is_name(character)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(length);
            let Some(value) = after.trim_start().strip_prefix('=') else {
                attributes.push((name, ""));
                rest = after;
                continue;
            };
            let value = value.trim_start();
            let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''));
            let (value, after) = match quote {
                Some(quote) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
                None => value.split_at(value.find(|end: char| end.is_whitespace() || end == '/').unwrap_or(value.len())),
            };
            attributes.push((name, value.trim()));
            rest = after;
        }
        attributes
    }

    /// The value of an attribute, unless it is empty.
    pub(super) fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes().into_iter().find(|(given, value)| *given == name && !value.is_empty()).map(|(_, value)| value)
    }
}

/// The tags and code fences of a file.
#[derive(Debug, Default)]
pub(super) struct Markup<'a> {
    pub(super) tags: Vec<Tag<'a>>,
    pub(super) fences: Vec<Fence<'a>>,
    /// For each opening tag, the next closing tag of the same name.
    pub(super) closed_by: Vec<Option<usize>>,
}

/// Finds the tags and fences of a file, starting at `from`.
pub(super) fn scan<'a>(source: &'a str, from: usize, report: &mut Report) -> Markup<'a> {
    let mut scan =
        Scan { source, tags: Vec::new(), fences: Vec::new(), open: BTreeMap::new(), comments_end: true, quiet_from: from };
    let lines = fence::lines(source, from);
    let closers = fence::Closers::of(source, &lines);
    let mut index = 0;
    let mut at = from;
    while let Some(line) = lines.get(index) {
        if line.end <= at {
            index += 1;
            continue;
        }
        let begin = line.start.max(at);
        if begin == line.start
            && let Some(opening) = fence::Opening::of(&source[line.clone()])
        {
            if closers.has_after(index, opening.mark, opening.length) {
                index = scan.fence(&lines, index, &opening, report);
                at = lines.get(index).map_or(source.len(), |line| line.start);
                continue;
            }
            report
                .warning(
                    ProblemCode::UnclosedFence,
                    line,
                    "this code fence is never closed; the file is read as if it did not exist",
                )
                .help("close it with a line that contains only the same marks");
        }
        at = scan.line(line.start, begin..line.end, report);
    }
    let Scan { tags, fences, .. } = scan;
    let closed_by = closed_by(&tags);
    Markup { tags, fences, closed_by }
}

fn closed_by(tags: &[Tag<'_>]) -> Vec<Option<usize>> {
    let mut next: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found = vec![None; tags.len()];
    for (index, tag) in tags.iter().enumerate().rev() {
        if tag.closes {
            next.insert(tag.name, index);
        } else if !tag.is_empty {
            found[index] = next.get(tag.name).copied();
        }
    }
    found
}

/// The state of a scan through the file.
struct Scan<'a> {
    source: &'a str,
    tags: Vec<Tag<'a>>,
    fences: Vec<Fence<'a>>,
    /// The number of open tags by name. A fence that continues past their end was not closed.
    open: BTreeMap<&'a str, usize>,
    /// Whether another `-->` may follow.
    comments_end: bool,
    /// The end of the last tag or comment.
    quiet_from: usize,
}

impl<'a> Scan<'a> {
    fn push(&mut self, tag: Tag<'a>) {
        let count = self.open.entry(tag.name).or_default();
        if tag.closes {
            *count = count.saturating_sub(1);
        } else if !tag.is_empty {
            *count += 1;
        }
        self.quiet_from = tag.end;
        self.tags.push(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        let markup = scan(source, 0, &mut Report::default());
        markup.tags.iter().map(|tag| format!("{}{}", if tag.closes { "/" } else { "" }, tag.name)).collect()
    }

    #[test]
    fn tags_in_code_and_comments_are_ignored() {
        assert_eq!(names("<a>\n```\n<b>\n```\n</a>"), ["a", "/a"]);
        assert_eq!(names("~~~~ts\n<b>\n~~~\n<c>\n~~~~\n<a>"), ["a"]);
        assert_eq!(names("1. ```html\n   <b>\n   ```\n<a>"), ["a"]);
        assert_eq!(names("`<b>` ``<c> ` <d>`` <a> `<e>"), ["a", "e"]);
        assert_eq!(names("<!-- <b>\n```\n<c> --> <a>\n<d>"), ["a", "d"]);
        assert_eq!(names("a < b && c<T> Vec<string> <Card> </x y> <1> < a> <a.b> <p:q>"), Vec::<String>::new());
    }

    #[test]
    fn unclosed_fences_and_comments_hide_no_tags() {
        assert_eq!(names("```\n<a>\n"), ["a"]);
        assert_eq!(names("<!-- <a>\n<b>"), ["a", "b"]);
        assert_eq!(
            names("<action>\n```ts\nlet x;\n</action>\n<verify>\n```sh\nmake\n```\n</verify>"),
            ["action", "/action", "verify", "/verify"]
        );
    }

    #[test]
    fn complete_tags_inside_a_fence_are_ignored() {
        assert_eq!(names("<action>\n```xml\n<action>\nx\n</action>\n```\n</action>"), ["action", "/action"]);
    }

    #[test]
    fn a_task_may_span_lines_or_lack_its_closing_tag() {
        let markup = scan("<task\n  type=\"auto\"\n  tdd='true' x>\n<task type=auto\n\nwords", 0, &mut Report::default());
        assert_eq!(markup.tags[0].attributes(), [("type", "auto"), ("tdd", "true"), ("x", "")]);
        assert!(markup.tags[0].is_whole && !markup.tags[1].is_whole);
        assert_eq!(markup.tags[1].attribute("type"), Some("auto"));
    }

    #[test]
    fn a_tag_is_leading_if_only_tags_precede_it_on_its_line() {
        let markup = scan("<a><b> x <c>\n  - <d>\n> <e> y</e>", 0, &mut Report::default());
        let leads: Vec<bool> = markup.tags.iter().map(|tag| tag.leads).collect();
        assert_eq!(leads, [true, true, false, true, true, false]);
        assert_eq!(markup.closed_by, [None, None, None, None, Some(5), None]);
    }
}
