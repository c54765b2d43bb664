//! Answers given in advance: `--answer`, `--feedback` and `--answers FILE`, checked against the workflow before anything runs.

use crate::trouble::Trouble;
use lockgate_engine::hold::Choice;
use lockgate_engine::run::event::Preset;
use lockgate_engine::run::state::Run;
use lockgate_engine::spec::workflow::{Phase, Workflow};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Larger than any list of answers that somebody wrote.
const MOST_BYTES: u64 = 1_000_000;

/// What holds about tasks and gates offer.
const TASK_OPTIONS: [(&str, &str); 3] = [("rerun", "Run again"), ("count-as-done", "Count as done"), ("abort", "Abort")];

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
    /// The answers, in the order in which they are used: those of the file first.
    pub(crate) fn presets(&self) -> Result<Vec<Preset>, Trouble> {
        let mut presets = match &self.file {
            Some(path) => read(path)?,
            None => Vec::new(),
        };
        let from_file = presets.len();
        for answer in &self.answers {
            let (selector, option) = pair("--answer", "SELECTOR=OPTION", answer)?;
            presets.push(Preset { selector, option, feedback: None });
        }
        for given in &self.feedbacks {
            let (selector, text) = pair("--feedback", "SELECTOR=TEXT", given)?;
            let mut same = presets[from_file..].iter_mut().filter(|preset| preset.selector == selector);
            let Some(preset) = same.find(|preset| preset.feedback.is_none()) else {
                let message = format!("--feedback {given:?} goes with no answer");
                return Err(Trouble::misuse(message).help(format!("give its answer too: --answer {selector:?}=OPTION")));
            };
            preset.feedback = Some(text);
        }
        Ok(presets)
    }
}

fn pair(name: &str, form: &str, given: &str) -> Result<(String, String), Trouble> {
    match given.split_once('=') {
        Some((selector, rest)) if !selector.trim().is_empty() => Ok((selector.trim().to_owned(), rest.to_owned())),
        Some(_) | None => {
            Err(Trouble::misuse(format!("{given:?} is no answer to anything")).help(format!("write it as {name} {form}")))
        }
    }
}

/// Checks answers against the workflow; holds of the run, where there is one, may be named too.
pub(crate) fn check(presets: &[Preset], workflow: &Workflow, run: Option<&Run>) -> Result<(), Trouble> {
    presets.iter().try_for_each(|preset| check_one(preset, workflow, run))
}

fn check_one(preset: &Preset, workflow: &Workflow, run: Option<&Run>) -> Result<(), Trouble> {
    let selector = preset.selector.as_str();
    if let Some(hold) = run.and_then(|run| run.holds.values().find(|hold| hold.id.as_str() == selector)) {
        return check_option(preset, &hold.options);
    }
    if let Some(phase) = workflow.phase(selector) {
        let Some(checkpoint) = &phase.checkpoint else {
            let message = format!("phase {selector:?} has no checkpoint, so nothing there asks for {:?}", preset.option);
            return Err(Trouble::misuse(message).help(format!("holds about its tasks are named {selector}/TASK")));
        };
        return check_option(preset, &checkpoint.options);
    }
    let found = match selector.split_once('/') {
        Some((phase, task)) => {
            let Some(found) = workflow.phase(phase) else {
                return Err(unknown("phase", phase, workflow.phases.iter().map(|phase| phase.id.as_str())));
            };
            let task = task.split('[').next().unwrap_or(task);
            if !has(found, task) {
                let names =
                    found.tasks.iter().map(|task| task.id.as_str()).chain(found.gates.iter().map(|gate| gate.id.as_str()));
                return Err(unknown(&format!("task or gate in phase {phase:?}"), task, names));
            }
            1
        }
        None => workflow.phases.iter().filter(|phase| phase.task(selector).is_some()).count(),
    };
    match found {
        0 => Err(unknown("phase or task", selector, workflow.phases.iter().map(|phase| phase.id.as_str()))),
        1 => check_task_option(preset),
        _ => {
            let phases = workflow.phases.iter().filter(|phase| phase.task(selector).is_some());
            let addresses: Vec<String> = phases.map(|phase| format!("{}/{selector}", phase.id)).collect();
            Err(Trouble::misuse(format!("several tasks are called {selector:?}"))
                .help(format!("name one: {}", addresses.join(", "))))
        }
    }
}

fn has(phase: &Phase, name: &str) -> bool {
    phase.task(name).is_some() || phase.gate(name).is_some()
}

fn check_option(preset: &Preset, options: &[Choice]) -> Result<(), Trouble> {
    let named: Vec<(&str, &str)> = options.iter().map(|choice| (choice.id.as_str(), choice.label.as_str())).collect();
    check_named(preset, &named)
}

fn check_task_option(preset: &Preset) -> Result<(), Trouble> {
    check_named(preset, &TASK_OPTIONS)
}

/// An option is named as `Hold::option` will look for it: by id, by label in any case, or by number.
fn check_named(preset: &Preset, options: &[(&str, &str)]) -> Result<(), Trouble> {
    let given = preset.option.trim();
    let by_name = options.iter().any(|(id, label)| *id == given || label.to_lowercase() == given.to_lowercase());
    let by_number = given.parse::<usize>().is_ok_and(|number| (1..=options.len()).contains(&number));
    if by_name || by_number {
        return Ok(());
    }
    let message = format!("{given:?} is no option at {:?}", preset.selector);
    let labels: Vec<&str> = options.iter().map(|(_, label)| *label).collect();
    let trouble = Trouble::misuse(message);
    let trouble = match nearest(given, labels.iter().copied()) {
        Some(meant) => trouble.help(format!("did you mean {meant:?}?")),
        None => trouble,
    };
    Err(trouble
        .help(format!("its options are {}", labels.iter().map(|label| format!("{label:?}")).collect::<Vec<_>>().join(", "))))
}

fn unknown<'n>(what: &str, given: &str, known: impl Iterator<Item = &'n str> + Clone) -> Trouble {
    let trouble = Trouble::misuse(format!("the workflow has no {what} {given:?}"));
    match nearest(given, known.clone()) {
        Some(meant) => trouble.help(format!("did you mean {meant:?}?")),
        None => trouble.help(format!("it has {}", known.collect::<Vec<_>>().join(", "))),
    }
}

/// The name that a misspelt word is nearest to, if any is near.
fn nearest<'n>(given: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let given = given.to_lowercase();
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(&given, &name.to_lowercase());
    let scored = known.map(|name| (likeness(name), name)).filter(|(likeness, _)| *likeness >= 0.5);
    scored.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, name)| name)
}

fn read(path: &Path) -> Result<Vec<Preset>, Trouble> {
    let wrong = |detail: String| Trouble::misuse(format!("{}: {detail}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| wrong(format!("it cannot be read: {error}")))?.len();
    if size > MOST_BYTES {
        return Err(wrong("it is larger than 1 MB".into()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    parse(&text).map_err(wrong)
}

fn parse(text: &str) -> Result<Vec<Preset>, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: 10_000, max_depth: 16 },
        with_snippet: false,
        // An option may be called Yes or No.
        strict_booleans: true,
    };
    let value: Option<Value> = serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().enumerate().map(|(at, item)| listed(at, item)).collect(),
        Some(Value::Object(map)) => {
            let mut presets = Vec::new();
            for (selector, answers) in &map {
                match answers {
                    Value::Array(answers) => {
                        for answer in answers {
                            presets.push(one(selector, answer)?);
                        }
                    }
                    answer => presets.push(one(selector, answer)?),
                }
            }
            Ok(presets)
        }
        Some(_) => Err("it must be a list of {at, option, feedback}, or a map from selectors to options".into()),
    }
}

fn listed(at: usize, item: &Value) -> Result<Preset, String> {
    let place = format!("answer {}", at + 1);
    let map = item.as_object().ok_or_else(|| format!("{place} must have `at` and `option`"))?;
    let selector = map.get("at").and_then(scalar).ok_or_else(|| format!("{place} must say `at` which phase, task or hold"))?;
    answer_in(&selector, map, &["at", "option", "feedback"])
}

fn one(selector: &str, answer: &Value) -> Result<Preset, String> {
    if let Some(map) = answer.as_object() {
        return answer_in(selector, map, &["option", "feedback"]);
    }
    let option = scalar(answer).ok_or_else(|| format!("the answer at {selector:?} must be an option or {{option, feedback}}"))?;
    Ok(Preset { selector: selector.to_owned(), option, feedback: None })
}

fn answer_in(selector: &str, map: &serde_json::Map<String, Value>, keys: &[&str]) -> Result<Preset, String> {
    if let Some(unknown) = map.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(format!("the answer at {selector:?} has an unknown key {unknown:?}; it may have {}", keys.join(", ")));
    }
    let option = map.get("option").and_then(scalar).ok_or_else(|| format!("the answer at {selector:?} has no `option`"))?;
    let feedback = match map.get("feedback") {
        None | Some(Value::Null) => None,
        Some(value) => Some(scalar(value).ok_or_else(|| format!("the feedback at {selector:?} must be text"))?),
    };
    Ok(Preset { selector: selector.to_owned(), option, feedback })
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(selector: &str, option: &str, feedback: Option<&str>) -> Preset {
        Preset { selector: selector.into(), option: option.into(), feedback: feedback.map(str::to_owned) }
    }

    #[test]
    fn a_file_of_answers_is_a_list_or_a_map() {
        let list = "- { at: review, option: Repeat, feedback: more tests }\n- { at: review, option: 1 }\n";
        assert_eq!(parse(list).unwrap(), [preset("review", "Repeat", Some("more tests")), preset("review", "1", None)]);
        let map = "review: [Repeat, Continue]\nship: { option: Abort, feedback: no }\nask: Yes\nplan/draft: rerun\n";
        let expected = [
            preset("review", "Repeat", None),
            preset("review", "Continue", None),
            preset("ship", "Abort", Some("no")),
            preset("ask", "Yes", None),
            preset("plan/draft", "rerun", None),
        ];
        assert_eq!(parse(map).unwrap(), expected);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn a_wrong_file_of_answers_is_told() {
        for text in
            ["3", "- review", "- { at: review }", "review: { option: a, by: me }", "a: b\na: c\n", "- at: [", "review: [[x]]"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn feedback_pairs_with_the_answers_of_its_selector_in_order() {
        let arguments = PresetArguments {
            answers: vec!["a=Repeat".into(), "b=Continue".into(), "a=Repeat".into(), "a=1=2".into()],
            feedbacks: vec!["a=first".into(), "a=".into()],
            file: None,
        };
        let expected = [
            preset("a", "Repeat", Some("first")),
            preset("b", "Continue", None),
            preset("a", "Repeat", Some("")),
            preset("a", "1=2", None),
        ];
        assert_eq!(arguments.presets().unwrap(), expected);
    }

    #[test]
    fn feedback_without_an_answer_is_an_error() {
        let arguments = PresetArguments { feedbacks: vec!["a=why".into()], ..PresetArguments::default() };
        assert!(arguments.presets().is_err());
        assert!(PresetArguments { answers: vec!["a".into()], ..PresetArguments::default() }.presets().is_err());
        assert!(PresetArguments { answers: vec!["=x".into()], ..PresetArguments::default() }.presets().is_err());
    }
}
