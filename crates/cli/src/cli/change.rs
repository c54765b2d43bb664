//! `lockgate change`: change an answer that no person gave.

use super::worktrees::git_error;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::prompt::{self, Confirmed};
use crate::{background, pipeline, print};
use lockgate::code::Code;
use lockgate::sanitize;
use lockgate::select::{self, HoldName};
use lockgate::view::HoldView;
use lockgate_engine::id::{HoldId, IdSource, RunId};
use lockgate_engine::run::command::{AnswerChange, Channel, CommandKind};
use lockgate_engine::run::{Consequences, End, ForkAs, Run, consequences};
use lockgate_engine::words::counted;
use lockgate_runner::driver::{fork_with, submit};
use lockgate_runner::load::load;
use lockgate_runner::worktree::ForkBranches;
use serde::Serialize;
use std::path::Path;

/// Changes an answer that a policy, a default or a deadline gave: what depends on it is done again
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The hold; the id may be shortened
    hold: String,
    /// The option: its id, its label or its number
    option: String,
    /// What is said with it
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
    /// The run, where a fork has the answer from the run that it was made from; else the run that asked
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Does not ask whether to do it
    #[arg(long)]
    yes: bool,
    /// Prints what is done again as JSON; needs --yes
    #[arg(long, requires = "yes")]
    json: bool,
}

/// What is done again.
#[derive(Serialize)]
struct ChangedView {
    hold: String,
    run: String,
    phase: Option<String>,
    tasks: Vec<String>,
    phases: Vec<String>,
    skipped: Vec<String>,
    void_answers: usize,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        Authority::Person(Decision::about_hold("change an answer", &self.hold))
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let named = select::hold_name(&arguments.hold)?;
    let project = crate::open::open(root)?;
    let (state, hold) = meant(&project, &named, arguments.run.as_deref()).await?;
    if let Some(open) = state.holds.get(&hold) {
        let (view, now) = (HoldView::of(open), project.runtime.clock.now());
        let commands = view.next_commands(state.id.as_str(), false, now).join("\n");
        let error = CommandError::new(Code::NotStarted, format!("hold {hold} has no answer yet that could be changed"));
        return Err(match commands.is_empty() {
            true => error,
            false if view.is_overdue(now) => {
                error.help(format!("its deadline has passed, so answers are no longer accepted; apply it with\n{commands}"))
            }
            false => error.help(format!("answer it with one of\n{commands}")),
        });
    }
    let found = consequences(&state, &hold, &arguments.option)?;
    let confirmed = if arguments.yes { Confirmed::Yes } else { confirm(&state, &found).await? };
    let declined = match confirmed {
        Confirmed::Yes => None,
        Confirmed::No => Some(Exit::Waiting),
        Confirmed::Interrupted => Some(Exit::Interrupted),
    };
    if let Some(exit) = declined {
        print::say("Nothing was changed.");
        return Ok(exit);
    }
    let (run, caller) = (&state.id, project.caller(Channel::Command));
    if state.end == Some(End::Complete) {
        return fork(&project, &state, &hold, &arguments, found).await;
    }
    let body = CommandKind::ChangeAnswer(AnswerChange {
        hold: hold.clone(),
        option: arguments.option.clone(),
        feedback: arguments.feedback.clone(),
    });
    let now = submit(&project.runtime, run, caller, body).await?;
    print::say(format_args!("the answer to hold {hold} is changed"));
    if found.aborts {
        print::say(format_args!("run {run} is aborted"));
    } else if now.detached {
        let _ = background::ensure_driven(&project, run).await?;
    } else if project.store().driver_of(run).await?.is_none() && now.end.is_none() {
        print::say(format_args!("  go on: lockgate resume {run}"));
    }
    print_json(&arguments, &hold, run, &found);
    Ok(Exit::Done)
}

/// The run and the hold that are meant. A fork has answers whose holds belong to the run that it was made from.
async fn meant(project: &Project, named: &HoldName, run: Option<&str>) -> Result<(Run, HoldId), CommandError> {
    let store = project.store();
    let Some(run) = run else {
        let row = select::hold(store, named).await?.row;
        return Ok((load(store, &row.run).await?, row.hold));
    };
    let state = load(store, &select::run_or_ended(store, run).await?.row.run).await?;
    let known = state.decisions.iter().map(|decision| &decision.hold).chain(state.holds.keys());
    let hold =
        select::one_of("hold", &named.id, known.map(HoldId::as_str))?.map_or_else(|| HoldId::new(named.id.as_str()), HoldId::new);
    Ok((state, hold))
}

fn print_json(arguments: &Arguments, hold: &HoldId, run: &RunId, found: &Consequences) {
    if arguments.json {
        print::json(&ChangedView {
            hold: hold.to_string(),
            run: run.to_string(),
            phase: found.phase.as_ref().map(ToString::to_string),
            tasks: found.tasks.iter().map(ToString::to_string).collect(),
            phases: found.phases.iter().map(ToString::to_string).collect(),
            skipped: found.skipped.iter().map(ToString::to_string).collect(),
            void_answers: found.answers,
        });
    }
}

/// What is complete stays as it is: a new run goes on from there, with outputs of its own.
async fn fork(
    project: &Project,
    parent: &Run,
    hold: &HoldId,
    arguments: &Arguments,
    found: Consequences,
) -> Result<Exit, CommandError> {
    let run = RunId::new(IdSource::new(project.runtime.clock.seed()).next_id());
    let output_dir = project.root.default_output_dir(&run);
    project.root.prepare_run(&run)?;
    let (from, to) = (project.root.dir().join(&parent.output_dir), project.root.dir().join(&output_dir));
    copy(&from, &to).map_err(|error| {
        let message = format!("the outputs of run {} cannot be copied to {}: {error}", parent.id, to.display());
        CommandError::new(Code::Unwritable, message)
    })?;
    let branched = match lockgate::worktrees::uses(&parent.workflow) && !found.aborts {
        true => ForkBranches::create(&project.root, &parent.id, &run).map_err(git_error)?,
        false => ForkBranches::default(),
    };
    let own = ForkAs { run, output_dir, driver: project.store().driver().clone() };
    let (option, feedback) = (arguments.option.clone(), arguments.feedback.clone());
    let change = AnswerChange { hold: hold.clone(), option, feedback };
    let caller = project.caller(Channel::Command);
    let forked = fork_with(&project.runtime, parent, own, caller, &change).await;
    let run = forked.inspect_err(|_| branched.remove(&project.root))?;
    let (parent, fork) = (&parent.id, &run.id);
    for kept in &branched.uncommitted {
        let path = kept.folder.strip_prefix(project.root.dir()).unwrap_or(&kept.folder).to_string_lossy();
        print::note(format_args!("{} has uncommitted changes, which run {fork} does not have", sanitize::line(&path)));
    }
    if found.aborts {
        print::say(format_args!(
            "run {parent} is complete and stays as it is; run {fork} is its fork, aborted by the changed answer"
        ));
    } else {
        print::say(format_args!(
            "run {parent} is complete and stays as it is; run {fork} goes on from it with the changed answer"
        ));
        print::say(format_args!("  go on: lockgate resume {fork}"));
    }
    pipeline::hand_over(project, &run).await?;
    print_json(arguments, hold, &run.id, &found);
    Ok(Exit::Done)
}

/// Copies a folder with all that is in it; links stay links.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path())?, &target)?;
        } else if kind.is_file() {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Shows what would be done again, and asks.
async fn confirm(state: &Run, found: &Consequences) -> Result<Confirmed, CommandError> {
    match &found.phase {
        None if found.aborts && state.end == Some(End::Complete) => {
            print::say(format_args!("run {} stays as it is; a fork of it is created and aborted, and nothing is run", state.id));
        }
        None if found.aborts => print::say(format_args!("run {} is aborted", state.id)),
        None => print::say("nothing that has begun depends on it"),
        Some(phase) => {
            let phase = sanitize::line(phase.as_str()).into_owned();
            print::say(format_args!("run {} goes back to phase {phase}, and these are done again:", state.id));
            for task in &found.tasks {
                print::say(format_args!("  {phase}/{}", sanitize::line(task.as_str())));
            }
            for phase in &found.phases {
                print::say(format_args!("  all of phase {}", sanitize::line(phase.as_str())));
            }
        }
    }
    for phase in &found.skipped {
        print::say(format_args!("phase {} is skipped", sanitize::line(phase.as_str())));
    }
    if found.answers > 0 {
        let verb = if found.answers == 1 { "counts" } else { "count" };
        print::say(format_args!("{} no longer {verb}", counted(found.answers, "later answer")));
    }
    if !print::is_interactive() {
        return Err(CommandError::new(Code::TerminalRequired, "there is nobody here to confirm this")
            .help("add --yes once you have seen it"));
    }
    prompt::confirm("Change it?", None).await
}
