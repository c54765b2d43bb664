//! The text that the digest of a directory is computed from: one sorted line per entry below it, with the digest of every
//! file.
//!
//! ```text
//! lockgate listing 2
//! file 0644 12 af13… src/main.rs
//! folder 0755 src
//! link ../LICENSE src/licence
//! repository 77c0… vendor/lib/.git
//! ```
//!
//! The path comes last and runs to the end of the line; line breaks, control characters and backslashes in names are escaped,
//! so that no name can imitate another line.

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

/// The state directory of a project, which changes during the work; a listing names it but not its contents.
const STATE: &str = ".lockgate";

/// The git directory of a repository, or a file that names one.
const GIT: &str = ".git";

pub(super) struct ListedEntry {
    pub(super) path: PathBuf,
    pub(super) kind: FileType,
    mode: u32,
}

/// Everything below a directory, sorted, without following links; fails if there is too much.
pub(super) fn walk(base: &Dir, most: usize, enter: &dyn Fn(&Path) -> bool) -> Result<Vec<ListedEntry>, FileError> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(folder) = waiting.pop() {
        let entries = if folder.as_os_str().is_empty() { base.entries() } else { base.read_dir(&folder) };
        let entries = match entries {
            Ok(entries) => entries,
            // It disappeared or was replaced during the scan.
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

/// The listing of a directory and its number of files.
pub(super) struct Listing {
    pub(super) text: String,
    pub(super) files: u64,
}

#[derive(Clone, Copy)]
pub(super) struct ListingLimits {
    pub(super) things: usize,
    pub(super) bytes: u64,
}

/// Opens the directory that a `.git` file names, relative to that file.
pub(super) type Linked<'a> = &'a dyn Fn(&Path, &str) -> Option<Dir>;

/// Lists a directory, or says why it cannot be listed completely. For the working directory of a run (`is_own`), its
/// top-level `.git` is left out, because it changes with every commit of a task.
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

/// The line for one entry; `None` if it disappeared meanwhile.
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

/// The permission bits, including setuid and setgid.
pub(super) fn mode(metadata: &cap_std::fs::Metadata) -> u32 {
    metadata.permissions().mode() & 0o7777
}

fn digest(base: &Dir, path: &Path, most: u64) -> io::Result<Option<(Digest, u64)>> {
    match open_file(base, path, OFlags::NOFOLLOW)? {
        Ok(mut file) => Ok(read(&mut file, 0, most)?.map(|contents| (contents.digest, contents.bytes))),
        Err(_) => Err(io::Error::other("it changed while it was being read")),
    }
}

fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> FileError {
    FileError::UnreadableBelow { path: path.to_path_buf(), reason: Reason::from(error) }
}

pub(super) fn named(path: &Path) -> String {
    if path.as_os_str().is_empty() { "its content".to_owned() } else { format!("\"{}\"", escaped(path)) }
}

/// A path on one line, unique for every path.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    File { mode: &'a str, bytes: u64, digest: &'a str },
    Folder { mode: &'a str },
    Link { target: &'a str },
    Repository { digest: &'a str },
    Other(&'a str),
}

impl<'a> Line<'a> {
    /// Parses a line into its entry and path; `None` if it is invalid.
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

    /// A short description.
    pub(super) fn words(&self) -> String {
        match self {
            Self::File { bytes, .. } => format_size(*bytes),
            Self::Folder { .. } => "a directory".to_owned(),
            Self::Link { target } => format!("a link to {}", target.replace("\\x20", " ")),
            Self::Repository { .. } => "a git repository".to_owned(),
            Self::Other("left-out") => "an omitted directory".to_owned(),
            Self::Other(what) => what.replace('-', " "),
        }
    }

    /// A short description of what changed.
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

pub(super) fn mode_change(was: &str, is: &str) -> String {
    format!("mode changed from {was} to {is}")
}

/// Parses a listing. Invalid lines are skipped.
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
