//! Who ended a run before its end, when and why.

use super::WhoView;
use crate::error::Error;
use crate::phrases;
use lockgate_engine::run::command::Actor;
use lockgate_engine::run::event::{Entry, Event};
use lockgate_engine::run::{Run, Status};
use lockgate_engine::time::Timestamp;
use lockgate_store::Store;
use serde::Serialize;

/// How many of the last commits are looked at first: little is recorded about a run after it was cancelled.
const LAST: u64 = 16;

/// How a run was cancelled.
#[derive(Clone, Debug, Serialize)]
pub struct CancelledView {
    pub at: Timestamp,
    pub by: WhoView,
    pub reason: Option<String>,
}

impl CancelledView {
    /// How a run was cancelled, where it was. The state of a run does not keep it, so it is read from the history.
    pub async fn of(store: &dyn Store, run: &Run) -> Result<Option<Self>, Error> {
        if run.status() != Status::Cancelled {
            return Ok(None);
        }
        for after in [run.version.saturating_sub(LAST), 0] {
            for sealed in store.commits(&run.id, after, usize::MAX).await?.iter().rev() {
                if let Some(cancelled) = sealed.open()?.entries.iter().find_map(Self::of_entry) {
                    return Ok(Some(cancelled));
                }
            }
        }
        Ok(None)
    }

    /// What an event says about it, where it is about that.
    fn of_entry(entry: &Entry) -> Option<Self> {
        let Event::Cancelled { reason } = &entry.event else { return None };
        Some(Self::new(entry.at, entry.actor.as_deref(), reason.as_deref()))
    }

    /// What is known about it: when, by whom and why.
    pub(crate) fn new(at: Timestamp, actor: Option<&Actor>, reason: Option<&str>) -> Self {
        let by = WhoView::of(&actor.cloned().unwrap_or_else(Actor::driver));
        Self { at, by, reason: reason.map(str::to_owned) }
    }

    /// It in words: by whom, and why where that was said.
    pub fn words(&self) -> String {
        let reason = self.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("by {}{reason}", phrases::by_channel(&self.by.name, self.by.channel))
    }
}
