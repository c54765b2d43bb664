//! `lockgate doctor`: find problems of this machine and project, and suggest fixes.

mod agents;
mod machine;
mod notices;
mod project;

use super::help::examples;
use crate::exit::Exit;
use crate::open::current_folder;
use crate::print::{self, ERROR, FAINT, GOOD, HELP, styled};
use lockgate::sanitize;
use lockgate_runner::root::Root;
use serde::Serialize;
use std::path::Path;

/// Check this machine and project for problems
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate doctor",
    "lockgate doctor --json",
]))]
pub(super) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    check: &'static str,
    state: State,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    /// Not present, which can be fine.
    Missing,
    /// A problem that needs a fix.
    Failed,
}

impl Check {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, state: State::Ok, message: message.into(), fix: None }
    }

    fn missing(check: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, state: State::Missing, message: message.into(), fix: Some(fix.into()) }
    }

    fn failed(check: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, state: State::Failed, message: message.into(), fix: Some(fix.into()) }
    }
}

#[derive(Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
}

pub(super) async fn run(root: Option<&Path>, arguments: &Arguments) -> Exit {
    let mut checks = machine::checks();
    let root = match root {
        Some(dir) => Some(Root::at(dir)),
        None => current_folder().ok().and_then(|here| Root::find(&here)),
    };
    match root {
        Some(root) => checks.extend(project::checks(&root).await),
        None => checks.push(Check::missing(
            "project",
            "no .lockgate in this directory or above it",
            "create a project here with `lockgate init`, or check another one with --root DIR",
        )),
    }
    let ok = checks.iter().all(|check| check.state != State::Failed);
    if arguments.json {
        print::json(&Report { ok, checks });
    } else {
        print::data(&text(&checks));
    }
    if ok { Exit::Done } else { Exit::Failed }
}

fn text(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let (sign, style) = match check.state {
            State::Ok => ("✓ ok", GOOD),
            State::Missing => ("- missing", FAINT),
            State::Failed => ("✗ failed", ERROR),
        };
        let message = sanitize::lines(&check.message);
        let mut lines = message.lines();
        text.push_str(&format!(
            "{}  {:<9} {}\n",
            styled(style, format_args!("{sign:<9}")),
            check.check,
            lines.next().unwrap_or_default()
        ));
        for line in lines {
            text.push_str(&format!("{:21} {line}\n", ""));
        }
        for line in check.fix.as_deref().map(sanitize::lines).unwrap_or_default().lines() {
            text.push_str(&format!("{:21} {}\n", "", styled(HELP, line)));
        }
    }
    text
}
