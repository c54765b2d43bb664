//! Reviews of a pipeline, and notes about its work.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use lockgate_engine::id::{GateId, RunId};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{Caller, CommandKind};
use lockgate_engine::run::pipeline::{Notes, PipelineCommand, Review, Verdict};
use lockgate_engine::spec::workflow::Gate;
use lockgate_runner::driver::submit;
use std::path::{Component, Path};

/// The action, as it completes "may not …".
pub const OVERRIDE_REVIEW: &str = "override a review";

/// A recorded review.
#[derive(Clone, Debug)]
pub struct Reviewed {
    /// The run, including the review.
    pub run: Run,
    /// The review, with its attempt number.
    pub review: Review,
}

impl Project {
    /// Records a review of a pipeline. Its findings must be a file inside the root.
    pub async fn review(&self, run: &RunId, review: Review, caller: Caller) -> Result<Reviewed, Error> {
        if review.verdict != Verdict::ShipWithGates && !review.gates.is_empty() {
            return Err(
                Error::new(Code::InvalidUsage, "only the verdict ship_with_gates can have gates").help("leave out the gates")
            );
        }
        let is_inside =
            |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if let Some(findings) = &review.findings
            && !(is_inside(findings) && self.root.dir().join(findings).is_file())
        {
            return Err(Error::new(Code::UnreadableFile, format!("no file {findings:?} with findings inside the root")));
        }
        let filed = review.clone();
        let wish = CommandKind::Pipeline(Box::new(PipelineCommand::Review(review)));
        match submit(&self.runtime, run, caller.clone(), wish).await {
            Ok(run) => {
                let recorded = run.pipeline.as_ref().and_then(|known| known.review.clone());
                Ok(Reviewed { review: recorded.unwrap_or(filed), run })
            }
            Err(error) => Err(self.failed(&caller, run, OVERRIDE_REVIEW, error).await),
        }
    }

    /// Adds notes to a pipeline.
    pub async fn note(&self, run: &RunId, notes: Notes, caller: Caller) -> Result<Run, Error> {
        if notes.is_empty() || notes.cleanup_done.iter().any(|text| text.trim().is_empty()) {
            return Err(Error::new(Code::InvalidUsage, "the note is empty"));
        }
        let wish = CommandKind::Pipeline(Box::new(PipelineCommand::Note(notes)));
        match submit(&self.runtime, run, caller.clone(), wish).await {
            Ok(run) => Ok(run),
            Err(error) => Err(self.failed(&caller, run, "note something", error).await),
        }
    }
}

/// Creates a gate that a review requires. Returns `None` unless the name consists of letters, digits, `-` and `_`, and the
/// command is not empty.
pub fn review_gate(name: &str, command: &str) -> Option<Gate> {
    let (name, command) = (name.trim(), command.trim());
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    let fits = !name.is_empty() && name.chars().all(is_plain) && !command.is_empty();
    fits.then(|| Gate::new(GateId::from(name), command.to_owned()))
}
