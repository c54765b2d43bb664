//! The definition that a run keeps, and what became of its files since.

use crate::code::Code;
use crate::exit::Exit;
use crate::open::Project;
use crate::print;
use crate::trouble::Trouble;
use crate::{line_question, neutral};
use clap::ValueEnum;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::FrozenFile;
use lockgate_runner::driver::Halt;
use lockgate_runner::start::{DonePlans, Frozen, read_workflow_with};

/// What a run goes on with whose files have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Changed {
    /// What it began with
    Keep,
    /// What the files say now
    Accept,
}

/// The definition that the files make now, where that is another one than the run has.
pub(crate) struct Difference {
    /// Files that have changed, are new, or are gone.
    files: Vec<String>,
    /// What they make; or why they make nothing.
    now: Result<Box<Frozen>, String>,
}

/// What a run goes on with.
pub(crate) enum Settled {
    /// What it has.
    Kept,
    /// What the files say now.
    Accepted(Box<Frozen>),
    /// Nothing: a signal asked the program to stop while it asked, and it ends so.
    Halted(Exit),
}

/// What has changed in the files of a run since it began, or since a change was accepted.
pub(crate) fn difference(project: &Project, run: &Run) -> Option<Difference> {
    let first = run.files.first()?;
    // A plan of the run stays in it when its summary is written meanwhile.
    let kept = run.workflow.plans.iter().filter_map(|plan| plan.file.clone()).collect();
    let file = match read_workflow_with(&project.root.dir().join(&first.path), &DonePlans::Keep(kept)) {
        Ok(file) => file,
        Err(error) => return Some(Difference { files: vec![first.path.clone()], now: Err(error.to_string()) }),
    };
    let Some(workflow) = file.workflow.clone() else {
        // The file that the run began with had no errors, so this is another one.
        return Some(Difference { files: vec![first.path.clone()], now: Err("it has errors now".to_owned()) });
    };
    let workflow = super::cli::with_limits(workflow, &project.config);
    let frozen = Frozen::new(&project.root, &file, workflow);
    let (_, now) = frozen.definition();
    let files = differing(&run.files, now);
    (!files.is_empty()).then(|| Difference { files, now: Ok(Box::new(frozen)) })
}

fn differing(then: &[FrozenFile], now: &[FrozenFile]) -> Vec<String> {
    let changed = now.iter().filter(|file| !then.contains(file)).map(|file| file.path.clone());
    let gone =
        then.iter().filter(|file| !now.iter().any(|known| known.path == file.path)).map(|file| format!("{} (gone)", file.path));
    changed.chain(gone).collect()
}

/// Says what has changed, and finds out what the run goes on with: as told, else as somebody at the terminal says, who may also be
/// asked to stop by a signal.
pub(crate) async fn settle(
    run: &Run,
    difference: Difference,
    told: Option<Changed>,
    may_ask: Option<&Halt>,
) -> Result<Settled, Trouble> {
    let names: Vec<String> = difference.files.iter().map(|file| neutral::line(file).into_owned()).collect();
    let what = format!("the files of run {} have changed since it began: {}", run.id, names.join(", "));
    let frozen = match difference.now {
        Ok(frozen) => frozen,
        Err(why) => {
            print::note(format_args!("{what} ({}); the run keeps to what it began with", neutral::line(&why)));
            return match told {
                Some(Changed::Accept) => {
                    Err(Trouble::new(Code::DefinitionChanged, format!("{} cannot be accepted: {why}", names.join(", ")))
                        .help(format!("mend it, or go on with `lockgate resume {} --changed keep`", run.id)))
                }
                Some(Changed::Keep) | None => Ok(Settled::Kept),
            };
        }
    };
    let chosen = match told {
        Some(chosen) => Some(chosen),
        None => match may_ask.filter(|_| print::somebody_is_there()) {
            Some(halt) => match ask(&what, halt).await {
                None if halt.is_halted() => {
                    print::say("Nothing was changed.");
                    return Ok(Settled::Halted(Exit::by_signal(halt.signal())));
                }
                chosen => chosen,
            },
            None => None,
        },
    };
    match chosen {
        Some(Changed::Accept) => Ok(Settled::Accepted(frozen)),
        Some(Changed::Keep) => {
            print::note(format_args!("{what}; the run keeps to what it began with"));
            Ok(Settled::Kept)
        }
        None => {
            let resume = format!("lockgate resume {}", run.id);
            Err(Trouble::new(Code::DefinitionChanged, what).help(format!(
                "go on with them as they were: `{resume} --changed keep`; accept them as they are now: `{resume} --changed accept`"
            )))
        }
    }
}

async fn ask(what: &str, halt: &Halt) -> Option<Changed> {
    print::say(what);
    print::say("  1. Keep to what it began with\n  2. Accept the changes");
    loop {
        match line_question::ask_unless_halted("Which? [1] ", halt).await.as_deref().map(str::trim) {
            None => return None,
            Some("" | "1" | "keep") => return Some(Changed::Keep),
            Some("2" | "accept") => return Some(Changed::Accept),
            Some(_) => print::say("type 1 or 2"),
        }
    }
}
