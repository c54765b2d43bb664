//! Questions about an answer that the command line gives: whether it is meant, and what is to be said with it.

use super::hint::{self, hint};
use super::line::{self, Line};
use super::{HoldPrompt, Key, Terminal, editor};
use crate::error::CommandError;
use crate::print;

/// What somebody said to a question of yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// A clear yes.
    Yes,
    /// Anything else.
    No,
    /// Ctrl+C.
    Interrupted,
}

/// Asks whether to go on; about a hold, where it is one that was shown.
pub(crate) async fn confirm(question: &str, about: Option<&HoldPrompt<'_>>) -> Result<Confirmed, CommandError> {
    let Ok(mut terminal) = Terminal::take() else { return Ok(Confirmed::No) };
    if let Some(key) = about.and_then(|about| hint::in_full(about.hold)) {
        hint(key);
    }
    let question = format!("{question} [y/N] ");
    let mut above = false;
    let mut line = Line::default();
    let confirmed = loop {
        let label = if line::fits(&question, terminal.width()) { question.as_str() } else { "> " };
        if label != question && !above {
            hint::say(&question);
            above = true;
        }
        line.draw(label, terminal.width());
        let again = match terminal.key().await {
            Some(Key::Enter) if matches!(line.text().trim().to_lowercase().as_str(), "y" | "yes") => break Confirmed::Yes,
            Some(Key::Interrupt) => break Confirmed::Interrupted,
            None | Some(Key::Enter | Key::End | Key::Escape) => break Confirmed::No,
            Some(Key::Suspend) => {
                terminal.suspend(hint::COMES_BACK).await;
                true
            }
            Some(Key::Files) => match about {
                Some(about) => about.show_files(&mut terminal, None).await?,
                None => false,
            },
            Some(key) => {
                line.edit(&key);
                false
            }
        };
        if again {
            if let Some(about) = about {
                about.show();
                if let Some(key) = hint::in_full(about.hold) {
                    hint(key);
                }
            }
            above = false;
        }
    };
    drop(terminal);
    print::terminal("\n");
    Ok(confirmed)
}

/// Asks for what is to be said with an answer; gives how asking ended where nothing was said.
pub(crate) async fn feedback(about: &HoldPrompt<'_>) -> Result<String, Confirmed> {
    let Ok(mut terminal) = Terminal::take() else { return Err(Confirmed::No) };
    let keys = hint::feedback("Esc answers nothing");
    hint(&keys);
    let mut line = Line::default();
    let said = loop {
        line.draw("> ", terminal.width());
        match terminal.key().await {
            Some(Key::Enter) => break Ok(line.text().to_owned()),
            Some(Key::Interrupt) => break Err(Confirmed::Interrupted),
            None | Some(Key::End | Key::Escape) => break Err(Confirmed::No),
            Some(Key::Suspend) => {
                terminal.suspend(hint::COMES_BACK).await;
                about.show();
                hint(&keys);
            }
            Some(Key::Editor) => editor::open(&mut terminal, &mut line, None).await,
            Some(key) => {
                line.edit(&key);
            }
        }
    };
    drop(terminal);
    print::terminal("\n");
    said
}
