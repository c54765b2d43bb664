//! An agent's report about its own work: session, model, usage.

use serde::{Deserialize, Serialize};

/// Information about the agent of one attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The configured name of the agent, or its command.
    pub agent: String,
    /// The preset with which the agent was run, if any.
    pub preset: Option<String>,
    /// The program's version, if it reports one.
    pub version: Option<String>,
    /// The model that did the work, if known.
    pub model: Option<String>,
    /// The session id, for resuming.
    pub session: Option<String>,
    /// The directory in which the session started, relative to the root. A session is tied to its directory.
    pub dir: Option<String>,
    pub usage: Usage,
    /// How many times it was prompted, including each answer that did not match its schema.
    pub asks: u32,
    /// The command that started it, with secrets masked and shortened if long.
    #[serde(default)]
    pub command: Option<String>,
    /// The usage of the whole session, if the agent reports that instead of the attempt's.
    #[serde(default)]
    pub session_usage: Option<Usage>,
    /// Tools that the agent requested and was denied.
    #[serde(default)]
    pub denied: Vec<String>,
}

/// The usage of an agent. A value that the agent does not report is unknown, not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Cost in millionths of a US dollar.
    pub cost_micros: Option<u64>,
    /// Tokens read, including cached ones.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
}

impl Usage {
    /// All tokens; unknown if either part is.
    pub fn tokens(&self) -> Option<u64> {
        Some(self.input_tokens?.saturating_add(self.output_tokens?))
    }

    /// The sum; a part is unknown if it is unknown in either.
    pub fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, two: Option<u64>| Some(one?.saturating_add(two?));
        Self {
            cost_micros: sum(self.cost_micros, other.cost_micros),
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
        }
    }

    /// The difference; a part is unknown if it is unknown in either.
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
