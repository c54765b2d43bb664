//! Which run, hold, task or gate somebody means: an id, an unambiguous beginning of one, a feature's name, an address.

use crate::code::Code;
use crate::error::Error;
use crate::preset_answers::{calls_agents, nearest};
use crate::sanitize;
use lockgate_engine::id::{GateId, HoldId, PhaseId, StepKey, TaskId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::Status;
use lockgate_runner::load::load;
use lockgate_runner::projection::runs_of;
use lockgate_store::{ListedHold, ListedRun, Store};
use std::collections::BTreeSet;

/// How many matches an error lists.
const LISTED: usize = 10;

/// The run that somebody means.
pub async fn run(store: &dyn Store, named: &str) -> Result<ListedRun, Error> {
    find_run(store, named, Ended::ByIdOnly).await
}

/// The run that somebody means who is glad if it has ended: where all runs about a feature have, the newest.
pub async fn run_or_ended(store: &dyn Store, named: &str) -> Result<ListedRun, Error> {
    find_run(store, named, Ended::NewestToo).await
}

/// Whether runs that have ended are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    ByIdOnly,
    NewestToo,
}

async fn find_run(store: &dyn Store, named: &str, ended: Ended) -> Result<ListedRun, Error> {
    let prefix = named.to_ascii_lowercase();
    let mut by_id = if prefix.is_empty() { Vec::new() } else { store.find_runs(&prefix).await? };
    if let Some(exact) = by_id.iter().position(|found| found.row.run.as_str() == prefix) {
        return Ok(by_id.swap_remove(exact));
    }
    let mut about = store.runs_of_feature(named).await?;
    // Of a pipeline there is one run, and one before which a new one was begun is meant by its id only.
    if let Some(newest) = runs_of(store, named).await?.into_iter().next()
        && load(store, &newest.row.run).await?.pipeline.is_some()
    {
        about = vec![newest];
    }
    if let Some(newest) = about.first() {
        if ended == Ended::NewestToo && !about.iter().any(unfinished) {
            return Ok(about.swap_remove(0));
        }
        let newest = format!("its newest run is {}, and it is {}", newest.row.run, newest.row.status);
        return about.into_iter().find(unfinished).ok_or_else(|| {
            Error::new(Code::RunEnded, format!("all runs about {named:?} have ended"))
                .help(format!("{newest}; name it by its id"))
        });
    }
    match by_id.len() {
        0 => {
            Err(Error::new(Code::RunNotFound, format!("there is no run {named:?}")).help("`lockgate runs` lists those that are"))
        }
        1 => Ok(by_id.swap_remove(0)),
        _ => Err(ambiguous("run", named, by_id.iter().map(describe_run))),
    }
}

fn unfinished(found: &ListedRun) -> bool {
    found.row.status.known().is_some_and(Status::is_unfinished)
}

fn describe_run(found: &ListedRun) -> String {
    let row = &found.row;
    let feature = row.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
    format!("{}  {}{feature}  {}", row.run, row.workflow, row.status)
}

/// A hold as it is named on a command line: `ID` or `ID@REV`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldName {
    /// The id, or a beginning of it.
    pub id: String,
    /// The revision that was seen.
    pub revision: Option<u32>,
}

/// Reads `ID` or `ID@REV`.
pub fn hold_name(named: &str) -> Result<HoldName, Error> {
    let (id, revision) = match named.split_once('@') {
        None => (named, None),
        Some((id, revision)) => {
            let number = revision.parse().map_err(|_| {
                Error::new(Code::RevisionNotFound, format!("{revision:?} is no revision"))
                    .help("name a hold as ID or ID@REV, for example 7f3kq2ab@1")
            })?;
            (id, Some(number))
        }
    };
    Ok(HoldName { id: id.to_ascii_lowercase(), revision })
}

/// The hold that somebody means.
pub async fn hold(store: &dyn Store, named: &HoldName) -> Result<ListedHold, Error> {
    let mut found = if named.id.is_empty() { Vec::new() } else { store.find_holds(&named.id).await? };
    if let Some(exact) = found.iter().position(|found| found.row.hold == HoldId::new(named.id.as_str())) {
        return Ok(found.swap_remove(exact));
    }
    match found.len() {
        0 => Err(Error::new(Code::HoldNotFound, format!("there is no hold {:?}", named.id))
            .help("`lockgate inbox` lists those that wait")),
        1 => Ok(found.swap_remove(0)),
        _ => Err(ambiguous("hold", &named.id, found.iter().map(describe_hold))),
    }
}

/// The one of some names that somebody means who may have shortened it; nothing when there is none.
pub fn one_of<'n>(kind: &str, named: &str, names: impl Iterator<Item = &'n str>) -> Result<Option<String>, Error> {
    let found: BTreeSet<&str> = names.filter(|name| !named.is_empty() && name.starts_with(named)).collect();
    match found.len() {
        0 | 1 => Ok(found.first().map(|name| (*name).to_owned())),
        _ if found.contains(named) => Ok(Some(named.to_owned())),
        _ => Err(ambiguous(kind, named, found.iter().map(|name| (*name).to_owned()))),
    }
}

/// A task or gate of a workflow, in whatever execution of its phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepName {
    /// A task, and the item of its list that is meant.
    Task(PhaseId, TaskId, Option<String>),
    /// A gate.
    Gate(PhaseId, GateId),
}

impl StepName {
    /// The phase that it belongs to.
    pub fn phase(&self) -> &PhaseId {
        match self {
            Self::Task(phase, ..) | Self::Gate(phase, _) => phase,
        }
    }

    /// Its id, unique among the tasks or among the gates of its phase.
    pub fn id(&self) -> &str {
        match self {
            Self::Task(_, task, _) => task.as_str(),
            Self::Gate(_, gate) => gate.as_str(),
        }
    }

    /// The word for what it is.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Task(..) => "task",
            Self::Gate(..) => "gate",
        }
    }

    /// It in one execution of its phase.
    pub fn key(&self, iteration: u32) -> StepKey {
        match self.clone() {
            Self::Task(phase, task, item) => StepKey::Task(TaskKey { phase, iteration, task, item }),
            Self::Gate(phase, gate) => StepKey::Gate { phase, iteration, gate },
        }
    }

    /// Whether it is meant by `phase/id`, `id`, or either with `task:` or `gate:` before the id.
    fn is_selected_by(&self, named: &str) -> bool {
        let (phase, id) = named.split_once('/').map_or((None, named), |(phase, id)| (Some(phase), id));
        let plain = id.strip_prefix(self.kind()).and_then(|rest| rest.strip_prefix(':')).unwrap_or(id);
        phase.is_none_or(|phase| phase == self.phase().as_str()) && plain == self.id()
    }
}

/// The task or gate that somebody means; `task[item]` for one item of a list.
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
    // Agents that were called under way; those of an earlier phase are named with it.
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
    Error::new(Code::AmbiguousName, format!("several {what}s begin with {named:?}"))
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
