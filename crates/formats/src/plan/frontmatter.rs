//! The YAML at the top of a plan.
//!
//! People and agents write it by example, so a misplaced colon or backslash is common. A line that breaks the YAML is read as
//! plain text, with a warning.

use super::text::is_nothing;
use super::{Artifact, Frontmatter, KeyLink, MustHaves};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::document::{self, Value};
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::reader::{Report, shown};
use lockgate_engine::spec::suggest;
use std::ops::Range;

/// The maximum size of the YAML.
const MAX_BYTES: usize = 1 << 18;
/// The number of lines that are repaired before parsing fails.
const MAX_FIXED: usize = 20;

/// The keys that have an effect.
const KEYS: [&str; 13] = [
    "phase",
    "plan",
    "type",
    "wave",
    "depends_on",
    "files_modified",
    "autonomous",
    "requirements",
    "user_setup",
    "must_haves",
    "commits",
    "gap_ids",
    "human_verify_mode",
];

/// The bytes from the first `---` to the second, and the position of the body; `None` without frontmatter.
pub(super) fn split(source: &str) -> Option<(Range<usize>, usize)> {
    let start = source.len() - source.trim_start_matches('\u{feff}').trim_start().len();
    let mut lines = source[start..].split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---")?;
    let mut at = start + first.len();
    for line in lines {
        if matches!(line.trim_end(), "---" | "...") {
            return Some((start..at, at + line.len()));
        }
        at += line.len();
    }
    None
}

/// Reads the frontmatter, and returns it with the position of the body.
pub(super) fn read(source: &str, report: &mut Report) -> (Frontmatter, usize) {
    let Some((range, body)) = split(source) else {
        let first = source.lines().next().unwrap_or_default();
        if first.trim_end() == "---" {
            report
                .error(ProblemCode::InvalidYaml, &(0..first.len()), "the frontmatter is not closed")
                .help("add a line `---` after it");
        } else {
            report
                .warning(ProblemCode::MissingKey, &(0..0), "the plan has no frontmatter")
                .help("start the file with `---`, the keys `phase`, `plan` and `must_haves`, and another `---`");
        }
        return (Frontmatter::default(), 0);
    };
    if range.len() > MAX_BYTES {
        report.error(ProblemCode::TooLarge, &range, format!("the frontmatter has more than {MAX_BYTES} bytes"));
        return (Frontmatter::default(), body);
    }
    let mut reader = Reader { source, line_ends: Vec::new(), report };
    // The YAML includes everything before it, so that positions are correct.
    let mut text = source[..range.end].to_owned();
    let mut fixed: Vec<usize> = Vec::new();
    let frontmatter = loop {
        let problem = match document::read(&text) {
            Ok(value) => {
                reader.line_ends = text.match_indices('\n').map(|(at, _)| at).collect();
                break reader.frontmatter(&value);
            }
            Err(problem) => problem,
        };
        let next = (fixed.len() < MAX_FIXED && !fixed.contains(&problem.line)).then(|| as_text(&text, problem.line)).flatten();
        let Some(next) = next else {
            let span = reader.span(&problem);
            reader.report.error(problem.code, &span, problem.message).maybe_help(problem.help);
            break Frontmatter::default();
        };
        let span = reader.span(&problem);
        reader
            .report
            .warning(problem.code, &span, format!("{}; the line is read as plain text", problem.message))
            .help("put single quotes around the text");
        fixed.push(problem.line);
        text = next;
    };
    (frontmatter, body)
}

/// Changes one line of the text, so that everything after its key or dash is plain text.
fn as_text(text: &str, line: usize) -> Option<String> {
    let start = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum::<usize>();
    let whole = text[start..].split_inclusive('\n').next()?;
    let content = whole.trim_end();
    let mut from = content.len() - content.trim_start().len();
    if let Some(rest) = content[from..].strip_prefix("- ") {
        from = content.len() - rest.trim_start().len();
    }
    let is_word = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let word = content[from..].find(|character| !is_word(character)).unwrap_or(0);
    if word > 0
        && let Some(rest) = content[from + word..].strip_prefix(':')
        && rest.starts_with([' ', '\t'])
    {
        from = content.len() - rest.trim_start().len();
    }
    let value = content[from..].trim();
    if value.is_empty() {
        return None;
    }
    let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let quoted = bare.replace('\'', "''");
    let after = &whole[content.len()..];
    let head = &text[..start + from];
    Some(format!("{head}'{quoted}'{after}{}", &text[start + whole.len()..]))
}

/// The non-empty items of a list; a single value is a list of one.
fn items<'a>(value: &Value<'a>) -> Vec<Value<'a>> {
    let items = value.items().unwrap_or_else(|| vec![value.clone()]);
    items.into_iter().filter(|item| !item.is_nothing()).collect()
}

struct Reader<'s, 'r> {
    source: &'s str,
    /// The line ends of the text that is parsed, repaired or not.
    line_ends: Vec<usize>,
    report: &'r mut Report,
}

impl Reader<'_, '_> {
    /// The bytes of the file that a problem refers to. The problem's own bytes are in a text whose lines may have been repaired.
    fn span(&self, problem: &Problem) -> Range<usize> {
        let mut lines = self.source.split_inclusive('\n');
        let start = lines.by_ref().take(problem.line - 1).map(str::len).sum::<usize>();
        let line = lines.next().unwrap_or_default().trim_end();
        let mark = usize::from(problem.line == 1 && line.starts_with('\u{feff}'));
        let at = line.char_indices().nth(problem.column - 1 + mark).map_or(line.len(), |(at, _)| at);
        start + at..(start + at + problem.span.len().max(1)).min(start + line.len().max(at))
    }

    fn line(&self, value: &Value<'_>) -> usize {
        1 + self.line_ends.partition_point(|end| *end < value.start())
    }

    fn warn(&mut self, value: &Value<'_>, message: impl Into<String>, help: &str) {
        if self.report.is_crowded() {
            return self.report.count();
        }
        let problem = value.problem(message, Some(help.to_owned()));
        let span = self.span(&problem);
        self.report.warning(ProblemCode::InvalidValue, &span, problem.message).maybe_help(problem.help);
    }

    fn frontmatter(&mut self, root: &Value<'_>) -> Frontmatter {
        let mut read = Frontmatter::default();
        let Some(entries) = root.entries() else {
            if !root.is_nothing() {
                self.warn(root, "the frontmatter must contain keys with values", "write `phase: …` and so on");
            }
            return read;
        };
        for entry in entries {
            let value = &entry.value;
            match entry.key.as_str() {
                "phase" => read.phase = self.text(value),
                "plan" => read.plan = self.text(value),
                "type" => read.kind = self.text(value),
                "wave" => read.wave = self.count(value, "`wave`"),
                "depends_on" => read.depends_on = self.list(value),
                "files_modified" => read.files_modified = self.list(value),
                "autonomous" => read.autonomous = self.boolean(value, "`autonomous`"),
                "requirements" => read.requirements = self.list(value),
                "gap_ids" => read.gap_ids = self.list(value),
                "human_verify_mode" => read.verify_at_end = self.verify_at_end(value),
                "user_setup" => {
                    read.user_setup = items(value).iter().map(|item| self.json(item)).collect();
                }
                "must_haves" => read.must_haves = self.must_haves(value),
                key => {
                    // Plans have many keys of their own, so only apparent misspellings are reported.
                    if suggest::nearest(key, KEYS).is_some_and(|known| known != key) {
                        self.warn_unknown(value, key, "the frontmatter", &KEYS);
                    }
                    read.rest.push((entry.key.clone(), self.json(value)));
                }
            }
        }
        read
    }

    /// Whether verifications wait until the end of the phase. For an unknown mode, they are asked where the plan has them.
    fn verify_at_end(&mut self, value: &Value<'_>) -> bool {
        let word = self.text(value).unwrap_or_default().trim().to_ascii_lowercase().replace('_', "-");
        match word.as_str() {
            "end-of-phase" => true,
            "mid-flight" | "inline" | "" => false,
            _ => {
                let message = format!(
                    "unknown `human_verify_mode` `{}`; each verification is asked in its place in the plan",
                    shown(&word)
                );
                self.warn(value, message, "write `end-of-phase` or `mid-flight`");
                false
            }
        }
    }

    fn warn_unknown(&mut self, value: &Value<'_>, key: &str, of: &str, known: &[&str]) {
        if self.report.is_crowded() {
            return self.report.count();
        }
        let message = format!("unknown key `{}` in {of}; it has no effect", shown(key));
        let problem = value.problem(message, suggest::meant_or_known(key, known.iter().copied()));
        let span = self.span(&problem);
        self.report.warning(ProblemCode::UnknownKey, &span, problem.message).maybe_help(problem.help);
    }

    fn must_haves(&mut self, value: &Value<'_>) -> MustHaves {
        let mut read = MustHaves::default();
        let Some(entries) = value.entries() else {
            read.truths = self.sentences(value);
            return read;
        };
        for entry in entries {
            match entry.key.as_str() {
                "truths" => read.truths = self.sentences(&entry.value),
                "artifacts" => {
                    let items = items(&entry.value);
                    read.artifacts = items.iter().filter_map(|item| self.artifact(item)).collect();
                }
                "key_links" => {
                    let items = items(&entry.value);
                    read.key_links = items.iter().map(|item| self.key_link(item)).collect();
                }
                key => {
                    self.warn_unknown(&entry.value, key, "`must_haves`", &["truths", "artifacts", "key_links"]);
                    read.rest.push((entry.key.clone(), self.json(&entry.value)));
                }
            }
        }
        read
    }

    fn artifact(&mut self, value: &Value<'_>) -> Option<Artifact> {
        let mut read = Artifact { line: self.line(value), ..Artifact::default() };
        let Some(entries) = value.entries() else {
            read.path = value.text()?.to_owned();
            return Some(read);
        };
        for entry in entries {
            match entry.key.as_str() {
                "path" => read.path = self.text(&entry.value).unwrap_or_default(),
                "provides" => read.provides = self.text(&entry.value).unwrap_or_default(),
                "contains" => read.contains = self.sentences(&entry.value),
                "exports" => read.exports = self.list(&entry.value),
                "min_lines" => read.min_lines = self.count(&entry.value, "`min_lines`"),
                key => {
                    self.warn_unknown(
                        &entry.value,
                        key,
                        "an artifact",
                        &["path", "provides", "contains", "exports", "min_lines"],
                    );
                    read.rest.push((entry.key.clone(), self.json(&entry.value)));
                }
            }
        }
        if read.path.is_empty() {
            self.warn(value, "this artifact has no path, so it cannot be checked", "write `path: …`");
        }
        Some(read)
    }

    fn key_link(&mut self, value: &Value<'_>) -> KeyLink {
        let mut read = KeyLink { line: self.line(value), ..KeyLink::default() };
        let Some(entries) = value.entries() else {
            read.via = value.text().unwrap_or_default().to_owned();
            self.warn(value, "this link has no `from` and `to`", "write `from`, `to`, `via` and `pattern`");
            return read;
        };
        for entry in entries {
            match entry.key.as_str() {
                "from" => read.from = self.text(&entry.value).unwrap_or_default(),
                "to" => read.to = self.text(&entry.value).unwrap_or_default(),
                "via" => read.via = self.text(&entry.value).unwrap_or_default(),
                "pattern" => read.pattern = self.text(&entry.value),
                key => {
                    self.warn_unknown(&entry.value, key, "a link", &["from", "to", "via", "pattern"]);
                    read.rest.push((entry.key.clone(), self.json(&entry.value)));
                }
            }
        }
        read
    }

    /// A scalar as written; `08` stays `08`.
    fn text(&mut self, value: &Value<'_>) -> Option<String> {
        if value.is_nothing() {
            return None;
        }
        value.text().map(str::to_owned).or_else(|| Some(self.sentence(value)))
    }

    /// A text that YAML may parse as a map, such as `Login: works`.
    fn sentence(&mut self, value: &Value<'_>) -> String {
        if let Some(text) = value.text() {
            return text.to_owned();
        }
        match value.entries().as_deref() {
            Some([entry]) if entry.value.text().is_some() => format!("{}: {}", entry.key, entry.value.text().unwrap_or_default()),
            Some(_) | None => self.json(value).to_string(),
        }
    }

    fn sentences(&mut self, value: &Value<'_>) -> Vec<String> {
        items(value).iter().map(|item| self.sentence(item)).collect()
    }

    /// A list of names, or a single string with commas.
    fn list(&mut self, value: &Value<'_>) -> Vec<String> {
        match value.text() {
            Some(text) => text.split(',').map(str::trim).filter(|item| !is_nothing(item)).map(str::to_owned).collect(),
            None => self.sentences(value),
        }
    }

    fn count(&mut self, value: &Value<'_>, what: &str) -> Option<u32> {
        let text = value.text()?.trim();
        let count = text.parse().ok();
        if count.is_none() {
            let message = format!("{what} must be a whole number, not `{}`; it is ignored", shown(text));
            self.warn(value, message, "write it without units");
        }
        count
    }

    fn boolean(&mut self, value: &Value<'_>, what: &str) -> Option<bool> {
        match value.text()?.to_ascii_lowercase().as_str() {
            "true" | "yes" => Some(true),
            "false" | "no" => Some(false),
            text => {
                let message = format!("{what} must be true or false, not `{}`; it is read as false", shown(text));
                self.warn(value, message, "write `true` or `false`");
                Some(false)
            }
        }
    }

    fn json(&mut self, value: &Value<'_>) -> serde_json::Value {
        value.json().unwrap_or_else(|problem| {
            let span = self.span(&problem);
            self.report.warning(problem.code, &span, problem.message).maybe_help(problem.help);
            serde_json::Value::Null
        })
    }
}
