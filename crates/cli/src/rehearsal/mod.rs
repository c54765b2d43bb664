//! Rehearsals from the command line: `run --dry-run` and `test`. Nothing of the project is touched.

mod told;

pub(crate) use told::told;

use crate::code::Code;
use crate::open::{self, current_folder};
use crate::trouble::Trouble;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_runner::config::Config;
use lockgate_runner::driver::Halt;
use lockgate_runner::rehearse::{Given, RehearseError, Rehearsed, RehearsedHold, Stage, Step, rehearse};
use lockgate_runner::root::Root;
use lockgate_runner::start::{Beginning, WorkflowFile};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// What is rehearsed: a workflow, and what its run begins with.
pub(crate) struct Piece<'f> {
    pub(crate) file: &'f WorkflowFile,
    pub(crate) workflow: Workflow,
    pub(crate) beginning: Beginning,
    pub(crate) given: BTreeMap<String, Given>,
}

/// A rehearsal, with the folder that its files lie in until it is dropped.
pub(crate) struct Done {
    pub(crate) came: Rehearsed,
    _folder: tempfile::TempDir,
}

/// The project at this place, which is only read.
pub(crate) fn project(root: Option<&Path>) -> Result<(Root, Config), Trouble> {
    let root = match root {
        Some(dir) => Root::at(dir),
        None => {
            let here = current_folder()?;
            Root::find(&here).unwrap_or_else(|| Root::at(&here))
        }
    };
    let config = Config::read(&root.config_file())?;
    Ok((root, config))
}

/// Walks a workflow with stub work and stub answers, in a folder of its own.
pub(crate) async fn walk(root: &Root, config: &Config, halt: &Halt, piece: Piece<'_>) -> Result<Done, Trouble> {
    let folder = tempfile::Builder::new().prefix("lockgate-rehearsal-").tempdir().map_err(|error| {
        Trouble::new(Code::Unwritable, format!("no folder can be made in {}: {error}", std::env::temp_dir().display()))
            .help("a rehearsal writes its files there and removes them; set TMPDIR to a folder that can be written")
    })?;
    let stage = Stage {
        root: root.clone(),
        config: config.clone(),
        evaluator: open::evaluator(),
        folder: folder.path().to_path_buf(),
        halt: halt.clone(),
    };
    let Piece { file, workflow, beginning, given } = piece;
    let came = rehearse(stage, file, workflow, beginning, given).await.map_err(|error| match error {
        RehearseError::CannotBegin(message) => Trouble::new(Code::BadOutputDir, message),
        RehearseError::Drive(error) => error.into(),
    })?;
    Ok(Done { came, _folder: folder })
}

/// A rehearsal for programs.
#[derive(Serialize)]
pub(crate) struct RehearsalView<'r> {
    workflow: &'r str,
    feature: Option<&'r str>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_short: Option<&'r str>,
    path: &'r [String],
    steps: &'r [Step],
    holds: &'r [RehearsedHold],
    output_dir: &'r str,
    files: &'r [String],
    unused_answers: Vec<String>,
    context: &'r Value,
}

impl<'r> RehearsalView<'r> {
    pub(crate) fn of(came: &'r Rehearsed, workflow: &'r str, feature: Option<&'r str>) -> Self {
        Self {
            workflow,
            feature,
            status: came.status.word(),
            error: came.error.as_deref(),
            cut_short: came.cut_short.as_deref(),
            path: &came.path,
            steps: &came.steps,
            holds: &came.holds,
            output_dir: &came.output_dir,
            files: &came.files,
            unused_answers: unused_answers(came),
            context: &came.context,
        }
    }
}

/// Answers that were given and never asked for, as they were written.
pub(crate) fn unused_answers(came: &Rehearsed) -> Vec<String> {
    came.unused_answers.iter().map(|(selector, option)| format!("{selector}={option}")).collect()
}
