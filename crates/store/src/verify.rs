//! Detects changed or lost data in a store: gaps, broken hash chains, values that do not match their digest.
//!
//! A history alone cannot show that its last commits are missing. A backend that keeps a separate record of its last commits
//! can: see [`Store::missing_commits`].

use crate::error::StoreError;
use crate::hash_chain::HashChain;
use crate::store::{Missing, Orphan, Store, StoredRun};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use std::collections::BTreeMap;

const ROWS: usize = 256;
/// Values are read in smaller pages because they may be large.
const VALUES: usize = 16;

/// A difference between the stored data and the data that Lockgate wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The run it belongs to, if known.
    pub run: Option<RunId>,
    /// For example `commit 7` or `value 4f…`.
    pub location: String,
    pub problem: String,
}

impl Finding {
    pub(crate) fn new(run: Option<&RunId>, location: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { run: run.cloned(), location: location.into(), problem: problem.into() }
    }
}

/// Checks one run: its commits, the values it refers to and the version of its materialized state. `None` if there is no such
/// run.
pub async fn verify_run(store: &dyn Store, run: &RunId) -> Result<Option<Vec<Finding>>, StoreError> {
    let mut findings = Vec::new();
    let stored = match store.stored_run(run).await {
        Ok(None) => return Ok(None),
        Ok(stored) => stored,
        Err(error) => report_damage::<StoredRun>(Err(error), Some(run), "its rows", &mut findings)?,
    };
    let mut chain = HashChain::new(run.clone());
    loop {
        let commits = store.commits(run, chain.version(), ROWS).await;
        let Some(commits) = report_damage(commits, Some(run), "its commits", &mut findings)? else { return Ok(Some(findings)) };
        commits.iter().for_each(|commit| chain.check_next(commit, &mut findings));
        if commits.len() < ROWS {
            break;
        }
    }
    let missing = report_damage(store.missing_commits().await, Some(run), "its commits", &mut findings)?.unwrap_or_default();
    findings.extend(missing.iter().filter(|missing| missing.run == *run).map(missing_end));
    let Some(stored) = stored else { return Ok(Some(findings)) };
    check_end(&stored, chain.version(), &mut findings);
    for digest in &stored.referenced_values {
        let place = format!("value {digest}");
        let values = store.values(&[*digest]).await;
        if report_damage(values, Some(run), &place, &mut findings)?.is_some_and(|values| values.contains(&None)) {
            findings.push(Finding::new(Some(run), place, "the run refers to it, but it is missing"));
        }
    }
    Ok(Some(findings))
}

/// Checks the whole store.
pub async fn verify_store(store: &dyn Store) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    let damage = store.damage().await;
    for line in report_damage(damage, None, "the database", &mut findings)?.unwrap_or_default() {
        findings.push(Finding::new(None, "the database", line));
    }
    let missing = report_damage(store.missing_commits().await, None, "the database", &mut findings)?.unwrap_or_default();
    findings.extend(missing.iter().map(missing_end));
    let ends = check_commits(store, &mut findings).await?;
    check_runs(store, &ends, &mut findings).await?;
    check_values(store, &mut findings).await?;
    let orphans = store.orphans().await;
    let orphans = report_damage(orphans, None, "the database", &mut findings)?.unwrap_or_default();
    findings.extend(orphans.into_iter().map(orphan_finding));
    Ok(findings)
}

/// Turns damage that prevents reading into a finding, so that verification continues.
fn report_damage<T>(
    result: Result<T, StoreError>,
    run: Option<&RunId>,
    place: &str,
    findings: &mut Vec<Finding>,
) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(StoreError::Corrupt(detail)) => {
            findings.push(Finding::new(run, place, detail));
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

fn missing_end(missing: &Missing) -> Finding {
    Finding::new(Some(&missing.run), missing.commits(), "recorded, but missing from the end of the history")
}

/// Checks every hash chain, and returns the version that each ends with.
async fn check_commits(store: &dyn Store, findings: &mut Vec<Finding>) -> Result<BTreeMap<RunId, u64>, StoreError> {
    let mut ends = BTreeMap::new();
    let mut chain: Option<HashChain> = None;
    let mut after = None;
    loop {
        let rows = store.scan_commits(after, ROWS).await;
        let Some(rows) = report_damage(rows, None, "the commits", findings)? else { return Ok(ends) };
        for row in &rows {
            let Some(run) = &row.run else {
                findings.push(Finding::new(None, format!("commit at {:#x}", row.place), "it does not belong to a stored run"));
                continue;
            };
            let chain = match &mut chain {
                Some(chain) if chain.run == *run => chain,
                other => other.insert(HashChain::new(run.clone())),
            };
            chain.check_next(&row.commit, findings);
            ends.insert(run.clone(), chain.version());
        }
        match rows.last() {
            Some(last) => after = Some(last.place),
            None => return Ok(ends),
        }
    }
}

async fn check_runs(store: &dyn Store, ends: &BTreeMap<RunId, u64>, findings: &mut Vec<Finding>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let runs = store.scan_runs(after, ROWS).await;
        let Some(runs) = report_damage(runs, None, "the runs", findings)? else { return Ok(()) };
        for run in &runs {
            check_end(run, ends.get(&run.row.run).copied().unwrap_or(0), findings);
        }
        match runs.last() {
            Some(last) => after = Some(last.place),
            None => return Ok(()),
        }
    }
}

fn check_end(stored: &StoredRun, version: u64, findings: &mut Vec<Finding>) {
    let run = Some(&stored.row.run);
    if version == 0 {
        findings.push(Finding::new(run, "its history", "it has no commits"));
    }
    if let Some(materialized) =
        stored.materialized.as_ref().filter(|materialized| materialized.version > version || materialized.version == 0)
    {
        let problem =
            format!("it claims to be the state after commit {}, but the last commit is {version}", materialized.version);
        findings.push(Finding::new(run, "its materialized state", problem));
    }
}

async fn check_values(store: &dyn Store, findings: &mut Vec<Finding>) -> Result<(), StoreError> {
    let mut after = None;
    loop {
        let values = store.scan_values(after, VALUES).await;
        let Some(values) = report_damage(values, None, "the stored values", findings)? else { return Ok(()) };
        for value in values.iter().filter(|value| Digest::of(&value.bytes) != value.digest) {
            findings.push(Finding::new(None, format!("value {}", value.digest), "its contents do not match its digest"));
        }
        match values.last() {
            Some(last) => after = Some(last.digest),
            None => return Ok(()),
        }
    }
}

fn orphan_finding(orphan: Orphan) -> Finding {
    match orphan {
        Orphan::ValueWithoutReference(digest) => Finding::new(None, format!("value {digest}"), "no run refers to it"),
        Orphan::ReferenceWithoutValue { run, digest } => {
            Finding::new(Some(&run), format!("value {digest}"), "the run refers to it, but it is missing")
        }
        Orphan::RowsWithoutRun { table, place } => {
            Finding::new(None, format!("{table} of run number {place}"), "they do not belong to a stored run")
        }
    }
}
