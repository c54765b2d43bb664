//! Files that belong to a workflow file: templates, prompts, workflows that it uses.

use super::suggest;
use super::workflow::AgentSetting;
use serde_json::Value;
use std::collections::BTreeMap;

/// Why an included file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IncludeError {
    #[error("it is not in the directory of the workflow file")]
    Elsewhere,
    #[error("the workflow includes more than {most} files")]
    TooMany { most: usize },
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("it is larger than {most} bytes")]
    TooLarge { most: usize },
    #[error("it is not UTF-8 text")]
    NotText,
}

/// Provides the included files and what only the host of a workflow knows. Implementations remember the files that were read, so
/// that they can be frozen with the run.
pub trait Includes {
    /// The text of a file, relative to the directory of the workflow or to its parent; `None` if it does not exist.
    fn read(&mut self, path: &str) -> Result<Option<String>, IncludeError>;

    /// The names in a directory next to the workflow file or its directory. Empty if there is no such directory.
    fn list(&mut self, dir: &str) -> Vec<String>;

    /// The name of the workflow file without its directory, if it has one.
    fn file_name(&self) -> Option<String> {
        None
    }

    /// The names of known agent presets; empty if unknown.
    fn presets(&self) -> Vec<String> {
        Vec::new()
    }

    /// The agents that the project's settings declare.
    fn agents(&self) -> Vec<String> {
        Vec::new()
    }

    /// The program that a preset starts, if it is known to be missing on this machine.
    fn missing_program(&self, preset: &str) -> Option<String> {
        let _ = preset;
        None
    }

    /// The limits of the agent that would do the work of `wanted`, given the agents of the file; `None` if unknown.
    fn agent_limits(&self, agents: &BTreeMap<String, AgentSetting>, wanted: Option<&str>) -> Option<AgentLimits> {
        let _ = (agents, wanted);
        None
    }

    /// The error in a JSON Schema; `None` if it is valid or cannot be checked.
    fn schema_fault(&self, schema: &Value) -> Option<String> {
        let _ = schema;
        None
    }
}

/// The capabilities of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// A description, such as "the preset `codex`".
    pub what: String,
    /// Whether it can resume a session.
    pub resumes: bool,
    pub allows_tools: bool,
    pub denies_tools: bool,
}

/// A workflow file without included files.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoIncludes;

impl Includes for NoIncludes {
    fn read(&mut self, _: &str) -> Result<Option<String>, IncludeError> {
        Ok(None)
    }

    fn list(&mut self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// The directory of subagent prompts.
const SUBAGENTS: &str = "subagents";

/// The prompt of a subagent type: `subagents/<type>.md`, or `subagents/prompts/<type>/default.md.tmpl`.
pub(super) fn prompt(includes: &mut dyn Includes, kind: &str) -> Result<Option<String>, IncludeError> {
    // A type may be any text, but as part of a path it must be a plain name.
    if kind.is_empty() || kind.starts_with('.') || kind.contains(['/', '\\', '\0']) {
        return Ok(None);
    }
    for path in [format!("{SUBAGENTS}/{kind}.md"), format!("{SUBAGENTS}/prompts/{kind}/default.md.tmpl")] {
        if let Some(text) = includes.read(&path)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// The subagent types for which there are prompts.
pub(super) fn kinds(includes: &mut dyn Includes) -> Vec<String> {
    let documents = includes.list(SUBAGENTS).into_iter().filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()));
    let mut kinds: Vec<String> = documents.chain(includes.list(&format!("{SUBAGENTS}/prompts"))).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// A suggestion for the name of a file that does not exist.
pub(super) fn meant(includes: &mut dyn Includes, path: &str) -> Option<String> {
    let (dir, name) = path.rsplit_once('/').unwrap_or((".", path));
    let names = includes.list(dir);
    suggest::did_you_mean(name, names.iter().map(String::as_str))
}
