//! The files beside a workflow file that belong to it: templates, prompts, workflows that it uses.

use super::suggest;
use super::workflow::AgentSetting;
use serde_json::Value;
use std::collections::BTreeMap;

/// Why a file beside a workflow file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IncludeError {
    /// Its path leads elsewhere.
    #[error("it does not lie beside the workflow file")]
    Elsewhere,
    /// The workflow has too many files already.
    #[error("more than {most} files belong to this workflow")]
    TooMany {
        /// How many it may have.
        most: usize,
    },
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It is too large.
    #[error("it is larger than {most} bytes")]
    TooLarge {
        /// How large it may be.
        most: usize,
    },
    #[error("it is not UTF-8 text")]
    NotText,
}

/// Where the files beside a workflow file come from, and what only whoever runs it knows. Whoever implements it keeps what was read, so
/// that it can be frozen.
pub trait Includes {
    /// The text of a file, named from the workflow's folder or from the folder above it; nothing when there is no such file.
    fn read(&mut self, path: &str) -> Result<Option<String>, IncludeError>;

    /// The names of what lies in a folder beside the workflow file or its folder; nothing when there is no such folder.
    fn list(&mut self, folder: &str) -> Vec<String>;

    /// The name of the workflow file itself, without its directory; nothing when it has none.
    fn file_name(&self) -> Option<String> {
        None
    }

    /// The programs of agents that are known; nothing when nobody can say.
    fn presets(&self) -> Vec<String> {
        Vec::new()
    }

    /// The agents that the project's settings declare.
    fn agents(&self) -> Vec<String> {
        Vec::new()
    }

    /// The program that a preset starts, where it is known to be missing on this machine.
    fn missing_program(&self, preset: &str) -> Option<String> {
        let _ = preset;
        None
    }

    /// What the agent cannot do that works where this one is wanted, given the agents of the file; nothing when nobody can say.
    fn agent_limits(&self, agents: &BTreeMap<String, AgentSetting>, wanted: Option<&str>) -> Option<AgentLimits> {
        let _ = (agents, wanted);
        None
    }

    /// What is wrong with a JSON Schema; nothing when nobody can say.
    fn schema_fault(&self, schema: &Value) -> Option<String> {
        let _ = schema;
        None
    }
}

/// What an agent can and cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentLimits {
    /// What it is, such as "the preset `codex`".
    pub what: String,
    /// Whether it can continue a session.
    pub resumes: bool,
    /// Whether tools can be allowed.
    pub allows_tools: bool,
    /// Whether tools can be denied.
    pub denies_tools: bool,
}

/// There is nothing beside the file.
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

/// The folder of subagents' prompts.
const SUBAGENTS: &str = "subagents";

/// What a subagent is told, by its type: `subagents/<type>.md`, or `subagents/prompts/<type>/default.md.tmpl`.
pub(super) fn prompt(includes: &mut dyn Includes, kind: &str) -> Result<Option<String>, IncludeError> {
    // A type may be any text; as a part of a path it must be a plain name.
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

/// The types of subagents that there are prompts for.
pub(super) fn kinds(includes: &mut dyn Includes) -> Vec<String> {
    let documents = includes.list(SUBAGENTS).into_iter().filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()));
    let mut kinds: Vec<String> = documents.chain(includes.list(&format!("{SUBAGENTS}/prompts"))).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// What was probably meant by the name of a file that is not there.
pub(super) fn meant(includes: &mut dyn Includes, path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    let names = includes.list(folder);
    suggest::did_you_mean(name, names.iter().map(String::as_str))
}
