//! Drives runs: the only crate that acts on the outside world.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`root`] | where a project's state lies, and the names of the files in it |
//! | [`config`] | the settings in `.lockgate/config.yaml` |
//! | [`files`] | the files that a run shows, reads and leaves behind |
//! | [`secret`] | secrets: where they come from, and keeping them out of sight |

pub mod config;
pub mod files;
pub mod root;
pub mod secret;
