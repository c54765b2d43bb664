//! Checks state files of pipelines against the rules of their format and against their EXECUTION-SPEC.

use crate::code::Code;
use crate::error::Error;
use crate::workflow_file;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_formats::json::{JsonError, place};
use lockgate_formats::state_file::check::check;
use lockgate_formats::state_file::rule::Finding;
use lockgate_runner::start::WorkflowFile;
use std::path::Path;

/// Lists the problems of a state file. If `spec` is given, the workstreams and gates must match it.
pub fn check_state_file(path: &Path, spec: Option<&Workflow>) -> Result<Vec<Finding>, Error> {
    let text = workflow_file::text(path)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    check(&text, stem.as_deref(), spec).map_err(|error| not_json(path, &text, &error))
}

/// Returns the EXECUTION-SPEC in a file. Fails if the file has errors or is another kind of workflow.
pub fn execution_spec(file: WorkflowFile) -> Result<Workflow, Error> {
    let named = file.path.display();
    let Some(workflow) = file.workflow else {
        let message = format!("{named} is not a valid {}: {}", file.format.noun(), workflow_file::summary(&file.problems));
        return Err(Error::new(Code::InvalidWorkflow, message));
    };
    if workflow.pipeline.is_none() {
        let message = format!("{named} is a {}, not an EXECUTION-SPEC", file.format.noun());
        return Err(
            Error::new(Code::InvalidWorkflow, message).help("pass the file that has `workstreams` and `execution_phases`")
        );
    }
    Ok(workflow)
}

/// The error for a file that is not JSON, with the position.
pub(crate) fn not_json(path: &Path, text: &str, error: &JsonError) -> Error {
    let (line, column) = place(text, error.at);
    let message = format!("{}:{line}:{column} is not JSON: {error}", path.display());
    Error::new(Code::NotJson, message).help("fix the file at this position; a state file is a single JSON object")
}
