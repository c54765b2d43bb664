//! What a run continues with when the files of its definition have changed.

use crate::code::Code;
use crate::exit::Exit;
use crate::print;
use crate::trouble::Trouble;
use crate::{line_question, neutral};
use clap::ValueEnum;
use lockgate::definition::Difference;
use lockgate_engine::run::Run;
use lockgate_runner::driver::Halt;
use lockgate_runner::start::Frozen;

/// What a run goes on with whose files have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Changed {
    /// What it began with
    Keep,
    /// What the files say now
    Accept,
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
