//! Checking state files of pipelines against the rules of their format and their EXECUTION-SPEC.

use crate::code::Code;
use crate::error::Error;
use crate::workflow_file;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_formats::json::{JsonError, place};
use lockgate_formats::state_file::check::check;
use lockgate_formats::state_file::rule::Finding;
use lockgate_runner::start::WorkflowFile;
use std::path::Path;

/// What is wrong with a state file; its workstreams and gates must be those of the EXECUTION-SPEC, where one is given.
pub fn check_state_file(path: &Path, spec: Option<&Workflow>) -> Result<Vec<Finding>, Error> {
    let text = workflow_file::text(path)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy());
    check(&text, stem.as_deref(), spec).map_err(|error| not_json(path, &text, &error))
}

/// The EXECUTION-SPEC that a file is; an error where it has errors, or is a workflow of another kind.
pub fn execution_spec(file: WorkflowFile) -> Result<Workflow, Error> {
    let named = file.path.display();
    let Some(workflow) = file.workflow else {
        let message = format!("{named} is no valid {}: {}", file.format.noun(), workflow_file::summary(&file.problems));
        return Err(Error::new(Code::InvalidWorkflow, message));
    };
    if workflow.pipeline.is_none() {
        let message = format!("{named} is a {}, and no EXECUTION-SPEC", file.format.noun());
        return Err(Error::new(Code::InvalidWorkflow, message).help("name the file with `workstreams` and `execution_phases`"));
    }
    Ok(workflow)
}

/// A file that cannot be read as JSON, with the position.
pub(crate) fn not_json(path: &Path, text: &str, error: &JsonError) -> Error {
    let (line, column) = place(text, error.at);
    let message = format!("{}:{line}:{column} is not JSON: {error}", path.display());
    Error::new(Code::NotJson, message).help("mend the file there; a state file is one JSON object")
}
