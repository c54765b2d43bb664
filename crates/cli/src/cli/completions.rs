//! `lockgate completions`: what a shell needs to complete our commands.

use crate::exit::Exit;
use crate::print;
use clap::CommandFactory;
use clap_complete::Shell;

/// Prints the completions of a shell, to be put where that shell looks for them
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "lockgate", &mut script);
    print::data(&String::from_utf8_lossy(&script));
    Exit::Done
}
