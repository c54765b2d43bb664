//! The state file of a pipeline: updating, handing over to a fork, and exporting it.

use crate::error::Error;
use crate::project::Project;
use lockgate_engine::run::{Refusal, Run};
use lockgate_runner::projection::{StateFile, StateFileError, archive, refresh_files};
use std::path::PathBuf;

/// Files that were moved aside to make room for a state file.
#[derive(Debug, Default)]
pub struct PutAside {
    /// The new path of an earlier run's state file.
    pub earlier: Option<PathBuf>,
    /// The new path of a file that was not a readable state file.
    pub unreadable: Option<PathBuf>,
    /// Why the state file could not be written.
    pub failure: Option<StateFileError>,
}

impl Project {
    /// Writes the state file of a pipeline if its last driver could not. Does nothing if a process drives the run or it is not a
    /// pipeline.
    pub async fn write_state_file(&self, run: &Run, driven: bool) -> PutAside {
        if driven || run.pipeline.is_none() {
            return PutAside::default();
        }
        match refresh_files(&self.runtime, run).await {
            Ok(unreadable) => PutAside { unreadable, ..PutAside::default() },
            Err(error) => PutAside { failure: Some(error), ..PutAside::default() },
        }
    }

    /// Makes the state file follow a fork. The file of the parent is archived.
    pub(crate) async fn hand_over_state_file(&self, run: &Run) -> Result<PutAside, Error> {
        let Some(pipeline) = &run.workflow.pipeline else { return Ok(PutAside::default()) };
        let earlier = archive(&self.root, pipeline, self.runtime.clock.now())?;
        Ok(PutAside { earlier, ..self.write_state_file(run, false).await })
    }

    /// Returns the state file of a pipeline as text.
    pub async fn export_state_file(&self, run: &Run) -> Result<String, Error> {
        let file = StateFile::of(&self.root, self.runtime.store.clone(), run).ok_or(Refusal::NotAPipeline)?;
        Ok(file.export().await?)
    }
}
