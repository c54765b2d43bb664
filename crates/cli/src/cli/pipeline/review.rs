//! `lockgate pipeline review`: file the review of a pipeline before it starts.

use super::super::after_decision::print_who_continues;
use super::super::help::examples;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use crate::run_argument::NamedRun;
use clap::ValueEnum;
use lockgate::code::Code;
use lockgate::pipeline::{OVERRIDE_REVIEW, Reviewed, review_gate};
use lockgate::view::lockgate;
use lockgate::{describe, select};
use lockgate_engine::run::command::Channel;
use lockgate_engine::run::pipeline::{PipelineEvent, Review, Verdict};
use lockgate_engine::spec::workflow::Gate;
use serde_json::json;
use std::path::Path;

/// File the review of a pipeline
///
/// A pipeline that requires a review starts only after a review permits it.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate pipeline review PRD-009 --verdict ship --p0 0 --p1 2",
    "lockgate pipeline review PRD-009 --override \"the findings are out of scope\"",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: NamedRun,
    /// Verdict of the review; after two reviews, only a person can start the pipeline
    #[arg(long, value_name = "VERDICT", required_unless_present = "override_reason", conflicts_with = "override_reason")]
    verdict: Option<VerdictWord>,
    /// Number of P0 findings, which block the pipeline
    #[arg(long, value_name = "N", default_value_t = 0)]
    p0: u32,
    /// Number of P1 findings
    #[arg(long, value_name = "N", default_value_t = 0)]
    p1: u32,
    /// File with the findings
    #[arg(long, value_name = "FILE")]
    findings: Option<String>,
    /// Gate that must pass before the pipeline is complete, with --verdict ship_with_gates; repeatable
    #[arg(long = "gate", value_name = "NAME=COMMAND")]
    gates: Vec<String>,
    /// Start the pipeline despite the review, for this reason; only a person can do that
    #[arg(long = "override", value_name = "REASON")]
    override_reason: Option<String>,
    /// Print the recorded review as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum VerdictWord {
    /// The pipeline can start
    #[value(name = "ship")]
    Ship,
    /// The pipeline can start, and must pass more gates
    #[value(name = "ship_with_gates")]
    ShipWithGates,
    /// The pipeline cannot start
    #[value(name = "do_not_ship")]
    DoNotShip,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        match self.override_reason {
            Some(_) => Authority::Person(Decision::about_run(OVERRIDE_REVIEW, &self.run.run)),
            None => Authority::Anyone,
        }
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let verdict = match arguments.verdict {
        Some(VerdictWord::Ship) => Verdict::Ship,
        Some(VerdictWord::ShipWithGates) => Verdict::ShipWithGates,
        Some(VerdictWord::DoNotShip) => Verdict::DoNotShip,
        None => Verdict::Overridden,
    };
    let gates = gates(&arguments.gates)?;
    let project = crate::open::open(root)?;
    let found = select::run_or_ended(project.store(), &arguments.run.run).await?;
    let run = &found.row.run;
    let review = Review {
        verdict,
        p0: arguments.p0,
        p1: arguments.p1,
        attempt: 0,
        findings: arguments.findings,
        override_reason: arguments.override_reason,
        gates,
    };
    let Reviewed { run: now, review: filed } = project.review(run, review, project.caller(Channel::Command)).await?;
    print::say(describe::of_pipeline(&PipelineEvent::Reviewed(filed.clone())));
    if filed.verdict.allows_start() {
        print_who_continues(&project, &now).await?;
    } else {
        print::say(format_args!(
            "it starts only after another review permits it, or a person overrides it: {} \"…\"",
            lockgate(["pipeline", "review", run.as_str(), "--override"])
        ));
    }
    if arguments.json {
        let recorded =
            json!({"run": run, "verdict": filed.verdict.as_str(), "attempt": filed.attempt, "p0": filed.p0, "p1": filed.p1});
        print::json(&recorded);
    }
    Ok(if filed.verdict.allows_start() { Exit::Done } else { Exit::Failed })
}

fn gates(given: &[String]) -> Result<Vec<Gate>, CommandError> {
    let read = |text: &String| {
        let gate = text.split_once('=').and_then(|(name, command)| review_gate(name, command));
        gate.ok_or_else(|| {
            CommandError::new(Code::InvalidUsage, format!("{text:?} is not a gate"))
                .help("write NAME=COMMAND, with a name of letters, digits, - and _: --gate rls='npm run rls'")
        })
    };
    given.iter().map(read).collect()
}
