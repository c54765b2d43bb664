//! Files and blocks that people, agents and other tools exchange with Lockgate. The engine does not know these formats: this crate
//! parses them into workflows and handovers, and renders them from the engine's state.
//!
//! | module | reads or writes |
//! | --- | --- |
//! | [`file_format`] | the format of a file, detected from its content, and the workflow in it |
//! | [`plan`] | `PLAN.md` files: frontmatter, sections and `<task>` blocks |
//! | [`execution_spec`] | EXECUTION-SPEC files: Markdown with workstreams, phases and gates in YAML |
//! | [`state_file`] | the state file of a pipeline |
//! | [`handover`] | the block in which an agent reports that it has reached a checkpoint |
//! | [`continuation`] | the block that the next agent receives after a checkpoint |
//! | `completed_tasks` | the table of completed tasks in both |
//! | [`first_error`] | the file and line of the first error in a tool's output |
//! | [`unified_diff`] | the difference between two texts |
//! | [`json`] | JSON with the position of every value, within size limits |
//! | `frontmatter` | the YAML at the top of a Markdown file, and the body after it |
//! | `escape` | escaping that keeps values from breaking these blocks |
//!
//! Every parser accepts any text without failing, in time linear in its length, and reports whatever is unusual about it.

mod completed_tasks;
pub mod continuation;
mod escape;
pub mod execution_spec;
pub mod file_format;
pub mod first_error;
mod frontmatter;
pub mod handover;
pub mod issue;
pub mod json;
pub mod plan;
pub mod state_file;
pub mod unified_diff;
