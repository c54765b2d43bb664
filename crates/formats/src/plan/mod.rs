//! `PLAN.md` files: plans for an agent, parsed into plain data.
//!
//! The format has no grammar; people and agents write it by example. Whatever looks like a task is read as one, with warnings about
//! everything unusual. Where a keyword is unknown, a person decides.
//!
//! | module | reads |
//! | --- | --- |
//! | `tag` | tags and code fences, in one pass |
//! | `layout` | the tags that form tasks, parts of tasks, and sections |
//! | `task` | one task |
//! | `frontmatter` | the YAML at the top |
//! | `text` | lists of files, names, indentation |
//! | [`workflow`] | plans as workflows |

mod frontmatter;
mod layout;
mod tag;
mod task;
mod text;
pub mod workflow;

use lockgate_engine::spec::MAX_BYTES;
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::reader::Report;
use serde_json::Value;

/// The result of reading a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub plan: PlanFile,
    /// All errors and warnings, in the order of the file. A plan with an error cannot be used.
    pub problems: Vec<Problem>,
}

/// The content of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanFile {
    pub frontmatter: Frontmatter,
    /// The goal of the plan.
    pub objective: String,
    /// Files that explain how to execute plans.
    pub execution_context: String,
    /// What to read first.
    pub context: String,
    pub tasks: Vec<PlanTask>,
    /// How to verify the whole plan.
    pub verification: String,
    /// When the plan has succeeded.
    pub success_criteria: String,
    /// What to write at the end.
    pub output: String,
    pub others: Vec<Section>,
}

/// The YAML at the top of a plan. Numbers such as `08` stay text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontmatter {
    /// The phase that the plan belongs to, such as `07.2-search`.
    pub phase: Option<String>,
    /// The plan's number in its phase.
    pub plan: Option<String>,
    /// The kind of plan, such as `execute`.
    pub kind: Option<String>,
    /// The wave of the plan; plans of one wave may run in parallel.
    pub wave: Option<u32>,
    /// The plans that must complete first.
    pub depends_on: Vec<String>,
    /// The files that the plan will change.
    pub files_modified: Vec<String>,
    /// Whether the plan can run without a person.
    pub autonomous: Option<bool>,
    /// The requirements that the plan covers.
    pub requirements: Vec<String>,
    /// The gaps that the plan closes.
    pub gap_ids: Vec<String>,
    /// Whether verifications are asked together at the end of the phase.
    pub verify_at_end: bool,
    /// What people must set up outside, as written.
    pub user_setup: Vec<Value>,
    /// What must be true when the plan is complete.
    pub must_haves: MustHaves,
    pub rest: Vec<(String, Value)>,
}

/// What must be true when a plan is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MustHaves {
    pub truths: Vec<String>,
    /// Files that must exist.
    pub artifacts: Vec<Artifact>,
    /// Files that must refer to each other.
    pub key_links: Vec<KeyLink>,
    pub rest: Vec<(String, Value)>,
}

/// A file that must exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Artifact {
    pub path: String,
    /// The purpose of the file.
    pub provides: String,
    /// Strings that the file must contain.
    pub contains: Vec<String>,
    /// Names that the file must export.
    pub exports: Vec<String>,
    pub min_lines: Option<u32>,
    /// The line of the plan that defines it.
    pub line: usize,
    pub rest: Vec<(String, Value)>,
}

/// A connection that must exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLink {
    /// The file that uses the target.
    pub from: String,
    /// The target.
    pub to: String,
    /// How it is used, such as `import`.
    pub via: String,
    /// A regular expression that must match in the file.
    pub pattern: Option<String>,
    /// The line of the plan that defines it.
    pub line: usize,
    pub rest: Vec<(String, Value)>,
}

/// A position in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

/// The content of a tag without a field of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub tag: String,
    pub text: String,
}

/// Who does a task, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanTaskKind {
    Auto,
    /// A person reviews the result; an agent may prepare the review.
    Verify,
    Decision,
    /// A person does something that no program can do.
    Action,
}

/// Whether a checkpoint waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanGate {
    Blocking,
    /// The run continues with a default, which a person may change.
    NonBlocking,
    /// Only a person may answer, no preset.
    BlockingHuman,
}

/// How hard it is to undo a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rating {
    Reversible,
    Costly,
    OneWay,
}

/// What a plan says about undoing a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reversibility {
    pub rating: Rating,
    /// The reason.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanTask {
    /// The number in the plan, counted from 1.
    pub number: usize,
    /// The position of its opening tag.
    pub place: Place,
    pub kind: PlanTaskKind,
    /// The `type` as written; empty if missing.
    pub written_kind: String,
    pub gate: PlanGate,
    /// Whether to write tests first.
    pub tdd: bool,
    /// Whether the task is a tracer: a thin slice through the whole system, on which the other tasks build.
    pub tracer: bool,
    /// What must be true before the task starts.
    pub precondition: String,
    pub reversibility: Option<Reversibility>,
    /// All attributes as written.
    pub attributes: Vec<(String, String)>,
    /// The name, without `Task 3:` before it; derived from the content if missing.
    pub name: String,
    pub files: Vec<String>,
    /// What to read before starting.
    pub read_first: String,
    /// What the tests expect.
    pub behavior: String,
    pub action: String,
    /// How to verify the task.
    pub verify: Verify,
    /// Criteria beyond `done`.
    pub acceptance_criteria: String,
    /// When the task is done.
    pub done: String,
    /// What a person reviews.
    pub built: String,
    /// How to review it.
    pub steps: String,
    /// The question to decide.
    pub decision: String,
    /// Why the decision matters.
    pub context: String,
    pub options: Vec<PlanOption>,
    /// What a person does.
    pub instructions: String,
    /// How to verify what a person did.
    pub verification: Verify,
    /// What a person types to continue.
    pub resume_signal: String,
    pub others: Vec<Section>,
    /// Text outside of all parts.
    pub text: String,
}

impl PlanTask {
    /// The quoted word with which a person approves, such as `approved`.
    pub fn resume_word(&self) -> Option<&str> {
        text::quoted(&self.resume_signal)
    }
}

/// How something is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verify {
    /// The commands: `<automated>` and code fences of `sh` or `bash`.
    pub commands: Vec<VerifyCommand>,
    /// All other text.
    pub prose: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyCommand {
    /// The shell command.
    pub command: String,
    pub place: Place,
}

/// An option of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOption {
    /// The word with which a person chooses it.
    pub id: String,
    pub name: String,
    pub pros: String,
    pub cons: String,
    /// Other text about the option.
    pub text: String,
}

/// Reads a plan and reports everything unusual about it.
pub fn read(source: &str) -> Read {
    let mut report = Report::default();
    if source.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; the limit for a plan is {MAX_BYTES}", source.len());
        report.error(ProblemCode::TooLarge, &(0..0), message).help("move large data into files that tasks read");
        return Read { plan: PlanFile::default(), problems: report.finish("") };
    }
    let (frontmatter, body) = frontmatter::read(source, &mut report);
    let markup = tag::scan(source, body, &mut report);
    let mut plan = layout::read(source, &markup, &mut report);
    plan.frontmatter = frontmatter;
    if plan.tasks.is_empty() {
        report
            .error(ProblemCode::EmptyPlan, &(body..body), "the plan has no tasks")
            .help("write each as `<task type=\"auto\">` … `</task>`, outside code fences and comments");
    }
    Read { plan, problems: report.finish(source) }
}

#[cfg(test)]
mod tests;
