//! Parses what a line or a table cell says about an option: id, name, pros and cons.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Label {
    /// The id, if the agent gave one.
    pub(super) id: Option<String>,
    /// The text that people read.
    pub(super) name: String,
    /// Whether this is certainly an option: it has an id, or is called "Option B".
    pub(super) certain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Pros,
    Cons,
}

const PROS: &[&str] = &["pros", "pro", "advantages", "advantage", "benefits", "benefit", "upsides", "upside", "strengths"];
const CONS: &[&str] = &[
    "cons",
    "con",
    "disadvantages",
    "disadvantage",
    "drawbacks",
    "drawback",
    "downsides",
    "downside",
    "tradeoffs",
    "tradeoff",
    "trade-offs",
    "trade-off",
    "risks",
    "risk",
    "weaknesses",
];
const OPTIONS: &[&str] = &["options", "option", "choices", "alternatives", "approaches", "possibilities"];
/// Words that may precede "options": "Available options".
const BEFORE_OPTIONS: &[&str] = &["the", "your", "my", "available", "possible", "these", "considered", "decision"];
/// Headings that follow a list of options in blocks written by agents.
const AFTER_OPTIONS: &[&str] = &[
    "recommendation",
    "my recommendation",
    "recommended",
    "suggestion",
    "context",
    "background",
    "note",
    "notes",
    "awaiting",
    "your action",
    "why",
    "why this matters",
    "impact",
    "default",
    "question",
    "next steps",
    "answer with",
];

impl Side {
    pub(super) fn of_column(name: &str) -> Option<Self> {
        Self::of_word(&bare(name).to_lowercase())
    }

    fn of_word(word: &str) -> Option<Self> {
        match word {
            _ if PROS.contains(&word) => Some(Self::Pros),
            _ if CONS.contains(&word) => Some(Self::Cons),
            _ => None,
        }
    }
}

/// Whether this line introduces the options: "**Options:**", "#### Available options".
pub(super) fn marks_options(line: &str) -> bool {
    let text = bare(unmarked(line));
    let head = text.split_once(':').map_or(text.as_str(), |(head, _)| head).to_lowercase();
    let is_label = text.contains(':') || line.trim_start().starts_with(['#', '*']) || head.len() == text.len();
    let words: Vec<&str> = head.split_whitespace().collect();
    let Some((last, before)) = words.split_last() else { return false };
    is_label && OPTIONS.contains(last) && before.iter().all(|word| BEFORE_OPTIONS.contains(word))
}

/// The text after "Options:" on the same line.
pub(super) fn after_marker(line: &str) -> Option<String> {
    let text = bare(unmarked(line));
    let (_, rest) = text.split_once(':').filter(|_| marks_options(line))?;
    Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty())
}

/// Whether this line starts something other than another option.
pub(super) fn ends_options(line: &str) -> bool {
    let is_indented = line.starts_with([' ', '\t']);
    let trimmed = line.trim();
    if is_indented || trimmed.is_empty() || side(trimmed).is_some() {
        return false;
    }
    if trimmed.len() >= 3 && trimmed.chars().all(|sign| matches!(sign, '-' | '*' | '_' | '=')) {
        return true;
    }
    let text = bare(trimmed.trim_start_matches('#'));
    let head = text.split_once(':').map_or(text.as_str(), |(head, _)| head).trim().to_lowercase();
    AFTER_OPTIONS.contains(&head.as_str())
        && (trimmed.starts_with(['#', '*', '-']) || text.contains(':') || head == text.to_lowercase())
}

/// Parses a line with pros or cons: `Pros: simple`, `- **Cons:**`.
pub(super) fn side(line: &str) -> Option<(Side, String)> {
    let text = bare(unmarked(line));
    let (head, rest) = text.split_once(':')?;
    Some((Side::of_word(&head.trim().to_lowercase())?, rest.trim().to_owned()))
}

/// Splits a line into name, pros and cons: `SQLite. Pros: simple. Cons: one machine`.
pub(super) fn split_sides(text: &str) -> (String, Option<String>, Option<String>) {
    let mut cuts: Vec<(usize, usize, Side)> = Vec::new();
    for (at, _) in text.match_indices(':') {
        let before = text[..at].trim_end_matches('*');
        let from =
            before.rfind(|sign: char| !sign.is_alphabetic() && sign != '-').map_or(0, |index| index + sign_len(before, index));
        if let Some(side) = Side::of_word(&before[from..].to_lowercase())
            && !cuts.iter().any(|(_, _, known)| *known == side)
        {
            cuts.push((from, at + 1, side));
        }
    }
    let end = |index: usize| cuts.get(index + 1).map_or(text.len(), |(next, _, _)| *next);
    let (mut pros, mut cons) = (None, None);
    for (index, (_, from, side)) in cuts.iter().enumerate() {
        let said = edges(&text[*from..end(index)]);
        *match side {
            Side::Pros => &mut pros,
            Side::Cons => &mut cons,
        } = Some(said);
    }
    let name = cuts.first().map_or(text, |(from, _, _)| &text[..*from]);
    let name = if cuts.is_empty() { bare(name) } else { edges(name) };
    (name, pros, cons)
}

fn sign_len(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(1, char::len_utf8)
}

/// A part of a sentence without the punctuation at its ends.
fn edges(text: &str) -> String {
    let text = bare(text);
    text.trim_matches(|sign: char| sign.is_whitespace() || ".;,|–—-(".contains(sign)).to_owned()
}

/// Parses the id and the name of an option.
pub(super) fn label(text: &str) -> Label {
    let quoted = quoted_id(text.trim());
    let text = bare(text);
    if let Some((id, rest)) = quoted {
        let name = rest.trim_start_matches(|sign: char| sign.is_whitespace() || ":–—-.)".contains(sign)).trim();
        let name = if name.is_empty() { id.clone() } else { bare(name) };
        return Label { id: Some(id), name, certain: true };
    }
    if let Some((id, name)) = called_option(&text) {
        return Label { id: Some(id), name, certain: true };
    }
    if let Some((head, name)) = text.split_once(':') {
        let head = without_remark(head);
        if is_id(head) {
            let name = if name.trim().is_empty() { head } else { name.trim() };
            return Label { id: Some(head.to_owned()), name: name.to_owned(), certain: true };
        }
    }
    // The name, up to its description, becomes the id.
    let head =
        [": ", " — ", " – ", " - "].iter().filter_map(|sign| text.find(sign)).min().map_or(text.as_str(), |at| &text[..at]);
    let head = without_remark(head);
    let id = is_id(head).then(|| head.to_owned()).or_else(|| Some(slug(head)).filter(|_| head.len() < text.len()));
    Label { id, name: text, certain: false }
}

/// Whether a line outside a list names an option: `**Option A:** SQLite`.
pub(super) fn called_line(line: &str) -> bool {
    let text = bare(line);
    text.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("option ")) && called_option(&text).is_some()
}

/// An id in backticks or brackets at the start: `` `sqlite` ``, `[sqlite]`, `(a)`.
fn quoted_id(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start_matches('*');
    let close = match text.chars().next()? {
        '`' => '`',
        '[' => ']',
        '(' => ')',
        '{' => '}',
        _ => return None,
    };
    let (id, rest) = text[1..].split_once(close)?;
    let id = id.trim().trim_matches('*');
    // A checkbox is not an id.
    (is_id(id) && !id.eq_ignore_ascii_case("x")).then(|| (id.to_owned(), rest.trim_start_matches('*')))
}

/// `Option A: SQLite`, `Option 2 — Redis`, `A) Redis`.
fn called_option(text: &str) -> Option<(String, String)> {
    let is_short = |word: &str| !word.is_empty() && word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let (word, is_named) = match text.get(..7).filter(|word| word.eq_ignore_ascii_case("option ")) {
        Some(_) => (&text[7..], true),
        None => (text, false),
    };
    let end = word.find(|sign: char| !sign.is_ascii_alphanumeric()).unwrap_or(word.len());
    let (id, rest) = word.split_at(end);
    let rest = rest.trim_start();
    let follows = rest.is_empty() || rest.starts_with([':', ')', '.', '-', '–', '—', '(', '=', ',']);
    let is_letter = id.len() == 1 && id.bytes().all(|byte| byte.is_ascii_alphabetic()) && rest.starts_with([')', '.', ':']);
    if !(is_short(id) && ((is_named && follows) || (is_letter && !rest[1..].trim().is_empty()))) {
        return None;
    }
    let name = rest.trim_start_matches(|sign: char| sign.is_whitespace() || ":).–—-=,".contains(sign)).trim();
    let name = name.strip_prefix('(').and_then(|name| name.strip_suffix(')')).filter(|name| !name.contains('(')).unwrap_or(name);
    let id = if is_named { format!("option-{}", id.to_lowercase()) } else { id.to_owned() };
    Some((id, if name.is_empty() { text.trim().to_owned() } else { name.to_owned() }))
}

/// Removes "(recommended)" and similar remarks.
fn without_remark(head: &str) -> &str {
    let head = head.trim();
    match head.split_once(" (") {
        Some((id, remark)) if remark.ends_with(')') => id.trim(),
        Some(_) | None => head,
    }
}

/// Whether a word is usable as an option id without changes.
pub(super) fn is_id(word: &str) -> bool {
    let fits = |sign: char| sign.is_alphanumeric() || "-_.".contains(sign);
    !word.is_empty() && word.chars().count() <= 40 && word.chars().all(fits) && word.chars().any(char::is_alphanumeric)
}

/// Derives an id from a name.
pub(super) fn slug(name: &str) -> String {
    let words = name.to_lowercase().replace(|sign: char| !sign.is_alphanumeric(), " ");
    let mut slug = String::new();
    for word in words.split_whitespace() {
        if slug.chars().count() + word.chars().count() > 39 {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(word);
    }
    slug
}

/// Removes the list or heading marker from a line.
pub(super) fn unmarked(line: &str) -> &str {
    let line = line.trim();
    let line = line.trim_start_matches('#').trim_start();
    ["- ", "* ", "+ ", "• ", "> "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line).trim()
}

/// Removes bold marks, backticks and a checkbox from a text.
pub(super) fn bare(text: &str) -> String {
    let text = text.trim();
    let text = ["[ ]", "[x]", "[X]"].iter().find_map(|mark| text.strip_prefix(mark)).unwrap_or(text);
    text.replace("**", "").replace("__", "").replace('`', "").trim().to_owned()
}
