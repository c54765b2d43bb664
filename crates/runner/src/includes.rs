//! The files included by a workflow file. They are read from disk and kept, so that they can be frozen with a run.

use crate::agent::{Ability, AgentSources};
use crate::config::Config;
use crate::root::Root;
use lockgate_engine::spec::MAX_BYTES;
use lockgate_engine::spec::includes::{AgentLimits, IncludeError, Includes};
use lockgate_engine::spec::workflow::AgentSetting;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

const MAX_FILES: usize = 1_000;

/// The directory of a workflow file, and its parent.
#[derive(Debug)]
pub struct IncludeFiles {
    name: Option<String>,
    folders: Vec<PathBuf>,
    read: BTreeMap<PathBuf, String>,
}

impl IncludeFiles {
    pub fn of(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let above = folder.parent().map(Path::to_owned);
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Self { name, folders: std::iter::once(folder).chain(above).collect(), read: BTreeMap::new() }
    }

    /// The files that were read, with their contents.
    pub fn into_read(self) -> BTreeMap<PathBuf, String> {
        self.read
    }

    fn candidates(&self, path: &str) -> Vec<PathBuf> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if Path::new(path).is_absolute() || !Path::new(path).components().all(plain) {
            return Vec::new();
        }
        self.folders.iter().map(|folder| folder.join(path)).collect()
    }
}

impl Includes for IncludeFiles {
    fn file_name(&self) -> Option<String> {
        self.name.clone()
    }

    fn read(&mut self, path: &str) -> Result<Option<String>, IncludeError> {
        let candidates = self.candidates(path);
        if candidates.is_empty() {
            return Err(IncludeError::Elsewhere);
        }
        for place in candidates {
            if let Some(text) = self.read.get(&place) {
                return Ok(Some(text.clone()));
            }
            let Ok(metadata) = place.metadata() else { continue };
            if !metadata.is_file() {
                continue;
            }
            if self.read.len() >= MAX_FILES {
                return Err(IncludeError::TooMany { most: MAX_FILES });
            }
            let text = text_of(&place)?;
            self.read.insert(place, text.clone());
            return Ok(Some(text));
        }
        Ok(None)
    }

    fn list(&mut self, folder: &str) -> Vec<String> {
        let entries = self.candidates(folder).into_iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten();
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.take(MAX_FILES).collect();
        names.sort();
        names
    }

    fn presets(&self) -> Vec<String> {
        crate::agent::preset_names().into_iter().map(str::to_owned).collect()
    }

    fn agents(&self) -> Vec<String> {
        self.config().map(|config| config.agents.into_keys().collect()).unwrap_or_default()
    }

    fn missing_program(&self, preset: &str) -> Option<String> {
        let program = crate::agent::preset(preset).ok()?.program();
        (!is_on_path(program)).then(|| program.to_owned())
    }

    fn agent_limits(&self, agents: &BTreeMap<String, AgentSetting>, wanted: Option<&str>) -> Option<AgentLimits> {
        let project = self.config().map(|config| config.agents).unwrap_or_default();
        let configured = AgentSources { instead: None, workflow: agents.clone(), project };
        let chosen = configured.select(wanted).ok()?;
        let can = |ability| chosen.preset.is_some_and(|preset| preset.can(ability));
        Some(AgentLimits {
            what: match chosen.preset {
                Some(preset) => format!("the preset `{}`", preset.name),
                None => format!("the command `{}`", chosen.setting.command.as_deref().unwrap_or_default()),
            },
            resumes: can(Ability::Resume),
            allows_tools: can(Ability::AllowTools),
            denies_tools: can(Ability::DenyTools),
        })
    }

    fn schema_fault(&self, schema: &Value) -> Option<String> {
        jsonschema::validator_for(schema).err().map(|error| error.to_string())
    }
}

impl IncludeFiles {
    /// The settings of the project that contains the workflow file.
    fn config(&self) -> Option<Config> {
        let root = self.folders.first().and_then(|folder| Root::find(folder))?;
        let read = Config::read(&root);
        // A command that needs the settings reports the error.
        read.inspect_err(|error| tracing::debug!(%error, "the settings cannot be read; skipping the checks that depend on them"))
            .ok()
    }
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| {
        let found = folder.join(program).metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

fn text_of(path: &Path) -> Result<String, IncludeError> {
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_BYTES {
        return Err(IncludeError::TooLarge { most: MAX_BYTES });
    }
    String::from_utf8(bytes).map_err(|_| IncludeError::NotText)
}
