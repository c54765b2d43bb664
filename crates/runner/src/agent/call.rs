//! Builds the command that sends a prompt to an agent.

use super::preset::{Ability, ArgumentRule, Preset, Prompt};
use super::{AgentError, PromptBy, Setting};
use lockgate_engine::template::{Escape, render};
use serde_json::json;
use std::borrow::Cow;

/// The longest prompt passed as an argument, in bytes. The system allows little more for one argument.
const LONGEST_ARGUMENT: usize = 100_000;
const LONGEST_ID: usize = 200;

/// A request to an agent.
#[derive(Clone, Copy, Debug)]
pub struct AgentRequest<'a> {
    pub prompt: &'a str,
    /// The model, overriding the agent's setting.
    pub model: Option<&'a str>,
    pub session: SessionMode<'a>,
    /// Tools that it may use without asking, by the program's own names.
    pub tools_allow: &'a [String],
    pub tools_deny: &'a [String],
    /// The cost limit, in millionths of a US dollar.
    pub max_cost_micros: Option<u64>,
    /// Where to write a policy file that lists allowed and denied tools, if the program needs one.
    pub policy: &'a str,
}

/// The session the work belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionMode<'a> {
    /// A new session, with this id if the program accepts one: most want a UUID.
    Fresh { id: &'a str },
    /// An existing session.
    Resume { id: &'a str },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The command for `sh -c`.
    pub command: String,
    pub stdin: Option<Vec<u8>>,
    /// The contents of the policy file, if one is needed.
    pub policy: Option<String>,
    /// The id of the session, if it is known before the work starts.
    pub session: Option<String>,
}

/// Builds the call for a request. Asking for something that the program does not support is an error.
pub fn call(setting: &Setting, preset: Option<&Preset>, ask: &AgentRequest<'_>) -> Result<Invocation, AgentError> {
    let model = ask.model.or(setting.model.as_deref());
    let named = model.into_iter().map(|model| ("model", model));
    let allowed = ask.tools_allow.iter().map(|tool| ("tool", tool.as_str()));
    let denied = ask.tools_deny.iter().map(|tool| ("tool", tool.as_str()));
    for (what, name) in named.chain(allowed).chain(denied) {
        if name.is_empty() || name.starts_with('-') {
            return Err(AgentError::NotAName { name: name.to_owned(), what });
        }
    }
    let mut words = Words::starting(setting, preset)?;
    match preset {
        Some(preset) => with_preset(setting, preset, ask, model, &mut words),
        None => plain(setting, ask, model, &mut words),
    }
}

fn with_preset(
    setting: &Setting,
    preset: &Preset,
    ask: &AgentRequest<'_>,
    model: Option<&str>,
    words: &mut Words,
) -> Result<Invocation, AgentError> {
    let able = |ability: Ability, wanted: bool, what: &'static str| match wanted && !preset.can(ability) {
        true => Err(AgentError::PresetCannot { preset: preset.name.clone(), what }),
        false => Ok(()),
    };
    able(Ability::Model, model.is_some(), "choose a model")?;
    able(Ability::AllowTools, !ask.tools_allow.is_empty(), "allow tools; leave out `tools.allow`")?;
    able(
        Ability::DenyTools,
        !ask.tools_deny.is_empty(),
        "deny tools; leave out `tools.deny`, or restrict it in its own settings",
    )?;
    able(Ability::LimitCost, ask.max_cost_micros.is_some(), "limit what a call costs")?;
    let (fresh, resume) = match ask.session {
        SessionMode::Fresh { id } => (preset.can(Ability::ChooseSession).then_some(id), None),
        SessionMode::Resume { id } => (None, Some(id)),
    };
    able(Ability::Resume, resume.is_some(), "resume a session")?;
    for id in [fresh, resume].into_iter().flatten() {
        if !is_session_id(id) {
            return Err(AgentError::NotASession(id.to_owned()));
        }
    }
    let by = match (setting.prompt_by, preset.prompt) {
        (PromptBy::Stdin, Prompt::Argument) => PromptBy::Argument,
        (by, Prompt::Stdin | Prompt::Argument) => by,
    };
    let by_argument = match by {
        PromptBy::Stdin => None,
        PromptBy::Argument => Some(argument(ask.prompt)?),
        PromptBy::File => {
            return Err(AgentError::PromptFile(preset.name.clone()));
        }
    };
    let list = |tools: &[String]| (!tools.is_empty()).then(|| tools.join(","));
    let cost = ask.max_cost_micros.map(dollars);
    let mut policy = None;
    for piece in &preset.arguments {
        match piece {
            ArgumentRule::Always(given) => words.add(given, "")?,
            ArgumentRule::Fresh(given) => words.add_all(given, fresh)?,
            ArgumentRule::Resume(given) => words.add_all(given, resume)?,
            ArgumentRule::Model(given) => words.add_all(given, model)?,
            ArgumentRule::Allow(given) => words.add_all(given, list(ask.tools_allow).as_deref())?,
            ArgumentRule::Deny(given) => words.add_all(given, list(ask.tools_deny).as_deref())?,
            ArgumentRule::AllowEach(given) => words.add_all(given, ask.tools_allow.iter().map(String::as_str))?,
            ArgumentRule::DenyEach(given) => words.add_all(given, ask.tools_deny.iter().map(String::as_str))?,
            ArgumentRule::Policy(given) => {
                policy = given.text(ask.tools_allow, ask.tools_deny);
                words.add_all(&given.arguments, policy.as_ref().map(|_| ask.policy))?;
            }
            ArgumentRule::Cost(given) => words.add_all(given, cost.as_deref())?,
            ArgumentRule::Stdin(given) => words.add_all(given, by_argument.is_none().then_some(""))?,
            ArgumentRule::Prompt(given) => words.add_all(given, by_argument)?,
            ArgumentRule::Own => setting.args.iter().try_for_each(|argument| words.push(argument))?,
        }
    }
    let stdin = by_argument.is_none().then(|| ask.prompt.as_bytes().to_vec());
    Ok(Invocation { command: words.take(), stdin, policy, session: fresh.or(resume).map(str::to_owned) })
}

fn plain(setting: &Setting, ask: &AgentRequest<'_>, model: Option<&str>, words: &mut Words) -> Result<Invocation, AgentError> {
    let cannot = |what: &'static str| Err(AgentError::CommandCannot(what));
    if matches!(ask.session, SessionMode::Resume { .. }) {
        return cannot("resume a session");
    }
    if !ask.tools_allow.is_empty() || !ask.tools_deny.is_empty() {
        return cannot("allow or deny tools");
    }
    if ask.max_cost_micros.is_some() {
        return cannot("limit what a call costs");
    }
    let mentions = |what: &str| setting.args.iter().any(|argument| argument.contains(what));
    if model.is_some() && !mentions("{model}") {
        return Err(AgentError::ModelNotPassed);
    }
    if model.is_none() && mentions("{model}") {
        return Err(AgentError::ModelNotSet);
    }
    let stands_for_prompt = match setting.prompt_by {
        PromptBy::Stdin if mentions("{prompt}") => {
            return Err(AgentError::PromptOnStdin);
        }
        PromptBy::Stdin => None,
        PromptBy::Argument => Some(argument(ask.prompt)?),
        // A placeholder that no argument contains by chance; it is replaced with the file's path below.
        PromptBy::File => Some(PROMPT_FILE),
    };
    let fill = |argument: &String| {
        // Replace `{model}` only between occurrences of `{prompt}`, so that a prompt containing `{model}` is left alone.
        let filled: Vec<String> =
            argument.split("{prompt}").map(|between| between.replace("{model}", model.unwrap_or_default())).collect();
        filled.join(stands_for_prompt.unwrap_or_default())
    };
    setting.args.iter().try_for_each(|argument| words.push(&fill(argument)))?;
    if let Some(prompt) = stands_for_prompt.filter(|_| !mentions("{prompt}")) {
        words.push(prompt)?;
    }
    let (command, stdin) = match setting.prompt_by {
        PromptBy::Stdin => (words.take(), Some(ask.prompt.as_bytes().to_vec())),
        PromptBy::Argument => (words.take(), None),
        PromptBy::File => (from_file(&words.take()), Some(ask.prompt.as_bytes().to_vec())),
    };
    Ok(Invocation { command, stdin, policy: None, session: None })
}

/// The placeholder for the prompt file's path in quoted words.
const PROMPT_FILE: &str = "\u{1}prompt-file\u{1}";

/// Wraps a command: its standard input becomes a temporary file while it runs.
fn from_file(command: &str) -> String {
    // The path is inside single quotes, which are closed for it.
    let command = command.replace(PROMPT_FILE, "'\"$lockgate_prompt\"'");
    format!(
        "lockgate_prompt=$(mktemp) || exit 1; trap 'rm -f \"$lockgate_prompt\"' EXIT; trap 'exit 143' TERM; trap 'exit 130' INT; \
         cat > \"$lockgate_prompt\" || exit 1; exec < /dev/null; {command}"
    )
}

fn argument(prompt: &str) -> Result<&str, AgentError> {
    match prompt.len() > LONGEST_ARGUMENT {
        true => Err(AgentError::PromptTooLong { bytes: prompt.len() }),
        false => Ok(prompt),
    }
}

/// Whether this can be a session id. Ids come from the programs and are passed back to them as arguments.
pub(super) fn is_session_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    !id.is_empty() && id.len() <= LONGEST_ID && !id.starts_with('-') && id.bytes().all(fits)
}

pub(super) fn dollars(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A command built word by word.
struct Words {
    command: String,
}

impl Words {
    fn starting(setting: &Setting, preset: Option<&Preset>) -> Result<Self, AgentError> {
        let command = match (&setting.command, preset) {
            (Some(command), _) => Cow::Borrowed(command.trim()),
            (None, Some(preset)) => Cow::Owned(quoted(&preset.program)?),
            (None, None) => return Err(AgentError::NoProgram),
        };
        if command.is_empty() || command.contains('\0') {
            return Err(AgentError::NotACommand);
        }
        Ok(Self { command: command.into_owned() })
    }

    fn push(&mut self, word: &str) -> Result<(), AgentError> {
        self.command.push(' ');
        self.command.push_str(&quoted(word)?);
        Ok(())
    }

    fn add(&mut self, given: &[String], value: &str) -> Result<(), AgentError> {
        given.iter().try_for_each(|word| self.push(&word.replace("{}", value)))
    }

    fn add_all<'v>(&mut self, given: &[String], values: impl IntoIterator<Item = &'v str>) -> Result<(), AgentError> {
        values.into_iter().try_for_each(|value| self.add(given, value))
    }

    fn take(&mut self) -> String {
        std::mem::take(&mut self.command)
    }
}

/// Quotes one word for a shell. A word that needs no quotes stays as it is, for readable logs.
fn quoted(word: &str) -> Result<String, AgentError> {
    if word.contains('\0') {
        return Err(AgentError::Nul);
    }
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b',' | b':');
    if !word.is_empty() && word.bytes().all(harmless) {
        return Ok(word.to_owned());
    }
    Ok(render("{{vars.word}}", &json!({"vars": {"word": word}}), Escape::Shell)?)
}
