//! Agents: who does the work, with which prompt, within which limits.

use super::Checker;
use super::fields::{Fields, Format, Key, Rule, Shape, words};
use super::references::AgentDemand;
use crate::spec::code::ProblemCode;
use crate::spec::includes;
use crate::spec::problem::shown;
use crate::spec::scalar;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{AgentSetting, AgentWork, Budget, Prompt, PromptBy, Session, Tools};
use crate::template::Roots;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) const SESSIONS: [(&str, Session); 3] =
    [("fresh", Session::Fresh), ("same", Session::Same), ("resume", Session::Resume)];

const PROMPT_BY: [(&str, PromptBy); 3] = [("stdin", PromptBy::Stdin), ("argument", PromptBy::Argument), ("file", PromptBy::File)];

pub(super) const MOST_ASKS: u32 = 20;

/// Keys that only agent tasks have.
pub(in crate::spec) const AGENT_KEYS: [&str; 8] =
    ["output_path", "model", "session", "tools", "output_schema", "max_asks", "idle_timeout", "knowledge"];

pub(super) static AGENT: Format = Format {
    name: "agent",
    what: "an agent",
    known: &[
        Key::valued(
            "preset",
            Shape::Filled,
            "A program with built-in support: `claude`, `codex`, `gemini`, `copilot`, `cursor` or `opencode`.",
        ),
        Key::valued("command", Shape::Filled, "The shell command; with a preset, it replaces the preset's program."),
        Key::optional("args", Shape::Texts, "Further arguments."),
        Key::optional("model", Shape::Filled, "The model, for tasks that do not set one."),
        Key::optional("env", Shape::Environment, "Environment variables."),
        Key::optional("secrets", Shape::Variables, "Names of the secrets that it receives, as environment variables."),
        Key::optional(
            "prompt",
            Shape::Words(&words(&PROMPT_BY)),
            "How it receives the prompt: on standard input, as the last argument, or in a file whose path is the last argument.",
        )
        .default("stdin"),
    ],
    later: &["approve", "hooks", "mcp", "timeout", "cwd"],
    rule: Some(Rule::AnyOf(&["preset", "command"])),
};

/// A command, the name of a preset, or a map with more settings.
pub(super) const AGENT_SHAPES: [Shape; 2] = [Shape::Filled, Shape::Map(&AGENT)];

pub(super) static TOOLS: Format = Format {
    name: "tools",
    what: "`tools`",
    known: &[
        Key::optional("allow", Shape::Texts, "Allow only these tools."),
        Key::optional("deny", Shape::Texts, "Deny these tools."),
    ],
    later: &["ask"],
    rule: None,
};

pub(super) static BUDGET: Format = Format {
    name: "budget",
    what: "`budget`",
    known: &[
        Key::optional("max_cost", Shape::Number, "Maximum cost in US dollars."),
        Key::optional("max_tokens", Shape::Number, "Maximum number of tokens, read and written."),
        Key::optional("max_minutes", Shape::Number, "Maximum working time of agents in minutes."),
    ],
    later: &[],
    rule: Some(Rule::AnyOf(&["max_cost", "max_tokens", "max_minutes"])),
};

/// The description of `budget` in the tables.
pub(super) const BUDGET_ABOUT: &str = "How much its agents may use. When it is used up, or the usage is unknown, a hold asks whether to raise it by the same amount.";

impl Checker<'_, '_> {
    /// Reads the work of an agent from the keys of a task.
    pub(super) fn agent_work(&mut self, fields: &Fields<'_, '_>) -> AgentWork {
        let agent = fields.get("agent").and_then(|node| self.filled(node, "`agent`")).map(|name| name.trim().to_owned());
        let prompt = match fields.get("prompt") {
            Some(node) => {
                self.filled(node, "`prompt`");
                self.template(node, "`prompt`", Roots::Task).map(Prompt::Text)
            }
            None => fields.get("agent").zip(agent.as_deref()).and_then(|(node, agent)| self.included_prompt(agent, node)),
        };
        // A subagent type with its own prompt document counts as declared.
        if let (Some(node), Some(agent), None | Some(Prompt::Text(_))) = (fields.get("agent"), &agent, &prompt) {
            self.read_agent(agent, &node.span);
        }
        let tools = fields.get("tools").and_then(|node| self.tools(node)).unwrap_or_default();
        let output_schema = fields.get("output_schema").and_then(|node| self.json_schema(node));
        let session = fields.get("session").and_then(|node| self.word(node, "`session`", &SESSIONS)).unwrap_or_default();
        let at = |key: &str, wanted: bool| fields.get(key).filter(|_| wanted).map(|node| node.span.clone());
        self.agent_demands.push(AgentDemand {
            agent: agent.clone(),
            session: at("session", session != Session::Fresh).map(|span| (session, span)),
            allow: at("tools", !tools.allow.is_empty()),
            deny: at("tools", !tools.deny.is_empty()),
        });
        AgentWork {
            agent,
            prompt: prompt.unwrap_or_default(),
            output_path: fields.get("output_path").and_then(|node| self.path(node, "`output_path`", Roots::Task)),
            model: fields.get("model").and_then(|node| self.filled(node, "`model`")).map(str::to_owned),
            session,
            tools,
            output_schema,
            max_asks: fields.get("max_asks").and_then(|node| self.count(node, "`max_asks`", 1..=MOST_ASKS)),
            config: BTreeMap::new(),
            idle_timeout: fields.get("idle_timeout").and_then(|node| self.timeout(node, "`idle_timeout`")),
        }
    }

    /// The prompt of a subagent type, from a document next to the file.
    pub(super) fn included_prompt(&mut self, kind: &str, node: &Node<'_>) -> Option<Prompt> {
        match includes::prompt(self.includes, kind) {
            Ok(text) => {
                let text = text?;
                for fault in crate::template::mustache::check_document(&text) {
                    let message = format!("the prompt of `{}` cannot be rendered: {}", shown(kind), fault.message);
                    self.error(ProblemCode::InvalidTemplate, &node.span, message).maybe_help(fault.help);
                }
                Some(Prompt::Document(text))
            }
            Err(why) => {
                let message = format!("the prompt of `{}` cannot be read: {why}", shown(kind));
                self.error(ProblemCode::MissingFile, &node.span, message);
                None
            }
        }
    }

    fn tools(&mut self, node: &Node<'_>) -> Option<Tools> {
        let fields = self.fields(node, &TOOLS)?;
        let (allow, deny) = (self.names(&fields, "allow"), self.names(&fields, "deny"));
        Some(Tools { allow, deny })
    }

    /// A list of texts under a key.
    pub(super) fn names(&mut self, fields: &Fields<'_, '_>, key: &str) -> Vec<String> {
        let items = fields.get(key).map(|node| self.one_or_more(node)).unwrap_or_default();
        items.iter().filter_map(|item| self.filled(item, &format!("`{key}`"))).map(str::to_owned).collect()
    }

    /// Reads a JSON Schema, and checks it if the host can.
    fn json_schema(&mut self, node: &Node<'_>) -> Option<Value> {
        let mut refused = Vec::new();
        let value = scalar::to_json(node, &mut refused);
        if !refused.is_empty() || !(value.is_object() || value.is_boolean()) {
            self.wrong_kind(node, "`output_schema`", "a map with a JSON Schema").help("write `{ type: object, … }`");
            return None;
        }
        if let Some(fault) = self.includes.schema_fault(&value) {
            self.error(ProblemCode::InvalidValue, &node.span, format!("`output_schema` is not a valid JSON Schema: {fault}"));
            return None;
        }
        Some(value)
    }

    /// The name of a known preset.
    fn preset(&mut self, node: &Node<'_>) -> Option<String> {
        let name = self.filled(node, "`preset`")?.trim().to_owned();
        let known = self.includes.presets();
        if !known.is_empty() && !known.contains(&name) {
            let message = format!("there is no preset `{}`", shown(&name));
            self.none_of(ProblemCode::InvalidValue, &node.span, message, &name, known.iter().map(String::as_str));
        }
        self.program_of(&name, node);
        Some(name)
    }

    /// Warns if the program of a preset is not installed. It may be installed on the machine where the run starts.
    fn program_of(&mut self, preset: &str, node: &Node<'_>) {
        if let Some(program) = self.includes.missing_program(preset) {
            let message = format!("`{}` is not installed, but the preset `{}` needs it", shown(&program), shown(preset));
            self.report.warning(ProblemCode::MissingProgram, &node.span, message).help("install it, or add it to PATH");
        }
    }

    /// How agents are started, by name.
    pub(super) fn agents(&mut self, fields: &Fields<'_, '_>) -> BTreeMap<String, AgentSetting> {
        let mut agents = BTreeMap::new();
        for entry in fields.get("agents").and_then(|node| self.entries(node, "`agents`")).unwrap_or_default() {
            if let Some(setting) = self.agent_setting(&entry.value) {
                agents.insert(entry.key.to_string(), setting);
            }
        }
        agents
    }

    fn agent_setting(&mut self, node: &Node<'_>) -> Option<AgentSetting> {
        if let Content::Scalar(_) = &*node.content {
            let command = self.filled(node, "an agent")?.trim().to_owned();
            // The bare name of a preset selects that preset.
            self.program_of(&command, node);
            return Some(AgentSetting { command: Some(command), ..AgentSetting::default() });
        }
        let fields = self.fields(node, &AGENT)?;
        if ["preset", "command"].iter().all(|key| fields.key(key).is_none()) {
            let message = "an agent needs a `preset` or a `command`";
            self.error(ProblemCode::MissingKey, &fields.span, message).help("write `{ preset: claude }`, or the command to run");
        }
        for key in ["preset", "command"] {
            if fields.key(key).is_some() {
                fields.require(self, key);
            }
        }
        let text = |checker: &mut Self, key: &str| {
            fields.get(key).and_then(|node| checker.filled(node, &format!("`{key}`"))).map(|text| text.trim().to_owned())
        };
        Some(AgentSetting {
            preset: fields.get("preset").and_then(|node| self.preset(node)),
            command: text(self, "command"),
            args: self.names(&fields, "args"),
            model: text(self, "model"),
            env: self.env(&fields),
            secrets: self.secret_names(&fields),
            prompt_by: fields.get("prompt").and_then(|node| self.word(node, "`prompt`", &PROMPT_BY)).unwrap_or_default(),
        })
    }

    pub(super) fn budget(&mut self, fields: &Fields<'_, '_>) -> Budget {
        let Some(fields) = fields.get("budget").and_then(|node| self.fields(node, &BUDGET)) else { return Budget::default() };
        let mut number = |key: &str| fields.get(key).and_then(|node| self.positive(node, &format!("`{key}`")));
        let (cost, tokens, minutes) = (number("max_cost"), number("max_tokens"), number("max_minutes"));
        Budget {
            max_cost_micros: cost.map(|dollars| (dollars * 1_000_000.0).round() as u64),
            max_tokens: tokens.map(|tokens| tokens.round() as u64),
            max_time: minutes.map(|minutes| Duration::from_millis((minutes * 60_000.0).round() as u64)),
        }
    }

    pub(super) fn positive(&mut self, node: &Node<'_>, what: &str) -> Option<f64> {
        let mut refused = Vec::new();
        let number = scalar::to_json(node, &mut refused).as_f64().filter(|number| *number > 0.0 && *number <= 1e12);
        if number.is_none() {
            self.error(ProblemCode::InvalidValue, &node.span, format!("{what} must be a number above zero"))
                .help("write it without quotes and units");
        }
        number
    }
}
