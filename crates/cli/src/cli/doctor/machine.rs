//! Checks of the machine: a shell, git, the process table, the clock.

use super::Check;
use crate::sys;
use lockgate_engine::time::Timestamp;
use lockgate_runner::process::default_shell;
use lockgate_runner::runtime::{Clock, SystemClock};
use std::process::{Command, ExitStatus, Stdio};

/// Earlier than this version of Lockgate, so a clock that shows an earlier time was never set.
const LONG_AGO: Timestamp = Timestamp::from_millis(1_735_689_600_000);

pub(super) fn checks() -> Vec<Check> {
    vec![shell(), git(), processes(), clock(SystemClock.now())]
}

/// Why a program did not print the expected line.
#[derive(Debug, thiserror::Error)]
enum ProgramError {
    /// It is not installed, or not in PATH.
    #[error("`{0}` is not found")]
    NotFound(String),
    #[error("`{program}` cannot be started: {error}")]
    NotStarted { program: String, error: std::io::Error },
    #[error("`{command}` ends with {status}")]
    Failed { command: String, status: ExitStatus },
}

/// The first line that a program prints.
fn first_line(program: &str, arguments: &[&str]) -> Result<String, ProgramError> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ProgramError::NotFound(program.to_owned()),
        _ => ProgramError::NotStarted { program: program.to_owned(), error },
    })?;
    if !output.status.success() {
        let command = format!("{program} {}", arguments.join(" "));
        return Err(ProgramError::Failed { command, status: output.status });
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
}

fn shell() -> Check {
    let help = "install bash, or a POSIX shell as /bin/sh";
    let shell = default_shell();
    let options = shell.options.iter().map(String::as_str).chain(["-c", "echo works"]).collect::<Vec<_>>();
    match first_line(&shell.path.to_string_lossy(), &options) {
        Ok(line) if line == "works" => Check::ok("shell", format!("commands run with `{}`", shell.text())),
        Ok(line) => Check::failed("shell", format!("`{} -c 'echo works'` prints {line:?}", shell.text()), help),
        Err(why) => Check::failed("shell", why.to_string(), help),
    }
}

fn git() -> Check {
    match first_line("git", &["--version"]) {
        Ok(version) => Check::ok("git", version),
        Err(why) => Check::failed("git", why.to_string(), "install git and add it to PATH; tasks that use it fail without it"),
    }
}

fn processes() -> Check {
    if !sys::HAS_PROCESS_TABLE {
        return Check::missing(
            "processes",
            "Lockgate cannot read the process table of this system",
            "after a crash, end processes that tasks left running yourself; Lockgate cannot find them here",
        );
    }
    match sys::read_process_table() {
        Ok(()) => Check::ok("processes", "the process table can be read"),
        Err(error) => Check::failed(
            "processes",
            format!("/proc cannot be read: {error}"),
            "mount /proc; without it, Lockgate cannot find processes that tasks left running after a crash",
        ),
    }
}

fn clock(now: Timestamp) -> Check {
    if now < LONG_AGO {
        return Check::failed("clock", format!("the clock shows {now}"), "set the clock, or enable network time");
    }
    Check::ok("clock", now.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_clock_that_was_never_set_is_found() {
        assert_eq!(clock(Timestamp::from_millis(5)).state, State::Failed);
        assert_eq!(clock(LONG_AGO).state, State::Ok);
    }

    #[test]
    fn a_missing_or_failing_program_is_reported() {
        let missing = first_line("lockgate-no-such-program", &[]).unwrap_err();
        assert_eq!(missing.to_string(), "`lockgate-no-such-program` is not found");
        let failed = first_line("sh", &["-c", "exit 3"]).unwrap_err();
        assert_eq!(failed.to_string(), "`sh -c exit 3` ends with exit status: 3");
    }
}
