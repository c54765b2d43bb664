//! The command line of Lockgate: the program `lockgate` calls [`main`], and an example target writes the pages of [`mod@reference`].
//!
//! | module | what it does |
//! | --- | --- |
//! | `cli` | one file per command, with its arguments |
//! | `open` | open the project of a command |
//! | `authority` | who may use which command |
//! | `complete` | completions in a shell |
//! | `run_argument`, `definition`, `inputs`, `preset_arguments`, `pagination` | arguments and questions that several commands share |
//! | `drive`, `background`, `signals` | drive a run here or in the background, and stop it |
//! | `progress`, `tree`, `live`, `notify` | the progress of a run: lines, the live tree, the bell |
//! | `prompt`, `prompt_answer`, `line_prompt` | ask a person at the terminal |
//! | `run_text`, `graph_text`, `dry_run_text`, `pipeline`, `plan_summaries`, `worktrees`, `style` | the library's views as text |
//! | `diagnostics` | problems of files, with the position underlined |
//! | `print`, `columns`, `logging` | all output: data on stdout, messages and logs on stderr |
//! | `exit`, `error` | exit codes and errors |
//! | `memory` | give free memory back to the system |
//! | `sys` | system calls and files that only Linux has |
//! | [`mod@reference`] | the pages and pictures of `docs/` that are generated from the code |

mod authority;
mod background;
mod cli;
mod columns;
mod complete;
mod definition;
mod diagnostics;
mod diff_text;
mod drive;
mod dry_run_text;
mod error;
#[cfg(test)]
mod error_pages;
mod exit;
mod graph_text;
mod inputs;
mod line_prompt;
mod live;
mod logging;
mod memory;
mod notify;
mod open;
mod pagination;
mod pipeline;
mod plan_summaries;
mod preset_arguments;
mod print;
mod progress;
mod prompt;
mod prompt_answer;
#[doc(hidden)]
pub mod reference;
mod run_argument;
mod run_text;
mod signals;
mod snapshot_prompt;
mod style;
mod sys;
mod tree;
mod worktrees;

/// Runs the program with the arguments of this process.
pub fn main() -> std::process::ExitCode {
    cli::main()
}
