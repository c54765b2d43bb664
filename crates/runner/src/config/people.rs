//! Who may answer, and how.

use lockgate_engine::run::command::TerminalRule;
use lockgate_engine::spec::document::Value;
use lockgate_engine::spec::problem::Problem;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct People {
    /// Whether answers need a controlling terminal. An agent that starts Lockgate usually has none; nor has CI.
    pub require_terminal: bool,
}

impl Default for People {
    fn default() -> Self {
        Self { require_terminal: true }
    }
}

impl People {
    pub fn terminal_rule(&self) -> TerminalRule {
        if self.require_terminal { TerminalRule::Required } else { TerminalRule::NotRequired }
    }

    pub(super) fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`people`", "{ require_terminal: false }", &["require_terminal"])? {
            self.require_terminal = setting.value.boolean("`require_terminal`")?;
        }
        Ok(())
    }
}
