//! Workflow files: from text to a checked [`workflow::Workflow`], with all problems of the file reported together.
//!
//! | module | purpose |
//! | --- | --- |
//! | `syntax`, `scalar`, `source_position` | YAML as a tree with positions, under limits; the meaning of scalars; positions inside scalars |
//! | `check` | one file per part of the format: workflow, phase, task, gate, checkpoint, and so on |
//! | [`includes`] | files that belong to a workflow file |
//! | [`subagent`] | agents that are listed in a file, or named by a script at run time |
//! | `javascript`, `bracket_depth`, `context_reads` | the syntax of scripts and conditions, their nesting, and the parts of the context that they read |
//! | [`document`] | other small YAML files, read in the same way |
//! | [`reader`] | building blocks for readers of other formats |
//! | [`problem`], [`code`], [`suggest`] | problems with their positions, codes and suggestions |
//! | [`workflow`] | the checked form |
//! | [`schema`] | the format as JSON Schema, generated from the tables of `check` |

mod bracket_depth;
pub(crate) mod check;
pub mod code;
mod context_reads;
pub mod document;
pub mod includes;
mod javascript;
pub mod problem;
pub mod reader;
mod scalar;
pub mod schema;
mod source_position;
pub mod subagent;
pub mod suggest;
pub(crate) mod syntax;
pub mod workflow;

pub(crate) use check::verify_last;
pub(crate) use problem::shown;
pub use syntax::{MAX_DEPTH, MAX_NODES, MAX_TEXT};

use code::ProblemCode;
use problem::{Problem, Report};
use workflow::Workflow;

/// The maximum size of a workflow file in bytes.
pub const MAX_BYTES: usize = 4 << 20;

/// The result of reading a workflow file.
#[derive(Clone, Debug)]
pub struct Read {
    /// Absent if a problem is an error.
    pub workflow: Option<Workflow>,
    /// In file order.
    pub problems: Vec<Problem>,
}

/// Reads a workflow file without included files, and reports all its problems.
pub fn read(source: &str) -> Read {
    read_with_includes(source, &mut includes::NoIncludes)
}

/// Reads a workflow file, and reports all its problems.
pub fn read_with_includes(source: &str, includes: &mut dyn includes::Includes) -> Read {
    read_used(source, includes, 0)
}

/// Reads a workflow file that others use, at this depth.
fn read_used(source: &str, includes: &mut dyn includes::Includes, depth: u32) -> Read {
    let mut report = Report::default();
    if source.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; the maximum for a workflow file is {MAX_BYTES}", source.len());
        report.error(ProblemCode::TooLarge, &(0..0), message).help("move large data into files that tasks read");
        return Read { workflow: None, problems: report.finish("") };
    }
    let workflow =
        syntax::parse(source, &mut report).and_then(|root| check::workflow(source, &root, &mut report, includes, depth));
    let workflow = workflow.filter(|_| !report.has_error());
    Read { workflow, problems: report.finish(source) }
}
