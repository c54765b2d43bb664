//! Presets: the data that describes an agent's program.

use super::AgentError;
use super::path::{Line, Paths, Pattern};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The built-in presets. To add one, add a file and a line here.
const FILES: [(&str, &str); 7] = [
    ("claude", include_str!("presets/claude.yaml")),
    ("codex", include_str!("presets/codex.yaml")),
    ("copilot", include_str!("presets/copilot.yaml")),
    ("cursor", include_str!("presets/cursor.yaml")),
    ("gemini", include_str!("presets/gemini.yaml")),
    ("opencode", include_str!("presets/opencode.yaml")),
    ("qwen", include_str!("presets/qwen.yaml")),
];

static PRESETS: LazyLock<BTreeMap<&'static str, Preset>> = LazyLock::new(|| {
    let read = |(name, text)| (name, Preset::read(name, text).expect("the built-in files are tested"));
    FILES.into_iter().map(read).collect()
});

/// How to call one agent's program and read its output.
#[derive(Clone, Debug)]
pub struct Preset {
    /// Its name in settings.
    pub name: String,
    pub(super) program: String,
    pub(super) prompt: Prompt,
    usage_of: UsageOf,
    login: Vec<String>,
    pub(super) arguments: Vec<ArgumentRule>,
    pub(super) rules: Arc<[Rule]>,
}

/// What a program may support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// The id of a new session can be chosen before the work starts.
    ChooseSession,
    Resume,
    Model,
    AllowTools,
    DenyTools,
    /// It stops by itself when it reaches a cost limit.
    LimitCost,
}

pub fn preset(name: &str) -> Result<&'static Preset, AgentError> {
    PRESETS.get(name).ok_or_else(|| AgentError::NoPreset(name.to_owned()))
}

pub fn preset_names() -> Vec<&'static str> {
    PRESETS.keys().copied().collect()
}

impl Preset {
    pub fn read(name: &str, text: &str) -> Result<Self, AgentError> {
        let file: File = serde_saphyr::from_str(text)
            .map_err(|error| AgentError::UnreadablePreset { name: name.to_owned(), detail: error.to_string() })?;
        let File { program, prompt, usage_of, login, arguments, rules } = file;
        Ok(Self { name: name.to_owned(), program, prompt, usage_of, login, arguments, rules: rules.into() })
    }

    pub fn program(&self) -> &str {
        &self.program
    }

    /// The steps with which a person logs in.
    pub fn login_steps(&self) -> &[String] {
        &self.login
    }

    pub fn can(&self, ability: Ability) -> bool {
        self.arguments.iter().any(|piece| match piece {
            ArgumentRule::Fresh(_) => ability == Ability::ChooseSession,
            ArgumentRule::Resume(_) => ability == Ability::Resume,
            ArgumentRule::Model(_) => ability == Ability::Model,
            ArgumentRule::Allow(_) | ArgumentRule::AllowEach(_) => ability == Ability::AllowTools,
            ArgumentRule::Deny(_) | ArgumentRule::DenyEach(_) => ability == Ability::DenyTools,
            ArgumentRule::Policy(_) => matches!(ability, Ability::AllowTools | Ability::DenyTools),
            ArgumentRule::Cost(_) => ability == Ability::LimitCost,
            ArgumentRule::Always(_) | ArgumentRule::Stdin(_) | ArgumentRule::Prompt(_) | ArgumentRule::Own => false,
        })
    }

    /// Whether the reported usage covers the whole session, so that usage from before a resume has to be subtracted.
    pub fn usage_covers_session(&self) -> bool {
        self.usage_of == UsageOf::Session
    }
}

/// The format of a preset file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    program: String,
    prompt: Prompt,
    #[serde(default)]
    usage_of: UsageOf,
    login: Vec<String>,
    arguments: Vec<ArgumentRule>,
    rules: Vec<Rule>,
}

/// How the program gets its prompt by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Prompt {
    Stdin,
    Argument,
}

/// The scope of the reported usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UsageOf {
    #[default]
    Call,
    /// All calls of the session so far.
    Session,
}

/// Arguments, in order. `{}` is replaced by the value.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ArgumentRule {
    Always(Vec<String>),
    /// For a new session, with its id.
    Fresh(Vec<String>),
    /// For a resumed session, with its id.
    Resume(Vec<String>),
    Model(Vec<String>),
    /// With the allowed tools, joined by commas.
    Allow(Vec<String>),
    /// For each allowed tool.
    AllowEach(Vec<String>),
    /// With the denied tools, joined by commas.
    Deny(Vec<String>),
    /// For each denied tool.
    DenyEach(Vec<String>),
    /// With a policy file that lists allowed and denied tools.
    Policy(Policy),
    /// With the cost limit in US dollars.
    Cost(Vec<String>),
    /// If the prompt is passed on stdin.
    Stdin(Vec<String>),
    /// If the prompt is passed as an argument, with the prompt.
    Prompt(Vec<String>),
    /// The `args` of the agent's setting.
    Own,
}

/// A policy file that tells a program which tools are allowed and denied: one template per tool, with `{tool}` and `{prefix}`
/// as quoted strings. A tool that is restricted to a command prefix, such as `shell(git)`, has its own template.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    /// The arguments, with the path of the file.
    pub(super) arguments: Vec<String>,
    pub(super) allow: String,
    pub(super) allow_prefix: String,
    pub(super) deny: String,
    pub(super) deny_prefix: String,
}

impl Policy {
    /// The contents of the file; `None` if no tool is listed.
    pub(super) fn text(&self, allowed: &[String], denied: &[String]) -> Option<String> {
        let one = |tool: &str, whole: &str, prefixed: &str| match tool.strip_suffix(')').and_then(|tool| tool.split_once('(')) {
            Some((tool, prefix)) => prefixed.replace("{tool}", &quoted(tool)).replace("{prefix}", &quoted(prefix)),
            None => whole.replace("{tool}", &quoted(tool)),
        };
        let allowed = allowed.iter().map(|tool| one(tool, &self.allow, &self.allow_prefix));
        let text: String = allowed.chain(denied.iter().map(|tool| one(tool, &self.deny, &self.deny_prefix))).collect();
        Some(text).filter(|text| !text.is_empty())
    }
}

/// A string in the syntax that JSON and TOML share.
fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// How to interpret a line of output. A line on stderr is treated as `{"stderr": "…"}`, and the end of the program as
/// `{"exit": 1, "stderr": "…"}` with the last such line. Every rule that matches a line is applied, in order.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Rule {
    /// Conditions for the line.
    pub(super) when: BTreeMap<Paths, Pattern>,
    /// A list to whose members the rest applies; without it, the rest applies to the line.
    pub(super) each: Option<Paths>,
    /// Conditions for a member.
    #[serde(rename = "where")]
    pub(super) members: BTreeMap<Paths, Pattern>,
    /// The progress line to show.
    pub(super) progress: Option<Line>,
    /// Replaces the text so far.
    pub(super) text: Option<Paths>,
    /// Appends to the text.
    pub(super) append_text: Option<Paths>,
    /// Sets the text if there is none yet.
    pub(super) fallback_text: Option<Paths>,
    /// Further text after this line starts a new text.
    pub(super) new_text: bool,
    pub(super) session: Option<Paths>,
    pub(super) model: Option<Paths>,
    pub(super) version: Option<Paths>,
    /// Input tokens: the first path is required, the others are added if present.
    pub(super) input: Vec<Paths>,
    /// Output tokens, likewise.
    pub(super) output: Vec<Paths>,
    /// The cost in US dollars.
    pub(super) cost: Option<Paths>,
    /// Adds the usage to earlier usage instead of replacing it.
    pub(super) add: bool,
    /// A line with usage must follow; if none comes, the usage is unknown.
    pub(super) expects_usage: bool,
    pub(super) error: Option<Paths>,
    /// The message about a missing login.
    pub(super) login: Option<Paths>,
    /// The program succeeded in the end, whatever errors came before.
    pub(super) success: bool,
    /// A tool that was requested but not permitted.
    pub(super) denied: Option<Paths>,
    /// The tool's name starts after this in the text of `denied`.
    pub(super) after: Option<String>,
    /// The tool's name ends before this.
    pub(super) before: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_parsed() {
        assert_eq!(preset_names(), ["claude", "codex", "copilot", "cursor", "gemini", "opencode", "qwen"]);
        for name in preset_names() {
            let preset = preset(name).unwrap();
            assert_eq!(preset.name, name);
            assert!(preset.can(Ability::Resume) && preset.can(Ability::Model), "{name}");
            assert!(!preset.login_steps().is_empty(), "{name}");
            assert!(preset.arguments.iter().any(|piece| matches!(piece, ArgumentRule::Own)), "{name}");
            assert!(preset.arguments.iter().any(|piece| matches!(piece, ArgumentRule::Prompt(_))), "{name}");
        }
    }

    #[test]
    fn an_unknown_preset_is_reported_with_the_known_ones() {
        let error = preset("cluade").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no agent preset \"cluade\"; available: claude, codex, copilot, cursor, gemini, opencode, qwen"
        );
    }

    #[test]
    fn a_new_preset_needs_no_code() {
        let text = "program: mine\nprompt: argument\nlogin: [Log in]\narguments: [{always: [-x]}, own, {prompt: ['{}']}]\nrules: [{when: {kind: end}, text: answer}]\n";
        let mine = Preset::read("mine", text).unwrap();
        assert!(!mine.can(Ability::Resume));
        let error = Preset::read("mine", &text.replace("text:", "txet:")).unwrap_err().to_string();
        assert!(error.starts_with("the preset \"mine\" cannot be read: ") && error.contains("txet"), "{error}");
    }
}
