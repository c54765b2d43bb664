//! Asks a person at the terminal. The question closes by itself when it is answered elsewhere.
//!
//! | module | what it does |
//! | --- | --- |
//! | this one | [`ask`] asks about one hold, next to a live tree or without one |
//! | `choose`, `confirm` | read keys until there is an answer |
//! | `show`, `fit`, `panel` | render the question as rows for any window |
//! | `files`, `editor` | the pager and the editor |
//! | `terminal`, `key`, `line` | the terminal, its keys, and the input line |
//! | `queue` | the order of several holds |

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

/// The outcome of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PromptOutcome {
    Chose {
        option: OptionId,
        feedback: Option<String>,
    },
    /// The hold was answered by another process, was reopened, or the run ended.
    Elsewhere,
    /// The person pressed Ctrl+C.
    Interrupted,
    /// A signal asks the program to stop.
    Halted,
    /// The terminal is gone.
    NoOneThere,
}

/// A hold and its presentation.
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

/// The circumstances of a question.
pub(crate) struct Context<'a> {
    /// Unsent feedback, which is kept here.
    pub(crate) draft: &'a mut Line,
    /// The position of the hold among others.
    pub(crate) queue: &'a mut Queue,
    /// Ends the question when a signal asks the program to stop.
    pub(crate) halt: &'a Halt,
}

/// Asks about one hold, above the live tree if there is one. The question disappears from the terminal when this ends or is dropped;
/// the caller reports the answer.
pub(crate) async fn ask(about: &HoldPrompt<'_>, context: Context<'_>) -> Result<PromptOutcome, CommandError> {
    if about.hold.options.is_empty() {
        return Ok(PromptOutcome::NoOneThere);
    }
    let Ok(mut terminal) = Terminal::take() else { return Ok(PromptOutcome::NoOneThere) };
    let mut asking = Asking::of(about, context);
    // The hold may have been answered before the marker was taken.
    match asking.is_open().await? {
        true => asking.choose(&mut terminal).await,
        false => Ok(PromptOutcome::Elsewhere),
    }
}
