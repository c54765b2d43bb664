//! Going on with a pipeline: what its state file says decides what is shown, and what is asked first.

use crate::error::CommandError;
use crate::open::Project;
use crate::{line_prompt, print};
use lockgate::code::Code;
use lockgate::view::{lockgate, resume_command};
use lockgate_engine::id::PhaseId;
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::pipeline::Lifecycle;
use lockgate_engine::run::state::End;
use lockgate_engine::run::{Refusal, Run};
use lockgate_engine::spec::workflow::Pipeline;
use lockgate_formats::pipeline::document::{Document, document};
use lockgate_runner::driver::DriveError;
use lockgate_runner::projection::runs_of;

/// How somebody wants a pipeline to go on.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct PipelineResumeFlags {
    /// Says that what failed in a pipeline is mended, instead of being asked
    #[arg(long, conflicts_with_all = ["continue_run", "restart"])]
    pub(crate) fixed: bool,
    /// Lets a pipeline go on where it was: past the gate that it waits at, and with what was cut off, instead of being asked
    #[arg(long = "continue", conflicts_with = "restart")]
    pub(crate) continue_run: bool,
    /// Runs the phase of a pipeline that was cut off again from its beginning, instead of being asked
    #[arg(long)]
    pub(crate) restart: bool,
}

impl PipelineResumeFlags {
    /// Whether anything was asked for.
    pub(crate) fn is_given(self) -> bool {
        self.fixed || self.continue_run || self.restart
    }
}

/// How a pipeline goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PipelineResume {
    /// Whether tasks that were cut off run again.
    pub(crate) rerun: bool,
    /// Whether the question at the end of its phase is answered: it goes on.
    pub(crate) approve: bool,
    /// Whether its phase runs again from the beginning.
    pub(crate) restart: bool,
}

/// The phase whose question a person answered with abort, where that ended the pipeline.
pub(crate) fn aborted_at(run: &Run) -> Option<&PhaseId> {
    let last = run.decisions.last().filter(|_| run.end == Some(End::Aborted))?;
    let phase = run.current.as_ref().map(|phase| &phase.id);
    last.phase.as_ref().filter(|at| last.checkpoint && last.task.is_none() && Some(*at) == phase)
}

/// A pipeline that was aborted or cancelled is paused, and only a person resumes it.
async fn may_resume_ended(project: &Project, run: &Run) -> Result<(), CommandError> {
    match run.end {
        Some(End::Aborted | End::Cancelled) => {
            let (caller, what) = (project.caller(Channel::Command), "resume a pipeline that was ended");
            project.may_decide(&caller, &run.id, what).await?;
            let prd = run.workflow.pipeline.as_deref().map(|pipeline| pipeline.prd.as_str()).unwrap_or_default();
            print::note(format_args!("{prd} was {}; what was asked then is asked again", run.status().word()));
            Ok(())
        }
        Some(End::Complete | End::Failed(_)) | None => Ok(()),
    }
}

/// How a new run of the same pipeline is begun.
fn begin_anew(run: &Run) -> String {
    match run.files.first() {
        Some(spec) => format!("begin a new one with `{}`", lockgate(["run", &spec.path, "--new"])),
        None => "begin a new one with --new".to_owned(),
    }
}

/// Finds out how a pipeline goes on, and shows where it stands.
pub(crate) async fn continue_run(
    project: &Project,
    run: &Run,
    asked: PipelineResumeFlags,
    may_ask: bool,
) -> Result<PipelineResume, CommandError> {
    let (Some(pipeline), Some(document)) = (run.workflow.pipeline.as_deref(), document(run, None)) else {
        return Ok(PipelineResume::default());
    };
    let prd = &pipeline.prd;
    // Who drives it is told before anything is asked.
    if let Some(by) = project.store().driver_of(&run.id).await? {
        return Err(DriveError::DrivenBy { run: run.id.clone(), by }.into());
    }
    let may_ask = may_ask && print::is_interactive();
    if run.waits_for_review() && run.end.is_some() {
        return Err(CommandError::refused_in(&run.id, Refusal::NotReviewed));
    }
    may_resume_ended(project, run).await?;
    let going = match document.status {
        _ if run.end == Some(End::Complete) => {
            return Err(CommandError::new(Code::RunEnded, format!("{prd} already complete")).help(format!(
                "see what it did with `{}`; {}",
                lockgate(["log", prd]),
                begin_anew(run)
            )));
        }
        Lifecycle::Complete | Lifecycle::Initialized => PipelineResume::default(),
        Lifecycle::Failed => {
            mended(prd, &document, asked, may_ask)?;
            PipelineResume { restart: asked.restart, ..PipelineResume::default() }
        }
        Lifecycle::Paused => {
            match document.gates_passed.last() {
                Some(gate) => {
                    print::say(format_args!("{prd} is paused; the last gate that passed: {}", lockgate::sanitize::line(gate)))
                }
                None => print::say(format_args!("{prd} is paused; no gate has passed yet")),
            }
            if only_said(run) {
                approved(project, run, &document, asked, may_ask).await?;
                PipelineResume { restart: asked.restart, ..PipelineResume::default() }
            } else {
                PipelineResume { approve: asked.continue_run, rerun: asked.continue_run, restart: asked.restart }
            }
        }
        Lifecycle::InProgress => cut_off(prd, run, &document, asked, may_ask)?,
    };
    if let Some(newest) = runs_of(project.store(), prd).await?.first().filter(|newest| newest.row.run != run.id) {
        print::warn(format_args!("the state file of {prd} follows run {}, which is newer than this one", newest.row.run));
    }
    print::talk(&display(pipeline, &document));
    Ok(going)
}

/// Whether all that is known of a pipeline is what the file says that it was imported from.
fn only_said(run: &Run) -> bool {
    run.pipeline.as_ref().is_some_and(|known| known.imported.is_some() && !known.moved)
}

/// A file that rests after a phase waits for a person, and so does the run that was made from it, although it has no open question.
async fn approved(
    project: &Project,
    run: &Run,
    document: &Document,
    asked: PipelineResumeFlags,
    may_ask: bool,
) -> Result<(), CommandError> {
    let (prd, number) = (&document.prd, document.current_phase);
    let said = asked.continue_run || asked.restart || asked.fixed;
    if said || (may_ask && yes(&format!("Go on after phase {number}? [y/N] "))?) {
        return Ok(project.may_decide(&project.caller(Channel::Command), &run.id, "answer a hold").await?);
    }
    let message = format!("the file that {prd} was imported from rests after phase {number}; nobody said that it goes on");
    Err(CommandError::new(Code::ResumeFlagRequired, message)
        .help(format!("let it go on with `{}`", resume_command(prd, ["--continue"]))))
}

fn mended(prd: &str, document: &Document, asked: PipelineResumeFlags, may_ask: bool) -> Result<(), CommandError> {
    let error = document.error.as_ref();
    let place = error.and_then(|error| Some((error.file.as_ref()?, error.line)));
    let place = place.map(|(file, line)| match line {
        Some(line) => format!(" ({file}:{line})"),
        None => format!(" ({file})"),
    });
    let what = error.map_or_else(String::new, |error| format!("{}: {}", error.workstream, error.message));
    let what = format!("{prd} failed: {what}{}", place.unwrap_or_default());
    if asked.fixed || asked.restart || asked.continue_run {
        print::say(lockgate::sanitize::line(&what));
        return Ok(());
    }
    if may_ask {
        print::say(lockgate::sanitize::line(&what));
        if yes("Is it fixed? [y/N] ")? {
            return Ok(());
        }
    }
    Err(CommandError::new(Code::ResumeFlagRequired, format!("{what}; nobody said that it is mended"))
        .help(format!("mend it, then go on with `{}`", resume_command(prd, ["--fixed"]))))
}

fn cut_off(
    prd: &str,
    run: &Run,
    document: &Document,
    asked: PipelineResumeFlags,
    may_ask: bool,
) -> Result<PipelineResume, CommandError> {
    let at_work = document.in_progress.join(", ");
    let what = match only_said(run) {
        true => format!("the file that {prd} was imported from says that {at_work} is at work, and nothing here drives it"),
        false => format!("{prd} was at work on {at_work} when the process that drove it ({}) died", run.driver),
    };
    let on = PipelineResume { rerun: true, approve: false, restart: false };
    let restart = PipelineResume { restart: true, ..PipelineResume::default() };
    if asked.continue_run || asked.fixed {
        print::warn(lockgate::sanitize::line(&what));
        return Ok(on);
    }
    if asked.restart {
        print::warn(lockgate::sanitize::line(&what));
        return Ok(restart);
    }
    if may_ask {
        print::warn(lockgate::sanitize::line(&what));
        print::say("  1. Continue: run again only what was cut off\n  2. Restart: run the whole phase again");
        loop {
            match line_prompt::ask("Which? [1] ")?.as_deref().map(str::trim) {
                None => break,
                Some("" | "1" | "continue") => return Ok(on),
                Some("2" | "restart") => return Ok(restart),
                Some(_) => print::say("type 1 or 2"),
            }
        }
    }
    Err(CommandError::new(Code::ResumeFlagRequired, format!("{what}; nobody said how to go on")).help(format!(
        "run again only what was cut off: `{}`; run its phase again: `{}`",
        resume_command(prd, ["--continue"]),
        resume_command(prd, ["--restart"])
    )))
}

fn yes(question: &str) -> Result<bool, CommandError> {
    let line = line_prompt::ask(question)?;
    Ok(matches!(line.as_deref().map(str::trim).map(str::to_lowercase).as_deref(), Some("y" | "yes")))
}

/// Where a pipeline goes on, as its source shows it.
fn display(pipeline: &Pipeline, document: &Document) -> String {
    let open = |workstream: &String| document.pending.contains(workstream) || document.in_progress.contains(workstream);
    let first = pipeline.phases.iter().position(|phase| phase.workstreams.iter().any(|id| open(&id.to_string())));
    let number = first.map_or(pipeline.phases.len(), |position| position + 1);
    let named = |id: &String| {
        let name = pipeline.workstream(id).map(|workstream| workstream.name.as_str()).filter(|name| !name.is_empty());
        lockgate::sanitize::line(&name.map_or_else(|| id.clone(), |name| format!("{id}: {name}"))).into_owned()
    };
    let mut text = format!("Resuming {} from Phase {number}\n", pipeline.prd);
    if !document.completed.is_empty() {
        text += "\nCompleted:\n";
        text.extend(document.completed.iter().map(|id| format!("  {} ✅\n", named(id))));
    }
    let pending: Vec<&String> = document.in_progress.iter().chain(&document.pending).collect();
    if !pending.is_empty() {
        text += "\nPending:\n";
        text.extend(pending.iter().map(|id| format!("  {}\n", named(id))));
    }
    text.push('\n');
    text
}
