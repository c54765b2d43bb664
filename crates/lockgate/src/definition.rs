//! The definition of a run, and changes to its files after the start.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::sanitize;
use crate::start::with_limits;
use lockgate_engine::digest::Digest;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::{FailureKind, FrozenFile};
use lockgate_runner::start::{DonePlans, Frozen, WorkflowFileError, read_text, read_workflow_with};

/// A definition in the files that differs from that of the run.
pub struct Difference {
    /// Files that were changed, added or deleted.
    files: Vec<String>,
    /// The new definition, or why the files do not yield one.
    now: Result<Box<Frozen>, Unusable>,
}

/// Why the files do not yield a definition.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] WorkflowFileError),
    /// The file has errors that it did not have before.
    #[error("it has errors now")]
    Invalid,
}

/// Compares the files of a run with its definition, which is the one it started with or accepted last.
pub fn difference(project: &Project, run: &Run) -> Option<Difference> {
    let first = run.files.first()?;
    if is_untouched(project, run) {
        return None;
    }
    // A plan of the run stays part of it even if its summary has been written since.
    let kept = run.workflow.plans.iter().filter_map(|plan| plan.file.clone()).collect();
    let file = match read_workflow_with(&project.root.dir().join(&first.path), &DonePlans::Keep(kept)) {
        Ok(file) => file,
        Err(error) => return Some(Difference { files: vec![first.path.clone()], now: Err(error.into()) }),
    };
    let Some(workflow) = file.workflow.clone() else {
        // The definition of the run had no errors, so the file must have changed.
        return Some(Difference { files: vec![first.path.clone()], now: Err(Unusable::Invalid) });
    };
    let workflow = with_limits(workflow, &project.config);
    let frozen = Frozen::new(&project.root, &file, workflow);
    let (_, now) = frozen.definition();
    let files = differing(&run.files, now);
    (!files.is_empty()).then(|| Difference { files, now: Ok(Box::new(frozen)) })
}

/// Whether the only file that the definition can come from is the same as before. Then it need not be parsed.
fn is_untouched(project: &Project, run: &Run) -> bool {
    let [only] = run.files.as_slice() else { return false };
    let is_same = |text: String| Digest::of(text.as_bytes()) == only.digest;
    !run.workflow.may_use_prompt_files() && read_text(&project.root.dir().join(&only.path)).is_ok_and(is_same)
}

fn differing(then: &[FrozenFile], now: &[FrozenFile]) -> Vec<String> {
    let changed = now.iter().filter(|file| !then.contains(file)).map(|file| file.path.clone());
    let gone = then
        .iter()
        .filter(|file| !now.iter().any(|known| known.path == file.path))
        .map(|file| format!("{} (deleted)", file.path));
    changed.chain(gone).collect()
}

/// Which definition a run continues with when its files have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The definition that the run has.
    Keep,
    /// The definition in the changed files.
    Accept,
}

/// The definition that a run continues with.
pub enum Settled {
    /// The original one, with a message about the changed files.
    Kept(String),
    /// The one in the changed files.
    Accepted(Box<Frozen>),
}

impl Difference {
    /// Whether the changed files yield a definition that the run could continue with.
    pub fn can_be_accepted(&self) -> bool {
        self.now.is_ok()
    }

    /// Describes what has changed, for people.
    pub fn describe(&self, run: &Run) -> String {
        format!("the files of run {} have changed since it started: {}", run.id, self.names())
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.files.iter().map(|file| sanitize::line(file).into_owned()).collect();
        names.join(", ")
    }

    /// Applies the choice. Returns an error if the caller has not chosen and both definitions are possible.
    pub fn settle(self, run: &Run, choice: Option<Choice>) -> Result<Settled, Error> {
        let (what, names) = (self.describe(run), self.names());
        match (self.now, choice) {
            (Err(why), Some(Choice::Accept)) => {
                Err(Error::new(Code::DefinitionChanged, format!("{names} cannot be accepted: {why}"))
                    .help(format!("fix it, or keep the original definition with `lockgate resume {} --changed keep`", run.id)))
            }
            (Err(why), Some(Choice::Keep) | None) => {
                Ok(Settled::Kept(format!("{what} ({}); the run keeps its original definition", sanitize::line(&why.to_string()))))
            }
            (Ok(frozen), Some(Choice::Accept)) => Ok(Settled::Accepted(frozen)),
            (Ok(_), Some(Choice::Keep)) => Ok(Settled::Kept(format!("{what}; the run keeps its original definition"))),
            (Ok(_), None) => {
                let resume = format!("lockgate resume {}", run.id);
                Err(Error::new(Code::DefinitionChanged, what).help(format!(
                    "keep the original definition with `{resume} --changed keep`, or accept the changed files with `{resume} --changed accept`"
                )))
            }
        }
    }
}

/// Whether a step failed in a way that only a changed workflow file can fix: in a script or template, or because of missing
/// outputs.
pub fn is_fault_of_definition(run: &Run) -> bool {
    let tasks = run.current.iter().flat_map(|phase| &phase.tasks).filter_map(|task| task.state.failure());
    let gates = run.current.iter().flat_map(|phase| &phase.gates).filter_map(|gate| gate.state.failure());
    tasks.chain(gates).any(|failure| match failure.kind {
        FailureKind::Script | FailureKind::Start | FailureKind::Output | FailureKind::Condition => true,
        FailureKind::Exit(_)
        | FailureKind::Signal(_)
        | FailureKind::Timeout
        | FailureKind::Interrupted
        | FailureKind::Agent
        | FailureKind::Budget
        | FailureKind::Idle
        | FailureKind::Until
        | FailureKind::Items
        | FailureKind::Issues
        | FailureKind::Authentication
        | FailureKind::Stopped => false,
    })
}
