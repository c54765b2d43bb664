//! `lockgate why`: what a run waits for, since when, who can move it, and with which command.

use super::status::view_of;
use crate::exit::Exit;
use crate::open::Project;
use crate::print::{self, HELP, STRONG, styled};
use crate::trouble::Trouble;
use crate::view::{DriverView, HoldView, RunView};
use crate::{moment, neutral, select};
use lockgate_engine::time::Timestamp;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// Says what a run waits for, since when, who can move it, and with which command
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The run: its id, a beginning of it, or a feature's name
    run: String,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Why {
    run: String,
    status: &'static str,
    reasons: Vec<Reason>,
}

/// Something that keeps a run from going on, or moves it.
#[derive(Serialize)]
struct Reason {
    what: String,
    since: Timestamp,
    who: String,
    commands: Vec<String>,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    let project = Project::open(root)?;
    let found = select::run(project.store(), &arguments.run).await?;
    let view = view_of(&project, &found.row.run).await?;
    let why = explain(&view, found.row.changed_at);
    if arguments.json {
        print::json(&why);
    } else {
        print::data(&text(&why, project.world.clock.now()));
    }
    Ok(Exit::Done)
}

fn explain(view: &RunView, changed_at: Timestamp) -> Why {
    let run = &view.run;
    let open = view.holds.iter().filter(|hold| hold.state == "open");
    let mut reasons: Vec<Reason> = open.map(|hold| waits_for_an_answer(hold, view.driver.as_ref())).collect();
    let resume = vec![format!("lockgate resume {run}")];
    let reason =
        |what: String, who: &str, commands: Vec<String>| Reason { what, since: changed_at, who: who.to_owned(), commands };
    match view.status {
        "running" => {
            if let Some(driver) = &view.driver {
                let busy: Vec<&str> = view
                    .tasks
                    .iter()
                    .chain(&view.gates)
                    .filter(|step| step.status == "running")
                    .map(|step| step.id.as_str())
                    .collect();
                let what = match busy.as_slice() {
                    [] => "it is running".to_owned(),
                    busy => format!("it is running {}", busy.join(", ")),
                };
                let who = format!("process {} on {}, which drives it since {}", driver.pid, driver.host, driver.since);
                reasons.push(reason(what, &who, vec![format!("lockgate cancel {run}")]));
            }
        }
        "interrupted" => {
            let what = "it was interrupted: nothing drives it, and its state is saved".to_owned();
            reasons.push(reason(what, "whoever resumes it", resume));
        }
        "failed" => {
            let error = view.error.as_deref().unwrap_or("something failed");
            let who = "whoever mends it and resumes it; only what failed is tried again";
            reasons.push(reason(error.to_owned(), who, resume));
        }
        "complete" => {
            reasons.push(reason("it is complete: all phases are done".into(), "nobody; there is nothing left to do", Vec::new()))
        }
        "aborted" => reasons.push(reason("a person aborted it".into(), "nobody; begin a new run", Vec::new())),
        "cancelled" => reasons.push(reason("somebody cancelled it".into(), "nobody; begin a new run", Vec::new())),
        _ => {}
    }
    Why { run: run.clone(), status: view.status, reasons }
}

fn waits_for_an_answer(hold: &HoldView, asked_by: Option<&DriverView>) -> Reason {
    let who = match asked_by {
        None => "a person".to_owned(),
        Some(driver) => format!("a person; process {} on {} asks at its terminal too", driver.pid, driver.host),
    };
    let place = hold.phase.as_deref().map(|phase| format!(" in phase {phase}")).unwrap_or_default();
    Reason {
        what: format!("it waits for an answer to hold {}@{}{place}: {}", hold.id, hold.revision, hold.prompt),
        since: hold.since,
        who,
        commands: hold.commands(),
    }
}

fn text(why: &Why, now: Timestamp) -> String {
    let mut text = format!("run {} is {}\n", styled(STRONG, &why.run), why.status);
    for reason in &why.reasons {
        for line in neutral::lines(&reason.what).lines() {
            let _ = writeln!(text, "  {line}");
        }
        let _ = writeln!(text, "  since {} ({})", reason.since, moment::ago(now, reason.since));
        let _ = writeln!(text, "  who can move it: {}", neutral::line(&reason.who));
        for command in &reason.commands {
            let _ = writeln!(text, "    {}", styled(HELP, neutral::line(command)));
        }
    }
    text
}
