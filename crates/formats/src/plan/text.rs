//! Parses text in a plan: lists of files, names, indentation.

/// The maximum number of characters of a derived name.
const MAX_NAME: usize = 60;

/// Removes the common indentation of all lines, and empty lines at both ends.
pub(super) fn unindented(text: &str) -> String {
    let text = text.trim_end();
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    // The first line may start right after the tag, so its indentation does not count.
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let shared = rest.lines().filter(|line| !line.trim().is_empty()).map(indentation).min().unwrap_or(0);
    let mut lines: Vec<&str> = vec![first.trim()];
    lines.extend(rest.lines().map(|line| line.get(shared.min(indentation(line))..).unwrap_or_default().trim_end()));
    let start = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
    lines[start..].join("\n")
}

/// The files of a list with commas or line breaks, possibly with bullets, backticks and remarks.
pub(super) fn files(text: &str) -> Vec<String> {
    text.split(['\n', ',']).map(file).filter(|file| !file.is_empty() && !is_nothing(file)).map(str::to_owned).collect()
}

fn file(text: &str) -> &str {
    let text = text.trim();
    let text = text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")).unwrap_or(text).trim();
    if let Some((file, _)) = text.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
        return file.trim();
    }
    // `src/app/(auth)/page.tsx` is a path; `page.tsx (new)` has a remark.
    let end = [" (", " — ", " – ", " - ", " # ", " -- "].iter().filter_map(|sign| text.find(sign)).min();
    text[..end.unwrap_or(text.len())].trim()
}

/// Whether the text is one of the usual ways to write "nothing".
pub(super) fn is_nothing(text: &str) -> bool {
    matches!(text.trim().to_ascii_lowercase().as_str(), "" | "-" | "—" | "none" | "n/a" | "na" | "nothing" | "null" | "~")
        || text.starts_with("(none")
        || text.starts_with("N/A ")
}

/// Removes `Task 3:` at the start of a name.
pub(super) fn without_number(name: &str) -> &str {
    let rest = name.strip_prefix("Task").or_else(|| name.strip_prefix("task")).or_else(|| name.strip_prefix("TASK"));
    let Some(rest) = rest.filter(|rest| rest.starts_with([' ', '\u{a0}'])) else { return name };
    let rest = rest.trim_start();
    let after = rest.trim_start_matches(|part: char| part.is_ascii_alphanumeric() || matches!(part, '.' | '-' | '_'));
    let number = &rest[..rest.len() - after.len()];
    let named = after.trim_start().strip_prefix([':', '-', '–', '—']).map(str::trim_start);
    match named {
        Some(named) if !named.is_empty() && number.starts_with(|digit: char| digit.is_ascii_digit()) => named,
        Some(_) | None => name,
    }
}

/// Derives a name from a text: its first meaningful line, without Markdown marks, and shortened.
pub(super) fn name_from(text: &str) -> Option<String> {
    let plain = |line: &str| {
        let line = line.trim().trim_start_matches(['#', '-', '*', '>', '+']).trim_start();
        let rest = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let line = if rest.len() < line.len() { rest.strip_prefix(". ").unwrap_or(line) } else { line };
        line.replace(['`', '*'], "").trim_end_matches([':', '.', ' ']).trim().to_owned()
    };
    let is_code = |line: &str| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
    let line = text.lines().filter(|line| !is_code(line)).map(plain).find(|line| line.chars().any(char::is_alphanumeric))?;
    // One sentence is enough.
    let sentence =
        line.split_once(". ").map(|(sentence, _)| sentence).filter(|sentence| sentence.chars().any(char::is_alphanumeric));
    let line = sentence.unwrap_or(&line);
    Some(shortened(line))
}

/// Puts a text on one line, without control characters.
pub(super) fn in_one_line(text: &str) -> String {
    let shown = text.replace(char::is_control, " ");
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn shortened(line: &str) -> String {
    let line = in_one_line(line);
    if line.chars().count() <= MAX_NAME {
        return line;
    }
    let cut: String = line.chars().take(MAX_NAME).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{}…", whole.trim_end_matches([',', ';', ':', ' ']))
}

/// The first quoted text.
pub(super) fn quoted(text: &str) -> Option<&str> {
    for (open, close) in [('"', '"'), ('“', '”'), ('`', '`')] {
        let found = text.split_once(open).and_then(|(_, rest)| rest.split_once(close)).map(|(word, _)| word.trim());
        if let Some(word) = found.filter(|word| !word.is_empty() && !word.contains('\n')) {
            return Some(word);
        }
    }
    None
}

/// Derives an id from a text: lowercase letters and digits, joined with `-`.
pub(super) fn id_from(text: &str) -> String {
    let small = text.to_lowercase();
    let words = small.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.take(6).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_lists_may_use_commas_lines_bullets_and_remarks() {
        assert_eq!(files("src/a.ts, src/b.ts"), ["src/a.ts", "src/b.ts"]);
        assert_eq!(files("\n  src/(auth)/a b.ts,\n  src/[id]/c.ts (new)\n"), ["src/(auth)/a b.ts", "src/[id]/c.ts"]);
        assert_eq!(files("- `a.rs` - the heart\n* b.rs — rest"), ["a.rs", "b.rs"]);
        assert_eq!(files("N/A"), Vec::<String>::new());
        assert_eq!(files(" none "), Vec::<String>::new());
    }

    #[test]
    fn a_leading_number_is_removed_from_the_name() {
        assert_eq!(without_number("Task 3: Build it"), "Build it");
        assert_eq!(without_number("Task 2b - Build it"), "Build it");
        assert_eq!(without_number("Task list: build it"), "Task list: build it");
        assert_eq!(without_number("Tasks: build"), "Tasks: build");
        assert_eq!(without_number("Task 4"), "Task 4");
    }

    #[test]
    fn the_name_is_the_first_meaningful_sentence() {
        assert_eq!(name_from("\n  - **All geoms**: area. Then more."), Some("All geoms: area".into()));
        assert_eq!(name_from("```sh\n"), None);
        assert_eq!(name_from("1. Go there:\n2. x"), Some("Go there".into()));
        let long = name_from(&"word ".repeat(40)).expect("a name");
        assert!(long.chars().count() <= MAX_NAME + 1 && long.ends_with("word…"), "{long}");
    }

    #[test]
    fn common_indentation_is_removed() {
        assert_eq!(unindented("\n    one\n      two\n\n    three\n  "), "one\n  two\n\nthree");
        assert_eq!(unindented("one\n   two\n   three"), "one\ntwo\nthree");
        assert_eq!(unindented("  "), "");
    }

    #[test]
    fn the_resume_signal_is_the_quoted_word() {
        assert_eq!(quoted("Type \"verified\" if all is well, or describe it"), Some("verified"));
        assert_eq!(quoted("Reply `done`"), Some("done"));
        assert_eq!(quoted("Say so"), None);
    }
}
