//! Verifies what the store alone cannot check: that the histories are consistent, and that all derived data follows from
//! them.

use crate::load::{LoadError, base, definition};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{HoldId, RunId, TimerId};
use lockgate_engine::run::Run;
use lockgate_engine::run::history::{HistoryError, created};
use lockgate_engine::run::index::{HoldRow, IndexRows, RunRow, TimerRow};
use lockgate_store::{Finding, MaterializedState, Store, StoreError, StoredRun, verify_run, verify_store};
use std::collections::{BTreeMap, BTreeSet};

const COMMIT_PAGE: usize = 10_000;
const RUN_PAGE: usize = 100;

/// Verifies one run: its hash chain, values, materialized state and index rows. `None` if there is no such run.
pub async fn verify_one(store: &dyn Store, run: &RunId) -> Result<Option<Vec<Finding>>, StoreError> {
    let Some(mut findings) = verify_run(store, run).await? else { return Ok(None) };
    match store.stored_run(run).await {
        Ok(Some(stored)) => findings.extend(rederive(store, &stored).await?),
        Ok(None) => {}
        // The damage was already found; report it together with the other findings.
        Err(StoreError::Corrupt(_)) if !findings.is_empty() => {}
        Err(other) => return Err(other),
    }
    Ok(Some(findings))
}

/// Verifies all runs, and that the store contains nothing else.
pub async fn verify_all(store: &dyn Store) -> Result<Vec<Finding>, StoreError> {
    let mut findings = verify_store(store).await?;
    let mut after = None;
    loop {
        let runs = match store.scan_runs(after, RUN_PAGE).await {
            Ok(runs) => runs,
            // The damage was already found; report it together with the other findings.
            Err(StoreError::Corrupt(_)) if !findings.is_empty() => return Ok(findings),
            Err(other) => return Err(other),
        };
        for stored in &runs {
            findings.extend(rederive(store, stored).await?);
        }
        match runs.last() {
            Some(last) => after = Some(last.place),
            None => return Ok(findings),
        }
    }
}

/// The index rows that a run's history produces, collected commit by commit.
#[derive(Default)]
struct Expected {
    row: Option<RunRow>,
    holds: BTreeMap<HoldId, HoldRow>,
    timers: BTreeMap<TimerId, TimerRow>,
    referenced_values: BTreeSet<Digest>,
}

impl Expected {
    fn add(&mut self, rows: IndexRows) {
        self.row = rows.run.or(self.row.take());
        self.holds.extend(rows.holds.into_iter().map(|row| (row.hold.clone(), row)));
        self.timers.extend(rows.timers.into_iter().map(|row| (row.timer.clone(), row)));
        for timer in rows.timers_removed {
            self.timers.remove(&timer);
        }
        self.referenced_values.extend(rows.referenced_values);
    }
}

/// Replays a run from its first commit and compares the stored derived data with the result.
async fn rederive(store: &dyn Store, stored: &StoredRun) -> Result<Vec<Finding>, StoreError> {
    let run = &stored.row.run;
    let finding = |place: &str, problem: String| Finding { run: Some(run.clone()), location: place.to_owned(), problem };
    let mut findings = Vec::new();
    let mut expected = Expected::default();
    let mut state: Option<Run> = None;
    loop {
        let version = state.as_ref().map_or(0, |state| state.version);
        let commits = match store.commits(run, version, COMMIT_PAGE).await {
            Ok(commits) => commits,
            Err(StoreError::Corrupt(detail)) => {
                findings.push(finding("the commits", detail));
                return Ok(findings);
            }
            Err(other) => return Err(other),
        };
        if commits.is_empty() {
            break;
        }
        for commit in &commits {
            let applied = match &mut state {
                Some(state) => crate::load::apply(store, state, commit).await.map_err(ReplayError::from),
                None => start(store, run, commit).await.map(|(begun, rows)| {
                    state = Some(begun);
                    rows
                }),
            };
            match applied {
                Ok(rows) => expected.add(rows),
                Err(problem) => {
                    findings.push(finding(&format!("commit {}", commit.version), problem.to_string()));
                    return Ok(findings);
                }
            }
            let materialized = stored.materialized.as_ref().filter(|materialized| materialized.version == commit.version);
            if let (Some(materialized), Some(state)) = (materialized, &state) {
                findings.extend(compare_state(materialized, state).map(|problem| finding("materialized state", problem)));
            }
        }
    }
    if let Some(materialized) = stored
        .materialized
        .as_ref()
        .filter(|materialized| state.as_ref().is_none_or(|state| materialized.version > state.version))
    {
        findings
            .push(finding("materialized state", format!("it belongs to commit {}, which does not exist", materialized.version)));
    }
    compare("row in the list of runs", expected.row.as_ref(), Some(&stored.row), &finding, &mut findings);
    let holds: BTreeMap<_, _> = stored.holds.iter().map(|row| (row.hold.clone(), row.clone())).collect();
    compare("holds", Some(&expected.holds), Some(&holds), &finding, &mut findings);
    let timers: BTreeMap<_, _> = stored.timers.iter().map(|row| (row.timer.clone(), row.clone())).collect();
    compare("timers", Some(&expected.timers), Some(&timers), &finding, &mut findings);
    let referenced_values: BTreeSet<_> = stored.referenced_values.iter().copied().collect();
    compare("references to stored values", Some(&expected.referenced_values), Some(&referenced_values), &finding, &mut findings);
    Ok(findings)
}

/// Why a history cannot be replayed.
#[derive(Debug, thiserror::Error)]
enum ReplayError {
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Load(#[from] LoadError),
}

async fn start(
    store: &dyn Store,
    run: &RunId,
    first: &lockgate_engine::run::hash_chain::SealedCommit,
) -> Result<(Run, IndexRows), ReplayError> {
    let (created, _) = created(first)?;
    let workflow = definition(store, run, created.definition).await?;
    let base = base(store, run, &created, &workflow).await?;
    Ok(Run::first_from(first, workflow, base)?)
}

fn compare_state(materialized: &MaterializedState, state: &Run) -> Option<String> {
    let read = Run::from_bytes(&materialized.state).and_then(|mut read| {
        read.attach(state.workflow.clone())?;
        Ok(read)
    });
    match read {
        Ok(read) if read == *state => None,
        Ok(_) => Some("it does not match the history".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

fn compare<T: PartialEq>(
    place: &str,
    expected: Option<&T>,
    stored: Option<&T>,
    finding: &dyn Fn(&str, String) -> Finding,
    findings: &mut Vec<Finding>,
) {
    if expected != stored {
        findings.push(finding(place, "the stored rows do not follow from the history".to_owned()));
    }
}
