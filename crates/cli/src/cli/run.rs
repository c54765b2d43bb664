//! `lockgate run`: start a run and drive it.

use super::help::examples;
use crate::authority::{Authority, Decision};
use crate::background::Pickup;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::preset_arguments::PresetArguments;
use crate::progress::Progress;
use crate::{background, diagnostics, drive, inputs, print, signals};
use lockgate::code::Code;
use lockgate::dry_run::{self, DryRunInput, DryRunView};
use lockgate::inputs::unknown_vars;
use lockgate::start::{ANSWER_IN_ADVANCE, Checked, Start, invalid};
use lockgate::{sanitize, workflow_file};
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Channel;
use lockgate_runner::driver::Halt;
use lockgate_runner::start::{DonePlans, WorkflowFile};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Start a run of a workflow
///
/// Lockgate drives the run until it ends or waits for a person. At a terminal it asks you; elsewhere it exits with 3, and you answer with `lockgate answer`.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate run workflow.yaml",
    "lockgate run workflow.yaml login --var env=staging",
    "lockgate run plans/ --agent claude --detach",
]))]
pub(super) struct Arguments {
    /// Workflow, plan, directory of plans, or EXECUTION-SPEC
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Feature that the run is about; it also names the run
    #[arg(value_name = "FEATURE")]
    feature: Option<String>,
    /// Flag that the workflow declares; repeatable
    #[arg(long = "flag", value_name = "NAME")]
    flags: Vec<String>,
    /// Value of a variable or input: JSON if it parses as JSON, text otherwise; repeatable
    #[arg(long = "var", value_name = "K=V")]
    vars: Vec<String>,
    #[command(flatten)]
    presets: PresetArguments,
    /// Agent for all tasks: a preset such as claude, or a command that reads the prompt
    #[arg(long, value_name = "COMMAND")]
    agent: Option<String>,
    /// Walk the workflow with stub tasks and answers and print the path; runs and records nothing
    #[arg(long, conflicts_with = "detach")]
    dry_run: bool,
    /// Commit the changes of each agent task with git; agent tasks then run one at a time
    #[arg(long)]
    commits: bool,
    /// Also run plans of a directory that already have a summary
    #[arg(long)]
    include_done: bool,
    /// Start a new run of a pipeline that already has one; the old state file is moved aside
    #[arg(long)]
    new: bool,
    /// Start the pipeline only after a review permits it
    #[arg(long)]
    review: bool,
    /// Issue to work on: a Markdown file with `title`, `labels` and `assignees` in its frontmatter
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    issue: Option<PathBuf>,
    /// Run in the background, and return immediately
    #[arg(long)]
    detach: bool,
    /// Print the final state as JSON, without prompting
    #[arg(long)]
    json: bool,
    /// More workflow flags, written as --frontend
    #[arg(last = true, value_name = "FLAG")]
    raw_flags: Vec<String>,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        if self.dry_run || !self.presets.is_given() {
            return Authority::Anyone;
        }
        let help = "no run was started; without --answer, --answers and --feedback it starts and waits at its checkpoints";
        Authority::Person(Decision::about_project(ANSWER_IN_ADVANCE).help(help))
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, CommandError> {
    let json = arguments.json;
    let start = Start {
        feature: arguments.feature,
        flags: arguments.flags.into_iter().chain(arguments.raw_flags).collect(),
        vars: variables(&arguments.vars)?,
        answers: arguments.presets.presets()?,
        agent: arguments.agent,
        commit: arguments.commits,
        replace: arguments.new,
        review: arguments.review,
        issue: arguments.issue.as_deref().map(lockgate::issue::read).transpose()?,
    };
    let done = if arguments.include_done { DonePlans::Include } else { DonePlans::Skip };
    let file = workflow_file::read_with(&arguments.file, &done)
        .map_err(|error| CommandError::from(error).help_for(&[Code::InvalidUsage], "run them again with `--include-done`"))?;
    let checked = check(start, file, !json && !arguments.detach && !arguments.dry_run)?;
    if arguments.dry_run {
        return dry_run(root, checked, json).await;
    }
    let commits = arguments.commits;
    start_checked(root, checked, json, arguments.detach).await.map_err(|error| match commits {
        true => error.help_for(&[Code::GitError], "or leave out --commits"),
        false => error,
    })
}

/// Starts a workflow file with these options.
pub(super) async fn start(
    root: Option<&Path>,
    file: &Path,
    start: Start,
    json: bool,
    detach: bool,
) -> Result<Exit, CommandError> {
    let file = workflow_file::read(file)?;
    start_checked(root, check(start, file, !json && !detach)?, json, detach).await
}

async fn start_checked(root: Option<&Path>, checked: Checked, json: bool, detach: bool) -> Result<Exit, CommandError> {
    let project = crate::open::open_or_create(root)?;
    let caller = project.caller(Channel::Command);
    let ready = project.prepare(checked).await?;
    ready.notes.iter().for_each(print::note);
    if detach {
        let run = project.start_detached(ready, caller).await?;
        return left(&project, &run, json).await;
    }
    let halt = drive::make_ready(&project)?;
    let progress = Box::new(Progress::new(json, project.config().notify.terminal));
    let driver = project.start_driven(ready, caller, progress).await?;
    drive::drive(&project, driver, &halt, json).await
}

/// Reports problems of a file and its variables, asks for missing inputs, and validates them.
fn check(mut start: Start, file: WorkflowFile, may_ask: bool) -> Result<Checked, CommandError> {
    diagnostics::report(&file);
    if !file.skipped.is_empty() {
        let names: Vec<String> = file.skipped.iter().map(|name| sanitize::line(name).into_owned()).collect();
        print::note(format_args!("skipped because a summary exists: {}; run them again with --include-done", names.join(", ")));
    }
    let Some(workflow) = &file.workflow else { return Err(CommandError::from(invalid(&file)).reported()) };
    for warning in unknown_vars(&start.vars, workflow) {
        print::warn(format_args!("--var {}", sanitize::line(&warning)));
    }
    inputs::complete(&mut start.vars, workflow, may_ask)?;
    let flags = "--new and --review are for pipelines";
    let has_flags = start.replace || start.review;
    start.check(file).map_err(|error| match has_flags {
        true => CommandError::from(error).help_for(&[Code::InvalidUsage], flags),
        false => error.into(),
    })
}

/// Walks a workflow with stub tasks and answers, and prints the path.
async fn dry_run(root: Option<&Path>, checked: Checked, json: bool) -> Result<Exit, CommandError> {
    let (file, workflow, start_options) = checked.into_parts();
    let (root, config) = crate::open::settings(root)?;
    let halt = Halt::default();
    signals::listen(&halt)?;
    let (name, feature) = (workflow.name.clone(), start_options.feature.clone());
    let input = DryRunInput {
        file: &file,
        workflow: lockgate::start::with_limits(workflow, &config),
        start_options,
        given: BTreeMap::new(),
    };
    let done = dry_run::execute(&root, &config, &crate::open::script_worker(), &halt, input).await?;
    match json {
        true => print::json(&DryRunView::of(&done.result, &name, feature.as_deref())),
        false => drop(print::data(&crate::dry_run_text::reported(&done.result, &name, feature.as_deref()))),
    }
    Ok(match &done.result.truncated {
        _ if halt.is_halted() => Exit::halted(halt.reason()),
        Some(_) => Exit::Failed,
        None => Exit::of(done.result.status),
    })
}

/// Ensures that a detached run is driven, and prints how to follow it.
pub(super) async fn left(project: &Project, run: &RunId, json: bool) -> Result<Exit, CommandError> {
    match background::ensure_driven(project, run).await? {
        Pickup::Driven => background::print_next_commands(run),
        Pickup::NotDriven => {}
    }
    if json {
        print::json(&super::status::view_of(project, run).await?);
    }
    Ok(Exit::Done)
}

fn variables(given: &[String]) -> Result<BTreeMap<String, Value>, CommandError> {
    let mut variables = BTreeMap::new();
    for given in given {
        let Some((name, value)) = given.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(CommandError::new(Code::InvalidVar, format!("--var {given:?} does not have the form NAME=VALUE"))
                .help("for example --var env=staging"));
        };
        if variables.contains_key(name) {
            return Err(
                CommandError::new(Code::InvalidVar, format!("--var {name:?} is given twice")).help("give each variable once")
            );
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        variables.insert(name.to_owned(), value);
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_as_json_and_fall_back_to_text() {
        let given = ["n=3", "list=[1,2]", "text=hello there", "quoted=\"3\"", "empty=", "equal=a=b"];
        let variables = variables(&given.map(str::to_owned)).unwrap();
        assert_eq!(variables["n"], 3);
        assert_eq!(variables["list"], serde_json::json!([1, 2]));
        assert_eq!(variables["text"], "hello there");
        assert_eq!(variables["quoted"], "3");
        assert_eq!(variables["empty"], "");
        assert_eq!(variables["equal"], "a=b");
    }

    #[test]
    fn a_value_without_a_name_is_an_error() {
        assert!(variables(&["novalue".to_owned()]).is_err());
        assert!(variables(&["=3".to_owned()]).is_err());
    }

    #[test]
    fn a_duplicate_name_is_an_error() {
        assert!(variables(&["n=3".to_owned(), "n=4".to_owned()]).is_err());
        assert!(variables(&["n=3".to_owned(), "n=3".to_owned()]).is_err());
    }

    #[test]
    fn a_value_for_an_undeclared_name_gives_a_warning() {
        let source = "name: x\nvars: {source: a, nothing: }\nphases: [{id: a, gates: []}]";
        let workflow = lockgate_engine::spec::read(source).workflow.unwrap();
        let given = variables(&["sorce=1", "source=2", "nothing=3", "banana=4"].map(str::to_owned)).unwrap();
        assert_eq!(
            unknown_vars(&given, &workflow),
            [
                "banana: the workflow declares no such variable under `vars`",
                "sorce: the workflow declares no such variable; did you mean \"source\"?",
            ]
        );
    }
}
