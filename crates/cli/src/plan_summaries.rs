//! Writes the summaries of plans and reports them.

use crate::open::Project;
use crate::print;
use lockgate::plan_summaries::write_summaries;
use lockgate_engine::run::Run;

/// Writes the summaries of a complete run, and reports their paths and failures.
pub(crate) async fn print_summaries(project: &Project, run: &Run) {
    for written in write_summaries(project.runtime(), project.root(), run).await {
        match written {
            Ok(path) => print::say(format_args!("  summary: {path}")),
            Err(why) => print::warn(why),
        }
    }
}
