//! Shell commands as jobs: each runs in its own session, holds a lock, is monitored and logged, and is stopped with
//! everything it started.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `start`, `shell` | the first process: its session, lock, pipes and shell |
//! | `lock` | the lock file that shows whether any process of a job is alive |
//! | `pipes`, `output`, `lines`, `log`, `ring_buffer` | a job's output, on its way to people and files |
//! | `survivors`, `reaper`, `own_children` | processes that a job leaves behind, and which job they belong to |
//! | `orphans` | processes that outlived the Lockgate that started them |
//! | `table` | the process table |
//! | [`task_ancestry`] | the ancestors of this process |

mod error;
pub mod job_mark;
mod lines;
mod lock;
mod log;
mod orphans;
mod output;
mod own_children;
mod pipes;
mod reaper;
mod ring_buffer;
mod shell;
mod start;
mod stop;
mod survivors;
pub mod task_ancestry;

pub(crate) use survivors::MARK as JOB_VARIABLE;

pub(crate) use job_mark::in_marked_session;
pub(crate) use lines::Lines;
pub use log::LogLimits;
pub use orphans::{Orphans, end_all_orphans, end_orphans};
pub use output::OnOutput;
pub use own_children::{OwnChild, spawn_own_child};
pub use reaper::{become_subreaper, keep_reaping, reap_adopted};
pub use shell::{Program, default_shell, shell_text};
pub(crate) use start::OF_ANOTHER_REPOSITORY;
pub use start::run_locked;
pub use stop::Stop;

use crate::secret::Masks;
use crate::sys::{self, process_table as table};
use lockgate_engine::spec::workflow::Shell;
use lockgate_store::cleanup;
use output::Output;
use pipes::OutputPipes;
use rustix::process::Signal;
use start::Leader;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long killed processes may take to disappear before Lockgate gives up on them.
const PATIENCE: Duration = Duration::from_secs(2);
/// The minimum number of kill attempts before giving up: on a heavily loaded machine, time alone says little.
const KILLS: u32 = 20;

#[derive(Clone, Debug)]
pub struct Job {
    /// The command for the shell.
    pub command: String,
    /// The shell; `None` for bash, or `sh` on a machine without bash.
    pub shell: Option<Shell>,
    /// The working directory.
    pub dir: PathBuf,
    /// Variables to set, in addition to the environment of this process.
    pub env: Vec<(String, String)>,
    /// Variables of this process that are not inherited; one that is also in `env` is set.
    pub remove_env: Vec<String>,
    /// Standard input; empty if absent.
    pub stdin: Option<Vec<u8>>,
    pub timeout: Option<Duration>,
    /// The longest time without output.
    pub idle_timeout: Option<Duration>,
    /// How long its processes get to end by themselves.
    pub grace: Grace,
    /// The file that is locked for as long as any of its processes is alive.
    pub lock: PathBuf,
    /// The log file for its output.
    pub log: PathBuf,
    /// Masks for its output.
    pub masks: Arc<Masks>,
    pub limits: LogLimits,
}

/// The file for a value that is too large for the environment of a job.
pub fn value_file(lock: &std::path::Path) -> PathBuf {
    shell::job_file(lock, "feedback")
}

/// The policy file that tells an agent which tools it may use.
pub fn policy_file(lock: &std::path::Path) -> PathBuf {
    shell::job_file(lock, "policy.toml")
}

/// Writes the policy file, readable only by its owner.
pub fn write_policy_file(lock: &std::path::Path, text: &str) -> std::io::Result<()> {
    shell::write_private(&policy_file(lock), text.as_bytes())
}

/// Writes the value file, readable only by its owner.
pub fn write_value_file(lock: &std::path::Path, text: &str) -> std::io::Result<PathBuf> {
    let path = value_file(lock);
    shell::write_private(&path, text.as_bytes()).map(|()| path)
}

/// Removes the lock of a job without live processes, and the files next to it.
pub fn remove_lock(lock: &std::path::Path) {
    // If a file cannot be removed, the next cleanup retries it.
    for path in [lock.to_owned(), shell::script_file(lock), value_file(lock), policy_file(lock)] {
        cleanup::remove_file(&path);
    }
}

/// How long processes get between SIGTERM and SIGKILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// When the job is stopped or times out.
    pub stopped: Duration,
    /// For processes that the job left running when it ended by itself.
    pub left: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        Self { stopped: Duration::from_secs(5), left: Duration::from_millis(500) }
    }
}

/// The result of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub reason: ExitReason,
    /// The last lines of its output, masked.
    pub tail: String,
    /// The total size of its output in bytes.
    pub bytes: u64,
    /// Whether some output is not in the log because there was too much.
    pub truncated: bool,
    /// Why the log is incomplete, if writing it failed.
    pub log_error: Option<String>,
    /// Processes that could not be stopped.
    pub survivors: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// By itself, with this exit code.
    Exit(i32),
    /// By a signal that Lockgate did not send.
    Signal(i32),
    /// It ran longer than this and was stopped.
    TimedOut(Duration),
    /// It printed nothing for this long and was stopped.
    Idle(Duration),
    /// A stop was requested.
    Stopped,
    /// It never started, for this reason.
    NotStarted(String),
}

impl ExitReason {
    /// How it ended, as one word.
    fn as_str(&self) -> &'static str {
        match self {
            Self::Exit(_) => "exit",
            Self::Signal(_) => "signal",
            Self::TimedOut(_) => "timeout",
            Self::Idle(_) => "idle",
            Self::Stopped => "stopped",
            Self::NotStarted(_) => "lost",
        }
    }

    /// The exit code or the signal number.
    fn code(&self) -> Option<i32> {
        match self {
            Self::Exit(code) | Self::Signal(code) => Some(*code),
            Self::TimedOut(_) | Self::Idle(_) | Self::Stopped | Self::NotStarted(_) => None,
        }
    }
}

/// Runs a job to its end, and stops everything it leaves running. Each line of its output is passed to `on_line`, masked.
///
/// Dropping the future before its end kills the job's process group immediately; use `stop` for an orderly end.
pub async fn run(job: Job, stop: Stop, on_line: &mut (dyn FnMut(&str) + Send)) -> Ended {
    run_job(job, stop, on_line, None).await
}

/// Like [`run`], but stdout is read separately from stderr: it goes to `on_output`, which turns it into lines for people. The
/// log gets both, in the order in which they arrive.
pub async fn run_with_output<'a>(
    job: Job,
    stop: Stop,
    on_line: &'a mut (dyn FnMut(&str) + Send),
    on_output: &'a mut OnOutput<'a>,
) -> Ended {
    run_job(job, stop, on_line, Some(on_output)).await
}

async fn run_job<'a>(
    job: Job,
    stop: Stop,
    on_line: &'a mut (dyn FnMut(&str) + Send),
    on_output: Option<&'a mut OnOutput<'a>>,
) -> Ended {
    if stop.is_stopped() {
        return not_run(ExitReason::Stopped);
    }
    let (mut leader, printing) = match start::start(&job, on_output.is_some()).await {
        Ok(started) => started,
        Err(why) => {
            tracing::debug!(lock = %job.lock.display(), "process not started");
            return not_run(ExitReason::NotStarted(job.masks.mask_text(&why.to_string()).into_owned()));
        }
    };
    let pid = leader.running.leader;
    tracing::debug!(pid, lock = %job.lock.display(), "process started");
    let output = Output::new(job.masks.clone(), &job.log, job.limits, on_line, on_output);
    let mut pipes = OutputPipes::new(printing, output);

    let ours = supervise(&job, &stop, &mut leader, &mut pipes).await;
    let kill_at = ours.as_ref().map_or_else(|| Instant::now() + job.grace.left, |ending| ending.kill_at);
    let survivors = end_survivors(&leader, kill_at, ours.is_some(), &mut pipes).await;
    let reason = match (ours, leader.reap()) {
        (Some(ending), _) => ending.reason,
        (None, Ok(status)) => exit_reason(status),
        (None, Err(error)) => ExitReason::NotStarted(format!("its exit status was lost: {error}")),
    };
    pipes.drain();
    let printed = pipes.output.finish();
    let output::Printed { tail, bytes, truncated, log_error } = printed;
    tracing::debug!(pid, end = reason.as_str(), code = reason.code(), bytes, "process ended");
    if !survivors.is_empty() {
        tracing::warn!(pid, ?survivors, "some processes could not be stopped");
    }
    if let Some(error) = &log_error {
        tracing::warn!(error, "the log of the process is incomplete");
    }
    Ended { reason, tail, bytes, truncated, log_error, survivors }
}

fn not_run(reason: ExitReason) -> Ended {
    Ended { reason, tail: String::new(), bytes: 0, truncated: false, log_error: None, survivors: Vec::new() }
}

fn exit_reason(status: ExitStatus) -> ExitReason {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitReason::Exit(code),
        (None, Some(signal)) => ExitReason::Signal(signal),
        (None, None) => ExitReason::NotStarted(format!("its exit status cannot be read: {status}")),
    }
}

/// Why the job is being stopped, and when it is killed.
struct Ending {
    reason: ExitReason,
    kill_at: Instant,
}

/// Reads the output until the first process has ended, and stops the job on a timeout or on request.
async fn supervise(job: &Job, stop: &Stop, leader: &mut Leader, pipes: &mut OutputPipes<'_>) -> Option<Ending> {
    let mut ending: Option<Ending> = None;
    let mut alarm = job.timeout.map(|timeout| Instant::now() + timeout);
    loop {
        let silent = job.idle_timeout.filter(|_| ending.is_none()).map(|idle| pipes.heard + idle);
        let reason = tokio::select! {
            biased;
            () = leader.exited() => return ending,
            () = stop.stopped(), if ending.is_none() => ExitReason::Stopped,
            () = stop.hurried(ending.as_ref().map(|ending| ending.kill_at)), if ending.is_some() => {
                kill_sooner(&mut ending, &mut alarm, stop.kill_at());
                continue;
            }
            () = at(alarm) => match &ending {
                None => ExitReason::TimedOut(job.timeout.unwrap_or_default()),
                Some(_) => {
                    leader.signal_group(Signal::KILL);
                    alarm = None;
                    continue;
                }
            },
            () = pipes.read() => continue,
            // Checked after reading: output that was printed in time counts, however late it is read.
            () = at(silent) => ExitReason::Idle(job.idle_timeout.unwrap_or_default()),
        };
        leader.signal_group(Signal::TERM);
        // A stopped (SIGSTOP) process could not react to SIGTERM.
        leader.signal_group(Signal::CONT);
        let kill_at = Instant::now() + job.grace.stopped;
        let kill_at = stop.kill_at().map_or(kill_at, |sooner| sooner.min(kill_at));
        alarm = Some(kill_at);
        ending = Some(Ending { reason, kill_at });
    }
}

/// Moves the kill time of a job that is being stopped forward; one that was already killed stays killed.
fn kill_sooner(ending: &mut Option<Ending>, alarm: &mut Option<Instant>, kill_at: Option<Instant>) {
    if let (Some(ending), Some(kill_at)) = (ending, kill_at) {
        ending.kill_at = kill_at;
        *alarm = alarm.map(|_| kill_at);
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Stops the processes left after the first one has ended; returns the pids of those that could not be stopped.
async fn end_survivors(leader: &Leader, kill_at: Instant, group_was_asked: bool, pipes: &mut OutputPipes<'_>) -> Vec<u32> {
    if !sys::HAS_PROCESS_TABLE {
        // Without a process table only the group can be reached.
        leader.signal_group(Signal::KILL);
        return Vec::new();
    }
    let give_up_at = kill_at.max(Instant::now()) + PATIENCE;
    let mut asked: BTreeSet<(u32, u64)> = BTreeSet::new();
    let mut pause = Duration::from_millis(1);
    let mut kills = 0;
    loop {
        let living = survivors::of(&leader.running, &leader.lock);
        let now = Instant::now();
        if living.is_empty() || (now >= give_up_at && kills >= KILLS) {
            return living.into_iter().map(|process| process.pid).collect();
        }
        kills += u32::from(now >= kill_at);
        for process in living {
            let first = asked.insert((process.pid, process.start));
            let was_asked = group_was_asked && process.group == leader.running.leader;
            // A process that cannot be signalled remains, and is reported at the end.
            if now >= kill_at {
                table::try_signal(process, Signal::KILL);
            } else if first && !was_asked {
                table::try_signal(process, Signal::TERM);
                table::try_signal(process, Signal::CONT);
            }
        }
        let next_look = now + pause;
        pause = (pause * 2).min(Duration::from_millis(50));
        while Instant::now() < next_look {
            tokio::select! {
                () = sleep_until(next_look) => {}
                () = pipes.read() => {}
            }
        }
    }
}
