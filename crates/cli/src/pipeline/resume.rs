//! Resuming a pipeline: shows the state in its file, and asks for the choice that it requires.

use crate::error::CommandError;
use crate::{line_prompt, print};
use lockgate::pipeline::{PipelineResume, ResumeChoice, Situation};
use lockgate::sanitize;

/// How to resume a pipeline
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct PipelineResumeFlags {
    /// Confirm that the failure of a pipeline is fixed, instead of being asked
    #[arg(long, conflicts_with_all = ["continue_run", "restart"])]
    pub(crate) fixed: bool,
    /// Continue a pipeline past its gate and with interrupted work, instead of being asked
    #[arg(long = "continue", conflicts_with = "restart")]
    pub(crate) continue_run: bool,
    /// Restart the interrupted phase of a pipeline, instead of being asked
    #[arg(long)]
    pub(crate) restart: bool,
}

impl PipelineResumeFlags {
    pub(crate) fn choice(self) -> Option<ResumeChoice> {
        match self {
            Self { restart: true, .. } => Some(ResumeChoice::Restart),
            Self { continue_run: true, .. } => Some(ResumeChoice::Continue),
            Self { fixed: true, .. } => Some(ResumeChoice::Fixed),
            Self { restart: false, continue_run: false, fixed: false } => None,
        }
    }
}

/// Shows the situation of a pipeline, and asks for a choice unless one is given.
pub(crate) fn ask(
    resume: &PipelineResume,
    chosen: Option<ResumeChoice>,
    may_ask: bool,
) -> Result<Option<ResumeChoice>, CommandError> {
    if let Some(ended) = resume.ended {
        print::note(format_args!("{} was {ended}; its last question is asked again", resume.prd));
    }
    let may_ask = may_ask && chosen.is_none() && print::is_interactive();
    // Otherwise, the error contains it.
    let is_shown = may_ask || chosen.is_some();
    let asked = match &resume.situation {
        Situation::Ready => None,
        Situation::Failed { what } => {
            if is_shown {
                print::say(sanitize::line(what));
            }
            (may_ask && yes("Is it fixed? [y/N] ")?).then_some(ResumeChoice::Fixed)
        }
        Situation::Paused { last_gate, phase, imported } => {
            match last_gate {
                Some(gate) => print::say(format_args!("{} is paused; last gate passed: {}", resume.prd, sanitize::line(gate))),
                None => print::say(format_args!("{} is paused; no gate has passed yet", resume.prd)),
            }
            let asks = *imported && may_ask;
            (asks && yes(&format!("Continue after phase {phase}? [y/N] "))?).then_some(ResumeChoice::Continue)
        }
        Situation::Interrupted { what } => {
            if is_shown {
                print::warn(sanitize::line(what));
            }
            if may_ask { ask_how()? } else { None }
        }
    };
    Ok(chosen.or(asked))
}

fn ask_how() -> Result<Option<ResumeChoice>, CommandError> {
    print::say("  1. Continue: rerun only the interrupted tasks\n  2. Restart: rerun the whole phase");
    loop {
        match line_prompt::ask("Which? [1] ")?.as_deref().map(str::trim) {
            None => return Ok(None),
            Some("" | "1" | "continue") => return Ok(Some(ResumeChoice::Continue)),
            Some("2" | "restart") => return Ok(Some(ResumeChoice::Restart)),
            Some(_) => print::say("type 1 or 2"),
        }
    }
}

fn yes(question: &str) -> Result<bool, CommandError> {
    let line = line_prompt::ask(question)?;
    Ok(matches!(line.as_deref().map(str::trim).map(str::to_lowercase).as_deref(), Some("y" | "yes")))
}

/// Shows where a pipeline resumes, in the form of its source.
pub(crate) fn report(resume: &PipelineResume) {
    if let Some(newer) = &resume.newer_run {
        print::warn(format_args!("the state file of {} follows run {newer}, which is newer than this one", resume.prd));
    }
    let mut text = format!("Resuming {} from Phase {}\n", resume.prd, resume.phase);
    if !resume.completed.is_empty() {
        text += "\nCompleted:\n";
        text.extend(resume.completed.iter().map(|name| format!("  {} ✅\n", sanitize::line(name))));
    }
    if !resume.remaining.is_empty() {
        text += "\nPending:\n";
        text.extend(resume.remaining.iter().map(|name| format!("  {}\n", sanitize::line(name))));
    }
    text.push('\n');
    print::talk(&text);
}
