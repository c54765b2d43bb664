//! What an agent says about its own work: the session it was, what it used.

use serde::{Deserialize, Serialize};

/// What is known about the agent behind one attempt of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The name under which the agent is configured, or its command.
    pub agent: String,
    /// The preset that told how to speak to it, where there was one.
    pub preset: Option<String>,
    /// The program's own version, where it says one.
    pub version: Option<String>,
    /// The model that did the work, where that is known.
    pub model: Option<String>,
    /// The session, so that it can be gone on with.
    pub session: Option<String>,
    /// The folder that the session began in, relative to the root: a session is tied to it.
    pub dir: Option<String>,
    pub usage: Usage,
    /// How often it was asked, counting each answer that did not fit its schema.
    pub asks: u32,
    /// The command that started it, secrets masked and cut where it is long.
    #[serde(default)]
    pub command: Option<String>,
    /// What it says the whole session used, where it speaks of that and not of the attempt.
    #[serde(default)]
    pub session_usage: Option<Usage>,
    /// Tools that it asked for and was not permitted.
    #[serde(default)]
    pub denied: Vec<String>,
}

/// What an agent used. What it does not say is unknown, which is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Cost in millionths of a US dollar.
    pub cost_micros: Option<u64>,
    /// Tokens read, those from a cache included.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
}

impl Usage {
    /// Tokens in all; unknown when either part is.
    pub fn tokens(&self) -> Option<u64> {
        Some(self.input_tokens?.saturating_add(self.output_tokens?))
    }

    /// Both together; unknown where either is.
    pub fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| Some(one?.saturating_add(two?));
        Self {
            cost_micros: sum(self.cost_micros, other.cost_micros),
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
        }
    }

    /// What is left of it when this was used before; unknown where either is.
    pub fn minus(self, before: Self) -> Self {
        let rest = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        Self {
            cost_micros: rest(self.cost_micros, before.cost_micros),
            input_tokens: rest(self.input_tokens, before.input_tokens),
            output_tokens: rest(self.output_tokens, before.output_tokens),
        }
    }

    pub const NOTHING: Self = Self { cost_micros: Some(0), input_tokens: Some(0), output_tokens: Some(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_usage_is_not_zero() {
        let known = Usage { cost_micros: Some(5), input_tokens: Some(1), output_tokens: Some(2) };
        assert_eq!(Usage::NOTHING.plus(known), known);
        assert_eq!(known.tokens(), Some(3));
        assert_eq!(known.plus(Usage::default()), Usage::default());
        assert_eq!(known.plus(known).minus(known), known);
        assert_eq!(known.minus(Usage::default()), Usage::default());
        assert_eq!(Usage { input_tokens: Some(1), ..Usage::default() }.tokens(), None);
    }
}
