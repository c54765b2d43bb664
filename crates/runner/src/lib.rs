//! Drives runs: the only crate that acts on the outside world.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`agent`] | coding agents: how to call their programs and read their output |
//! | [`driver`] | the drive loop: outcomes, commits, effects |
//! | [`runtime`] | the store, clock and effect performer that the loop depends on; a simulation replaces them |
//! | [`dry_run`] | runs in which stubs replace every process and nothing is changed |
//! | [`notifications`] | turns the events of a run into the few notifications that people receive |
//! | [`outbox`] | delivering notices to people, off the commit path |
//! | [`perform`] | performing each effect on this machine |
//! | [`process`] | commands in their own sessions: locks, logs, limits, orphans |
//! | [`script`] | JavaScript in worker processes |
//! | [`files`] | the files that a run shows, reads and leaves behind |
//! | [`auth_gate`] | missing logins: how to detect them and what fixes them |
//! | [`projection`] | files that are generated from a run's state, such as the state file of a pipeline |
//! | [`git`], [`worktree`], [`commit`] | calling git; the worktrees of runs and tasks; committing a task's changes |
//! | [`secret`] | where secrets come from, and masking them in output |
//! | [`load`], [`start`] | loading a run from the store; starting a run from a workflow file |
//! | [`verify`] | checks that all stored data follows from the histories |
//! | [`knowledge`] | the entries of the project's knowledge, as files |
//! | [`identity`], [`refused_attempts`] | who is at the command line; a record of refused attempts |
//! | [`snapshot`] | snapshots of runs: files from which a run can resume or be rebuilt |
//! | `spans` | tracing spans for runs, tasks, gates and holds |
//! | `sys` | system calls and files that only Linux has |
//! | [`root`], [`config`] | the project root and its state directory; its settings |

pub mod agent;
pub mod auth_gate;
pub mod commit;
pub mod config;
pub mod diff;
pub mod driver;
pub mod dry_run;
pub mod files;
pub mod fleet;
pub mod git;
pub mod identity;
pub mod includes;
pub mod knowledge;
pub mod load;
pub mod notifications;
pub mod outbox;
pub mod perform;
pub mod process;
pub mod projection;
pub mod refused_attempts;
pub mod root;
pub mod runtime;
pub mod script;
pub mod secret;
pub mod snapshot;
mod spans;
pub mod start;
mod sys;
pub mod verify;
pub mod worktree;
