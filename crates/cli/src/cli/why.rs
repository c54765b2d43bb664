//! `lockgate why`: explain what a run waits for, since when, who can unblock it, and with which command.

use super::help::examples;
use super::status::refresh;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print::{self, HELP, STRONG, styled};
use crate::run_argument::RunArgument;
use lockgate::why::Why;
use lockgate::{human_time, sanitize, select};
use lockgate_engine::time::Timestamp;
use std::path::Path;

/// Explain what a run waits for, and what moves it
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate why",
    "lockgate why login",
]))]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunArgument,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let project = crate::open::open_read_only(root)?;
    let found = select::run_or_ended(project.store(), arguments.run.name()).await?;
    refresh(&project, &found.row.run).await?;
    let (why, now) = (project.why(&found.row.run).await?, project.now());
    if arguments.json {
        print::json(&why);
    } else {
        print::data(&text(&why, now));
    }
    Ok(Exit::Done)
}

fn text(why: &Why, now: Timestamp) -> String {
    let mut text = format!("run {} is {}\n", styled(STRONG, &why.run), why.status);
    for reason in &why.reasons {
        // The text of an open question is shown as it is.
        let is_open = reason.hold.as_ref().is_some_and(|hold| hold.is_open());
        let what = if is_open { reason.what.clone() } else { human_time::localize(&reason.what) };
        for line in sanitize::lines(&what).lines() {
            text.push_str(&format!("  {line}\n"));
        }
        if let Some(hold) = reason.hold.as_ref().filter(|hold| hold.is_open()) {
            text.extend(crate::run_text::deadline_line(hold, now).map(|line| format!("  {line}\n")));
            text += &crate::run_text::shown_text(hold, "  ");
        }
        for failure in &reason.failures {
            if reason.failures.len() > 1 {
                text.push_str(&format!("  {}\n", sanitize::line(&failure.id)));
            }
            text += &crate::run_text::failure_text(failure, "  ");
        }
        text.push_str(&format!("  since {} ({})\n", human_time::local(reason.since), human_time::ago(now, reason.since)));
        text.push_str(&format!("  who can unblock it: {}\n", sanitize::line(&human_time::localize(&reason.who))));
        for command in &reason.commands {
            text.push_str(&format!("    {}\n", styled(HELP, sanitize::line(command))));
        }
    }
    text
}
