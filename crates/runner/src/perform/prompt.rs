//! Builds an agent's prompt: the rendered template plus context.

use super::handover;
use super::values::Ready;
use lockgate_engine::run::Run;
use lockgate_engine::run::event::AttemptReason;
use lockgate_engine::run::phase::TaskRun;
use lockgate_engine::spec::workflow::{AgentWork, Phase, Prompt};
use lockgate_engine::template::TemplateError;

/// No one knows how far the interrupted attempt got.
const CUT_OFF: &str = "An earlier attempt at this was cut off before it ended, so some of it may be done, and something may be half done. Check what \
                       exists before you start, and do not repeat work that is already done.";

/// The parts of a prompt, captured when the task starts.
pub(super) struct PromptContext {
    prompt: Prompt,
    title: String,
    description: Option<String>,
    feature: Option<String>,
    skills: Vec<String>,
    config: String,
    feedback: Option<String>,
    schema: Option<String>,
    /// What the previous agent handed over, and a person's response to it.
    continuation: Option<String>,
    /// Whether the previous attempt was interrupted.
    cut_off: bool,
    /// Messages, conflicts and knowledge for the agent.
    pub(super) team: Option<String>,
}

impl PromptContext {
    pub(super) fn new(run: &Run, phase: &Phase, work: &AgentWork, state: &TaskRun) -> Self {
        let of_phase = || run.current.as_ref().and_then(|current| current.feedback.clone());
        let feedback = state.feedback().map(str::to_owned).or_else(of_phase).filter(|text| !text.is_empty());
        let config = serde_json::to_string_pretty(&work.config).unwrap_or_default();
        Self {
            prompt: work.prompt.clone(),
            title: phase.title().to_owned(),
            description: phase.description.clone(),
            feature: run.feature.clone(),
            skills: phase.skills.clone(),
            config: if work.config.is_empty() { String::new() } else { config },
            feedback,
            schema: work.output_schema.as_ref().map(|schema| serde_json::to_string_pretty(schema).unwrap_or_default()),
            continuation: state.exchange.as_deref().and_then(handover::continuation),
            cut_off: state.next_reason == AttemptReason::Interrupted,
            team: None,
        }
    }

    pub(super) fn template(&self) -> &str {
        match &self.prompt {
            Prompt::Phase => "",
            Prompt::Text(text) | Prompt::Document(text) => text,
        }
    }

    fn includes_feedback(&self) -> bool {
        ["phase.feedback", "task.feedback"].iter().any(|path| self.template().contains(path))
    }

    /// The whole prompt. The author's text comes first and alone defines the work; everything after it is context.
    pub(super) fn text(&self, ready: &Ready, kind: Option<&str>, output_path: Option<&str>) -> Result<String, TemplateError> {
        let mut text = match &self.prompt {
            Prompt::Text(template) => ready.text(template)?,
            Prompt::Document(template) => ready.document(template)?,
            Prompt::Phase => self.default_prompt(kind),
        };
        let own = matches!(self.prompt, Prompt::Text(_));
        let mut facts = String::new();
        if !own {
            if let Some(feature) = &self.feature {
                facts.push_str(&format!("Feature: {feature}\n"));
            }
            facts.push_str(&format!("Phase: {}\n", self.title));
        }
        if !self.skills.is_empty() {
            facts.push_str(&format!("Use these skills: {}\n", self.skills.join(", ")));
        }
        if !self.config.is_empty() {
            facts.push_str(&format!("Configuration:\n{}\n", self.config));
        }
        if let Some(path) = output_path {
            facts.push_str(&format!("Write your result to this file: {path}\n"));
        }
        if let Some(schema) = &self.schema {
            facts.push_str(&format!("Answer with JSON alone, which must fit this JSON Schema:\n{schema}\n"));
        }
        if let Some(feedback) = self.feedback.as_ref().filter(|_| !self.includes_feedback()) {
            facts.push_str(&format!("This was done before, and a person or a check responded:\n{feedback}\n"));
        }
        if self.cut_off {
            facts.push_str(&format!("{CUT_OFF}\n"));
        }
        if let Some(continuation) = &self.continuation {
            facts.push_str(&format!("{continuation}\n"));
        }
        if let Some(team) = &self.team {
            facts.push_str(&format!("{team}\n"));
        }
        if !facts.is_empty() {
            text.push_str(&format!("\n\n---\n{}", facts.trim_end()));
        }
        Ok(text)
    }

    /// Without a prompt, the description of the phase is used.
    fn default_prompt(&self, kind: Option<&str>) -> String {
        let role = kind.map(|kind| format!("You are the subagent `{kind}`.\n\n")).unwrap_or_default();
        format!("{role}{}", self.description.as_deref().unwrap_or(&self.title))
    }
}
