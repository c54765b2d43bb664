//! The shell that runs commands.

use crate::spec::suggest;
use serde::{Deserialize, Serialize};

/// The placeholder for the path of the script file.
const SCRIPT: &str = "{0}";

/// Programs that follow the quoting rules of POSIX, so that values can be inserted into their commands.
const POSIX: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "busybox"];

/// The shell that runs a command. By default bash, or `sh` on a machine without bash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shell {
    /// bash, which stops at the first failing line and fails if any member of a pipe fails.
    Bash,
    /// `sh`, which stops at the first failing line. A pipe fails if its last member fails.
    Sh,
    /// A program with its arguments. `{0}` is the file that contains the command.
    Program(String),
}

/// Why a text does not name a shell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NotAShell {
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl Shell {
    /// The names of shells, for the schema and for suggestions.
    pub const WORDS: [&str; 2] = ["bash", "sh"];

    /// Parses a shell setting.
    pub fn parse(text: &str) -> Result<Self, NotAShell> {
        let text = text.trim();
        match text {
            "bash" => return Ok(Self::Bash),
            "sh" => return Ok(Self::Sh),
            _ => {}
        }
        let shown = crate::spec::shown(text);
        if !text.contains(SCRIPT) {
            let help = match suggest::nearest(text, Self::WORDS) {
                Some(meant) if !text.contains(char::is_whitespace) => format!("did you mean `{meant}`?"),
                _ => format!("write `bash`, `sh`, or a command with `{{0}}` for the script file: `{shown} {{0}}`"),
            };
            return Err(NotAShell { message: format!("`{shown}` is not a known shell"), help });
        }
        if text.contains(['\'', '"', '\\']) {
            let help = "separate the words with spaces; for anything else, name a program that does it".to_owned();
            return Err(NotAShell { message: "quotes and backslashes have no meaning in `shell`".to_owned(), help });
        }
        if text.split_whitespace().next().is_some_and(|program| program.contains(SCRIPT)) {
            let help = "put the program first: `python3 {0}`".to_owned();
            return Err(NotAShell { message: "`shell` starts with the script file instead of a program".to_owned(), help });
        }
        Ok(Self::Program(text.to_owned()))
    }

    /// As written in a workflow file.
    pub fn text(&self) -> &str {
        match self {
            Self::Bash => "bash",
            Self::Sh => "sh",
            Self::Program(template) => template,
        }
    }

    /// The program and its arguments, with the path of the script file; `None` for a shell that takes the command itself.
    pub fn arguments(&self, script: &str) -> Option<Vec<String>> {
        match self {
            Self::Bash | Self::Sh => None,
            Self::Program(template) => Some(template.split_whitespace().map(|word| word.replace(SCRIPT, script)).collect()),
        }
    }

    /// Whether it follows the quoting rules of POSIX. Values can be inserted only for such a shell.
    pub fn is_posix(&self) -> bool {
        let is_known = |word: &str| POSIX.contains(&word.rsplit('/').next().unwrap_or(word));
        match self {
            Self::Bash | Self::Sh => true,
            Self::Program(template) => template.split_whitespace().take_while(|word| !word.contains(SCRIPT)).any(is_known),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_a_known_name_or_a_command_with_a_script_file() {
        assert_eq!(Shell::parse("bash"), Ok(Shell::Bash));
        assert_eq!(Shell::parse(" sh "), Ok(Shell::Sh));
        let python = Shell::parse("python3 -u {0}").expect("a template");
        assert_eq!(python.arguments("/tmp/s"), Some(vec!["python3".into(), "-u".into(), "/tmp/s".into()]));
        assert!(!python.is_posix());
        for posix in ["bash -x {0}", "/usr/bin/dash {0}", "nix develop -c bash -eo pipefail {0}", "busybox sh {0}"] {
            assert!(Shell::parse(posix).expect(posix).is_posix(), "{posix}");
        }
        for (wrong, help) in [
            ("bahs", "did you mean `bash`?"),
            ("zsh -e", "`zsh -e {0}`"),
            ("python3 'a b' {0}", "separate the words with spaces"),
            ("{0}", "put the program first"),
        ] {
            assert!(Shell::parse(wrong).expect_err(wrong).help.contains(help), "{wrong}: {:?}", Shell::parse(wrong));
        }
    }
}
