//! Describes what changed between two observations of files, for people.

use super::listing::{mode_change, parse};
use super::preview::text_of;
use super::size::format_size;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{PresentedFile, Seen, SymbolicLink};
use lockgate_engine::plural::counted;
use lockgate_formats::unified_diff::{Side, unified_diff};
use std::collections::{BTreeMap, BTreeSet};

/// How many lines of difference are shown per file and in total: they become part of the run's history.
const LINES_OF_A_FILE: usize = 200;
const LINES_IN_ALL: usize = 2_000;

/// How many characters of a line are shown: a line of a generated file can be the whole file.
const CHARACTERS_OF_A_LINE: usize = 500;

/// Looks up a stored value by its digest.
type Value<'a> = &'a dyn Fn(&Digest) -> Option<Vec<u8>>;

/// The differences between the shown files and the current ones, one text per changed file.
pub fn diff(before: &[PresentedFile], after: &[PresentedFile], value: &dyn Fn(&Digest) -> Option<Vec<u8>>) -> Vec<String> {
    let now: BTreeMap<&str, &PresentedFile> = after.iter().map(|file| (file.path.as_str(), file)).collect();
    let known: BTreeSet<&str> = before.iter().map(|file| file.path.as_str()).collect();
    let nothing = |path: &str| PresentedFile::new(path, Seen::Absent);
    let changed = before.iter().filter_map(|old| match now.get(old.path.as_str()) {
        Some(new) => difference(old, new, value),
        None => difference(old, &nothing(&old.path), value),
    });
    let appeared = after
        .iter()
        .filter(|file| !known.contains(file.path.as_str()))
        .filter_map(|new| difference(&nothing(&new.path), new, value));
    let mut left = LINES_IN_ALL;
    changed
        .chain(appeared)
        .map(|text| {
            let lines = text.lines().count();
            if lines > left {
                return text.lines().next().map(|first| format!("{first} (more is not shown)")).unwrap_or_default();
            }
            left -= lines;
            text
        })
        .collect()
}

fn difference(old: &PresentedFile, new: &PresentedFile, value: Value<'_>) -> Option<String> {
    let content = content_or_kind(old, new, value);
    let all: Vec<String> = content.into_iter().chain(mode_difference(old, new)).chain(link_differences(old, new)).collect();
    (!all.is_empty()).then(|| all.join("\n"))
}

fn content_or_kind(old: &PresentedFile, new: &PresentedFile, value: Value<'_>) -> Option<String> {
    let path = &new.path;
    match (&old.seen, &new.seen) {
        (Seen::Absent, Seen::Absent) => None,
        (Seen::Unreadable(was), Seen::Unreadable(is)) if was == is => None,
        (Seen::File { digest: was, bytes: old_bytes, .. }, Seen::File { digest: is, bytes: new_bytes, .. }) => {
            let sizes = format!("{}, was {}", format_size(*new_bytes), format_size(*old_bytes));
            (was != is).then(|| content_difference(old, new, (was, is), &sizes, value))
        }
        (Seen::Directory { digest: was, .. }, Seen::Directory { digest: is, .. }) => {
            (was != is).then(|| match (value(was), value(is)) {
                (Some(was), Some(is)) => listing_difference(path, &String::from_utf8_lossy(&was), &String::from_utf8_lossy(&is)),
                _ => format!("{path}/ changed (it is not known which files: {})", not_kept(old, new)),
            })
        }
        (Seen::Absent, is) => Some(format!("{path} appeared: {}", words(is))),
        (was, Seen::Absent) => Some(format!("{path} vanished: it was {}", words(was))),
        (
            was @ (Seen::File { .. } | Seen::Directory { .. } | Seen::Unreadable(_)),
            is @ (Seen::File { .. } | Seen::Directory { .. } | Seen::Unreadable(_)),
        ) => Some(format!("{path} changed: it was {}, and is now {}", words(was), words(is))),
    }
}

fn mode_difference(old: &PresentedFile, new: &PresentedFile) -> Option<String> {
    let (was, is) = match (&old.seen, &new.seen) {
        (Seen::File { mode: was, .. }, Seen::File { mode: is, .. })
        | (Seen::Directory { mode: was, .. }, Seen::Directory { mode: is, .. }) => (was, is),
        (
            Seen::File { .. } | Seen::Directory { .. } | Seen::Absent | Seen::Unreadable(_),
            Seen::File { .. } | Seen::Directory { .. } | Seen::Absent | Seen::Unreadable(_),
        ) => return None,
    };
    (was != is).then(|| format!("{}: {}", new.path, mode_change(&format!("{was:04o}"), &format!("{is:04o}"))))
}

fn link_differences(old: &PresentedFile, new: &PresentedFile) -> Vec<String> {
    let target = |links: &[SymbolicLink], path: &str| links.iter().find(|link| link.path == path).map(|link| link.target.clone());
    let paths: BTreeSet<&str> = old.links.iter().chain(&new.links).map(|link| link.path.as_str()).collect();
    let difference = |path: &str| match (target(&old.links, path), target(&new.links, path)) {
        (Some(was), Some(is)) if was != is => Some(format!("{path} is now a symbolic link to {is}; it led to {was}")),
        (Some(was), None) => Some(format!("{path} is no longer a symbolic link; it led to {was}")),
        (None, Some(is)) => Some(format!("{path} is now a symbolic link to {is}; it was not one before")),
        (Some(_), Some(_)) | (None, None) => None,
    };
    paths.into_iter().filter_map(difference).collect()
}

fn content_difference(
    old: &PresentedFile,
    new: &PresentedFile,
    (was, is): (&Digest, &Digest),
    sizes: &str,
    value: Value<'_>,
) -> String {
    let path = &new.path;
    let (Some(old_bytes), Some(new_bytes)) = (value(was), value(is)) else {
        return format!("{path} changed ({sizes}; the difference is not shown: {})", not_kept(old, new));
    };
    let (Some(old_text), Some(new_text)) = (text_of(&old_bytes), text_of(&new_bytes)) else {
        return format!("{path} changed (binary, {sizes})");
    };
    let (old_name, new_name) = (format!("{path} (as shown)"), format!("{path} (now)"));
    let text = unified_diff(Side { name: &old_name, text: old_text }, Side { name: &new_name, text: new_text });
    let mut lines = vec![format!("{path} changed ({sizes})")];
    lines.extend(text.lines().map(|line| shortened(line, CHARACTERS_OF_A_LINE)));
    capped(lines, "more line")
}

fn listing_difference(path: &str, was: &str, is: &str) -> String {
    let (was, is) = (parse(was), parse(is));
    let paths: BTreeSet<&str> = was.keys().chain(is.keys()).copied().collect();
    let changes = paths.into_iter().filter_map(|path| match (was.get(path), is.get(path)) {
        (Some(was), Some(is)) if was == is => None,
        (Some(was), Some(is)) => Some(format!("  changed {path} ({})", was.change(is))),
        (None, Some(is)) => Some(format!("  added   {path} ({})", is.words())),
        (Some(was), None) => Some(format!("  removed {path} ({})", was.words())),
        (None, None) => None,
    });
    let mut lines = vec![String::new()];
    lines.extend(changes.map(|line| shortened(&line, CHARACTERS_OF_A_LINE)));
    lines[0] = format!("{path}/ changed: {} in it", counted(lines.len() - 1, "thing"));
    capped(lines, "more change")
}

/// Truncates lines, with a note on how many are missing.
fn capped(mut lines: Vec<String>, what: &str) -> String {
    // The first line is the heading.
    if lines.len() - 1 > LINES_OF_A_FILE {
        let missing = lines.len() - 1 - LINES_OF_A_FILE;
        lines.truncate(1 + LINES_OF_A_FILE);
        lines.push(format!("… {}", counted(missing, what)));
    }
    lines.join("\n")
}

/// The beginning of a line, with a note on how much is missing.
pub fn shortened(line: &str, most: usize) -> String {
    match line.char_indices().nth(most) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}… ({})", &line[..end], counted(line[end..].chars().count(), "more character")),
    }
}

fn not_kept(old: &PresentedFile, new: &PresentedFile) -> String {
    let reason = new.not_kept.as_deref().or(old.not_kept.as_deref());
    reason.map_or_else(|| "its content was not kept".to_owned(), |reason| format!("its content is not kept, {reason}"))
}

fn words(seen: &Seen) -> String {
    match seen {
        Seen::Absent => "missing".to_owned(),
        Seen::File { bytes, .. } => format!("a file of {}", format_size(*bytes)),
        Seen::Directory { files, .. } => {
            format!("a directory with {}", counted(*files, "file"))
        }
        Seen::Unreadable(why) => format!("unreadable ({why})"),
    }
}
