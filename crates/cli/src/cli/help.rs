//! The help pages: commands in groups, and examples on every page.

use crate::print::{STRONG, styled};
use clap::Command;
use clap::builder::StyledStr;

/// The groups of commands in `lockgate --help`, in the order in which people use them.
pub(crate) const GROUPS: [(&str, &[&str]); 6] = [
    ("Run", &["init", "run", "resume", "wait", "watch", "cancel"]),
    ("Decide", &["inbox", "answer", "change", "retry", "skip"]),
    ("Inspect", &["runs", "status", "why", "log", "logs", "summary", "graph", "snapshots"]),
    ("Author", &["validate", "test", "schema", "explain"]),
    ("Formats and agents", &["pipeline", "message", "conflict", "knowledge", "team"]),
    ("Operate", &["worker", "recover", "config", "doctor", "db", "worktrees", "completions"]),
];

pub(crate) const EXIT_CODES: &str = "  0    complete, or done
  1    failed
  2    aborted or cancelled
  3    waiting for a person, driven by another process, or refused because only
       a person may do it
  4    bad input
  130  interrupted (Ctrl+C), with the state saved
  143  terminated, with the state saved";

/// The footer of a help page: two or three commands that a reader can copy.
pub(super) fn examples(commands: &[&str]) -> StyledStr {
    let lines: String = commands.iter().map(|command| format!("\n  {command}")).collect();
    format!("{}{lines}", styled(STRONG.underline(), "Examples:")).into()
}

/// The footer of `lockgate --help`.
pub(super) fn footer() -> StyledStr {
    let heading = |text: &str| styled(STRONG.underline(), text);
    format!(
        "{}\n{EXIT_CODES}\n\n{}\n  lockgate init\n  lockgate run workflow.yaml\n  lockgate inbox\n\n\
         Use `lockgate COMMAND --help` for the options of a command,\n\
         and `lockgate explain CODE` for the page of an error code.",
        heading("Exit codes:"),
        heading("Examples:"),
    )
    .into()
}

/// Lists the commands in groups, which clap cannot do by itself.
pub(super) fn grouped(program: Command) -> Command {
    let width = program.get_subcommands().filter(|command| !command.is_hide_set()).map(|command| command.get_name().len()).max();
    let width = width.unwrap_or_default();
    let mut listed = String::new();
    for (group, names) in GROUPS {
        listed += &format!("{}\n", styled(STRONG.underline(), format_args!("{group}:")));
        for command in names.iter().filter_map(|name| program.find_subcommand(name)) {
            let name = styled(STRONG, format_args!("{:<width$}", command.get_name()));
            listed += &format!("  {name}  {}\n", command.get_about().cloned().unwrap_or_default());
        }
        listed.push('\n');
    }
    let options = styled(STRONG.underline(), "Options:");
    let template = format!("{{about}}\n\n{{usage-heading}} {{usage}}\n\n{listed}{options}\n{{options}}{{after-help}}");
    program.help_template(template).override_usage("lockgate [OPTIONS] COMMAND")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Collects the help page of every subcommand.
    fn pages(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            let path = format!("{path} {}", below.get_name());
            pages(below, &path, found);
            found.push((path, below.clone()));
        }
    }

    fn all_pages() -> Vec<(String, Command)> {
        let mut found = Vec::new();
        pages(&crate::cli::definition(), "lockgate", &mut found);
        found
    }

    #[test]
    fn every_visible_command_is_in_one_group() {
        let program = crate::cli::definition();
        let visible: BTreeSet<&str> =
            program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), visible);
        assert_eq!(grouped.len(), visible.len(), "a command is listed twice");
    }

    #[test]
    fn the_list_of_commands_fits_into_80_columns() {
        let help = crate::cli::definition().render_help().to_string();
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn abouts_start_with_a_capital_and_end_without_a_period() {
        for (path, page) in all_pages() {
            let about = page.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.starts_with(|first: char| first.is_ascii_uppercase()) && !about.ends_with('.'), "{path}: {about:?}");
        }
    }

    #[test]
    fn every_help_page_has_two_or_three_examples_that_parse() {
        for (path, page) in all_pages() {
            let footer = page.get_after_help().map(ToString::to_string).unwrap_or_default();
            let footer = anstream::adapter::strip_str(&footer).to_string();
            let examples: Vec<&str> = footer.lines().filter_map(|line| line.strip_prefix("  ")).collect();
            assert!((2..=3).contains(&examples.len()), "{path} has {} examples", examples.len());
            for example in examples {
                let words = shlex::split(example).expect("an example has balanced quotes");
                let words = words.iter().take_while(|word| !["|", ">", "#"].contains(&word.as_str()));
                let parsed = crate::cli::definition().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{path}: {example}: {}", parsed.err().map(|error| error.to_string()).unwrap_or_default());
                assert!(example.starts_with(&path), "{path}: {example} is about another command");
            }
        }
    }
}
