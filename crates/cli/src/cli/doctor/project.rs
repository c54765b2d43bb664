//! What can be wrong with a project: its folder, settings, database, drivers, and what was left running.

use super::Check;
use crate::open;
use lockgate::garbage;
use lockgate_engine::plural::counted;
use lockgate_engine::run::Status;
use lockgate_engine::time::Timestamp;
use lockgate_runner::config::Config;
use lockgate_runner::files::format_size;
use lockgate_runner::root::Root;
use lockgate_runner::runtime::{Clock, SystemClock};
use lockgate_store::{ListedRun, Page, PostgresStore, SqliteStore, Store, StoreError};
use rustix::fs::statvfs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// With less room than this, runs are about to stop.
const LITTLE_ROOM: u64 = 200_000_000;

/// How many runs are named in one finding.
const NAMED: usize = 5;

/// How far a clock may be behind what was written, before anybody is bothered.
const SLACK: Duration = Duration::from_secs(60);

pub(super) async fn checks(root: &Root) -> Vec<Check> {
    if !root.state_dir().is_dir() {
        let found = format!("there is no {}", root.state_dir().display());
        let fix = "is this the right folder? `lockgate init` makes a project in the current one";
        return vec![Check::failed("project", found, fix)];
    }
    let mut checks = vec![folder(root), room(root), settings(root)];
    checks.extend(Config::read(&root.config_file()).iter().flat_map(|config| super::agents::checks(config, root.dir())));
    checks.extend(Config::read(&root.config_file()).iter().filter_map(|config| super::notices::command(config, root.dir())));
    checks.extend(committed_state(root));
    // Before the database is asked: lists of runs clear dead drivers away by themselves.
    checks.extend(garbage(root));
    checks.extend(database(root).await);
    checks
}

fn folder(root: &Root) -> Check {
    let probe = root.state_dir().join(format!(".lockgate-{:032x}.tmp", u128::from_be_bytes(SystemClock.seed())));
    let written = std::fs::File::create_new(&probe);
    lockgate_store::cleanup::remove_file(&probe);
    let folder = root.state_dir().display().to_string();
    match written {
        Err(error) => Check::failed("project", format!("{folder} cannot be written: {error}"), "make it writable for you"),
        Ok(_) if on_network(root) => Check::failed(
            "project",
            format!("{folder} lies on a network file system"),
            "locks and databases are not safe there: move the project to a local disk",
        ),
        Ok(_) => Check::ok("project", folder),
    }
}

#[cfg(target_os = "linux")]
fn on_network(root: &Root) -> bool {
    // NFS, SMB, CIFS, SMB2, AFS, Coda, Ceph, as `statfs` calls them.
    const NETWORK: [u32; 7] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x5346_414f, 0x7375_7245, 0x00c3_6400];
    // The type has another width on every machine; all of these fit into 32 bits.
    rustix::fs::statfs(root.state_dir()).is_ok_and(|file_system| NETWORK.contains(&(file_system.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn on_network(_: &Root) -> bool {
    false
}

fn room(root: &Root) -> Check {
    match statvfs(root.state_dir()) {
        Err(error) => Check::failed("disk", format!("how much room is left cannot be found: {error}"), "look at the disk"),
        Ok(disk) => {
            let left = disk.f_bavail.saturating_mul(disk.f_frsize);
            // A file system that does not count its files says that it can have none.
            let no_names = disk.f_files > 0 && disk.f_favail < 1000;
            if left < LITTLE_ROOM {
                Check::failed("disk", format!("only {} are left", format_size(left)), "free some space; `lockgate gc` may help")
            } else if no_names {
                Check::failed(
                    "disk",
                    format!("there is room for only {}", counted(disk.f_favail, "more file")),
                    "remove files that you no longer need",
                )
            } else {
                Check::ok("disk", format!("{} are left", format_size(left)))
            }
        }
    }
}

fn settings(root: &Root) -> Check {
    let path = root.config_file();
    match Config::read(&path) {
        Err(error) => Check::failed("settings", error.to_string(), error.help.unwrap_or_else(|| "correct it there".to_owned())),
        Ok(_) if path.exists() => Check::ok("settings", path.display().to_string()),
        Ok(_) => Check::ok("settings", "there is no config.yaml, so everything has its default"),
    }
}

/// State that is under version control would be put back in time by a checkout.
fn committed_state(root: &Root) -> Option<Check> {
    let mut command = Command::new("git");
    command.args(["ls-files", "--", ".lockgate"]).current_dir(root.dir()).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut state = listed.lines().filter(|path| !path.ends_with("/config.yaml") && !path.ends_with("/.gitignore"));
    let first = state.next()?;
    Some(Check::failed(
        "git state",
        format!("{first} is under version control; a checkout would take runs back in time"),
        "git rm -r --cached .lockgate && git add .lockgate/config.yaml .lockgate/.gitignore",
    ))
}

async fn database(root: &Root) -> Vec<Check> {
    // Bad settings were told already.
    let Ok(config) = Config::read(&root.config_file()) else { return Vec::new() };
    let elsewhere = open::database_of(&config);
    let opened: Result<Box<dyn Store>, StoreError> = match &elsewhere {
        Some(url) => PostgresStore::connect(url).map(|store| Box::new(store) as Box<dyn Store>),
        None => SqliteStore::open_existing(&root.state_dir()).map(|store| Box::new(store) as Box<dyn Store>),
    };
    let store = match opened {
        Ok(store) => store,
        Err(StoreError::NotFound(_)) => {
            return vec![Check::missing("database", "there is none yet", "`lockgate run FILE` makes it")];
        }
        Err(error) if elsewhere.is_some() => {
            let fix = "start the server, or correct `database` in .lockgate/config.yaml or LOCKGATE_DATABASE_URL";
            return vec![Check::failed("database", error.to_string(), fix)];
        }
        Err(error) => return vec![unusable(&error)],
    };
    let looked = async { Ok::<_, StoreError>((store.damage().await?, store.runs(Page::ALL).await?)) };
    let (damage, runs) = match looked.await {
        Ok(looked) => looked,
        Err(error) => return vec![unusable(&error)],
    };
    if let Some(first) = damage.first() {
        let fix = "keep a copy of it, then `lockgate restore BACKUP --force`; `lockgate verify` says what is lost";
        return vec![Check::failed("database", format!("it is damaged: {first}"), fix)];
    }
    let size = || root.database_file().metadata().map(|metadata| metadata.len()).unwrap_or(0);
    let place = if elsewhere.is_some() { "in PostgreSQL".to_owned() } else { format_size(size()) };
    let told = format!("{}, {place}", counted(runs.len(), "run"));
    let mut checks = vec![Check::ok("database", told)];
    checks.extend(clock_went_back(&runs, SystemClock.now()));
    checks.push(interrupted(&runs));
    checks.extend(super::notices::outbox(&*store, config.notify.command.is_some()).await);
    checks.push(left_running(root, &runs));
    checks
}

fn unusable(error: &StoreError) -> Check {
    Check::failed("database", error.to_string(), "`lockgate restore BACKUP --force` puts back a backup and keeps what is there")
}

fn clock_went_back(runs: &[ListedRun], now: Timestamp) -> Option<Check> {
    let newest = runs.iter().map(|run| run.row.changed_at).max().filter(|newest| newest.since(now) > SLACK)?;
    let found = format!("the clock shows {now}, but something was written at {newest}");
    Some(Check::failed("clock", found, "set the clock; until then, waits and deadlines come late"))
}

fn interrupted(runs: &[ListedRun]) -> Check {
    let stopped: Vec<&ListedRun> = runs.iter().filter(|run| run.row.status.is(Status::Running) && !run.driven).collect();
    let driven = runs.iter().filter(|run| run.driven).count();
    let Some(first) = stopped.first() else {
        return Check::ok("drivers", format!("{} driven, none was interrupted", are(driven, "run")));
    };
    let found = format!("{} interrupted: {}", were(stopped.len(), "run"), named(&stopped));
    Check::failed("drivers", found, format!("`lockgate resume {}` goes on where it stopped", first.row.run))
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

/// Processes of tasks that nobody watches. Locks of runs that are driven are left alone: looking at one takes it for a moment.
fn left_running(root: &Root, runs: &[ListedRun]) -> Check {
    let mut left = Vec::new();
    for run in runs.iter().filter(|run| !run.driven) {
        left.extend(garbage::held_locks(root, &run.row.run).into_iter().map(|(_, pid)| (run, pid)));
    }
    let Some((first, _)) = left.first() else { return Check::ok("orphans", "nothing that a task started was left running") };
    let told: Vec<String> = left.iter().take(NAMED).map(|(run, pid)| format!("process {pid} of run {}", run.row.run)).collect();
    let found = format!("{} left running: {}", were(left.len(), "task"), told.join(", "));
    let fix = match first.row.status.known().is_some_and(Status::is_unfinished) {
        true => format!("`lockgate resume {}` ends it before it goes on", first.row.run),
        false => "look at it, and end it by its pid if it is not wanted".to_owned(),
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
        "`lockgate gc` removes them; they do no harm",
    ))
}
