//! Asking a person at the terminal. The question closes by itself when somebody else answers it.
//!
//! | module | what it does |
//! | --- | --- |
//! | this one | [`ask`] asks about one hold, next to a live tree or without one |
//! | `choose`, `confirm` | take keys until there is an answer |
//! | `show`, `fit`, `panel` | what is asked, as rows for any window |
//! | `files`, `editor` | the pager and the editor |
//! | `terminal`, `key`, `line` | the terminal, what is typed, and one line of that |
//! | `queue` | which of several holds is asked about |

mod choose;
mod confirm;
mod editor;
mod files;
mod fit;
mod hint;
mod key;
mod line;
mod panel;
mod queue;
mod show;
mod terminal;

pub(crate) use confirm::{Confirmed, confirm, feedback};
pub(crate) use key::Key;
pub(crate) use line::Line;
pub(crate) use panel::Panel;
pub(crate) use queue::{Position, Queue};
pub(crate) use show::HoldText;
pub(crate) use terminal::Terminal;

use crate::error::CommandError;
use choose::Asking;
use lockgate_engine::hold::Hold;
use lockgate_engine::id::OptionId;
use lockgate_engine::run::Run;
use lockgate_runner::driver::Halt;
use lockgate_store::Store;
use std::sync::Arc;

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PromptOutcome {
    /// The person chose.
    Chose {
        /// The option.
        option: OptionId,
        /// What was said with it.
        feedback: Option<String>,
    },
    /// The question no longer stands as it was shown: somebody else answered it, or the run ended.
    Elsewhere,
    /// The person pressed Ctrl+C.
    Interrupted,
    /// A signal asks the program to stop.
    Halted,
    /// Nothing can be typed any more.
    NoOneThere,
}

/// A hold that a person is asked about, and what is shown of it.
pub(crate) struct HoldPrompt<'a> {
    hold: &'a Hold,
    shown: Arc<HoldText>,
    store: &'a dyn Store,
}

impl<'a> HoldPrompt<'a> {
    /// A hold of a run, with its files as they were when it was opened.
    pub(crate) async fn of(run: &Run, hold: &'a Hold, store: &'a dyn Store) -> Result<Self, CommandError> {
        Ok(Self { hold, shown: Arc::new(HoldText::of(run, hold, store).await?), store })
    }

    /// Shows the whole question and its files.
    async fn show_files(&self, terminal: &mut Terminal, halt: Option<&Halt>) -> Result<(), CommandError> {
        files::show(terminal, self, halt).await
    }
}

/// What asking about a hold needs besides the hold.
pub(crate) struct Context<'a> {
    /// Feedback that is not sent; it stays here.
    pub(crate) draft: &'a mut Line,
    /// Which of several holds it is.
    pub(crate) queue: &'a mut Queue,
    /// Ends asking when a signal asks the program to stop.
    pub(crate) halt: &'a Halt,
}

/// Asks about one hold, above the live tree where there is one. It is on the terminal until this ends or is dropped; then nothing is
/// left of it there, and it is up to the caller to say what was answered.
pub(crate) async fn ask(about: &HoldPrompt<'_>, context: Context<'_>) -> Result<PromptOutcome, CommandError> {
    if about.hold.options.is_empty() {
        return Ok(PromptOutcome::NoOneThere);
    }
    let Ok(mut terminal) = Terminal::take() else { return Ok(PromptOutcome::NoOneThere) };
    let mut asking = Asking::of(about, context);
    // Somebody may have answered between the look that led here and the marker.
    match asking.is_open().await? {
        true => asking.choose(&mut terminal).await,
        false => Ok(PromptOutcome::Elsewhere),
    }
}
