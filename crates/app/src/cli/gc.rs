//! `lockgate gc`: remove what no run needs.

use crate::code::Code;
use crate::exit::Exit;
use crate::leftovers::{self, Found, Kind, Standing};
use crate::neutral;
use crate::open::Project;
use crate::print::{self, FAINT, styled};
use crate::trouble::Trouble;
use lockgate_runner::files::size_text;
use lockgate_store::Unreferred;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::SystemTime;

/// Removes what no run needs: leftovers of dead processes, of runs that no longer exist, and values without reference
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only says what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    let project = Project::open(root)?;
    let unreadable = |error: std::io::Error| {
        let message = format!("{} cannot be looked through: {error}", project.root.folder().display());
        Trouble::new(Code::Unwritable, message).help("make it readable and writable for you")
    };
    // In this order: a run that is created meanwhile is not taken for one that is gone. (And by scanning: a list of runs clears dead
    // drivers away by itself, so that nothing could be said of them.)
    let names = leftovers::run_folders(&project.root).map_err(unreadable)?;
    let standings: Vec<_> = {
        let mut standings = Vec::new();
        let mut after = None;
        loop {
            let runs = project.store().scan_runs(after, 1000).await?;
            let Some(last) = runs.last() else { break };
            after = Some(last.place);
            standings.extend(runs.iter().map(|run| (run.row.run.clone(), Standing::of(&run.row.status))));
        }
        standings
    };
    let found = leftovers::find(&project.root, &names, &standings, SystemTime::now()).map_err(unreadable)?;
    let values = match arguments.dry_run {
        true => project.store().unreferred_values().await?,
        false => project.store().remove_unreferred_values().await?,
    };
    let mut troubles = Vec::new();
    if !arguments.dry_run {
        for leftover in &found.leftovers {
            if let Err(error) = leftover.remove() {
                troubles.push(format!("{} cannot be removed: {error}", leftover.path.display()));
            }
        }
    }
    print::data(&text(&found, values, project.root.dir(), arguments.dry_run));
    for path in &found.kept {
        let path = shown(path, project.root.dir());
        print::note(format_args!("{path} stays: it may hold what you want; remove it yourself if not"));
    }
    for trouble in &troubles {
        print::warn(neutral::line(trouble));
    }
    Ok(if troubles.is_empty() { Exit::Done } else { Exit::Failed })
}

fn shown(path: &Path, root: &Path) -> String {
    neutral::line(&path.strip_prefix(root).unwrap_or(path).to_string_lossy()).into_owned()
}

fn text(found: &Found, values: Unreferred, root: &Path, dry_run: bool) -> String {
    let mut text = String::new();
    let mut kinds: BTreeMap<Kind, (usize, u64)> = BTreeMap::new();
    for leftover in &found.leftovers {
        let (count, bytes) = kinds.entry(leftover.kind).or_default();
        *count += usize::from(leftover.counts());
        *bytes += leftover.bytes;
        if dry_run {
            let _ = writeln!(text, "{}", styled(FAINT, shown(&leftover.path, root)));
        }
    }
    let word = if dry_run { "would remove" } else { "removed" };
    let mut total = values.bytes;
    for (kind, (count, bytes)) in &kinds {
        let count = (*count).max(1);
        let _ = writeln!(text, "{word} {count} {}, {}", kind.words(count), size_text(*bytes));
        total += bytes;
    }
    if values.count > 0 {
        let what = if values.count == 1 { "value" } else { "values" };
        let _ = writeln!(text, "{word} {} stored {what} without reference, {}", values.count, size_text(values.bytes));
    }
    if text.is_empty() {
        return "there is nothing to remove\n".to_owned();
    }
    let _ = writeln!(text, "{} in all", size_text(total));
    text
}
