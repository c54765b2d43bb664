//! The text that a folder's digest is of: one line for each thing below it, sorted, with the digest of every file.
//!
//! ```text
//! lockgate listing 2
//! file 0644 12 af13… src/main.rs
//! folder 0755 src
//! link ../LICENSE src/licence
//! repository 77c0… vendor/lib/.git
//! ```
//!
//! The path stands last and runs to the end of the line; line breaks, control characters and backslashes in names are
//! escaped, so that no name can pass for another line.

use super::error::{FileError, Reason};
use super::lookup::{open_file, read, special};
use super::nested_repository;
use super::size::format_size;
use cap_std::fs::{Dir, FileType, PermissionsExt};
use lockgate_engine::digest::Digest;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const HEADER: &str = "lockgate listing 2";

/// The state of a project, which changes while it is worked in; it is named in a listing, and what is in it is not.
const STATE: &str = ".lockgate";

/// What git keeps of a repository: a folder, or a file that names one.
const GIT: &str = ".git";

/// Something below a folder.
pub(super) struct ListedEntry {
    pub(super) path: PathBuf,
    pub(super) kind: FileType,
    mode: u32,
}

/// Everything below a folder, sorted, following no links; or why that is too much.
pub(super) fn walk(base: &Dir, most: usize, enter: &dyn Fn(&Path) -> bool) -> Result<Vec<ListedEntry>, FileError> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        let entries = if folder.as_os_str().is_empty() { base.entries() } else { base.read_dir(&folder) };
        let entries = match entries {
            Ok(entries) => entries,
            // It went away, or became something else, while we looked.
            Err(error) if gone(&error) => continue,
            Err(error) => return Err(unreadable(&folder, &error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(&folder, &error))?;
            let path = folder.join(entry.file_name());
            let (kind, mode) = match entry.metadata() {
                Ok(metadata) => (metadata.file_type(), mode(&metadata)),
                Err(error) if gone(&error) => continue,
                Err(error) => return Err(unreadable(&path, &error)),
            };
            if found.len() >= most {
                return Err(FileError::TooManyEntries { most });
            }
            if kind.is_dir() && enter(&path) {
                waiting.push(path.clone());
            }
            found.push(ListedEntry { path, kind, mode });
        }
    }
    found.sort_by(|one, other| one.path.as_os_str().as_bytes().cmp(other.path.as_os_str().as_bytes()));
    Ok(found)
}

/// A folder's listing and how many files it names.
pub(super) struct Listing {
    pub(super) text: String,
    pub(super) files: u64,
}

/// How much of a folder is listed.
#[derive(Clone, Copy)]
pub(super) struct ListingLimits {
    pub(super) things: usize,
    pub(super) bytes: u64,
}

/// Finds the folder that a file `.git` names, from where that file is.
pub(super) type Linked<'a> = &'a dyn Fn(&Path, &str) -> Option<Dir>;

/// Lists a folder; or says why it cannot be listed whole. Of the working folder of a run (`is_own`), what git keeps at its top is left
/// out: it changes with every commit of a task.
pub(super) fn list(base: &Dir, most: ListingLimits, is_own: bool, linked: Linked<'_>) -> Result<Listing, FileError> {
    let is_left_out = |path: &Path| path.file_name().is_some_and(|name| name == STATE) || (is_own && path == Path::new(GIT));
    let is_git = |path: &Path| path.file_name().is_some_and(|name| name == GIT) && !is_left_out(path);
    let entered = |path: &Path| !is_left_out(path) && !is_git(path);
    let mut listing = Listing { text: format!("{HEADER}\n"), files: 0 };
    let mut left = most.bytes;
    for below in walk(base, most.things, &entered)? {
        let path = &below.path;
        let git = if is_git(path) { nested_repository::digest(base, &below, most, linked)? } else { None };
        let what = match git {
            Some(digest) => Some(format!("repository {digest}")),
            None if below.kind.is_dir() && is_left_out(path) => Some("left-out".to_owned()),
            None => line(base, &below, most.bytes, &mut left)?,
        };
        let Some(what) = what else { continue };
        listing.files += u64::from(below.kind.is_file());
        listing.text.push_str(&format!("{what} {}\n", escaped(path)));
    }
    Ok(listing)
}

/// What a listing says of one thing; nothing where it went away meanwhile.
pub(super) fn line(base: &Dir, below: &ListedEntry, most: u64, left: &mut u64) -> Result<Option<String>, FileError> {
    let ListedEntry { path, kind, mode } = below;
    if kind.is_dir() {
        return Ok(Some(format!("folder {mode:04o}")));
    }
    if kind.is_symlink() {
        return match base.read_link_contents(path) {
            Ok(target) => Ok(Some(format!("link {}", escaped(&target).replace(' ', "\\x20")))),
            Err(error) if gone(&error) => Ok(None),
            Err(error) => Err(unreadable(path, &error)),
        };
    }
    if !kind.is_file() {
        return Ok(Some(special(*kind).replace(' ', "-")));
    }
    match digest(base, path, *left) {
        Ok(Some((digest, bytes))) => {
            *left -= bytes;
            Ok(Some(format!("file {mode:04o} {bytes} {digest}")))
        }
        Ok(None) => Err(FileError::TooManyBytes { most }),
        Err(error) if gone(&error) => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// The permissions of something, with the bits that let a program run as its owner.
pub(super) fn mode(metadata: &cap_std::fs::Metadata) -> u32 {
    metadata.permissions().mode() & 0o7777
}

fn digest(base: &Dir, path: &Path, most: u64) -> io::Result<Option<(Digest, u64)>> {
    match open_file(base, path, OFlags::NOFOLLOW)? {
        Ok(mut file) => Ok(read(&mut file, 0, most)?.map(|contents| (contents.digest, contents.bytes))),
        Err(_) => Err(io::Error::other("it changed while it was read")),
    }
}

fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The error for something below a directory that cannot be read.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> FileError {
    FileError::UnreadableBelow { path: path.to_path_buf(), reason: Reason::from(error) }
}

/// What something below a directory is called in messages.
pub(super) fn named(path: &Path) -> String {
    if path.as_os_str().is_empty() { "what is".to_owned() } else { format!("\"{}\"", escaped(path)) }
}

/// A path on one line, different for every different path.
pub(super) fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                character if character.is_control() => {
                    text.push_str(&format!("\\u{{{:x}}}", u32::from(character)));
                }
                character => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// One line of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    File { mode: &'a str, bytes: u64, digest: &'a str },
    Folder { mode: &'a str },
    Link { target: &'a str },
    Repository { digest: &'a str },
    Other(&'a str),
}

impl<'a> Line<'a> {
    /// Reads a line: what is there, and the path. Nothing where it cannot be read.
    fn read(line: &'a str) -> Option<(&'a str, Self)> {
        let words = match line.split(' ').next()? {
            "file" => 4,
            "link" | "folder" | "repository" => 2,
            _ => 1,
        };
        let (end, _) = line.match_indices(' ').nth(words - 1)?;
        let what: Vec<&str> = line[..end].split(' ').collect();
        let read = match what[..] {
            ["file", mode, bytes, digest] => Self::File { mode, bytes: bytes.parse().ok()?, digest },
            ["folder", mode] => Self::Folder { mode },
            ["link", target] => Self::Link { target },
            ["repository", digest] => Self::Repository { digest },
            _ => Self::Other(&line[..end]),
        };
        Some((&line[end + 1..], read))
    }

    /// It in a few words.
    pub(super) fn words(&self) -> String {
        match self {
            Self::File { bytes, .. } => format_size(*bytes),
            Self::Folder { .. } => "a folder".to_owned(),
            Self::Link { target } => format!("a link to {}", target.replace("\\x20", " ")),
            Self::Repository { .. } => "a git repository".to_owned(),
            Self::Other("left-out") => "a folder that is left out".to_owned(),
            Self::Other(what) => what.replace('-', " "),
        }
    }

    /// What became of it, in a few words.
    pub(super) fn change(&self, now: &Self) -> String {
        match (self, now) {
            (Self::File { mode: was, bytes: old, digest: before }, Self::File { mode: is, bytes: new, digest: after }) => {
                let content = match (before == after, old == new) {
                    (true, _) => None,
                    (false, true) => Some(format!("{}, other content", format_size(*new))),
                    (false, false) => Some(format!("{}, was {}", format_size(*new), format_size(*old))),
                };
                let mode = (was != is).then(|| mode_change(was, is));
                content.into_iter().chain(mode).collect::<Vec<_>>().join(", ")
            }
            (Self::Folder { mode: was }, Self::Folder { mode: is }) => mode_change(was, is),
            (Self::Repository { .. }, Self::Repository { .. }) => {
                "a git repository: its commits, branches, settings or hooks changed".to_owned()
            }
            (
                Self::File { .. } | Self::Folder { .. } | Self::Link { .. } | Self::Repository { .. } | Self::Other(_),
                Self::File { .. } | Self::Folder { .. } | Self::Link { .. } | Self::Repository { .. } | Self::Other(_),
            ) => format!("{}, was {}", now.words(), self.words()),
        }
    }
}

/// How a change of permissions is told.
pub(super) fn mode_change(was: &str, is: &str) -> String {
    format!("mode changed from {was} to {is}")
}

/// Reads a listing back: what is under each path. Lines that cannot be read are left out.
pub(super) fn parse(text: &str) -> BTreeMap<&str, Line<'_>> {
    text.strip_prefix(HEADER).unwrap_or(text).lines().filter_map(Line::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn escaped_names_are_unique_and_stay_on_one_line() {
        let names: [&[u8]; 6] = [b"a\nb", b"a\\nb", b"a\\u{a}b", b"\xffa", b"\\xffa", b"a b"];
        let written: std::collections::BTreeSet<String> =
            names.iter().map(|name| escaped(Path::new(OsStr::from_bytes(name)))).collect();
        assert_eq!(written.len(), names.len());
        assert!(written.iter().all(|name| name.lines().count() == 1), "{written:?}");
    }

    #[test]
    fn a_listing_with_spaces_in_its_paths_round_trips() {
        let digest = Digest::of(b"").to_string();
        let text = format!("{HEADER}\nfile 0644 12 {digest} a b/c d\nfolder 0755 a b\nlink x\\x20y z z\na-named-pipe p q\n");
        let lines = parse(&text);
        assert_eq!(lines.keys().copied().collect::<Vec<_>>(), ["a b", "a b/c d", "p q", "z z"]);
        assert_eq!(lines["a b/c d"], Line::File { mode: "0644", bytes: 12, digest: &digest });
        assert_eq!(lines["a b"], Line::Folder { mode: "0755" });
        assert_eq!(lines["z z"].words(), "a link to x y");
        assert_eq!(lines["p q"].words(), "a named pipe");
    }
}
