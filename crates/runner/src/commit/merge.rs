//! Changes between two trees, and applying them to a third.

use super::CommitError;
use super::repository::{Repository, text};
use crate::git::output_of;
use crate::root::STATE_DIR;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    mode: String,
    id: String,
}

impl Version {
    fn is_regular_file(&self) -> bool {
        self.mode.starts_with("100")
    }
}

/// A change of a file; `None` means that the file does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) before: Option<Version>,
    pub(super) after: Option<Version>,
}

pub(super) type Changes = BTreeMap<Vec<u8>, Change>;

pub(super) fn between(repository: &Repository, from: &str, to: &str) -> Result<Changes, CommitError> {
    let output = repository.run(&["diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", from, to], b"")?;
    Ok(parse(&output))
}

/// The staged changes in the user's index, compared to a tree.
pub(super) fn staged(repository: &Repository, tree: &str) -> Result<Changes, CommitError> {
    let output = repository.run(&["diff-index", "--cached", "-z", "--no-renames", "--no-abbrev", tree], b"")?;
    Ok(parse(&output))
}

/// Git's raw format: `:MODE MODE ID ID STATUS`, then the path, each terminated by NUL.
fn parse(output: &[u8]) -> Changes {
    let mut parts = output.split(|byte| *byte == 0);
    let mut changes = Changes::new();
    while let (Some(about), Some(path)) = (parts.next(), parts.next()) {
        let about = String::from_utf8_lossy(about);
        let fields: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
        let [mode_before, mode_after, id_before, id_after, _] = fields[..] else { continue };
        let version = |mode: &str, id: &str| {
            let exists = mode.bytes().any(|digit| digit != b'0');
            exists.then(|| Version { mode: mode.to_owned(), id: id.to_owned() })
        };
        changes.insert(path.to_vec(), Change { before: version(mode_before, id_before), after: version(mode_after, id_after) });
    }
    changes
}

/// Whether a path is in Lockgate's own directory.
pub(super) fn is_ours(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| part == STATE_DIR.as_bytes())
}

/// Two sides changed the same lines, so their changes cannot be separated.
#[derive(Debug)]
pub(super) struct Conflict;

/// Merges the changes of a task and of others to a file, from a common base.
pub(super) fn merged(
    repository: &Repository,
    before: Option<&Version>,
    theirs: Option<&Version>,
    task: Option<&Version>,
) -> Result<Result<Option<Version>, Conflict>, CommitError> {
    if task == theirs || task == before {
        return Ok(Ok(theirs.cloned()));
    }
    if theirs == before {
        return Ok(Ok(task.cloned()));
    }
    let (Some(before), Some(theirs), Some(task)) = (before, theirs, task) else { return Ok(Err(Conflict)) };
    if ![before, theirs, task].iter().all(|version| version.is_regular_file()) {
        return Ok(Err(Conflict));
    }
    let mode = if task.mode == before.mode { &theirs.mode } else { &task.mode };
    Ok(match merged_content(repository, before, theirs, task)? {
        Some(id) => Ok(Some(Version { mode: mode.clone(), id })),
        None => Err(Conflict),
    })
}

/// The id of the merged content; `None` if both changed the same lines.
fn merged_content(
    repository: &Repository,
    before: &Version,
    theirs: &Version,
    task: &Version,
) -> Result<Option<String>, CommitError> {
    let file = |name: &str, version: &Version| {
        let content = repository.run(&["cat-file", "blob", &version.id], b"")?;
        repository.scratch_file(name, &content)
    };
    let mut command = repository.command(&["merge-file", "-p", "--quiet"]);
    command.arg(file("theirs", theirs)?).arg(file("before", before)?).arg(file("task", task)?);
    // Git exits with the number of conflicts, and fails for binary files.
    let Ok(content) = output_of(command, b"") else { return Ok(None) };
    repository.run(&["hash-object", "-w", "--stdin"], &content).map(|id| Some(text(id)))
}

pub(super) type Versions = BTreeMap<Vec<u8>, Option<Version>>;

/// The arguments and input with which git sets the versions of files in an index.
pub(super) fn setting(repository: &Repository, versions: &Versions) -> ([&'static str; 4], Vec<u8>) {
    let mut lines = Vec::new();
    for (path, version) in versions {
        let line = match version {
            Some(Version { mode, id }) => format!("{mode} {id}\t"),
            // Mode 0 removes the file; the id only has to have the right length.
            None => format!("0 {}\t", "0".repeat(repository.empty_tree.len())),
        };
        lines.extend(line.into_bytes());
        lines.extend(path);
        lines.push(0);
    }
    (["update-index", "--replace", "-z", "--index-info"], lines)
}

/// A copy of a tree with some files changed.
pub(super) fn tree_with(repository: &Repository, tree: &str, changed: &Versions) -> Result<String, CommitError> {
    let index = repository.own_index()?;
    index.run(&["read-tree", "--reset", tree], b"")?;
    let (arguments, input) = setting(repository, changed);
    index.run(&arguments, &input)?;
    index.tree()
}
