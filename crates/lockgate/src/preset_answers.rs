//! Preset answers, which are checked against the workflow before anything runs.

use crate::code::Code;
use crate::error::Error;
use lockgate_engine::hold::{
    Action, Choice, GAP_CHECK, authentication_options, budget_options, commit_options, gap_options, gate_options, task_options,
    verify_options,
};
use lockgate_engine::id::PhaseId;
use lockgate_engine::run::budget::BudgetScope;
use lockgate_engine::run::event::PresetAnswer;
use lockgate_engine::run::state::Run;
use lockgate_engine::spec::document::{self, Entry, Value};
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::workflow::{Phase, Task, Work, Workflow};
use std::io::Read;
use std::path::Path;

/// Larger than any answers file written by hand.
const MOST_BYTES: u64 = 1_000_000;

/// How many names an error lists if none is similar.
const MOST_NAMES: usize = 8;

/// Checks preset answers against the workflow, and makes their selectors unambiguous: a hold, a phase (its checkpoint), or
/// `phase/task`. A name that is both a phase and a task selects the phase.
pub fn resolve(presets: Vec<PresetAnswer>, workflow: &Workflow, run: Option<&Run>) -> Result<Vec<PresetAnswer>, Error> {
    presets.into_iter().map(|preset| resolve_one(preset, workflow, run)).collect()
}

fn resolve_one(mut preset: PresetAnswer, workflow: &Workflow, run: Option<&Run>) -> Result<PresetAnswer, Error> {
    let selector = preset.selector.as_str();
    if let Some(hold) = run.and_then(|run| run.holds.values().find(|hold| hold.id.as_str() == selector)) {
        check_option(&preset, &hold.options)?;
        return Ok(preset);
    }
    let addresses = || -> Vec<String> {
        let phases = workflow.phases.iter().filter(|phase| has(phase, selector));
        phases.map(|phase| format!("{}/{selector}", phase.id)).collect()
    };
    if let Some(phase) = workflow.phase(selector) {
        let Some(checkpoint) = &phase.checkpoint else {
            let message = format!("phase {selector:?} has no checkpoint, so nothing there asks for {:?}", preset.option);
            let help = match addresses().as_slice() {
                [] => format!("holds about its tasks are named {selector}/TASK"),
                tasks => format!("the task of that name is {}", tasks.join(" or ")),
            };
            return Err(Error::new(Code::InvalidPreset, message).help(help));
        };
        check_option(&preset, &checkpoint.options)?;
        return Ok(preset);
    }
    if let Some((phase, task)) = selector.split_once('/') {
        let Some(found) = workflow.phase(phase) else {
            return Err(unknown("phase", phase, workflow.phases.iter().map(|phase| phase.id.as_str())));
        };
        let task = task.split('[').next().unwrap_or(task);
        if task == GAP_CHECK && found.gap_check.is_some() {
            check_option(&preset, &gap_options(&found.id))?;
            return Ok(preset);
        }
        if !has(found, task) && !calls_agents(found) {
            return Err(unknown(&format!("task or gate in phase {phase:?}"), task, names(found)));
        }
        match found.gate(task) {
            Some(_) => check_gate_option(&preset, &found.id)?,
            None => check_task_option(&preset, found.task(task))?,
        }
        return Ok(preset);
    }
    match addresses().as_slice() {
        [] => {
            let known = workflow.phases.iter().flat_map(|phase| std::iter::once(phase.id.as_str()).chain(names(phase)));
            Err(unknown("phase or task", selector, known))
        }
        [address] => {
            match workflow.phases.iter().find(|phase| phase.gate(selector).is_some()) {
                Some(phase) => check_gate_option(&preset, &phase.id)?,
                None => check_task_option(&preset, workflow.phases.iter().find_map(|phase| phase.task(selector)))?,
            }
            address.clone_into(&mut preset.selector);
            Ok(preset)
        }
        several => Err(Error::new(Code::InvalidPreset, format!("several tasks are called {selector:?}"))
            .help(format!("name one: {}", several.join(", ")))),
    }
}

/// The ids of a phase's tasks and gates.
fn names(phase: &Phase) -> impl Iterator<Item = &str> + Clone {
    phase.tasks.iter().map(|task| task.id.as_str()).chain(phase.gates.iter().map(|gate| gate.id.as_str()))
}

fn has(phase: &Phase, name: &str) -> bool {
    phase.task(name).is_some() || phase.gate(name).is_some()
}

/// Checks against all options that a task may ever offer: its own, those of a failure or a missing login, and those of agents.
fn check_task_option(preset: &PresetAnswer, task: Option<&Task>) -> Result<(), Error> {
    let mut options: Vec<Choice> = Vec::new();
    if let Some(checkpoint) = task.and_then(Task::checkpoint) {
        options.extend(checkpoint.options.iter().cloned());
    }
    options.extend(task_options());
    options.extend(authentication_options());
    if task.is_none_or(|task| task.agent().is_some()) {
        options.extend(budget_options(&BudgetScope::Run));
        options.extend(verify_options(Action::Rerun, None));
        options.extend(commit_options());
    }
    check_option(preset, &options)
}

/// Checks against the options of a failed gate. Repeating the phase cannot be preset, because the phase would repeat forever.
fn check_gate_option(preset: &PresetAnswer, phase: &PhaseId) -> Result<(), Error> {
    let options = gate_options(phase);
    let given = preset.option.trim();
    let chosen = match given.parse::<usize>() {
        Ok(number) => number.checked_sub(1).and_then(|place| options.get(place)),
        Err(_) => options.iter().find(|choice| choice.is_selected_by(given)),
    };
    if let Some(choice) = chosen.filter(|choice| matches!(choice.action, Action::RepeatPhase(_))) {
        let message = format!("{:?} cannot be answered in advance at {:?}", choice.label, preset.selector);
        return Err(Error::new(Code::InvalidPreset, message).help(
            "answer it when the gate has failed, or write `on_fail: repeat` at the gate: the phase then runs again by itself",
        ));
    }
    check_option(preset, &task_options())
}

/// Whether a phase may get tasks that are not in its file.
pub fn calls_agents(phase: &Phase) -> bool {
    phase.gap_check.is_some() || phase.tasks.iter().any(|task| matches!(task.work, Work::Adaptive(_)))
}

/// Accepts the same names as `Hold::option`: an id, a label in any case, or a number.
fn check_option(preset: &PresetAnswer, options: &[Choice]) -> Result<(), Error> {
    let given = preset.option.trim();
    let by_number = given.parse::<usize>().is_ok_and(|number| (1..=options.len()).contains(&number));
    if by_number || options.iter().any(|choice| choice.is_selected_by(given)) {
        return Ok(());
    }
    let message = format!("{given:?} is not an option of {:?}", preset.selector);
    let mut labels: Vec<&str> = Vec::new();
    for choice in options {
        if !labels.contains(&choice.label.as_str()) {
            labels.push(&choice.label);
        }
    }
    let error = Error::new(Code::InvalidPreset, message);
    let error = match nearest(given, labels.iter().copied()) {
        Some(meant) => error.help(format!("did you mean {meant:?}?")),
        None => error,
    };
    Err(error.help(format!("its options are {}", labels.iter().map(|label| format!("{label:?}")).collect::<Vec<_>>().join(", "))))
}

fn unknown<'n>(what: &str, given: &str, known: impl Iterator<Item = &'n str> + Clone) -> Error {
    let error = Error::new(Code::InvalidPreset, format!("the workflow has no {what} {given:?}"));
    match nearest(given, known.clone()) {
        Some(meant) => error.help(format!("did you mean {meant:?}?")),
        None => {
            let first: Vec<&str> = known.clone().take(MOST_NAMES).collect();
            let more = known.count().saturating_sub(MOST_NAMES);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            error.help(format!("it has {}{rest}", first.join(", ")))
        }
    }
}

/// The most similar known name, if one is similar enough.
pub fn nearest<'n>(given: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let given = given.to_lowercase();
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(&given, &name.to_lowercase());
    let scored = known.map(|name| (likeness(name), name)).filter(|(likeness, _)| *likeness >= 0.5);
    scored.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, name)| name)
}

/// Reads an answers file.
pub fn read(path: &Path) -> Result<Vec<PresetAnswer>, Error> {
    let unreadable = |why: &str, help: &str| {
        Error::new(Code::InvalidPreset, format!("the answers in {} cannot be read: {why}", path.display())).help(help)
    };
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => unreadable("there is no such file", "check the path"),
        std::io::ErrorKind::PermissionDenied => unreadable("permission denied", "make the file readable for your user"),
        std::io::ErrorKind::InvalidData => unreadable("it is not UTF-8 text", "save it as UTF-8"),
        _ => unreadable(&error.to_string(), "check the path"),
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(unreadable("it is a directory", "name the answers file in it"));
    }
    let mut text = String::new();
    let bytes = file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if bytes as u64 > MOST_BYTES {
        return Err(unreadable("it is larger than 1 MB", "check whether this is the right file"));
    }
    parse(&text).map_err(|problem| {
        let Problem { line, column, message, help, .. } = problem;
        let error = Error::new(Code::InvalidPreset, format!("{}:{line}:{column}: {message}", path.display()));
        match help {
            Some(help) => error.help(help),
            None => error,
        }
    })
}

const IN_A_LIST: &str = "{ at: review, option: Continue }";
const IN_A_MAP: &str = "{ option: Continue, feedback: … }";

fn parse(text: &str) -> Result<Vec<PresetAnswer>, Problem> {
    let root = document::read(text)?;
    if root.is_nothing() {
        return Ok(Vec::new());
    }
    if let Some(items) = root.items() {
        return items.iter().map(listed).collect();
    }
    let Some(entries) = root.entries() else {
        let help = format!("write a list of `{IN_A_LIST}`, or `review: Continue` on a line for each");
        return Err(root.problem("an answers file must be a list or a map", Some(help)));
    };
    let mut presets = Vec::new();
    for entry in &entries {
        match entry.value.items() {
            Some(answers) => {
                for answer in &answers {
                    presets.push(one(&entry.key, answer)?);
                }
            }
            None => presets.push(one(&entry.key, &entry.value)?),
        }
    }
    Ok(presets)
}

fn listed(item: &Value<'_>) -> Result<PresetAnswer, Problem> {
    let fields = item.fields("an answer", IN_A_LIST, &["at", "option", "feedback"])?;
    let Some(at) = fields.iter().find(|field| field.key == "at") else {
        return Err(item.problem("an answer needs `at`", Some("it names the phase, task or hold that is answered".to_owned())));
    };
    answer_in(single(&at.value, "`at`")?, item, &fields)
}

fn one(selector: &str, answer: &Value<'_>) -> Result<PresetAnswer, Problem> {
    if answer.entries().is_some() {
        return answer_in(selector.to_owned(), answer, &answer.fields("an answer", IN_A_MAP, &["option", "feedback"])?);
    }
    Ok(PresetAnswer { selector: selector.to_owned(), option: single(answer, "an answer")?, feedback: None })
}

fn answer_in(selector: String, answer: &Value<'_>, fields: &[Entry<'_>]) -> Result<PresetAnswer, Problem> {
    let field =
        |name: &str| fields.iter().find(|field| field.key == name).map(|field| single(&field.value, &format!("`{name}`")));
    let Some(option) = field("option").transpose()? else {
        return Err(answer.problem("an answer needs `option`", Some("it is the label of an option, or its number".to_owned())));
    };
    Ok(PresetAnswer { selector, option, feedback: field("feedback").transpose()? })
}

/// A scalar as it was written, because an option may be called Yes, No or 1.
fn single(value: &Value<'_>, what: &str) -> Result<String, Problem> {
    value.text().map(str::to_owned).ok_or_else(|| {
        value.problem(format!("{what} must be text"), Some(format!("write an option such as `Continue`, or `{IN_A_MAP}`")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preset(selector: &str, option: &str, feedback: Option<&str>) -> PresetAnswer {
        PresetAnswer { selector: selector.into(), option: option.into(), feedback: feedback.map(str::to_owned) }
    }

    #[test]
    fn an_answers_file_is_a_list_or_a_map() {
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
    fn an_invalid_answers_file_is_reported_with_its_position() {
        for (text, expected) in [
            ("3", "1:1 an answers file must be a list or a map"),
            ("- review", "1:3 an answer must be a map such as `{ at: review, option: Continue }`, not `review`"),
            ("- { at: review }", "1:3 an answer needs `option`"),
            ("- { option: Yes }", "1:3 an answer needs `at`"),
            ("review: { option: a, by: me }", "1:22 an answer has no key `by`"),
            ("a: b\na: c\n", "2:1 key `a` is given twice in this map"),
            ("review: [[x]]", "1:10 an answer must be text"),
            ("review: { option: a, feedback: [x] }", "1:32 `feedback` must be text"),
            ("review:\n", "1:7 an answer must be text"),
        ] {
            let problem = parse(text).unwrap_err();
            assert_eq!(format!("{}:{} {}", problem.line, problem.column, problem.message), expected, "{text}");
            assert!(problem.help.is_some() || text == "- review", "{text}");
        }
        assert!(parse("- at: [").unwrap_err().message.starts_with("this is not YAML: "));
    }

    #[test]
    fn an_unreadable_answers_file_is_reported_with_help() {
        let folder = tempfile::tempdir().unwrap();
        let error = |path: &Path| format!("{:?}", read(path).unwrap_err());
        assert!(error(folder.path()).contains("it is a directory"));
        assert!(error(&folder.path().join("nothing.yaml")).contains("there is no such file"));
        let path = folder.path().join("answers.yaml");
        std::fs::write(&path, b"a: \xff").unwrap();
        assert!(error(&path).contains("it is not UTF-8 text"));
        std::fs::write(&path, "a: b\na: c\n").unwrap();
        assert!(error(&path).contains("answers.yaml:2:1: key `a` is given twice"), "{}", error(&path));
    }

    /// `build` is a phase and also a task of another phase; `twice` is the name of two tasks.
    fn workflow() -> Workflow {
        let source = "name: x\nphases:\n  - id: plan\n    tasks: [{id: build, pass: true}, {id: once, pass: true}, {id: twice, pass: true}]\n    gates: [{id: lint, run: make}]\n  - id: build\n    tasks: [{id: twice, pass: true}]\n    checkpoint: {approval_required: true}\n";
        lockgate_engine::spec::read(source).workflow.unwrap()
    }

    fn resolved(selector: &str, option: &str) -> Result<String, Error> {
        resolve(vec![preset(selector, option, None)], &workflow(), None).map(|mut presets| presets.remove(0).selector)
    }

    #[test]
    fn selectors_are_resolved_to_an_unambiguous_form() {
        assert_eq!(resolved("build", "Continue").unwrap(), "build", "a phase takes precedence over a task with the same name");
        assert_eq!(resolved("once", "rerun").unwrap(), "plan/once");
        assert_eq!(resolved("lint", "rerun").unwrap(), "plan/lint");
        assert_eq!(resolved("plan/build", "rerun").unwrap(), "plan/build");
        assert_eq!(resolved("build/twice", "abort").unwrap(), "build/twice");
    }

    #[test]
    fn an_unknown_or_ambiguous_selector_is_an_error() {
        for (selector, option) in [
            ("build", "rerun"),
            ("twice", "rerun"),
            ("plan", "Continue"),
            ("plan/lnt", "rerun"),
            ("pln", "rerun"),
            ("once", "go"),
        ] {
            assert!(resolved(selector, option).is_err(), "{selector}={option}");
        }
        assert!(format!("{:?}", resolved("twice", "rerun").unwrap_err()).contains("plan/twice, build/twice"));
        assert!(format!("{:?}", resolved("onec", "rerun").unwrap_err()).contains("once"));
    }
}
