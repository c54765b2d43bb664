//! `lockgate status`: where a run stands.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::{pipeline, print};
use lockgate::run_status::with_driver;
use lockgate::select;
use lockgate::view::RunView;
use std::path::Path;

/// Shows where a run stands
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
    let view = view_of(&project, &found.row.run).await?;
    if arguments.json {
        print::json(&view);
    } else {
        print::data(&crate::run_text::run_text(&view, project.runtime.clock.now()));
    }
    Ok(Exit::Done)
}

/// What a run looks like now.
pub(super) async fn view_of(project: &Project, run: &lockgate_engine::id::RunId) -> Result<RunView, CommandError> {
    let (state, driver) = with_driver(project.store(), run).await?;
    pipeline::refresh(project, &state, driver.is_some()).await;
    Ok(RunView::of(&state, driver, project).await?)
}
