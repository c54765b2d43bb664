//! The shell program for a command, and its arguments.

use super::error::ShellError;
use lockgate_engine::spec::workflow::Shell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The longest command passed as an argument, in bytes; the system allows little more for one argument.
const LONGEST_ARGUMENT: usize = 100_000;

/// bash reads no startup files, and takes neither options nor functions from its environment (`-p`), so that a command
/// behaves the same no matter who starts Lockgate.
const BASH: [&str; 6] = ["--noprofile", "--norc", "-p", "-e", "-o", "pipefail"];

/// With this option, a failing command also stops a command substitution. bash has it since 4.4; an older one, such as that
/// of macOS, would refuse to start.
const INHERIT_ERREXIT: [&str; 2] = ["-O", "inherit_errexit"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    /// The options before the command.
    pub options: Vec<String>,
}

impl Program {
    /// As a person would type it.
    pub fn text(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Options about startup files do not affect what a command means.
        let options = self.options.iter().filter(|option| !matches!(option.as_str(), "--noprofile" | "--norc" | "-p"));
        std::iter::once(&name).chain(options).map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// The default shell: bash, or `sh` on a machine without it.
pub fn default_shell() -> &'static Program {
    static FOUND: OnceLock<Program> = OnceLock::new();
    FOUND.get_or_init(|| match bash() {
        Some(path) => strict_bash(path),
        None => sh(accepts(Path::new("/bin/sh"), &["-o", "pipefail"])),
    })
}

/// A description of how commands with this shell are run.
pub fn shell_text(shell: Option<&Shell>) -> String {
    match shell {
        None => default_shell().text(),
        Some(Shell::Bash) => strict_bash(bash().unwrap_or_else(|| "bash".into())).text(),
        Some(Shell::Sh) => sh(false).text(),
        Some(Shell::Program(template)) => template.clone(),
    }
}

fn bash() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let is_program = |path: &Path| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    // A relative directory on the path could contain anything.
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join("bash")).find(|path| is_program(path))
}

fn strict_bash(path: PathBuf) -> Program {
    static INHERITS: OnceLock<bool> = OnceLock::new();
    let inherits = *INHERITS.get_or_init(|| accepts(&path, &INHERIT_ERREXIT));
    let options = BASH.iter().chain(INHERIT_ERREXIT.iter().filter(|_| inherits));
    Program { options: options.map(|&option| option.to_owned()).collect(), path }
}

fn sh(pipefail: bool) -> Program {
    let options: &[&str] = if pipefail { &["-e", "-o", "pipefail"] } else { &["-e"] };
    Program { path: "/bin/sh".into(), options: options.iter().map(|&option| option.to_owned()).collect() }
}

fn accepts(shell: &Path, options: &[&str]) -> bool {
    let mut asked = Command::new(shell);
    asked.args(options).args(["-c", ":"]).env_remove("BASH_ENV");
    asked.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The command line that runs a command. A command that is too long for an argument, or whose shell needs a file, goes into
/// `script`.
pub(super) fn command_line(shell: Option<&Shell>, command: &str, script: &Path) -> Result<Command, ShellError> {
    if let Some(arguments) = shell.and_then(|shell| shell.arguments(&script.to_string_lossy())) {
        write(script, command)?;
        let (program, rest) = arguments.split_first().ok_or(ShellError::NoProgram)?;
        let mut line = Command::new(program);
        line.args(rest);
        return Ok(line);
    }
    let program = match shell {
        Some(Shell::Bash) => bash().map(strict_bash).ok_or(ShellError::NoBash)?,
        Some(Shell::Sh) => sh(false),
        Some(Shell::Program(_)) | None => default_shell().clone(),
    };
    let mut line = Command::new(program.path);
    line.args(program.options);
    // bash would export its own options in these variables, so that scripts it starts would also stop at a failing line.
    line.env_remove("SHELLOPTS").env_remove("BASHOPTS");
    if command.len() <= LONGEST_ARGUMENT {
        line.arg("-c").arg(command);
    } else {
        write(script, command)?;
        line.arg(script);
    }
    Ok(line)
}

/// The script file of a command whose shell reads one.
pub(super) fn script_file(lock: &Path) -> PathBuf {
    job_file(lock, "script")
}

/// A file that belongs to a job and is removed with its lock.
pub(super) fn job_file(lock: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(lock);
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

fn write(path: &Path, command: &str) -> Result<(), ShellError> {
    let line_break = if command.ends_with('\n') { "" } else { "\n" };
    write_private(path, &[command.as_bytes(), line_break.as_bytes()].concat())
        .map_err(|error| ShellError::Script { path: path.to_path_buf(), error })
}

/// Writes a file that is readable only by its owner.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The shell of an earlier attempt may still be reading the old file.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}
