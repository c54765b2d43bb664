//! Secrets: where their values come from, and keeping them out of everything that is stored or shown.

mod encodings;
mod escapes;
mod masks;

pub use masks::{Masker, Masks};

use crate::process::default_shell;
use lockgate_engine::spec::workflow::SecretSource;
use std::fmt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;

const LONGEST: usize = 64 * 1024;
/// How long a command that prints a secret may take.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// A value that only the tasks that list it may see. Its `Debug` form never shows the value.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its name in workflows, and the environment variable in which tasks receive it.
    pub name: String,
    pub value: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Secret").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a secret has no value. No variant ever contains a part of the value.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(
        "secret {name:?}: the environment variable {variable:?} is not set; set it before starting Lockgate, \
         or give the secret a `command` under `secrets` in the workflow"
    )]
    NotSet { name: String, variable: String },
    #[error("secret {name:?}: the value from {from} is empty; set a value, or remove the secret from the tasks that list it")]
    Empty { name: String, from: String },
    /// The value is not text or contains a NUL, so that no environment variable can hold it.
    #[error("secret {name:?}: the value from {from} is not plain UTF-8 text; encode it, for example as base64")]
    NotText { name: String, from: String },
    #[error(
        "secret {name:?}: the value from {from} is longer than {LONGEST} bytes; put it in a file and keep the path secret instead"
    )]
    TooLong { name: String, from: String },
    #[error("secret {name:?}: the command {command:?} {problem}; run it by hand to see what it needs")]
    CommandFailed {
        name: String,
        command: String,
        /// What happened.
        problem: String,
    },
}

impl Secret {
    /// Resolves a secret; without a source it is the environment variable of that name. Commands run in `dir` and may use the
    /// terminal: they belong to the person who starts Lockgate, not to a task.
    pub async fn resolve(name: &str, source: Option<&SecretSource>, dir: &Path) -> Result<Self, SecretError> {
        match source {
            None => Self::from_variable(name, name),
            Some(SecretSource::Env(variable)) => Self::from_variable(name, variable),
            Some(SecretSource::Command(command)) => Self::from_command(name, command, dir).await,
        }
    }

    fn from_variable(name: &str, variable: &str) -> Result<Self, SecretError> {
        let from = format!("the environment variable {variable:?}");
        match std::env::var_os(variable) {
            None => Err(SecretError::NotSet { name: name.into(), variable: variable.into() }),
            Some(value) => match value.into_string() {
                Ok(value) => Self::checked(name, value, from),
                Err(_) => Err(SecretError::NotText { name: name.into(), from }),
            },
        }
    }

    async fn from_command(name: &str, command: &str, dir: &Path) -> Result<Self, SecretError> {
        let failed = |problem: String| SecretError::CommandFailed { name: name.into(), command: command.into(), problem };
        let shell = default_shell();
        let mut started = Command::new(&shell.path);
        started.args(&shell.options).args(["-c", command]).current_dir(dir).stdin(Stdio::null()).kill_on_drop(true);
        let output = started.output();
        let Output { status, stdout, stderr } = match tokio::time::timeout(COMMAND_TIMEOUT, output).await {
            Err(_) => return Err(failed(format!("did not end within {} seconds", COMMAND_TIMEOUT.as_secs()))),
            Ok(Err(error)) => return Err(failed(format!("could not be started: {error}"))),
            Ok(Ok(output)) => output,
        };
        if !status.success() {
            let said = String::from_utf8_lossy(&stderr);
            let said = said.trim_end().lines().next_back().unwrap_or_default();
            let colon = if said.is_empty() { "" } else { ": " };
            return Err(failed(format!("ended with {status}{colon}{said}")));
        }
        let from = format!("the command {command:?}");
        let mut value = String::from_utf8(stdout).map_err(|_| SecretError::NotText { name: name.into(), from: from.clone() })?;
        if value.ends_with('\n') {
            value.pop();
            if value.ends_with('\r') {
                value.pop();
            }
        }
        Self::checked(name, value, from)
    }

    fn checked(name: &str, value: String, from: String) -> Result<Self, SecretError> {
        let name = name.to_owned();
        if value.is_empty() {
            Err(SecretError::Empty { name, from })
        } else if value.contains('\0') {
            Err(SecretError::NotText { name, from })
        } else if value.len() > LONGEST {
            Err(SecretError::TooLong { name, from })
        } else {
            Ok(Self { name, value })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolve(source: SecretSource) -> Result<Secret, SecretError> {
        Secret::resolve("TOKEN", Some(&source), Path::new("/")).await
    }

    #[tokio::test]
    async fn a_secret_command_returns_its_output_without_the_trailing_newline() {
        let secret = resolve(SecretSource::Command("printf 'one\\ntwo\\n\\n'".into())).await.unwrap();
        assert_eq!(secret, Secret { name: "TOKEN".into(), value: "one\ntwo\n".into() });
    }

    #[tokio::test]
    async fn a_failing_secret_command_reports_its_exit_status_and_last_lines() {
        let error =
            resolve(SecretSource::Command("echo hidden; echo not logged in >&2; exit 3".into())).await.unwrap_err().to_string();
        assert!(error.contains("exit status: 3: not logged in"), "{error}");
        assert!(!error.replace("echo hidden", "").contains("hidden"), "{error}");
    }

    #[tokio::test]
    async fn a_missing_variable_is_named() {
        let error = resolve(SecretSource::Env("LOCKGATE_NO_SUCH_VARIABLE".into())).await.unwrap_err();
        assert!(matches!(error, SecretError::NotSet { .. }));
        assert!(error.to_string().contains("\"LOCKGATE_NO_SUCH_VARIABLE\" is not set"), "{error}");
    }

    #[tokio::test]
    async fn a_variable_returns_its_value() {
        let path = std::env::var("PATH").unwrap();
        assert_eq!(Secret::resolve("PATH", None, Path::new("/")).await.unwrap().value, path);
    }

    #[tokio::test]
    async fn an_empty_value_is_refused() {
        assert!(matches!(resolve(SecretSource::Command("true".into())).await, Err(SecretError::Empty { .. })));
    }

    #[test]
    fn debug_never_shows_the_value() {
        let shown = format!("{:?}", Secret { name: "TOKEN".into(), value: "hunter2!".into() });
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    }
}
