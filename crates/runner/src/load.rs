//! Loads a run from the store: its materialized state and the commits after it, whose hashes are checked.

use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::{Created, Origin};
use lockgate_engine::run::hash_chain::{CommitError, SealedCommit};
use lockgate_engine::run::history::{HistoryError, Observe, created};
use lockgate_engine::run::index::IndexRows;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_store::{Store, StoreError};
use std::sync::Arc;

/// Why a run could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("run {run}: {error}; `lockgate db verify {run}` shows details")]
    History { run: RunId, error: HistoryError },
    #[error("run {run}: stored value {digest} is missing; `lockgate db verify {run}` shows details")]
    StoredValueMissing { run: RunId, digest: Digest },
}

/// A loaded run, and how many bytes were read for it.
pub struct LoadedRun {
    pub run: Run,
    /// Bytes of the materialized state; 0 if there was none.
    pub state_bytes: usize,
    /// Bytes of the commits after the materialized state.
    pub tail: usize,
}

pub async fn load(store: &dyn Store, run: &RunId) -> Result<Run, LoadError> {
    Ok(load_with_sizes(store, run).await?.run)
}

/// Loads a run and reports how many bytes were read for it.
pub async fn load_with_sizes(store: &dyn Store, run: &RunId) -> Result<LoadedRun, LoadError> {
    let history = |error: HistoryError| LoadError::History { run: run.clone(), error };
    let loaded = store.load(run).await?.ok_or_else(|| StoreError::NoRun(run.clone()))?;
    let tail = loaded.commits.iter().map(|commit| commit.payload.len()).sum();
    let Some(materialized) = loaded.materialized else {
        return Ok(LoadedRun { run: replay(store, run, &loaded.commits).await?, state_bytes: 0, tail });
    };
    // The materialized state is only a cache: if this release cannot read it, replay the whole history.
    let Ok(mut state) = Run::from_bytes(&materialized.state) else {
        let all = store.commits(run, 0, usize::MAX).await?;
        let tail = all.iter().map(|commit| commit.payload.len()).sum();
        return Ok(LoadedRun { run: replay(store, run, &all).await?, state_bytes: 0, tail });
    };
    let workflow = definition(store, run, state.definition).await?;
    state.attach(workflow).map_err(history)?;
    for commit in &loaded.commits {
        apply(store, &mut state, commit).await?;
    }
    Ok(LoadedRun { run: state, state_bytes: materialized.state.len(), tail })
}

/// Replays a run from its first commit.
async fn replay(store: &dyn Store, run: &RunId, commits: &[SealedCommit]) -> Result<Run, LoadError> {
    let history = |error: HistoryError| LoadError::History { run: run.clone(), error };
    let (first, rest) = commits.split_first().ok_or(HistoryError::NoBeginning).map_err(history)?;
    let mut state = first_observed(store, run, first, &mut |_, _, _| {}).await?;
    for commit in rest {
        apply(store, &mut state, commit).await?;
    }
    Ok(state)
}

/// The state after the first commit of a run, observed.
pub(crate) async fn first_observed(
    store: &dyn Store,
    run: &RunId,
    first: &SealedCommit,
    observe: &mut Observe<'_>,
) -> Result<Run, LoadError> {
    let history = |error: HistoryError| LoadError::History { run: run.clone(), error };
    check_hash(run, first, Digest::ZERO)?;
    let (created, _) = created(first).map_err(history)?;
    let workflow = definition(store, run, created.definition).await?;
    let base = base(store, run, &created, &workflow).await?;
    let (state, _) = Run::first_observed(first, workflow, base, observe).map_err(history)?;
    Ok(state)
}

/// Applies the commits that the store has beyond this state.
pub async fn catch_up(store: &dyn Store, state: &mut Run) -> Result<bool, LoadError> {
    let commits = store.commits(&state.id, state.version, usize::MAX).await?;
    for commit in &commits {
        apply(store, state, commit).await?;
    }
    Ok(!commits.is_empty())
}

/// Applies a commit to a state, fetching a newly accepted definition or the state of a snapshot first.
pub async fn apply(store: &dyn Store, state: &mut Run, commit: &SealedCommit) -> Result<IndexRows, LoadError> {
    apply_observed(store, state, commit, &mut |_, _, _| {}).await
}

/// The same, observed.
pub(crate) async fn apply_observed(
    store: &dyn Store,
    state: &mut Run,
    commit: &SealedCommit,
    observe: &mut Observe<'_>,
) -> Result<IndexRows, LoadError> {
    let run = state.id.clone();
    check_hash(&run, commit, state.head)?;
    let mut applied = state.apply_commit_observed(commit, observe);
    if let Err(HistoryError::DefinitionNeeded(digest)) = applied {
        let workflow = definition(store, &run, digest).await?;
        state.offer(digest, workflow);
        applied = state.apply_commit_observed(commit, observe);
    }
    if let Err(HistoryError::StateNeeded(digest)) = applied {
        let earlier = stored_state(store, &run, digest).await?;
        let workflow = definition(store, &run, earlier.definition).await?;
        state.offer_state(digest, attached(&run, earlier, workflow)?);
        applied = state.apply_commit(commit);
    }
    applied.map_err(|error| LoadError::History { run, error })
}

/// A commit that was modified must not be acted on.
pub fn check_hash(run: &RunId, commit: &SealedCommit, before: Digest) -> Result<(), LoadError> {
    if commit.follows(run, before) {
        return Ok(());
    }
    let error = CommitError::Damaged { version: commit.version, detail: "its hash does not match".to_owned() };
    Err(LoadError::History { run: run.clone(), error: error.into() })
}

/// The state that a forked or recovered run starts from.
pub(crate) async fn base(
    store: &dyn Store,
    run: &RunId,
    created: &Created,
    workflow: &Arc<Workflow>,
) -> Result<Option<Run>, LoadError> {
    let digest = match &created.origin {
        Origin::New | Origin::Imported(_) => return Ok(None),
        Origin::Forked(forked) => forked.state,
        Origin::Recovered(from) => from.state,
    };
    let state = stored_state(store, run, digest).await?;
    attached(run, state, workflow.clone()).map(Some)
}

/// Reads a state that is a stored value. It has no definition yet.
async fn stored_state(store: &dyn Store, run: &RunId, digest: Digest) -> Result<Run, LoadError> {
    let bytes = store.values(&[digest]).await?.pop().flatten();
    let bytes = bytes.ok_or_else(|| LoadError::StoredValueMissing { run: run.clone(), digest })?;
    Run::from_bytes(&bytes).map_err(|error| LoadError::History { run: run.clone(), error })
}

fn attached(run: &RunId, mut state: Run, workflow: Arc<Workflow>) -> Result<Run, LoadError> {
    state.attach(workflow).map_err(|error| LoadError::History { run: run.clone(), error })?;
    Ok(state)
}

pub(crate) async fn definition(store: &dyn Store, run: &RunId, digest: Digest) -> Result<Arc<Workflow>, LoadError> {
    let bytes = store.values(&[digest]).await?.pop().flatten();
    let bytes = bytes.ok_or_else(|| LoadError::StoredValueMissing { run: run.clone(), digest })?;
    let workflow = Workflow::from_bytes(&bytes).map_err(|error| LoadError::History { run: run.clone(), error })?;
    Ok(Arc::new(workflow))
}
