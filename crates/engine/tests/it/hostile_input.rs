//! Malicious files are refused quickly and with a message.

use crate::diagnostics;
use lockgate_engine::spec::problem::MAX_PROBLEMS;
use lockgate_engine::spec::{MAX_BYTES, MAX_DEPTH, MAX_NODES, Read, read};
use lockgate_engine::template::{Escape, check, check_shell, render};
use proptest::prelude::*;

const PHASES: &str = "name: x\nphases: [{id: a, gates: []}]\n";

#[test]
fn an_oversized_file_is_refused_without_parsing() {
    let source = " ".repeat(MAX_BYTES + 1);
    assert_eq!(
        diagnostics(&source),
        [format!(
            "1:1 too-large: the file has {} bytes; the maximum for a workflow file is {MAX_BYTES} (move large data into files that tasks read)",
            MAX_BYTES + 1
        )]
    );
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut source = format!("{PHASES}vars:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..40 {
        let alias = format!("*a{}", level - 1);
        source.push_str(&format!("  a{level}: &a{level} [{}]\n", [alias.as_str(); 9].join(", ")));
    }
    let diagnostics = diagnostics(&source);
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert!(
        diagnostics[0].contains(&format!("too-large: the file holds more than {MAX_NODES} values with its aliases expanded")),
        "{diagnostics:?}"
    );
}

#[test]
fn a_long_text_repeated_by_aliases_is_refused() {
    let source = format!("{PHASES}vars:\n  a: &a {}\n  b: [{}]\n", "x".repeat(100_000), ["*a"; 1000].join(", "));
    assert!(diagnostics(&source)[0].contains("too-large: the file holds more than"), "{:?}", diagnostics(&source));
}

#[test]
fn deep_nesting_is_refused() {
    for source in [
        format!("{PHASES}vars: {}", "[".repeat(100_000)),
        format!("{PHASES}vars: {}", "{a: ".repeat(100_000)),
        format!("{PHASES}vars:\n{}", (0..2000).map(|level| format!("{}a:\n", " ".repeat(level + 1))).collect::<String>()),
        format!("{PHASES}vars: {}{}", "- ".repeat(5000), "x"),
        format!("{PHASES}vars:\n  {}", "? ".repeat(5000)),
    ] {
        let diagnostics = diagnostics(&source);
        assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
        assert!(
            diagnostics[0].contains(&format!("too-deep: this is nested more than {MAX_DEPTH} levels deep"))
                || diagnostics[0].contains(" invalid-yaml: "),
            "{diagnostics:?}"
        );
    }
}

#[test]
fn deeply_nested_aliases_are_refused() {
    let mut source = format!("{PHASES}vars:\n  a0: &a0 [x]\n");
    for level in 1..100 {
        source.push_str(&format!("  a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(diagnostics(&source)[0].contains("too-deep"), "{:?}", diagnostics(&source));
}

#[test]
fn too_many_values_are_refused() {
    let source = format!("{PHASES}vars: [{}]", "1,".repeat(MAX_NODES + 1));
    assert!(diagnostics(&source)[0].contains("too-large"), "{:?}", diagnostics(&source));
}

#[test]
fn too_many_problems_are_counted() {
    let keys: String = (0..MAX_PROBLEMS + 50).map(|number| format!("key{number}: 1\n")).collect();
    let diagnostics = diagnostics(&format!("{PHASES}{keys}"));
    assert_eq!(diagnostics.len(), MAX_PROBLEMS + 1);
    assert!(
        diagnostics[MAX_PROBLEMS].ends_with("too-many-problems: 50 more problems are not listed (fix these first)"),
        "{:?}",
        diagnostics.last()
    );
}

#[test]
fn very_many_variables_and_errors_in_one_text_are_handled() {
    let vars: String = (0..30_000).map(|number| format!("    {{{{vars.a{number}}}}} {{{{x}}}}\n")).collect();
    let source = format!("name: x\nphases:\n- id: a\n  checkpoint:\n    prompt: |\n{}", vars.replace("    {{", "      {{"));
    assert_eq!(diagnostics(&source).len(), 201);
}

#[test]
fn an_alias_does_not_repeat_the_errors_of_its_anchor() {
    let source = "name: x\nphases:\n  - id: a\n    gates:\n      - &g {id: g, run: make, wrong: 1}\n    tasks: []\n  - id: b\n    gates: [*g]\n";
    assert_eq!(diagnostics(source), ["5:31 unknown-key: `wrong` is not a key of a gate"]);
}

#[test]
fn a_large_workflow_is_read() {
    let tasks: String = (0..2000)
        .map(|number| {
            let needs = if number == 0 { "[]".into() } else { format!("[t{}]", number - 1) };
            format!("      - id: t{number}\n        needs: {needs}\n        run: echo {{{{vars.x}}}}\n        env: {{A: b}}\n        outputs: [a/{number}]\n        retry: {{attempts: 3, backoff: 1s}}\n")
        })
        .collect();
    let Read { workflow, problems } = read(&format!("name: x\nvars: {{x: 1}}\nphases:\n  - id: a\n    tasks:\n{tasks}"));
    assert_eq!(problems, []);
    assert_eq!(workflow.map(|workflow| workflow.phases[0].tasks.len()), Some(2000));
}

#[test]
fn quoted_text_in_messages_is_truncated_and_sanitized() {
    let source = format!("{PHASES}\"\\e[31m{}\": 1\n", "x".repeat(1000));
    let diagnostics = diagnostics(&source);
    assert!(diagnostics[0].len() < 200 && !diagnostics[0].contains('\u{1b}'), "{diagnostics:?}");
}

/// Any text must be handled, with positions inside the text.
fn survives(source: &str) {
    let Read { workflow, problems } = read(source);
    assert!(workflow.is_some() || !problems.is_empty());
    for pair in problems.windows(2) {
        assert!(pair[0].span.start <= pair[1].span.start, "{pair:?}");
    }
    for problem in &problems {
        let before = source.get(..problem.span.start).expect("a position in the text");
        assert!(source.get(problem.span.clone()).is_some(), "{problem:?}");
        assert_eq!(problem.line, before.matches('\n').count() + 1, "{problem:?}");
        let line = before.strip_prefix('\u{feff}').unwrap_or(before).rsplit('\n').next().unwrap_or_default();
        assert_eq!(problem.column, line.chars().count() + 1, "{problem:?}");
    }
}

const VALID: &str = r#"name: Valid "file"
version: 1.0
vars: &vars {a: [1, two, {b: ~}], 'c d': "e\n\u00fc"}
secrets: {TOKEN: {env: CI}, K: {command: x}}
output_dir: out/{{feature.name}}
phases:
  - id: one
    behavior: sequential
    tasks:
      - id: a
        run: |
          echo "{{vars.a}}" '{{.Names}}' $(date)
        env: {A: '{{vars.a}}'}
        timeout: 30m
        retry: {attempts: 3, backoff: 1s}
      - {id: b, needs: [a], script: 'return context.vars.a', outputs: [x.md]}
      - id: c
        script: >-
          const x = `a${context.outputs.one.a}`;
          return /a(b)[c]/.test(x) ? {x} : [1, 2]
    gates: [{id: g, run: make, on_fail: ask}]
    main_agent: {script: return 1}
    checkpoint:
      condition: "context.feature.flags.includes('x')"
      prompt: Good?
      show_files: ['{{output_dir}}/plan.md']
      options:
        - {label: Continue}
        - label: Again
          with_feedback: true
          on_select: {action: repeat_phase, target: current}
        - {label: Skip, on_select: {action: skip_phases, phases: [two]}}
  - id: two
    tasks: [{id: t, pass: true}]
    checkpoint: {approval_required: true}
"#;

#[test]
fn the_mutated_file_is_valid_before_mutation() {
    assert_eq!(diagnostics(VALID), [] as [&str; 0]);
}

/// Fragments that are special to one of the parsers.
const PIECES: [&str; 40] = [
    "\n", "  ", "- ", ": ", "{", "}", "[", "]", "'", "\"", "|\n", ">\n", "&a ", "*a", "#", "!", "? ", "%", "\t", "---\n", "{{",
    "}}", "{{vars.", "\\", "`", "${", "(", ")", "/", "=>", "context", "ü", "\u{2028}", "\0", "\u{feff}", "\r", "<<", "$(",
    "null", "😀",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_without_panicking(source in any::<String>()) {
        survives(&source);
    }

    #[test]
    fn any_combination_of_fragments_is_parsed_without_panicking(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..200)) {
        survives(&pieces.concat());
    }

    #[test]
    fn any_mutation_of_a_valid_file_is_parsed_without_panicking(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..30usize, prop::sample::select(&PIECES[..])), 1..8)
    ) {
        let mut characters: Vec<char> = VALID.chars().collect();
        for (at, removed, inserted) in edits {
            let at = at.index(characters.len().max(1)).min(characters.len());
            let end = (at + removed).min(characters.len());
            characters.splice(at..end, inserted.chars());
        }
        survives(&characters.into_iter().collect::<String>());
    }

    #[test]
    fn any_script_and_condition_is_parsed_without_panicking(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..60)) {
        let text = serde_json::to_string(&pieces.concat()).expect("JSON");
        survives(&format!("name: x\nphases: [{{id: a, tasks: [{{id: t, script: {text}}}], checkpoint: {{condition: {text}, prompt: {text}}}}}]"));
    }

    #[test]
    fn any_template_is_parsed_without_panicking(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..60)) {
        let template = pieces.concat();
        let values = serde_json::json!({"vars": {"a": "b"}});
        let _ = (check(&template), check_shell(&template));
        for escape in [Escape::None, Escape::Shell] {
            if let Err(error) = render(&template, &values, escape) {
                prop_assert!(template.get(error.span.clone()).is_some(), "{error:?}");
            }
        }
    }
}
