//! Drives runs: the only crate that acts on the outside world.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`root`] | where a project's state lies, and the names of the files in it |
//! | [`config`] | the settings in `.lockgate/config.yaml` |
//! | [`files`] | the files that a run shows, reads and leaves behind |
//! | [`process`] | commands in their own sessions: locks, logs, limits, orphans |
//! | [`secret`] | secrets: where they come from, and keeping them out of sight |

pub mod config;
pub mod files;
pub mod process;
pub mod root;
pub mod secret;
