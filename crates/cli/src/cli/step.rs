//! What `lockgate retry` and `lockgate skip` share: a person says what becomes of one task or gate.

use super::answer::{print_driven, print_who_continues};
use super::resume::{self, ResumeOutcome};
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print;
use lockgate::resume::Resume;
use lockgate::sanitize;
use lockgate::select::{self, StepName};
use lockgate::step::{StepChange, StepChanged};
use lockgate_engine::id::{RunId, StepKey};
use lockgate_engine::run::Status;
use lockgate_engine::run::command::Channel;
use lockgate_runner::load::load;
use serde_json::json;
use std::path::Path;

/// Which task or gate it is about, and what happens afterwards.
#[derive(Debug, clap::Args)]
pub(super) struct StepArguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// The task or gate: PHASE/TASK, or TASK alone where no other has that name
    task: String,
    /// Goes on with the run afterwards, unless a process that drives it does
    #[arg(long)]
    resume: bool,
    /// Prints JSON: what was recorded or, with --resume, where the run stands at the end
    #[arg(long)]
    json: bool,
}

impl StepArguments {
    pub(super) fn authority(&self, what: &'static str) -> Authority<'_> {
        Authority::Person(Decision::about_run(what, &self.run))
    }
}

/// Records a wish and, where that was asked for, goes on with the run.
pub(super) async fn run(root: Option<&Path>, arguments: StepArguments, change: StepChange) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let found = select::run(project.store(), &arguments.run).await?;
    let run = &found.row.run;
    let step = select::step(&load(project.store(), run).await?, &arguments.task)?;
    let StepChanged { key, outcome } = project.change_step(run, &step, &change, project.caller(Channel::Command)).await?;
    let recorded = outcome.is_ok();
    match outcome {
        Ok(now) => {
            print::say(describe(&change, &step, &key));
            if arguments.resume {
                project.until_driver_saw(run, now.version).await?;
            }
        }
        Err(before) => print::say(sanitize::line(&before.to_string())),
    }
    if arguments.resume {
        return continue_run(&project, run, arguments.json).await;
    }
    print_who_continues(&project, &load(project.store(), run).await?).await?;
    if arguments.json {
        print::json(&recorded_json(run, &step, &key, recorded));
    }
    Ok(Exit::Done)
}

/// Goes on with the run, unless the process that drives it does: then what was asked is done.
async fn continue_run(project: &Project, run: &RunId, json: bool) -> Result<Exit, CommandError> {
    let now = select::run(project.store(), run.as_str()).await?.row.status;
    let exit = if let Some(status) = lockgate::resume::ended(&now) {
        print::note(format_args!("run {run} is {status} already"));
        if status == Status::Complete { Exit::Done } else { Exit::Aborted }
    } else {
        match resume::continue_run(
            project,
            run,
            Resume::default(),
            resume::ResumeOptions { json, ..resume::ResumeOptions::default() },
        )
        .await?
        {
            ResumeOutcome::Here(exit) => return Ok(exit),
            ResumeOutcome::Elsewhere(by) => print_driven(run, &by),
        }
        Exit::Done
    };
    if json {
        print::json(&super::status::view_of(project, run).await?);
    }
    Ok(exit)
}

fn describe(change: &StepChange, step: &StepName, key: &StepKey) -> String {
    let address = sanitize::line(&key.address()).into_owned();
    match (change, step) {
        (StepChange::Retry, StepName::Task(..) | StepName::Gate(..)) => format!("{address} will be tried again"),
        (StepChange::Skip(_), StepName::Task(..)) => format!("{address} counts as done"),
        (StepChange::Skip(_), StepName::Gate(..)) => format!("{address} counts as passed"),
    }
}

fn recorded_json(run: &RunId, step: &StepName, key: &StepKey, recorded: bool) -> serde_json::Value {
    let iteration = match key {
        StepKey::Task(key) => key.iteration,
        StepKey::Gate { iteration, .. } => *iteration,
    };
    json!({"run": run, "phase": step.phase(), step.kind(): step.id(), "iteration": iteration, "recorded": recorded})
}
