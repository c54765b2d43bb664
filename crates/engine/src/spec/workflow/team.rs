//! The settings of a team: how much its members count in conflicts, and which knowledge their prompts include.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Team {
    /// By the name of the agent.
    pub members: BTreeMap<String, TeamMember>,
    /// The tags of the knowledge that all prompts include.
    pub inject: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TeamMember {
    pub role: Option<String>,
    /// How much its votes count.
    pub weight: f64,
    /// What is added to the weight in conflicts about a domain.
    pub domains: BTreeMap<String, f64>,
    /// Whether it may veto.
    pub veto: bool,
}

impl Default for TeamMember {
    fn default() -> Self {
        Self { role: None, weight: 1.0, domains: BTreeMap::new(), veto: true }
    }
}
