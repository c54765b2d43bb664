//! Checks of a project: its directory, settings, database, drivers, and processes that tasks left running.

use super::Check;
use crate::open;
use crate::sys;
use lockgate::gc::garbage;
use lockgate_engine::plural::counted;
use lockgate_engine::run::Status;
use lockgate_engine::time::Timestamp;
use lockgate_runner::config::{Config, SettingsFile};
use lockgate_runner::files::format_size;
use lockgate_runner::root::Root;
use lockgate_runner::runtime::{Clock, SystemClock};
use lockgate_store::{ListedRun, Page, PostgresStore, SqliteStore, Store, StoreError};
use rustix::fs::statvfs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// With less free space than this, runs are about to stop.
const LITTLE_ROOM: u64 = 200_000_000;

/// How many runs one message names.
const NAMED: usize = 5;

/// Clock skew up to this is not reported.
const SLACK: Duration = Duration::from_secs(60);

pub(super) async fn checks(root: &Root) -> Vec<Check> {
    if !root.state_dir().is_dir() {
        let found = format!("{} does not exist", root.state_dir().display());
        let fix = "check that this is the right directory, or create a project here with `lockgate init`";
        return vec![Check::failed("project", found, fix)];
    }
    let mut checks = vec![directory(root), room(root), settings(root)];
    checks.extend(Config::read(root).iter().flat_map(|config| super::agents::checks(config, root.dir())));
    checks.extend(Config::read(root).iter().filter_map(|config| super::notices::command(config, root.dir())));
    checks.extend(committed_state(root));
    // Before the database is read: listing runs clears dead drivers.
    checks.extend(garbage(root));
    checks.extend(database(root).await);
    checks
}

fn directory(root: &Root) -> Check {
    let probe = root.state_dir().join(format!(".lockgate-{:032x}.tmp", u128::from_be_bytes(SystemClock.seed())));
    let written = std::fs::File::create_new(&probe);
    lockgate_store::cleanup::remove_file(&probe);
    let directory = root.state_dir().display().to_string();
    match written {
        Err(error) => Check::failed("project", format!("{directory} cannot be written: {error}"), "make it writable"),
        Ok(_) if sys::is_on_network(&root.state_dir()) => Check::failed(
            "project",
            format!("{directory} is on a network file system"),
            "locks and databases are not safe there: move the project to a local disk",
        ),
        Ok(_) => Check::ok("project", directory),
    }
}

fn room(root: &Root) -> Check {
    match statvfs(root.state_dir()) {
        Err(error) => Check::failed("disk", format!("the free space cannot be determined: {error}"), "check the disk"),
        Ok(disk) => {
            let left = disk.f_bavail.saturating_mul(disk.f_frsize);
            // A file system that does not count its files reports a maximum of 0.
            let no_names = disk.f_files > 0 && disk.f_favail < 1000;
            if left < LITTLE_ROOM {
                Check::failed("disk", format!("only {} free", format_size(left)), "free some space; `lockgate db gc` may help")
            } else if no_names {
                Check::failed(
                    "disk",
                    format!("the file system can only hold {}", counted(disk.f_favail, "more file")),
                    "remove files that you no longer need",
                )
            } else {
                Check::ok("disk", format!("{} free", format_size(left)))
            }
        }
    }
}

fn settings(root: &Root) -> Check {
    let files = [SettingsFile::Project, SettingsFile::Checkpoint].map(|file| file.path(root));
    let present: Vec<String> = files.iter().filter(|path| path.exists()).map(|path| path.display().to_string()).collect();
    match Config::read(root) {
        Err(error) => Check::failed("settings", error.to_string(), error.help.unwrap_or_else(|| "correct the file".to_owned())),
        Ok(_) if present.is_empty() => Check::ok("settings", "no config.yaml; all settings have their defaults"),
        Ok(_) => Check::ok("settings", present.join(" and ")),
    }
}

/// A checkout would roll back state that is under version control.
fn committed_state(root: &Root) -> Option<Check> {
    let mut command = Command::new("git");
    command.args(["ls-files", "--", ".lockgate"]).current_dir(root.dir()).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut state = listed.lines().filter(|path| !path.ends_with("/config.yaml") && !path.ends_with("/.gitignore"));
    let first = state.next()?;
    Some(Check::failed(
        "git state",
        format!("{first} is under version control; a checkout would roll back runs"),
        "git rm -r --cached .lockgate && git add .lockgate/config.yaml .lockgate/.gitignore",
    ))
}

async fn database(root: &Root) -> Vec<Check> {
    // Invalid settings are reported by another check.
    let Ok(config) = Config::read(root) else { return Vec::new() };
    let elsewhere = open::database_of(&config);
    let opened: Result<Box<dyn Store>, StoreError> = match &elsewhere {
        Some(url) => PostgresStore::connect(url).map(|store| Box::new(store) as Box<dyn Store>),
        None => SqliteStore::open_existing(&root.state_dir()).map(|store| Box::new(store) as Box<dyn Store>),
    };
    let store = match opened {
        Ok(store) => store,
        Err(StoreError::NotFound(_)) => {
            return vec![Check::missing("database", "no database yet", "`lockgate run FILE` creates it")];
        }
        Err(error) if elsewhere.is_some() => {
            let fix = "start the server, or correct `database` in .lockgate/config.yaml or LOCKGATE_DATABASE_URL";
            return vec![Check::failed("database", error.to_string(), fix)];
        }
        Err(error) => return vec![unusable(&error)],
    };
    let read = async { Ok::<_, StoreError>((store.damage().await?, store.runs(Page::ALL).await?)) };
    let (damage, runs) = match read.await {
        Ok(read) => read,
        Err(error) => return vec![unusable(&error)],
    };
    if let Some(first) = damage.first() {
        let fix = "keep a copy of it, then run `lockgate db restore BACKUP --force`; `lockgate db verify` lists the losses";
        return vec![Check::failed("database", format!("it is damaged: {first}"), fix)];
    }
    let size = || root.database_file().metadata().map(|metadata| metadata.len()).unwrap_or(0);
    let location = if elsewhere.is_some() { "in PostgreSQL".to_owned() } else { format_size(size()) };
    let message = format!("{}, {location}", counted(runs.len(), "run"));
    let mut checks = vec![Check::ok("database", message)];
    checks.extend(clock_went_back(&runs, SystemClock.now()));
    checks.push(interrupted(&runs));
    checks.extend(super::notices::outbox(&*store, config.notify.command.is_some()).await);
    checks.push(left_running(root, &runs));
    checks
}

fn unusable(error: &StoreError) -> Check {
    Check::failed(
        "database",
        error.to_string(),
        "restore a backup with `lockgate db restore BACKUP --force`; it keeps the current files",
    )
}

fn clock_went_back(runs: &[ListedRun], now: Timestamp) -> Option<Check> {
    let newest = runs.iter().map(|run| run.row.changed_at).max().filter(|newest| newest.since(now) > SLACK)?;
    let found = format!("the clock shows {now}, but the latest event is from {newest}");
    Some(Check::failed("clock", found, "set the clock; until then, retries and deadlines fire late"))
}

fn interrupted(runs: &[ListedRun]) -> Check {
    let stopped: Vec<&ListedRun> = runs.iter().filter(|run| run.row.status.is(Status::Running) && !run.driven).collect();
    let driven = runs.iter().filter(|run| run.driven).count();
    let Some(first) = stopped.first() else {
        return Check::ok("drivers", format!("{} driven, none was interrupted", are(driven, "run")));
    };
    let found = format!("{} interrupted: {}", were(stopped.len(), "run"), named(&stopped));
    Check::failed("drivers", found, format!("continue it with `lockgate resume {}`", first.row.run))
}

fn are(count: usize, word: &str) -> String {
    format!("{} {}", counted(count, word), if count == 1 { "is" } else { "are" })
}

fn were(count: usize, word: &str) -> String {
    format!("{} {}", counted(count, word), if count == 1 { "was" } else { "were" })
}

fn named(runs: &[&ListedRun]) -> String {
    let mut names: Vec<String> = runs.iter().take(NAMED).map(|run| run.row.run.to_string()).collect();
    names.extend((runs.len() > NAMED).then(|| format!("and {} more", runs.len() - NAMED)));
    names.join(", ")
}

/// Task processes that no process supervises. The locks of driven runs are not probed, because a probe briefly takes the lock.
fn left_running(root: &Root, runs: &[ListedRun]) -> Check {
    let mut left = Vec::new();
    for run in runs.iter().filter(|run| !run.driven) {
        left.extend(garbage::held_locks(root, &run.row.run).into_iter().map(|(_, pid)| (run, pid)));
    }
    let Some((first, _)) = left.first() else { return Check::ok("orphans", "no task was left running") };
    let named: Vec<String> = left.iter().take(NAMED).map(|(run, pid)| format!("process {pid} of run {}", run.row.run)).collect();
    let found = format!("{} left running: {}", were(left.len(), "task"), named.join(", "));
    let fix = match first.row.status.known().is_some_and(Status::is_unfinished) {
        true => format!("`lockgate resume {}` ends it before it continues", first.row.run),
        false => "check it, and kill it by its pid if you do not need it".to_owned(),
    };
    Check::failed("orphans", found, fix)
}

fn garbage(root: &Root) -> Option<Check> {
    let found = garbage::find(root, &[], &[], std::time::SystemTime::now()).ok()?;
    let bytes: u64 = found.garbage.iter().map(|item| item.bytes).sum();
    if found.garbage.is_empty() {
        return None;
    }
    Some(Check::failed(
        "garbage",
        format!("{} of dead processes, {}", found.garbage.len(), format_size(bytes)),
        "they are harmless; remove them with `lockgate db gc`",
    ))
}
