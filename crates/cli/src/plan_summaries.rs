//! What is reported about the summaries of plans.

use crate::open::Project;
use crate::print;
use lockgate::plan_summaries::write_summaries;
use lockgate_engine::run::Run;

/// Writes the summaries of a run that is complete, and tells where they are; or why one is not written.
pub(crate) async fn print_summaries(project: &Project, run: &Run) {
    for written in write_summaries(project.runtime(), project.root(), run).await {
        match written {
            Ok(path) => print::say(format_args!("  summary: {path}")),
            Err(why) => print::warn(why),
        }
    }
}
