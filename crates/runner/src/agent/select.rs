//! Selects the agent: the command line overrides the workflow, which overrides the settings.

use super::{AgentError, Preset, Setting, preset};
use lockgate_engine::spec::workflow::DEFAULT_AGENT;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct AgentSources {
    /// The agent command from the command line, which overrides everything else.
    pub instead: Option<String>,
    /// Agents of the workflow, by name.
    pub workflow: BTreeMap<String, Setting>,
    /// Agents of the project's settings, by name.
    pub project: BTreeMap<String, Setting>,
}

#[derive(Clone, Debug)]
pub struct SelectedAgent {
    /// Its configured name, or its command.
    pub name: String,
    pub setting: Setting,
    /// The preset, if the program is a known one.
    pub preset: Option<&'static Preset>,
}

impl AgentSources {
    /// Selects an agent by name, or the default one.
    pub fn select(&self, wanted: Option<&str>) -> Result<SelectedAgent, AgentError> {
        if let Some(command) = &self.instead {
            let setting = Setting { command: Some(command.clone()), ..Setting::default() };
            return chosen(command.clone(), setting);
        }
        for name in wanted.into_iter().chain([DEFAULT_AGENT]) {
            if let Some(setting) = self.workflow.get(name).or_else(|| self.project.get(name)) {
                return chosen(name.to_owned(), setting.clone());
            }
        }
        let wanted = wanted.filter(|name| *name != DEFAULT_AGENT);
        Err(AgentError::NotConfigured { wanted: wanted.map(str::to_owned) })
    }
}

impl SelectedAgent {
    /// The program that is started.
    pub fn program(&self) -> Option<String> {
        match (&self.setting.command, self.preset) {
            (Some(command), _) => command.split_whitespace().next().map(str::to_owned),
            (None, Some(preset)) => Some(preset.program().to_owned()),
            (None, None) => None,
        }
    }
}

fn chosen(name: String, setting: Setting) -> Result<SelectedAgent, AgentError> {
    // The bare name of a known program selects its preset.
    let known = setting.command.as_deref().filter(|_| setting.preset.is_none()).and_then(|command| preset(command).ok());
    if let Some(known) = known {
        return Ok(SelectedAgent { name, setting: Setting { command: None, ..setting }, preset: Some(known) });
    }
    let preset = setting.preset.as_deref().map(preset).transpose()?;
    Ok(SelectedAgent { name, setting, preset })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(command: &str) -> Setting {
        Setting { command: Some(command.into()), ..Setting::default() }
    }

    #[test]
    fn the_command_line_overrides_the_workflow_which_overrides_the_settings() {
        let mut configured = AgentSources {
            instead: None,
            workflow: [("reviewer".to_owned(), command("a"))].into(),
            project: [("reviewer".to_owned(), command("b")), ("default".to_owned(), command("claude"))].into(),
        };
        let name = |configured: &AgentSources, wanted| configured.select(wanted).map(|chosen| chosen.setting.command);
        assert_eq!(name(&configured, Some("reviewer")), Ok(Some("a".into())));
        let default = configured.select(Some("scout")).unwrap();
        assert_eq!((default.name.as_str(), default.preset.map(|preset| preset.name.as_str())), ("default", Some("claude")));
        configured.instead = Some("./stand-in".into());
        assert_eq!(name(&configured, Some("reviewer")), Ok(Some("./stand-in".into())));
        let output = AgentSources::default().select(Some("scout")).unwrap_err().to_string();
        assert!(output.contains("for `scout`") && output.contains("--agent"), "{output}");
    }
}
