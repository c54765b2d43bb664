//! `lockgate run`: begin a run and drive it.

use crate::authority::{Authority, Decision};
use crate::background::Seen;
use crate::code::Code;
use crate::exit::Exit;
use crate::open::Project;
use crate::preset_answers;
use crate::preset_arguments::PresetArguments;
use crate::progress::Progress;
use crate::rehearsal::{self, Piece, RehearsalView};
use crate::trouble::Trouble;
use crate::view::lockgate;
use crate::{background, diagnose, drive, inputs, neutral, print, signals, workflow_file};
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::Channel;
use lockgate_engine::spec::workflow::{Commit, Workflow};
use lockgate_runner::agent::Configured;
use lockgate_runner::config::Config;
use lockgate_runner::driver::{Driver, Halt, begin_detached};
use lockgate_runner::git::git;
use lockgate_runner::start::{Beginning, DonePlans, WorkflowFile, prepare};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Begins a run of a workflow and drives it until it ends or waits for a person
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The workflow file: a workflow, a plan or a folder of plans, an EXECUTION-SPEC
    file: PathBuf,
    /// What the run is about
    feature: Option<String>,
    /// A flag that the workflow knows; may be given several times
    #[arg(long = "flag", value_name = "NAME")]
    flags: Vec<String>,
    /// A value that goes before the workflow's own: JSON where it is JSON, else text
    #[arg(long = "var", value_name = "K=V")]
    vars: Vec<String>,
    #[command(flatten)]
    presets: PresetArguments,
    /// The agent that works, whatever else is configured: a known one such as claude, or a command that reads the prompt
    #[arg(long, value_name = "COMMAND")]
    agent: Option<String>,
    /// Walks the workflow with stub work and stub answers and prints the path taken: nothing is done, and nothing is kept
    #[arg(long, conflicts_with = "detach")]
    dry_run: bool,
    /// Commits with git what each task of an agent changed; tasks then follow each other
    #[arg(long)]
    commits: bool,
    /// Runs the plans of a directory again whose summary exists, instead of skipping them
    #[arg(long)]
    include_done: bool,
    /// Begins a new run of a pipeline that has one already; its old state file is kept aside
    #[arg(long)]
    new: bool,
    /// Lets a pipeline begin only when a review does
    #[arg(long)]
    review: bool,
    /// Leaves the run to a process in the background, which is begun where there is none, and ends at once
    #[arg(long)]
    detach: bool,
    /// Prints where the run stands as JSON at the end, and asks nothing
    #[arg(long)]
    json: bool,
    /// More flags, written as --frontend
    #[arg(last = true, value_name = "RAWFLAGS")]
    raw_flags: Vec<String>,
}

impl Arguments {
    pub(super) fn authority(&self) -> Authority<'_> {
        if self.dry_run || !self.presets.is_given() {
            return Authority::Anyone;
        }
        let help = "nothing has begun; without --answer, --answers and --feedback the run begins and waits at its checkpoints";
        Authority::Person(Decision::about_project("answer in advance").help(help))
    }
}

pub(super) async fn run(root: Option<&Path>, arguments: Arguments) -> Result<Exit, Trouble> {
    if arguments.feature.as_deref().is_some_and(|feature| feature.trim().is_empty()) {
        return Err(Trouble::new(Code::BadUsage, "what the run is about is empty").help("name it, or leave it out"));
    }
    let vars = variables(&arguments.vars)?;
    let presets = arguments.presets.presets()?;
    let done = if arguments.include_done { DonePlans::Include } else { DonePlans::Skip };
    let mut file = workflow_file::read_with(&arguments.file, &done)?;
    diagnose::tell(&file);
    if !file.skipped.is_empty() {
        let names: Vec<String> = file.skipped.iter().map(|name| neutral::line(name).into_owned()).collect();
        print::note(format_args!("skipped, since a summary exists: {}; --include-done runs them again", names.join(", ")));
    }
    let Some(mut workflow) = file.workflow.take() else {
        let message = format!("{} is no valid workflow: {}", file.path.display(), diagnose::summary(&file.problems));
        let help = format!("`{}` lists what is wrong", lockgate(["validate", &file.path.to_string_lossy(), "--json"]));
        return Err(Trouble::new(Code::InvalidWorkflow, message).help(help).told());
    };
    if arguments.commits {
        commit_each(&mut workflow);
    }
    warn_of_unknown_vars(&vars, &workflow);
    let mut vars = vars;
    inputs::complete(&mut vars, &workflow, !arguments.json && !arguments.detach && !arguments.dry_run)?;
    let presets = preset_answers::resolve(presets, &workflow, None)?;
    refuse_unfit(&arguments, &workflow)?;

    if arguments.dry_run {
        let flags = arguments.flags.into_iter().chain(arguments.raw_flags).collect();
        let beginning = Beginning { feature: arguments.feature, flags, vars, presets, detached: false, agent: arguments.agent };
        return dry_run(root, &file, workflow, beginning, arguments.json).await;
    }

    let project = crate::open::open_or_create(root)?;
    let caller = project.caller(Channel::Command);
    let flags = arguments.flags.into_iter().chain(arguments.raw_flags).collect();
    let agent = arguments.agent.filter(|agent| !agent.trim().is_empty());
    refuse_without_agent(&workflow, agent.as_deref(), &project.config)?;
    refuse_commits_without_git(&workflow, project.root.dir())?;
    let mut workflow = lockgate::start::with_limits(workflow, &project.config);
    let mut beginner = None;
    let feature = match &mut workflow.pipeline {
        None => arguments.feature,
        Some(pipeline) => {
            pipeline.review = pipeline.review || arguments.review;
            let room = if arguments.new { lockgate::pipeline::Room::Anew } else { lockgate::pipeline::Room::First };
            let (lock, notes) = lockgate::pipeline::make_room(&project, pipeline, room).await?;
            notes.iter().for_each(print::note);
            beginner = Some(lock);
            Some(pipeline.prd.clone())
        }
    };
    let beginning = Beginning { feature, flags, vars, presets, detached: arguments.detach, agent };
    let (driver, seed) = (project.store().driver().clone(), project.world.clock.seed());
    let prepared = prepare(&project.root, &driver, seed, &file, workflow, beginning)
        .map_err(|message| Trouble::new(Code::BadOutputDir, message))?;
    project.root.prepare_run(&prepared.create.created.run)?;
    if arguments.detach {
        let run = begin_detached(&project.world, caller, prepared).await?;
        drop(beginner);
        return left(&project, &run.id, arguments.json).await;
    }
    let halt = drive::make_ready()?;
    let driver = Driver::create(
        project.world.clone(),
        caller,
        prepared.create,
        prepared.workflow,
        prepared.values,
        Box::new(Progress::new(arguments.json, project.config.notify)),
    )
    .await?;
    drop(beginner);
    drive::drive(&project, driver, &halt, arguments.json).await
}

/// What each task of an agent changed is committed. Two at once would find each other's changes, so there are none.
fn commit_each(workflow: &mut Workflow) {
    workflow.max_parallel = Some(1);
    for task in workflow.phases.iter_mut().flat_map(|phase| &mut phase.tasks) {
        if task.agent().is_some() && task.commit.is_none() {
            task.commit = Some(Commit::default());
        }
    }
}

/// What only a pipeline has, or has by itself.
fn refuse_unfit(arguments: &Arguments, workflow: &Workflow) -> Result<(), Trouble> {
    match (&workflow.pipeline, &arguments.feature) {
        (Some(pipeline), Some(feature)) if *feature != pipeline.prd => {
            let message = format!("a pipeline is about its PRD, {}, and {feature:?} is another thing", pipeline.prd);
            Err(Trouble::new(Code::BadUsage, message).help("leave it out"))
        }
        (None, _) if arguments.new || arguments.review => {
            Err(Trouble::new(Code::BadUsage, "--new and --review are for pipelines, and this is none").help("leave them out"))
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// What cannot be committed is better known before an agent has worked.
fn refuse_commits_without_git(workflow: &Workflow, root: &Path) -> Result<(), Trouble> {
    if !workflow.commits() || git(root, &["rev-parse", "--git-dir"]).is_ok() {
        return Ok(());
    }
    let message = format!("what tasks change is to be committed, and {} is not under git", root.display());
    Err(Trouble::new(Code::GitTrouble, message).help("run `git init` there, or leave out `commits: true` and --commits"))
}

/// A run whose agents nobody has named would fail in its middle, so it does not begin.
fn refuse_without_agent(workflow: &Workflow, instead: Option<&str>, config: &Config) -> Result<(), Trouble> {
    let configured =
        Configured { instead: instead.map(str::to_owned), workflow: workflow.agents.clone(), project: config.agents.clone() };
    for phase in &workflow.phases {
        for task in &phase.tasks {
            let Some(work) = task.agent() else { continue };
            if let Err(why) = configured.choose(work.agent.as_deref()) {
                let message = format!("task {}/{} needs an agent: {}", phase.id, task.id, neutral::line(&why));
                return Err(Trouble::new(Code::NoAgent, message));
            }
        }
    }
    Ok(())
}

/// Walks a workflow with stub work and stub answers, and prints the path that was taken.
async fn dry_run(
    root: Option<&Path>,
    file: &WorkflowFile,
    workflow: Workflow,
    beginning: Beginning,
    json: bool,
) -> Result<Exit, Trouble> {
    let (root, config) = crate::open::settings(root)?;
    let halt = Halt::default();
    signals::listen(&halt)?;
    let (name, feature) = (workflow.name.clone(), beginning.feature.clone());
    let piece = Piece { file, workflow: lockgate::start::with_limits(workflow, &config), beginning, given: BTreeMap::new() };
    let done = rehearsal::walk(&root, &config, &crate::open::script_worker(), &halt, piece).await?;
    match json {
        true => print::json(&RehearsalView::of(&done.came, &name, feature.as_deref())),
        false => drop(print::data(&crate::rehearsal_text::told(&done.came, &name, feature.as_deref()))),
    }
    Ok(match &done.came.cut_short {
        _ if halt.is_halted() => Exit::by_signal(halt.signal()),
        Some(_) => Exit::Failed,
        None => Exit::of(done.came.status),
    })
}

/// A run was left to the background: somebody drives it there, and whoever left it is told how to follow it.
pub(super) async fn left(project: &Project, run: &RunId, json: bool) -> Result<Exit, Trouble> {
    match background::see_to(project, run).await? {
        Seen::Driven => background::tell_how_to_follow(run),
        Seen::NotDriven => {}
    }
    if json {
        print::json(&super::status::view_of(project, run).await?);
    }
    Ok(Exit::Done)
}

fn variables(given: &[String]) -> Result<BTreeMap<String, Value>, Trouble> {
    let mut variables = BTreeMap::new();
    for given in given {
        let Some((name, value)) = given.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(
                Trouble::new(Code::BadVar, format!("--var {given:?} gives no name a value")).help("write it as --var NAME=VALUE")
            );
        };
        if variables.contains_key(name) {
            return Err(Trouble::new(Code::BadVar, format!("--var gives {name:?} two values")).help("give it once"));
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        variables.insert(name.to_owned(), value);
    }
    Ok(variables)
}

/// A value that nothing asks for is probably misspelt; a workflow may still use it in a way that cannot be seen.
fn warn_of_unknown_vars(given: &BTreeMap<String, Value>, workflow: &Workflow) {
    for warning in unknown_vars(given, workflow) {
        print::warn(neutral::line(&warning));
    }
}

fn unknown_vars(given: &BTreeMap<String, Value>, workflow: &Workflow) -> Vec<String> {
    let near = |name: &str| {
        let likeness = |known: &str| strsim::normalized_damerau_levenshtein(name, known);
        let known = workflow
            .vars
            .keys()
            .chain(workflow.inputs.keys())
            .map(|known| (likeness(known), known))
            .filter(|(likeness, _)| *likeness >= 0.6);
        known.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, known)| known)
    };
    let declared = |name: &String| workflow.vars.contains_key(name) || workflow.inputs.contains_key(name);
    let unknown = given.keys().filter(|name| !declared(name));
    unknown
        .map(|name| match near(name) {
            Some(near) => format!("--var {name}: the workflow declares no such variable; did you mean {near:?}?"),
            None => format!("--var {name}: the workflow declares no such variable under `vars`"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json_where_they_are_json_and_text_elsewhere() {
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
    fn a_name_that_is_given_twice_is_an_error() {
        assert!(variables(&["n=3".to_owned(), "n=4".to_owned()]).is_err());
        assert!(variables(&["n=3".to_owned(), "n=3".to_owned()]).is_err());
    }

    #[test]
    fn a_value_for_a_name_that_is_not_declared_is_warned_of() {
        let source = "name: x\nvars: {source: a, nothing: }\nphases: [{id: a, gates: []}]";
        let workflow = lockgate_engine::spec::read(source).workflow.unwrap();
        let given = variables(&["sorce=1", "source=2", "nothing=3", "banana=4"].map(str::to_owned)).unwrap();
        assert_eq!(
            unknown_vars(&given, &workflow),
            [
                "--var banana: the workflow declares no such variable under `vars`",
                "--var sorce: the workflow declares no such variable; did you mean \"source\"?",
            ]
        );
    }
}
