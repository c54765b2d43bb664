//! Who or what aborted a run.

use crate::error::Error;
use crate::phrases;
use lockgate_engine::id::HoldId;
use lockgate_engine::run::command::{Actor, Channel};
use lockgate_engine::run::event::{Entry, Event};
use lockgate_engine::run::{Run, Status};
use lockgate_store::Store;

/// How many of the last commits to read first. Few events follow an abort.
const LAST: u64 = 16;

/// How a run was aborted.
#[derive(Clone, Debug)]
pub struct Aborted {
    hold: HoldId,
    by: Option<Actor>,
}

impl Aborted {
    /// Reads from the history how a run was aborted, because its state does not contain this. Returns `None` if it was not.
    pub async fn of(store: &dyn Store, run: &Run) -> Result<Option<Self>, Error> {
        if run.status() != Status::Aborted {
            return Ok(None);
        }
        for after in [run.version.saturating_sub(LAST), 0] {
            for sealed in store.commits(&run.id, after, usize::MAX).await?.iter().rev() {
                if let Some(aborted) = sealed.open()?.entries.iter().rev().find_map(|entry| Self::of_entry(entry, run)) {
                    return Ok(Some(aborted));
                }
            }
        }
        Ok(None)
    }

    fn of_entry(entry: &Entry, run: &Run) -> Option<Self> {
        let Event::Aborted { hold } = &entry.event else { return None };
        // A deadline that aborts leaves no answer. If an answer aborted the run, the driver may have recorded the end.
        let fired = entry.actor.as_deref().filter(|actor| actor.channel == Channel::Deadline);
        let answered = || run.decisions.iter().rfind(|decision| decision.hold == *hold).map(|decision| &decision.actor);
        Some(Self { hold: hold.clone(), by: fired.or_else(answered).cloned() })
    }

    /// Why the run was aborted, as a clause.
    pub fn why(&self) -> String {
        match self.way() {
            Some(Channel::Deadline) => format!("no one answered hold {} before its deadline, so the run was aborted", self.hold),
            Some(Channel::Policy | Channel::Default) => format!("an automatic answer to hold {} aborted it", self.hold),
            Some(Channel::Prompt | Channel::Command | Channel::Program | Channel::Preset | Channel::Driver) | None => {
                "a person aborted it".to_owned()
            }
        }
    }

    /// The reason, as it continues "run … was aborted".
    pub fn words(&self) -> String {
        match self.way() {
            Some(Channel::Deadline) => format!(": no one answered hold {} before its deadline", self.hold),
            Some(_) => format!(" by {}", phrases::by(self.by.as_ref())),
            None => String::new(),
        }
    }

    fn way(&self) -> Option<Channel> {
        self.by.as_ref().map(|actor| actor.channel)
    }
}
