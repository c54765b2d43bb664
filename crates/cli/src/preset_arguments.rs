//! The arguments for answers in advance.

use crate::error::CommandError;
use lockgate::preset_answers;
use lockgate_engine::run::event::PresetAnswer;
use std::path::PathBuf;

/// The arguments for answers in advance.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PresetArguments {
    /// Answers a hold in advance: SELECTOR is a phase, a task (phase/task) or a hold; OPTION a label or number. Several for one selector are used in order
    #[arg(long = "answer", value_name = "SELECTOR=OPTION")]
    answers: Vec<String>,
    /// Feedback that goes with the answers of the same selector, in order
    #[arg(long = "feedback", value_name = "SELECTOR=TEXT")]
    feedbacks: Vec<String>,
    /// A YAML file of answers: a list of {at, option, feedback}, or a map from selectors to options
    #[arg(id = "answers_file", long = "answers", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl PresetArguments {
    /// Whether any were given.
    pub(crate) fn is_given(&self) -> bool {
        !self.answers.is_empty() || !self.feedbacks.is_empty() || self.file.is_some()
    }

    /// The answers, in the order in which they are used: those of the file first.
    pub(crate) fn presets(&self) -> Result<Vec<PresetAnswer>, CommandError> {
        Ok(preset_answers::collect(self.file.as_deref(), &self.answers, &self.feedbacks)?)
    }
}
