//! The ids of the options that Lockgate itself offers. Histories and preset answers contain them, so they stay as they are.

/// Ends the run.
pub const ABORT: &str = "abort";
/// Answers an agent in words.
pub const ANSWER: &str = "answer";
/// What a person verified is good.
pub const APPROVED: &str = "approved";
/// The run continues, even if something is missing.
pub const CONTINUE: &str = "continue";
/// A task or gate counts as done without running again.
pub const COUNT_AS_DONE: &str = "count-as-done";
/// A person did what no program can do.
pub const DONE: &str = "done";
/// A missing login turned out to be another failure.
pub const FAILURE: &str = "failure";
/// What a person verified has issues.
pub const ISSUES: &str = "issues";
/// The budget is raised, and the work continues.
pub const RAISE_BUDGET: &str = "raise-budget";
/// A phase runs again with the findings of its gate.
pub const REPEAT: &str = "repeat";
/// A task or gate runs again.
pub const RERUN: &str = "rerun";
/// Tasks of a recovered run run again, and no person is asked about later ones.
pub const RERUN_REST: &str = "rerun-rest";
/// A phase runs again because its work has gaps.
pub const RETRY: &str = "retry";
