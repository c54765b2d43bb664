//! Which run or hold somebody means: an id, an unambiguous beginning of one, or a feature's name.

use crate::neutral;
use crate::trouble::Trouble;
use lockgate_engine::id::HoldId;
use lockgate_store::{ListedHold, ListedRun, Store};

/// How many matches an error lists.
const LISTED: usize = 10;

/// The run that somebody means.
pub(crate) async fn run(store: &dyn Store, named: &str) -> Result<ListedRun, Trouble> {
    let prefix = named.to_ascii_lowercase();
    let mut by_id = if prefix.is_empty() { Vec::new() } else { store.find_runs(&prefix).await? };
    if let Some(exact) = by_id.iter().position(|found| found.row.run.as_str() == prefix) {
        return Ok(by_id.swap_remove(exact));
    }
    let about = store.runs_of_feature(named).await?;
    if let Some(newest) = about.first() {
        let newest = format!("its newest run is {}, and it is {}", newest.row.run, newest.row.status);
        return about.into_iter().find(unfinished).ok_or_else(|| {
            Trouble::misuse(format!("all runs about {named:?} have ended")).help(format!("{newest}; name it by its id"))
        });
    }
    match by_id.len() {
        0 => Err(Trouble::misuse(format!("there is no run {named:?}")).help("`lockgate runs` lists those that are")),
        1 => Ok(by_id.swap_remove(0)),
        _ => Err(ambiguous("run", named, by_id.iter().map(describe_run))),
    }
}

fn unfinished(found: &ListedRun) -> bool {
    matches!(found.row.status.as_str(), "running" | "waiting" | "failed")
}

fn describe_run(found: &ListedRun) -> String {
    let row = &found.row;
    let feature = row.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
    format!("{}  {}{feature}  {}", row.run, row.workflow, row.status)
}

/// A hold as it is named on a command line: `ID` or `ID@REV`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HoldName {
    /// The id, or a beginning of it.
    pub(crate) id: String,
    /// The revision that was seen.
    pub(crate) revision: Option<u32>,
}

/// Reads `ID` or `ID@REV`.
pub(crate) fn hold_name(named: &str) -> Result<HoldName, Trouble> {
    let (id, revision) = match named.split_once('@') {
        None => (named, None),
        Some((id, revision)) => {
            let number = revision.parse().map_err(|_| {
                Trouble::misuse(format!("{revision:?} is no revision"))
                    .help("name a hold as ID or ID@REV, for example 7f3kq2ab@1")
            })?;
            (id, Some(number))
        }
    };
    Ok(HoldName { id: id.to_ascii_lowercase(), revision })
}

/// The hold that somebody means.
pub(crate) async fn hold(store: &dyn Store, named: &HoldName) -> Result<ListedHold, Trouble> {
    let mut found = if named.id.is_empty() { Vec::new() } else { store.find_holds(&named.id).await? };
    if let Some(exact) = found.iter().position(|found| found.row.hold == HoldId::new(named.id.as_str())) {
        return Ok(found.swap_remove(exact));
    }
    match found.len() {
        0 => Err(Trouble::misuse(format!("there is no hold {:?}", named.id)).help("`lockgate inbox` lists those that wait")),
        1 => Ok(found.swap_remove(0)),
        _ => Err(ambiguous("hold", &named.id, found.iter().map(describe_hold))),
    }
}

fn describe_hold(found: &ListedHold) -> String {
    let row = &found.row;
    format!("{}@{}  {}  run {}  {}", row.hold, row.revision, found.workflow, row.run, row.state.word())
}

fn ambiguous(what: &str, named: &str, matches: impl ExactSizeIterator<Item = String>) -> Trouble {
    let more = matches.len().saturating_sub(LISTED);
    let mut listed: Vec<String> = matches.take(LISTED).map(|text| neutral::line(&text).into_owned()).collect();
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    Trouble::misuse(format!("several {what}s begin with {named:?}")).help(format!("write more of the id:\n{}", listed.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_named_with_or_without_its_revision() {
        assert_eq!(hold_name("ABcd").unwrap(), HoldName { id: "abcd".into(), revision: None });
        assert_eq!(hold_name("abcd@12").unwrap(), HoldName { id: "abcd".into(), revision: Some(12) });
        assert!(hold_name("abcd@new").is_err());
    }
}
