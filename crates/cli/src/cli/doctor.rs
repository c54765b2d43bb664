//! `lockgate doctor`: what is wrong with this machine or project, and how to mend it.

mod agents;
mod machine;
mod project;

use crate::exit::Exit;
use crate::open::current_folder;
use crate::print::{self, ERROR, FAINT, GOOD, HELP, styled};
use lockgate::neutral;
use lockgate_runner::root::Root;
use serde::Serialize;
use std::path::Path;

/// Looks for what is wrong with this machine, the project and its database, and says how to mend it
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// What came of one look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    check: &'static str,
    state: State,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// All is well.
    Fine,
    /// There is nothing to look at.
    Absent,
    /// Somebody should do something.
    Wrong,
}

impl Check {
    fn fine(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, state: State::Fine, found: found.into(), mend: None }
    }

    fn absent(check: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { check, state: State::Absent, found: found.into(), mend: Some(mend.into()) }
    }

    fn wrong(check: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { check, state: State::Wrong, found: found.into(), mend: Some(mend.into()) }
    }
}

#[derive(Serialize)]
struct Report {
    fine: bool,
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
        None => checks.push(Check::absent(
            "project",
            "there is no .lockgate in this folder or above it",
            "`lockgate init` makes a project here; --root DIR looks at another one",
        )),
    }
    let fine = checks.iter().all(|check| check.state != State::Wrong);
    if arguments.json {
        print::json(&Report { fine, checks });
    } else {
        print::data(&text(&checks));
    }
    if fine { Exit::Done } else { Exit::Failed }
}

fn text(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let (sign, style) = match check.state {
            State::Fine => ("✓ fine", GOOD),
            State::Absent => ("- none", FAINT),
            State::Wrong => ("✗ wrong", ERROR),
        };
        let found = neutral::lines(&check.found);
        let mut lines = found.lines();
        text.push_str(&format!(
            "{}  {:<9} {}\n",
            styled(style, format_args!("{sign:<7}")),
            check.check,
            lines.next().unwrap_or_default()
        ));
        for line in lines {
            text.push_str(&format!("{:19} {line}\n", ""));
        }
        for line in check.mend.as_deref().map(neutral::lines).unwrap_or_default().lines() {
            text.push_str(&format!("{:19} {}\n", "", styled(HELP, line)));
        }
    }
    text
}
