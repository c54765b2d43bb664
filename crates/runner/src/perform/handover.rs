//! Handovers between agents: the work of one is recorded, and the next continues from there.

use crate::git::git_with;
use lockgate_engine::run::handover::{Handover, HandoverKind};
use lockgate_engine::run::phase::Exchange;
use lockgate_formats::continuation::{Answered, Continuation};
use std::path::Path;

const MAX_COMMITS: usize = 1000;

/// The prompt section for the next agent; `None` if there was no handover.
pub(super) fn continuation(exchange: &Exchange) -> Option<String> {
    let handover = exchange.handover.as_deref()?;
    let (text, issues) = exchange.response.as_ref().map_or(("", false), |said| (said.text.as_str(), said.issues));
    let answered = match handover.kind {
        HandoverKind::Verify if issues => Answered::IssuesFound,
        HandoverKind::Verify => Answered::Approved,
        HandoverKind::Decision => Answered::Decided,
        HandoverKind::Action => Answered::Acted,
    };
    let block = Continuation {
        completed: handover.completed.clone(),
        number: handover.current.number.clone(),
        name: handover.current.name.clone(),
        response: text.to_owned(),
        answered,
    };
    Some(format!(
        "Another agent worked on this before you. Its completed tasks are committed: do not do them again. If you reach another \
         checkpoint, return the CHECKPOINT REACHED block with all completed tasks, its and yours.\n\n{}",
        block.render()
    ))
}

/// The handed-over commits to verify; empty if a person said that they need not exist.
pub(super) fn commits(exchange: &Exchange) -> Vec<String> {
    let named = exchange.handover.as_deref().filter(|_| !exchange.unchecked).map(named).unwrap_or_default();
    named.into_iter().map(str::to_owned).collect()
}

fn named(handover: &Handover) -> Vec<&str> {
    handover.completed.iter().filter_map(|done| done.commit.as_deref()).take(MAX_COMMITS).collect()
}

/// The commits that git does not know in a directory. Strings that do not look like commits are never passed to git.
pub(super) async fn missing(dir: &Path, commits: Vec<String>) -> Vec<String> {
    if commits.is_empty() {
        return Vec::new();
    }
    let dir = dir.to_owned();
    let looked = tokio::task::spawn_blocking(move || {
        let is_hash = |commit: &str| (4..=64).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let asked: Vec<&String> = commits.iter().filter(|commit| is_hash(commit)).collect();
        let names: String = asked.iter().map(|commit| format!("{commit}^{{commit}}\n")).collect();
        let output = git_with(&dir, &["cat-file", "--batch-check=%(objecttype)"], &names).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot check commits with git; they count as missing");
            String::new()
        });
        let known: Vec<&&String> =
            asked.iter().zip(output.lines()).filter(|(_, output)| *output == "commit").map(|(asked, _)| asked).collect();
        commits.iter().filter(|commit| !known.iter().any(|known| **known == *commit)).cloned().collect()
    });
    looked.await.unwrap_or_default()
}
