//! From the syntax tree of a file to a workflow. Each part of the format has its own file; this one reads single values.
//!
//! A function that finds a problem adds it to the report and returns `None`. Its caller continues with the rest, so that all
//! problems of a file are reported together.

mod agent;
mod checkpoint;
mod diff;
mod fan_out;
mod fields;
mod gap;
mod gate;
mod git;
mod inputs;
mod loops;
mod needs;
mod options;
mod phase;
mod policy;
mod process;
mod question;
mod references;
mod reuse;
mod script;
mod secret;
mod subagent;
mod task;
mod team;
mod text;
mod workflow;

use super::code::ProblemCode;
use super::includes::Includes;
use super::problem::{Draft, Report, shown};
use super::syntax::{Content, Node, Scalar};
use super::workflow::{AgentSetting, SecretSource, Shell};
use super::{scalar, source_position, suggest};
use crate::time::parse_duration;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

#[cfg(test)]
pub(super) use agent::AGENT_KEYS;
pub use checkpoint::DEFAULT_PROMPT;
pub(super) use fields::{Format, Key, Presence, Rule, Shape};
pub use needs::{cycle_text, cycles};
pub use options::default_choices;
pub use policy::verify_last;
#[cfg(test)]
pub(super) use question::WAIT_KEYS;
pub use question::{options as question_options, question_checkpoint, settle_redo};
use references::{AgentDemand, AgentRead, Here, OutputRead};
pub use workflow::SUCCESSOR_KEYS;
pub(super) use workflow::{WORKFLOW, workflow};

/// The state that every check needs: the text of the file, for positions inside scalars, and the report.
pub struct Checker<'s, 'r> {
    source: &'s str,
    pub report: &'r mut Report,
    /// The start of each line, computed once because a file may have very many scripts.
    lines: Vec<usize>,
    /// The variables that the file declares; `None` until they have been read.
    declared_vars: Option<BTreeSet<String>>,
    /// Undeclared variables that are used. Each is reported once.
    undeclared_vars: BTreeSet<String>,
    includes: &'r mut dyn Includes,
    /// How many workflows use each other above this one.
    depth: u32,
    /// Agents and secrets of workflows that this one uses.
    used_agents: BTreeMap<String, AgentSetting>,
    used_secrets: BTreeMap<String, SecretSource>,
    /// The shell for the commands that are being read, if the file sets one.
    shell: Option<Shell>,
    /// The position of the template that is being read.
    here: Here,
    outputs_read: Vec<OutputRead>,
    outputs_known: BTreeSet<(usize, String, Option<String>)>,
    agents_read: Vec<AgentRead>,
    /// What tasks require of their agents.
    agent_demands: Vec<AgentDemand>,
    /// The top-level keys of this file.
    own_keys: BTreeSet<String>,
}

impl<'s, 'r> Checker<'s, 'r> {
    /// Creates a checker for a file. `depth` is the number of workflows that use each other above it.
    pub fn new(source: &'s str, report: &'r mut Report, includes: &'r mut dyn Includes, depth: u32) -> Self {
        let lines = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1).collect();
        Self {
            source,
            report,
            lines,
            declared_vars: None,
            undeclared_vars: BTreeSet::new(),
            includes,
            depth,
            used_agents: BTreeMap::new(),
            used_secrets: BTreeMap::new(),
            shell: None,
            here: Here::default(),
            outputs_read: Vec::new(),
            outputs_known: BTreeSet::new(),
            agents_read: Vec::new(),
            agent_demands: Vec::new(),
            own_keys: BTreeSet::new(),
        }
    }

    pub fn source(&self) -> &'s str {
        self.source
    }

    /// The line of a byte offset, counted from 1.
    fn line_at(&self, offset: usize) -> u32 {
        u32::try_from(1 + self.lines.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }
}

impl Checker<'_, '_> {
    /// Reports a problem that makes the file unusable.
    pub fn error(&mut self, code: ProblemCode, span: &Range<usize>, message: impl Into<String>) -> &mut Draft {
        self.report.error(code, span, message)
    }

    /// Reports an unknown word, with a suggestion.
    fn unknown<'c>(
        &mut self,
        code: ProblemCode,
        span: &Range<usize>,
        message: String,
        word: &str,
        candidates: impl IntoIterator<Item = &'c str>,
    ) {
        let help = if self.report.is_full() { None } else { suggest::did_you_mean(word, candidates) };
        self.error(code, span, message).maybe_help(help);
    }

    /// The position of a part of a scalar in the file. This takes time proportional to the scalar, so it is only done for
    /// problems that are listed.
    fn part_of(&self, node: &Node<'_>, part: &Range<usize>) -> Range<usize> {
        if self.report.is_full() { node.span.clone() } else { source_position::in_file(self.source, node, part) }
    }

    /// Warns once about an undeclared variable. It may be given when a run starts, so this is not an error.
    fn read_var(&mut self, name: &str, node: &Node<'_>, part: &Range<usize>) {
        let Some(declared) = self.declared_vars.as_ref().filter(|declared| !declared.contains(name)) else { return };
        if !self.undeclared_vars.insert(name.to_owned()) {
            return;
        }
        if self.report.is_crowded() {
            return self.report.count();
        }
        let help = match suggest::nearest(name, declared.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `vars.{}`?", shown(near)),
            None => format!("declare it under `vars`, or give it with `--var {}=…`", shown(name)),
        };
        let span = self.part_of(node, part);
        let message = format!("`vars.{}` is not declared in this file", shown(name));
        self.report.warning(ProblemCode::UnknownVar, &span, message).help(help);
    }

    /// Reports a word that is not one of the candidates, with a suggestion or else the list of candidates.
    pub fn none_of<'c>(
        &mut self,
        code: ProblemCode,
        span: &Range<usize>,
        message: String,
        word: &str,
        candidates: impl Iterator<Item = &'c str> + Clone,
    ) {
        let help = if self.report.is_full() { None } else { suggest::meant_or_known(word, candidates) };
        self.error(code, span, message).maybe_help(help);
    }

    /// Reports a value of the wrong type.
    pub fn wrong_kind(&mut self, node: &Node<'_>, what: &str, expected: &str) -> &mut Draft {
        self.error(ProblemCode::WrongType, &node.span, format!("{what} must be {expected}, not {}", node.kind()))
    }

    fn scalar<'n, 'a>(&mut self, node: &'n Node<'a>, what: &str, expected: &str) -> Option<&'n Scalar<'a>> {
        match &*node.content {
            Content::Scalar(scalar) if !scalar.is_null() => Some(scalar),
            Content::Scalar(_) | Content::List(_) | Content::Map(_) => {
                self.wrong_kind(node, what, expected);
                None
            }
        }
    }

    /// Any scalar, as written: `run: true` is the command `true`, and `version: 1.10` keeps its zero.
    pub(crate) fn text<'n>(&mut self, node: &'n Node<'_>, what: &str) -> Option<&'n str> {
        let scalar = self.scalar(node, what, "text")?;
        if scalar.text.contains('\0') {
            self.error(ProblemCode::NulCharacter, &node.span, format!("{what} contains a NUL character")).help("remove `\\0`");
            return None;
        }
        Some(&scalar.text)
    }

    /// Text with more than white space.
    pub fn filled<'n>(&mut self, node: &'n Node<'_>, what: &str) -> Option<&'n str> {
        let text = self.text(node, what)?;
        if text.trim().is_empty() {
            self.error(ProblemCode::EmptyValue, &node.span, format!("{what} is empty"));
            return None;
        }
        Some(text)
    }

    pub(crate) fn boolean(&mut self, node: &Node<'_>, what: &str) -> Option<bool> {
        let scalar = self.scalar(node, what, "true or false")?;
        let boolean = scalar.boolean();
        if boolean.is_none() {
            let help = scalar::boolean_help(&scalar.text);
            let message = format!("{what} must be true or false, not `{}`", shown(&scalar.text));
            self.error(ProblemCode::InvalidValue, &node.span, message).help(help);
        }
        boolean
    }

    /// A whole number in a range.
    pub fn count(&mut self, node: &Node<'_>, what: &str, allowed: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let expected = format!("a whole number from {} to {}", allowed.start(), allowed.end());
        let scalar = self.scalar(node, what, &expected)?;
        let count = scalar.count().and_then(|count| u32::try_from(count).ok()).filter(|count| allowed.contains(count));
        if count.is_none() {
            self.error(
                ProblemCode::InvalidValue,
                &node.span,
                format!("{what} must be {expected}, not `{}`", shown(&scalar.text)),
            );
        }
        count
    }

    fn duration(&mut self, node: &Node<'_>, what: &str) -> Option<Duration> {
        let text = self.text(node, what)?;
        match parse_duration(text) {
            Ok(duration) => Some(duration),
            Err(_) => {
                let message = format!("{what} must be a duration, not `{}`", shown(text));
                self.error(ProblemCode::InvalidDuration, &node.span, message).help(scalar::duration_help(text));
                None
            }
        }
    }

    fn timeout(&mut self, node: &Node<'_>, what: &str) -> Option<Duration> {
        let timeout = self.duration(node, what)?;
        if timeout.is_zero() {
            self.error(ProblemCode::InvalidDuration, &node.span, format!("{what} is zero")).help("remove it for no limit");
            return None;
        }
        Some(timeout)
    }

    fn word<T: Copy>(&mut self, node: &Node<'_>, what: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(node, what)?;
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*meaning);
        }
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("{what} must be one of {}, not `{}`", names.join(", "), shown(text));
        self.unknown(ProblemCode::InvalidValue, &node.span, message, text, names.iter().copied());
        None
    }

    /// A list, or a single value as a list of one.
    pub fn one_or_more<'n, 'a>(&self, node: &'n Node<'a>) -> &'n [Node<'a>] {
        match &*node.content {
            Content::List(items) => items,
            Content::Scalar(_) | Content::Map(_) => std::slice::from_ref(node),
        }
    }

    pub(crate) fn list<'n, 'a>(&mut self, node: &'n Node<'a>, what: &str) -> Option<&'n [Node<'a>]> {
        match &*node.content {
            Content::List(items) => Some(items),
            Content::Scalar(_) | Content::Map(_) => {
                self.wrong_kind(node, what, "a list");
                None
            }
        }
    }

    /// A name that is valid in addresses, file names and commands.
    pub fn id<'n>(&mut self, node: &'n Node<'_>, what: &str) -> Option<&'n str> {
        let text = self.text(node, what)?;
        self.is_id(text, &node.span, what).then_some(text)
    }

    /// The name of the file, if it has one.
    pub fn file_name(&self) -> Option<String> {
        self.includes.file_name()
    }

    /// Whether a name is valid in addresses, file names and commands. Otherwise the problem is reported.
    pub fn is_id(&mut self, text: &str, span: &Range<usize>, what: &str) -> bool {
        const LONGEST: usize = 100;
        let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
        let good_start = text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
        if !good_start || !text.chars().all(allowed) {
            let message = format!("{what} cannot be `{}`", shown(text));
            let help = "use letters, digits, `-`, `_` and `.`, starting with a letter, a digit or `_`";
            self.error(ProblemCode::InvalidId, span, message).help(help);
            return false;
        }
        if text.len() > LONGEST {
            self.error(ProblemCode::InvalidId, span, format!("{what} is longer than {LONGEST} characters"));
            return false;
        }
        true
    }
}
