//! Positions of errors inside scripts, conditions and templates, for every YAML notation of text.

use crate::{diagnostics, in_checkpoint, in_task};
use lockgate_engine::spec::read;
use lockgate_engine::spec::workflow::{Script, Work};

/// The line, column and underlined text of the only problem.
fn place(source: &str) -> (usize, usize, &str) {
    let problems = read(source).problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    let problem = &problems[0];
    (problem.line, problem.column, &source[problem.span.clone()])
}

#[test]
fn an_error_in_a_script_has_its_position_in_the_file() {
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
fn an_error_in_a_script_with_escapes_has_the_position_of_the_script() {
    assert_eq!(place(&in_task("script: \"return \\\"a\\\" a\"")), (6, 17, "\"return \\\"a\\\" a\""));
}

#[test]
fn an_error_in_a_condition_has_its_position_in_the_file() {
    assert_eq!(place(&in_checkpoint("condition: \"context.vars.a >> > 5\"")), (8, 37, ">"));
    assert_eq!(
        diagnostics(&in_checkpoint("condition: context.vars.a >")),
        ["8:34 script-syntax: syntax error in JavaScript: unexpected end of the script (close the open brackets and quotes)"]
    );
    assert_eq!(place(&in_checkpoint("condition: a; b")), (8, 19, ";"));
    assert_eq!(
        diagnostics(&in_checkpoint("condition: 5n > 3")),
        ["8:18 bigint: BigInt cannot be used: its arithmetic runs past every time limit (use ordinary numbers)"]
    );
}

#[test]
fn an_error_in_a_template_has_its_position_in_the_file() {
    assert_eq!(place(&in_checkpoint("prompt: |\n  Look at\n  this {{varz.a}}?")), (10, 14, "{{varz.a}}"));
    assert_eq!(
        diagnostics(&in_checkpoint("prompt: 'Is {{outptus.a}} good?'")),
        ["8:19 invalid-template: `outptus.a` is not a known path (did you mean `outputs`?)"]
    );
    assert_eq!(
        diagnostics(&in_checkpoint("prompt: a {{vars.x\nshow_files: ['{{output_dir}/x']")),
        [
            "8:17 invalid-template: `{{` is not closed (close it with `}}`, or write `\\{{` for literal braces)",
            "9:21 invalid-template: `{{` is not closed (close it with `}}`, or write `\\{{` for literal braces)",
        ]
    );
    assert_eq!(
        diagnostics(&in_checkpoint("prompt: 'a {{#each vars.x}} b'")),
        [
            "8:18 invalid-template: `#each vars.x` is not a path (only paths such as {{vars.name}} are supported; compute anything else in a script)"
        ]
    );
    assert_eq!(
        diagnostics(&in_task("run: make\nenv: {A: '{{x}}'}\ndir: '{{vars.}}'\noutputs: '{{.}}'"))
            .iter()
            .map(|line| line.split(" (").next().unwrap_or_default())
            .collect::<Vec<_>>(),
        [
            "7:19 invalid-template: `x` is not a known path",
            "8:15 invalid-template: `vars.` is not a path",
            "9:19 invalid-template: `.` is not a path"
        ]
    );
}

#[test]
fn a_command_may_contain_templates_of_other_programs() {
    for command in
        ["docker ps --format '{{.Names}}'", "echo ${{x}}", "gh --template '{{range .}}{{.name}}{{end}}'", "echo {{ and }}"]
    {
        assert_eq!(diagnostics(&in_task(&format!("run: |\n  {command}"))), [] as [&str; 0], "{command}");
    }
    assert_eq!(
        diagnostics(&in_task("run: |\n  echo {{vars.a..b}}")),
        ["7:16 invalid-template: `vars.a..b` is not a path (a path looks like {{vars.name}} or {{outputs.phase.task}})"]
    );
    assert_eq!(
        diagnostics(&in_task("run: |\n  cat <<END\n  {{vars.a}}\n  END"))[0].split(" (").next(),
        Some("8:11 invalid-template: `vars.a` is inside a here-document, where its value cannot be quoted safely")
    );
}

#[test]
fn columns_count_characters() {
    assert_eq!(place("name: \"äöü→\" \nphases: [{id: a, gates: [], ünknown: 1}]"), (2, 29, "ünknown"));
    assert_eq!(place("\u{feff}nome: x\nname: x\nphases: [{id: a, gates: []}]"), (1, 1, "nome"));
}

/// The first line of the script of the only task.
fn script_line(source: &str) -> u32 {
    let workflow = read(source).workflow.expect("a workflow");
    match &workflow.phases[0].tasks[0].work {
        Work::Script(script) => script.line,
        other => panic!("{other:?} is not a script"),
    }
}

#[test]
fn a_script_knows_its_first_line_number() {
    assert_eq!(script_line(&in_task("script: return 1")), 6);
    assert_eq!(script_line(&in_task("script: 'return 1'")), 6);
    assert_eq!(script_line(&in_task("script:\n  return 1")), 7);
    assert_eq!(script_line(&in_task("script: |\n  const a = 1\n  return a")), 7);
    assert_eq!(script_line(&in_task("script: |2- # a comment\n  return a")), 7);
    assert_eq!(script_line(&in_task("script: |\n\n\n  return a")), 7, "empty lines at the top are lines of the script");
    assert_eq!(script_line(&in_task("script: >-\n  return a")), 7);
    assert_eq!(script_line(&in_task("script: |\n  return a").replace('\n', "\r\n")), 7);
    let condition = read(&in_checkpoint("prompt: a\ncondition: 1 > 0")).workflow.expect("a workflow");
    let condition = condition.phases[1].checkpoint.as_ref().and_then(|checkpoint| checkpoint.condition.clone());
    assert_eq!(condition.map(|condition| condition.line), Some(9));
}

#[test]
fn a_script_stored_without_its_line_still_loads() {
    let source = read(&in_task("script: return 1")).workflow.expect("a workflow");
    let Work::Script(script) = &source.phases[0].tasks[0].work else { panic!("a script") };
    let without = rmp_serde::to_vec(&(&script.source, &script.reads)).expect("bytes");
    let read: Script = rmp_serde::from_slice(&without).expect("a script");
    assert_eq!((read.source.as_str(), read.line), ("return 1", 0));
}

#[test]
fn task_is_undefined_in_checkpoints_and_the_output_directory() {
    let roots = "context, vars, feature, output_dir, phase, workflow, outputs, run, flags";
    assert_eq!(
        diagnostics(&in_checkpoint("prompt: '{{task.id}}'\nshow_files: ['{{task.name}}.md']")),
        [
            format!(
                "8:16 invalid-template: `task.id` is not available in a checkpoint, which does not belong to a task (a path here starts with one of {roots})"
            ),
            format!(
                "9:21 invalid-template: `task.name` is not available in a checkpoint, which does not belong to a task (a path here starts with one of {roots})"
            ),
        ]
    );
    assert_eq!(
        diagnostics("name: x\noutput_dir: 'o/{{task.id}}/{{phase.id}}/{{feature.name}}/{{run}}'\nphases: [{id: a, gates: []}]"),
        [
            "2:16 invalid-template: `task.id` is not known when the output directory is created (a path here starts with one of vars, feature, workflow, run, flags)",
            "2:28 invalid-template: `phase.id` is not known when the output directory is created (a path here starts with one of vars, feature, workflow, run, flags)",
        ]
    );
    assert_eq!(
        diagnostics(&in_task(
            "run: echo {{task.id}} {{task.attempt}}\nenv: {A: '{{task.name}}'}\noutputs: '{{task.id}}.md'\ndir: '{{task.id}}'"
        )),
        [] as [&str; 0]
    );
}

#[test]
fn an_undeclared_variable_gives_one_warning() {
    let source = "name: x\nvars: {source: a, nothing: }\noutput_dir: 'o/{{vars.sorce}}'\nphases:\n  - id: a\n    tasks:\n      - id: t\n        run: echo {{vars.source}} {{vars.sorce}} {{vars.nothing}}\n      - {id: u, script: return context.vars.taget}\n    checkpoint: {condition: context.vars.source, prompt: '{{context.vars.other}}'}\n";
    assert_eq!(
        diagnostics(source),
        [
            "3:16 warning unknown-var: `vars.sorce` is not declared in this file (did you mean `vars.source`?)",
            "9:45 warning unknown-var: `vars.taget` is not declared in this file (declare it under `vars`, or give it with `--var taget=…`)",
            "10:59 warning unknown-var: `vars.other` is not declared in this file (declare it under `vars`, or give it with `--var other=…`)",
        ]
    );
}

#[test]
fn a_misspelt_template_in_a_command_gives_a_warning() {
    assert_eq!(
        diagnostics(&in_task("run: |\n  echo {{vrs.x}} \"{{ outptus.a.b }}\"\n  # {{vrs.x}}")),
        [
            "7:16 warning invalid-template: `{{vrs.x}}` stays in the command unchanged (did you mean `{{vars.x}}`?)",
            "7:27 warning invalid-template: `{{ outptus.a.b }}` stays in the command unchanged (did you mean `{{outputs.a.b}}`?)",
        ]
    );
    let others = "run: |\n  x '{{.Vars}}' '{{range .}}' '{{end}}' '{{test}}' '{{args}}' '{{json .}}' '{{name}}' ${{ var.x }}";
    assert_eq!(diagnostics(&in_task(others)), [] as [&str; 0]);
}
