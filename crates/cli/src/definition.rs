//! Which definition a run continues with after its files have changed: `--changed` decides, or else the person at the terminal.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::{line_prompt, print};
use clap::ValueEnum;
use lockgate::definition::{Choice, Difference, Settled};
use lockgate_engine::run::Run;
use lockgate_runner::driver::Halt;
use lockgate_runner::start::Frozen;

/// Which definition a run continues with after its files have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Changed {
    /// The definition that the run started with
    Keep,
    /// The definition that is in the files now
    Accept,
}

impl From<Changed> for Choice {
    fn from(changed: Changed) -> Self {
        match changed {
            Changed::Keep => Self::Keep,
            Changed::Accept => Self::Accept,
        }
    }
}

/// Whether a run continues.
pub(crate) enum Continues {
    /// It does. The new definition is given if it was accepted.
    With(Option<Box<Frozen>>),
    /// It does not: a signal stopped the program during the question.
    Halted(Exit),
}

/// Chooses the definition that a run continues with: the given one, or the one that the person at the terminal chooses.
pub(crate) async fn settle(
    run: &Run,
    difference: Difference,
    given: Option<Changed>,
    may_ask: Option<&Halt>,
) -> Result<Continues, CommandError> {
    let mut choice = given.map(Choice::from);
    if let (None, true, Some(halt)) = (choice, difference.can_be_accepted(), may_ask.filter(|_| print::is_interactive())) {
        choice = ask(&difference.describe(run), halt).await.map(Choice::from);
        if choice.is_none() && halt.is_halted() {
            print::say("Nothing was changed.");
            return Ok(Continues::Halted(Exit::halted(halt.reason())));
        }
    }
    match difference.settle(run, choice)? {
        Settled::Kept(note) => {
            print::note(note);
            Ok(Continues::With(None))
        }
        Settled::Accepted(frozen) => Ok(Continues::With(Some(frozen))),
    }
}

async fn ask(what: &str, halt: &Halt) -> Option<Changed> {
    print::say(what);
    print::say("  1. Keep the original definition\n  2. Accept the changes");
    loop {
        match line_prompt::ask_unless_halted("Which? [1] ", halt).await.as_deref().map(str::trim) {
            None => return None,
            Some("" | "1" | "keep") => return Some(Changed::Keep),
            Some("2" | "accept") => return Some(Changed::Accept),
            Some(_) => print::say("type 1 or 2"),
        }
    }
}
