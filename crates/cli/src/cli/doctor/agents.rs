//! Checks that the programs of the configured agents can be started.

use super::Check;
use lockgate_runner::agent::AgentSources;
use lockgate_runner::config::Config;
use std::path::Path;

pub(super) fn checks(config: &Config, root: &Path) -> Vec<Check> {
    let configured = AgentSources { project: config.agents.clone(), ..AgentSources::default() };
    config.agents.keys().map(|name| check(&configured, name, root)).collect()
}

fn check(configured: &AgentSources, name: &str, root: &Path) -> Check {
    let chosen = match configured.select(Some(name)) {
        Ok(chosen) => chosen,
        Err(why) => return Check::failed("agent", format!("agent {name:?}: {why}"), "fix it under `agents` in the settings"),
    };
    let program = chosen.program().unwrap_or_default();
    if can_start(&program, root) {
        return Check::ok("agent", format!("agent {name:?} is `{program}`"));
    }
    let fix = "install it, add it to PATH, or name another program under `agents` in the settings";
    Check::failed("agent", format!("agent {name:?}: `{program}` is not found"), fix)
}

pub(super) use lockgate::verdict::can_start;
