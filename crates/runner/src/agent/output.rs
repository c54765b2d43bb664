//! Combines the lines of an agent's output into its result.

use super::call::is_session_id;
use super::path::{Paths, Pattern};
use super::preset::Rule;
use lockgate_engine::run::agent::Usage;
use serde_json::Value;
use std::collections::BTreeMap;

const LONGEST_TEXT: usize = 4 * 1024 * 1024;
const LONGEST_ERROR: usize = 4096;
/// The longest name of a model, version or tool, in bytes.
const LONGEST_NAME: usize = 200;
const MAX_DENIED: usize = 100;
/// The maximum number of progress lines from one line of output.
const MAX_LINES: usize = 40;
/// The longest progress line, in bytes.
const LONGEST_LINE: usize = 500;

/// The parsed output of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOutput {
    pub text: Option<String>,
    /// The session id, for resuming it.
    pub session: Option<String>,
    /// The model that did the work.
    pub model: Option<String>,
    /// The program's version.
    pub version: Option<String>,
    /// The reported usage.
    pub usage: Usage,
    /// The error that it reported.
    pub error: Option<String>,
    /// The message about a missing login.
    pub login: Option<String>,
    /// Tools that were requested but not permitted.
    pub denied: Vec<String>,
    /// The number of lines that could not be parsed.
    pub garbage_lines: u64,
    /// Whether something was too long and has been cut.
    pub truncated: bool,
}

/// Collects an agent's output line by line.
#[derive(Debug, Default)]
pub(super) struct OutputCollector {
    pub(super) output: AgentOutput,
    /// The next piece of text starts a new text.
    new_text: bool,
    /// Usage from lines that report totals.
    total: Usage,
    /// Usage summed from lines that report parts; `None` if there were none.
    parts: Option<Usage>,
    /// How many lines with usage are still expected.
    expected_usage_lines: u64,
    /// Whether a final result line is still expected.
    expects_result: bool,
}

impl OutputCollector {
    /// An empty collector; `expects_result` if the program prints a final result line.
    pub(super) fn new(expects_result: bool) -> Self {
        Self { expects_result, ..Self::default() }
    }

    /// Applies the rules to a line, and emits its progress lines.
    pub(super) fn take(&mut self, rules: &[Rule], line: &Value, on_progress: &mut dyn FnMut(&str)) {
        let fits =
            |wanted: &BTreeMap<Paths, Pattern>, value: &Value| wanted.iter().all(|(paths, pattern)| paths.fit(value, pattern));
        for rule in rules.iter().filter(|rule| fits(&rule.when, line)) {
            match &rule.each {
                None => self.apply_rule(rule, line, on_progress),
                Some(list) => {
                    for member in list.members(line).iter().filter(|member| fits(&rule.members, member)) {
                        self.apply_rule(rule, member, on_progress);
                    }
                }
            }
        }
    }

    fn apply_rule(&mut self, rule: &Rule, value: &Value, on_progress: &mut dyn FnMut(&str)) {
        let text = |paths: &Option<Paths>| paths.as_ref().and_then(|paths| paths.text(value));
        if let Some(text) = text(&rule.text) {
            self.output.text = None;
            self.append(&text);
        }
        if let Some(more) = text(&rule.append_text) {
            if std::mem::take(&mut self.new_text) {
                self.output.text = None;
            }
            self.append(&more);
        }
        if let Some(text) = text(&rule.fallback_text).filter(|_| self.output.text.is_none()) {
            self.append(&text);
        }
        self.new_text |= rule.new_text;
        if let Some(session) = text(&rule.session).filter(|session| is_session_id(session)) {
            self.output.session = Some(session.into_owned());
        }
        let name = |paths: &Option<Paths>| text(paths).map(|name| cut(&name, LONGEST_NAME));
        self.output.model = name(&rule.model).or(self.output.model.take());
        self.output.version = name(&rule.version).or(self.output.version.take());
        self.count(rule, value);
        if rule.success {
            (self.output.error, self.output.login) = (None, None);
            self.expects_result = false;
        }
        if let Some(error) = text(&rule.error) {
            self.output.error = Some(cut(&error, LONGEST_ERROR));
        }
        if let Some(login) = text(&rule.login) {
            self.output.login = Some(cut(&login, LONGEST_ERROR));
        }
        let tool = text(&rule.denied).map(|text| cut(between(&text, rule), LONGEST_NAME));
        if let Some(tool) = tool.filter(|tool| !self.output.denied.contains(tool)) {
            if self.output.denied.len() < MAX_DENIED {
                self.output.denied.push(tool);
            } else {
                self.output.truncated = true;
            }
        }
        if let Some(progress) = rule.progress.as_ref().and_then(|line| line.fill(value)) {
            show(&progress, on_progress);
        }
    }

    fn count(&mut self, rule: &Rule, value: &Value) {
        self.expected_usage_lines += u64::from(rule.expects_usage);
        if rule.input.is_empty() && rule.output.is_empty() && rule.cost.is_none() {
            return;
        }
        self.expected_usage_lines = self.expected_usage_lines.saturating_sub(1);
        let tokens = |counts: &[Paths]| {
            let (first, others) = counts.split_first()?;
            let others: f64 = others.iter().filter_map(|paths| paths.number(value)).sum();
            Some(whole(first.number(value)? + others))
        };
        let cost = rule.cost.as_ref().and_then(|paths| paths.number(value));
        let usage = Usage {
            cost_micros: cost.map(|dollars| whole(dollars * 1_000_000.0)),
            input_tokens: tokens(&rule.input),
            output_tokens: tokens(&rule.output),
        };
        if rule.add {
            self.parts = Some(self.parts.unwrap_or(Usage::NOTHING).plus(usage));
        } else {
            self.total = Usage {
                cost_micros: usage.cost_micros.or(self.total.cost_micros),
                input_tokens: usage.input_tokens.or(self.total.input_tokens),
                output_tokens: usage.output_tokens.or(self.total.output_tokens),
            };
        }
    }

    fn append(&mut self, more: &str) {
        let text = self.output.text.get_or_insert_default();
        let room = LONGEST_TEXT - text.len();
        let kept = &more[..more.floor_char_boundary(room)];
        self.output.truncated |= kept.len() < more.len();
        kept.split('\0').for_each(|between| text.push_str(between));
    }

    pub(super) fn finish(mut self) -> AgentOutput {
        // A blank answer counts as none, and incomplete usage as unknown.
        self.output.text = self.output.text.filter(|text| !text.trim().is_empty());
        let parts = self.parts.unwrap_or_default();
        let usage = Usage {
            cost_micros: self.total.cost_micros.or(parts.cost_micros),
            input_tokens: self.total.input_tokens.or(parts.input_tokens),
            output_tokens: self.total.output_tokens.or(parts.output_tokens),
        };
        self.output.usage = if self.expected_usage_lines > 0 { Usage::default() } else { usage };
        // An answer that was cut off is an error; no output at all is handled elsewhere.
        if self.expects_result && self.output.error.is_none() && self.output.text.is_some() {
            self.output.error = Some("its output ended without a final result".to_owned());
        }
        self.output
    }
}

/// The part of a text that a rule takes as the name of a tool.
fn between<'t>(text: &'t str, rule: &Rule) -> &'t str {
    let after = rule.after.as_deref().and_then(|after| Some(text.split_once(after)?.1)).unwrap_or(text);
    rule.before.as_deref().and_then(|before| Some(after.split_once(before)?.0)).unwrap_or(after)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "amounts are never negative, and too large ones stop at the limit"
)]
fn whole(amount: f64) -> u64 {
    amount.round() as u64
}

/// Emits a multi-line text as progress lines, cut to a readable size.
pub(super) fn show(text: &str, on_progress: &mut dyn FnMut(&str)) {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.take(MAX_LINES).for_each(|line| on_progress(&cut(line, LONGEST_LINE)));
}

/// The beginning of a text, with an ellipsis if it was cut.
pub(super) fn cut(text: &str, longest: usize) -> String {
    let kept = &text[..text.floor_char_boundary(longest)];
    let mut kept = kept.replace('\0', "");
    if text.len() > longest {
        kept.push('…');
    }
    kept
}
