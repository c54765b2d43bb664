//! Asking a person at the terminal. The question closes by itself when somebody else answers it.

mod editor;
mod files;
mod key;
mod line;
mod show;
mod terminal;

pub(crate) use key::Key;
pub(crate) use show::shown;
pub(crate) use terminal::Terminal;

use crate::print::{self, FAINT, styled};
use crate::trouble::Trouble;
use line::Line;
use lockgate_engine::hold::{Hold, HoldState};
use lockgate_engine::id::OptionId;
use lockgate_runner::driver::Halt;
use lockgate_store::Store;

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
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
    NobodyThere,
}

/// Asks about a hold that was shown, in these words.
pub(crate) async fn ask(hold: &Hold, shown: &str, store: &dyn Store, halt: &Halt) -> Result<Asked, Trouble> {
    if hold.options.is_empty() {
        return Ok(Asked::NobodyThere);
    }
    let Ok(mut terminal) = Terminal::take() else { return Ok(Asked::NobodyThere) };
    let mut asking = Asking { hold, shown, store, halt, marker: store.changes() };
    // Somebody may have answered between the look that led here and the marker.
    let asked = match asking.still_stands().await {
        Ok(true) => asking.choose(&mut terminal).await,
        Ok(false) => Ok(Asked::Elsewhere),
        Err(trouble) => Err(trouble),
    };
    drop(terminal);
    print::terminal("\n");
    asked
}

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

/// Asks whether to go on.
pub(crate) async fn confirm(question: &str) -> Confirmed {
    let Ok(mut terminal) = Terminal::take() else { return Confirmed::No };
    let mut label = format!("{question} [y/N] ");
    if !line::fits(&label, terminal.width()) {
        print::terminal(&format!("{label}\n"));
        label = "> ".to_owned();
    }
    let mut line = Line::default();
    let confirmed = loop {
        line.draw(&label, terminal.width());
        match terminal.key().await {
            Some(Key::Enter) if matches!(line.text().trim().to_lowercase().as_str(), "y" | "yes") => break Confirmed::Yes,
            Some(Key::Interrupt) => break Confirmed::Interrupted,
            None | Some(Key::Enter | Key::End | Key::Escape) => break Confirmed::No,
            Some(Key::Suspend) => terminal.suspend(COMES_BACK).await,
            Some(key) => {
                line.edit(&key);
            }
        }
    };
    drop(terminal);
    print::terminal("\n");
    confirmed
}

/// Asks for what is to be said with an answer; gives how asking ended where nothing was said.
pub(crate) async fn feedback() -> Result<String, Confirmed> {
    let Ok(mut terminal) = Terminal::take() else { return Err(Confirmed::No) };
    feedback_hint("Esc answers nothing");
    let mut line = Line::default();
    let said = loop {
        line.draw("> ", terminal.width());
        match terminal.key().await {
            Some(Key::Enter) => break Ok(line.text().to_owned()),
            Some(Key::Interrupt) => break Err(Confirmed::Interrupted),
            None | Some(Key::End | Key::Escape) => break Err(Confirmed::No),
            Some(Key::Suspend) => terminal.suspend(COMES_BACK).await,
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

/// Says which keys there are while feedback is written.
fn feedback_hint(escape: &str) {
    let editor = if editor::chosen().is_some() { ", Ctrl+G opens your editor" } else { "" };
    hint(&format!("Feedback: Enter ends it (it may be empty), Alt+Enter breaks the line{editor}, {escape}."));
}

fn hint(text: &str) {
    let text = if print::talk_has_colour() { styled(FAINT, text) } else { text.to_owned() };
    print::terminal(&format!("{text}\n"));
}

/// What Ctrl+Z means while somebody is asked.
const COMES_BACK: &str = "`fg` brings the question back";

/// Says which keys there are beside those that choose.
const FILES_HINT: &str = "Ctrl+O shows the files in full.";

fn question(hold: &Hold) -> String {
    format!("Choose 1-{} (number, label or arrows), then Enter: ", hold.options.len())
}

/// What is on the terminal while somebody is asked and has typed or chosen something.
#[cfg(test)]
pub(crate) fn asked(hold: &Hold, typed: &str, width: usize) -> String {
    let mut line = Line::default();
    line.set(typed);
    format!("{}\n{}", styled(FAINT, FILES_HINT), line.drawn(&question(hold), width))
}

struct Asking<'a> {
    hold: &'a Hold,
    shown: &'a str,
    store: &'a dyn Store,
    halt: &'a Halt,
    marker: u64,
}

/// A key, or why there is none.
enum Next {
    Key(Key),
    Over(Asked),
}

impl Asking<'_> {
    async fn choose(&mut self, terminal: &mut Terminal) -> Result<Asked, Trouble> {
        let options = &self.hold.options;
        let question = question(self.hold);
        // In a narrow window the question stands above the line, which can be drawn anew only while it takes one row.
        let label = |width: usize| if line::fits(&question, width) { question.as_str() } else { "> " };
        if !self.hold.files.is_empty() {
            hint(FILES_HINT);
        }
        let mut above = false;
        let (mut line, mut at): (_, Option<usize>) = (Line::default(), None);
        let mut said: Option<String> = None;
        loop {
            if label(terminal.width()) != question && !above {
                print::terminal(&format!("\r\x1b[K{question}\n"));
                above = true;
            }
            line.draw(label(terminal.width()), terminal.width());
            let key = match self.next(terminal).await? {
                Next::Key(key) => key,
                Next::Over(asked) => return Ok(asked),
            };
            match key {
                Key::Interrupt => return Ok(Asked::Interrupted),
                Key::End => return Ok(Asked::NobodyThere),
                Key::Files => {
                    files::show(terminal, self.hold, self.store, self.halt).await?;
                    continue;
                }
                Key::Redraw | Key::Suspend | Key::Editor => continue,
                Key::Up => at = Some(at.unwrap_or(0).checked_sub(1).unwrap_or(options.len() - 1)),
                Key::Down => at = Some(at.map_or(0, |at| (at + 1) % options.len())),
                Key::Escape => {
                    line.set("");
                    at = None;
                    continue;
                }
                Key::Enter => {
                    let Some(choice) = self.hold.option(line.text()) else {
                        let words = line.text().trim().to_owned();
                        let report = options.iter().find(|choice| choice.needs_words);
                        match report {
                            // The same words once more: they are meant as a report.
                            Some(choice) if !words.is_empty() && said.as_deref() == Some(words.as_str()) => {
                                return Ok(Asked::Chose { option: choice.id.clone(), feedback: Some(words) });
                            }
                            Some(choice) if !words.is_empty() => {
                                let label = &choice.label;
                                print::terminal(&format!(
                                    "\r\x1b[KThat is no approval. Enter once more means \"{label}\" with these words; or change them.\n"
                                ));
                                said = Some(words);
                            }
                            None if !words.is_empty() => {
                                print::terminal(&format!("\r\x1b[K{} is none of the options.\n", crate::neutral::line(&words)));
                                line.set("");
                            }
                            Some(_) | None => {}
                        }
                        continue;
                    };
                    line.set(&choice.label);
                    line.draw(label(terminal.width()), terminal.width());
                    if !choice.with_feedback {
                        return Ok(Asked::Chose { option: choice.id.clone(), feedback: None });
                    }
                    print::terminal("\n");
                    match self.feedback(terminal).await? {
                        Ok(feedback) if choice.needs_words && feedback.trim().is_empty() => {
                            print::terminal("\nNothing was said, so nothing was reported.\n");
                            line.set("");
                        }
                        Ok(feedback) => return Ok(Asked::Chose { option: choice.id.clone(), feedback: Some(feedback) }),
                        Err(Some(asked)) => return Ok(asked),
                        Err(None) => {
                            print::terminal("\n");
                            line.set("");
                        }
                    }
                    continue;
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
                    continue;
                }
            }
            if let Some(choice) = at.and_then(|at| options.get(at)) {
                line.set(&choice.label);
            }
        }
    }

    /// Asks for feedback; gives how asking ended instead, or nothing when the person wants to choose again.
    async fn feedback(&mut self, terminal: &mut Terminal) -> Result<Result<String, Option<Asked>>, Trouble> {
        feedback_hint("Esc goes back");
        let mut line = Line::default();
        loop {
            line.draw("> ", terminal.width());
            match self.next(terminal).await? {
                Next::Over(asked) => return Ok(Err(Some(asked))),
                Next::Key(Key::Enter) => return Ok(Ok(line.text().to_owned())),
                Next::Key(Key::Escape) => return Ok(Err(None)),
                Next::Key(Key::Interrupt) => return Ok(Err(Some(Asked::Interrupted))),
                Next::Key(Key::End) => return Ok(Err(Some(Asked::NobodyThere))),
                Next::Key(Key::Editor) => editor::open(terminal, &mut line, Some(self.halt)).await,
                Next::Key(key) => {
                    line.edit(&key);
                }
            }
        }
    }

    /// Waits for a key, for somebody else's answer, or for a signal.
    async fn next(&mut self, terminal: &mut Terminal) -> Result<Next, Trouble> {
        loop {
            tokio::select! {
                biased;
                () = self.halt.halted() => return Ok(Next::Over(Asked::Halted)),
                key = terminal.key() => match key {
                    Some(Key::Suspend) => {
                        terminal.suspend(COMES_BACK).await;
                        // Whatever is on the screen now, the question stands below it.
                        print::talk(self.shown);
                        return Ok(Next::Key(Key::Redraw));
                    }
                    key => return Ok(key.map_or(Next::Over(Asked::NobodyThere), Next::Key)),
                },
                changed = self.store.changed(self.marker) => {
                    self.marker = changed?;
                    if !self.still_stands().await? {
                        return Ok(Next::Over(Asked::Elsewhere));
                    }
                }
            }
        }
    }

    async fn still_stands(&self) -> Result<bool, Trouble> {
        let rows = self.store.find_holds(self.hold.id.as_str()).await?;
        let row = rows.into_iter().map(|found| found.row).find(|row| row.hold == self.hold.id);
        Ok(row.is_some_and(|row| row.state == HoldState::Open && row.revision == self.hold.revision))
    }
}
