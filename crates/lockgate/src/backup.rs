//! Backing up the database while it is in use, and restoring a backup.

use crate::code::Code;
use crate::error::Error;
use crate::project::{Options, Project, database};
use lockgate_engine::run::Status;
use lockgate_engine::run::command::Caller;
use lockgate_runner::config::Config;
use lockgate_runner::root::Root;
use lockgate_runner::runtime::{Clock as _, SystemClock};
use lockgate_runner::verify::verify_all;
use lockgate_store::backup::put_in_place;
use lockgate_store::{Page, SqliteStore, Store as _};
use serde::Serialize;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How many findings an error lists.
const LISTED: usize = 5;

/// Suffixes of the files that SQLite keeps next to a database.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// The action, as it completes "may not …".
pub const RESTORE: &str = "restore a backup";

/// A backup that was written.
#[derive(Clone, Debug, Serialize)]
pub struct Backup {
    /// The file that was written.
    pub file: PathBuf,
    /// The number of runs in it.
    pub runs: usize,
    /// Its size.
    pub bytes: u64,
}

/// The result of restoring a backup.
#[derive(Clone, Debug, Serialize)]
pub struct Restored {
    /// The number of runs in the backup.
    pub runs: usize,
    /// How many of them are unfinished.
    pub unfinished: usize,
    /// The new path of the database that was replaced.
    pub moved_aside: Option<PathBuf>,
}

impl Project {
    /// Copies the database to a new file while runs continue. Logs and outputs are not part of a backup.
    pub async fn back_up(&self, file: &Path) -> Result<Backup, Error> {
        if file.symlink_metadata().is_ok() {
            return Err(Error::new(Code::FileExists, format!("{} already exists and is not overwritten", file.display()))
                .help("choose another name, or move the file"));
        }
        self.store().back_up(file.to_owned()).await?;
        let bytes = file.metadata().map(|metadata| metadata.len()).unwrap_or(0);
        let runs = self.store().runs(Page::ALL).await?.len();
        Ok(Backup { file: file.to_owned(), runs, bytes })
    }
}

/// Verifies a backup and makes it the database of a project. With `force`, an existing database is moved aside. The project need
/// not be opened, because its current database may be damaged.
pub async fn restore(root: &Root, file: &Path, force: bool, options: &Options, caller: &Caller) -> Result<Restored, Error> {
    caller.may_decide(RESTORE)?;
    must_be_a_backup(file)?;
    if database(&Config::read(root)?, options).is_some() {
        return Err(Error::new(
            Code::SqliteOnly,
            "the runs of this project are kept in PostgreSQL, but a backup can only be restored to SQLite",
        )
        .help(
            "to continue from the backup, remove `database` and LOCKGATE_DATABASE_URL; to restore a server, use its own tools",
        ));
    }
    root.prepare()?;
    let present_database = root.database_file();
    if !present(&present_database).is_empty() {
        if !force {
            let message = format!("the project already has a database: {}", present_database.display());
            return Err(Error::new(Code::DatabaseExists, message));
        }
        must_be_still(root)?;
    }
    // Verify the copy in a separate directory, so that no process opens it before it is known to be good.
    let aside = root.state_dir().join(format!("restore.new-{:032x}", u128::from_be_bytes(SystemClock.seed())));
    let restored = put_back(file, &aside, root).await;
    lockgate_store::cleanup::remove_dir(&aside);
    restored
}

async fn put_back(file: &Path, aside: &Path, root: &Root) -> Result<Restored, Error> {
    let fresh = aside.join("lockgate.db");
    let copied = std::fs::create_dir(aside).and_then(|()| std::fs::copy(file, &fresh));
    copied.map_err(|error| unwritable(root, &error))?;
    // The backup may be read-only, but its copy must be writable.
    let mut permissions = fresh.metadata().map_err(|error| unwritable(root, &error))?.permissions();
    permissions.set_mode(permissions.mode() | 0o600);
    std::fs::set_permissions(&fresh, permissions).map_err(|error| unwritable(root, &error))?;
    let (runs, unfinished) = verified(file, aside).await?;
    if companions(&fresh).iter().any(|path| path.metadata().is_ok_and(|metadata| metadata.len() > 0)) {
        return Err(Error::new(Code::DatabaseError, format!("the copy of {} could not be closed", file.display())));
    }
    let moved_aside = if present(&root.database_file()).is_empty() { None } else { Some(move_aside(root)?) };
    // The record of the expected commits describes the replaced database, not the backup.
    SqliteStore::accept_missing(&root.state_dir())?;
    put_in_place(&fresh, &root.database_file())?;
    Ok(Restored { runs, unfinished, moved_aside })
}

/// Verifies the copy and counts its runs, in total and unfinished.
async fn verified(file: &Path, aside: &Path) -> Result<(usize, usize), Error> {
    let bad = |detail: String| {
        let message = format!("{} cannot be restored: {detail}", file.display());
        Error::new(Code::BackupCorrupt, message).help("nothing was changed; use another backup")
    };
    let store = SqliteStore::open_existing(aside).map_err(|error| bad(error.to_string()))?;
    let findings = verify_all(&store).await.map_err(|error| bad(error.to_string()))?;
    if !findings.is_empty() {
        let mut listed: Vec<String> =
            findings.iter().take(LISTED).map(|found| format!("{}: {}", found.location, found.problem)).collect();
        listed.extend((findings.len() > LISTED).then(|| format!("and {} more", findings.len() - LISTED)));
        return Err(bad(format!("its contents differ from what was written\n{}", listed.join("\n"))));
    }
    let runs = store.runs(Page::ALL).await.map_err(|error| bad(error.to_string()))?;
    let open = runs.iter().filter(|run| run.row.status.known().is_some_and(Status::is_unfinished)).count();
    Ok((runs.len(), open))
}

fn must_be_a_backup(file: &Path) -> Result<(), Error> {
    let metadata = file
        .metadata()
        .map_err(|error| Error::new(Code::UnreadableFile, format!("{} cannot be read: {error}", file.display())))?;
    if !metadata.is_file() {
        return Err(Error::new(Code::NotAFile, format!("{} is not a file", file.display())));
    }
    if companion(file, "-wal").metadata().is_ok_and(|metadata| metadata.len() > 0) {
        return Err(Error::new(Code::NotABackup, format!("{} is a database in use, not a backup", file.display()))
            .help("create a backup of it with `lockgate db backup FILE` in its project"));
    }
    Ok(())
}

fn must_be_still(root: &Root) -> Result<(), Error> {
    let Some(driver) = SqliteStore::living_drivers(&root.state_dir())?.into_iter().next() else { return Ok(()) };
    let message =
        format!("process {} on {} has been driving runs of this database since {}", driver.pid, driver.host, driver.since);
    Err(Error::new(Code::DatabaseInUse, message).help("wait until it exits, or stop it, then restore"))
}

fn companion(database: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(database);
    name.push(end);
    PathBuf::from(name)
}

fn companions(database: &Path) -> Vec<PathBuf> {
    COMPANIONS.iter().map(|end| companion(database, end)).collect()
}

/// The existing files of a database. The companions of SQLite come first, so that after an interruption they cannot be mistaken
/// for those of another database.
fn present(database: &Path) -> Vec<PathBuf> {
    let mut all = companions(database);
    all.push(database.to_owned());
    all.into_iter().filter(|path| path.symlink_metadata().is_ok()).collect()
}

fn move_aside(root: &Root) -> Result<PathBuf, Error> {
    let database = root.database_file();
    // Opening and closing an intact database makes SQLite remove its companion files.
    drop(SqliteStore::open_existing(&root.state_dir()));
    let moment = SystemClock.now().to_string().replace(':', "-");
    let kept = companion(&database, &format!(".before-{moment}"));
    for path in present(&database) {
        let end = COMPANIONS.into_iter().find(|end| companion(&database, end) == path).unwrap_or("");
        match std::fs::rename(&path, companion(&kept, end)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(root, &error)),
        }
    }
    Ok(kept)
}

fn unwritable(root: &Root, error: &io::Error) -> Error {
    Error::new(Code::Unwritable, format!("{} cannot be written: {error}", root.state_dir().display()))
        .help("check its permissions and the free disk space, then try again")
}
