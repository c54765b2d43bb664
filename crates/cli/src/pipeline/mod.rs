//! Pipelines at the command line: how they go on, and what people see of them.

mod resume;
mod text;

pub(crate) use resume::{PipelineResumeFlags, ask, report};
pub(crate) use text::text;

use crate::print;
use lockgate::pipeline::PutAside;
use lockgate::sanitize;
use std::path::Path;

/// Tells what was put aside to make room for a state file, and why it could not be written.
pub(crate) fn print_put_aside(moved_aside: &PutAside) {
    if let Some(path) = &moved_aside.earlier {
        print::note(format_args!("the state file of the run before is kept as {}", path.display()));
    }
    if let Some(path) = &moved_aside.unreadable {
        tell_unreadable(path);
    }
    if let Some(error) = &moved_aside.failure {
        print::warn(sanitize::line(&error.to_string()));
    }
}

/// Tells where something is that stood where a state file belongs.
pub(crate) fn tell_unreadable(path: &Path) {
    let path = path.display().to_string();
    print::warn(format_args!(
        "what stood where the state file belongs cannot be read as one; it is kept as {}",
        sanitize::line(&path)
    ));
}
