//! The shell of commands: gates, tasks and checks stop at the first failing line and the first failing command of a pipe (A14).

use crate::project::{Output, Project, without_terminal};
use std::os::unix::fs::PermissionsExt as _;

fn run_flow(tasks_and_gates: &str) -> (Project, Output) {
    let project = Project::with(&format!("name: shells\nphases:\n  - id: p\n{tasks_and_gates}"));
    let output = project.run(&["run", "flow.yaml"]);
    (project, output)
}

#[test]
fn a_gate_does_not_pass_because_its_last_line_succeeds() {
    for run in [
        "|\n          exit_with() { return 3; }\n          exit_with\n          echo fine",
        "'(exit 3) | tail -1'",
        "'false; true'",
    ] {
        let (_, output) = run_flow(&format!("    gates:\n      - id: g\n        run: {run}\n"));
        assert_eq!(output.code, Some(1), "{run}: {output:?}");
        assert!(!output.stdout.contains("fine"), "{run}: {output:?}");
    }
}

#[test]
fn tasks_and_their_checks_stop_at_the_first_failing_line() {
    let (_, task) = run_flow("    tasks: [{ id: t, run: \"false\\ntrue\" }]\n");
    assert_eq!(task.code, Some(1), "{task:?}");
    let (_, until) = run_flow("    tasks: [{ id: t, run: 'true', until: { run: \"false | cat\", limit: 1 } }]\n");
    assert_eq!(until.code, Some(1), "{until:?}");
    assert!(until.stderr.contains("`until` did not hold"), "{until:?}");
}

#[test]
fn a_failing_command_inside_a_substitution_stops_the_command() {
    for shell in ["", "        shell: bash\n"] {
        let run = "|\n          x=$(false; echo hi)\n          echo fine";
        let (_, output) = run_flow(&format!("    gates:\n      - id: g\n        run: {run}\n{shell}"));
        assert_eq!(output.code, Some(1), "{shell}: {output:?}");
    }
}

#[test]
fn an_older_bash_runs_commands_without_unsupported_options() {
    let project = Project::with("name: shells\nphases: [{ id: p, gates: [{ id: g, run: 'echo fine > out.txt' }] }]\n");
    std::fs::create_dir(project.path("bin")).unwrap();
    let older = "#!/bin/bash\nfor option; do [ \"$option\" != inherit_errexit ] || exit 2; done\nexec /bin/bash \"$@\"\n";
    project.write("bin/bash", older);
    std::fs::set_permissions(project.path("bin/bash"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        without_terminal(&mut command);
        command.env("PATH", format!("{}:/usr/bin:/bin", project.path("bin").display())).output().unwrap()
    };
    let dry = String::from_utf8(run(&["run", "flow.yaml", "--dry-run"]).stdout).unwrap();
    assert!(dry.contains("commands run with `bash -e -o pipefail`\n"), "{dry}");
    let output = run(&["run", "flow.yaml"]);
    assert_eq!((output.status.code(), project.read("out.txt").as_str()), (Some(0), "fine\n"), "{output:?}");
}

#[test]
fn a_task_uses_the_nearest_configured_shell() {
    let project = Project::with(
        "name: shells\nphases:\n  - id: p\n    tasks:\n      - { id: cut, run: 'seq 100000 | head -1' }\n      - { id: awk, run: 'BEGIN { print 6 * 7 }', shell: 'awk -f {0}' }\n",
    );
    let strict = project.run(&["run", "flow.yaml"]);
    assert_eq!(strict.code, Some(1), "{strict:?}");
    assert!(strict.stderr.contains("exit code 141: a command wrote to a closed pipe"), "{strict:?}");
    assert_eq!(project.run(&["logs", &project.newest(), "p/awk"]).stdout, "42\n");
    project.write(".lockgate/config.yaml", "people: { require_terminal: false }\nshell: sh\n");
    let dry = project.run(&["run", "flow.yaml", "--dry-run"]);
    assert!(dry.stdout.contains("p/cut runs with `sh -e`: seq"), "{dry:?}");
    assert!(dry.stdout.contains("p/awk runs with `awk -f {0}`: BEGIN"), "{dry:?}");
    let relaxed = project.run(&["run", "flow.yaml"]);
    assert_eq!(relaxed.code, Some(0), "{relaxed:?}");
}

#[test]
fn without_bash_commands_run_with_sh_and_still_stop_at_the_first_failing_line() {
    let project = Project::with("name: shells\nphases: [{ id: p, gates: [{ id: g, run: \"false\\necho fine\" }] }]\n");
    std::fs::create_dir(project.path("bin")).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        without_terminal(&mut command);
        let output = command.env("PATH", project.path("bin")).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, reported) = run(&["run", "flow.yaml"]);
    assert!(code == Some(1) && !reported.contains("fine"), "{code:?} {reported}");
    assert!(run(&["run", "flow.yaml", "--dry-run"]).1.contains("commands run with `sh -e"));
    assert!(run(&["doctor"]).1.contains("commands run with `sh -e"));
}

#[test]
fn feedback_of_any_length_and_with_nul_reaches_later_tasks() {
    let flow = r#"
name: long
phases:
  - id: p
    tasks:
      - id: t
        run: |
          test -n "${LOCKGATE_FEEDBACK_FILE-}" || exit 0
          tail -c 4 "$LOCKGATE_FEEDBACK_FILE" > "$LOCKGATE_OUTPUT_DIR/end.txt"
          printf '%s\n' "$LOCKGATE_FEEDBACK" | tail -1
          printf '%s' {{phase.feedback}} | wc -c
    gap_check:
      script: |
        try { return { status: 'complete', message: readFile('end.txt') } }
        catch { return { status: 'incomplete', gaps: ['x'.repeat(300000) + '\u0000end'], action: 'retry' } }
"#;
    let project = Project::with(flow);
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let printed = project.run(&["logs", &project.newest(), "p/t"]).stdout;
    assert!(printed.starts_with("(cut off here; the full text is in the file named by LOCKGATE_FEEDBACK_FILE)"), "{printed}");
    let whole: usize = printed.lines().last().unwrap().trim().parse().unwrap();
    assert!(whole > 300_000, "{printed}");
    assert!(project.run(&["log", &project.newest(), "--json"]).stdout.contains("end"), "{output:?}");
    let left = std::fs::read_dir(project.path(&format!(".lockgate/runs/{}/locks", project.newest()))).unwrap();
    assert_eq!(left.count(), 0, "only locks are left");
}

#[test]
fn a_value_too_long_for_an_environment_variable_fails_only_its_task_with_a_reason() {
    let flow = "name: long\nphases:\n  - id: p\n    tasks:\n      - { id: make, script: \"return 'x'.repeat(200000)\" }\n      - { id: use, needs: make, run: 'true', env: { VALUE: '{{outputs.p.make}}' } }\n      - { id: nul, run: 'printf %s \"$VALUE\"', env: { VALUE: '{{vars.nul}}' } }\nvars: { nul: \"a\\0b\" }\n";
    let project = Project::with(flow);
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("the value of `VALUE` under `env` has 200000 bytes"), "{output:?}");
    assert_eq!(project.run(&["logs", &project.newest(), "p/nul"]).stdout.trim_end(), "a\u{fffd}b");
}
