//! A git repository inside a shown directory: an approval is bound to its commits, branches, settings and hooks.
//!
//! Git rewrites some files when a repository is merely read, and objects are named by their content, so these are left out.

use super::error::FileError;
use super::listing::{Linked, ListedEntry, ListingLimits, escaped, line, unreadable, walk};
use super::lookup::open_file;
use cap_std::fs::Dir;
use lockgate_engine::digest::Digest;
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Component, Path};

/// The maximum size of a `.git` file that names a directory.
const LINK_BYTES: u64 = 4096;

/// Directories of a repository whose content follows from the rest, or only records its past.
const LEFT_OUT_FOLDERS: [&str; 4] = ["objects", "logs", "lfs", "rr-cache"];

/// Files that git rewrites while a repository is read or worked in.
const LEFT_OUT_FILES: [&str; 7] = ["index", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "MERGE_MSG", "gc.log", "gc.pid"];

/// The digest of a repository, by its `.git` directory or a file that names one; `None` if it is neither.
pub(super) fn digest(
    base: &Dir,
    git: &ListedEntry,
    most: ListingLimits,
    linked: Linked<'_>,
) -> Result<Option<Digest>, FileError> {
    let dir = if git.kind.is_dir() {
        match base.open_dir(&git.path) {
            Ok(dir) => Some(dir),
            Err(error) => return Err(unreadable(&git.path, &error)),
        }
    } else if git.kind.is_file() {
        named_folder(base, &git.path).and_then(|target| linked(&git.path, &target))
    } else {
        None
    };
    let Some(dir) = dir else { return Ok(None) };
    let mut left = most.bytes;
    // A file that names a directory is part of what was seen.
    let mut text = match git.kind.is_file() {
        true => line(base, git, most.bytes, &mut left)?.unwrap_or_default(),
        false => String::new(),
    };
    // Without a HEAD, git does not treat it as a repository, so everything in it counts.
    let is_repository = dir.is_file("HEAD");
    let omitted = |path: &Path| is_repository && is_left_out(path);
    for below in walk(&dir, most.things, &|path| !omitted(path))? {
        if omitted(&below.path) {
            continue;
        }
        if let Some(what) = line(&dir, &below, most.bytes, &mut left)? {
            text.push_str(&format!("\n{what} {}", escaped(&below.path)));
        }
    }
    Ok(Some(Digest::of(text.as_bytes())))
}

/// The directory that a `.git` file names.
fn named_folder(base: &Dir, path: &Path) -> Option<String> {
    let file = open_file(base, path, OFlags::NOFOLLOW).ok()?.ok()?;
    let mut text = String::new();
    file.take(LINK_BYTES).read_to_string(&mut text).ok()?;
    text.strip_prefix("gitdir:").map(|target| target.trim().to_owned())
}

fn is_left_out(path: &Path) -> bool {
    let mut parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    let is = |names: &[&str], part: &OsStr| names.iter().any(|name| part == *name);
    while let Some(part) = parts.next() {
        // Below these, names belong to branches, hooks and exclusions.
        if is(&["refs", "hooks", "info"], part) {
            return false;
        }
        if is(&LEFT_OUT_FOLDERS, part) {
            return true;
        }
        if part == "modules" {
            // The name of a submodule.
            parts.next();
        }
    }
    let name = path.file_name().unwrap_or_default();
    is(&LEFT_OUT_FILES, name) || path.extension().is_some_and(|end| end == "lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_git_rewrites_by_itself_are_excluded_and_all_others_count() {
        for path in ["index", "objects", "objects/ab/cdef", "logs/HEAD", "HEAD.lock", "modules/lib/index", "modules/lib/objects"]
        {
            assert!(is_left_out(Path::new(path)), "{path}");
        }
        for path in [
            "HEAD",
            "config",
            "packed-refs",
            "refs/heads/main",
            "refs/heads/objects",
            "hooks/index",
            "modules/objects/HEAD",
            "modules",
        ] {
            assert!(!is_left_out(Path::new(path)), "{path}");
        }
    }
}
