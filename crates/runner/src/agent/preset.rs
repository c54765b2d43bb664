//! What is known about the program of an agent, read from data.

use super::AgentError;
use super::path::{Line, Paths, Pattern};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The presets that come with Lockgate. Another one is another file, and its line here.
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
    let read = |(name, text)| (name, Preset::read(name, text).expect("the files that are built in are tested"));
    FILES.into_iter().map(read).collect()
});

/// How to speak to one agent's program.
#[derive(Clone, Debug)]
pub struct Preset {
    /// What it is called in settings.
    pub name: String,
    pub(super) program: String,
    pub(super) prompt: Prompt,
    usage_of: UsageOf,
    login: Vec<String>,
    pub(super) arguments: Vec<ArgumentRule>,
    pub(super) rules: Arc<[Rule]>,
}

/// What a program may be able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// A new session gets an id that is chosen before the work starts.
    ChooseSession,
    /// A session can be gone on with.
    Resume,
    /// The model can be chosen.
    Model,
    /// Tools can be allowed.
    AllowTools,
    /// Tools can be denied.
    DenyTools,
    /// It ends by itself when it has cost too much.
    LimitCost,
}

/// The preset of this name, or which there are.
pub fn preset(name: &str) -> Result<&'static Preset, AgentError> {
    PRESETS.get(name).ok_or_else(|| AgentError::NoPreset(name.to_owned()))
}

/// The names of all presets.
pub fn preset_names() -> Vec<&'static str> {
    PRESETS.keys().copied().collect()
}

impl Preset {
    /// Reads a preset from its file.
    pub fn read(name: &str, text: &str) -> Result<Self, AgentError> {
        let file: File = serde_saphyr::from_str(text)
            .map_err(|error| AgentError::UnreadablePreset { name: name.to_owned(), detail: error.to_string() })?;
        let File { program, prompt, usage_of, login, arguments, rules } = file;
        Ok(Self { name: name.to_owned(), program, prompt, usage_of, login, arguments, rules: rules.into() })
    }

    /// The program that is started.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// What a person does whose login is missing.
    pub fn login_steps(&self) -> &[String] {
        &self.login
    }

    /// Whether the program can do something.
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

    /// Whether what it says it used covers the whole session. Then what was used before it was gone on with has to be taken off.
    pub fn usage_covers_session(&self) -> bool {
        self.usage_of == UsageOf::Session
    }
}

/// The form of a preset's file.
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

/// How the program gets its prompt when nobody says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Prompt {
    Stdin,
    Argument,
}

/// What the usage that it tells covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum UsageOf {
    /// This call.
    #[default]
    Call,
    /// All calls of the session so far.
    Session,
}

/// Arguments, in the order in which they are given. `{}` in them stands for the value.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ArgumentRule {
    /// Always.
    Always(Vec<String>),
    /// When a session begins, with its id.
    Fresh(Vec<String>),
    /// When a session is gone on with, with its id.
    Resume(Vec<String>),
    /// With the model.
    Model(Vec<String>),
    /// With the tools that are allowed, with commas between them.
    Allow(Vec<String>),
    /// For each tool that is allowed.
    AllowEach(Vec<String>),
    /// With the tools that are denied, with commas between them.
    Deny(Vec<String>),
    /// For each tool that is denied.
    DenyEach(Vec<String>),
    /// With a file that says which tools are allowed and denied.
    Policy(Policy),
    /// With the most that it may cost, in US dollars.
    Cost(Vec<String>),
    /// When the prompt comes on standard input.
    Stdin(Vec<String>),
    /// When the prompt is an argument, with the prompt.
    Prompt(Vec<String>),
    /// The arguments of the setting.
    Own,
}

/// The file that tells a program which tools are allowed and denied: one text for each tool, with `{tool}` and `{prefix}` in it
/// as quoted strings. A tool that is named with what its command starts with, such as `shell(git)`, has a text of its own.
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
    /// The text of the file; nothing when no tool is named.
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

/// A string as JSON and TOML both write it.
fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// What a line of output says. What the program writes to its standard error is the line `{"stderr": "…"}`, and its end is
/// `{"exit": 1, "stderr": "…"}` with the last of these. Every rule that fits a line is followed, in order.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Rule {
    /// What the line has to be.
    pub(super) when: BTreeMap<Paths, Pattern>,
    /// The list whose members the rest is about; without it, the rest is about the line.
    pub(super) each: Option<Paths>,
    /// What such a member has to be.
    #[serde(rename = "where")]
    pub(super) members: BTreeMap<Paths, Pattern>,
    /// What people see.
    pub(super) progress: Option<Line>,
    /// The text, in the place of what was the text before.
    pub(super) text: Option<Paths>,
    /// More of the text.
    pub(super) more: Option<Paths>,
    /// The text, when there was none.
    pub(super) otherwise: Option<Paths>,
    /// More of the text that comes after this is a new text.
    pub(super) begin: bool,
    pub(super) session: Option<Paths>,
    pub(super) model: Option<Paths>,
    pub(super) version: Option<Paths>,
    /// Tokens read: the first has to be there, the others are added where they are.
    pub(super) input: Vec<Paths>,
    /// Tokens written, likewise.
    pub(super) output: Vec<Paths>,
    /// What it cost, in US dollars.
    pub(super) cost: Option<Paths>,
    /// The usage comes on top of what was told before; otherwise it takes its place.
    pub(super) add: bool,
    /// From here on a line with usage is owed: when none comes, the usage is unknown.
    pub(super) owed: bool,
    pub(super) error: Option<Paths>,
    /// What says that nobody is logged in.
    pub(super) login: Option<Paths>,
    /// All went well in the end, whatever errors there were.
    pub(super) well: bool,
    /// A tool that was asked for and not permitted.
    pub(super) denied: Option<Paths>,
    /// Only what follows this in the text of `denied` names the tool.
    pub(super) after: Option<String>,
    /// Only what precedes this names it.
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
            "there is no agent preset \"cluade\"; there are claude, codex, copilot, cursor, gemini, opencode, qwen"
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
