//! The key `shell`: what it may be, where it may be, and which commands it holds for. A14.

use crate::{in_phase, in_task, told, workflow};
use lockgate_engine::spec::workflow::Shell;

#[test]
fn a_shell_that_is_not_known_is_an_error_with_a_suggestion() {
    assert_eq!(
        told(&in_task("run: make\nshell: bsh")),
        ["7:16 wrong-value: `bsh` is not a shell that Lockgate knows (did you mean `bash`?)"]
    );
    assert_eq!(
        told(&in_task("run: make\nshell: fish -e")),
        [
            "7:16 wrong-value: `fish -e` is not a shell that Lockgate knows (write `bash`, `sh`, or a command with `{0}` for the script file: `fish -e {0}`)"
        ]
    );
    assert_eq!(
        told(&in_phase("shell: [bash]\ngates: [{ id: g, run: make, shell: '' }]")),
        ["4:12 wrong-kind: `shell` must be text, not a list", "5:40 empty-value: `shell` is empty"]
    );
}

#[test]
fn a_shell_needs_a_command() {
    assert_eq!(
        told(&in_task("pass: true\nshell: bash")),
        ["7:9 unused-key: `shell` is for commands, and this task has none (remove it; the phase or the workflow can have one)"]
    );
    workflow(&in_task("prompt: work\nagent: claude\nshell: sh\nuntil: { run: make }"));
}

#[test]
fn what_is_nearer_to_a_command_decides_on_its_shell() {
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
fn values_are_not_filled_in_for_a_language_whose_quotes_are_others() {
    let wrong = "the value of `run` cannot be quoted for `python3 {0}` (give the value a name under `env`, such as VALUE: \"{{run}}\", and read that variable)";
    assert_eq!(told(&in_task("shell: python3 {0}\nrun: print('{{run}}')")), [format!("7:21 bad-template: {wrong}")]);
    assert_eq!(
        told(&in_phase("shell: python3 {0}\ngates: [{ id: g, run: 'print({{run}})' }]")),
        [format!("5:34 bad-template: {wrong}")]
    );
    workflow(&in_task("shell: bash -x {0}\nrun: echo '{{run}}'"));
}

#[test]
fn a_value_that_a_second_shell_reads_is_refused_with_the_way_out() {
    let told_about =
        |reader: &str, help: &str| format!("`run` is quoted for the shell, and then `{reader}` reads it as code ({help})");
    let inner = "give the value a name under `env`, such as VALUE: \"{{run}}\", and let the inner command read \"$VALUE\", inside single quotes";
    let other = "give the value a name under `env`, such as VALUE: \"{{run}}\", and quote it for the other shell: ssh HOST \"… $(printf %q \"$VALUE\")\"";
    for (command, column, reader, help) in [
        ("sh -c \"echo {{run}}\"", 26, "sh -c", inner),
        ("eval {{run}}", 19, "eval", inner),
        ("echo {{run}} | sh", 19, "| sh", inner),
        ("ssh host \"ls {{run}}\"", 27, "ssh", other),
        ("ls | xargs -n1 sh -c 'cp \"$0\" {{run}}'", 44, "sh -c", inner),
    ] {
        assert_eq!(
            told(&in_task(&format!("run: {command}"))),
            [format!("6:{column} nested-shell: {}", told_about(reader, help))]
        );
    }
    assert_eq!(
        told(&in_phase("gates: [{ id: g, run: 'eval {{run}}' }]")),
        [format!("4:33 nested-shell: {}", told_about("eval", inner))]
    );
    for command in ["sh -c 'echo \"$1\"' sh {{run}}", "ssh {{run}} ls", "echo {{run}} | tee log"] {
        workflow(&in_task(&format!("run: {command}")));
    }
}
