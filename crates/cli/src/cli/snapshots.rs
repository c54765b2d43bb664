//! `lockgate snapshots`: list, show, check, take, pin and remove snapshots.

use super::help::examples;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print::{self, FAINT, STRONG, styled};
use crate::run_argument::{NamedRun, RunArgument};
use lockgate::snapshots::{PRUNE, Pruned, RemovedSnapshot, SnapshotView, UNPIN};
use lockgate::{human_time, sanitize};
use lockgate_engine::plural::counted;
use lockgate_engine::run::command::Channel;
use lockgate_runner::files::format_size;
use serde_json::Value;
use std::path::Path;

/// List, show, check, take, pin and remove snapshots
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate snapshots list",
    "lockgate snapshots create",
    "lockgate snapshots show CP-build-20260114T1030",
]))]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the snapshots of a run, oldest first
    #[command(after_help = examples(&["lockgate snapshots list", "lockgate snapshots list d12cbewf --json"]))]
    List {
        #[command(flatten)]
        run: RunArgument,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a snapshot
    #[command(after_help = examples(&["lockgate snapshots show CP-build-20260114T1030", "lockgate snapshots show CP-build --json"]))]
    Show {
        #[command(flatten)]
        snapshot: Which,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check hashes, states and stored values of all snapshots of a run
    #[command(after_help = examples(&["lockgate snapshots verify", "lockgate snapshots verify d12cbewf --json"]))]
    Verify {
        #[command(flatten)]
        run: RunArgument,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a snapshot of a run now
    #[command(after_help = examples(&["lockgate snapshots create", "lockgate snapshots create d12cbewf --json"]))]
    Create {
        #[command(flatten)]
        run: RunArgument,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove the snapshots that retention does not keep
    #[command(after_help = examples(&["lockgate snapshots prune d12cbewf --dry-run", "lockgate snapshots prune d12cbewf"]))]
    Prune {
        #[command(flatten)]
        run: NamedRun,
        /// Only list what would be removed
        #[arg(long)]
        dry_run: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Protect a snapshot from removal
    #[command(after_help = examples(&["lockgate snapshots pin CP-build-20260114T1030", "lockgate snapshots pin CP-build --run d12cbewf"]))]
    Pin(Which),
    /// Let retention remove a snapshot again
    #[command(after_help = examples(&["lockgate snapshots unpin CP-build-20260114T1030", "lockgate snapshots unpin CP-build --run d12cbewf"]))]
    Unpin(Which),
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Snapshot: its id or the start of it
    #[arg(value_name = "CP-…")]
    id: String,
    /// Run that it belongs to [default: any]
    #[arg(long)]
    run: Option<String>,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        match &self.action {
            Action::List { .. }
            | Action::Show { .. }
            | Action::Verify { .. }
            | Action::Create { .. }
            | Action::Prune { dry_run: true, .. }
            | Action::Pin(_) => Authority::Anyone,
            Action::Prune { run, .. } => Authority::Person(Decision::about_run(PRUNE, &run.run)),
            Action::Unpin(Which { run: Some(run), .. }) => Authority::Person(Decision::about_run(UNPIN, run)),
            Action::Unpin(Which { run: None, .. }) => Authority::Person(Decision::about_project(UNPIN)),
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = match &arguments.action {
        Action::List { .. } | Action::Show { .. } | Action::Verify { .. } | Action::Prune { dry_run: true, .. } => {
            crate::open::open_read_only(root)?
        }
        Action::Create { .. } | Action::Prune { .. } | Action::Pin(_) | Action::Unpin(_) => crate::open::open(root)?,
    };
    match arguments.action {
        Action::List { run, json } => list(&project, run.name(), json).await,
        Action::Show { snapshot, json } => show(&project, &snapshot, json).await,
        Action::Verify { run, json } => verify(&project, run.name(), json).await,
        Action::Create { run, json } => create(&project, run.name(), json).await,
        Action::Prune { run, dry_run, json } => prune(&project, &run.run, dry_run, json).await,
        Action::Pin(which) => {
            let id = project.pin_snapshot(&which.id, which.run.as_deref()).await?;
            print::say(format_args!("{id} is kept until you unpin it"));
            Ok(Exit::Done)
        }
        Action::Unpin(which) => {
            let caller = project.caller(Channel::Command);
            let id = project.unpin_snapshot(&which.id, which.run.as_deref(), &caller).await?;
            print::say(format_args!("{id} is no longer pinned"));
            Ok(Exit::Done)
        }
    }
}

async fn list(project: &Project, run: &str, json: bool) -> Result<Exit, CommandError> {
    let listed = project.snapshots(run).await?;
    for error in &listed.unreadable {
        print::warn(sanitize::line(error.message()));
    }
    if json {
        print::json(&listed.snapshots);
        return Ok(Exit::Done);
    }
    if listed.snapshots.is_empty() {
        print::data(&format!("run {} has no snapshots\n", listed.run));
        return Ok(Exit::Done);
    }
    let now = project.now();
    let text: String = listed.snapshots.iter().map(|snapshot| line(snapshot, now)).collect();
    print::data(&text);
    Ok(Exit::Done)
}

fn line(snapshot: &SnapshotView, now: lockgate_engine::time::Timestamp) -> String {
    let mut notes = Vec::new();
    notes.extend(snapshot.latest.then_some("latest"));
    notes.extend(snapshot.pinned.then_some("pinned"));
    notes.extend((!snapshot.can_resume).then_some("cannot resume"));
    let notes = if notes.is_empty() { String::new() } else { format!("  {}", styled(FAINT, notes.join(", "))) };
    let (trigger, ago) = (snapshot.trigger.to_string(), human_time::ago(now, snapshot.created_at));
    format!("{}  {trigger:<17}  {ago:<14}  {:>8}{notes}\n", styled(STRONG, &snapshot.id), format_size(snapshot.bytes))
}

async fn show(project: &Project, which: &Which, json: bool) -> Result<Exit, CommandError> {
    let snapshot = project.snapshot(&which.id, which.run.as_deref()).await?;
    if json {
        print::json(&Value::Object(snapshot.content));
        return Ok(Exit::Done);
    }
    // The engine state is for Lockgate; people read the rest.
    let mut readable = snapshot.content;
    if let Some(Value::Object(engine)) = readable.get_mut("lockgate") {
        engine.retain(|key, _| key != "state" && key != "values");
    }
    print::data(&lockgate_runner::snapshot::text(&readable));
    Ok(Exit::Done)
}

async fn verify(project: &Project, run: &str, json: bool) -> Result<Exit, CommandError> {
    let checked = project.verify_snapshots(run).await?;
    let exit = if checked.iter().all(|known| known.ok) { Exit::Done } else { Exit::Failed };
    if json {
        print::json(&checked);
        return Ok(exit);
    }
    for known in &checked {
        match &known.error {
            None => print::data(&format!("{}  ok\n", styled(STRONG, &known.id))),
            Some(error) => print::data(&format!("{}  {}\n", styled(STRONG, &known.id), sanitize::line(error))),
        };
    }
    let bad = checked.iter().filter(|known| !known.ok).count();
    print::say(format_args!("{} checked, {bad} damaged", counted(checked.len() as u64, "snapshot")));
    Ok(exit)
}

async fn create(project: &Project, run: &str, json: bool) -> Result<Exit, CommandError> {
    let created = project.create_snapshot(run).await?;
    match json {
        true => print::json(&created),
        false => drop(print::data(&format!("{}\n", created.id))),
    }
    Ok(Exit::Done)
}

async fn prune(project: &Project, run: &str, dry_run: bool, json: bool) -> Result<Exit, CommandError> {
    let Pruned { removed, over_by } = match dry_run {
        true => project.plan_prune(run).await?,
        false => project.prune_snapshots(run, &project.caller(Channel::Command)).await?,
    };
    if json {
        print::json(&removed);
        return Ok(Exit::Done);
    }
    let word = if dry_run { "would remove" } else { "removed" };
    let line = |removed: &RemovedSnapshot| format!("{word} {}: {}\n", styled(STRONG, &removed.id), removed.reason);
    let text: String = removed.iter().map(line).collect();
    print::data(if text.is_empty() { "nothing to remove\n" } else { &text });
    if let Some(over) = over_by {
        print::note(format_args!(
            "what is left is {} larger than `checkpoint.storage.max_size_mb`, and all of it is protected",
            format_size(over)
        ));
    }
    Ok(Exit::Done)
}
