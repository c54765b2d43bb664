//! Commands that a shell takes as they stand in the plan.

use crate::template::{self, Escape};

/// One command for several, each of which must succeed. What looks like a template of ours is none.
pub(super) fn all_of<'c>(commands: impl IntoIterator<Item = &'c str>) -> Option<String> {
    let commands: Vec<&str> = commands.into_iter().collect();
    let joined = match commands.as_slice() {
        [] => return None,
        [one] if !one.contains('\n') => (*one).to_owned(),
        // A command may end with a comment or a here document, so what follows begins on a line of its own.
        many => many.iter().fold("set -e".to_owned(), |all, one| format!("{all}\n(\n{one}\n)")),
    };
    Some(literal(&joined))
}

/// A command in which nothing is filled in.
pub(super) fn literal(command: &str) -> String {
    if template::roots(command, Escape::Shell).is_empty() && template::check_shell(command).is_ok() {
        return command.to_owned();
    }
    // The shell puts the braces together again, when nothing looks for templates any more.
    format!("eval {}", quoted(command).replace("{{", r#"{'"{"'"#))
}

/// A text as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Whether a path leads to one place under the root.
pub(super) fn is_under_root(path: &str) -> bool {
    let odd = |sign: char| sign.is_control() || matches!(sign, '*' | '?' | '\\');
    !path.is_empty() && !path.starts_with(['/', '~', '-']) && !path.contains(odd) && !path.split('/').any(|part| part == "..")
}
