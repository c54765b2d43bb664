//! A second front end for a project's holds, such as a bridge to a chat room. It prints each question on a line and reads answers
//! from standard input.
//!
//!     cargo run --example chat_bridge -- DIR PERSON
//!
//! It prints `HOLD@REVISION`, a tab and the question. It reads lines of the form `HOLD@REVISION OPTION`, and prints the result of
//! each. It exits at the end of its input.

use lockgate::answer::{Answer, Answered};
use lockgate::phrases::first_line;
use lockgate::project::{Options, Project};
use lockgate::store::{HoldFilter, Page};
use lockgate::view::HoldView;
use lockgate::{Error, select};
use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, person] = arguments.as_slice() else {
        print("usage: chat_bridge DIR PERSON");
        return ExitCode::from(4);
    };
    match bridge(Path::new(dir), person).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print(&format!("error[{}]: {error}", error.code().text()));
            ExitCode::FAILURE
        }
    }
}

async fn bridge(dir: &Path, person: &str) -> Result<(), Error> {
    let project = Project::open(dir, Options::default())?;
    let mut lines = input();
    let mut asked = BTreeSet::new();
    loop {
        // Take the marker before reading the list, so that no change is missed in between.
        let marker = project.store().changes();
        for hold in project.store().holds(HoldFilter::Open, Page::ALL).await? {
            let name = format!("{}@{}", hold.row.hold, hold.row.revision);
            if asked.insert(name.clone()) {
                print(&format!("{name}\t{}", first_line(&HoldView::listed(hold.row).prompt)));
            }
        }
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => print(&answer(&project, person, &line).await.unwrap_or_else(|error| format!("refused: {error}"))),
                None => return Ok(()),
            },
            changed = project.store().changed(marker) => {
                changed?;
            }
        }
    }
}

/// Answers a hold as given in a line.
async fn answer(project: &Project, person: &str, line: &str) -> Result<String, Error> {
    let (name, option) = line.split_once(' ').unwrap_or((line, ""));
    let name = select::hold_name(name)?;
    let hold = select::hold(project.store(), &name).await?.row;
    let answer = Answer { revision: name.revision, ..Answer::new(option) };
    Ok(match project.answer(&hold, answer, project.person(person)).await? {
        Answered::Recorded { label, .. } => format!("answered: {} {label}", hold.hold),
        Answered::Before { at, .. } => format!("answered before: {} at {at}", hold.hold),
    })
}

/// Reads lines from standard input.
fn input() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Prints a line. If the reader is gone, the input ends soon, too.
fn print(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}
