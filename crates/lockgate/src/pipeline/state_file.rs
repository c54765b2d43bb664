//! The state file of a pipeline: written where its driver could not, handed over to a fork, and printed.

use crate::error::Error;
use crate::project::Project;
use lockgate_engine::run::{Refusal, Run};
use lockgate_runner::projection::{StateFile, StateFileError, archive, refresh_files};
use std::path::PathBuf;

/// What was put aside to make room for a state file.
#[derive(Debug, Default)]
pub struct PutAside {
    /// The state file of an earlier run, where it is now.
    pub earlier: Option<PathBuf>,
    /// Something that could not be read as a state file, where it is now.
    pub unreadable: Option<PathBuf>,
    /// Why the state file could not be written.
    pub failure: Option<StateFileError>,
}

impl Project {
    /// Writes the state file of a pipeline that no process drives, where the last driver could not. Nothing happens to other runs.
    pub async fn write_state_file(&self, run: &Run, driven: bool) -> PutAside {
        if driven || run.pipeline.is_none() {
            return PutAside::default();
        }
        match refresh_files(&self.runtime, run).await {
            Ok(unreadable) => PutAside { unreadable, ..PutAside::default() },
            Err(error) => PutAside { failure: Some(error), ..PutAside::default() },
        }
    }

    /// Lets the state file follow a run that continues from another one. What it said of that one is put aside.
    pub(crate) async fn hand_over_state_file(&self, run: &Run) -> Result<PutAside, Error> {
        let Some(pipeline) = &run.workflow.pipeline else { return Ok(PutAside::default()) };
        let earlier = archive(&self.root, pipeline, self.runtime.clock.now())?;
        Ok(PutAside { earlier, ..self.write_state_file(run, false).await })
    }

    /// The state file of a pipeline as text.
    pub async fn export_state_file(&self, run: &Run) -> Result<String, Error> {
        let file = StateFile::of(&self.root, self.runtime.store.clone(), run).ok_or(Refusal::NotAPipeline)?;
        Ok(file.export().await?)
    }
}
