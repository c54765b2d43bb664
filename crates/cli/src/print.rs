//! The only module that prints: data on stdout, messages on stderr. If stdout cannot be written, the program says so and fails at its end;
//! a pipe that its reader closed is not an error. Write errors on stderr are ignored, because nothing could report them.

use crate::live;
use anstyle::{AnsiColor, Style};
use lockgate::sanitize;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

/// Failures.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Text that needs attention.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Commands and suggestions.
pub(crate) const HELP: Style = AnsiColor::Cyan.on_default();
/// Success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Names and ids.
pub(crate) const STRONG: Style = Style::new().bold();
/// Secondary details.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// Applies a style to text, which must already be sanitized.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints sanitized text to stdout, without styles if they are not supported. Returns whether stdout is still read.
pub(crate) fn data(text: &str) -> bool {
    let mut out = anstream::stdout().lock();
    was_written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints raw bytes to stdout. Returns whether stdout is still read.
pub(crate) fn bytes(bytes: &[u8]) -> bool {
    let mut out = io::stdout().lock();
    was_written(out.write_all(bytes).and_then(|()| out.flush()))
}

/// The first error of stdout other than a closed pipe.
static LOST_OUTPUT: OnceLock<io::Error> = OnceLock::new();

fn was_written(result: io::Result<()>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) => {
            if error.kind() != io::ErrorKind::BrokenPipe {
                // Only the first error is kept.
                let _ = LOST_OUTPUT.set(error);
            }
            false
        }
    }
}

/// Why output was lost, if it was.
pub(crate) fn lost_output() -> Option<&'static io::Error> {
    LOST_OUTPUT.get()
}

/// Prints indented JSON to stdout.
pub(crate) fn json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
    bytes((sanitize::json(text) + "\n").as_bytes());
}

/// Prints one line of JSON per value to stdout. Returns whether stdout is still read.
pub(crate) fn json_lines<T: Serialize>(values: &[T]) -> bool {
    let mut text = String::new();
    for value in values {
        text += &sanitize::json(serde_json::to_string(value).unwrap_or_default());
        text.push('\n');
    }
    bytes(text.as_bytes())
}

/// Prints sanitized and styled text to stderr, including its line breaks.
pub(crate) fn talk(text: &str) {
    // A single write, because stderr is not buffered.
    match stderr_has_colour() {
        true => live::write_above(text),
        false => live::write_above(&anstream::adapter::strip_str(text).to_string()),
    };
}

/// Prints text of an open question, which is not delayed until the question is closed.
pub(crate) fn of_question(text: &str) {
    match stderr_has_colour() {
        true => live::write_now(text),
        false => live::write_now(&anstream::adapter::strip_str(text).to_string()),
    }
}

/// Prints a line to stderr.
pub(crate) fn say(text: impl std::fmt::Display) {
    talk(&format!("{text}\n"));
}

pub(crate) fn warn(text: impl std::fmt::Display) {
    say(format_args!("{} {text}", styled(WARNING, "warning:")));
}

pub(crate) fn note(text: impl std::fmt::Display) {
    say(format_args!("{} {text}", styled(HELP, "note:")));
}

/// Writes raw text to the terminal, for cursor movement. Only the prompt uses it, without a live display.
pub(crate) fn terminal(text: &str) {
    let mut out = io::stderr().lock();
    // Not logged, because the log goes to the same terminal.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Whether a person at a terminal can read messages and answer.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

pub(crate) fn stdout_has_colour() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

pub(crate) fn stderr_has_colour() -> bool {
    static COLOUR: OnceLock<bool> = OnceLock::new();
    *COLOUR.get_or_init(|| anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never)
}
