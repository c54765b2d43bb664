//! Resuming a pipeline: its situation, and the choice that the caller must make.

use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use crate::resume::Resume;
use crate::view::{lockgate, resume_command};
use lockgate_engine::hold::option_ids;
use lockgate_engine::id::{PhaseId, RunId};
use lockgate_engine::run::command::Caller;
use lockgate_engine::run::event::PresetAnswer;
use lockgate_engine::run::pipeline::Lifecycle;
use lockgate_engine::run::state::End;
use lockgate_engine::run::{Refusal, Run, Status};
use lockgate_engine::spec::workflow::Pipeline;
use lockgate_formats::state_file::document::{Document, document};
use lockgate_runner::driver::DriveError;
use lockgate_runner::projection::runs_of;

/// The caller's choice of how to resume a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeChoice {
    /// The cause of the failure is fixed.
    Fixed,
    /// Continue past the open gate, and rerun interrupted tasks.
    Continue,
    /// Restart the current phase.
    Restart,
}

/// The situation of a pipeline before it is resumed, according to its state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Situation {
    /// It can start or continue without a choice.
    Ready,
    /// It failed, and the caller must confirm that the cause is fixed.
    Failed {
        /// What failed, where and why.
        what: String,
    },
    /// It is paused after a phase.
    Paused {
        /// The last gate that passed.
        last_gate: Option<String>,
        /// The number of the phase, from 1.
        phase: u32,
        /// Whether only the imported file is known. The run then has no open hold, and the caller must choose to continue.
        imported: bool,
    },
    /// Workstreams were interrupted, and the caller must choose how to continue.
    Interrupted {
        /// Which ones, and how that is known.
        what: String,
    },
}

/// A pipeline that is about to be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineResume {
    /// The id of the pipeline.
    pub prd: String,
    /// The final status, if a person aborted or cancelled it. Its last question is asked again.
    pub ended: Option<Status>,
    /// The situation that decides which choices are possible.
    pub situation: Situation,
    /// A newer run of the same pipeline, which owns the state file.
    pub newer_run: Option<RunId>,
    /// The number of the first incomplete phase, from 1.
    pub phase: usize,
    /// The completed workstreams.
    pub completed: Vec<String>,
    /// The remaining workstreams.
    pub remaining: Vec<String>,
    /// The phase whose checkpoint was answered with abort.
    aborted_at: Option<PhaseId>,
}

impl Project {
    /// Determines what must be decided before a pipeline is resumed. Returns `None` if the run is not a pipeline. Fails if the
    /// pipeline is complete, driven by another process or waiting for a review, or if the caller may not resume it.
    pub async fn pipeline_resume(&self, run: &Run, caller: &Caller) -> Result<Option<PipelineResume>, Error> {
        let (Some(pipeline), Some(document)) = (run.workflow.pipeline.as_deref(), document(run, None)) else {
            return Ok(None);
        };
        if let Some(by) = self.store().driver_of(&run.id).await? {
            return Err(DriveError::DrivenBy { run: run.id.clone(), by }.into());
        }
        if run.waits_for_review() && run.end.is_some() {
            return Err(Error::refused_in(&run.id, Refusal::NotReviewed));
        }
        let ended = match run.end {
            Some(End::Aborted | End::Cancelled) => {
                self.may_decide(caller, &run.id, "resume a pipeline that was ended").await?;
                Some(run.status())
            }
            Some(End::Complete) => return Err(already_complete(&pipeline.prd, run)),
            Some(End::Failed(_)) | None => None,
        };
        let newest = runs_of(self.store(), &pipeline.prd).await?.into_iter().next();
        let (phase, completed, remaining) = progress(pipeline, &document);
        Ok(Some(PipelineResume {
            prd: pipeline.prd.clone(),
            ended,
            situation: Situation::of(&pipeline.prd, run, &document),
            newer_run: newest.map(|newest| newest.row.run).filter(|newest| *newest != run.id),
            phase,
            completed,
            remaining,
            aborted_at: aborted_at(run).cloned(),
        }))
    }
}

fn already_complete(prd: &str, run: &Run) -> Error {
    let new = match run.files.first() {
        Some(spec) => format!("start a new run with `{}`", lockgate(["run", &spec.path, "--new"])),
        None => "start a new run of its EXECUTION-SPEC".to_owned(),
    };
    Error::new(Code::RunEnded, format!("{prd} already complete"))
        .help(format!("see what it did with `{}`; {new}", lockgate(["log", prd])))
}

/// The phase whose checkpoint a person answered with abort, if that ended the pipeline.
fn aborted_at(run: &Run) -> Option<&PhaseId> {
    let last = run.decisions.last().filter(|_| run.end == Some(End::Aborted))?;
    let phase = run.current.as_ref().map(|phase| &phase.id);
    last.phase.as_ref().filter(|at| last.checkpoint && last.task.is_none() && Some(*at) == phase)
}

/// The number of the first incomplete phase, and the completed and remaining workstreams.
fn progress(pipeline: &Pipeline, document: &Document) -> (usize, Vec<String>, Vec<String>) {
    let open = |workstream: &str| document.pending.iter().chain(&document.in_progress).any(|known| known == workstream);
    let first = pipeline.phases.iter().position(|phase| phase.workstreams.iter().any(|id| open(id.as_str())));
    let named = |id: &String| {
        let name = pipeline.workstream(id).map(|workstream| workstream.name.as_str()).filter(|name| !name.is_empty());
        name.map_or_else(|| id.clone(), |name| format!("{id}: {name}"))
    };
    let remaining = document.in_progress.iter().chain(&document.pending).map(named).collect();
    (first.map_or(pipeline.phases.len(), |position| position + 1), document.completed.iter().map(named).collect(), remaining)
}

impl Situation {
    fn of(prd: &str, run: &Run, document: &Document) -> Self {
        let imported = run.pipeline.as_ref().is_some_and(|known| known.unmoved().is_some());
        match document.status {
            Lifecycle::Complete | Lifecycle::Initialized => Self::Ready,
            Lifecycle::Failed => Self::Failed { what: failure(prd, document) },
            Lifecycle::Paused => {
                Self::Paused { last_gate: document.gates_passed.last().cloned(), phase: document.current_phase, imported }
            }
            Lifecycle::InProgress => {
                let at_work = document.in_progress.join(", ");
                let what = match imported {
                    true => {
                        format!("according to its imported file, {prd} is working on {at_work}, but no process here drives it")
                    }
                    false => format!("{prd} was working on {at_work} when the process that drove it ({}) died", run.driver),
                };
                Self::Interrupted { what }
            }
        }
    }

    /// Whether the caller must make a choice.
    pub fn needs_choice(&self) -> bool {
        match self {
            Self::Ready | Self::Paused { imported: false, .. } => false,
            Self::Failed { .. } | Self::Paused { imported: true, .. } | Self::Interrupted { .. } => true,
        }
    }
}

fn failure(prd: &str, document: &Document) -> String {
    let Some(error) = &document.error else { return format!("{prd} failed: ") };
    let place = match (&error.file, error.line) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        (Some(file), None) => format!(" ({file})"),
        (None, _) => String::new(),
    };
    format!("{prd} failed: {}: {}{place}", error.workstream, error.message)
}

impl PipelineResume {
    /// Applies the caller's choice to `resume`. Fails if a required choice is missing.
    pub fn settle(&self, resume: &mut Resume) -> Result<(), Error> {
        let Some(choice) = resume.pipeline else {
            return if self.situation.needs_choice() { Err(self.undecided()) } else { Ok(()) };
        };
        match (&self.situation, choice) {
            (Situation::Ready, _) => {}
            (Situation::Interrupted { .. }, ResumeChoice::Continue | ResumeChoice::Fixed) => resume.rerun = true,
            (Situation::Paused { imported: false, .. }, ResumeChoice::Continue) => {
                (resume.rerun, resume.approve) = (true, true);
            }
            (Situation::Failed { .. } | Situation::Paused { .. } | Situation::Interrupted { .. }, ResumeChoice::Restart) => {
                resume.restart = true;
            }
            (Situation::Failed { .. } | Situation::Paused { .. }, ResumeChoice::Fixed | ResumeChoice::Continue) => {}
        }
        // The aborted checkpoint opens again, so its answer is preset.
        if let Some(phase) = self.aborted_at.as_ref().filter(|_| resume.approve) {
            let answer = PresetAnswer { selector: phase.to_string(), option: option_ids::CONTINUE.to_owned(), feedback: None };
            resume.answers.push(answer);
        }
        Ok(())
    }

    /// The error for a missing choice.
    fn undecided(&self) -> Error {
        let prd = &self.prd;
        match &self.situation {
            Situation::Failed { what } => {
                Error::new(Code::ResumeFlagRequired, format!("{what}; confirm that the cause is fixed"))
                    .help(format!("fix it, then continue with `{}`", resume_command(prd, ["--fixed"])))
            }
            Situation::Interrupted { what } => Error::new(Code::ResumeFlagRequired, format!("{what}; choose how to continue"))
                .help(format!(
                    "rerun only the interrupted tasks with `{}`, or the whole phase with `{}`",
                    resume_command(prd, ["--continue"]),
                    resume_command(prd, ["--restart"])
                )),
            Situation::Paused { phase, .. } => {
                let message = format!(
                    "according to its imported file, {prd} is paused after phase {phase}; confirm that it should continue"
                );
                Error::new(Code::ResumeFlagRequired, message)
                    .help(format!("continue with `{}`", resume_command(prd, ["--continue"])))
            }
            Situation::Ready => Error::new(Code::ResumeFlagRequired, format!("choose how to continue {prd}")),
        }
    }
}
