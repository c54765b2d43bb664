//! The files that a run shows, reads and leaves behind.
//!
//! Everything is opened relative to a folder that is held open, so that neither `..` nor a symbolic link leads out of it,
//! also when the way changes between looking and opening.
//!
//! | module | what it does |
//! | --- | --- |
//! | `run_dirs` | which file a path means |
//! | `lookup` | opens what is there without following it out, and without waiting for it |
//! | `listing` | the text that a folder's digest is of |
//! | `observe` | digests and keeps what a decision is about |
//! | `diff` | what changed between two such moments, for people |
//! | `preview` | size and first lines, for people |
//! | `outputs` | what a task leaves behind, and reading and writing inside the output directory |
//! | `nested_repository` | git repositories inside of shown folders |
//! | `error` | why a path may not be used, or what is there cannot be |
//! | `atomic` | writing a file so that it is there whole or not at all |

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
