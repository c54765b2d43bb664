//! What a workflow says: from a file's text to a checked [`workflow::Workflow`], with all problems of the file at once.

pub mod problem;
pub mod workflow;
