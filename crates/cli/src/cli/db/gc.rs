//! `lockgate db gc`: remove files and values that no run needs.

use super::super::help::examples;
use super::super::runs::removed_line;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print::{self, FAINT, styled};
use lockgate::gc::garbage::GarbageKind;
use lockgate::gc::{Collected, CollectedView};
use lockgate::sanitize;
use lockgate_engine::plural::counted;
use lockgate_engine::run::command::Channel;
use lockgate_runner::files::format_size;
use std::collections::BTreeMap;
use std::path::Path;

/// Remove old runs, and files and values that no run needs
///
/// Old runs are finished ones that the `retention` setting no longer keeps. Garbage is what dead processes and removed runs left behind, worktrees without
/// work, and unreferenced stored values.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate db gc --dry-run",
    "lockgate db gc",
]))]
pub(super) struct Arguments {
    /// Only list what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        if self.dry_run {
            Authority::Anyone
        } else {
            Authority::OutsideTasks(Decision::about_project("remove files and values that no run needs"))
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let collected = match arguments.dry_run {
        true => project.find_leftovers().await?,
        false => project.collect_garbage(&project.caller(Channel::Command)).await?,
    };
    let Collected { found, errors, .. } = &collected;
    let exit = if errors.is_empty() { Exit::Done } else { Exit::Failed };
    if arguments.json {
        print::json(&CollectedView::of(&collected, project.root().dir(), arguments.dry_run));
        return Ok(exit);
    }
    print::data(&text(&collected, project.root().dir(), arguments.dry_run));
    for path in &found.kept {
        let path = shown(path, project.root().dir());
        print::note(format_args!("{path} is kept because it may contain your files; remove it yourself if you do not need it"));
    }
    for path in &found.worktrees {
        let path = shown(path, project.root().dir());
        print::note(format_args!("{path} is kept because it contains work; list, merge or remove it with `lockgate worktrees`"));
    }
    for error in errors {
        print::warn(sanitize::line(error));
    }
    Ok(exit)
}

fn shown(path: &Path, root: &Path) -> String {
    sanitize::line(&path.strip_prefix(root).unwrap_or(path).to_string_lossy()).into_owned()
}

fn text(collected: &Collected, root: &Path, dry_run: bool) -> String {
    let Collected { runs, found, values, .. } = collected;
    let mut text: String = runs.iter().map(|run| removed_line(run, dry_run)).collect();
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
    for (kind, (count, bytes)) in &kinds {
        let count = (*count).max(1);
        text.push_str(&format!("{word} {count} {}, {}\n", kind.words(count), format_size(*bytes)));
    }
    if values.count > 0 {
        let what = counted(values.count, "stored value");
        text.push_str(&format!("{word} {what} without references, {}\n", format_size(values.bytes)));
    }
    if text.is_empty() {
        return "nothing to remove\n".to_owned();
    }
    text.push_str(&format!("{} in all\n", format_size(collected.bytes())));
    text
}
