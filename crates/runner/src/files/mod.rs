//! The files that a run shows, reads and writes.
//!
//! Everything is opened relative to an open directory handle, so that neither `..` nor a symlink leads out of it, even if the
//! path changes between checking and opening.
//!
//! | module | what it does |
//! | --- | --- |
//! | `run_dirs` | which file a path refers to |
//! | `lookup` | opens files without following symlinks out and without blocking |
//! | `listing` | the text that a directory's digest is computed from |
//! | `observe` | digests and keeps the files that a decision is about |
//! | `diff` | describes changes between two observations, for people |
//! | `preview` | size and first lines, for people |
//! | `outputs` | the outputs of a task, and reading and writing in the output directory |
//! | `nested_repository` | git repositories inside shown directories |
//! | `error` | why a path or the file at it cannot be used |
//! | `atomic` | writes files atomically |

mod atomic;
mod diff;
mod error;
mod lines;
mod listing;
mod lookup;
mod nested_repository;
mod observe;
mod outputs;
mod preview;
mod run_dirs;
mod size;

pub use atomic::write_atomically;
pub(crate) use atomic::write_in;
pub use diff::{diff, shortened};
pub use error::{FileError, PathError, Reason, Refused};
pub use lines::{LinesError, read_lines};
pub use observe::{ContainsSecret, ObserveLimits, Observed, observe, reobserve};
pub use outputs::{
    MissingOutput, MissingOutputs, Outputs, collect_outputs, create_output_parents, output_exists, read_output,
    resolve_output_path, write_output,
};
pub use preview::{Preview, preview};
pub use run_dirs::RunDirs;
pub use size::format_size;
