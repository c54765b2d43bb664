//! The only module that prints: stdout is data, stderr is talk. What cannot be written, because nobody reads any more, is let go.

use crate::live;
use anstyle::{AnsiColor, Style};
use lockgate::sanitize;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

/// For what went wrong.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// For what deserves a look.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// For what to do next.
pub(crate) const HELP: Style = AnsiColor::Cyan.on_default();
/// For what went well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// For names of things.
pub(crate) const STRONG: Style = Style::new().bold();
/// For what matters less.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// A text in a style. The text must be neutral already.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Data, as text that is neutral already; styles are left out where they do not belong. Gives whether somebody still reads it.
pub(crate) fn data(text: &str) -> bool {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// Data, as the bytes that they are, for those who asked for exactly that. Gives whether somebody still reads it.
pub(crate) fn bytes(bytes: &[u8]) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).is_ok()
}

/// Data, as indented JSON.
pub(crate) fn json(value: &impl Serialize) {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
    bytes((sanitize::json(text) + "\n").as_bytes());
}

/// Data, as one line of JSON for each value. Gives whether somebody still reads it.
pub(crate) fn json_lines<T: Serialize>(values: &[T]) -> bool {
    let mut text = String::new();
    for value in values {
        text += &sanitize::json(serde_json::to_string(value).unwrap_or_default());
        text.push('\n');
    }
    bytes(text.as_bytes())
}

/// Talk: neutral text with styles, in one piece, line breaks included.
pub(crate) fn talk(text: &str) {
    // In one piece, because stderr is not buffered.
    match stderr_has_colour() {
        true => live::write_above(text),
        false => live::write_above(&anstream::adapter::strip_str(text).to_string()),
    };
}

/// Talk that belongs to a question which has the terminal: not kept until after it.
pub(crate) fn of_question(text: &str) {
    match stderr_has_colour() {
        true => live::write_now(text),
        false => live::write_now(&anstream::adapter::strip_str(text).to_string()),
    }
}

/// Talk: one line.
pub(crate) fn say(text: impl std::fmt::Display) {
    talk(&format!("{text}\n"));
}

/// Talk: a line that deserves a look.
pub(crate) fn warn(text: impl std::fmt::Display) {
    say(format_args!("{} {text}", styled(WARNING, "warning:")));
}

/// Talk: a line about something by the way.
pub(crate) fn note(text: impl std::fmt::Display) {
    say(format_args!("{} {text}", styled(HELP, "note:")));
}

/// To the terminal as it is, for moving the cursor; only the prompt needs it, while there is no live part.
pub(crate) fn terminal(text: &str) {
    let mut out = std::io::stderr().lock();
    // Nothing is logged about it: the log goes to the same terminal.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Whether somebody at a terminal reads the talk and can answer.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether the talk goes to a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether data goes to a terminal.
pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether data is shown in colour.
pub(crate) fn stdout_has_colour() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}

/// Whether talk is shown in colour.
pub(crate) fn stderr_has_colour() -> bool {
    static COLOUR: OnceLock<bool> = OnceLock::new();
    *COLOUR.get_or_init(|| anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never)
}
