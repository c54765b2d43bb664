//! Files and blocks that people, agents and other tools write and read. The engine knows none of them: they become its workflows and
//! handovers when they are read, and are rendered from its state.
//!
//! | module | what it reads or writes |
//! | --- | --- |
//! | [`file_format`] | which kind of file a text is, and its workflow, whatever the kind |
//! | [`plan`] | `PLAN.md` files: frontmatter, sections and `<task>` blocks |
//! | [`execution_spec`] | EXECUTION-SPEC files: Markdown with workstreams, phases and gates in YAML |
//! | [`pipeline`] | the state file of a pipeline: what it says, and its text |
//! | [`handover`] | the block with which an agent says that it has reached a checkpoint |
//! | [`continuation`] | the block that the agent gets that goes on after it |
//! | `completed_tasks` | the table of completed tasks in both |
//! | [`output_position`] | where the output of a tool says that something is wrong |
//! | [`json`] | JSON with the place of every value, under limits |
//! | `frontmatter` | the YAML at the top of a Markdown file, and what follows it |
//! | `escape` | how values stand in these blocks without breaking them |
//!
//! All of them read any text without failing, in time that grows with its length; what is odd about it is told.

mod completed_tasks;
pub mod continuation;
mod escape;
pub mod execution_spec;
pub mod file_format;
mod frontmatter;
pub mod handover;
pub mod json;
pub mod output_position;
pub mod pipeline;
pub mod plan;
