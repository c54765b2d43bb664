//! `lockgate review`: file what a review of a pipeline came to, before it begins.

use super::answer::print_who_continues;
use crate::authority::{Authority, Decision};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
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

/// Files what a review of a pipeline came to; nothing of it begins before one lets it
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or its PRD
    run: String,
    /// What the review came to; two are taken, after that only a person moves the pipeline
    #[arg(long, value_name = "VERDICT", required_unless_present = "override_reason", conflicts_with = "override_reason")]
    verdict: Option<VerdictWord>,
    /// How many findings must be mended before anything else
    #[arg(long, value_name = "N", default_value_t = 0)]
    p0: u32,
    /// How many findings must be mended besides
    #[arg(long, value_name = "N", default_value_t = 0)]
    p1: u32,
    /// The file with the findings
    #[arg(long, value_name = "FILE")]
    findings: Option<String>,
    /// A gate that must pass before the pipeline is complete, with --verdict ship_with_gates; may be given several times
    #[arg(long = "gate", value_name = "NAME=COMMAND")]
    gates: Vec<String>,
    /// Lets the pipeline begin whatever the review says, for this reason; only a person may
    #[arg(long = "override", value_name = "REASON")]
    override_reason: Option<String>,
    /// Prints what was recorded as JSON
    #[arg(long)]
    json: bool,
}

/// What a review came to.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum VerdictWord {
    /// It may begin
    #[value(name = "ship")]
    Ship,
    /// It may begin, and more must hold in the end
    #[value(name = "ship_with_gates")]
    ShipWithGates,
    /// It may not begin
    #[value(name = "do_not_ship")]
    DoNotShip,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        match self.override_reason {
            Some(_) => Authority::Person(Decision::about_run(OVERRIDE_REVIEW, &self.run)),
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
    let found = select::run_or_ended(project.store(), &arguments.run).await?;
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
            "nothing begins before another review lets it, or a person: {} \"…\"",
            lockgate(["review", run.as_str(), "--override"])
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
            CommandError::new(Code::InvalidUsage, format!("{text:?} names no gate"))
                .help("write NAME=COMMAND, with a name of letters, digits, - and _: --gate rls='npm run rls'")
        })
    };
    given.iter().map(read).collect()
}
