//! The sources of secrets.

use super::Checker;
use super::fields::{Fields, Format, Key, Rule, Shape};
use super::process::is_variable;
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::SecretSource;
use std::collections::BTreeMap;

pub(super) static SOURCE: Format = Format {
    name: "secret",
    what: "a secret",
    known: &[
        Key::optional("env", Shape::Variable, "The environment variable that contains it."),
        Key::optional("command", Shape::Filled, "The command that prints it."),
    ],
    later: &["file", "keyring", "vault"],
    rule: Some(Rule::AnyOf(&["env", "command"])),
};

impl Checker<'_, '_> {
    /// Reads the top-level `secrets`: names with their sources, or only names.
    pub(super) fn secrets(&mut self, fields: &Fields<'_, '_>) -> BTreeMap<String, SecretSource> {
        let mut secrets = BTreeMap::new();
        let Some(node) = fields.get("secrets") else { return secrets };
        match &*node.content {
            Content::List(items) => {
                for item in items {
                    if let Some(name) = self.secret_name(item) {
                        secrets.insert(name.to_owned(), SecretSource::Env(name.to_owned()));
                    }
                }
            }
            Content::Map(entries) => {
                for entry in entries {
                    let name: &str = &entry.key;
                    if self.is_secret_name(name, &entry.key_span)
                        && let Some(source) = self.secret_source(name, &entry.value)
                    {
                        secrets.insert(name.to_owned(), source);
                    }
                }
            }
            Content::Scalar(_) => {
                self.wrong_kind(node, "`secrets`", "a map of names and sources, or a list of names");
            }
        }
        secrets
    }

    fn secret_source(&mut self, name: &str, node: &Node<'_>) -> Option<SecretSource> {
        if node.is_null() {
            return Some(SecretSource::Env(name.to_owned()));
        }
        if let Content::Scalar(_) = &*node.content {
            let help = format!("write `{name}: {{ env: VARIABLE }}` or `{name}: {{ command: … }}`, never the secret itself");
            self.wrong_kind(node, &format!("the source of `{name}`"), "a map with `env` or `command`").help(help);
            return None;
        }
        let fields = self.fields(node, &SOURCE)?;
        match (fields.get("env"), fields.get("command")) {
            (Some(variable), None) => {
                let text = self.text(variable, "`env`")?;
                if !is_variable(text) {
                    let message = format!("an environment variable cannot be called `{}`", shown(text));
                    self.error(ProblemCode::InvalidEnvName, &variable.span, message);
                    return None;
                }
                Some(SecretSource::Env(text.to_owned()))
            }
            (None, Some(command)) => Some(SecretSource::Command(self.filled(command, "`command`")?.to_owned())),
            (Some(_), Some(command)) => {
                self.error(
                    ProblemCode::ConflictingKeys,
                    &command.span,
                    "a secret comes from `env` or from `command`, not from both",
                );
                None
            }
            (None, None) => {
                self.error(ProblemCode::MissingKey, &fields.span, "a secret needs `env` or `command`");
                None
            }
        }
    }
}
