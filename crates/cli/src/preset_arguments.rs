//! The arguments for preset answers.

use crate::error::CommandError;
use lockgate::code::Code;
use lockgate::preset_answers;
use lockgate_engine::run::event::PresetAnswer;
use std::path::{Path, PathBuf};

/// The arguments for preset answers.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PresetArguments {
    /// Answer a hold in advance. SELECTOR is a phase, a task (phase/task) or a hold, OPTION a label or number; repeatable, used in order
    #[arg(long = "answer", value_name = "SELECTOR=OPTION")]
    answers: Vec<String>,
    /// Feedback for the answer with the same selector
    #[arg(long = "feedback", value_name = "SELECTOR=TEXT")]
    feedbacks: Vec<String>,
    /// YAML file with answers: a list of {at, option, feedback}, or a map from selectors to options
    #[arg(id = "answers_file", long = "answers", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl PresetArguments {
    pub(crate) fn is_given(&self) -> bool {
        !self.answers.is_empty() || !self.feedbacks.is_empty() || self.file.is_some()
    }

    /// The answers in the order of use: those of the file first.
    pub(crate) fn presets(&self) -> Result<Vec<PresetAnswer>, CommandError> {
        collect(self.file.as_deref(), &self.answers, &self.feedbacks)
    }
}

/// Collects preset answers in the order of use: those of a file first, then those of the command line, each with its feedback.
fn collect(file: Option<&Path>, answers: &[String], feedbacks: &[String]) -> Result<Vec<PresetAnswer>, CommandError> {
    let mut presets = match file {
        Some(path) => preset_answers::read(path)?,
        None => Vec::new(),
    };
    let from_file = presets.len();
    for answer in answers {
        let (selector, option) = pair("--answer", "SELECTOR=OPTION", answer)?;
        presets.push(PresetAnswer { selector, option, feedback: None });
    }
    for given in feedbacks {
        let (selector, text) = pair("--feedback", "SELECTOR=TEXT", given)?;
        let mut same = presets[from_file..].iter_mut().filter(|preset| preset.selector == selector);
        let Some(preset) = same.find(|preset| preset.feedback.is_none()) else {
            let message = format!("--feedback {given:?} has no matching --answer");
            return Err(
                CommandError::new(Code::InvalidPreset, message).help(format!("add the answer: --answer {selector:?}=OPTION"))
            );
        };
        preset.feedback = Some(text);
    }
    Ok(presets)
}

fn pair(name: &str, form: &str, given: &str) -> Result<(String, String), CommandError> {
    match given.split_once('=') {
        Some((selector, rest)) if !selector.trim().is_empty() => Ok((selector.trim().to_owned(), rest.to_owned())),
        Some(_) | None => Err(CommandError::new(Code::InvalidPreset, format!("{name} {given:?} does not have the form {form}"))
            .help("SELECTOR is a phase, a task (phase/task) or a hold")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(selector: &str, option: &str, feedback: Option<&str>) -> PresetAnswer {
        PresetAnswer { selector: selector.into(), option: option.into(), feedback: feedback.map(str::to_owned) }
    }

    #[test]
    fn feedback_is_paired_with_the_answers_of_its_selector_in_order() {
        let answers = ["a=Repeat", "b=Continue", "a=Repeat", "a=1=2"].map(str::to_owned);
        let collected = collect(None, &answers, &["a=first", "a="].map(str::to_owned)).unwrap();
        let expected = [
            preset("a", "Repeat", Some("first")),
            preset("b", "Continue", None),
            preset("a", "Repeat", Some("")),
            preset("a", "1=2", None),
        ];
        assert_eq!(collected, expected);
    }

    #[test]
    fn feedback_without_an_answer_is_an_error() {
        assert!(collect(None, &[], &["a=why".to_owned()]).is_err());
        assert!(collect(None, &["a".to_owned()], &[]).is_err());
        assert!(collect(None, &["=x".to_owned()], &[]).is_err());
    }
}
