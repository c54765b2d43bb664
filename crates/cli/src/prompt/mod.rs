//! Asking a person at the terminal. The question closes by itself when somebody else answers it.

mod choose;
mod confirm;
mod editor;
mod files;
mod hint;
mod key;
mod line;
mod show;
mod terminal;

pub(crate) use confirm::{Confirmed, confirm, feedback};
pub(crate) use key::Key;
pub(crate) use line::Line;
pub(crate) use show::HoldText;
pub(crate) use terminal::Terminal;

use crate::error::CommandError;
use crate::{live, print};
use choose::Asking;
use lockgate_engine::hold::Hold;
use lockgate_engine::id::OptionId;
use lockgate_engine::run::Run;
use lockgate_runner::driver::Halt;
use lockgate_store::Store;

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
    shown: HoldText,
    store: &'a dyn Store,
}

impl<'a> HoldPrompt<'a> {
    /// A hold of a run, with its files as they were when it was opened.
    pub(crate) async fn of(run: &Run, hold: &'a Hold, store: &'a dyn Store) -> Result<Self, CommandError> {
        Ok(Self { hold, shown: HoldText::of(run, hold, store).await?, store })
    }

    /// Shows it. Whatever is on the screen, the question stands below that.
    pub(crate) fn show(&self) {
        let size = live::window();
        print::of_question(&self.shown.text(size, hint::rows_below(self.hold, size.columns)));
    }

    /// Shows its files in full; gives whether it must be shown again after that.
    async fn show_files(&self, terminal: &mut Terminal, halt: Option<&Halt>) -> Result<bool, CommandError> {
        files::show(terminal, self.hold, self.store, halt).await
    }
}

/// Asks about a hold that was shown. Feedback that is not sent stays in the draft.
pub(crate) async fn ask(about: &HoldPrompt<'_>, draft: &mut Line, halt: &Halt) -> Result<PromptOutcome, CommandError> {
    if about.hold.options.is_empty() {
        return Ok(PromptOutcome::NoOneThere);
    }
    let Ok(terminal) = Terminal::take() else { return Ok(PromptOutcome::NoOneThere) };
    // The terminal is given back first, also where the run ends in the middle of a question.
    let _below = LineBreak;
    let mut terminal = terminal;
    let mut asking = Asking::of(about, draft, halt);
    // Somebody may have answered between the look that led here and the marker.
    match asking.still_stands().await? {
        true => asking.choose(&mut terminal).await,
        false => Ok(PromptOutcome::Elsewhere),
    }
}

/// Ends the row of a question when it is dropped, so that what follows starts in a row of its own.
struct LineBreak;

impl Drop for LineBreak {
    fn drop(&mut self) {
        print::terminal("\n");
    }
}

/// What is on the terminal while somebody is asked and has typed or chosen something.
pub(crate) fn asked(shown: &HoldText, hold: &Hold, typed: &str, size: crate::tree::Size) -> String {
    let mut line = Line::default();
    line.set(typed);
    let text = shown.text(size, hint::rows_below(hold, size.columns));
    let keys = hint::in_full(hold).unwrap_or_default();
    format!("{text}{}\n{}", print::styled(print::FAINT, keys), line.drawn(&hint::question(hold), size.columns))
}
