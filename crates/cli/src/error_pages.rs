//! Every code has a page, every page has a code, and the examples on the pages produce the messages shown.

use lockgate::code::Code;
use lockgate::error_pages::{Page, all};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::problem::{Problem, Severity};
use std::collections::BTreeSet;
use std::path::Path;

/// The contents of the first fenced block in this language.
fn block(page: Page, language: &str) -> Option<String> {
    let (_, rest) = page.text.split_once(&format!("\n```{language}\n"))?;
    Some(rest.split_once("\n```").unwrap_or((rest, "")).0.to_owned())
}

fn page(code: &str) -> Page {
    all().find(|page| page.code == code).unwrap_or_else(|| panic!("{code} has no page"))
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let codes: Vec<&str> =
        ProblemCode::ALL.iter().map(|code| code.text()).chain(Code::ALL.iter().map(|code| code.text())).collect();
    let known: BTreeSet<&str> = codes.iter().copied().collect();
    assert_eq!(known.len(), codes.len(), "no two codes have the same text");
    assert_eq!(all().map(|page| page.code).collect::<Vec<_>>(), known.iter().copied().collect::<Vec<_>>());
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = names.filter(|name| name != "README.md").collect();
    assert_eq!(files, known.iter().map(|code| format!("{code}.md")).collect());
}

#[test]
fn codes_are_short_pronounceable_words() {
    for page in all() {
        let code = page.code;
        assert!(code.len() <= 20 && code.split('-').all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase())));
    }
}

#[test]
fn every_page_is_short_and_has_a_meaning_an_example_a_cause_and_a_fix() {
    for page in all() {
        let Page { code, text } = page;
        assert!(text.starts_with(&format!("# {code}: ")), "{code}");
        assert!((5..=70).contains(&page.title().len()), "{code}: {:?}", page.title());
        assert!(text.lines().count() <= 45 && text.ends_with('\n') && !text.ends_with("\n\n"), "{code}");
        let parts: Vec<&str> = ["\n## What it means\n", "\n## Why Lockgate ", "\n## What to do\n"].into();
        let positions: Vec<Option<usize>> = parts.iter().map(|part| text.find(part)).collect();
        assert!(positions.iter().all(Option::is_some) && positions.is_sorted(), "{code}: {positions:?}");
        let shown = block(page, "text").unwrap_or_else(|| panic!("{code} shows no message"));
        let has_heading = |word: &str| shown.contains(&format!("{word}[{code}]: "));
        // `lockgate retry` succeeds in this case and prints a plain line.
        let is_plain = code == Code::RetryPending.text();
        assert!(is_plain || has_heading("error") || has_heading("warning"), "{code}: {shown}");
    }
}

#[test]
fn workflows_on_error_pages_have_the_shown_problems() {
    let mut checked = 0;
    for code in ProblemCode::ALL {
        let page = page(code.text());
        let Some(source) = block(page, "yaml") else { continue };
        let problems = lockgate_engine::spec::read(&source).problems;
        let shown = block(page, "text").unwrap();
        assert_eq!(shown, rendered(&problems), "{code}");
        assert!(problems.iter().all(|problem| problem.code == *code), "{code}: {problems:?}");
        checked += 1;
    }
    assert!(checked >= 35, "only {checked} pages show a workflow");
}

#[test]
fn plans_on_error_pages_have_the_shown_problems() {
    for code in [ProblemCode::UnclosedTag, ProblemCode::StrayTag, ProblemCode::UnclosedFence, ProblemCode::EmptyPlan] {
        let page = page(code.text());
        let (marks, rest) = page.text.split_once("markdown\n").unwrap();
        let marks = marks.rsplit('\n').next().unwrap();
        let source = rest.split_once(&format!("\n{marks}\n")).unwrap().0;
        let problems = lockgate_formats::plan::read(source).problems;
        let of_the_page: Vec<Problem> = problems.into_iter().filter(|problem| problem.code == code).collect();
        assert_eq!(block(page, "text").unwrap(), rendered(&of_the_page), "{code}");
    }
}

fn rendered(problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        let word = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let help = problem.help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default();
        format!("{word}[{}]: {}\n  {}:{}{help}", problem.code, problem.message, problem.line, problem.column)
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn pages_of_command_errors_name_the_exit_code() {
    for code in Code::ALL {
        let line = format!("\nExit code: {}.\n", crate::exit::Exit::of_error(*code).code());
        assert!(page(code.text()).text.contains(&line), "{code} lacks {line:?}");
    }
}
