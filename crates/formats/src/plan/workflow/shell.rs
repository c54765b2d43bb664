//! Runs shell commands from a plan unchanged.

use lockgate_engine::spec::workflow::{FIRST_CHECK_STATUS, NUMBERED_CHECKS};
use lockgate_engine::template::{self, Escape};

/// Combines commands that must all succeed: the shell stops at the first line, or the first command of a pipe, that fails. Template
/// expressions in the commands are escaped.
pub(super) fn all_of<'c>(commands: impl IntoIterator<Item = &'c str>) -> Option<String> {
    let commands: Vec<&str> = commands.into_iter().collect();
    let joined = match commands.as_slice() {
        [] => return None,
        [one] => with_its_pipes(one),
        // A command may end with a comment or a here-document, so the next one starts on a new line.
        many => (FIRST_CHECK_STATUS..).zip(many).fold(report_failed_command(), |all, (status, one)| {
            let status = status.min(FIRST_CHECK_STATUS + NUMBERED_CHECKS as i32 - 1);
            format!("{all}\ncheck={} status={status}\n(\n{}\n)", quoted(one), with_its_pipes(one))
        }),
    };
    Some(literal(&joined))
}

/// Reports which of several commands failed: as a message for people, and by the exit status.
fn report_failed_command() -> String {
    r#"trap 's=$?; test "$s" = 0 || { printf "%s\n" "this check failed: $check (exit code $s)" >&2; exit "$status"; }' EXIT"#
        .to_owned()
}

/// How the pipes of a command affect its exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pipes {
    /// As far as can be detected, no pipe hides the failure of a command before it.
    Plain,
    /// All pipes only shorten or copy the output.
    ShortenOnly,
    /// The last pipe shortens the output, and others search it: a search without a match may be intended.
    Mixed(&'static str),
    /// The last pipe cuts off a command that never ends by itself, so that command always fails.
    Endless(&'static str),
}

/// Classifies the pipes of a command, outside of quotes.
pub(super) fn pipes(command: &str) -> Pipes {
    /// Commands that read to the end and always succeed, so they say nothing about their input.
    const SHORTEN: [&str; 4] = ["head", "tail", "tee", "cat"];
    /// Commands that never end by themselves, so their reader must cut them off.
    const ENDLESS: [&str; 6] = ["yes", "/dev/urandom", "/dev/zero", "watch", "dev", "serve"];
    let (mut quote, mut before, mut into) = (None, ' ', Vec::new());
    let mut signs = command.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        match (quote, sign) {
            (Some('\''), '\\') => {}
            (_, '\\') => drop(signs.next()),
            (Some(open), _) if open == sign => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(sign),
            (None, '|') if before == '|' || before == '>' || signs.peek().is_some_and(|(_, next)| *next == '|') => {}
            (None, '|') => {
                let rest = command[at + 1..].trim_start_matches('&').trim_start();
                let is_sign = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '-' | '.' | '/');
                into.push(rest.split(|sign| !is_sign(sign)).next().unwrap_or_default());
            }
            (None, _) => {}
        }
        before = sign;
    }
    let shortens = |word: &&str| SHORTEN.iter().find(|known| *known == word).copied();
    let is_endless =
        command.split_whitespace().any(|word| ENDLESS.iter().any(|endless| word.trim_start_matches('<') == *endless));
    match (into.iter().all(|word| shortens(word).is_some()), into.last().and_then(shortens)) {
        // An unclosed quote is not understood.
        _ if quote.is_some() => Pipes::Plain,
        (_, Some(last)) if is_endless => Pipes::Endless(last),
        (true, Some(_)) => Pipes::ShortenOnly,
        (false, Some(last)) => Pipes::Mixed(last),
        (_, None) => Pipes::Plain,
    }
}

/// Wraps a command so that its pipes only fail if something in them went wrong.
///
/// `head` and `grep -q` read to the end: otherwise a command with more output would be killed, and would count as failed.
/// Commands that never end by themselves are meant to be killed.
fn with_its_pipes(command: &str) -> String {
    const HEAD: &str = "head() { s=0; command head \"$@\" || s=$?; \
for a do case $a in -*|[0-9]*) ;; *) return $s ;; esac; done; cat >/dev/null; return $s; }";
    const GREP: &str = "grep() { s=0; command grep \"$@\" || s=$?; \
case \" $* \" in *' -q'*|*' -'[!-]*q*|*' --quiet'*|*' --silent'*) if test -p /dev/stdin; then cat >/dev/null; fi ;; esac; return $s; }";
    const LAST_ONLY: &str = "(set +o pipefail) 2>/dev/null && set +o pipefail";
    let is_piped_into = |program: &str| command.split('|').skip(1).any(|member| member.trim_start().starts_with(program));
    let mut lines = Vec::new();
    if is_piped_into("grep") {
        lines.push(GREP);
    }
    match pipes(command) {
        Pipes::Endless(_) => lines = vec![LAST_ONLY],
        Pipes::Plain | Pipes::ShortenOnly | Pipes::Mixed(_) if is_piped_into("head") => lines.push(HEAD),
        Pipes::Plain | Pipes::ShortenOnly | Pipes::Mixed(_) => {}
    }
    lines.push(command);
    lines.join("\n")
}

/// Escapes template expressions in a command.
pub(super) fn literal(command: &str) -> String {
    if template::roots(command, Escape::Shell).is_empty() && template::check_shell(command).is_ok() {
        return command.to_owned();
    }
    // The shell joins the braces again, after templates have been expanded.
    format!("eval {}", quoted(command).replace("{{", r#"{'"{"'"#))
}

/// Quotes a text as one shell word.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Whether a path stays inside the root.
pub(super) fn is_under_root(path: &str) -> bool {
    let odd = |sign: char| sign.is_control() || matches!(sign, '*' | '?' | '\\');
    !path.is_empty() && !path.starts_with(['/', '~', '-']) && !path.contains(odd) && !path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncating_pipes_are_distinguished_from_searching_ones() {
        for command in [
            "make 2>&1 | tail -20",
            "a | head -5 && b |& tee log",
            "false | tail -1 || exit 1",
            "a |\ncat",
            "docker build -f x . | tail",
        ] {
            assert_eq!(pipes(command), Pipes::ShortenOnly, "{command}");
        }
        for command in [
            "a || b",
            "docker build -f x .",
            "grep 'a|tail' x",
            "a | grep -q x",
            "echo \"x | tail\"",
            "echo \\| tail",
            "a >| head",
            "it's | tail",
        ] {
            assert_eq!(pipes(command), Pipes::Plain, "{command}");
        }
        assert_eq!(pipes("a | grep -v x | head -5"), Pipes::Mixed("head"));
        for command in ["yes | head -1", "tr -d x </dev/urandom | head -c 9"] {
            assert_eq!(pipes(command), Pipes::Endless("head"), "{command}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "only a shell shows how it runs a command")]
    fn a_command_fails_if_the_command_before_its_pipe_fails() {
        for (command, succeeds) in [
            ("false | tail -1", false),
            ("printf '%s\\n' \"it's\" | tail -1", true),
            ("seq 1 100000 | head -1", true),
            ("head -1 /dev/null | cat", true),
            ("echo a | tail -1\nfalse | head -n 1\ntrue", false),
            ("echo a | tail -1\ntrue | grep -q a || true", true),
            ("echo '{{vars.x}}' | cat; false | tee /dev/null", false),
            ("false; echo done | tail -1", false),
            ("false\necho done", false),
            ("seq 1 100000 | grep 1 | head -1", true),
            ("false | grep -c x | head -1", false),
            ("yes | head -1", true),
            ("seq 1 1000000 | grep -q 1", true),
            ("seq 1 1000000 | grep -q x", false),
            ("(seq 1 1000000; false) | grep --quiet 1", false),
            ("(seq 1 1000000; true) |grep -cq 1 && grep -q root /etc/passwd", true),
        ] {
            let run = all_of([command]).expect("a command");
            let output = std::process::Command::new("bash").args(["-eo", "pipefail", "-c", &run]).output().expect("a shell");
            assert_eq!(output.status.success(), succeeds, "{command}: {run}: {output:?}");
            let twice = all_of(["true", command]).expect("a command");
            let output = std::process::Command::new("bash").args(["-eo", "pipefail", "-c", &twice]).output().expect("a shell");
            assert_eq!(output.status.success(), succeeds, "{command}: {twice}: {output:?}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "only a shell shows how it runs a command")]
    fn the_exit_status_says_which_of_several_commands_failed() {
        let status = |commands: &[&str]| {
            let run = all_of(commands.iter().copied()).expect("commands");
            let output = std::process::Command::new("bash").args(["-eo", "pipefail", "-c", &run]).output().expect("a shell");
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        assert_eq!(status(&["true", "true"]), (Some(0), String::new()));
        let (code, said) = status(&["true", "exit 7", "false"]);
        assert_eq!(code, Some(FIRST_CHECK_STATUS + 1));
        assert_eq!(said, "this check failed: exit 7 (exit code 7)\n");
        let many: Vec<&str> = std::iter::repeat_n("true", NUMBERED_CHECKS + 5).chain(["false"]).collect();
        assert_eq!(status(&many).0, Some(FIRST_CHECK_STATUS + NUMBERED_CHECKS as i32 - 1), "the last status is shared");
    }
}
