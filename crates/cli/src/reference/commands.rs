//! `cli.md`: every command with its arguments, from the definition that reads them.

use crate::cli;
use clap::{Arg, Command};

const BEGINNING: &str = "\
# Commands

<!-- Made by `cargo xtask docs` from the definition of the command line; what is changed here by hand is lost. -->

`RUN` is a run's id, a beginning of it, or a feature's name (its newest unfinished run). `TASK` is a task or a gate: `phase/task`, or `task` alone where
no other has that name. [commands-daily.md](commands-daily.md) says more about some of them, [json.md](json.md) what `--json` prints.

";

/// The page.
pub(super) fn page() -> String {
    let mut program = cli::definition();
    program.build();
    let mut text = BEGINNING.to_owned();
    let commands: Vec<Command> = program.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect();
    text += "| command | what it does |\n| --- | --- |\n";
    for command in &commands {
        let name = command.get_name();
        text.push_str(&format!("| [`{name}`](#lockgate-{name}) | {} |\n", about(command)));
    }
    text += "\n## Everywhere\n\n";
    let everywhere: Vec<&Arg> = program.get_arguments().filter(|argument| argument.is_global_set()).collect();
    text += &arguments(&everywhere);
    text += "\n## Exit codes\n\n";
    for paragraph in program.get_after_help().map(ToString::to_string).unwrap_or_default().split("\n\n") {
        text.push_str(&format!("{}\n\n", paragraph.trim().trim_start_matches("Exit codes: ")));
    }
    for command in commands {
        text += &section(&command, "##", &format!("lockgate {}", command.get_name()));
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            text += &section(below, "###", &format!("lockgate {} {}", command.get_name(), below.get_name()));
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// What is said about one command.
fn section(command: &Command, level: &str, title: &str) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace('\n', " ");
    let usage: Vec<&str> = usage.split_whitespace().collect();
    let mut text = format!("{level} {title}\n\n{}.\n\n```text\n{}\n```\n\n", about(command), usage.join(" "));
    let own = |argument: &&Arg| !argument.is_global_set() && !argument.is_hide_set() && argument.get_id() != "help";
    let own: Vec<&Arg> = command.get_arguments().filter(own).collect();
    if !own.is_empty() {
        text += &arguments(&own);
        text.push('\n');
    }
    text
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn arguments(arguments: &[&Arg]) -> String {
    let mut text = "| argument | meaning |\n| --- | --- |\n".to_owned();
    for argument in arguments {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let words: Vec<String> = argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
        let words = match argument.get_action().takes_values() && !words.is_empty() {
            true => format!(": {}", words.join(", ")),
            false => String::new(),
        };
        let line = format!("`{}` | {}{words}", name(argument).replace('|', "\\|"), help.replace('|', "\\|"));
        text.push_str(&format!("| {line} |\n"));
    }
    text
}

/// How an argument is written.
fn name(argument: &Arg) -> String {
    let value = || -> String {
        let names = argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>();
        if names.is_empty() { argument.get_id().to_string().to_uppercase() } else { names.join(" ") }
    };
    if argument.is_last_set() {
        return format!("-- {}…", value());
    }
    if argument.is_positional() {
        return if argument.is_required_set() { value() } else { format!("[{}]", value()) };
    }
    let short = argument.get_short().map(|letter| format!("-{letter}"));
    let long = argument.get_long().map(|word| format!("--{word}"));
    let written = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    if argument.get_action().takes_values() { format!("{written} {}", value()) } else { written }
}
