//! Who is at the command line: a person at a terminal, or a process that a task started.

use crate::process::task_ancestry::{Ancestor, ancestors, has_terminal};
use crate::process::{self, job_mark};
use crate::root::{Root, Step};
use crate::sys;
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Actor, Channel, Credential};
use lockgate_engine::run::state::TaskState;
use lockgate_engine::run::team::TaskAttempt;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};

/// Names the task that a process belongs to. Lockgate sets it for everything it starts.
pub const TASK_VARIABLE: &str = "LOCKGATE_TASK";

/// The actor who started this process.
pub fn cli_actor(root: &Root, channel: Channel) -> Actor {
    actor(channel, inside_task(root, &ancestors(), is_lockgate))
}

/// The actor of a program that embeds Lockgate. Such a program may have re-executed itself, so an ancestor running the same
/// program does not count as a driver for that reason alone.
pub fn embedder_actor(root: &Root, channel: Channel) -> Actor {
    actor(channel, inside_task(root, &ancestors(), is_named_lockgate))
}

/// The actor who started Lockgate, for a process that Lockgate started itself: its Lockgate ancestor is not a driver.
pub fn launcher_actor(root: &Root, channel: Channel) -> Actor {
    let above = ancestors();
    let above = match above.split_first() {
        Some((parent, rest)) if is_lockgate(parent.pid) => rest,
        Some(_) | None => &above,
    };
    actor(channel, inside_task(root, above, is_lockgate))
}

fn actor(channel: Channel, inside_task: Option<String>) -> Actor {
    let credential = if inside_task.is_some() { Credential::Agent } else { Credential::Person };
    let User { uid, name } = User::of_this_process();
    Actor { credential, name, channel, terminal: has_terminal(), inside_task, uid: Some(uid) }
}

/// The task that this process belongs to, according to its environment, the resource limit that marks everything a task
/// starts, or a driver of any root among its ancestors. A driver is the subreaper of its tasks, so a double fork does not
/// escape from it. If the ancestors cannot be read, the process counts as part of a task.
fn inside_task(root: &Root, ancestors: &[Ancestor], is_lockgate: fn(u32) -> bool) -> Option<String> {
    if let Some(task) = std::env::var_os(TASK_VARIABLE) {
        let phase = std::env::var("LOCKGATE_PHASE").map(|phase| phase + "/").unwrap_or_default();
        return Some(format!("{phase}{}", task.to_string_lossy()));
    }
    if job_mark::is_inside_job() {
        return Some("(unknown: this process has detached from it)".to_owned());
    }
    if sys::HAS_PROCESS_TABLE && ancestors.last().is_none_or(|last| last.pid != 1) {
        return Some("that cannot be seen from here (/proc does not show where this process came from)".to_owned());
    }
    let drivers = match drivers(root) {
        Ok(drivers) => drivers,
        Err(error) => return Some(format!("that cannot be ruled out (the processes that drive runs cannot be listed: {error})")),
    };
    let is_driver = |ancestor: &&Ancestor| {
        let of_this_root = drivers.iter().any(|driver| driver.pid == ancestor.pid && driver.start_ticks == ancestor.start_ticks);
        of_this_root || is_lockgate(ancestor.pid)
    };
    ancestors.iter().find(is_driver).map(|driver| format!("of process {}", driver.pid))
}

/// The running attempt of a run that this process belongs to, by the mark that everything a task starts inherits. The
/// environment counts only where there are no marks, because every process can change it.
pub fn task_attempt(root: &Root, run: &Run) -> Option<TaskAttempt> {
    let phase = run.current.as_ref()?;
    let lock = |attempt: &TaskAttempt| root.lock_file(&run.id, Step::Task(&attempt.key), attempt.attempt);
    let is_running = |index: &usize| phase.tasks[*index].state == TaskState::Running;
    let mut running = phase
        .running()
        .filter(is_running)
        .map(|index| TaskAttempt { key: phase.key(index), attempt: phase.tasks[index].attempts });
    if job_mark::is_inside_job() {
        return running.find(|attempt| job_mark::is_inside(&lock(attempt)));
    }
    let named = PathBuf::from(std::env::var_os(process::JOB_VARIABLE)?);
    running.find(|attempt| std::path::absolute(lock(attempt)).is_ok_and(|path| path == named))
}

/// Whether a process is Lockgate: the same program as this one, or one with that name.
fn is_lockgate(pid: u32) -> bool {
    let same = |program| std::env::current_exe().is_ok_and(|ours| ours == program);
    sys::program_of(pid).is_ok_and(same) || is_named_lockgate(pid)
}

fn is_named_lockgate(pid: u32) -> bool {
    let named = |program: PathBuf| program.file_name().is_some_and(|name| name == "lockgate");
    sys::program_of(pid).is_ok_and(named)
}

#[derive(Deserialize)]
struct DriverFile {
    pid: u32,
    start_ticks: u64,
}

/// The processes that drive runs of this root. An unreadable driver file is an error: overlooking a driver would let its
/// tasks pass for people.
fn drivers(root: &Root) -> io::Result<Vec<DriverFile>> {
    let folder = root.state_dir().join("drivers");
    let files = match std::fs::read_dir(&folder) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(about(&folder, &error)),
    };
    let mut drivers = Vec::new();
    for file in files {
        let path = file.map_err(|error| about(&folder, &error))?.path();
        // A file gets this extension once it is complete.
        if path.extension().is_none_or(|extension| extension != "lock") {
            continue;
        }
        match std::fs::read_to_string(&path) {
            Ok(text) => match serde_json::from_str(&text) {
                Ok(driver) => drivers.push(driver),
                Err(_) if !is_locked(&path) => {}
                Err(error) => return Err(about(&path, &error.into())),
            },
            // The driver has just ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(about(&path, &error)),
        }
    }
    Ok(drivers)
}

/// Whether a live process holds the lock of a driver file; otherwise the file is stale.
fn is_locked(path: &Path) -> bool {
    std::fs::File::open(path).is_ok_and(|file| file.try_lock_shared().is_err())
}

fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

struct User {
    uid: u32,
    name: String,
}

impl User {
    /// The real user of this process. The environment is not consulted, because the parent process controls it.
    fn of_this_process() -> Self {
        Self::of(rustix::process::getuid().as_raw())
    }

    /// A user by number. The name comes from the system's user database, which may be a directory service.
    fn of(uid: u32) -> Self {
        let known = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok().flatten();
        let name = known.map(|user| user.name).filter(|name| !name.is_empty());
        Self { uid, name: name.unwrap_or_else(|| format!("uid {uid}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_file_that_cannot_be_read_is_not_overlooked() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        assert!(drivers(&root).unwrap().is_empty());
        let folder = root.state_dir().join("drivers");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("one.lock"), r#"{"pid": 7, "host": "h", "start_ticks": 8}"#).unwrap();
        std::fs::write(folder.join("two.new"), "").unwrap();
        assert_eq!(drivers(&root).unwrap().len(), 1);
        std::fs::write(folder.join("two.lock"), "{").unwrap();
        assert_eq!(drivers(&root).unwrap().len(), 1, "no live process holds it");
        let held = std::fs::File::open(folder.join("two.lock")).unwrap();
        held.lock().unwrap();
        assert!(drivers(&root).is_err());
        let inside = inside_task(&root, &[Ancestor { pid: 1, start_ticks: 1 }], |_| false);
        assert!(inside.is_some_and(|task| task.contains("cannot be ruled out")));
    }

    #[test]
    fn a_user_name_comes_from_the_user_database() {
        let user = User::of(0);
        assert_eq!((user.uid, user.name.as_str()), (0, "root"));
    }

    #[test]
    fn a_user_without_a_name_is_shown_by_number() {
        let user = User::of(u32::MAX - 7);
        assert_eq!((user.uid, user.name.as_str()), (u32::MAX - 7, "uid 4294967288"));
    }
}
