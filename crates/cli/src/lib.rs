//! The command line of Lockgate: the program `lockgate` calls [`main`], and an example target writes the pages of [`mod@reference`].
//!
//! | module | what it does |
//! | --- | --- |
//! | `cli` | one file per command, with its arguments |
//! | `open`, `select` | find the project; find the run, hold or task that somebody means |
//! | `authority` | who may use which command |
//! | `run_status` | where a run stands that others drive, and waiting for that to change |
//! | `graph` | drawings of workflows and runs: terminal, SVG, Mermaid |
//! | `leftovers` | what lies in a project's folder that nobody needs |
//! | `drive`, `progress`, `signals` | drive a run from here: what is told, what is asked, how it is stopped |
//! | `tree`, `live` | what is under way as a tree, and drawing it at a terminal |
//! | `notice` | the bell and the desktop's notices |
//! | `rehearsal` | workflows walked with stub work and stub answers |
//! | `presets`, `workflow_file` | answers given in advance; workflow files that are read |
//! | `prompt` | ask a person at the terminal |
//! | `view`, `sentence` | what a run looks like, as JSON and as text; its events as sentences |
//! | `diagnose` | problems of files, with the place underlined |
//! | `print`, `neutral`, `columns` | the only way out: data, talk, and nothing that controls a terminal |
//! | `exit`, `trouble`, `code` | how the program ends, and why it could not do what was asked |
//! | `error_pages` | the pages of `docs/errors/` |
//! | `reference` | the pages and pictures of `docs/` that follow from the code |

mod authority;
mod background;
mod cli;
mod columns;
mod definition;
mod diagnose;
mod drive;
mod error_pages;
mod exit;
mod graph_text;
mod inputs;
mod line_question;
mod live;
mod logging;
mod notice;
mod open;
mod page;
mod pipeline;
mod plans;
mod preset_arguments;
mod print;
mod progress;
mod prompt;
#[doc(hidden)]
pub mod reference;
mod rehearsal_text;
mod run_text;
mod signals;
mod style;
mod tree;
mod trouble;
mod worktrees;

use lockgate::{
    code, graph, handover, leftovers, moment, neutral, phrases, preset_answers, rehearsal, run_status, select, sentence, summary,
    view, workflow_file,
};

/// Runs the program with the arguments of this process.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
