//! Pipelines at the command line: how they begin, how they go on, and what people see of them.

mod resume;
mod text;

pub(crate) use resume::{PipelineResumeFlags, ask, report};
pub(crate) use text::text;

use crate::error::CommandError;
use crate::open::Project;
use crate::print;
use lockgate::sanitize;
use lockgate_engine::run::Run;
use lockgate_runner::projection::{archive, refresh_files};
use std::path::Path;

/// Lets the state file follow a run that goes on from another one; what it said of that one is kept aside.
pub(crate) async fn hand_over(project: &Project, run: &Run) -> Result<(), CommandError> {
    let Some(pipeline) = &run.workflow.pipeline else { return Ok(()) };
    if let Some(kept) = archive(&project.root, pipeline, project.runtime.clock.now())? {
        print::note(format_args!("the state file of the run before is kept as {}", kept.display()));
    }
    refresh(project, run, false).await;
    Ok(())
}

/// Writes the state file where the process that last drove the run could not; whoever drives it now does so by itself.
pub(crate) async fn refresh(project: &Project, run: &Run, driven: bool) {
    if driven || run.pipeline.is_none() {
        return;
    }
    match refresh_files(&project.runtime, run).await {
        Ok(None) => {}
        Ok(Some(path)) => print_put_aside(&path),
        Err(error) => print::warn(sanitize::line(&error.to_string())),
    }
}

/// Tells where something is that stood where a state file belongs.
pub(crate) fn print_put_aside(path: &Path) {
    let path = path.display().to_string();
    print::warn(format_args!(
        "what stood where the state file belongs cannot be read as one; it is kept as {}",
        sanitize::line(&path)
    ));
}
