//! Announces open holds with the terminal bell or a desktop notification.

use crate::live;
use lockgate::phrases::first_line;
use lockgate::sanitize;
use lockgate_engine::hold::{Hold, HoldState};
use lockgate_engine::run::Run;
use lockgate_runner::config::Notify;
use lockgate_runner::notifications::Notification;
use std::process::{Command, Stdio};

/// The maximum length of a notification, in characters.
const LONGEST: usize = 160;

/// Announces holds that were opened or reopened and still wait.
pub(crate) fn of_new_holds(notify: Notify, run: &Run, notifications: &[Notification<'_>]) {
    let new = notifications.iter().filter_map(|notification| notification.opened_hold());
    // One notification is enough for all of them. A hold with a preset answer needs none.
    let open = new.filter_map(|hold| run.holds.get(hold)).find(|hold| hold.state == HoldState::Open);
    if let Some(hold) = open {
        send(notify, &text(run, hold));
    }
}

fn text(run: &Run, hold: &Hold) -> String {
    let text = format!("{} waits: {}", run.workflow.name, first_line(&hold.prompt));
    // A semicolon would end the text inside an escape sequence.
    sanitize::line(&text).chars().take(LONGEST).map(|character| if character == ';' { ',' } else { character }).collect()
}

fn send(notify: Notify, text: &str) {
    let environment = |name: &str| std::env::var(name).unwrap_or_default();
    match notify {
        Notify::Off => {}
        Notify::Bell => ring(),
        Notify::Desktop => match sequence(&environment, text) {
            Some(sequence) => live::write_now(&sequence),
            None if has_desktop(&environment) && notify_send(text) => {}
            None => ring(),
        },
    }
}

fn ring() {
    live::write_now("\x07");
}

/// The escape sequence for a notification, if the terminal is known to support one.
fn sequence(environment: &dyn Fn(&str) -> String, text: &str) -> Option<String> {
    // Terminal multiplexers do not pass such sequences on.
    if !environment("TMUX").is_empty() || environment("TERM").starts_with("screen") || environment("TERM").starts_with("tmux") {
        return None;
    }
    let (program, term) = (environment("TERM_PROGRAM"), environment("TERM"));
    if matches!(program.as_str(), "iTerm.app" | "WezTerm" | "ghostty") || term == "xterm-kitty" || term == "xterm-ghostty" {
        return Some(format!("\x1b]9;Lockgate: {text}\x1b\\"));
    }
    let titled = term.starts_with("foot") || term.starts_with("rxvt-unicode") || !environment("VTE_VERSION").is_empty();
    titled.then(|| format!("\x1b]777;notify;Lockgate;{text}\x1b\\"))
}

fn has_desktop(environment: &dyn Fn(&str) -> String) -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| !environment(name).is_empty())
}

/// Starts `notify-send`, and returns whether it exists.
fn notify_send(text: &str) -> bool {
    let mut command = Command::new("notify-send");
    command.args(["--app-name=Lockgate", "--", "Lockgate", text]);
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match started {
        Ok(mut child) => {
            // The child must be reaped, but nothing has to wait for it.
            std::thread::spawn(move || child.wait());
            true
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence_with(set: &[(&str, &str)]) -> Option<String> {
        let environment =
            |name: &str| set.iter().find(|(known, _)| *known == name).map_or_else(String::new, |(_, value)| (*value).to_owned());
        sequence(&environment, "flow waits: Go on?")
    }

    #[test]
    fn each_terminal_gets_its_own_notification_sequence() {
        let short = Some("\x1b]9;Lockgate: flow waits: Go on?\x1b\\".to_owned());
        let titled = Some("\x1b]777;notify;Lockgate;flow waits: Go on?\x1b\\".to_owned());
        assert_eq!(sequence_with(&[("TERM_PROGRAM", "iTerm.app"), ("TERM", "xterm-256color")]), short);
        assert_eq!(sequence_with(&[("TERM", "xterm-kitty")]), short);
        assert_eq!(sequence_with(&[("TERM", "foot")]), titled);
        assert_eq!(sequence_with(&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")]), titled);
    }

    #[test]
    fn an_unknown_terminal_gets_no_sequence() {
        assert_eq!(sequence_with(&[("TERM", "xterm-256color")]), None);
        assert_eq!(sequence_with(&[("TERM", "tmux-256color"), ("TERM_PROGRAM", "WezTerm")]), None);
        assert_eq!(sequence_with(&[("TMUX", "/run/tmux"), ("TERM", "xterm-kitty")]), None);
    }
}
