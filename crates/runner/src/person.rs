//! Who is at the command line: a person at a terminal, or something that a task started.

use crate::process::inside::{ancestors, has_terminal};
use crate::root::Root;
use lockgate_engine::run::command::{Actor, Credential, Way};
use serde::Deserialize;

/// Names the task that a process runs inside of; Lockgate sets it for everything that it starts.
pub const TASK_VARIABLE: &str = "LOCKGATE_TASK";

/// Whoever started this process, coming by this way.
pub fn at_the_command_line(root: &Root, way: Way) -> Actor {
    let inside_task = inside_task(root);
    let credential = if inside_task.is_some() { Credential::Agent } else { Credential::Person };
    Actor { credential, name: user_name(), way, terminal: has_terminal(), inside_task }
}

/// The task that this process runs inside of: by its environment, or because a driver of this root is among its ancestors.
/// A driver adopts what its tasks leave behind, so a double fork does not lead away from it.
fn inside_task(root: &Root) -> Option<String> {
    if let Some(task) = std::env::var_os(TASK_VARIABLE) {
        let phase = std::env::var("LOCKGATE_PHASE").map(|phase| phase + "/").unwrap_or_default();
        return Some(format!("{phase}{}", task.to_string_lossy()));
    }
    let drivers = drivers(root);
    let ancestors = ancestors();
    let driver = drivers.iter().find(|driver| {
        ancestors.iter().any(|ancestor| ancestor.pid == driver.pid && ancestor.start_ticks == driver.start_ticks)
    })?;
    Some(format!("of process {}", driver.pid))
}

#[derive(Deserialize)]
struct DriverFile {
    pid: u32,
    start_ticks: u64,
}

fn drivers(root: &Root) -> Vec<DriverFile> {
    let Ok(files) = std::fs::read_dir(root.folder().join("drivers")) else { return Vec::new() };
    let texts = files.flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts.filter_map(|text| serde_json::from_str(&text).ok()).collect()
}

fn user_name() -> String {
    let known = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    known.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
}
