//! Makes decisions durable: the events of all waiting commands form one commit, which also claims an unclaimed run.

use super::submit::carry_out;
use super::{DriveError, Driver, Waiting, own_command};
use crate::outbox;
use crate::runtime::{Runtime, Stop};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::command::CommandKind;
use lockgate_engine::run::event::Entry;
use lockgate_engine::run::{Run, handle};
use lockgate_store::{Append, AppendError, Store, StoreError};
use tracing::{debug, warn};

/// The materialized state is rewritten when the commits since then have grown to this fraction of its size. That bounds what
/// a resume reads to little more than the state, and total writes to a small multiple of the history.
const STATE_GROWTH_FACTOR: usize = 4;

/// Below this many bytes of commits, rewriting the state is not worth it.
const MIN_STATE_INTERVAL: usize = 16 * 1024;

impl Driver {
    /// Decides commands, appends their events in one commit, then starts pending effects.
    pub(super) async fn commit(&mut self, mut waiting: Vec<Waiting>) -> Result<(), DriveError> {
        let mut earlier = None;
        loop {
            let mut entries = Vec::new();
            let mut values = Vec::new();
            let mut refusal = None;
            for waiting in &waiting {
                let (decided, refused) = carry_out(&mut self.run, &waiting.command);
                if !decided.is_empty() {
                    entries.extend(decided);
                    values.extend(waiting.values.iter().cloned());
                }
                refusal = refused.or(refusal);
            }
            read_ahead(&self.runtime, &mut self.run, &mut entries, &mut values).await;
            if !entries.is_empty() && !self.append(entries, values).await? {
                continue;
            }
            refusal = earlier.take().or(refusal);
            if self.claim.epoch().is_none() && !self.run.pending().is_empty() {
                // There was no commit to claim the run with, and nothing may start without a claim.
                self.claim_now().await?;
                if self.catch_up().await? {
                    let look = own_command(&self.runtime, CommandKind::Advance);
                    (waiting, earlier) = (vec![Waiting { command: look, values: Vec::new() }], refusal);
                    continue;
                }
            }
            self.start_pending();
            self.publish_open_holds();
            return refusal.map_or(Ok(()), |refused| Err(refused.into()));
        }
    }

    /// Appends events. Returns false, with the state reloaded, if another process committed first.
    pub(super) async fn append(&mut self, entries: Vec<Entry>, values: Vec<(Digest, Vec<u8>)>) -> Result<bool, DriveError> {
        let expected = self.run.version;
        let (heard, commit, index) = self.run.seal_notifying(entries, outbox::subscriptions(&self.runtime));
        let notifies = !index.outbox.is_empty();
        let hash = commit.hash;
        self.bytes_since_state += commit.payload.len();
        let materialized =
            (self.bytes_since_state > MIN_STATE_INTERVAL.max(self.state_size / STATE_GROWTH_FACTOR)).then(|| self.run.to_bytes());
        let state_bytes = materialized.as_ref().map(Vec::len);
        let run = self.run.id.clone();
        let epoch = self.claim.epoch();
        let claim = epoch.is_none().then(|| self.runtime.store.driver().clone());
        let claims = claim.is_some();
        let term = self.runtime.store.lease().term();
        let append = Append { run: run.clone(), expected, epoch, claim, commit, values, index, materialized };
        match self.runtime.store.append(append).await {
            Ok(claimed) => claimed.into_iter().for_each(|epoch| self.claim.take(epoch, term)),
            Err(AppendError::DrivenBy(by)) => return Err(DriveError::DrivenBy { run, by }),
            Err(AppendError::Fenced) => return Err(DriveError::TakenOver(run)),
            Err(AppendError::Store(error @ StoreError::OutcomeUnknown(_))) => {
                let taken = was_taken(&*self.runtime.store, &run, expected, hash).await?;
                warn!(%error, expected, ?taken, "the outcome of a commit was unknown and has been read back");
                if claims && taken == Some(true) {
                    // The commit also claimed the run, but the reply with the epoch was lost.
                    self.claim_now().await?;
                }
                self.read_again().await?;
                match taken {
                    Some(true) => {}
                    Some(false) => return Ok(false),
                    None => return Err(error.into()),
                }
            }
            Err(AppendError::Store(error)) => return Err(error.into()),
            Err(AppendError::Conflict) => {
                debug!(expected, "another process committed first; deciding again");
                self.read_again().await?;
                return Ok(false);
            }
        }
        debug!(version = self.run.version, events = heard.entries.len(), "committed");
        self.recorded |= self.run.driver == *self.runtime.store.driver();
        if let Some(size) = state_bytes {
            self.state_size = size;
            self.bytes_since_state = 0;
        }
        if notifies {
            outbox::wake(&self.runtime);
        }
        self.listener.committed(&self.run, &heard.entries);
        self.offer_files();
        Ok(true)
    }
}

/// Appends the first commit of a run. Returns its events, and the epoch of the claim if known.
pub(super) async fn append_first(
    runtime: &Runtime,
    run: &mut Run,
    entries: Vec<Entry>,
    values: Vec<(Digest, Vec<u8>)>,
    claim: Option<DriverId>,
) -> Result<(Vec<Entry>, Option<u64>), DriveError> {
    let (heard, commit, index) = run.seal_notifying(entries, outbox::subscriptions(runtime));
    let (hash, notifies) = (commit.hash, !index.outbox.is_empty());
    let append = Append { run: run.id.clone(), expected: 0, epoch: None, claim, commit, values, index, materialized: None };
    let epoch = match runtime.store.append(append).await {
        Ok(epoch) => epoch,
        Err(AppendError::Store(error @ StoreError::OutcomeUnknown(_))) => {
            match was_taken(&*runtime.store, &run.id, 0, hash).await? {
                Some(true) => None,
                Some(false) | None => return Err(error.into()),
            }
        }
        Err(AppendError::Store(error)) => return Err(error.into()),
        Err(AppendError::Conflict | AppendError::Fenced | AppendError::DrivenBy(_)) => {
            return Err(DriveError::RunExists(run.id.clone()));
        }
    };
    if notifies {
        outbox::wake(runtime);
    }
    Ok((heard.entries, epoch))
}

/// Whether a commit with unknown outcome was stored: `Some(false)` if another commit has its version, `None` if the history
/// ends before it.
pub(super) async fn was_taken(store: &dyn Store, run: &RunId, expected: u64, hash: Digest) -> Result<Option<bool>, StoreError> {
    let next = store.commits(run, expected, 1).await?;
    Ok(next.first().map(|commit| commit.hash == hash))
}

/// Performs read-only effects before the commit, so that their results are part of it: a hold opens in the same commit as the
/// work that led to it, and an answer takes effect in its own commit.
pub(super) async fn read_ahead(runtime: &Runtime, run: &mut Run, entries: &mut Vec<Entry>, values: &mut Vec<(Digest, Vec<u8>)>) {
    loop {
        let Some(effect) = run.pending_read() else { return };
        let performed = runtime.perform.start(run, &effect, Stop::new()).await;
        let command = own_command(runtime, performed.command);
        match handle(run, &command) {
            Ok(decided) if !decided.is_empty() => {
                entries.extend(decided);
                values.extend(performed.values);
            }
            Ok(_) | Err(_) => return,
        }
    }
}
