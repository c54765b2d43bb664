//! Drives runs: the only crate that acts on the outside world.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`files`] | the files that a run shows, reads and leaves behind |

pub mod files;
