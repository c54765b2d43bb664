//! Publishes the open holds of a driven run to a prompt in the same process.

use super::Driver;
use lockgate_engine::id::HoldId;
use lockgate_engine::run::Run;
use tokio::sync::watch;

/// The open holds of a run with their revisions, oldest first.
pub(super) fn of(run: &Run) -> Vec<(HoldId, u32)> {
    run.open_holds().into_iter().map(|hold| (hold.id.clone(), hold.revision)).collect()
}

impl Driver {
    /// The open holds with their revisions, oldest first, kept current while the run is driven. A hold appears here after the
    /// listener has been notified of it.
    pub fn open_holds(&self) -> watch::Receiver<Vec<(HoldId, u32)>> {
        self.open.subscribe()
    }

    pub(super) fn publish_open_holds(&self) {
        let open = of(&self.run);
        self.open.send_if_modified(|known| {
            let has_changed = *known != open;
            *known = open;
            has_changed
        });
    }
}
