//! Workflows walked with stub work and stub answers. Nothing of the project is touched.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use crate::code::Code;
use crate::error::Error;
use crate::script_worker::ScriptWorker;
use lockgate_engine::run::Status;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_runner::config::Config;
use lockgate_runner::driver::Halt;
use lockgate_runner::rehearse::{Given, RehearseError, Rehearsed, RehearsedHold, Stage, Step, rehearse};
use lockgate_runner::root::Root;
use lockgate_runner::start::{Beginning, WorkflowFile};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is rehearsed: a workflow, and what its run begins with.
pub struct Piece<'f> {
    pub file: &'f WorkflowFile,
    pub workflow: Workflow,
    pub beginning: Beginning,
    pub given: BTreeMap<String, Given>,
}

/// A rehearsal, with the folder that its files lie in until it is dropped.
pub struct Done {
    pub came: Rehearsed,
    _folder: tempfile::TempDir,
}

/// Walks a workflow with stub work and stub answers, in a folder of its own.
pub async fn walk(root: &Root, config: &Config, worker: &ScriptWorker, halt: &Halt, piece: Piece<'_>) -> Result<Done, Error> {
    let folder = tempfile::Builder::new().prefix("lockgate-rehearsal-").tempdir().map_err(|error| {
        Error::new(Code::Unwritable, format!("no folder can be made in {}: {error}", std::env::temp_dir().display()))
            .help("a rehearsal writes its files there and removes them; set TMPDIR to a folder that can be written")
    })?;
    let stage = Stage {
        root: root.clone(),
        config: config.clone(),
        evaluator: worker.evaluator(),
        folder: folder.path().to_path_buf(),
        halt: halt.clone(),
    };
    let Piece { file, workflow, beginning, given } = piece;
    let came = rehearse(stage, file, workflow, beginning, given).await.map_err(|error| match error {
        RehearseError::OutputDir(why) => Error::new(Code::BadOutputDir, why.to_string()),
        RehearseError::Files(why) => Error::new(Code::BadOutputDir, why.to_string()),
        RehearseError::Drive(error) => error.into(),
    })?;
    Ok(Done { came, _folder: folder })
}

/// A rehearsal for programs.
#[derive(Serialize)]
pub struct RehearsalView<'r> {
    workflow: &'r str,
    feature: Option<&'r str>,
    status: Status,
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
    pub fn of(came: &'r Rehearsed, workflow: &'r str, feature: Option<&'r str>) -> Self {
        Self {
            workflow,
            feature,
            status: came.status,
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
pub fn unused_answers(came: &Rehearsed) -> Vec<String> {
    came.unused_answers.iter().map(|(selector, option)| format!("{selector}={option}")).collect()
}
