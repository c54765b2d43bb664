//! Asks to confirm an answer from the command line, and for its feedback.

use super::choose::Typing;
use super::panel::Panel;
use super::{HoldPrompt, Key, Terminal, editor, hint};
use crate::error::CommandError;
use crate::exit::Exit;

/// The answer to a yes-or-no question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    Yes,
    No,
    Interrupted,
}

impl Confirmed {
    /// How the program ends if the answer is not yes.
    pub(crate) fn declined(self) -> Option<Exit> {
        match self {
            Self::Yes => None,
            Self::No => Some(Exit::Waiting),
            Self::Interrupted => Some(Exit::Interrupted),
        }
    }
}

/// Asks for confirmation, and shows the hold that it is about.
pub(crate) async fn confirm(question: &str, about: Option<&HoldPrompt<'_>>) -> Result<Confirmed, CommandError> {
    let Ok(mut terminal) = Terminal::take() else { return Ok(Confirmed::No) };
    let mut typing = Typing::of(Panel::new(about.map(|about| about.shown.clone()), format!("{question} [y/N] ")));
    loop {
        match typing.next(&mut terminal).await {
            Some(Key::Enter) if matches!(typing.line().text().trim().to_lowercase().as_str(), "y" | "yes") => {
                return Ok(Confirmed::Yes);
            }
            Some(Key::Interrupt) => return Ok(Confirmed::Interrupted),
            None | Some(Key::Enter | Key::End | Key::Escape) => return Ok(Confirmed::No),
            Some(Key::Files) => {
                if let Some(about) = about {
                    about.show_files(&mut terminal, None).await?;
                }
            }
            Some(key) => {
                typing.line().edit(&key);
            }
        }
    }
}

/// Asks for feedback. Returns how the question ended if none was given.
pub(crate) async fn feedback(about: &HoldPrompt<'_>) -> Result<Result<String, Confirmed>, CommandError> {
    let Ok(mut terminal) = Terminal::take() else { return Ok(Err(Confirmed::No)) };
    let mut panel = Panel::new(Some(about.shown.clone()), "> ");
    panel.keys = Some(hint::feedback("Esc cancels"));
    let mut typing = Typing::of(panel);
    loop {
        match typing.next(&mut terminal).await {
            Some(Key::Enter) => return Ok(Ok(typing.line().text().to_owned())),
            Some(Key::Interrupt) => return Ok(Err(Confirmed::Interrupted)),
            None | Some(Key::End | Key::Escape) => return Ok(Err(Confirmed::No)),
            Some(Key::Files) => about.show_files(&mut terminal, None).await?,
            Some(Key::Editor) => {
                let message = editor::open(&mut terminal, typing.line(), None).await;
                typing.panel.message = Some(message);
            }
            Some(key) => {
                typing.line().edit(&key);
            }
        }
    }
}
