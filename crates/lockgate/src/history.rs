//! The history of a run: its committed events, as JSON and for display.

use crate::error::Error;
use lockgate_engine::digest::Digest;
use lockgate_engine::id::RunId;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::Actor;
use lockgate_engine::run::event::Entry;
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_runner::load::{apply, check_hash};
use lockgate_store::Store;
use serde_json::{Map, Value, json};

/// How many commits to read per page.
const COMMITS: usize = 1000;

/// How many commits [`recent`] looks back.
const RECENT: u64 = 64;

/// A commit in the history of a run.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The number of the commit, from 1.
    pub version: u64,
    /// The number of its first event, from 1.
    pub first_seq: u64,
    /// The hash of the commit, which also covers all commits before it.
    pub hash: Digest,
    /// Its events.
    pub entries: Vec<Entry>,
}

impl Committed {
    /// The events with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &Entry)> {
        (self.first_seq..).zip(&self.entries)
    }
}

/// Reads a history incrementally, and checks the hashes.
pub struct History<'s> {
    store: &'s dyn Store,
    run: RunId,
    after: u64,
    /// The hash of the last commit that was read; `None` if the reading starts later than at the first one.
    head: Option<Digest>,
}

impl<'s> History<'s> {
    /// Reads the whole history of a run.
    pub fn of(store: &'s dyn Store, run: &RunId) -> Self {
        Self { store, run: run.clone(), after: 0, head: Some(Digest::ZERO) }
    }

    /// Reads the commits after a version.
    pub fn after(store: &'s dyn Store, run: &RunId, version: u64) -> Self {
        Self { store, run: run.clone(), after: version, head: None }
    }

    /// Returns the next commits. The result is empty at the current end of the history, which may grow. A damaged commit is an
    /// error, once all commits before it have been returned.
    pub async fn next(&mut self) -> Result<Vec<Committed>, Error> {
        let commits = self.store.commits(&self.run, self.after, COMMITS).await?;
        let mut opened = Vec::with_capacity(commits.len());
        for sealed in &commits {
            match self.open(sealed) {
                Ok(commit) => opened.push(commit),
                Err(error) if opened.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(opened)
    }

    fn open(&mut self, sealed: &SealedCommit) -> Result<Committed, Error> {
        if let Some(head) = self.head {
            check_hash(&self.run, sealed, head)?;
        }
        let commit = sealed.open()?;
        (self.after, self.head) = (sealed.version, Some(sealed.hash));
        Ok(Committed { version: sealed.version, first_seq: commit.first_seq, hash: sealed.hash, entries: commit.entries })
    }
}

/// Returns the events of the last commits before the version of a state.
pub async fn recent(store: &dyn Store, state: &Run) -> Result<Vec<Entry>, Error> {
    let commits = store.commits(&state.id, state.version.saturating_sub(RECENT), COMMITS).await?;
    Ok(commits.iter().filter_map(|sealed| sealed.open().ok()).flat_map(|commit| commit.entries).collect())
}

/// Applies new commits from the store to a state, and calls `heard` after each.
pub async fn catch_up(store: &dyn Store, state: &mut Run, heard: &mut dyn FnMut(&Run, &[Entry])) -> Result<(), Error> {
    loop {
        let commits = store.commits(&state.id, state.version, COMMITS).await?;
        if commits.is_empty() {
            return Ok(());
        }
        for sealed in &commits {
            let commit = sealed.open()?;
            apply(store, state, sealed).await?;
            heard(state, &commit.entries);
        }
    }
}

/// An event as JSON: its number, time, type, actor and own fields. Absent fields are omitted.
pub fn event_json(seq: u64, entry: &Entry, hash: Digest) -> Value {
    let (kind, own) = event(entry);
    let actor = entry.actor.as_deref().cloned().unwrap_or_else(Actor::driver);
    let mut line = json!({"seq": seq, "at": entry.at, "type": kind, "actor": without_absent(json!(actor)), "hash": hash});
    if let Value::Object(line) = &mut line {
        line.extend(entry.cause.as_ref().map(|cause| ("cause".to_owned(), json!(cause))));
        for (name, value) in own {
            line.entry(name).or_insert(value);
        }
    }
    line
}

/// The type of an event and its own fields. Absent fields are omitted.
fn event(entry: &Entry) -> (String, Map<String, Value>) {
    let (kind, fields) = match serde_json::to_value(&entry.event) {
        Ok(Value::String(kind)) => (kind, Value::Null),
        Ok(Value::Object(tagged)) => tagged.into_iter().next().unwrap_or_default(),
        Ok(_) | Err(_) => ("unknown".to_owned(), Value::Null),
    };
    let mut own = Map::new();
    if let Value::Object(fields) = without_absent(fields) {
        for (name, value) in fields {
            match value {
                // The fields of the task key are flattened into the event.
                Value::Object(key) if name == "key" => own.extend(key),
                value => {
                    own.insert(name, value);
                }
            }
        }
    }
    (kind, own)
}

fn without_absent(value: Value) -> Value {
    match value {
        // An inlined value is shown as the value itself.
        Value::Object(fields) if fields.len() == 1 && fields.get("inline").is_some_and(Value::is_string) => {
            fields["inline"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
        }
        Value::Object(fields) => {
            fields.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name, without_absent(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_absent).collect(),
        other => other,
    }
}
