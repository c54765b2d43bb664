//! Asks the person at the terminal about the open holds of a run, one after another, while the run is driven.

use crate::error::CommandError;
use crate::open::Project;
use crate::prompt::{self, HoldPrompt, Line, PromptOutcome, Queue};
use crate::{print, prompt_answer};
use lockgate::sanitize;
use lockgate_engine::hold::Hold;
use lockgate_engine::id::{HoldId, RunId};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::Channel;
use lockgate_runner::driver::{Driver, Halt};
use lockgate_runner::load::load;
use std::collections::HashMap;
use tokio::sync::watch;

/// Why asking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskOutcome {
    /// No person is at the terminal, or the person may not answer.
    NoOneThere,
    /// The person pressed Ctrl+C.
    Interrupted,
    /// A signal asks the program to stop.
    Halted,
}

/// Asks the person at the terminal about a run that this process drives.
pub(super) struct Asker<'p> {
    project: &'p Project,
    run: RunId,
    open: watch::Receiver<Vec<(HoldId, u32)>>,
    queue: Queue,
    /// Feedback that was not sent or came too late. The hold may be asked about again, because its files have changed.
    drafts: HashMap<HoldId, Line>,
    /// The hold that is currently asked about.
    asked: Option<Hold>,
}

impl<'p> Asker<'p> {
    pub(super) fn of(project: &'p Project, driver: &Driver) -> Self {
        let (run, open) = (driver.run().id.clone(), driver.open_holds());
        Self { project, run, queue: Queue::of(open.clone()), open, drafts: HashMap::new(), asked: None }
    }

    /// Asks about each hold as it opens, the oldest first.
    pub(super) async fn ask_all(&mut self, halt: &Halt) -> Result<AskOutcome, CommandError> {
        loop {
            let (run, hold) = self.next().await?;
            let caller = self.project.caller(Channel::Prompt);
            if let Err(refusal) = caller.may_decide("answer a hold") {
                CommandError::from(refusal).report();
                return Ok(AskOutcome::NoOneThere);
            }
            self.asked = Some(hold.clone());
            let asked = self.ask(&run, &hold, halt).await?;
            self.asked = None;
            self.queue.pass(&hold.id, hold.revision);
            match asked {
                // The driver of this process learns of the answer as of any other.
                PromptOutcome::Chose { option, feedback } => {
                    prompt_answer::record(self.project, caller, &hold, option, feedback).await?;
                }
                PromptOutcome::Elsewhere => {
                    let now = load(self.project.store(), &self.run).await?;
                    print::note(answered_elsewhere(&now, &hold));
                }
                PromptOutcome::NoOneThere => return Ok(AskOutcome::NoOneThere),
                PromptOutcome::Interrupted => return Ok(AskOutcome::Interrupted),
                PromptOutcome::Halted => return Ok(AskOutcome::Halted),
            }
        }
    }

    /// Waits for the next open hold. The store may be newer than the driver's list, for example after an answer given here.
    async fn next(&mut self) -> Result<(Run, Hold), CommandError> {
        loop {
            if !self.open.borrow_and_update().is_empty() {
                let run = load(self.project.store(), &self.run).await?;
                if let Some(hold) = run.open_holds().first().map(|hold| (*hold).clone()) {
                    return Ok((run, hold));
                }
            }
            self.queue.restart();
            if self.open.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Asks about one hold above the tree.
    async fn ask(&mut self, run: &Run, hold: &Hold, halt: &Halt) -> Result<PromptOutcome, CommandError> {
        let about = HoldPrompt::of(run, hold, self.project.store()).await?;
        let draft = self.drafts.entry(hold.id.clone()).or_default();
        prompt::ask(&about, prompt::Context { draft, queue: &mut self.queue, halt }).await
    }

    /// Reports the outcome of a question that was open when the run ended.
    pub(super) fn print_unanswered(&mut self, run: &Run) {
        if let Some(asked) = self.asked.take()
            && run.end.is_some()
        {
            print::note(answered_elsewhere(run, &asked));
        }
    }
}

/// What happened to a hold while it was asked about here.
fn answered_elsewhere(run: &Run, asked: &Hold) -> String {
    let said = |hold: &HoldId, label: &str, by: String, at: String| {
        format!("hold {hold} was answered elsewhere: {:?} by {by} at {at}", sanitize::line(label))
    };
    if let Some(hold) = run.holds.get(&asked.id) {
        if let Some(answer) = hold.answers.last() {
            let label = hold.choice(&answer.option).map_or("", |choice| choice.label.as_str());
            return said(&asked.id, label, lockgate::phrases::by(Some(&answer.actor)), lockgate::human_time::local(answer.at));
        }
        if hold.revision != asked.revision {
            return format!("hold {} was reopened because the shown content has changed", asked.id);
        }
    }
    match run.decisions.iter().rev().find(|decision| decision.hold == asked.id) {
        Some(decision) => said(
            &asked.id,
            &decision.label,
            lockgate::phrases::by(Some(&decision.actor)),
            lockgate::human_time::local(decision.at),
        ),
        None => format!("hold {} no longer waits for an answer", asked.id),
    }
}
