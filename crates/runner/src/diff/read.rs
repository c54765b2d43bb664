//! The changed files, the patch and the digest of a diff.

use super::DiffError;
use super::base::Start;
use super::tree::Files;
use crate::commit::repository::Repository;
use crate::files::format_size;
use crate::git::GitError;
use crate::process::in_marked_session;
use crate::root::STATE_DIR;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{ChangeStatus, ChangedFile, GitChange, LineCounts};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path};
use std::process::Stdio;

/// Decides what to keep of a patch: all of it, or a masked form; or why nothing.
pub type Kept<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Limits for what is kept of a diff. The digest covers all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserveLimits {
    pub files: usize,
    /// The maximum size of the patch.
    pub patch_bytes: usize,
}

impl Default for ObserveLimits {
    fn default() -> Self {
        Self { files: 500, patch_bytes: 1_000_000 }
    }
}

/// The digest format version.
const DIGEST_FORMAT: &[u8] = b"lockgate-diff-1\0";

/// Detects renames the same way for every user, up to this many files.
const RENAMES: [&str; 2] = ["--find-renames", "-l1000"];

/// A patch format that does not depend on the user's settings: no colours, custom prefixes or external diff programs.
const PATCH: [&str; 9] = [
    "--patch",
    "--unified=3",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

pub(super) fn change(
    repository: &Repository,
    start: &Start,
    files: &Files,
    specs: &[String],
    caps: &ObserveLimits,
    kept: Kept<'_>,
) -> Result<(GitChange, Option<String>), DiffError> {
    let trees = (start.tree.as_str(), files.tree.as_str());
    let exact = compare(repository, &["--no-renames", "--no-abbrev", "--raw", "-z"], trees, specs)?;
    let nested: Vec<_> = files.nested.iter().filter(|nested| is_meant(specs, &nested.path)).collect();
    let mut digested = [DIGEST_FORMAT, &exact].concat();
    for nested in &nested {
        digested.extend([b"nested\0", nested.path.as_slice(), b"\0", nested.state.as_bytes(), b"\0"].concat());
    }
    let raw = compare(repository, &[RENAMES[0], RENAMES[1], "--no-abbrev", "--raw", "-z"], trees, specs)?;
    let counted = compare(repository, &[RENAMES[0], RENAMES[1], "--numstat", "-z"], trees, specs)?;
    let counts = line_counts(&counted);
    let mut changed = changed_files(&raw, &counts);
    let dirty = nested.iter().filter(|nested| nested.tracked).map(|nested| &nested.path);
    changed.extend(dirty.map(|path| ChangedFile { path: lossy(path), old_path: None, status: ChangeStatus::Dirty, lines: None }));
    let (patch, whole) = patch(repository, trees, specs, caps.patch_bytes)?;
    let (text, not_kept) = match kept(&patch) {
        Ok(text) if whole => (Some(text), None),
        Ok(text) => (Some(text), Some(format!("only its first {} are shown", format_size(caps.patch_bytes as u64)))),
        Err(why) => (None, Some(why)),
    };
    let sum = |count: fn(&LineCounts) -> u64| changed.iter().filter_map(|file| file.lines.as_ref()).map(count).sum();
    let change = GitChange {
        base: start.id.clone(),
        tree: files.tree.clone(),
        digest: Digest::of(&digested),
        file_count: changed.len() as u64,
        added: sum(|lines| lines.added),
        removed: sum(|lines| lines.removed),
        files: changed.into_iter().take(caps.files).collect(),
        text: text.as_ref().map(|text| Digest::of(text.as_bytes())),
        not_kept,
    };
    Ok((change, text))
}

/// The pathspecs to compare: everything, or the given paths under the root. Lockgate's own directory is never part of a diff.
pub(super) fn pathspecs(prefix: &str, paths: &[String]) -> Result<Vec<String>, DiffError> {
    let mut specs = Vec::new();
    for path in paths {
        let mut inside = Path::new(prefix).to_owned();
        for part in Path::new(path).components() {
            match part {
                Component::Normal(part) => inside.push(part),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(DiffError::Outside(path.clone())),
            }
        }
        let inside = inside.to_string_lossy();
        specs.push(format!(":(top,literal){}", inside.trim_end_matches('/')));
    }
    if specs.is_empty() {
        specs.push(":(top)".to_owned());
    }
    specs.extend([format!(":(top,exclude,glob)**/{STATE_DIR}/**"), format!(":(top,exclude,glob)**/{STATE_DIR}")]);
    Ok(specs)
}

/// Whether a path is inside or above a compared one.
fn is_meant(specs: &[String], path: &[u8]) -> bool {
    let path = lossy(path);
    let named: Vec<&str> = specs.iter().filter_map(|spec| spec.strip_prefix(":(top,literal)")).collect();
    let covers = |one: &str, other: &str| Path::new(other).starts_with(one);
    named.is_empty() || named.iter().any(|named| covers(named, &path) || covers(&path, named))
}

fn compare(repository: &Repository, options: &[&str], (from, to): (&str, &str), specs: &[String]) -> Result<Vec<u8>, DiffError> {
    let mut arguments = vec!["diff-tree", "-r"];
    arguments.extend(options);
    arguments.extend([from, to, "--"]);
    arguments.extend(specs.iter().map(String::as_str));
    Ok(repository.run(&arguments, b"")?)
}

/// The diff of two trees as a patch, up to `most` bytes, and whether it is complete.
pub(super) fn patch(
    repository: &Repository,
    (from, to): (&str, &str),
    specs: &[String],
    most: usize,
) -> Result<(String, bool), DiffError> {
    let mut arguments = vec!["-c", "core.quotePath=false", "diff-tree", "-r"];
    arguments.extend(RENAMES.iter().chain(&PATCH).copied());
    arguments.extend([from, to, "--"]);
    arguments.extend(specs.iter().map(String::as_str));
    let mut command = repository.command(&arguments);
    command.env_remove("GIT_DIFF_OPTS").env_remove("GIT_EXTERNAL_DIFF");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    in_marked_session(&mut command);
    let mut child = command.spawn().map_err(GitError::NotStarted)?;
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(most as u64 + 1).read_to_end(&mut bytes).map_err(GitError::NotAwaited)?;
    }
    let whole = bytes.len() <= most;
    if !whole {
        // The pipe is closed, so git would end by itself, but it need not compare the rest first.
        child.kill().map_err(GitError::NotAwaited)?;
        let end = bytes[..most].iter().rposition(|byte| *byte == b'\n').map_or(most, |at| at + 1);
        bytes.truncate(end);
    }
    let ended = child.wait().map_err(GitError::NotAwaited)?;
    if whole && !ended.success() {
        return Err(GitError::FailedSilently.into());
    }
    Ok((lossy(&bytes), whole))
}

/// Git's raw format with renames: `:MODE MODE ID ID STATUS`, then one path, or two for a renamed file; each terminated by
/// NUL.
fn changed_files(raw: &[u8], counts: &BTreeMap<Vec<u8>, Option<LineCounts>>) -> Vec<ChangedFile> {
    let mut parts = raw.split(|byte| *byte == 0);
    let mut files = Vec::new();
    while let (Some(about), Some(first)) = (parts.next(), parts.next()) {
        let about = lossy(about);
        let fields: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
        let [mode_before, mode_after, id_before, id_after, status] = fields[..] else { continue };
        let renamed = status.starts_with('R');
        let path = if renamed { parts.next().unwrap_or_default() } else { first };
        let status = match status.chars().next() {
            Some('A') => ChangeStatus::Added,
            Some('D') => ChangeStatus::Deleted,
            Some('R') => ChangeStatus::Renamed,
            Some('T') => ChangeStatus::TypeChanged,
            _ if id_before == id_after && mode_before != mode_after => ChangeStatus::ModeChanged,
            _ => ChangeStatus::Modified,
        };
        let lines = counts.get(path).copied().flatten();
        files.push(ChangedFile { path: lossy(path), old_path: renamed.then(|| lossy(first)), status, lines });
    }
    files
}

/// `ADDED<tab>REMOVED<tab>PATH`, or `ADDED<tab>REMOVED<tab>` and then two paths for a renamed file; `-` for binary files.
fn line_counts(numstat: &[u8]) -> BTreeMap<Vec<u8>, Option<LineCounts>> {
    let mut parts = numstat.split(|byte| *byte == 0);
    let mut counts = BTreeMap::new();
    while let Some(entry) = parts.next() {
        let mut fields = entry.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let path = if path.is_empty() { parts.next().and(parts.next()).unwrap_or_default() } else { path };
        let number = |bytes: &[u8]| lossy(bytes).parse::<u64>().ok();
        let lines = number(added).zip(number(removed)).map(|(added, removed)| LineCounts { added, removed });
        counts.insert(path.to_vec(), lines);
    }
    counts
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
