//! What a workflow says: from a file's text to a checked [`workflow::Workflow`], with all problems of the file at once.
//!
//! | module | what it does |
//! | --- | --- |
//! | `syntax`, `scalar`, `source_position` | YAML as a tree with places, under limits; what scalars mean; places inside scalars |
//! | `check` | one file per part of the format: workflow, phase, task, gate, checkpoint, and so on |
//! | [`includes`] | the files beside a workflow file that belong to it |
//! | [`subagent`] | agents that are listed in a file, or named while a run is under way |
//! | `javascript`, `bracket_depth`, `context_reads` | syntax of scripts and conditions, how deep they may go, and what of the context they read |
//! | [`document`] | other small YAML files, read in the same way |
//! | [`reader`] | what readers of other formats build workflows with |
//! | [`problem`], [`code`], [`suggest`] | what is wrong, where, and what was probably meant |
//! | [`workflow`] | the checked form |
//! | [`schema`] | the format as JSON Schema, from the tables of `check` |

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

/// How long a workflow file may be.
pub const MAX_BYTES: usize = 4 << 20;

/// What came of reading a workflow file.
#[derive(Clone, Debug)]
pub struct Read {
    /// The workflow, when no problem is an error.
    pub workflow: Option<Workflow>,
    /// Everything that is wrong, in the order of the file.
    pub problems: Vec<Problem>,
}

/// Reads the text of a workflow file that has nothing beside it, and says everything that is wrong with it.
pub fn read(source: &str) -> Read {
    read_with_includes(source, &mut includes::NoIncludes)
}

/// Reads the text of a workflow file and says everything that is wrong with it.
pub fn read_with_includes(source: &str, includes: &mut dyn includes::Includes) -> Read {
    read_used(source, includes, 0)
}

/// Reads a workflow file that others use, so many above it.
fn read_used(source: &str, includes: &mut dyn includes::Includes, depth: u32) -> Read {
    let mut report = Report::default();
    if source.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; a workflow file may have {MAX_BYTES}", source.len());
        report.error(ProblemCode::TooLarge, &(0..0), message).help("keep large data in files of its own, which tasks read");
        return Read { workflow: None, problems: report.finish("") };
    }
    let workflow =
        syntax::parse(source, &mut report).and_then(|root| check::workflow(source, &root, &mut report, includes, depth));
    let workflow = workflow.filter(|_| !report.has_error());
    Read { workflow, problems: report.finish(source) }
}
