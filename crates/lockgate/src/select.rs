//! Resolves names to runs, holds, tasks and gates: ids and their unambiguous prefixes, feature and workflow names, `@`, task addresses.

use crate::code::Code;
use crate::error::Error;
use crate::preset_answers::{calls_agents, nearest};
use crate::removal::{FINISHED, must_be_finished};
use crate::sanitize;
use lockgate_engine::id::{GateId, HoldId, PhaseId, StepKey, TaskId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::Status;
use lockgate_engine::run::index::NamedVariants as _;
use lockgate_runner::load::load;
use lockgate_runner::projection::runs_of;
use lockgate_store::{ListedHold, ListedRun, Page, RunFilter, Store};
use std::collections::BTreeSet;

/// How many matches an error lists.
const LISTED: usize = 10;

/// Names the newest run, unfinished runs first.
pub const NEWEST: &str = "@";

/// Finds the run to change or end. A run that has ended must be named by its id.
pub async fn run(store: &dyn Store, named: &str) -> Result<ListedRun, Error> {
    find_run(store, named, Ended::ByIdOnly).await
}

/// Finds the run to read or continue. If every matching run has ended, that is the newest of them.
pub async fn run_or_ended(store: &dyn Store, named: &str) -> Result<ListedRun, Error> {
    find_run(store, named, Ended::NewestToo).await
}

/// Finds the run to remove. A name other than an id selects the newest run that has ended for good; a run that may still continue is refused.
pub async fn finished_run(store: &dyn Store, named: &str) -> Result<ListedRun, Error> {
    let finished = RunFilter::with_status(FINISHED);
    let by_id = store.find_runs(&named.to_ascii_lowercase()).await?;
    let by_name = match named {
        NEWEST => newest_of(store, finished).await?,
        named if by_id.iter().any(|found| found.row.run.as_str().eq_ignore_ascii_case(named)) => None,
        named => {
            let about = RunFilter { feature: Some(named.to_owned()), ..finished.clone() };
            match newest_of(store, about).await? {
                Some(found) => Some(found),
                None => newest_of(store, RunFilter { workflow: Some(named.to_owned()), ..finished }).await?,
            }
        }
    };
    let found = match by_name {
        Some(found) => found,
        None => run_or_ended(store, named).await?,
    };
    must_be_finished(&found.row.run, &found.row.status)?;
    Ok(found)
}

async fn newest_of(store: &dyn Store, filter: RunFilter) -> Result<Option<ListedRun>, Error> {
    Ok(store.list_runs(filter, Page::first(1)).await?.into_iter().next())
}

/// Whether a name other than an id can select a run that has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    ByIdOnly,
    NewestToo,
}

async fn find_run(store: &dyn Store, named: &str, ended: Ended) -> Result<ListedRun, Error> {
    if named == NEWEST {
        let newest = newest(store, RunFilter::default()).await?;
        let newest = newest.ok_or_else(|| {
            Error::new(Code::RunNotFound, "this project has no runs yet").help("start one with `lockgate run FILE`")
        })?;
        return unfinished_or(newest, ended, || "every run has ended".to_owned());
    }
    let prefix = named.to_ascii_lowercase();
    let mut by_id = if prefix.is_empty() { Vec::new() } else { store.find_runs(&prefix).await? };
    if let Some(exact) = by_id.iter().position(|found| found.row.run.as_str() == prefix) {
        return Ok(by_id.swap_remove(exact));
    }
    if let Some(newest) = by_name(store, named).await? {
        return unfinished_or(newest, ended, || format!("all runs of {named:?} have ended"));
    }
    match by_id.len() {
        0 => Err(Error::new(Code::RunNotFound, format!("no run {named:?}")).help("list the runs with `lockgate runs`")),
        1 => Ok(by_id.swap_remove(0)),
        _ => Err(ambiguous("run", named, by_id.iter().map(describe_run))),
    }
}

/// The newest run about a feature or, if there is none, of a workflow; unfinished runs first.
async fn by_name(store: &dyn Store, named: &str) -> Result<Option<ListedRun>, Error> {
    // A pipeline has one current run. Runs that a newer one replaced are found by their ids only.
    if let Some(newest) = runs_of(store, named).await?.into_iter().next()
        && load(store, &newest.row.run).await?.pipeline.is_some()
    {
        return Ok(Some(newest));
    }
    let about = RunFilter { feature: Some(named.to_owned()), ..RunFilter::default() };
    if let Some(found) = newest(store, about).await? {
        return Ok(Some(found));
    }
    newest(store, RunFilter { workflow: Some(named.to_owned()), ..RunFilter::default() }).await
}

/// The newest run that matches a filter, unfinished runs first.
async fn newest(store: &dyn Store, filter: RunFilter) -> Result<Option<ListedRun>, Error> {
    let statuses = Status::ALL.iter().copied().filter(|status| status.is_unfinished()).collect();
    let unfinished = store.list_runs(RunFilter { statuses, ..filter.clone() }, Page::first(1)).await?;
    if let Some(found) = unfinished.into_iter().next() {
        return Ok(Some(found));
    }
    newest_of(store, filter).await
}

fn unfinished_or(found: ListedRun, ended: Ended, all_ended: impl FnOnce() -> String) -> Result<ListedRun, Error> {
    if ended == Ended::NewestToo || unfinished(&found) {
        return Ok(found);
    }
    let newest =
        format!("the newest is {}, and it is {}; start a new run with `lockgate run FILE`", found.row.run, found.row.status);
    Err(Error::new(Code::RunEnded, all_ended()).help(newest))
}

fn unfinished(found: &ListedRun) -> bool {
    found.row.status.known().is_some_and(Status::is_unfinished)
}

fn describe_run(found: &ListedRun) -> String {
    let row = &found.row;
    let feature = row.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
    format!("{}  {}{feature}  {}", row.run, row.workflow, row.status)
}

/// A hold as named on a command line: `ID` or `ID@REV`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldName {
    /// The id, or a prefix of it.
    pub id: String,
    /// The revision that was seen.
    pub revision: Option<u32>,
}

/// Parses `ID` or `ID@REV`.
pub fn hold_name(named: &str) -> Result<HoldName, Error> {
    let (id, revision) = match named.split_once('@') {
        None => (named, None),
        Some((id, revision)) => {
            let number = revision.parse().map_err(|_| {
                Error::new(Code::RevisionNotFound, format!("{revision:?} is not a revision"))
                    .help("name a hold as ID or ID@REV, for example 7f3kq2ab@1")
            })?;
            (id, Some(number))
        }
    };
    Ok(HoldName { id: id.to_ascii_lowercase(), revision })
}

/// Resolves a hold.
pub async fn hold(store: &dyn Store, named: &HoldName) -> Result<ListedHold, Error> {
    let mut found = if named.id.is_empty() { Vec::new() } else { store.find_holds(&named.id).await? };
    if let Some(exact) = found.iter().position(|found| found.row.hold == HoldId::new(named.id.as_str())) {
        return Ok(found.swap_remove(exact));
    }
    match found.len() {
        0 => Err(Error::new(Code::HoldNotFound, format!("no hold {:?}", named.id)).help("list open holds with `lockgate inbox`")),
        1 => Ok(found.swap_remove(0)),
        _ => Err(ambiguous("hold", &named.id, found.iter().map(describe_hold))),
    }
}

/// Resolves a possibly shortened name. Returns `None` if nothing matches.
pub fn one_of<'n>(kind: &str, named: &str, names: impl Iterator<Item = &'n str>) -> Result<Option<String>, Error> {
    let found: BTreeSet<&str> = names.filter(|name| !named.is_empty() && name.starts_with(named)).collect();
    match found.len() {
        0 | 1 => Ok(found.first().map(|name| (*name).to_owned())),
        _ if found.contains(named) => Ok(Some(named.to_owned())),
        _ => Err(ambiguous(kind, named, found.iter().map(|name| (*name).to_owned()))),
    }
}

/// A task or gate of a workflow, in any execution of its phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepName {
    /// A task, or one item of a task with `for_each`.
    Task(PhaseId, TaskId, Option<String>),
    /// A gate.
    Gate(PhaseId, GateId),
}

impl StepName {
    /// The phase.
    pub fn phase(&self) -> &PhaseId {
        match self {
            Self::Task(phase, ..) | Self::Gate(phase, _) => phase,
        }
    }

    /// The id, unique among the tasks or the gates of the phase.
    pub fn id(&self) -> &str {
        match self {
            Self::Task(_, task, _) => task.as_str(),
            Self::Gate(_, gate) => gate.as_str(),
        }
    }

    /// `task` or `gate`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Task(..) => "task",
            Self::Gate(..) => "gate",
        }
    }

    /// The key of the task or gate in one execution of its phase.
    pub fn key(&self, iteration: u32) -> StepKey {
        match self.clone() {
            Self::Task(phase, task, item) => StepKey::Task(TaskKey { phase, iteration, task, item }),
            Self::Gate(phase, gate) => StepKey::Gate { phase, iteration, gate },
        }
    }

    /// Whether the name selects this step: `phase/id` or `id`, either with `task:` or `gate:` before the id.
    fn is_selected_by(&self, named: &str) -> bool {
        let (phase, id) = named.split_once('/').map_or((None, named), |(phase, id)| (Some(phase), id));
        let plain = id.strip_prefix(self.kind()).and_then(|rest| rest.strip_prefix(':')).unwrap_or(id);
        phase.is_none_or(|phase| phase == self.phase().as_str()) && plain == self.id()
    }
}

/// Resolves a task or gate, or one item with `task[item]`.
pub fn step(run: &Run, named: &str) -> Result<StepName, Error> {
    let (name, item) = match named.strip_suffix(']').and_then(|named| named.split_once('[')) {
        Some((name, item)) => (name, Some(item.to_owned())),
        None => (named, None),
    };
    match whole_step(run, name)? {
        StepName::Task(phase, task, _) => Ok(StepName::Task(phase, task, item)),
        gate @ StepName::Gate(..) if item.is_none() => Ok(gate),
        StepName::Gate(..) => Err(Error::new(Code::TaskNotFound, format!("{name:?} is a gate, and has no items"))),
    }
}

fn whole_step(run: &Run, named: &str) -> Result<StepName, Error> {
    let workflow = &run.workflow;
    let all = workflow.phases.iter().flat_map(|phase| {
        let tasks = phase.tasks.iter().map(|task| StepName::Task(phase.id.clone(), task.id.clone(), None));
        tasks.chain(phase.gates.iter().map(|gate| StepName::Gate(phase.id.clone(), gate.id.clone())))
    });
    // Agents that were started dynamically. Those of an earlier phase are named with it.
    let called = run.current.iter().flat_map(|phase| {
        let spawned = phase.tasks.iter().filter(|task| task.spec.is_some());
        spawned.map(|task| StepName::Task(phase.id.clone(), task.task.clone(), None))
    });
    let all: Vec<StepName> = all.chain(called).collect();
    if let Some((phase, task)) = named.split_once('/')
        && !all.iter().any(|step| step.is_selected_by(named))
        && workflow.phase(phase).is_some_and(calls_agents)
    {
        return Ok(StepName::Task(PhaseId::from(phase), TaskId::from(task), None));
    }
    let meant: Vec<&StepName> = all.iter().filter(|step| step.is_selected_by(named)).collect();
    if let [only] = meant[..] {
        return Ok(only.clone());
    }
    if meant.is_empty() {
        let addresses: Vec<String> = all.iter().map(|step| format!("{}/{}", step.phase(), step.id())).collect();
        let ids = all.iter().map(StepName::id);
        let known = if named.contains('/') { nearest(named, addresses.iter().map(String::as_str)) } else { nearest(named, ids) };
        let help = match known {
            Some(known) => format!("did you mean {known:?}?"),
            None => {
                let more = if addresses.len() > LISTED { ", …" } else { "" };
                format!("it has {}{more}", addresses[..addresses.len().min(LISTED)].join(", "))
            }
        };
        return Err(Error::new(Code::TaskNotFound, format!("the workflow has no task or gate {named:?}")).help(help));
    }
    let same_address =
        |one: &StepName| meant.iter().filter(|other| (other.phase(), other.id()) == (one.phase(), one.id())).count() > 1;
    let told = |step: &StepName| match same_address(step) {
        true => format!("{}/{}:{}", step.phase(), step.kind(), step.id()),
        false => format!("{}/{}", step.phase(), step.id()),
    };
    let more = meant.len().saturating_sub(LISTED);
    let mut listed: Vec<String> = meant.iter().take(LISTED).map(|step| told(step)).collect();
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    Err(Error::new(Code::AmbiguousName, format!("several tasks or gates are called {named:?}"))
        .help(format!("name one of them:\n{}", listed.join("\n"))))
}

fn describe_hold(found: &ListedHold) -> String {
    let row = &found.row;
    format!("{}@{}  {}  run {}  {}", row.hold, row.revision, found.workflow, row.run, row.state.as_str())
}

fn ambiguous(what: &str, named: &str, matches: impl ExactSizeIterator<Item = String>) -> Error {
    let more = matches.len().saturating_sub(LISTED);
    let mut listed: Vec<String> = matches.take(LISTED).map(|text| sanitize::line(&text).into_owned()).collect();
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    Error::new(Code::AmbiguousName, format!("several {what}s start with {named:?}"))
        .help(format!("write more of the id:\n{}", listed.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_can_be_named_with_or_without_its_revision() {
        assert_eq!(hold_name("ABcd").unwrap(), HoldName { id: "abcd".into(), revision: None });
        assert_eq!(hold_name("abcd@12").unwrap(), HoldName { id: "abcd".into(), revision: Some(12) });
        assert!(hold_name("abcd@new").is_err());
    }
}
