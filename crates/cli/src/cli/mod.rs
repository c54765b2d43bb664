//! The commands, one file each with its arguments.

mod after_decision;
mod agent;
mod answer;
mod cancel;
mod change;
mod completions;
mod config;
mod conflict;
mod db;
mod doctor;
mod explain;
mod graph;
mod help;
mod inbox;
mod init;
mod knowledge;
mod log;
mod logs;
mod message;
mod pipeline;
mod recover;
mod resume;
mod retry;
mod run;
mod runs;
mod schema;
mod skip;
mod snapshots;
mod status;
mod step;
mod summary;
mod team;
mod test;
mod tick;
mod validate;
mod wait;
mod watch;
mod why;
mod worker;
mod worktrees;

pub(crate) use help::{EXIT_CODES, GROUPS};

use crate::authority::{Authority, authorize};
use crate::error::{CommandError, CommandErrorView};
use crate::exit::Exit;
use crate::{complete, logging, open, print, signals};
use clap::{FromArgMatches as _, Parser, Subcommand};
use clap_complete::CompleteEnv;
use lockgate::code::Code;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run workflows of agents and commands that stop where people decide
#[derive(Debug, Parser)]
#[command(name = "lockgate", version, after_help = help::footer())]
struct Arguments {
    /// Project directory [default: the nearest with .lockgate/]
    #[arg(long, global = true, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    root: Option<PathBuf>,
    /// Log to stderr: -v info, -vv debug, -vvv trace
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Arguments),
    Run(run::Arguments),
    Worker(worker::Arguments),
    Resume(resume::Arguments),
    Recover(recover::Arguments),
    Status(status::Arguments),
    Summary(summary::Arguments),
    Runs(runs::Arguments),
    Inbox(inbox::Arguments),
    Answer(answer::Arguments),
    Change(change::Arguments),
    #[command(hide = true)]
    Tick(tick::Arguments),
    #[command(hide = true)]
    Agent(agent::Arguments),
    Why(why::Arguments),
    Log(log::Arguments),
    Logs(logs::Arguments),
    Retry(retry::Arguments),
    Pipeline(pipeline::Arguments),
    Message(message::Arguments),
    Conflict(conflict::Arguments),
    Knowledge(knowledge::Arguments),
    Team(team::Arguments),
    Skip(skip::Arguments),
    Snapshots(snapshots::Arguments),
    Wait(wait::Arguments),
    Watch(watch::Arguments),
    Cancel(cancel::Arguments),
    Validate(validate::Arguments),
    Test(test::Arguments),
    Graph(graph::Arguments),
    Worktrees(worktrees::Arguments),
    Schema(schema::Arguments),
    Config(config::Arguments),
    Doctor(doctor::Arguments),
    Explain(explain::Arguments),
    Db(db::Arguments),
    Completions(completions::Arguments),
}

impl Command {
    /// Who can use it. The match is exhaustive, so that every new command needs an authority.
    fn authority(&self) -> Authority<'_> {
        match self {
            Self::Init(_)
            | Self::Status(_)
            | Self::Summary(_)
            | Self::Agent(_)
            | Self::Why(_)
            | Self::Log(_)
            | Self::Logs(_)
            | Self::Wait(_)
            | Self::Watch(_)
            | Self::Validate(_)
            | Self::Test(_)
            | Self::Graph(_)
            | Self::Schema(_)
            | Self::Config(_)
            | Self::Doctor(_)
            | Self::Explain(_)
            | Self::Message(_)
            | Self::Conflict(_)
            | Self::Knowledge(_)
            | Self::Team(_)
            | Self::Completions(_) => Authority::Anyone,
            Self::Run(arguments) => arguments.authority(),
            Self::Worker(arguments) => arguments.authority(),
            Self::Resume(arguments) => arguments.authority(),
            Self::Recover(_) => recover::Arguments::authority(),
            Self::Inbox(arguments) => arguments.authority(),
            Self::Answer(arguments) => arguments.authority(),
            Self::Change(arguments) => arguments.authority(),
            Self::Tick(_) => tick::Arguments::authority(),
            Self::Retry(arguments) => arguments.authority(),
            Self::Pipeline(arguments) => arguments.authority(),
            Self::Skip(arguments) => arguments.authority(),
            Self::Snapshots(arguments) => arguments.authority(),
            Self::Cancel(arguments) => arguments.authority(),
            Self::Runs(arguments) => arguments.authority(),
            Self::Worktrees(arguments) => arguments.authority(),
            Self::Db(arguments) => arguments.authority(),
        }
    }
}

/// An error as JSON.
#[derive(Serialize)]
struct ErrorView {
    error: CommandErrorView,
}

/// Runs the command line of this process.
pub(crate) fn main() -> ExitCode {
    // Lockgate starts script workers often, so they skip argument parsing.
    if let Some(exit) = lockgate::script_worker::run_if_requested() {
        return exit;
    }
    CompleteEnv::with_factory(definition).var(complete::VARIABLE).complete();
    let exit = parse_and_execute();
    match print::lost_output() {
        Some(error) => {
            CommandError::new(Code::Unwritable, format!("stdout cannot be written: {error}"))
                .help("the output is incomplete; free space, or write it elsewhere")
                .report();
            if exit == Exit::Done { Exit::Failed } else { exit }.into()
        }
        None => exit.into(),
    }
}

fn parse_and_execute() -> Exit {
    let parsed = definition().try_get_matches().and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    execute(arguments).unwrap_or_else(|error| {
        error.report();
        if wants_json() {
            print::json_lines(&[ErrorView { error: error.view() }]);
        }
        error.exit()
    })
}

/// Whether the output is read by a program. The raw arguments are searched, because they may not parse.
fn wants_json() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}

/// Prints help and versions to stdout, and usage errors to stderr.
fn usage(error: &clap::Error) -> Exit {
    let text = error.render().ansi().to_string();
    if error.use_stderr() {
        let plain = error.render().to_string();
        // Without a command, clap's text is the help itself.
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
    // A single run is fastest on one thread; a worker drives many runs.
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
    // Background tasks must not keep the program from exiting.
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
        Command::Recover(arguments) => recover::run(root, arguments).await,
        Command::Status(arguments) => status::run(root, arguments).await,
        Command::Summary(arguments) => summary::run(root, arguments).await,
        Command::Runs(arguments) => runs::run(root, arguments).await,
        Command::Inbox(arguments) => inbox::run(root, arguments).await,
        Command::Answer(arguments) => answer::run(root, arguments).await,
        Command::Change(arguments) => change::run(root, arguments).await,
        Command::Tick(arguments) => tick::run(root, arguments).await,
        Command::Agent(arguments) => agent::run(root, arguments).await,
        Command::Why(arguments) => why::run(root, arguments).await,
        Command::Log(arguments) => log::run(root, arguments).await,
        Command::Logs(arguments) => logs::run(root, arguments).await,
        Command::Retry(arguments) => retry::run(root, arguments).await,
        Command::Pipeline(arguments) => pipeline::run(root, arguments).await,
        Command::Message(arguments) => message::run(root, arguments).await,
        Command::Conflict(arguments) => conflict::run(root, arguments).await,
        Command::Knowledge(arguments) => knowledge::run(root, arguments).await,
        Command::Team(arguments) => team::run(root, arguments).await,
        Command::Skip(arguments) => skip::run(root, arguments).await,
        Command::Snapshots(arguments) => snapshots::run(root, arguments).await,
        Command::Wait(arguments) => wait::run(root, arguments).await,
        Command::Watch(arguments) => watch::run(root, arguments).await,
        Command::Cancel(arguments) => cancel::run(root, arguments).await,
        Command::Validate(arguments) => Ok(validate::run(&arguments)),
        Command::Test(arguments) => test::run(root, arguments).await,
        Command::Graph(arguments) => graph::run(root, arguments).await,
        Command::Worktrees(arguments) => worktrees::run(root, arguments).await,
        Command::Schema(arguments) => Ok(schema::run(&arguments)),
        Command::Config(arguments) => config::run(root, &arguments),
        Command::Doctor(arguments) => Ok(doctor::run(root, &arguments).await),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Db(arguments) => db::run(root, arguments).await,
        Command::Completions(arguments) => completions::run(&arguments),
    }
}

/// The command line definition, which the reference is generated from.
pub(crate) fn definition() -> clap::Command {
    help::grouped(<Arguments as clap::CommandFactory>::command())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_definitions_are_consistent() {
        definition().debug_assert();
    }
}
