//! Dry runs, which walk through a workflow with stub tasks and stub answers. They change nothing in the project.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use crate::code::Code;
use crate::error::Error;
use crate::script_worker::ScriptWorker;
use lockgate_engine::run::Status;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_runner::config::Config;
use lockgate_runner::driver::Halt;
use lockgate_runner::dry_run::{DryRunEnv, DryRunError, DryRunHold, DryRunReport, Step, StubPlan, dry_run};
use lockgate_runner::root::Root;
use lockgate_runner::start::{StartOptions, WorkflowFile};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The workflow to dry-run, with its start options and stubs.
pub struct DryRunInput<'f> {
    pub file: &'f WorkflowFile,
    pub workflow: Workflow,
    pub start_options: StartOptions,
    pub given: BTreeMap<String, StubPlan>,
}

/// The result of a dry run. Its temporary directory is removed on drop.
pub struct DryRun {
    pub result: DryRunReport,
    _folder: tempfile::TempDir,
}

/// Walks through a workflow with stub tasks and stub answers, in a temporary directory.
pub async fn execute(
    root: &Root,
    config: &Config,
    worker: &ScriptWorker,
    halt: &Halt,
    input: DryRunInput<'_>,
) -> Result<DryRun, Error> {
    let folder = tempfile::Builder::new().prefix("lockgate-dry-run-").tempdir().map_err(|error| {
        Error::new(Code::Unwritable, format!("cannot create a directory in {}: {error}", std::env::temp_dir().display()))
            .help("a dry run writes temporary files there; set TMPDIR to a writable directory")
    })?;
    let stage = DryRunEnv {
        root: root.clone(),
        config: config.clone(),
        evaluator: worker.evaluator(),
        folder: folder.path().to_path_buf(),
        halt: halt.clone(),
    };
    let DryRunInput { file, workflow, start_options, given } = input;
    let result = dry_run(stage, file, workflow, start_options, given).await.map_err(|error| match error {
        DryRunError::OutputDir(why) => Error::new(Code::InvalidOutputDir, why.to_string()),
        DryRunError::Files(why) => Error::new(Code::InvalidOutputDir, why.to_string()),
        DryRunError::Drive(error) => error.into(),
    })?;
    Ok(DryRun { result, _folder: folder })
}

/// A dry run, as JSON.
#[derive(Serialize)]
pub struct DryRunView<'r> {
    workflow: &'r str,
    feature: Option<&'r str>,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<&'r str>,
    path: &'r [String],
    steps: &'r [Step],
    holds: &'r [DryRunHold],
    output_dir: &'r str,
    files: &'r [String],
    unused_answers: Vec<String>,
    context: &'r Value,
}

impl<'r> DryRunView<'r> {
    pub fn of(result: &'r DryRunReport, workflow: &'r str, feature: Option<&'r str>) -> Self {
        Self {
            workflow,
            feature,
            status: result.status,
            error: result.error.as_deref(),
            truncated: result.truncated.as_deref(),
            path: &result.path,
            steps: &result.steps,
            holds: &result.holds,
            output_dir: &result.output_dir,
            files: &result.files,
            unused_answers: unused_answers(result),
            context: &result.context,
        }
    }
}

/// Preset answers that were never used, as they were written.
pub fn unused_answers(result: &DryRunReport) -> Vec<String> {
    result.unused_answers.iter().map(|(selector, option)| format!("{selector}={option}")).collect()
}
