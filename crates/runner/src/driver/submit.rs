//! Commands on a run that this process does not drive: answers, cancellations, records of refusals.

use super::{DriveError, external_envelope, was_taken};
use crate::load::load;
use crate::outbox;
use crate::projection::refresh_files;
use crate::runtime::{Clock, Runtime, SystemClock};
use crate::spans;
use crate::start::Frozen;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{RunId, TimerId};
use lockgate_engine::run::command::{Caller, Command, CommandKind, Envelope};
use lockgate_engine::run::event::Entry;
use lockgate_engine::run::outbox::Subscriptions;
use lockgate_engine::run::{Refusal, Run, fire_deadlines, handle};
use lockgate_store::{Append, AppendError, Store, StoreError};
use tracing::{Instrument, debug, info, warn};

/// Executes a command on a run that this process does not drive, such as an answer or a cancellation.
pub async fn submit(runtime: &Runtime, run: &RunId, caller: Caller, kind: CommandKind) -> Result<Run, DriveError> {
    let command = Command { envelope: external_envelope(runtime, caller), kind };
    Ok(submit_with(runtime, run, command, &[]).await?.run)
}

/// Like [`submit`], with the bytes of values that the command refers to. Also says whether anything was recorded.
pub async fn submit_values(
    runtime: &Runtime,
    run: &RunId,
    caller: Caller,
    kind: CommandKind,
    values: &[(Digest, Vec<u8>)],
) -> Result<(Run, bool), DriveError> {
    let command = Command { envelope: external_envelope(runtime, caller), kind };
    let submitted = submit_with(runtime, run, command, values).await?;
    Ok((submitted.run, submitted.recorded))
}

/// Fires a timer; `None` if another process handled it first.
pub(super) async fn submit_timer(runtime: &Runtime, run: &RunId, timer: TimerId) -> Result<Option<Run>, DriveError> {
    let command = Command { envelope: external_envelope(runtime, Caller::driver()), kind: CommandKind::TimerDue { timer } };
    let submitted = submit_with(runtime, run, command, &[]).await?;
    Ok(submitted.recorded.then_some(submitted.run))
}

/// Accepts a changed definition for a run that this process does not drive.
pub async fn accept(runtime: &Runtime, run: &RunId, caller: Caller, frozen: &Frozen) -> Result<Run, DriveError> {
    let command = Command { envelope: external_envelope(runtime, caller), kind: accepting(frozen) };
    Ok(submit_with(runtime, run, command, frozen.values()).await?.run)
}

fn accepting(frozen: &Frozen) -> CommandKind {
    let (definition, files) = frozen.definition();
    CommandKind::AcceptDefinition { definition, workflow: frozen.workflow().clone(), files: files.to_vec() }
}

/// A run after a command, and whether the command recorded anything.
struct Submitted {
    run: Run,
    recorded: bool,
    notifies: bool,
}

/// Executes a command, after firing deadlines that have already passed. Returns the events to record, which may be present
/// even if the command is refused.
pub(super) fn carry_out(run: &mut Run, command: &Command) -> (Vec<Entry>, Option<Refusal>) {
    let mut entries = fire_deadlines(run, command.envelope.at);
    match handle(run, command) {
        Ok(decided) => {
            entries.extend(decided);
            (entries, None)
        }
        Err(refusal) => (entries, Some(refusal)),
    }
}

/// Records an event that a running task reports about itself. The driver of the run reads it like any other external commit.
pub(crate) async fn record(
    store: &dyn Store,
    subscriptions: &Subscriptions,
    run: &RunId,
    kind: CommandKind,
    values: &[(Digest, Vec<u8>)],
) -> Result<(), DriveError> {
    let clock = SystemClock;
    let envelope = Envelope { id: None, caller: Caller::driver(), at: clock.now(), seed: clock.seed(), driving: false };
    let span = spans::command(run, &kind);
    let command = Command { envelope, kind };
    commit(store, subscriptions, &clock, run, command, values).instrument(span).await?;
    Ok(())
}

async fn submit_with(
    runtime: &Runtime,
    run: &RunId,
    command: Command,
    values: &[(Digest, Vec<u8>)],
) -> Result<Submitted, DriveError> {
    let span = spans::command(run, &command.kind);
    let submitted = async {
        let (store, subscriptions) = (&*runtime.store, outbox::subscriptions(runtime));
        let (submitted, refusal) = commit(store, subscriptions, &*runtime.clock, run, command, values).await?;
        if submitted.notifies {
            outbox::wake(runtime);
        }
        if submitted.recorded {
            try_refresh_files(runtime, &submitted.run).await;
        }
        match refusal {
            Some(refusal) => {
                info!(%refusal, "refused");
                Err(refusal.into())
            }
            None => Ok(submitted),
        }
    };
    submitted.instrument(span).await
}

/// Writes the generated files if possible. The next process that drives or inspects the run retries, and reports a failure.
pub(super) async fn try_refresh_files(runtime: &Runtime, run: &Run) {
    if let Err(error) = refresh_files(runtime, run).await {
        warn!(%error, "the generated files are not up to date");
    }
}

/// Executes a command on the newest state, retrying as long as other processes commit first. The command gets the time of the
/// decision, so that its events do not look older than those it was decided on.
async fn commit(
    store: &dyn Store,
    subscriptions: &Subscriptions,
    clock: &dyn Clock,
    run: &RunId,
    mut command: Command,
    values: &[(Digest, Vec<u8>)],
) -> Result<(Submitted, Option<Refusal>), DriveError> {
    store.prepare_append();
    loop {
        let mut state = load(store, run).await?;
        let expected = state.version;
        command.envelope.at = clock.now();
        let (entries, refusal) = carry_out(&mut state, &command);
        if entries.is_empty() {
            return Ok((Submitted { run: state, recorded: false, notifies: false }, refusal));
        }
        let (_, commit, index) = state.seal_notifying(entries, subscriptions);
        let notifies = !index.outbox.is_empty();
        let append = Append {
            run: run.clone(),
            expected,
            epoch: None,
            claim: None,
            commit,
            values: values.to_vec(),
            index,
            materialized: None,
        };
        let hash = append.commit.hash;
        match store.append(append).await {
            Ok(_) => {
                info!(version = state.version, "recorded");
                return Ok((Submitted { run: state, recorded: true, notifies }, refusal));
            }
            Err(AppendError::DrivenBy(by)) => return Err(DriveError::DrivenBy { run: run.clone(), by }),
            Err(AppendError::Conflict) => debug!(expected, "another process committed first; deciding again"),
            Err(AppendError::Store(error @ StoreError::OutcomeUnknown(_))) => {
                let taken = was_taken(store, run, expected, hash).await?;
                warn!(%error, expected, ?taken, "the outcome of a commit was unknown and has been read back");
                match taken {
                    Some(true) => return Ok((Submitted { run: state, recorded: true, notifies }, refusal)),
                    Some(false) => {}
                    None => return Err(error.into()),
                }
            }
            Err(AppendError::Fenced) => return Err(DriveError::TakenOver(run.clone())),
            Err(AppendError::Store(error)) => return Err(error.into()),
        }
    }
}
