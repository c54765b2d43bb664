//! Size and first lines of a file, for people who decide about it.

use super::diff::shortened;
use super::listing::{Line, parse};
use super::size::format_size;
use lockgate_engine::hold::{PresentedFile, Seen};
use lockgate_engine::plural::counted;

const CHARACTERS_OF_A_LINE: usize = 200;

/// A preview of a file. Control characters are kept; the printer must sanitize them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// A short description of its type and size.
    pub size: String,
    /// Its first lines; for a directory, its first files.
    pub lines: Vec<String>,
    /// The number of further lines.
    pub more: usize,
}

/// A preview of a file from its kept bytes (for a directory, its listing).
pub fn preview(file: &PresentedFile, bytes: Option<&[u8]>, lines: usize) -> Preview {
    let bare = |size: String| Preview { size, lines: Vec::new(), more: 0 };
    let not_kept = file.not_kept.as_deref().unwrap_or("its content was not kept");
    let format_size = |bytes: u64| format!("{}{}", format_size(bytes), extra_facts(file));
    match &file.seen {
        Seen::Absent => bare("missing".to_owned()),
        Seen::Unreadable(why) => bare(format!("cannot be shown, and is not bound to the answer: {why}")),
        Seen::File { bytes: size, .. } => match bytes.map(text_of) {
            None => bare(format!("{}, not shown: {not_kept}", format_size(*size))),
            Some(None) => bare(format!("{}, binary", format_size(*size))),
            Some(Some(text)) => first(format_size(*size), text.lines().map(str::to_owned), lines),
        },
        Seen::Directory { files, .. } => {
            let count = counted(*files, "file");
            let size = format!("directory with {count}{}", extra_facts(file));
            match bytes.and_then(text_of) {
                None => bare(format!("{size}, not shown: {not_kept}")),
                Some(listing) => {
                    let names = parse(listing).into_iter().filter(|(_, line)| !matches!(line, Line::Folder { .. }));
                    first(size, names.map(|(path, line)| format!("{path} ({})", line.words())), lines)
                }
            }
        }
    }
}

/// Facts that neither the content nor the size shows: whether a file is executable, and which symlinks lead to it.
fn extra_facts(file: &PresentedFile) -> String {
    let mut words = String::new();
    if let Seen::File { mode, .. } = file.seen {
        words += if mode & 0o111 != 0 { ", executable" } else { "" };
        words += if mode & 0o6000 != 0 { ", runs with the rights of its owner or group" } else { "" };
    }
    for link in &file.links {
        words += &format!(", {} is a symbolic link to {}", link.path, link.target);
    }
    words
}

fn first(size: String, mut all: impl Iterator<Item = String>, most: usize) -> Preview {
    let lines = all.by_ref().take(most).map(|line| shortened(&line, CHARACTERS_OF_A_LINE)).collect();
    Preview { size, lines, more: all.count() }
}

/// Bytes as text, unless they are binary.
pub(super) fn text_of(bytes: &[u8]) -> Option<&str> {
    if bytes.contains(&0) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}
