//! Digests the files that a decision is about and keeps their bytes, so that an approval is bound to what was seen.

use super::error::{FileError, PathError, Reason};
use super::listing::{Listing, ListingLimits, list};
use super::lookup::{Lookup, links, lookup, read};
use super::run_dirs::{Opened, RunDirs, Side};
use super::size::format_size;
use cap_std::fs::Dir;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{PresentedFile, Seen};
use std::collections::BTreeSet;
use std::path::Path;

/// Whether these bytes contain a secret and must not be kept.
pub type ContainsSecret<'a> = &'a dyn Fn(&[u8]) -> bool;

/// Limits for observed files. A file beyond them is [`Seen::Unreadable`], with the reason, and an approval is not bound to
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserveLimits {
    /// The largest file whose bytes are kept; for a larger one only the digest is.
    pub kept_bytes: u64,
    pub file_bytes: u64,
    /// The maximum number of entries below a directory.
    pub dir_entries: usize,
    /// The maximum total size of the files below a directory.
    pub dir_bytes: u64,
}

impl Default for ObserveLimits {
    fn default() -> Self {
        Self { kept_bytes: 1_000_000, file_bytes: 4_000_000_000, dir_entries: 2_000, dir_bytes: 64_000_000 }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// In the order of the paths. A path that exists both in the output directory and under the root gives two files;
    /// duplicates are listed once.
    pub files: Vec<PresentedFile>,
    /// The bytes to keep, by digest: the content of each file, and the listing of each directory.
    pub values: Vec<(Digest, Vec<u8>)>,
}

/// Observes the files that paths in `show_files` refer to: in the output directory, under the root, or both. Existing files
/// are named by their location; missing ones keep the path as written.
pub fn observe(run_dirs: &RunDirs, paths: &[String], caps: &ObserveLimits, contains_secret: ContainsSecret<'_>) -> Observed {
    if paths.is_empty() {
        return Observed::default();
    }
    let opened = run_dirs.open();
    let mut looking = Observer::new(&opened, caps, contains_secret);
    for path in paths {
        let candidates = opened.shown(path);
        looking.at(path, candidates);
    }
    looking.observed
}

/// Observes files again that were shown: each exactly where it was found, and a missing one wherever it may have appeared.
pub fn reobserve(
    run_dirs: &RunDirs,
    before: &[PresentedFile],
    caps: &ObserveLimits,
    contains_secret: ContainsSecret<'_>,
) -> Observed {
    let opened = run_dirs.open();
    let mut looking = Observer::new(&opened, caps, contains_secret);
    let listed: BTreeSet<&str> = before.iter().map(|file| file.path.as_str()).collect();
    for file in before {
        let candidates = match file.seen {
            Seen::File { .. } | Seen::Directory { .. } | Seen::Unreadable(_) => opened.exact(&file.path).map(|exact| vec![exact]),
            // If something was found at the other location, that is observed on its own.
            Seen::Absent => opened.shown(&file.path).map(|mut candidates| {
                candidates.retain(|(side, parts)| {
                    let shown = opened.dir(*side).shown(parts);
                    shown == file.path || !listed.contains(shown.as_str())
                });
                candidates
            }),
        };
        looking.at(&file.path, candidates);
    }
    looking.observed
}

struct Observer<'a> {
    opened: &'a Opened<'a>,
    caps: &'a ObserveLimits,
    contains_secret: ContainsSecret<'a>,
    named: BTreeSet<String>,
    kept: BTreeSet<Digest>,
    observed: Observed,
}

impl<'a> Observer<'a> {
    fn new(opened: &'a Opened<'a>, caps: &'a ObserveLimits, contains_secret: ContainsSecret<'a>) -> Self {
        Self { opened, caps, contains_secret, named: BTreeSet::new(), kept: BTreeSet::new(), observed: Observed::default() }
    }

    /// Adds all candidates that exist.
    fn at(&mut self, path: &str, candidates: Result<Vec<(Side, Vec<String>)>, PathError>) {
        let candidates = match candidates {
            Ok(candidates) => candidates,
            Err(why) => return self.add(PresentedFile::new(path, Seen::Unreadable(why.to_string()))),
        };
        let mut found = false;
        for (side, parts) in &candidates {
            let folder = self.opened.dir(*side);
            let shown = folder.shown(parts);
            // It was already added, or the output directory is the root.
            if self.named.contains(&shown) {
                found = true;
                continue;
            }
            let (seen, not_kept) = match lookup(folder, parts) {
                Lookup::Absent => continue,
                Lookup::Unreadable(why) => (Seen::Unreadable(why.to_string()), None),
                Lookup::File(mut file, mode) => match read(&mut file, self.caps.kept_bytes, self.caps.file_bytes) {
                    Ok(Some(contents)) => {
                        let not_kept = self.keep(contents.digest, contents.kept);
                        (Seen::File { digest: contents.digest, bytes: contents.bytes, mode }, not_kept)
                    }
                    Ok(None) => (Seen::Unreadable(FileError::TooLarge { most: self.caps.file_bytes }.to_string()), None),
                    Err(error) => (Seen::Unreadable(Reason::from(&error).to_string()), None),
                },
                Lookup::Directory(dir, mode) => match self.list(&dir, &shown) {
                    Ok(listing) => {
                        let digest = Digest::of(listing.text.as_bytes());
                        let not_kept = self.keep(digest, Some(listing.text.into_bytes()));
                        (Seen::Directory { digest, files: listing.files, mode }, not_kept)
                    }
                    Err(why) => (Seen::Unreadable(why.to_string()), None),
                },
            };
            found = true;
            self.add(PresentedFile { path: shown, seen, not_kept, links: links(folder, parts) });
        }
        if found {
            return;
        }
        // A path that may refer to two locations keeps referring to both until one of them exists.
        let absent = match candidates.as_slice() {
            [(side, parts)] => self.opened.dir(*side).shown(parts),
            _ => path.to_owned(),
        };
        self.add(PresentedFile::new(&absent, Seen::Absent));
    }

    fn add(&mut self, file: PresentedFile) {
        if self.named.insert(file.path.clone()) {
            self.observed.files.push(file);
        }
    }

    fn list(&self, dir: &Dir, shown: &str) -> Result<Listing, FileError> {
        let most = ListingLimits { things: self.caps.dir_entries, bytes: self.caps.dir_bytes };
        // A task commits in its run's worktree as it does in the root.
        let is_own = shown == "." || Path::new(shown).starts_with(".lockgate/worktrees");
        let linked = |git: &Path, target: &str| {
            let dir = Path::new(shown).join(git.parent().unwrap_or(Path::new("")));
            if is_own && git.parent() == Some(Path::new("")) { None } else { self.opened.dir_under_root(&dir.join(target)) }
        };
        list(dir, most, is_own, &linked)
    }

    /// Keeps bytes, or returns why not.
    fn keep(&mut self, digest: Digest, bytes: Option<Vec<u8>>) -> Option<String> {
        let Some(bytes) = bytes else {
            return Some(format!("larger than {}", format_size(self.caps.kept_bytes)));
        };
        if (self.contains_secret)(&bytes) {
            return Some("contains a secret".to_owned());
        }
        if self.kept.insert(digest) {
            self.observed.values.push((digest, bytes));
        }
        None
    }
}
