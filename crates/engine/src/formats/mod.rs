//! Text forms that come from elsewhere, or go there: files and blocks that people and agents write.
//!
//! | module | what it reads or writes |
//! | --- | --- |
//! | [`plan`] | `PLAN.md` files: frontmatter, sections and `<task>` blocks |
//! | [`handover`] | the block with which an agent says that it has reached a checkpoint |
//! | [`continuation`] | the block that the agent gets that goes on after it |
//! | [`completed`] | the table of completed tasks in both |
//! | `escape` | how values stand in these blocks without breaking them |
//!
//! All of them read any text without failing, in time that grows with its length; what is odd about it is told.

pub mod completed;
pub mod continuation;
mod escape;
pub mod handover;
pub mod plan;
