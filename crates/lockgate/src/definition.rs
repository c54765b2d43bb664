//! The definition that a run keeps, and what became of its files since.

use crate::project::Project;
use crate::start::with_limits;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::FrozenFile;
use lockgate_runner::start::{DonePlans, Frozen, read_workflow_with};

/// The definition that the files make now, where that is another one than the run has.
pub struct Difference {
    /// Files that have changed, are new, or are gone.
    pub files: Vec<String>,
    /// What they make; or why they make nothing.
    pub now: Result<Box<Frozen>, String>,
}

/// What has changed in the files of a run since it began, or since a change was accepted.
pub fn difference(project: &Project, run: &Run) -> Option<Difference> {
    let first = run.files.first()?;
    // A plan of the run stays in it when its summary is written meanwhile.
    let kept = run.workflow.plans.iter().filter_map(|plan| plan.file.clone()).collect();
    let file = match read_workflow_with(&project.root.dir().join(&first.path), &DonePlans::Keep(kept)) {
        Ok(file) => file,
        Err(error) => return Some(Difference { files: vec![first.path.clone()], now: Err(error.to_string()) }),
    };
    let Some(workflow) = file.workflow.clone() else {
        // The file that the run began with had no errors, so this is another one.
        return Some(Difference { files: vec![first.path.clone()], now: Err("it has errors now".to_owned()) });
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
