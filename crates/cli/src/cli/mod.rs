//! The commands: one file each, with its arguments.

mod answer;
mod backup;
mod cancel;
mod change;
mod check;
mod completions;
mod doctor;
mod explain;
mod export;
mod gc;
mod graph;
mod handover;
mod import;
mod inbox;
mod init;
mod log;
mod logs;
mod note;
mod restore;
mod resume;
mod retry;
mod review;
mod run;
mod runs;
mod schema;
mod skip;
mod status;
mod step;
mod summary;
mod test;
mod tick;
mod validate;
mod verify;
mod wait;
mod watch;
mod why;
mod worker;
mod worktrees;

use crate::authority::{Authority, authorize};
use crate::error::{CommandError, CommandErrorView};
use crate::exit::Exit;
use crate::{logging, open, print, signals};
use clap::{Parser, Subcommand};
use lockgate::code::Code;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs workflows of commands and scripts, stops them where people decide, and never loses a step.
#[derive(Debug, Parser)]
#[command(name = "lockgate", version, after_help = EXIT_CODES)]
struct Arguments {
    /// The folder that holds .lockgate/ (found upwards from the current folder when absent)
    #[arg(long, global = true, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Log what Lockgate does to stderr: -v for info, -vv for debug, -vvv for trace (LOCKGATE_LOG sets a filter instead)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 complete or done, 1 failed, 2 aborted or cancelled, 3 waiting for a person (also: driven by another process, a late \
or stale answer, or refused because it needs a person: no terminal, or inside a task), 4 bad input, 130 and 143 interrupted with the state saved.\n\n\
With --json an error is also printed on stdout, as {\"error\": {\"code\", \"message\", \"help\", \"exit\"}}.\n\
`lockgate explain CODE` says more about the code in the brackets of an error.";

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Arguments),
    Run(run::Arguments),
    Worker(worker::Arguments),
    Resume(resume::Arguments),
    Status(status::Arguments),
    Summary(summary::Arguments),
    Runs(runs::Arguments),
    Inbox(inbox::Arguments),
    Answer(answer::Arguments),
    Change(change::Arguments),
    Tick(tick::Arguments),
    Handover(handover::HandoverArguments),
    Continuation(handover::ContinuationArguments),
    Why(why::Arguments),
    Log(log::Arguments),
    Logs(logs::Arguments),
    Retry(retry::Arguments),
    Review(review::Arguments),
    Note(note::Arguments),
    Import(import::Arguments),
    Export(export::Arguments),
    Skip(skip::Arguments),
    Wait(wait::Arguments),
    Watch(watch::Arguments),
    Cancel(cancel::Arguments),
    Verify(verify::Arguments),
    Validate(validate::Arguments),
    Check(check::Arguments),
    Test(test::Arguments),
    Graph(graph::Arguments),
    Worktrees(worktrees::Arguments),
    Schema(schema::Arguments),
    Doctor(doctor::Arguments),
    Explain(explain::Arguments),
    Backup(backup::Arguments),
    Restore(restore::Arguments),
    Gc(gc::Arguments),
    Completions(completions::Arguments),
}

impl Command {
    /// Who may use it. Every command is named here, so that none can be added without saying who may use it.
    fn authority(&self) -> Authority<'_> {
        match self {
            Self::Init(_)
            | Self::Status(_)
            | Self::Summary(_)
            | Self::Runs(_)
            | Self::Inbox(_)
            | Self::Handover(_)
            | Self::Continuation(_)
            | Self::Why(_)
            | Self::Log(_)
            | Self::Logs(_)
            | Self::Note(_)
            | Self::Export(_)
            | Self::Wait(_)
            | Self::Watch(_)
            | Self::Verify(_)
            | Self::Validate(_)
            | Self::Check(_)
            | Self::Test(_)
            | Self::Graph(_)
            | Self::Schema(_)
            | Self::Doctor(_)
            | Self::Explain(_)
            | Self::Backup(_)
            | Self::Completions(_) => Authority::Anyone,
            Self::Run(arguments) => arguments.authority(),
            Self::Worker(arguments) => arguments.authority(),
            Self::Resume(arguments) => arguments.authority(),
            Self::Answer(arguments) => arguments.authority(),
            Self::Change(arguments) => arguments.authority(),
            Self::Tick(_) => tick::Arguments::authority(),
            Self::Retry(arguments) => arguments.authority(),
            Self::Review(arguments) => arguments.authority(),
            Self::Import(arguments) => arguments.authority(),
            Self::Skip(arguments) => arguments.authority(),
            Self::Cancel(arguments) => arguments.authority(),
            Self::Worktrees(arguments) => arguments.authority(),
            Self::Restore(_) => restore::Arguments::authority(),
            Self::Gc(arguments) => arguments.authority(),
        }
    }
}

/// What a program is told where something could not be done.
#[derive(Serialize)]
struct ErrorView {
    error: CommandErrorView,
}

/// Runs the command line of this process.
pub(crate) fn main() -> ExitCode {
    // Workers are started often and by ourselves only: they need no reading of arguments.
    if let Some(exit) = lockgate::script_worker::run_if_requested() {
        return exit;
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error).into(),
    };
    match execute(arguments) {
        Ok(exit) => exit.into(),
        Err(error) => {
            error.report();
            if wants_json() {
                print::json_lines(&[ErrorView { error: error.view() }]);
            }
            error.exit().into()
        }
    }
}

/// Whether a program reads the output. It is asked of the words themselves, so that it is known also where they are wrong.
fn wants_json() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}

/// Help and versions are data; wrong usage is talk, and ends the program as other bad input does.
fn usage(error: &clap::Error) -> Exit {
    let text = error.render().ansi().to_string();
    if error.use_stderr() {
        let plain = error.render().to_string();
        // Where nothing was asked for, the text is the help itself.
        let text = match plain.starts_with("error:") {
            true => text.replacen("error:", &format!("error[{}]:", Code::InvalidUsage.text()), 1),
            false => text,
        };
        print::talk(&text);
        if wants_json() {
            let mut parts = plain.split("\n\n").map(str::trim).filter(|part| !part.is_empty());
            let message = parts.next().unwrap_or("wrong usage");
            let error = CommandError::new(Code::InvalidUsage, message.strip_prefix("error: ").unwrap_or(message));
            print::json_lines(&[ErrorView { error: parts.fold(error, CommandError::help).view() }]);
        }
        return Exit::Misuse;
    }
    print::data(&text);
    Exit::Done
}

fn execute(arguments: Arguments) -> Result<Exit, CommandError> {
    logging::start(arguments.verbose)?;
    // One run is driven best by one thread; many share what processors there are.
    let runtime = match &arguments.command {
        Command::Worker(_) => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    let runtime =
        runtime.map_err(|error| CommandError::new(Code::StartupFailed, format!("the program cannot start: {error}")))?;
    let root = arguments.root.as_deref();
    let done = runtime.block_on(async {
        let done = perform(root, arguments.command).await;
        open::settle_notices().await;
        done
    });
    // Nothing that still waits in the background may keep the program from ending.
    runtime.shutdown_background();
    done
}

async fn perform(root: Option<&Path>, command: Command) -> Result<Exit, CommandError> {
    signals::outlive_size_limits();
    authorize(root, command.authority()).await?;
    match command {
        Command::Init(arguments) => init::run(root, &arguments),
        Command::Run(arguments) => run::run(root, arguments).await,
        Command::Worker(arguments) => worker::run(root, arguments).await,
        Command::Resume(arguments) => resume::run(root, arguments).await,
        Command::Status(arguments) => status::run(root, arguments).await,
        Command::Summary(arguments) => summary::run(root, arguments).await,
        Command::Runs(arguments) => runs::run(root, arguments).await,
        Command::Inbox(arguments) => inbox::run(root, arguments).await,
        Command::Answer(arguments) => answer::run(root, arguments).await,
        Command::Change(arguments) => change::run(root, arguments).await,
        Command::Tick(arguments) => tick::run(root, arguments).await,
        Command::Handover(arguments) => handover::show_handover(root, arguments).await,
        Command::Continuation(arguments) => handover::show_continuation(root, arguments).await,
        Command::Why(arguments) => why::run(root, arguments).await,
        Command::Log(arguments) => log::run(root, arguments).await,
        Command::Logs(arguments) => logs::run(root, arguments).await,
        Command::Retry(arguments) => retry::run(root, arguments).await,
        Command::Review(arguments) => review::run(root, arguments).await,
        Command::Note(arguments) => note::run(root, arguments).await,
        Command::Import(arguments) => import::run(root, arguments).await,
        Command::Export(arguments) => export::run(root, arguments).await,
        Command::Skip(arguments) => skip::run(root, arguments).await,
        Command::Wait(arguments) => wait::run(root, arguments).await,
        Command::Watch(arguments) => watch::run(root, arguments).await,
        Command::Cancel(arguments) => cancel::run(root, arguments).await,
        Command::Verify(arguments) => verify::run(root, arguments).await,
        Command::Validate(arguments) => Ok(validate::run(&arguments)),
        Command::Check(arguments) => check::run(&arguments),
        Command::Test(arguments) => test::run(root, arguments).await,
        Command::Graph(arguments) => graph::run(root, arguments).await,
        Command::Worktrees(arguments) => worktrees::run(root, arguments).await,
        Command::Schema(arguments) => Ok(schema::run(&arguments)),
        Command::Doctor(arguments) => Ok(doctor::run(root, &arguments).await),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Backup(arguments) => backup::run(root, arguments).await,
        Command::Restore(arguments) => restore::run(root, arguments).await,
        Command::Gc(arguments) => gc::run(root, arguments).await,
        Command::Completions(arguments) => Ok(completions::run(&arguments)),
    }
}

/// The definition of the command line, which the reference is made from.
pub(crate) fn definition() -> clap::Command {
    <Arguments as clap::CommandFactory>::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_definitions_are_consistent() {
        definition().debug_assert();
    }
}
