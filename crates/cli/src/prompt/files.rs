//! Shows the files of a hold in full, in a pager or page by page.

use super::HoldPrompt;
use super::key::Key;
use super::terminal::{Terminal, halted};
use crate::error::CommandError;
use crate::print::{self, FAINT, STRONG, styled};
use crate::{columns, diff_text, live};
use anstream::adapter::strip_str;
use lockgate::sanitize;
use lockgate::view::{self, DiffView};
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{Hold, Seen};
use lockgate_runner::driver::Halt;
use lockgate_runner::files::preview;
use lockgate_runner::runtime::{Clock as _, SystemClock};
use lockgate_store::Store;
use std::process::Stdio;
use tokio::process::Command;

/// The exit code of a shell for an unknown program.
const NO_SUCH_PROGRAM: i32 = 127;

/// Shows a question in full, with its files as they were when it was opened.
pub(super) async fn show(terminal: &mut Terminal, about: &HoldPrompt<'_>, halt: Option<&Halt>) -> Result<(), CommandError> {
    let files = in_full(about.hold, about.store).await?;
    let text = format!("{}\n{files}", about.shown.in_full(SystemClock.now()));
    let text = if print::stderr_has_colour() { text } else { strip_str(&text).to_string() };
    if let Some(mut pager) = pager(terminal) {
        match terminal.lend(&mut pager, text.clone().into_bytes(), halt).await {
            Ok(ended) if ended.code() != Some(NO_SUCH_PROGRAM) => return Ok(()),
            Ok(_) | Err(_) => {}
        }
    }
    page_by_page(terminal, &text, halt).await;
    Ok(())
}

/// The person's pager, or `less`. None if the terminal cannot move its cursor.
fn pager(terminal: &Terminal) -> Option<Command> {
    if !live::possible() {
        return None;
    }
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let mut command = match set("LOCKGATE_PAGER").or_else(|| set("PAGER")) {
        Some(pager) => {
            let mut command = Command::new("sh");
            command.args(["-c", &pager]);
            command
        }
        None => {
            let mut command = Command::new("less");
            command.arg("-R");
            command
        }
    };
    let screen = terminal.open().ok()?;
    command.stdin(Stdio::piped()).stdout(screen.try_clone().ok()?).stderr(screen);
    // Reviewed content must not leak into the search history.
    command.env("LESSHISTFILE", "-");
    Some(command)
}

/// All files with the bytes that were stored when the hold was opened.
async fn in_full(hold: &Hold, store: &dyn Store) -> Result<String, CommandError> {
    let digests: Vec<Digest> = hold.files.iter().filter_map(|file| file.seen.digest()).collect();
    let kept = if digests.is_empty() { Vec::new() } else { store.values(&digests).await? };
    let mut text = String::new();
    for file in &hold.files {
        let at = digests.iter().position(|digest| Some(*digest) == file.seen.digest());
        let bytes = at.and_then(|at| kept.get(at)?.as_deref());
        let shown = preview(file, bytes, usize::MAX);
        text += &format!("{} ({})\n", styled(STRONG, sanitize::line(&file.path)), sanitize::line(&shown.size));
        match (&file.seen, bytes) {
            // A file is shown in full; a directory is shown as a listing.
            (Seen::File { .. }, Some(bytes)) if !shown.lines.is_empty() => {
                let content = String::from_utf8_lossy(bytes);
                text += &sanitize::lines(&content);
                if !text.ends_with('\n') {
                    text.push('\n');
                }
            }
            (Seen::File { .. } | Seen::Directory { .. } | Seen::Absent | Seen::Unreadable(_), _) => {
                text.extend(shown.lines.iter().map(|line| format!("{}\n", sanitize::line(line))));
            }
        }
        text.push('\n');
    }
    if let Some(shown) = &hold.diff {
        let diff = DiffView { text: view::patch(hold, store).await?, ..DiffView::of(shown) };
        text += &diff_text::in_full(&diff);
    }
    Ok(text)
}

async fn page_by_page(terminal: &mut Terminal, text: &str, halt: Option<&Halt>) {
    let _held_back = live::hold_back();
    let mut lines = text.lines().peekable();
    while lines.peek().is_some() {
        let (width, height) = terminal.size();
        let mut used = 0;
        while let Some(line) = lines.peek() {
            let rows = columns::columns(&strip_str(line).to_string()).div_ceil(width.max(1)).max(1);
            if used > 0 && used + rows >= height {
                break;
            }
            used += rows;
            print::terminal(&format!("{line}\n"));
            lines.next();
        }
        if lines.peek().is_none() || !next_page(terminal, halt).await {
            break;
        }
    }
}

async fn next_page(terminal: &mut Terminal, halt: Option<&Halt>) -> bool {
    let hint = "-- Enter or Space: next page, q: back to the question --";
    let hint = if print::stderr_has_colour() { styled(FAINT, hint) } else { hint.to_owned() };
    let more = loop {
        print::terminal(&format!("\r\x1b[K{hint}"));
        let key = tokio::select! {
            () = halted(halt) => break false,
            key = terminal.key() => key,
        };
        match key {
            Some(Key::Enter | Key::NewLine | Key::Down | Key::Character(' ')) => break true,
            None | Some(Key::Character('q' | 'Q') | Key::Escape | Key::Interrupt | Key::End) => break false,
            Some(Key::Suspend) => terminal.suspend(super::hint::COMES_BACK).await,
            Some(
                Key::Character(_)
                | Key::Paste(_)
                | Key::Backspace
                | Key::Delete
                | Key::DeleteWord
                | Key::DeleteAll
                | Key::Left
                | Key::Right
                | Key::Home
                | Key::LineEnd
                | Key::Up
                | Key::Redraw
                | Key::Files
                | Key::Editor,
            ) => {}
        }
    };
    print::terminal("\r\x1b[K");
    more
}
