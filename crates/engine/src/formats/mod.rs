//! Text forms that come from elsewhere, or go there: files and blocks that people and agents write.
//!
//! | module | what it reads or writes |
//! | --- | --- |
//! | [`plan`] | `PLAN.md` files: frontmatter, sections and `<task>` blocks |
//!
//! All of them read any text without failing, in time that grows with its length; what is odd about it is told.

pub mod plan;
