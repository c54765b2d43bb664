//! One of the options of a hold, and what is said with it.

use super::hint::{self, hint};
use super::line::{self, Line};
use super::{HoldPrompt, Key, PromptOutcome, Terminal, editor};
use crate::error::CommandError;
use crate::print;
use lockgate_engine::hold::{Choice, HoldState};
use lockgate_runner::driver::Halt;

/// Somebody is being asked.
pub(super) struct Asking<'a> {
    about: &'a HoldPrompt<'a>,
    /// Feedback that is not sent.
    draft: &'a mut Line,
    halt: &'a Halt,
    marker: u64,
    /// Words that are no answer, and that it was said what they would mean.
    said: Option<String>,
}

/// A key, or why there is none.
enum Next {
    Key(Key),
    Over(PromptOutcome),
}

impl<'a> Asking<'a> {
    /// Asks about a hold from now on.
    pub(super) fn of(about: &'a HoldPrompt<'a>, draft: &'a mut Line, halt: &'a Halt) -> Self {
        Self { about, draft, halt, marker: about.store.changes(), said: None }
    }

    /// Asks for one of the options.
    pub(super) async fn choose(&mut self, terminal: &mut Terminal) -> Result<PromptOutcome, CommandError> {
        let hold = self.about.hold;
        let options = &hold.options;
        let question = hint::question(hold);
        // What was answered before is what the arrows come to first; it takes a person to choose it again.
        let previous = hold.previous_choice().and_then(|choice| options.iter().position(|known| known.id == choice.id));
        // In a narrow window the question stands above the line, which can be drawn anew only while it takes one row.
        let label = |width: usize| if line::fits(&question, width) { question.as_str() } else { "> " };
        self.hints();
        let mut above = false;
        let (mut line, mut at): (_, Option<usize>) = (Line::default(), None);
        loop {
            if label(terminal.width()) != question && !above {
                hint::say(&question);
                above = true;
            }
            line.draw(label(terminal.width()), terminal.width());
            let key = match self.next(terminal).await? {
                Next::Key(key) => key,
                Next::Over(asked) => return Ok(asked),
            };
            match key {
                Key::Interrupt => return Ok(PromptOutcome::Interrupted),
                Key::End => return Ok(PromptOutcome::NoOneThere),
                Key::Files => {
                    if self.about.show_files(terminal, Some(self.halt)).await? {
                        self.about.show();
                        self.hints();
                        above = false;
                    }
                }
                Key::Suspend => {
                    self.hints();
                    above = false;
                }
                Key::Redraw | Key::Editor => {}
                Key::Up | Key::Down if at.is_none() && previous.is_some() => {
                    line.set(previous.map_or("", |at| &options[at].label));
                    at = previous;
                }
                Key::Up => {
                    let up = at.unwrap_or(0).checked_sub(1).unwrap_or(options.len() - 1);
                    line.set(&options[up].label);
                    at = Some(up);
                }
                Key::Down => {
                    let down = at.map_or(0, |at| (at + 1) % options.len());
                    line.set(&options[down].label);
                    at = Some(down);
                }
                Key::Escape => {
                    line.set("");
                    at = None;
                }
                Key::Enter => {
                    let Some(choice) = hold.option(line.text()) else {
                        if let Some(asked) = self.unknown(&mut line) {
                            return Ok(asked);
                        }
                        continue;
                    };
                    line.set(&choice.label);
                    line.draw(label(terminal.width()), terminal.width());
                    if !choice.with_feedback {
                        return Ok(PromptOutcome::Chose { option: choice.id.clone(), feedback: None });
                    }
                    print::terminal("\n");
                    match self.feedback(terminal, choice).await? {
                        Ok(feedback) => return Ok(PromptOutcome::Chose { option: choice.id.clone(), feedback: Some(feedback) }),
                        Err(Some(asked)) => return Ok(asked),
                        Err(None) => line.set(""),
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
                    line.edit(&key);
                    at = None;
                }
            }
        }
    }

    /// Says what there is to know beside the question.
    fn hints(&self) {
        if let Some(key) = hint::in_full(self.about.hold) {
            hint(key);
        }
        if !self.draft.text().is_empty() {
            hint(hint::KEPT);
        }
        if let (Some(_), Some(report)) = (&self.said, self.report()) {
            hint(&hint::no_approval(report));
        }
    }

    /// The option that takes words as a report.
    fn report(&self) -> Option<&'a Choice> {
        self.about.hold.options.iter().find(|choice| choice.requires_feedback)
    }

    /// Takes words that name no option. The same words once more are meant as a report, where there is such an option.
    fn unknown(&mut self, line: &mut Line) -> Option<PromptOutcome> {
        let words = line.text().trim().to_owned();
        if words.is_empty() {
            return None;
        }
        match self.report() {
            Some(choice) if self.said.as_ref() == Some(&words) => {
                return Some(PromptOutcome::Chose { option: choice.id.clone(), feedback: Some(words) });
            }
            Some(choice) => {
                hint::say(&hint::no_approval(choice));
                self.said = Some(words);
            }
            None => {
                hint::say(&format!("{} is none of the options.", lockgate::sanitize::line(&words)));
                line.set("");
            }
        }
        None
    }

    /// Asks for feedback; gives how asking ended instead, or nothing when the person wants to choose again.
    async fn feedback(
        &mut self,
        terminal: &mut Terminal,
        choice: &Choice,
    ) -> Result<Result<String, Option<PromptOutcome>>, CommandError> {
        let keys = hint::feedback(hint::GOES_BACK);
        hint(&keys);
        loop {
            self.draft.draw("> ", terminal.width());
            match self.next(terminal).await? {
                Next::Over(asked) => return Ok(Err(Some(asked))),
                Next::Key(Key::Enter) if choice.requires_feedback && self.draft.text().trim().is_empty() => {
                    print::terminal("\nNothing was said, so nothing was reported.\n");
                    return Ok(Err(None));
                }
                Next::Key(Key::Enter) => return Ok(Ok(self.draft.text().to_owned())),
                Next::Key(Key::Escape) => {
                    print::terminal("\n");
                    if !self.draft.text().is_empty() {
                        hint(hint::KEPT);
                    }
                    return Ok(Err(None));
                }
                Next::Key(Key::Interrupt) => return Ok(Err(Some(PromptOutcome::Interrupted))),
                Next::Key(Key::End) => return Ok(Err(Some(PromptOutcome::NoOneThere))),
                Next::Key(Key::Editor) => editor::open(terminal, self.draft, Some(self.halt)).await,
                Next::Key(Key::Suspend) => {
                    hint::say(&format!("{}{}", hint::question(self.about.hold), lockgate::sanitize::line(&choice.label)));
                    hint(&keys);
                }
                Next::Key(key) => {
                    self.draft.edit(&key);
                }
            }
        }
    }

    /// Waits for a key, for somebody else's answer, or for a signal. After Ctrl+Z the question is there again.
    async fn next(&mut self, terminal: &mut Terminal) -> Result<Next, CommandError> {
        loop {
            tokio::select! {
                biased;
                () = self.halt.halted() => return Ok(Next::Over(PromptOutcome::Halted)),
                key = terminal.key() => {
                    if key == Some(Key::Suspend) {
                        terminal.suspend(hint::COMES_BACK).await;
                        self.about.show();
                    }
                    return Ok(key.map_or(Next::Over(PromptOutcome::NoOneThere), Next::Key));
                }
                changed = self.about.store.changed(self.marker) => {
                    self.marker = changed?;
                    if !self.still_stands().await? {
                        return Ok(Next::Over(PromptOutcome::Elsewhere));
                    }
                }
            }
        }
    }

    /// Whether the question still stands as it was shown.
    pub(super) async fn still_stands(&self) -> Result<bool, CommandError> {
        let hold = self.about.hold;
        let rows = self.about.store.find_holds(hold.id.as_str()).await?;
        let row = rows.into_iter().map(|found| found.row).find(|row| row.hold == hold.id);
        Ok(row.is_some_and(|row| row.state == HoldState::Open && row.revision == hold.revision))
    }
}
