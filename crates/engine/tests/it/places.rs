//! Places of errors inside scripts, conditions and templates, in every way that YAML writes text.

use crate::{in_checkpoint, in_task, told};
use lockgate_engine::spec::read;

/// The line, column and underlined text of the only problem.
fn place(source: &str) -> (usize, usize, &str) {
    let problems = read(source).problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    let problem = &problems[0];
    (problem.line, problem.column, &source[problem.span.clone()])
}

#[test]
fn an_error_in_a_script_has_its_place_in_the_file() {
    assert_eq!(place(&in_task("script: |\n  const a = 1\n  const ü = 'ö'; let = = 2\n  return a")), (8, 32, "="));
    assert_eq!(place(&in_task("script: |2-\n    const a = 1\n  return = a")), (8, 18, "="));
    assert_eq!(place(&in_task("script: return = a")), (6, 24, "="));
    assert_eq!(place(&in_task("script: 'return = a'")), (6, 25, "="));
    assert_eq!(place(&in_task("script: \"return = a\"")), (6, 25, "="));
    assert_eq!(place(&in_task("script: >\n  return a +\n  b; = b")), (8, 14, "="));
    assert_eq!(place(&in_task("script: return a +\n  b; = b")), (7, 14, "="));
    assert_eq!(place(&in_task("script: |\n  return 5n")), (7, 18, "5n"));
}

#[test]
fn an_error_in_a_script_with_escapes_has_the_place_of_the_script() {
    assert_eq!(place(&in_task("script: \"return \\\"a\\\" a\"")), (6, 17, "\"return \\\"a\\\" a\""));
}

#[test]
fn an_error_in_a_condition_has_its_place_in_the_file() {
    assert_eq!(place(&in_checkpoint("condition: \"context.vars.a >> > 5\"")), (8, 37, ">"));
    assert_eq!(
        told(&in_checkpoint("condition: context.vars.a >")),
        ["8:34 script-syntax: syntax error in JavaScript: it ends too early (close the brackets and quotes that are open)"]
    );
    assert_eq!(place(&in_checkpoint("condition: a; b")), (8, 19, ";"));
    assert_eq!(
        told(&in_checkpoint("condition: 5n > 3")),
        ["8:18 bigint: BigInt cannot be used: its arithmetic runs past every time limit (use ordinary numbers)"]
    );
}

#[test]
fn an_error_in_a_template_has_its_place_in_the_file() {
    assert_eq!(place(&in_checkpoint("prompt: |\n  Look at\n  this {{varz.a}}?")), (10, 14, "{{varz.a}}"));
    assert_eq!(
        told(&in_checkpoint("prompt: 'Is {{outptus.a}} good?'")),
        ["8:19 template: `outptus.a` leads nowhere (did you mean `outputs`?)"]
    );
    assert_eq!(
        told(&in_checkpoint("prompt: a {{vars.x\nshow_files: ['{{output_dir}/x']")),
        [
            "8:17 template: `{{` is not closed (close it with `}}`, or write `\\{{` for the braces themselves)",
            "9:21 template: `{{` is not closed (close it with `}}`, or write `\\{{` for the braces themselves)",
        ]
    );
    assert_eq!(
        told(&in_checkpoint("prompt: 'a {{#each vars.x}} b'")),
        [
            "8:18 template: `#each vars.x` is not a path (only paths such as {{vars.name}} can be filled in; compute anything else in a script)"
        ]
    );
    assert_eq!(
        told(&in_task("run: make\nenv: {A: '{{x}}'}\ndir: '{{vars.}}'\noutputs: '{{.}}'"))
            .iter()
            .map(|line| line.split(" (").next().unwrap_or_default())
            .collect::<Vec<_>>(),
        ["7:19 template: `x` leads nowhere", "8:15 template: `vars.` is not a path", "9:19 template: `.` is not a path"]
    );
}

#[test]
fn a_command_may_hold_the_templates_of_other_programs() {
    for command in
        ["docker ps --format '{{.Names}}'", "echo ${{x}}", "gh --template '{{range .}}{{.name}}{{end}}'", "echo {{ and }}"]
    {
        assert_eq!(told(&in_task(&format!("run: |\n  {command}"))), [] as [&str; 0], "{command}");
    }
    assert_eq!(
        told(&in_task("run: |\n  echo {{vars.a..b}}")),
        ["7:16 template: `vars.a..b` is not a path (a path looks like {{vars.name}} or {{outputs.phase.task}})"]
    );
    assert_eq!(
        told(&in_task("run: |\n  cat <<END\n  {{vars.a}}\n  END"))[0].split(" (").next(),
        Some("8:11 template: `vars.a` stands inside a here-document, where its value cannot be quoted safely")
    );
}

#[test]
fn columns_count_characters() {
    assert_eq!(place("name: \"äöü→\" \nphases: [{id: a, gates: [], ünknown: 1}]"), (2, 29, "ünknown"));
    assert_eq!(place("\u{feff}nome: x\nname: x\nphases: [{id: a, gates: []}]"), (1, 1, "nome"));
}
