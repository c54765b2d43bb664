//! Pipelines on the command line: how to resume them, and their state as text.

mod resume;
mod text;

pub(crate) use resume::{PipelineResumeFlags, ask, report};
pub(crate) use text::text;

use crate::print;
use lockgate::pipeline::PutAside;
use lockgate::sanitize;
use std::path::Path;

/// Reports files that were moved aside for a state file, and why it could not be written.
pub(crate) fn print_put_aside(moved_aside: &PutAside) {
    if let Some(path) = &moved_aside.earlier {
        print::note(format_args!("the state file of the previous run is kept as {}", path.display()));
    }
    if let Some(path) = &moved_aside.unreadable {
        warn_unreadable(path);
    }
    if let Some(error) = &moved_aside.failure {
        print::warn(sanitize::line(&error.to_string()));
    }
}

/// Warns about a file that was found in the location of a state file.
pub(crate) fn warn_unreadable(path: &Path) {
    let path = path.display().to_string();
    print::warn(format_args!("the existing state file cannot be read; it is kept as {}", sanitize::line(&path)));
}
