//! Git plumbing in the working directory of a task.

use super::{CommitError, FileUse, NotCommitted};
use crate::git::{git_command, outcome, output_of};
use crate::process::{Stop, run_locked};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Our own git calls run none of the user's hooks; only the commit does.
const WITHOUT_HOOKS: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

/// Overrides settings with which a task could make git overlook changes or refuse to read them.
const ALL_CHANGES: [&str; 6] = ["-c", "core.trustctime=true", "-c", "core.checkStat=default", "-c", "core.safecrlf=false"];

/// A repository, with a directory for temporary indexes.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) dir: PathBuf,
    pub(crate) top: PathBuf,
    /// The path from the top to the directory: empty, or with a trailing slash.
    pub(crate) prefix: Vec<u8>,
    pub(crate) empty_tree: String,
    pub(super) index: PathBuf,
    scratch: PathBuf,
    /// The lock held while git runs the user's programs.
    pub(super) lock: PathBuf,
    /// Stops the user's programs that git has started.
    pub(super) stop: Stop,
    /// Where new objects go, if not into the user's repository.
    objects: Option<PathBuf>,
}

impl Repository {
    pub(crate) fn open(place: &super::Place, stop: &Stop) -> Result<Self, CommitError> {
        let line = |arguments: &[&str]| {
            let mut command = git_command(&place.dir);
            command.args(arguments);
            output_of(command, b"").map(without_newline)
        };
        let path = |bytes: Vec<u8>| PathBuf::from(OsString::from_vec(bytes));
        Ok(Self {
            dir: place.dir.clone(),
            top: path(line(&["rev-parse", "--show-toplevel"])?),
            prefix: line(&["rev-parse", "--show-prefix"])?,
            empty_tree: text(line(&["hash-object", "-t", "tree", "-w", "--stdin"])?),
            index: place.dir.join(path(line(&["rev-parse", "--git-path", "index"])?)),
            scratch: place.scratch.clone(),
            lock: place.lock.clone(),
            stop: stop.clone(),
            objects: None,
        })
    }

    /// Redirects new objects into our own directory, which names the user's objects as its alternates.
    pub(crate) fn with_objects(self, objects: PathBuf) -> Self {
        Self { objects: Some(objects), ..self }
    }

    /// Our own directory for new objects, if set.
    pub(crate) fn own_objects(&self) -> Option<&Path> {
        self.objects.as_deref()
    }

    /// Calls git at the top of the working tree.
    pub(crate) fn run(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, CommitError> {
        Ok(output_of(self.command(arguments), input)?)
    }

    /// Like [`Repository::run`], for one line of text.
    pub(crate) fn line(&self, arguments: &[&str]) -> Result<String, CommitError> {
        self.run(arguments, b"").map(text)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = git_command(&self.top);
        command.args(WITHOUT_HOOKS);
        if let Some(objects) = &self.objects {
            command.args(ALL_CHANGES).env("GIT_OBJECT_DIRECTORY", objects);
        }
        command.args(arguments);
        command
    }

    /// Runs a git command that starts filters or hooks of the user. They are stopped when the run is stopped, or by the
    /// process that takes over if this one is killed.
    pub(crate) fn run_programs(&self, command: Command, input: Option<File>) -> Result<Vec<u8>, NotCommitted> {
        let ran = run_locked(command, &self.lock, input, &self.stop).map_err(CommitError::NotRun)?;
        Ok(outcome(ran.ok_or(NotCommitted::Stopped)?)?)
    }

    /// The checked-out commit; `None` before the first one.
    pub(crate) fn head(&self) -> Result<Option<String>, CommitError> {
        match self.line(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]) {
            Ok(head) => Ok(Some(head)),
            // Before the first commit, HEAD names an unborn branch; anything else is a broken HEAD.
            Err(_) => self.line(&["symbolic-ref", "HEAD"]).map(|_| None),
        }
    }

    /// The tree of a commit; the empty tree for `None`.
    pub(crate) fn tree_of(&self, commit: Option<&str>) -> Result<String, CommitError> {
        match commit {
            Some(commit) => self.line(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]),
            None => Ok(self.empty_tree.clone()),
        }
    }

    /// A temporary index: a copy of the user's, so that git knows which files are unchanged without reading them.
    pub(crate) fn own_index(&self) -> Result<OwnIndex<'_>, CommitError> {
        let cannot = |error: io::Error| CommitError::file(&self.scratch, FileUse::Written, error);
        // Leftovers of a killed attempt, such as a stale lock, would make git fail.
        match fs::remove_dir_all(&self.scratch) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(error)),
            Ok(()) | Err(_) => {}
        }
        fs::create_dir_all(&self.scratch).map_err(cannot)?;
        let path = self.scratch.join("index");
        match copy_with_time(&self.index, &path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(error)),
            Ok(()) | Err(_) => {}
        }
        Ok(OwnIndex { repository: self, path })
    }

    /// The path of a file in the git directory of this working tree, whether or not it exists.
    pub(crate) fn git_path(&self, name: &str) -> Result<PathBuf, CommitError> {
        let path = self.run(&["rev-parse", "--git-path", name], b"").map(without_newline)?;
        Ok(self.top.join(OsString::from_vec(path)))
    }

    /// A temporary file next to our own index.
    pub(crate) fn scratch_file(&self, name: &str, content: &[u8]) -> Result<PathBuf, CommitError> {
        let path = self.scratch.join(name);
        fs::write(&path, content).map_err(|error| CommitError::file(&path, FileUse::Written, error))?;
        Ok(path)
    }
}

/// A private index, removed on drop.
pub(crate) struct OwnIndex<'r> {
    repository: &'r Repository,
    path: PathBuf,
}

impl OwnIndex<'_> {
    pub(crate) fn run(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, CommitError> {
        let mut command = self.repository.command(arguments);
        self.use_in(&mut command);
        Ok(output_of(command, input)?)
    }

    pub(crate) fn use_in(&self, command: &mut Command) {
        command.env("GIT_INDEX_FILE", &self.path);
    }

    /// Adds all tracked files as they are in the working tree.
    pub(crate) fn update(&self) -> Result<(), NotCommitted> {
        let mut command = self.repository.command(&["add", "--update"]);
        self.use_in(&mut command);
        self.repository.run_programs(command, None).map(drop)
    }

    /// Adds some files as they are in the working tree; files that have disappeared are removed.
    pub(crate) fn add(&self, paths: &[Vec<u8>]) -> Result<(), NotCommitted> {
        if paths.is_empty() {
            return Ok(());
        }
        let listed: Vec<u8> = paths.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
        let list = self.repository.scratch_file("paths", &listed)?;
        let list = File::open(&list).map_err(|error| CommitError::file(&list, FileUse::Read, error))?;
        let mut command = self.repository.command(&["update-index", "--add", "--remove", "-z", "--stdin"]);
        self.use_in(&mut command);
        self.repository.run_programs(command, Some(list)).map(drop)
    }

    pub(crate) fn tree(&self) -> Result<String, CommitError> {
        self.run(&["write-tree"], b"").map(text)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnIndex<'_> {
    fn drop(&mut self) {
        // Leftovers are removed before the next index is created.
        lockgate_store::cleanup::remove_dir(&self.repository.scratch);
    }
}

/// Copies an index with its modification time, which git compares with the times of files, in whole seconds, to find files
/// that may have changed undetected.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    // Read it first: if the index is replaced meanwhile, an older time is the safe one.
    let modified = from.metadata()?.modified()?;
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(modified)
}

pub(super) fn remove(path: &Path) -> Result<(), CommitError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(CommitError::file(path, FileUse::Removed, error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The git directory of the working tree that contains a directory.
pub(super) fn git_dir(dir: &Path) -> Result<PathBuf, CommitError> {
    let mut command = git_command(dir);
    command.args(["rev-parse", "--absolute-git-dir"]);
    Ok(output_of(command, b"").map(|path| PathBuf::from(OsString::from_vec(without_newline(path))))?)
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
