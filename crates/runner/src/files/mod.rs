//! The files that a run shows, reads and leaves behind.
//!
//! Everything is opened relative to a folder that is held open, so that neither `..` nor a symbolic link leads out of it,
//! also when the way changes between looking and opening.
//!
//! | module | what it does |
//! | --- | --- |
//! | `places` | which file a path means |
//! | `look` | opens what is there without following it out, and without waiting for it |
//! | `listing` | the text that a folder's digest is of |
//! | `observe` | digests and keeps what a decision is about |
//! | `differences` | what changed between two such moments, for people |
//! | `preview` | size and first lines, for people |
//! | `outputs` | what a task leaves behind, and reading and writing inside the output directory |
//! | `repository` | git repositories inside of shown folders |
//! | `error` | why a path may not be used, or what is there cannot be |
//! | `atomic` | writing a file so that it is there whole or not at all |

mod atomic;
mod differences;
mod error;
mod lines;
mod listing;
mod look;
mod observe;
mod outputs;
mod places;
mod preview;
mod repository;
mod size;

pub use atomic::write_atomically;
pub(crate) use atomic::write_in;
pub use differences::differences;
pub use error::{FileError, PathError, Reason, Refused};
pub use lines::{LinesError, look_at_lines};
pub use observe::{Caps, ContainsSecret, Observed, observe, observe_again};
pub use outputs::{
    MissingOutput, MissingOutputs, Outputs, collect_outputs, make_output_folder, output_exists, output_place, read_output,
    write_output,
};
pub use places::Places;
pub use preview::{Preview, preview};
pub use size::size_text;
