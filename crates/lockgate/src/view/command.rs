//! Commands to show to people, quoted so that they can be pasted into a shell.

/// The command that answers a hold with an option: by its label if that needs no escaping, by its number otherwise.
pub(super) fn answer_command(hold: &str, revision: u32, (at, label): (usize, &str), with_feedback: bool) -> String {
    let plain = |character: char| character.is_alphanumeric() || " -_.,?".contains(character);
    let option = match label {
        _ if label.is_empty() || label.starts_with('-') || !label.chars().all(plain) => (at + 1).to_string(),
        _ if label.contains(|character: char| !character.is_alphanumeric() && !"-_.".contains(character)) => {
            format!("\"{label}\"")
        }
        _ => label.to_owned(),
    };
    let feedback = if with_feedback { " --feedback \"…\"" } else { "" };
    format!("lockgate answer {hold}@{revision} {option}{feedback}")
}

/// The command that starts a run of a file.
pub fn run_command(file: &str, feature: Option<&str>) -> String {
    let feature = feature.map(|feature| format!(" {}", shell_word(feature))).unwrap_or_default();
    format!("lockgate run {}{feature}", shell_word(file))
}

/// A `lockgate` command, with its words quoted for sh, bash and zsh.
pub fn lockgate<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().fold("lockgate".to_owned(), |command, word| format!("{command} {}", shell_word(word)))
}

/// The command that resumes a run, with flags.
pub fn resume_command<'w>(run: &'w str, flags: impl IntoIterator<Item = &'w str>) -> String {
    lockgate(["resume", run].into_iter().chain(flags))
}

/// A command for the worktree of a run, or of one of its tasks.
pub fn worktree_command(what: &str, run: &str, task: Option<&str>) -> String {
    lockgate(["worktrees", what, run].into_iter().chain(task))
}

/// Quotes a text as one word of a shell command.
pub fn shell_word(text: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_./@:+".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_commands_are_shell_safe() {
        let command = |revision, label, at| answer_command("abc", revision, (at, label), false);
        assert_eq!(command(2, "Continue", 0), "lockgate answer abc@2 Continue");
        assert_eq!(command(1, "Looks good", 1), "lockgate answer abc@1 \"Looks good\"");
        assert_eq!(command(1, "$(rm -rf /)", 1), "lockgate answer abc@1 2");
        assert_eq!(command(1, "Go!", 1), "lockgate answer abc@1 2");
        assert_eq!(command(1, "--force", 0), "lockgate answer abc@1 1");
        assert_eq!(command(1, "\x1b[31m", 2), "lockgate answer abc@1 3");
    }

    #[test]
    fn commands_have_a_feedback_placeholder_if_required() {
        let command = answer_command("abc", 1, (0, "Again"), true);
        assert_eq!(command, "lockgate answer abc@1 Again --feedback \"…\"");
        assert_eq!(answer_command("abc", 1, (0, "Again"), false), "lockgate answer abc@1 Again");
    }

    #[test]
    fn command_arguments_are_quoted_where_a_shell_would_change_them() {
        assert_eq!(lockgate(["skip", "abc", "p/try[fast]"]), "lockgate skip abc 'p/try[fast]'");
        assert_eq!(lockgate(["logs", "abc", "p/try[a b*]"]), "lockgate logs abc 'p/try[a b*]'");
        assert_eq!(worktree_command("merge", "abc", Some("p/try[~]")), "lockgate worktrees merge abc 'p/try[~]'");
        assert_eq!(worktree_command("remove", "abc", None), "lockgate worktrees remove abc");
        assert_eq!(resume_command("abc", ["--changed", "keep"]), "lockgate resume abc --changed keep");
        assert_eq!(resume_command("=ls", []), "lockgate resume '=ls'");
    }

    #[test]
    fn the_arguments_of_a_new_run_command_are_quoted() {
        assert_eq!(run_command("flows/a.yaml", Some("login")), "lockgate run flows/a.yaml login");
        assert_eq!(run_command("my flow.yaml", None), "lockgate run 'my flow.yaml'");
        assert_eq!(run_command("a.yaml", Some("it's")), "lockgate run a.yaml 'it'\\''s'");
    }
}
