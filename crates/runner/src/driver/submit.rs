//! Commands on a run that somebody else drives, or nobody: answers, cancellations, records of refusals.

use super::{DriveError, sent, was_taken};
use crate::load::load;
use crate::projection::bring_up;
use crate::start::Frozen;
use crate::world::World;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{RunId, TimerId};
use lockgate_engine::run::command::{Actor, Body, Command};
use lockgate_engine::run::event::Entry;
use lockgate_engine::run::{Refusal, Run, fire_deadlines, handle};
use lockgate_store::{Append, AppendError, StoreError};

/// Carries out a command on a run that this process does not drive: an answer, a cancellation.
pub async fn submit(world: &World, run: &RunId, actor: Actor, body: Body, require_terminal: bool) -> Result<Run, DriveError> {
    let command = Command { driving: false, ..sent(world, actor, body, require_terminal) };
    Ok(submit_with(world, run, &command, &[]).await?.run)
}

/// The same for a moment that has come; gives nothing where that changed nothing, because somebody was first.
pub(super) async fn submit_moment(world: &World, run: &RunId, timer: TimerId) -> Result<Option<Run>, DriveError> {
    let command = Command { driving: false, ..sent(world, Actor::driver(), Body::TimerDue { timer }, false) };
    let submitted = submit_with(world, run, &command, &[]).await?;
    Ok(submitted.recorded.then_some(submitted.run))
}

/// Lets a run that this process does not drive go on with a changed definition that somebody accepts.
pub async fn accept(
    world: &World,
    run: &RunId,
    actor: Actor,
    frozen: &Frozen,
    require_terminal: bool,
) -> Result<Run, DriveError> {
    let command = Command { driving: false, ..sent(world, actor, accepting(frozen), require_terminal) };
    Ok(submit_with(world, run, &command, frozen.values()).await?.run)
}

/// The command that accepts a changed definition.
fn accepting(frozen: &Frozen) -> Body {
    let (definition, files) = frozen.definition();
    Body::AcceptDefinition { definition, workflow: frozen.workflow().clone(), files: files.to_vec() }
}

/// A run after a command, and whether that recorded anything.
struct Submitted {
    run: Run,
    recorded: bool,
}

/// Carries out a command after what the clock alone decides: deadlines that have passed come first. Gives what is to be recorded,
/// which may be something although the command is refused.
pub(super) fn carry_out(run: &mut Run, command: &Command) -> (Vec<Entry>, Option<Refusal>) {
    let mut entries = fire_deadlines(run, command);
    match handle(run, command) {
        Ok(decided) => {
            entries.extend(decided);
            (entries, None)
        }
        Err(refusal) => (entries, Some(refusal)),
    }
}

fn submitted(run: Run, recorded: bool, refusal: Option<Refusal>) -> Result<Submitted, DriveError> {
    match refusal {
        Some(refusal) => Err(refusal.into()),
        None => Ok(Submitted { run, recorded }),
    }
}

async fn submit_with(
    world: &World,
    run: &RunId,
    command: &Command,
    values: &[(Digest, Vec<u8>)],
) -> Result<Submitted, DriveError> {
    loop {
        let mut state = load(&*world.store, run).await?;
        let expected = state.version;
        let (entries, refusal) = carry_out(&mut state, command);
        if entries.is_empty() {
            return submitted(state, false, refusal);
        }
        let (_, commit, index) = state.seal(entries);
        let append =
            Append { run: run.clone(), expected, epoch: None, claim: None, commit, values: values.to_vec(), index, fold: None };
        let hash = append.commit.hash;
        match world.store.append(append).await {
            Ok(()) => {
                // What cannot be written now, whoever drives the run or looks at it next writes, and tells.
                let _ = bring_up(world, &state).await;
                return submitted(state, true, refusal);
            }
            Err(AppendError::Conflict) => {}
            Err(AppendError::Store(error @ StoreError::OutcomeUnknown(_))) => {
                match was_taken(world, run, expected, hash).await? {
                    Some(true) => return submitted(state, true, refusal),
                    Some(false) => {}
                    None => return Err(error.into()),
                }
            }
            Err(AppendError::Fenced) => return Err(DriveError::TakenOver(run.clone())),
            Err(AppendError::Store(error)) => return Err(error.into()),
        }
    }
}
