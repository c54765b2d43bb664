//! Who cancelled a run, when and why.

use super::WhoView;
use crate::error::Error;
use crate::phrases;
use lockgate_engine::run::command::Actor;
use lockgate_engine::run::event::{Entry, Event};
use lockgate_engine::run::{Run, Status};
use lockgate_engine::time::Timestamp;
use lockgate_store::Store;
use serde::Serialize;

/// How many of the last commits to read first. Few events follow a cancellation.
const LAST: u64 = 16;

/// How a run was cancelled.
#[derive(Clone, Debug, Serialize)]
pub struct CancelledView {
    pub at: Timestamp,
    pub by: WhoView,
    pub reason: Option<String>,
}

impl CancelledView {
    /// Reads from the history how a run was cancelled, because its state does not contain this. Returns `None` if it was not.
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

    /// Creates the view if the event is a cancellation.
    fn of_entry(entry: &Entry) -> Option<Self> {
        let Event::Cancelled { reason } = &entry.event else { return None };
        Some(Self::new(entry.at, entry.actor.as_deref(), reason.as_deref()))
    }

    /// Creates the view from a time, an actor and a reason.
    pub(crate) fn new(at: Timestamp, actor: Option<&Actor>, reason: Option<&str>) -> Self {
        let by = WhoView::of(&actor.cloned().unwrap_or_else(Actor::driver));
        Self { at, by, reason: reason.map(str::to_owned) }
    }

    /// Who cancelled the run and, if given, the reason.
    pub fn words(&self) -> String {
        let reason = self.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("by {}{reason}", phrases::by_channel(&self.by.name, self.by.channel))
    }
}
