//! Git plumbing in the directory that a task works in.

use crate::git::{git_command, printed_by};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository, with a place for indexes of our own.
#[derive(Debug)]
pub(super) struct Repository {
    /// The directory that the task works in.
    pub(super) dir: PathBuf,
    /// The top of the working tree.
    pub(super) top: PathBuf,
    /// From the top to the directory: empty, or ending with a slash.
    pub(super) prefix: Vec<u8>,
    /// The tree without any file.
    pub(super) empty_tree: String,
    /// The user's index.
    index: PathBuf,
    scratch: PathBuf,
}

impl Repository {
    pub(super) fn open(dir: &Path, scratch: &Path) -> Result<Self, String> {
        let line = |arguments: &[&str]| {
            let mut command = git_command(dir);
            command.args(arguments);
            printed_by(command, b"").map(without_newline)
        };
        let path = |bytes: Vec<u8>| PathBuf::from(OsString::from_vec(bytes));
        let top = path(line(&["rev-parse", "--show-toplevel"])?);
        let index = dir.join(path(line(&["rev-parse", "--git-path", "index"])?));
        let prefix = line(&["rev-parse", "--show-prefix"])?;
        let empty_tree = text(line(&["hash-object", "-t", "tree", "-w", "--stdin"])?);
        Ok(Self { dir: dir.to_owned(), top, prefix, empty_tree, index, scratch: scratch.to_owned() })
    }

    /// Calls git at the top of the working tree.
    pub(super) fn run(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
        printed_by(self.command(arguments), input)
    }

    /// The same; returns one line of text.
    pub(super) fn line(&self, arguments: &[&str]) -> Result<String, String> {
        self.run(arguments, b"").map(text)
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = git_command(&self.top);
        command.args(arguments);
        command
    }

    /// The commit that is checked out; none before the first one.
    pub(super) fn head(&self) -> Result<Option<String>, String> {
        match self.line(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]) {
            Ok(head) => Ok(Some(head)),
            // Without a commit there is a branch that is still to begin; a broken HEAD is neither.
            Err(_) => self.line(&["symbolic-ref", "HEAD"]).map(|_| None),
        }
    }

    /// The tree of a commit; the empty tree where there is no commit.
    pub(super) fn tree_of(&self, commit: Option<&str>) -> Result<String, String> {
        match commit {
            Some(commit) => self.line(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]),
            None => Ok(self.empty_tree.clone()),
        }
    }

    /// An index of our own: a copy of the user's, so that git knows which files are unchanged without reading them.
    pub(super) fn own_index(&self) -> Result<OwnIndex<'_>, String> {
        let cannot = |error: io::Error| format!("{} cannot be written: {error}", self.scratch.display());
        // What an attempt that was killed left there would be in git's way.
        match std::fs::remove_dir_all(&self.scratch) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(error)),
            Ok(()) | Err(_) => {}
        }
        std::fs::create_dir_all(&self.scratch).map_err(cannot)?;
        let path = self.scratch.join("index");
        match std::fs::copy(&self.index, &path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(error)),
            Ok(_) | Err(_) => {}
        }
        Ok(OwnIndex { repository: self, path })
    }

    /// The path of a file in the git directory of this working tree, whether or not it exists.
    pub(super) fn git_path(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.run(&["rev-parse", "--git-path", name], b"").map(without_newline)?;
        Ok(self.top.join(OsString::from_vec(path)))
    }

    /// A file for temporary content beside our own index.
    pub(super) fn scratch_file(&self, name: &str, content: &[u8]) -> Result<PathBuf, String> {
        let path = self.scratch.join(name);
        std::fs::write(&path, content).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        Ok(path)
    }
}

/// An index that only we use; removed when it is dropped.
pub(super) struct OwnIndex<'r> {
    repository: &'r Repository,
    path: PathBuf,
}

impl OwnIndex<'_> {
    pub(super) fn run(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
        printed_by(self.command(arguments), input)
    }

    /// Adds files to the index as they are in the working tree.
    pub(super) fn add(&self, paths: &[Vec<u8>]) -> Result<(), String> {
        let listed: Vec<u8> = paths.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
        self.run(&["update-index", "--add", "-z", "--stdin"], &listed).map(drop)
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.repository.command(arguments);
        command.env("GIT_INDEX_FILE", &self.path);
        command
    }

    /// The tree of what the index holds.
    pub(super) fn tree(&self) -> Result<String, String> {
        self.run(&["write-tree"], b"").map(text)
    }
}

impl Drop for OwnIndex<'_> {
    fn drop(&mut self) {
        // What is left is removed before the next index is made.
        let _ = std::fs::remove_dir_all(&self.repository.scratch);
    }
}

pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).trim_end().to_owned()
}

fn without_newline(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    bytes
}
