//! Drives runs: the only crate that acts on the outside world.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`agent`] | coding agents: how their programs are called, and what their output says |
//! | [`driver`] | the drive loop: outcomes, commits, effects |
//! | [`runtime`] | what the loop needs of the outside; a simulation puts others in its place |
//! | [`dry_run`] | runs in which stubs stand in for every process, and nothing is touched |
//! | [`notifications`] | what happens to a run, as the few things that people are told |
//! | [`outbox`] | delivering notices to people, off the commit path |
//! | [`perform`] | performing each effect on this machine |
//! | [`process`] | commands in their own sessions: locks, logs, limits, orphans |
//! | [`script`] | JavaScript in worker processes |
//! | [`files`] | the files that a run shows, reads and leaves behind |
//! | [`auth_gate`] | missing logins: how they show, and what mends them |
//! | [`projection`] | files for people that follow from a run: the state file of a pipeline |
//! | [`git`], [`worktree`], [`commit`] | calling git; the worktrees of runs and tasks; committing what a task changed |
//! | [`secret`] | secrets: where they come from, and keeping them out of sight |
//! | [`load`], [`start`] | from the store to a run; from a workflow file to a new run |
//! | [`verify`] | that everything stored follows from the histories |
//! | [`identity`], [`refused_attempts`] | who is at the command line; attempts that were refused |
//! | `spans` | the run, task, gate or hold that log events belong to |
//! | [`root`], [`config`] | where a project's state lies; its settings |

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
mod spans;
pub mod start;
pub mod verify;
pub mod worktree;
