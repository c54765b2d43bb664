//! Lockgate as a library.

pub mod answer;
pub mod cancel;
pub mod code;
pub mod definition;
pub mod error;
pub mod graph;
pub mod handover;
pub mod inputs;
pub mod leftovers;
pub mod moment;
pub mod neutral;
pub mod phrases;
pub mod pipeline;
pub mod plans;
pub mod preset_answers;
pub mod project;
pub mod rehearsal;
pub mod resume;
pub mod script_worker;
pub mod select;
pub mod sentence;
pub mod standing;
pub mod start;
pub mod step;
pub mod summary;
pub mod view;
pub mod worker;
pub mod workflow_file;
pub mod worktrees;

pub use error::Error;
pub use lockgate_runner::notifications;
pub use project::Project;
