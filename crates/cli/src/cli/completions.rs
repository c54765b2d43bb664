//! `lockgate completions`: print the script that connects a shell's completions to Lockgate.

use super::help::examples;
use crate::complete;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print;
use clap::builder::PossibleValuesParser;
use clap_complete::env::Shells;
use lockgate::code::Code;

/// Print shell completions
///
/// The script asks Lockgate itself for completions, so that it also completes runs, holds, options and tasks of the project that you are in.
/// Load it when your shell starts, for example in ~/.bashrc, and again after an update of Lockgate.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate completions bash > ~/.local/share/bash-completion/completions/lockgate",
    "lockgate completions zsh > ~/.zfunc/_lockgate",
    "lockgate completions fish > ~/.config/fish/completions/lockgate.fish",
]))]
pub(super) struct Arguments {
    /// Shell
    #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(["bash", "elvish", "fish", "powershell", "zsh"]))]
    shell: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let shell = shells.completer(&arguments.shell);
    let written =
        shell.map(|shell| shell.write_registration(complete::VARIABLE, "lockgate", "lockgate", "lockgate", &mut script));
    match written {
        Some(Ok(())) => {
            print::data(&String::from_utf8_lossy(&script));
            Ok(Exit::Done)
        }
        _ => Err(CommandError::new(Code::InvalidUsage, format!("no completions for the shell {:?}", arguments.shell))),
    }
}
