//! The definition that a run keeps, and what became of its files since.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::sanitize;
use crate::start::with_limits;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::{FailureKind, FrozenFile};
use lockgate_runner::start::{DonePlans, Frozen, WorkflowFileError, read_workflow_with};

/// The definition that the files make now, where that is another one than the run has.
pub struct Difference {
    /// Files that have changed, are new, or are gone.
    files: Vec<String>,
    /// What they make; or why they make nothing.
    now: Result<Box<Frozen>, Unusable>,
}

/// Why the files define no workflow now.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] WorkflowFileError),
    /// The file has errors that it did not have before.
    #[error("it has errors now")]
    Invalid,
}

/// What has changed in the files of a run since it began, or since a change was accepted.
pub fn difference(project: &Project, run: &Run) -> Option<Difference> {
    let first = run.files.first()?;
    // A plan of the run stays in it when its summary is written meanwhile.
    let kept = run.workflow.plans.iter().filter_map(|plan| plan.file.clone()).collect();
    let file = match read_workflow_with(&project.root.dir().join(&first.path), &DonePlans::Keep(kept)) {
        Ok(file) => file,
        Err(error) => return Some(Difference { files: vec![first.path.clone()], now: Err(error.into()) }),
    };
    let Some(workflow) = file.workflow.clone() else {
        // The file that the run began with had no errors, so this is another one.
        return Some(Difference { files: vec![first.path.clone()], now: Err(Unusable::Invalid) });
    };
    let workflow = with_limits(workflow, &project.config);
    let frozen = Frozen::new(&project.root, &file, workflow);
    let (_, now) = frozen.definition();
    let files = differing(&run.files, now);
    (!files.is_empty()).then(|| Difference { files, now: Ok(Box::new(frozen)) })
}

fn differing(then: &[FrozenFile], now: &[FrozenFile]) -> Vec<String> {
    let changed = now.iter().filter(|file| !then.contains(file)).map(|file| file.path.clone());
    let gone =
        then.iter().filter(|file| !now.iter().any(|known| known.path == file.path)).map(|file| format!("{} (gone)", file.path));
    changed.chain(gone).collect()
}

/// What a run continues with when its files have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// What it started with.
    Keep,
    /// What the files say now.
    Accept,
}

/// What a run continues with.
pub enum Settled {
    /// What it has; people should know this about its files.
    Kept(String),
    /// What the files say now.
    Accepted(Box<Frozen>),
}

impl Difference {
    /// Whether the files define a workflow that the run could continue with.
    pub fn can_be_accepted(&self) -> bool {
        self.now.is_ok()
    }

    /// What has changed, for people.
    pub fn describe(&self, run: &Run) -> String {
        format!("the files of run {} have changed since it began: {}", run.id, self.names())
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.files.iter().map(|file| sanitize::line(file).into_owned()).collect();
        names.join(", ")
    }

    /// What the run continues with; an error where nobody has chosen and both are possible.
    pub fn settle(self, run: &Run, choice: Option<Choice>) -> Result<Settled, Error> {
        let (what, names) = (self.describe(run), self.names());
        match (self.now, choice) {
            (Err(why), Some(Choice::Accept)) => {
                Err(Error::new(Code::DefinitionChanged, format!("{names} cannot be accepted: {why}"))
                    .help(format!("mend it, or go on with `lockgate resume {} --changed keep`", run.id)))
            }
            (Err(why), Some(Choice::Keep) | None) => {
                Ok(Settled::Kept(format!("{what} ({}); the run keeps to what it began with", sanitize::line(&why.to_string()))))
            }
            (Ok(frozen), Some(Choice::Accept)) => Ok(Settled::Accepted(frozen)),
            (Ok(_), Some(Choice::Keep)) => Ok(Settled::Kept(format!("{what}; the run keeps to what it began with"))),
            (Ok(_), None) => {
                let resume = format!("lockgate resume {}", run.id);
                Err(Error::new(Code::DefinitionChanged, what).help(format!(
                    "go on with them as they were: `{resume} --changed keep`; accept them as they are now: `{resume} --changed accept`"
                )))
            }
        }
    }
}

/// Whether something failed in a run that only another workflow file fixes: a script, a template, or outputs that are not there.
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
