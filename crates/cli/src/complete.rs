//! Completes runs, holds, options and tasks in a shell, from the project's database. A shell shows no errors during completion, so
//! a failure gives an empty list.

use crate::open;
use clap::ArgMatches;
use clap_complete::CompletionCandidate;
use clap_complete::engine::ValueCompleter;
use lockgate::project::{Options, Project};
use lockgate::select::{self, NEWEST};
use lockgate::{Error, sanitize};
use lockgate_runner::load::load;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// The variable through which a shell's completion script asks for completions.
pub(crate) const VARIABLE: &str = "LOCKGATE_COMPLETE";

/// How long completion may take, for example if the database server does not respond.
const PATIENCE: Duration = Duration::from_secs(1);

/// The maximum number of suggested runs or holds.
const SUGGESTED: usize = 200;

/// Suggests ids of runs, and the names of their workflows and features.
pub(crate) fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    let listed = ask(async |project, _| Ok(project.runs(SUGGESTED, None).await?.lines));
    let mut found = Vec::new();
    for run in listed.unwrap_or_default() {
        let feature = run.feature.as_deref().map(|feature| format!(" ({feature})")).unwrap_or_default();
        found.push(candidate(run.run.as_str(), &format!("{}{feature}, {}", run.workflow, run.status)));
        if let Some(feature) = run.feature {
            found.extend(is_plain(&feature).then(|| candidate(&feature, &format!("newest run of {feature}"))));
        }
        found.extend(is_plain(&run.workflow).then(|| candidate(&run.workflow, &format!("newest run of {}", run.workflow))));
    }
    starting_with(found, current)
}

/// Suggests open holds with their current revision.
pub(crate) fn holds(current: &OsStr) -> Vec<CompletionCandidate> {
    let listed = ask(async |project, _| Ok(project.inbox(SUGGESTED, None).await?.lines)).unwrap_or_default();
    let of = |line: lockgate::lists::HoldLine| {
        let question = lockgate::phrases::first_line(&line.hold.prompt);
        candidate(&format!("{}@{}", line.hold.id, line.hold.revision), &format!("{}: {question}", line.workflow))
    };
    starting_with(listed.into_iter().map(of).collect(), current)
}

/// Suggests the options of the hold on the command line.
pub(crate) fn options(current: &OsStr) -> Vec<CompletionCandidate> {
    let options = ask(async |project, given| {
        let Some(hold) = value(&given, "hold") else { return Ok(Vec::new()) };
        let row = select::hold(project.store(), &select::hold_name(&hold)?).await?.row;
        Ok(lockgate::view::HoldView::listed(row).options)
    });
    let of = |(index, option): (usize, lockgate::view::OptionView)| match is_plain(&option.label) {
        true => candidate(&option.label, option.pros.as_deref().unwrap_or_default()),
        false => candidate(&(index + 1).to_string(), &option.label),
    };
    starting_with(options.unwrap_or_default().into_iter().enumerate().map(of).collect(), current)
}

/// Suggests the tasks and gates of the run on the command line, or of the newest run.
pub(crate) fn tasks(current: &OsStr) -> Vec<CompletionCandidate> {
    let addresses = ask(async |project, given| {
        let run = value(&given, "run").unwrap_or_else(|| NEWEST.to_owned());
        let run = select::run_or_ended(project.store(), &run).await?.row.run;
        let run = load(project.store(), &run).await?;
        let mut addresses = Vec::new();
        for phase in &run.workflow.phases {
            addresses.extend(phase.tasks.iter().map(|task| (format!("{}/{}", phase.id, task.id), "task")));
            addresses.extend(phase.gates.iter().map(|gate| (format!("{}/{}", phase.id, gate.id), "gate")));
        }
        Ok(addresses)
    });
    let of = |(address, kind): (String, &str)| candidate(&address, kind);
    starting_with(addresses.unwrap_or_default().into_iter().map(of).collect(), current)
}

/// Completes `[RUN] TASK`: the first value can be either.
#[derive(Clone, Copy)]
pub(crate) struct RunThenTask;

impl ValueCompleter for RunThenTask {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        tasks(current)
    }

    fn complete_at(&self, index: usize, current: &OsStr) -> Vec<CompletionCandidate> {
        match index {
            0 => tasks(current).into_iter().chain(runs(current)).collect(),
            _ => tasks(current),
        }
    }
}

/// Reads from the project of the command line. `read` also gets the arguments typed so far.
fn ask<T>(read: impl AsyncFnOnce(Project, ArgMatches) -> Result<T, Error>) -> Option<T> {
    let given = typed_so_far()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let asked = async {
        let options = Options { read_only: true, ..open::options() };
        let project = match given.get_one::<PathBuf>("root") {
            Some(root) => Project::open(root, options).ok()?,
            None => Project::find(&std::env::current_dir().ok()?, options).ok()?,
        };
        read(project, given).await.ok()
    };
    let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await.ok().flatten() });
    runtime.shutdown_background();
    answer
}

/// The arguments on the command line, which is still incomplete.
fn typed_so_far() -> Option<ArgMatches> {
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let mut given = crate::cli::definition().ignore_errors(true).try_get_matches_from(words).ok()?;
    // Options such as `--root` are known at every level.
    while let Some((_, below)) = given.remove_subcommand() {
        given = below;
    }
    Some(given)
}

/// The value of an argument, if the command has it. The first value of `[RUN] TASK` is a run only if a second one follows.
fn value(given: &ArgMatches, name: &str) -> Option<String> {
    if let Ok(found) = given.try_get_one::<String>(name) {
        return found.cloned();
    }
    let mut both = given.try_get_many::<String>("run_and_task").ok().flatten()?;
    both.next().filter(|_| both.len() > 0).cloned()
}

/// Whether a shell takes a value literally. Shells insert suggestions as they are, and a task can choose the name of a workflow, a feature
/// or an option.
fn is_plain(value: &str) -> bool {
    lockgate::view::shell_word(value) == value && !value.starts_with('-') && value != NEWEST
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    let help = sanitize::line(help).into_owned();
    CompletionCandidate::new(value).help((!help.is_empty()).then(|| help.into()))
}

/// The distinct candidates that start with the typed text.
fn starting_with(mut found: Vec<CompletionCandidate>, current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy().to_lowercase();
    let mut known = std::collections::HashSet::new();
    found.retain(|candidate| {
        let value = candidate.get_value().to_string_lossy().into_owned();
        value.to_lowercase().starts_with(&typed) && known.insert(value)
    });
    found
}
