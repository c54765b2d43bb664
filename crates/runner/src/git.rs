//! Calling git.

use crate::identity::TASK_VARIABLE;
use crate::process::{OF_ANOTHER_REPOSITORY, in_marked_session};
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Why a git call failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git is not installed, or the system refused to start it.
    #[error("git cannot be started: {0}")]
    NotStarted(#[source] io::Error),
    #[error("cannot wait for git: {0}")]
    NotAwaited(#[source] io::Error),
    /// Git's error message, on one line.
    #[error("{0}")]
    Failed(String),
    #[error("git failed and did not say why")]
    FailedSilently,
}

/// Calls git in a directory and returns its output.
pub fn git(dir: &Path, arguments: &[&str]) -> Result<String, GitError> {
    git_with(dir, arguments, "")
}

/// Like [`git`], with input on stdin.
pub fn git_with(dir: &Path, arguments: &[&str], input: &str) -> Result<String, GitError> {
    let mut command = git_command(dir);
    command.args(arguments);
    let printed = output_of(command, input.as_bytes())?;
    Ok(String::from_utf8_lossy(&printed).trim_end().to_owned())
}

/// Runs a git command and returns its output as bytes, because file names need not be UTF-8.
pub(crate) fn output_of(mut command: Command, input: &[u8]) -> Result<Vec<u8>, GitError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    in_marked_session(&mut command);
    let mut child = command.spawn().map_err(GitError::NotStarted)?;
    let mut stdin = child.stdin.take();
    let input = input.to_owned();
    // Write in a separate thread while the output is read, so that neither side blocks the other.
    let writing = std::thread::spawn(move || stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(&input)));
    let output = child.wait_with_output().map_err(GitError::NotAwaited)?;
    if let Ok(Err(error)) = writing.join() {
        tracing::debug!(%error, "git did not read all of its input; its exit code says whether that matters");
    }
    outcome(output)
}

/// A git command in a directory. It ignores environment variables that point to other repositories, and two features with which a task
/// could hide a change: a file monitor, and replacement objects. Callers that start it neither with [`output_of`] nor as a job must call
/// [`in_marked_session`].
pub(crate) fn git_command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.args(["-c", "core.fsmonitor=false"]).current_dir(dir);
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_REPLACE_OBJECTS", "1");
    // Hooks and filters that git starts must not be able to answer as a person, even if they outlive git.
    if std::env::var_os(TASK_VARIABLE).is_none() {
        command.env(TASK_VARIABLE, "(a program that git started)");
    }
    for name in OF_ANOTHER_REPOSITORY {
        command.env_remove(name);
    }
    command
}

/// Tracked files whose changes git does not report.
#[derive(Debug, Default)]
pub(crate) struct HiddenFiles<'a> {
    /// Marked with `--assume-unchanged`.
    pub assumed: Vec<&'a [u8]>,
    /// Marked with `--skip-worktree`, but present. A sparse checkout marks files too, but does not check them out.
    pub skipped: Vec<&'a [u8]>,
}

impl<'a> HiddenFiles<'a> {
    /// Parses the output of `git ls-files -v -z` at the top of a working tree.
    pub(crate) fn parse(listed: &'a [u8], top: &Path) -> Self {
        let mut hidden = Self::default();
        for entry in listed.split(|byte| *byte == 0) {
            let Some((&[tag, b' '], path)) = entry.split_first_chunk::<2>() else { continue };
            if tag.is_ascii_lowercase() {
                hidden.assumed.push(path);
            }
            if tag.eq_ignore_ascii_case(&b's') && top.join(OsStr::from_bytes(path)).symlink_metadata().is_ok() {
                hidden.skipped.push(path);
            }
        }
        hidden
    }
}

/// Git's output, or its error message if it failed.
pub(crate) fn outcome(output: Output) -> Result<Vec<u8>, GitError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(error_summary(&String::from_utf8_lossy(&output.stderr)).map_or(GitError::FailedSilently, GitError::Failed))
}

/// Prefixes of progress lines, which may come before or after an error.
const PROGRESS: [&str; 8] = [
    "Preparing worktree",
    "HEAD is now at",
    "Updating files:",
    "Checking out files:",
    "Filtering content:",
    "Switched to",
    "Auto-merging",
    "hint:",
];

/// The maximum number of lines in an error message.
const MAX_ERROR_LINES: usize = 20;

/// The errors that git and its hooks printed, on one line and without progress; `None` if there are none.
fn error_summary(stderr: &str) -> Option<String> {
    let lines = stderr.split(['\n', '\r']).map(str::trim);
    let matter: Vec<&str> =
        lines.filter(|line| !line.is_empty() && !PROGRESS.iter().any(|progress| line.starts_with(progress))).collect();
    match matter.len() {
        0 => None,
        count if count > MAX_ERROR_LINES => Some(format!("{}; …", matter[..MAX_ERROR_LINES].join("; "))),
        _ => Some(matter.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_message_is_the_git_output_without_progress() {
        let said = "Preparing worktree (new branch 'x')\nUpdating files:  50% (1/2)\rUpdating files: 100% (2/2), done.\n\
            error: external filter 'f' failed 1\nfatal: a.txt: smudge filter f failed\nHEAD is now at 1234567 first\n";
        let complained = "error: external filter 'f' failed 1; fatal: a.txt: smudge filter f failed";
        assert_eq!(error_summary(said).as_deref(), Some(complained));
        assert_eq!(error_summary("Preparing worktree (checking out 'x')\n"), None);
        assert_eq!(GitError::FailedSilently.to_string(), "git failed and did not say why");
        assert_eq!(error_summary(&"x\n".repeat(30)), Some(format!("{}; …", ["x"; 20].join("; "))));
    }
}
