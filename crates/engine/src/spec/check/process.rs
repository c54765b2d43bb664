//! Settings that tasks and gates share because both start processes: environment, secrets, directory, failures.

use super::Checker;
use super::fields::Fields;
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use crate::spec::syntax::Node;
use crate::spec::workflow::{NotAShell, OnFail, Shell};
use crate::template::Roots;
use std::collections::BTreeMap;
use std::ops::Range;

pub(super) const ON_FAIL: [(&str, OnFail); 3] = [("fail", OnFail::Fail), ("ask", OnFail::Ask), ("repeat", OnFail::Repeat)];

pub(super) const ON_FAIL_ABOUT: &str = "What happens when the last attempt has failed. `fail`: the run fails. `ask`: a hold opens with Run again, Count as done and Abort; at a gate of a phase it can also run the phase again. \
    `repeat`: the phase runs again, three times at most, then a hold opens.";

/// The description of `shell` in tasks and gates.
pub(super) const SHELL_ABOUT: &str = "The shell that runs its commands: `bash` (`bash -eo pipefail`), `sh` (`sh -e`), or a command in which `{0}` is the path of the script file, such as `python3 {0}`. Overrides that of the phase.";

impl Checker<'_, '_> {
    /// Reads `shell` and applies it to the commands that are read in `inside`.
    pub(super) fn with_shell<T>(&mut self, fields: &Fields<'_, '_>, inside: impl FnOnce(&mut Self) -> T) -> (Option<Shell>, T) {
        let own = fields.get("shell").and_then(|node| self.shell(node));
        let outer = self.shell.clone();
        self.shell = own.clone().or_else(|| outer.clone());
        let read = inside(self);
        self.shell = outer;
        (own, read)
    }

    fn shell(&mut self, node: &Node<'_>) -> Option<Shell> {
        let text = self.filled(node, "`shell`")?;
        match Shell::parse(text) {
            Ok(shell) => Some(shell),
            Err(NotAShell { message, help }) => {
                self.error(ProblemCode::InvalidValue, &node.span, message).help(help);
                None
            }
        }
    }

    pub(super) fn on_fail(&mut self, fields: &Fields<'_, '_>) -> OnFail {
        fields.get("on_fail").and_then(|node| self.word(node, "`on_fail`", &ON_FAIL)).unwrap_or_default()
    }

    pub(super) fn dir(&mut self, fields: &Fields<'_, '_>) -> Option<String> {
        fields.get("dir").and_then(|node| self.path(node, "`dir`", Roots::Task))
    }

    pub(super) fn env(&mut self, fields: &Fields<'_, '_>) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        for entry in fields.get("env").and_then(|node| self.entries(node, "`env`")).unwrap_or_default() {
            let key: &str = &entry.key;
            if !is_variable(key) {
                let message = format!("an environment variable cannot be called `{}`", shown(key));
                self.error(ProblemCode::InvalidEnvName, &entry.key_span, message)
                    .help("use letters, digits and `_`, not starting with a digit");
                continue;
            }
            if is_ours(key) {
                let message = format!("`{}` would replace a variable that Lockgate sets", shown(key));
                self.error(ProblemCode::InvalidEnvName, &entry.key_span, message).help(NOT_OURS);
                continue;
            }
            if entry.value.is_null() {
                let message = format!("`{key}` has no value");
                self.error(ProblemCode::MissingEnvValue, &entry.key_span, message).help("write `''` for an empty one");
                continue;
            }
            if let Some(value) = self.template(&entry.value, &format!("`{key}`"), Roots::Task) {
                env.insert(key.to_owned(), value);
            }
        }
        env
    }

    pub(super) fn secret_names(&mut self, fields: &Fields<'_, '_>) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for item in fields.get("secrets").map(|node| self.one_or_more(node)).unwrap_or_default() {
            if let Some(name) = self.secret_name(item)
                && !names.iter().any(|known| known == name)
            {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// A task receives a secret as an environment variable, so the name must be valid for one.
    pub(super) fn secret_name<'n>(&mut self, node: &'n Node<'_>) -> Option<&'n str> {
        let name = self.text(node, "the name of a secret")?;
        self.is_secret_name(name, &node.span).then_some(name)
    }

    /// Whether this is a valid name for a secret. Otherwise the problem is reported.
    pub(super) fn is_secret_name(&mut self, name: &str, span: &Range<usize>) -> bool {
        let help = if !is_variable(name) {
            "use letters, digits and `_`, not starting with a digit"
        } else if is_ours(name) {
            NOT_OURS
        } else {
            return true;
        };
        self.error(ProblemCode::InvalidSecretName, span, format!("a secret cannot be called `{}`", shown(name))).help(help);
        false
    }
}

const NOT_OURS: &str = "names that start with `LOCKGATE_` are set by Lockgate; choose another name";

/// Whether Lockgate sets variables with this prefix, so that tasks and answers can rely on them.
fn is_ours(name: &str) -> bool {
    name.starts_with("LOCKGATE_")
}

/// Whether this is a valid variable name in a POSIX shell.
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}
