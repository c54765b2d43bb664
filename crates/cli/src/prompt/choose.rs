//! Asks the person to choose an option of a hold and to write feedback.

use super::line::Line;
use super::panel::Panel;
use super::{Context, HoldPrompt, Key, PromptOutcome, Terminal, editor, hint};
use crate::error::CommandError;
use crate::live;
use lockgate::sanitize;
use lockgate_engine::hold::{Choice, HoldState};
use std::sync::Arc;

/// The state of an open question.
pub(super) struct Asking<'a> {
    about: &'a HoldPrompt<'a>,
    context: Context<'a>,
    panel: Panel,
    screen: live::Asking,
    marker: u64,
    /// Typed words that match no option, once their meaning as a report was explained.
    said: Option<String>,
}

/// The next key, or the outcome that ends the question.
enum Next {
    Key(Key),
    Over(PromptOutcome),
}

enum Feedback {
    Sent(String),
    /// The person wants to choose again.
    Back,
    Over(PromptOutcome),
}

impl<'a> Asking<'a> {
    pub(super) fn of(about: &'a HoldPrompt<'a>, context: Context<'a>) -> Self {
        let panel = Panel::new(Some(about.shown.clone()), hint::question(about.hold.options.len()));
        Self { about, context, panel, screen: live::ask(), marker: about.store.changes(), said: None }
    }

    pub(super) async fn choose(&mut self, terminal: &mut Terminal) -> Result<PromptOutcome, CommandError> {
        let options = &self.about.hold.options;
        // The arrows start at the previous answer, which is never chosen by default.
        let previous = self.about.hold.previous_choice();
        let previous = previous.and_then(|choice| options.iter().position(|known| known.id == choice.id));
        loop {
            self.hint_at_draft();
            let key = match self.next(terminal).await? {
                Next::Key(key) => key,
                Next::Over(asked) => return Ok(asked),
            };
            self.panel.message = None;
            match key {
                Key::Interrupt => return Ok(PromptOutcome::Interrupted),
                Key::End => return Ok(PromptOutcome::NoOneThere),
                Key::Files => self.about.show_files(terminal, Some(self.context.halt)).await?,
                Key::Suspend | Key::Redraw | Key::Editor => {}
                Key::Up | Key::Down => {
                    let at = match (self.panel.chosen, previous) {
                        (None, Some(previous)) => previous,
                        (at, _) if key == Key::Up => at.unwrap_or(0).checked_sub(1).unwrap_or(options.len() - 1),
                        (at, _) => at.map_or(0, |at| (at + 1) % options.len()),
                    };
                    self.type_option(Some(at));
                }
                Key::Escape => self.type_option(None),
                Key::Enter => {
                    if let Some(asked) = self.entered(terminal).await? {
                        return Ok(asked);
                    }
                }
                Key::Character(_)
                | Key::Paste(_)
                | Key::NewLine
                | Key::Backspace
                | Key::Delete
                | Key::DeleteWord
                | Key::DeleteAll
                | Key::Left
                | Key::Right
                | Key::Home
                | Key::LineEnd => {
                    self.panel.line.edit(&key);
                    self.panel.chosen = None;
                }
            }
        }
    }

    /// Puts the label of an option into the input row, or clears it.
    fn type_option(&mut self, at: Option<usize>) {
        let label = at.and_then(|at| self.about.hold.options.get(at)).map_or("", |choice| choice.label.as_str());
        self.panel.line.set(label);
        self.panel.chosen = at;
    }

    /// Shows the hint that unsent feedback is kept.
    fn hint_at_draft(&mut self) {
        self.panel.hints.retain(|known| *known != hint::KEPT);
        if !self.context.draft.text().is_empty() {
            self.panel.hints.push(hint::KEPT);
        }
    }

    /// Takes the typed text as an answer. Returns `None` if the person has yet to choose.
    async fn entered(&mut self, terminal: &mut Terminal) -> Result<Option<PromptOutcome>, CommandError> {
        let about = self.about;
        let Some(choice) = about.hold.option(self.panel.line.text()) else { return Ok(self.unknown()) };
        self.said = None;
        if !choice.with_feedback {
            return Ok(Some(PromptOutcome::Chose { option: choice.id.clone(), feedback: None }));
        }
        match self.feedback(terminal, choice).await? {
            Feedback::Sent(feedback) => Ok(Some(PromptOutcome::Chose { option: choice.id.clone(), feedback: Some(feedback) })),
            Feedback::Over(asked) => Ok(Some(asked)),
            Feedback::Back => Ok(None),
        }
    }

    /// The option that reports a problem in words.
    fn report(&self) -> Option<&'a Choice> {
        self.about.hold.options.iter().find(|choice| choice.requires_feedback)
    }

    /// Handles words that match no option. Entered a second time, they are a report if there is such an option.
    fn unknown(&mut self) -> Option<PromptOutcome> {
        let words = self.panel.line.text().trim().to_owned();
        if words.is_empty() {
            return None;
        }
        match self.report() {
            Some(choice) if self.said.as_ref() == Some(&words) => {
                return Some(PromptOutcome::Chose { option: choice.id.clone(), feedback: Some(words) });
            }
            Some(choice) => {
                self.panel.message = Some(hint::no_approval(choice));
                self.said = Some(words);
            }
            None => {
                self.panel.message = Some(format!("{} is not one of the options.", sanitize::line(&words)));
                self.type_option(None);
            }
        }
        None
    }

    /// Asks for feedback while the question and its options stay visible.
    async fn feedback(&mut self, terminal: &mut Terminal, choice: &Choice) -> Result<Feedback, CommandError> {
        let choosing = self.panel.clone();
        self.panel.hints.retain(|known| *known != hint::KEPT);
        self.panel.settled = Some(format!("{}{}", choosing.label, sanitize::line(&choice.label)));
        self.panel.keys = Some(hint::feedback(hint::GOES_BACK));
        self.panel.label = String::from("> ");
        let written = self.write(terminal, choice).await;
        (self.panel, self.panel.position) = (choosing, self.panel.position);
        self.type_option(None);
        if matches!(written, Ok(Feedback::Back)) && choice.requires_feedback && self.context.draft.text().trim().is_empty() {
            self.panel.message = Some("No feedback was given, so nothing was reported.".to_owned());
        }
        written
    }

    /// Edits the draft until it is sent or left.
    async fn write(&mut self, terminal: &mut Terminal, choice: &Choice) -> Result<Feedback, CommandError> {
        loop {
            self.panel.line.clone_from(self.context.draft);
            let key = match self.next(terminal).await? {
                Next::Over(asked) => return Ok(Feedback::Over(asked)),
                Next::Key(key) => key,
            };
            self.panel.message = None;
            match key {
                Key::Enter if choice.requires_feedback && self.context.draft.text().trim().is_empty() => {
                    return Ok(Feedback::Back);
                }
                Key::Enter => return Ok(Feedback::Sent(self.context.draft.text().to_owned())),
                Key::Escape => return Ok(Feedback::Back),
                Key::Interrupt => return Ok(Feedback::Over(PromptOutcome::Interrupted)),
                Key::End => return Ok(Feedback::Over(PromptOutcome::NoOneThere)),
                Key::Files => self.about.show_files(terminal, Some(self.context.halt)).await?,
                Key::Editor => {
                    self.panel.message = Some(editor::open(terminal, self.context.draft, Some(self.context.halt)).await);
                }
                Key::Suspend | Key::Redraw | Key::Up | Key::Down => {}
                Key::Character(_)
                | Key::Paste(_)
                | Key::NewLine
                | Key::Backspace
                | Key::Delete
                | Key::DeleteWord
                | Key::DeleteAll
                | Key::Left
                | Key::Right
                | Key::Home
                | Key::LineEnd => {
                    self.context.draft.edit(&key);
                }
            }
        }
    }

    /// Shows the question, and waits for a key, an answer from elsewhere, or a signal.
    async fn next(&mut self, terminal: &mut Terminal) -> Result<Next, CommandError> {
        loop {
            self.panel.position = Some(self.context.queue.position());
            self.screen.show(Arc::new(self.panel.clone()));
            tokio::select! {
                biased;
                () = self.context.halt.halted() => return Ok(Next::Over(PromptOutcome::Halted)),
                key = terminal.key() => {
                    if key == Some(Key::Suspend) {
                        terminal.suspend(hint::COMES_BACK).await;
                    }
                    return Ok(key.map_or(Next::Over(PromptOutcome::NoOneThere), Next::Key));
                }
                () = self.context.queue.changed() => {}
                changed = self.about.store.changed(self.marker) => {
                    self.marker = changed?;
                    if !self.is_open().await? {
                        return Ok(Next::Over(PromptOutcome::Elsewhere));
                    }
                }
            }
        }
    }

    /// Whether the hold is still open with the shown revision.
    pub(super) async fn is_open(&self) -> Result<bool, CommandError> {
        let hold = self.about.hold;
        let rows = self.about.store.find_holds(hold.id.as_str()).await?;
        let row = rows.into_iter().map(|found| found.row).find(|row| row.hold == hold.id);
        Ok(row.is_some_and(|row| row.state == HoldState::Open && row.revision == hold.revision))
    }
}

/// A text input without a hold that could close in the meantime.
pub(super) struct Typing {
    pub(super) panel: Panel,
    screen: live::Asking,
}

impl Typing {
    pub(super) fn of(panel: Panel) -> Self {
        Self { panel, screen: live::ask() }
    }

    /// Shows the input, and waits for the next key. `None` if the terminal is gone.
    pub(super) async fn next(&mut self, terminal: &mut Terminal) -> Option<Key> {
        self.screen.show(Arc::new(self.panel.clone()));
        let key = terminal.key().await;
        self.panel.message = None;
        if key == Some(Key::Suspend) {
            terminal.suspend(hint::COMES_BACK).await;
        }
        key
    }

    pub(super) fn line(&mut self) -> &mut Line {
        &mut self.panel.line
    }
}
