//! A project in a temporary directory, and a shell in it, with and without a terminal.

use crate::project::{program, without_terminal};
use expectrl::{Session, WaitStatus};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a prompt may wait before it counts as one that the page does not answer.
const UNANSWERED: Duration = Duration::from_secs(5);
/// How long the output must pause before its last line counts as a prompt.
const PAUSE: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(60);

/// What a command printed, and its exit code.
pub(super) struct Done {
    pub(super) code: i32,
    pub(super) text: String,
}

pub(super) struct Shell {
    directory: tempfile::TempDir,
}

impl Shell {
    /// An empty project, an empty home directory, and `lockgate` on the search path.
    pub(super) fn new() -> Self {
        let shell = Self { directory: tempfile::tempdir().unwrap() };
        for name in ["project", "home", "programs"] {
            std::fs::create_dir(shell.path(name)).unwrap();
        }
        symlink(program(), shell.path("programs/lockgate")).unwrap();
        let identity =
            "[user]\nname = Ada\nemail = ada@example.invalid\n[init]\ndefaultBranch = main\n[commit]\ngpgsign = false\n";
        std::fs::write(shell.path("home/.gitconfig"), identity).unwrap();
        shell
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file of the project.
    pub(super) fn write(&self, name: &str, text: &str, executable: bool) {
        let path = self.path("project").join(name);
        path.parent().map(std::fs::create_dir_all).transpose().unwrap();
        std::fs::write(&path, text).unwrap();
        if executable {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// A command line for the shell, after preparations. In it, `$?` is the exit code of the command before.
    fn command(&self, prepare: &str, line: &str, code: i32) -> Command {
        let mut command = Command::new("bash");
        command.args(["--norc", "--noprofile", "-c", &format!("{prepare}\n(exit {code})\n{line}")]);
        let paths = [self.path("project/bin"), self.path("programs")].map(|path| path.display().to_string());
        let path = format!("{}:{}", paths.join(":"), std::env::var("PATH").unwrap_or_default());
        command.env_clear().env("PATH", path).env("HOME", self.path("home")).env("USER", "ada").env("TZ", "UTC");
        command.env("TERM", "dumb").env("LC_ALL", "C.UTF-8").current_dir(self.path("project"));
        command
    }

    /// Runs a command line where there is no terminal, as in CI.
    pub(super) fn run_without_terminal(&self, line: &str, code: i32) -> Done {
        let mut command = self.command("exec 2>&1", line, code);
        without_terminal(&mut command);
        let output = command.stdin(Stdio::null()).output().unwrap();
        Done { code: output.status.code().unwrap_or(-1), text: self.named(&String::from_utf8_lossy(&output.stdout)) }
    }

    /// Runs a command line in a terminal, but with input and output redirected: a person runs it, and nothing is asked.
    pub(super) fn run(&self, line: &str, code: i32) -> Done {
        let printed = self.path("printed");
        let redirect = format!("exec < /dev/null > '{}' 2>&1", printed.display());
        let done = self.follow(self.command(&redirect, line, code), &[]);
        let text = std::fs::read(printed).unwrap_or_default();
        Done { text: self.named(&String::from_utf8_lossy(&text)) + &done.text, ..done }
    }

    /// Runs a command line at a terminal without cursor movements, so that what it shows is a transcript.
    pub(super) fn run_at_terminal(&self, line: &str, code: i32, shown: &[String]) -> Done {
        self.follow(self.command("stty echo cols 100 rows 50", line, code), shown)
    }

    /// Reads what a command shows on its own terminal. At a prompt, types what the page shows behind it.
    fn follow(&self, command: Command, shown: &[String]) -> Done {
        let mut session = Session::spawn(command).unwrap();
        let mut parser = vt100::Parser::new(2000, 400, 0);
        let (began, mut last_output, mut answered, mut piece) = (Instant::now(), Instant::now(), 0, [0; 4096]);
        let stuck =
            |screen: &vt100::Screen, why: String| Done { code: -1, text: format!("{}\n({why})", self.named(&screen.contents())) };
        loop {
            match session.try_read(&mut piece) {
                Ok(0) => break,
                Ok(length) => {
                    parser.process(&piece[..length]);
                    last_output = Instant::now();
                    continue;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => break,
            }
            let row = usize::from(parser.screen().cursor_position().0);
            let prompt = parser.screen().rows(0, 400).nth(row).unwrap_or_default().trim_end().to_owned();
            if !prompt.is_empty() && last_output.elapsed() > PAUSE {
                let found = shown.iter().enumerate().skip(answered).find(|(_, shown)| shown.starts_with(&prompt));
                if let Some((at, shown)) = found {
                    session.send(format!("{}\r", shown[prompt.len()..].trim())).unwrap();
                    (answered, last_output) = (at + 1, Instant::now());
                } else if last_output.elapsed() > UNANSWERED {
                    session.exit(true).ok();
                    return stuck(parser.screen(), format!("it waits for input at {prompt:?}, and the page shows no answer"));
                }
            }
            if began.elapsed() > PATIENCE {
                session.exit(true).ok();
                return stuck(parser.screen(), "it did not end".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let code = match session.wait().unwrap() {
            WaitStatus::Exited(_, code) => code,
            _ => -1,
        };
        Done { code, text: self.named(&parser.screen().contents()) }
    }

    /// The output with the names that pages use for the person and the project.
    fn named(&self, text: &str) -> String {
        let user = crate::project::user();
        let text = text.replace(&*self.path("project").to_string_lossy(), "/home/ada/project");
        let person = regex::Regex::new(&format!(r#"(by |")({})\b"#, regex::escape(&user))).unwrap();
        person.replace_all(&text, "${1}ada").into_owned()
    }
}
