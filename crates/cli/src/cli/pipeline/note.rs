//! `lockgate pipeline note`: add notes to a pipeline.

use super::super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::NamedRun;
use lockgate::code::Code;
use lockgate::{describe, select};
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::pipeline::{Fix, Notes, PipelineEvent};
use serde_json::json;
use std::path::Path;

/// Add notes to the state file of a pipeline
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate pipeline note PRD-009 --key-fix src/cart.ts=\"added the missing case\"",
    "lockgate pipeline note PRD-009 --cleanup \"removed the old mocks\"",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: NamedRun,
    /// Important change; repeatable
    #[arg(long = "key-fix", value_name = "FILE=CHANGE")]
    key_fixes: Vec<String>,
    /// Change that a linter required; repeatable
    #[arg(long = "eslint-fix", value_name = "FILE=CHANGE")]
    eslint_fixes: Vec<String>,
    /// Cleanup that was done; repeatable
    #[arg(long = "cleanup", value_name = "TEXT")]
    cleanup_done: Vec<String>,
    /// Print the recorded notes as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let cleanup_done: Vec<String> = arguments.cleanup_done.iter().map(|text| text.trim().to_owned()).collect();
    let notes = Notes { eslint_fixes: fixes(&arguments.eslint_fixes)?, cleanup_done, key_fixes: fixes(&arguments.key_fixes)? };
    let project = crate::open::open(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run.run).await?;
    let run = &found.row.run;
    project.note(run, notes.clone(), project.caller(Channel::Command)).await.map_err(|error| match error.code() {
        Code::InvalidUsage => {
            CommandError::from(error).help("give --key-fix FILE=CHANGE, --eslint-fix FILE=CHANGE or --cleanup TEXT")
        }
        _ => error.into(),
    })?;
    print::say(describe::of_pipeline(&PipelineEvent::Noted(notes.clone())));
    if arguments.json {
        print::json(&json!({"run": run, "noted": notes}));
    }
    Ok(Exit::Done)
}

fn fixes(given: &[String]) -> Result<Vec<Fix>, CommandError> {
    let read = |text: &String| {
        let parts = text.split_once('=').map(|(file, change)| (file.trim(), change.trim()));
        let (file, change) = parts.filter(|(file, change)| !file.is_empty() && !change.is_empty()).ok_or_else(|| {
            CommandError::new(Code::InvalidUsage, format!("{text:?} does not have the form FILE=CHANGE"))
                .help("for example --key-fix 'src/a.ts=added the missing case'")
        })?;
        Ok(Fix { file: file.to_owned(), change: change.to_owned() })
    };
    given.iter().map(read).collect()
}
