//! Files of test cases: the inputs of a workflow, and the expected results.

use super::expectation::{self, Expected};
use super::stubs::{Stub, StubPlan};
use lockgate_engine::run::event::PresetAnswer;
use lockgate_engine::spec::document::{self, Entry, Value};
use lockgate_engine::spec::problem::Problem;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq)]
pub struct CaseFile {
    /// The workflow file, relative to this file.
    pub workflow: String,
    pub cases: Vec<Case>,
}

/// A position in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePosition {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    pub name: String,
    pub place: SourcePosition,
    pub feature: Option<String>,
    /// Flags, with or without their dashes.
    pub flags: Vec<String>,
    /// Values that override the workflow's `vars`.
    pub vars: BTreeMap<String, serde_json::Value>,
    /// Answers, in the order in which they are used.
    pub answers: Vec<(PresetAnswer, SourcePosition)>,
    /// Stubs, by address.
    pub outputs: BTreeMap<String, (StubPlan, SourcePosition)>,
    pub expect: Expected,
}

const EXAMPLE: &str = "{ workflow: flow.yaml, cases: […] }";
const CASE: &str = "{ name: …, answers: { review: Continue }, expect: { path: [build] } }";
const ANSWER: &str = "{ option: Continue, feedback: … }";
const OUTPUT: &str = "{ result: …, files: { report.md: text } }";

pub fn read_cases(source: &str) -> Result<CaseFile, Problem> {
    let root = document::read(source)?;
    let (mut workflow, mut list) = (None, None);
    for entry in root.fields("a file of cases", EXAMPLE, &["workflow", "cases"])? {
        match entry.key.as_str() {
            "workflow" => workflow = Some(text(&entry.value, "`workflow`")?),
            _ => list = Some(entry.value),
        }
    }
    let Some(workflow) = workflow else {
        let help = "name the workflow file, relative to this file: `workflow: flow.yaml`";
        return Err(root.problem("a file of cases needs `workflow`", Some(help.into())));
    };
    let Some(list) = list else {
        return Err(root.problem("a file of cases needs `cases`", Some(format!("write a list of `{CASE}`"))));
    };
    let mut cases = Vec::new();
    let mut names = BTreeSet::new();
    for (index, value) in items(&list, "`cases`", CASE)?.iter().enumerate() {
        let case = case(value, index)?;
        if !names.insert(case.name.clone()) {
            let message = format!("two cases are called {:?}", case.name);
            return Err(value.problem(message, Some("give each a unique `name`".into())));
        }
        cases.push(case);
    }
    if cases.is_empty() {
        return Err(list.problem("`cases` is empty", Some(format!("write a list of `{CASE}`"))));
    }
    Ok(CaseFile { workflow, cases })
}

fn case(value: &Value<'_>, index: usize) -> Result<Case, Problem> {
    let mut case = Case { name: format!("case {}", index + 1), place: place(value), ..Case::default() };
    for Entry { key, value, .. } in
        value.fields("a case", CASE, &["name", "feature", "flags", "vars", "answers", "outputs", "expect"])?
    {
        match key.as_str() {
            "name" => case.name = text(&value, "`name`")?,
            "feature" => case.feature = Some(text(&value, "`feature`")?),
            "flags" => case.flags = texts(&value, "`flags`")?,
            "vars" => {
                for entry in map(&value, "`vars`", "{ name: value }")? {
                    case.vars.insert(entry.key, entry.value.json()?);
                }
            }
            "answers" => case.answers = answers(&value)?,
            "outputs" => {
                for entry in map(&value, "`outputs`", "{ plan/draft: { result: … } }")? {
                    let at = position_of(&entry);
                    if !entry.key.contains('/') {
                        let message = format!("`outputs` names {:?}, which is not a task of a phase", entry.key);
                        return Err(entry.problem(message, Some("write `phase/task`, `phase/task[item]` or `phase/gate`".into())));
                    }
                    let given = given(&entry.value)?;
                    case.outputs.insert(entry.key, (given, at));
                }
            }
            _ => case.expect = expectation::read(&value)?,
        }
    }
    Ok(case)
}

fn answers(value: &Value<'_>) -> Result<Vec<(PresetAnswer, SourcePosition)>, Problem> {
    let mut answers = Vec::new();
    for entry in map(value, "`answers`", "{ review: Continue }")? {
        let several = entry.value.items();
        let at = position_of(&entry);
        for answer in several.as_deref().unwrap_or(std::slice::from_ref(&entry.value)) {
            answers.push((one_answer(&entry.key, answer)?, at));
        }
    }
    Ok(answers)
}

fn one_answer(selector: &str, answer: &Value<'_>) -> Result<PresetAnswer, Problem> {
    let (mut option, mut feedback) = (None, None);
    if answer.entries().is_none() {
        option = Some(text(answer, "an answer")?);
    } else {
        for Entry { key, value, .. } in answer.fields("an answer", ANSWER, &["option", "feedback"])? {
            match key.as_str() {
                "option" => option = Some(text(&value, "`option`")?),
                _ => feedback = Some(text(&value, "`feedback`")?),
            }
        }
    }
    let Some(option) = option else {
        return Err(answer.problem("an answer needs `option`", Some("it is the label of an option, or its number".into())));
    };
    Ok(PresetAnswer { selector: selector.to_owned(), option, feedback })
}

fn given(value: &Value<'_>) -> Result<StubPlan, Problem> {
    match value.items() {
        Some(items) => items.iter().map(stub).collect::<Result<_, _>>().map(StubPlan::InOrder),
        None => stub(value).map(StubPlan::Always),
    }
}

fn stub(value: &Value<'_>) -> Result<Stub, Problem> {
    let mut stub = Stub::default();
    for Entry { key, value, .. } in value.fields("an output", OUTPUT, &["result", "files", "fail"])? {
        match key.as_str() {
            "result" => stub.result = Some(value.json()?),
            "files" => {
                for entry in map(&value, "`files`", "{ report.md: text }")? {
                    let text = entry.value.text().map(str::to_owned);
                    let is_nothing = entry.value.is_nothing();
                    let text = text.or(is_nothing.then(String::new)).ok_or_else(|| {
                        entry.value.problem("the text of a file must be text", Some("write a block of lines after `|`".into()))
                    })?;
                    stub.files.insert(entry.key, text);
                }
            }
            _ => stub.fail = Some(text(&value, "`fail`")?),
        }
    }
    if stub.fail.is_some() && stub.result.is_some() {
        return Err(value.problem("a stub cannot have both `result` and `fail`", Some("keep one of them".into())));
    }
    Ok(stub)
}

/// The entries of a map; empty if there is no value.
pub(super) fn map<'a>(value: &Value<'a>, what: &str, example: &str) -> Result<Vec<Entry<'a>>, Problem> {
    let message = || value.problem(format!("{what} must be a map such as `{example}`"), None);
    if value.is_nothing() { Ok(Vec::new()) } else { value.entries().ok_or_else(message) }
}

fn items<'a>(value: &Value<'a>, what: &str, example: &str) -> Result<Vec<Value<'a>>, Problem> {
    value.items().ok_or_else(|| value.problem(format!("{what} must be a list of `{example}`"), None))
}

pub(super) fn text(value: &Value<'_>, what: &str) -> Result<String, Problem> {
    value.text().map(str::to_owned).ok_or_else(|| value.problem(format!("{what} must be text"), None))
}

/// A list of strings, or a single string.
pub(super) fn texts(value: &Value<'_>, what: &str) -> Result<Vec<String>, Problem> {
    match value.items() {
        Some(items) => items.iter().map(|item| text(item, what)).collect(),
        None => Ok(vec![text(value, what)?]),
    }
}

fn place(value: &Value<'_>) -> SourcePosition {
    let Problem { line, column, .. } = value.problem("", None);
    SourcePosition { line, column }
}

fn position_of(entry: &Entry<'_>) -> SourcePosition {
    let Problem { line, column, .. } = entry.problem("", None);
    SourcePosition { line, column }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_case_has_inputs_and_expectations() {
        let source = "\
workflow: flow.yaml
cases:
  - name: one round
    feature: login
    flags: [--fast]
    vars: { count: 2 }
    answers:
      review: [Redo, { option: Go, feedback: well done }]
    outputs:
      plan/draft: { result: { ok: true }, files: { draft.md: text } }
      plan/check: [{ fail: no }, {}]
    expect: { status: complete }
  - expect: { path: [plan] }
";
        let cases = read_cases(source).unwrap();
        assert_eq!(cases.workflow, "flow.yaml");
        let first = &cases.cases[0];
        assert_eq!(
            (first.name.as_str(), first.feature.as_deref(), &first.flags[..]),
            ("one round", Some("login"), &["--fast".into()][..])
        );
        assert_eq!(first.vars["count"], 2);
        let answers: Vec<(&str, Option<&str>)> =
            first.answers.iter().map(|(preset, _)| (preset.option.as_str(), preset.feedback.as_deref())).collect();
        assert_eq!(answers, [("Redo", None), ("Go", Some("well done"))]);
        assert_eq!(first.answers[0].1, SourcePosition { line: 8, column: 7 });
        let StubPlan::Always(draft) = &first.outputs["plan/draft"].0 else { panic!("one for all") };
        assert_eq!((draft.result.clone(), draft.files["draft.md"].as_str()), (Some(json!({"ok": true})), "text"));
        assert!(matches!(&first.outputs["plan/check"].0, StubPlan::InOrder(stubs) if stubs.len() == 2));
        assert_eq!(cases.cases[1].name, "case 2");
    }

    #[test]
    fn an_invalid_test_file_is_reported_with_its_position() {
        for (source, expected) in [
            ("", "1:1 a file of cases must be a map such as `{ workflow: flow.yaml, cases: […] }`, not nothing"),
            ("cases: []", "1:1 a file of cases needs `workflow`"),
            ("workflow: a", "1:1 a file of cases needs `cases`"),
            ("workflow: a\ncases: []", "2:8 `cases` is empty"),
            ("workflow: a\ncases: [{ answer: {} }]", "2:11 a case has no key `answer`"),
            ("workflow: a\ncases: [{ name: x }, { name: x }]", "2:22 two cases are called \"x\""),
            (
                "workflow: a\ncases: [{ outputs: { draft: {} } }]",
                "2:22 `outputs` names \"draft\", which is not a task of a phase",
            ),
            (
                "workflow: a\ncases: [{ outputs: { a/b: done } }]",
                "2:27 an output must be a map such as `{ result: …, files: { report.md: text } }`, not `done`",
            ),
            (
                "workflow: a\ncases: [{ expect: { status: done } }]",
                "2:29 `status` must be complete, failed or aborted, not `done`",
            ),
            ("workflow: a\ncases: [{ expect: { paths: [a] } }]", "2:21 `expect` has no key `paths`"),
        ] {
            let problem = read_cases(source).unwrap_err();
            assert_eq!(format!("{}:{} {}", problem.line, problem.column, problem.message), expected, "{source}");
        }
    }
}
