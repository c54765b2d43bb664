//! `lockgate graph`: draw a workflow or a run.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::{diagnostics, print};
use lockgate::graph::json::GraphView;
use lockgate::graph::{Drawing, mermaid, svg};
use lockgate::run_status::with_driver;
use lockgate::select::NEWEST;
use lockgate::start::invalid;
use lockgate::{select, view, workflow_file};
use std::path::Path;

/// Draw a workflow or a run
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate graph workflow.yaml",
    "lockgate graph d12cbewf",
    "lockgate graph workflow.yaml --svg > workflow.svg",
]))]
pub(super) struct Arguments {
    /// Workflow file, directory of plans, or run [default: the newest run]
    #[arg(value_name = "FILE|RUN", default_value = NEWEST, hide_default_value = true)]
    what: String,
    /// Print an SVG picture
    #[arg(long, conflicts_with = "mermaid")]
    svg: bool,
    /// Print Mermaid text
    #[arg(long)]
    mermaid: bool,
    /// Print the graph as JSON
    #[arg(long, conflicts_with_all = ["svg", "mermaid"])]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let drawing = match is_file(&arguments.what) {
        true => of_file(Path::new(&arguments.what))?,
        false => of_run(root, &arguments.what).await?,
    };
    if arguments.json {
        print::json(&GraphView::of(&drawing));
        return Ok(Exit::Done);
    }
    let text = if arguments.svg {
        svg::write(&drawing)
    } else if arguments.mermaid {
        mermaid::write(&drawing)
    } else {
        crate::graph_text::draw(&drawing, print::stdout_has_colour())
    };
    print::data(&text);
    Ok(Exit::Done)
}

/// Whether the argument means a file: it exists, or it looks like a path.
fn is_file(what: &str) -> bool {
    let path = Path::new(what);
    let ending = path.extension().and_then(|ending| ending.to_str());
    path.is_file()
        || path.is_dir() && workflow_file::read(path).is_ok()
        || what.contains('/')
        || matches!(ending, Some("yaml" | "yml" | "md"))
}

fn of_file(path: &Path) -> Result<Drawing, CommandError> {
    let file = workflow_file::read(path)?;
    diagnostics::report(&file);
    match &file.workflow {
        Some(workflow) => Ok(Drawing::of_workflow(workflow)),
        None => Err(CommandError::from(invalid(&file)).reported()),
    }
}

async fn of_run(root: Option<&Path>, named: &str) -> Result<Drawing, CommandError> {
    let project = crate::open::open_read_only(root).map_err(|error| error.help(format!("no file {named:?} exists either")))?;
    let found = select::run_or_ended(project.store(), named).await?;
    let (run, driver) = with_driver(project.store(), &found.row.run).await?;
    Ok(Drawing::of_run(&run, view::RunStatus::of(run.status(), driver.is_some())))
}
