//! The common part of `lockgate retry` and `lockgate skip`: a person decides about one task or gate.

use super::after_decision::{Continues, ResumeFlags, ResumeMode, continue_run};
use crate::authority::{Authority, Decision};
use crate::complete::RunThenTask;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use clap_complete::ArgValueCompleter;
use lockgate::sanitize;
use lockgate::select::{self, NEWEST, StepName};
use lockgate::step::{StepChange, StepChanged};
use lockgate_engine::id::{RunId, StepKey};
use lockgate_engine::run::command::Channel;
use lockgate_runner::load::load;
use serde_json::json;
use std::path::Path;

#[derive(Debug, clap::Args)]
pub(super) struct StepArguments {
    /// Run [default: the newest], and task or gate: PHASE/TASK, or TASK if no other has that name
    #[arg(required = true, num_args = 1..=2, value_names = ["[RUN] TASK"], add = ArgValueCompleter::new(RunThenTask))]
    run_and_task: Vec<String>,
    #[command(flatten)]
    resume: ResumeFlags,
    /// Print the recorded decision as JSON, without prompting; with --foreground, print the final state
    #[arg(long)]
    json: bool,
}

impl StepArguments {
    pub(super) fn authority(&self, what: &'static str) -> Authority<'_> {
        Authority::Person(Decision::about_run(what, self.names().0))
    }

    /// The names of the run and of the task.
    fn names(&self) -> (&str, &str) {
        match self.run_and_task.as_slice() {
            [run, task, ..] => (run, task),
            [task] => (NEWEST, task),
            [] => (NEWEST, ""),
        }
    }
}

/// Records the decision and continues the run.
pub(super) async fn run(root: Option<&Path>, arguments: StepArguments, change: StepChange) -> Result<Exit, CommandError> {
    let project = crate::open::open(root)?;
    let (run, task) = arguments.names();
    let found = select::run(project.store(), run).await?;
    let run = &found.row.run;
    let step = select::step(&load(project.store(), run).await?, task)?;
    let StepChanged { key, outcome } = project.change_step(run, &step, &change, project.caller(Channel::Command)).await?;
    let recorded = outcome.is_ok();
    let mode = arguments.resume.mode(arguments.json);
    match outcome {
        Ok(now) => {
            print::say(describe(&change, &step, &key));
            if mode != ResumeMode::No {
                project.until_driver_saw(run, now.version).await?;
            }
        }
        Err(before) => print::say(sanitize::line(&before.to_string())),
    }
    let continues = continue_run(&project, run, mode).await?;
    if arguments.json && !matches!(continues, Continues::Here(_)) {
        let mut view = recorded_json(run, &step, &key, recorded);
        view["continues"] = json!(continues);
        print::json(&view);
    }
    Ok(continues.exit())
}

fn describe(change: &StepChange, step: &StepName, key: &StepKey) -> String {
    let address = sanitize::line(&key.address()).into_owned();
    match (change, step) {
        (StepChange::Retry, StepName::Task(..) | StepName::Gate(..)) => format!("{address} will be retried"),
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
