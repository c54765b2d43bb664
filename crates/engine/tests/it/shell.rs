//! The key `shell`: its values, where it is allowed, and to which commands it applies. A14.

use crate::{diagnostics, in_phase, in_task, workflow};
use lockgate_engine::spec::workflow::Shell;

#[test]
fn an_unknown_shell_is_an_error_with_a_suggestion() {
    assert_eq!(
        diagnostics(&in_task("run: make\nshell: bsh")),
        ["7:16 invalid-value: `bsh` is not a known shell (did you mean `bash`?)"]
    );
    assert_eq!(
        diagnostics(&in_task("run: make\nshell: fish -e")),
        [
            "7:16 invalid-value: `fish -e` is not a known shell (write `bash`, `sh`, or a command with `{0}` for the script file: `fish -e {0}`)"
        ]
    );
    assert_eq!(
        diagnostics(&in_phase("shell: [bash]\ngates: [{ id: g, run: make, shell: '' }]")),
        ["4:12 wrong-type: `shell` must be text, not a list", "5:40 empty-value: `shell` is empty"]
    );
}

#[test]
fn a_shell_needs_a_command() {
    assert_eq!(
        diagnostics(&in_task("pass: true\nshell: bash")),
        [
            "7:9 unused-key: `shell` applies to commands, but this task has none (remove it; the phase or the workflow can have one)"
        ]
    );
    workflow(&in_task("prompt: work\nagent: claude\nshell: sh\nuntil: { run: make }"));
}

#[test]
fn the_innermost_shell_setting_wins() {
    let file = "name: x\nshell: sh\nphases:\n  - id: one\n    shell: bash\n    tasks: [{ id: a, run: make, shell: 'dash {0}' }, { id: b, run: make }]\n    gates: [{ id: g, run: make, shell: sh }]\n  - id: two\n    gates: [{ id: h, run: make }]\n";
    let workflow = workflow(file);
    let (one, two) = (&workflow.phases[0], &workflow.phases[1]);
    let shell = |phase, own: &Option<Shell>| workflow.shell_in(phase, own.as_ref()).map(|shell| shell.text().to_owned());
    assert_eq!(shell(one, &one.tasks[0].shell).as_deref(), Some("dash {0}"));
    assert_eq!(shell(one, &one.tasks[1].shell).as_deref(), Some("bash"));
    assert_eq!(shell(one, &one.gates[0].shell).as_deref(), Some("sh"));
    assert_eq!(shell(two, &two.gates[0].shell).as_deref(), Some("sh"));
}

#[test]
fn templates_are_refused_in_languages_with_other_quoting_rules() {
    let wrong = "the value of `run` cannot be quoted for `python3 {0}` (pass the value through `env`, such as VALUE: \"{{run}}\", and read that variable)";
    assert_eq!(diagnostics(&in_task("shell: python3 {0}\nrun: print('{{run}}')")), [format!("7:21 invalid-template: {wrong}")]);
    assert_eq!(
        diagnostics(&in_phase("shell: python3 {0}\ngates: [{ id: g, run: 'print({{run}})' }]")),
        [format!("5:34 invalid-template: {wrong}")]
    );
    workflow(&in_task("shell: bash -x {0}\nrun: echo '{{run}}'"));
}

#[test]
fn a_template_evaluated_by_a_nested_shell_is_refused_with_help() {
    let message_about =
        |reader: &str, help: &str| format!("`run` is quoted for the shell, but `{reader}` then reads it as code ({help})");
    let inner = "pass the value through `env`, such as VALUE: \"{{run}}\", and let the inner command read \"$VALUE\", inside single quotes";
    let other = "pass the value through `env`, such as VALUE: \"{{run}}\", and quote it for the other shell: ssh HOST \"… $(printf %q \"$VALUE\")\"";
    for (command, column, reader, help) in [
        ("sh -c \"echo {{run}}\"", 26, "sh -c", inner),
        ("eval {{run}}", 19, "eval", inner),
        ("echo {{run}} | sh", 19, "| sh", inner),
        ("ssh host \"ls {{run}}\"", 27, "ssh", other),
        ("ls | xargs -n1 sh -c 'cp \"$0\" {{run}}'", 44, "sh -c", inner),
    ] {
        assert_eq!(
            diagnostics(&in_task(&format!("run: {command}"))),
            [format!("6:{column} nested-shell: {}", message_about(reader, help))]
        );
    }
    assert_eq!(
        diagnostics(&in_phase("gates: [{ id: g, run: 'eval {{run}}' }]")),
        [format!("4:33 nested-shell: {}", message_about("eval", inner))]
    );
    for command in ["sh -c 'echo \"$1\"' sh {{run}}", "ssh {{run}} ls", "echo {{run}} | tee log"] {
        workflow(&in_task(&format!("run: {command}")));
    }
}
