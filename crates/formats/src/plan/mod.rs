//! `PLAN.md` files: what somebody planned for an agent, as plain data.
//!
//! The format has no grammar; people and agents write it by example. Whatever looks like a task is one, and what is odd
//! about it is a warning. Where a word is not known, a person is asked.
//!
//! | module | what it reads |
//! | --- | --- |
//! | `tag` | tags and code fences, in one pass |
//! | `layout` | which tags make tasks, parts of tasks, and sections |
//! | `task` | one task |
//! | `frontmatter` | the YAML at the beginning |
//! | `text` | lists of files, names, indentation |
//! | [`workflow`] | plans as workflows that can be run |

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

/// What came of reading a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// What the file says, as far as it can be read.
    pub plan: PlanFile,
    /// Everything that is odd, in the order of the file; with an error among them the plan cannot be used.
    pub problems: Vec<Problem>,
}

/// What a plan says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanFile {
    /// The YAML at the beginning.
    pub frontmatter: Frontmatter,
    /// What the plan is for.
    pub objective: String,
    /// Files about how to execute plans.
    pub execution_context: String,
    /// What to read first.
    pub context: String,
    /// The tasks in order.
    pub tasks: Vec<PlanTask>,
    /// How the whole is verified.
    pub verification: String,
    /// When the plan is done.
    pub success_criteria: String,
    /// What is to be written at the end.
    pub output: String,
    /// All other sections.
    pub others: Vec<Section>,
}

/// The YAML at the beginning of a plan. Numbers such as `08` stay text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontmatter {
    /// The phase that the plan belongs to, such as `07.2-search`.
    pub phase: Option<String>,
    /// The plan's number in its phase.
    pub plan: Option<String>,
    /// The kind of plan, such as `execute`.
    pub kind: Option<String>,
    /// Plans of one wave may run at once.
    pub wave: Option<u32>,
    /// The plans that must be done before.
    pub depends_on: Vec<String>,
    /// The files that the plan will change.
    pub files_modified: Vec<String>,
    /// Whether it needs no person.
    pub autonomous: Option<bool>,
    /// The requirements that it serves.
    pub requirements: Vec<String>,
    /// The gaps that it closes.
    pub gap_ids: Vec<String>,
    /// Whether verifications are asked for together, when all else in the phase is done.
    pub verify_at_end: bool,
    /// What people must set up outside, as it stands there.
    pub user_setup: Vec<Value>,
    /// What must hold when it is done.
    pub must_haves: MustHaves,
    /// All other keys.
    pub rest: Vec<(String, Value)>,
}

/// What must hold when a plan is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MustHaves {
    /// Sentences that must be true.
    pub truths: Vec<String>,
    /// Files that must be there.
    pub artifacts: Vec<Artifact>,
    /// Files that must be connected.
    pub key_links: Vec<KeyLink>,
    /// All other keys.
    pub rest: Vec<(String, Value)>,
}

/// A file that must be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Artifact {
    /// Where.
    pub path: String,
    /// What it is for.
    pub provides: String,
    /// Texts that it must contain.
    pub contains: Vec<String>,
    /// Names that it must export.
    pub exports: Vec<String>,
    /// How many lines it must have at least.
    pub min_lines: Option<u32>,
    /// The line of the plan that says so.
    pub line: usize,
    /// All other keys.
    pub rest: Vec<(String, Value)>,
}

/// A connection that must be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLink {
    /// The file that uses.
    pub from: String,
    /// What is used.
    pub to: String,
    /// How.
    pub via: String,
    /// A regular expression that matches where it is used.
    pub pattern: Option<String>,
    /// The line of the plan that says so.
    pub line: usize,
    /// All other keys.
    pub rest: Vec<(String, Value)>,
}

/// A place in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

/// Something that stands between two tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The name of the tags.
    pub tag: String,
    /// What stands between them.
    pub text: String,
}

/// What a task asks of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanTaskKind {
    /// An agent works.
    Auto,
    /// A person looks at what was built; an agent may have something to do before.
    Verify,
    /// A person chooses.
    Decision,
    /// A person does what no program can.
    Action,
}

/// Whether a checkpoint waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanGate {
    /// It waits for a person.
    Blocking,
    /// It goes on with a default, which a person may change.
    NonBlocking,
    /// It waits for a person, and nothing else may answer it.
    BlockingHuman,
}

/// How hard it is to undo what a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rating {
    /// It can be undone.
    Reversible,
    /// Undoing it costs much.
    Costly,
    /// It cannot be undone.
    OneWay,
}

/// What a plan says about undoing a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reversibility {
    /// How hard it is.
    pub rating: Rating,
    /// Why.
    pub text: String,
}

/// A task of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanTask {
    /// Its number in the plan, counted from 1.
    pub number: usize,
    /// Where it begins.
    pub place: Place,
    /// What it asks of whom.
    pub kind: PlanTaskKind,
    /// Its `type` as it was written; empty where there is none.
    pub written_kind: String,
    /// Whether it waits.
    pub gate: PlanGate,
    /// Whether tests come first.
    pub tdd: bool,
    /// Whether it is the leading slice through everything, on which the other tasks build.
    pub tracer: bool,
    /// What must hold before it starts.
    pub precondition: String,
    /// How hard it is to undo, where the plan says so.
    pub reversibility: Option<Reversibility>,
    /// All attributes as they were written.
    pub attributes: Vec<(String, String)>,
    /// Its name, without `Task 3:` before it; made from what it says where it has none.
    pub name: String,
    /// The files that it is about.
    pub files: Vec<String>,
    /// What to read before.
    pub read_first: String,
    /// What the tests expect.
    pub behavior: String,
    /// What to do.
    pub action: String,
    /// How that is checked.
    pub verify: Verify,
    /// When more than `done` is asked: the criteria.
    pub acceptance_criteria: String,
    /// When it is done.
    pub done: String,
    /// What a person is to look at.
    pub built: String,
    /// How to look at it.
    pub steps: String,
    /// What is to be decided.
    pub decision: String,
    /// Why that matters.
    pub context: String,
    /// What can be chosen.
    pub options: Vec<PlanOption>,
    /// What a person is to do.
    pub instructions: String,
    /// How that is checked afterwards.
    pub verification: Verify,
    /// What a person is to say.
    pub resume_signal: String,
    /// All other parts.
    pub others: Vec<Section>,
    /// What stands outside all parts.
    pub text: String,
}

impl PlanTask {
    /// The word in quotes with which a person says that it may go on, such as `approved`.
    pub fn resume_word(&self) -> Option<&str> {
        text::quoted(&self.resume_signal)
    }
}

/// How something is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verify {
    /// Commands to run: `<automated>` and fences of `sh` or `bash`.
    pub commands: Vec<VerifyCommand>,
    /// Everything else.
    pub prose: String,
}

/// A command that checks something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyCommand {
    /// What to run in a shell.
    pub command: String,
    /// Where it stands.
    pub place: Place,
}

/// Something that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOption {
    /// What a person says.
    pub id: String,
    /// What it is.
    pub name: String,
    /// What speaks for it.
    pub pros: String,
    /// What speaks against it.
    pub cons: String,
    /// What else is said about it.
    pub text: String,
}

/// Reads the text of a plan, and says everything that is odd about it.
pub fn read(source: &str) -> Read {
    let mut report = Report::default();
    if source.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; a plan may have {MAX_BYTES}", source.len());
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
