//! `lockgate gc`: remove what no run needs.

use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print::{self, FAINT, styled};
use lockgate::code::Code;
use lockgate::garbage::{self, GarbageKind, GarbageScan, RunLiveness};
use lockgate::sanitize;
use lockgate_engine::id::RunId;
use lockgate_engine::words::counted;
use lockgate_runner::commit::forget_runs;
use lockgate_runner::files::format_size;
use lockgate_store::Unreferenced;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

/// Removes what no run needs: leftovers of dead processes, of runs that no longer exist, worktrees without work, and values without reference
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only says what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// What was removed, or would be, for programs.
#[derive(Serialize)]
struct Removed {
    dry_run: bool,
    garbage: Vec<GarbageItemView>,
    values: ValuesView,
    bytes: u64,
    kept: Vec<String>,
    errors: Vec<String>,
}

#[derive(Serialize)]
struct GarbageItemView {
    kind: GarbageKind,
    path: String,
    bytes: u64,
}

#[derive(Serialize)]
struct ValuesView {
    count: u64,
    bytes: u64,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        if self.dry_run {
            Authority::Anyone
        } else {
            Authority::OutsideTasks(Decision::about_project("remove what no run needs"))
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let unreadable = |error: std::io::Error| {
        let message = format!("{} cannot be looked through: {error}", project.root.folder().display());
        CommandError::new(Code::Unwritable, message).help("make it readable and writable for you")
    };
    // In this order: a run that is created meanwhile is not taken for one that is gone. (And by scanning: a list of runs clears dead
    // drivers away by itself, so that nothing could be said of them.)
    let names = garbage::run_folders(&project.root).map_err(unreadable)?;
    let liveness: Vec<_> = {
        let mut liveness = Vec::new();
        let mut after = None;
        loop {
            let runs = project.store().scan_runs(after, 1000).await?;
            let Some(last) = runs.last() else { break };
            after = Some(last.place);
            liveness.extend(runs.iter().map(|run| (run.row.run.clone(), RunLiveness::of(&run.row.status))));
        }
        liveness
    };
    let mut found = garbage::find(&project.root, &names, &liveness, SystemTime::now()).map_err(unreadable)?;
    let looked = garbage::find_worktrees(&project.root, &liveness, SystemTime::now(), &mut found);
    let values = match arguments.dry_run {
        true => project.store().unreferenced_values().await?,
        false => project.store().remove_unreferenced_values().await?,
    };
    let mut errors: Vec<String> = looked.err().map(|why| format!("worktrees cannot be looked at: {why}")).into_iter().collect();
    if !arguments.dry_run {
        for item in &found.garbage {
            if let Err(error) = item.remove(&project.root) {
                errors.push(format!("{} cannot be removed: {error}", item.path.display()));
            }
        }
    }
    if !arguments.dry_run {
        let finished = |run: &RunId| liveness.iter().any(|(known, state)| known == run && *state == RunLiveness::Finished);
        if let Err(error) = forget_runs(project.root.dir(), finished, true) {
            // Outside git there are no snapshots either.
            tracing::debug!(%error, "snapshots of tasks are not removed");
        }
    }
    let exit = if errors.is_empty() { Exit::Done } else { Exit::Failed };
    if arguments.json {
        print::json(&removed(&found, values, project.root.dir(), arguments.dry_run, errors));
        return Ok(exit);
    }
    print::data(&text(&found, values, project.root.dir(), arguments.dry_run));
    for path in &found.kept {
        let path = shown(path, project.root.dir());
        print::note(format_args!("{path} stays: it may hold what you want; remove it yourself if not"));
    }
    for path in &found.worktrees {
        let path = shown(path, project.root.dir());
        print::note(format_args!("{path} stays: it holds work; `lockgate worktrees` says what, merges it and removes it"));
    }
    for error in &errors {
        print::warn(sanitize::line(error));
    }
    Ok(exit)
}

fn removed(found: &GarbageScan, values: Unreferenced, root: &Path, dry_run: bool, errors: Vec<String>) -> Removed {
    let path = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
    let Unreferenced { count, bytes } = values;
    Removed {
        dry_run,
        garbage: found
            .garbage
            .iter()
            .map(|left| GarbageItemView { kind: left.kind, path: path(&left.path), bytes: left.bytes })
            .collect(),
        values: ValuesView { count, bytes },
        bytes: bytes + found.garbage.iter().map(|left| left.bytes).sum::<u64>(),
        kept: found.kept.iter().chain(&found.worktrees).map(|kept| path(kept)).collect(),
        errors,
    }
}

fn shown(path: &Path, root: &Path) -> String {
    sanitize::line(&path.strip_prefix(root).unwrap_or(path).to_string_lossy()).into_owned()
}

fn text(found: &GarbageScan, values: Unreferenced, root: &Path, dry_run: bool) -> String {
    let mut text = String::new();
    let mut kinds: BTreeMap<GarbageKind, (usize, u64)> = BTreeMap::new();
    for item in &found.garbage {
        let (count, bytes) = kinds.entry(item.kind).or_default();
        *count += usize::from(item.counts());
        *bytes += item.bytes;
        if dry_run {
            text.push_str(&format!("{}\n", styled(FAINT, shown(&item.path, root))));
        }
    }
    let word = if dry_run { "would remove" } else { "removed" };
    let mut total = values.bytes;
    for (kind, (count, bytes)) in &kinds {
        let count = (*count).max(1);
        text.push_str(&format!("{word} {count} {}, {}\n", kind.words(count), format_size(*bytes)));
        total += bytes;
    }
    if values.count > 0 {
        let what = counted(values.count, "stored value");
        text.push_str(&format!("{word} {what} without reference, {}\n", format_size(values.bytes)));
    }
    if text.is_empty() {
        return "there is nothing to remove\n".to_owned();
    }
    text.push_str(&format!("{} in all\n", format_size(total)));
    text
}
