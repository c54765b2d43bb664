//! Every rule of the format, with the message and position of its violation.

use crate::{diagnostics, in_phase, in_task};

const NOTHING: [&str; 0] = [];

#[test]
fn a_workflow_needs_a_name_and_phases() {
    assert_eq!(diagnostics(""), ["1:1 empty-value: the file is empty (a workflow needs at least `name` and `phases`)"]);
    assert_eq!(
        diagnostics("# nothing\n---\n"),
        ["1:1 empty-value: the file is empty (a workflow needs at least `name` and `phases`)"]
    );
    assert_eq!(
        diagnostics("version: 1"),
        ["1:1 missing-key: a workflow needs `name`", "1:1 missing-key: a workflow needs `phases`"]
    );
    assert_eq!(
        diagnostics("name: ' '\nphases: []"),
        ["1:7 empty-value: `name` is empty", "2:9 empty-value: `phases` is empty (a workflow needs at least one phase)"]
    );
    assert_eq!(diagnostics("name: x\nphases:"), ["2:1 missing-key: `phases` has no value"]);
    assert_eq!(diagnostics("just text"), ["1:1 wrong-type: a workflow must be a map of keys and values, not a single value"]);
    assert_eq!(diagnostics("name: x\nphases: {a: b}"), ["2:9 wrong-type: `phases` must be a list, not a map"]);
    assert_eq!(
        diagnostics("name: [x]\nphases: [a]"),
        [
            "1:7 wrong-type: `name` must be text, not a list",
            "2:10 wrong-type: a phase must be a map of keys and values, not a single value"
        ]
    );
}

#[test]
fn an_unknown_key_is_an_error_with_a_suggestion_at_every_level() {
    let source = "
name: x
descripton: y
phases:
  - id: one
    task: []
    tasks:
      - id: a
        runs: make
        pass: true
        retry: {attempt: 2, attempts: 2}
    gates:
      - {id: g, run: make, cwd: x}
    main_agent: {scipt: x, script: return 1}
    checkpoint:
      promt: a
      prompt: a
      options:
        - lable: x
          label: y
          on_select: {action: abort, targets: z}
secrets:
  A: {enviroment: X, env: X}
";
    assert_eq!(
        diagnostics(source),
        [
            "3:1 unknown-key: `descripton` is not a key of a workflow (did you mean `description`?)",
            "6:5 unknown-key: `task` is not a key of a phase (did you mean `tasks`?)",
            "9:9 unknown-key: `runs` is not a key of a task (did you mean `run`?)",
            "11:17 unknown-key: `attempt` is not a key of `retry` (did you mean `attempts`?)",
            "13:28 unknown-key: `cwd` is not a key of a gate",
            "14:18 unknown-key: `scipt` is not a key of `main_agent` (did you mean `script`?)",
            "16:7 unknown-key: `promt` is not a key of a checkpoint (did you mean `prompt`?)",
            "19:11 unknown-key: `lable` is not a key of an option (did you mean `label`?)",
            "21:38 unknown-key: `targets` is not a key of `on_select` (did you mean `target`?)",
            "23:7 unknown-key: `enviroment` is not a key of a secret",
        ]
    );
}

#[test]
fn a_key_of_a_later_release_is_recognized() {
    let source = "
name: x
deadline: 2d
phases:
  - id: one
    state_label: a
    tasks:
      - id: a
        inputs: [x]
        pass: true
";
    let diagnostics = diagnostics(source);
    let keys: Vec<&str> = diagnostics.iter().filter_map(|line| line.split('`').nth(1)).collect();
    assert_eq!(keys, ["deadline", "state_label", "inputs"]);
    assert!(
        diagnostics.iter().all(|line| line.contains("not-supported: ") && line.contains(" is not supported by this release")),
        "{diagnostics:?}"
    );
    assert!(
        diagnostics[1]
            .starts_with("6:5 not-supported: `state_label` is not supported by this release (a phase may have id, name, ")
    );
}

#[test]
fn a_gate_may_follow_one_task_of_its_phase() {
    let phase = in_phase("tasks: [{id: build, pass: true}]\ngates: [{id: g, run: make, task: build, name: Type check}]");
    let gate = &crate::workflow(&phase).phases[0].gates[0];
    assert_eq!((gate.task.as_ref().map(|task| task.as_str()), gate.title()), (Some("build"), "Type check"));
    assert_eq!(
        diagnostics(&in_phase("tasks: [{id: build, pass: true}]\ngates: [{id: g, run: make, task: biuld}]")),
        ["5:38 unknown-task: task `biuld` is not defined in this phase (did you mean `build`?)"]
    );
}

#[test]
fn a_file_of_the_successor_format_gets_one_error() {
    for (source, place, key) in [
        ("name: x\ncheckpoints:\n  - after: build\nsteps: [a]", "2:1", "checkpoints"),
        ("base_dir: x\nscope: y\nphases: 5", "1:1", "base_dir"),
        ("name: x\nscope: y\nphases: []", "2:1", "scope"),
    ] {
        assert_eq!(
            diagnostics(source),
            [format!(
                "{place} successor-format: this file is in the successor format: it has the top-level key `{key}` (use the format in which each phase has its own `checkpoint`)"
            )]
        );
    }
}

#[test]
fn ids_are_required_well_formed_and_unique() {
    assert_eq!(diagnostics("name: x\nphases: [{name: a, gates: []}]"), ["2:11 missing-key: a phase needs `id`"]);
    let wrong = |id: &str| diagnostics(&format!("name: x\nphases: [{{id: {id}, gates: []}}]"));
    for id in ["a", "Phase_1", "1.2-3", "_x", "08"] {
        assert_eq!(wrong(id), NOTHING, "{id}");
    }
    for id in ["'a b'", "../x", "..", ".a", "-a", "ü", "a/b", "''", "'a\\b'"] {
        let diagnostics = wrong(id);
        assert_eq!(diagnostics.len(), 1, "{id}");
        assert!(diagnostics[0].starts_with("2:15 invalid-id: the id of a phase cannot be `"), "{diagnostics:?}");
        assert!(
            diagnostics[0].ends_with("(use letters, digits, `-`, `_` and `.`, starting with a letter, a digit or `_`)"),
            "{diagnostics:?}"
        );
    }
    assert_eq!(wrong(&"a".repeat(101)), ["2:15 invalid-id: the id of a phase is longer than 100 characters"]);
    assert_eq!(
        diagnostics("name: x\nphases:\n  - {id: a, gates: []}\n  - {id: a, gates: []}"),
        ["4:10 duplicate-id: there are two phases called `a` (the first one is on line 3; rename one of them)"]
    );
    assert_eq!(
        wrong("current"),
        ["2:15 reserved-id: a phase cannot be called `current`: as a target that means the phase itself (choose another id)"]
    );
    assert_eq!(
        diagnostics(&in_phase("tasks:\n  - {id: a, pass: true}\n  - {id: a, pass: true}")),
        ["6:14 duplicate-id: there are two tasks called `a` (the first one is on line 5; rename one of them)"]
    );
    assert_eq!(
        diagnostics(&in_phase("gates:\n  - {id: a, run: x}\n  - {id: a, run: x}")),
        ["6:14 duplicate-id: there are two gates called `a` (the first one is on line 5; rename one of them)"]
    );
    assert_eq!(
        diagnostics(&in_phase("main_agent: {script: return 1}\ntasks:\n  - {id: main, pass: true}")),
        ["6:14 duplicate-id: `main` is the id of the task that `main_agent` creates (rename the task, or remove `main_agent`)"]
    );
}

#[test]
fn needs_must_name_tasks_of_the_phase() {
    assert_eq!(
        diagnostics(&in_phase("tasks:\n  - {id: compile, pass: true}\n  - {id: b, pass: true, needs: [compille, other]}")),
        [
            "6:37 unknown-task: task `compille` is not defined in this phase (did you mean `compile`?)",
            "6:47 unknown-task: task `other` is not defined in this phase (available: `compile`)",
        ]
    );
}

#[test]
fn a_dependency_cycle_is_shown() {
    assert_eq!(
        diagnostics(&in_phase(
            "tasks:\n  - {id: a, pass: true, needs: c}\n  - {id: b, pass: true, needs: [a]}\n  - {id: c, pass: true, needs: [b]}\n  - {id: d, pass: true, needs: d}"
        )),
        [
            "5:36 dependency-cycle: these tasks need each other: a → c → b → a (remove one of these needs)",
            "8:36 dependency-cycle: these tasks need each other: d → d (remove one of these needs)",
        ]
    );
}

#[test]
fn a_task_must_have_exactly_one_kind_of_work() {
    assert_eq!(
        diagnostics(&in_task("name: x")),
        [
            "5:9 missing-key: a task needs one of `run`, `script`, `pass`, `agent`, `prompt`, `verify`, `decision`, `action` (use `pass: true` for a task that does nothing)"
        ]
    );
    assert_eq!(
        diagnostics(&in_task("run: make\nscript: return 1 +")),
        [
            "7:9 conflicting-keys: a task is a command, a script, an agent's work or a question; this one has run and script (split it into two tasks, one of which needs the other)",
            "7:27 script-syntax: syntax error in JavaScript: unexpected end of the script (close the open brackets and quotes)",
        ]
    );
    assert_eq!(
        diagnostics(&in_task("pass: false")),
        ["6:15 invalid-value: `pass` can only be true (remove it and use `run` or `script`)"]
    );
    assert_eq!(
        diagnostics(&in_task("pass: yes")),
        ["6:15 invalid-value: `pass` must be true or false, not `yes` (write `true`, without quotes)"]
    );
    assert_eq!(diagnostics(&in_task("run:")), ["6:9 missing-key: `run` has no value"]);
    assert_eq!(diagnostics(&in_task("run: ' '")), ["6:14 empty-value: `run` is empty"]);
    assert_eq!(diagnostics(&in_task("script: ''")), ["6:17 empty-value: `script` is empty"]);
}

#[test]
fn enum_values_must_be_known() {
    assert_eq!(
        diagnostics(&in_task("pass: true\non_interrupt: re-run\non_fail: retry")),
        [
            "7:23 invalid-value: `on_interrupt` must be one of rerun, ask, fail, not `re-run` (did you mean `rerun`?)",
            "8:18 invalid-value: `on_fail` must be one of fail, ask, repeat, not `retry`",
        ]
    );
    assert_eq!(
        diagnostics("name: x\nexecution_mode: strikt\nphases: [{id: a, gates: [], behavior: paralel}]"),
        [
            "2:17 invalid-value: `execution_mode` must be one of strict, loose, adaptive, not `strikt` (did you mean `strict`?)",
            "3:39 invalid-value: `behavior` must be one of parallel, sequential, main-only, not `paralel` (did you mean `parallel`?)",
        ]
    );
}

#[test]
fn durations_must_have_a_unit() {
    assert_eq!(
        diagnostics(&in_task("pass: true\ntimeout: 30\nretry: {attempts: 2, backoff: soon}")),
        [
            "7:18 invalid-duration: `timeout` must be a duration, not `30` (add a unit: `30s`, `30m` or `30h`)",
            "8:39 invalid-duration: `backoff` must be a duration, not `soon` (write it as `30s`, `5m`, `1h 30m` or `PT30M`)",
        ]
    );
    assert_eq!(
        diagnostics(&in_task("pass: true\ntimeout: 0s")),
        ["7:18 invalid-duration: `timeout` is zero (remove it for no limit)"]
    );
    assert_eq!(diagnostics(&in_task("pass: true\ntimeout: 1h 30m")), NOTHING);
}

#[test]
fn numbers_must_be_integers_in_range() {
    let attempts = "must be a whole number from 1 to 1000, not";
    assert_eq!(diagnostics(&in_task("pass: true\nretry: 0")), [format!("7:16 invalid-value: `retry` {attempts} `0`")]);
    assert_eq!(
        diagnostics(&in_task("pass: true\nretry: {attempts: -1}")),
        [format!("7:27 invalid-value: `attempts` {attempts} `-1`")]
    );
    assert_eq!(
        diagnostics(&in_task("pass: true\nretry: {attempts: 1.5}")),
        [format!("7:27 invalid-value: `attempts` {attempts} `1.5`")]
    );
    assert_eq!(diagnostics(&in_task("pass: true\nretry: {backoff: 1s}")), ["7:17 missing-key: `retry` needs `attempts`"]);
    assert_eq!(
        diagnostics("name: x\nmax_parallel: 0\nphases: [{id: a, gates: []}]"),
        ["2:15 invalid-value: `max_parallel` must be a whole number from 1 to 100000, not `0`"]
    );
    assert_eq!(
        diagnostics("name: x\nvars: {a: .inf}\nphases: [{id: a, gates: []}]"),
        ["2:11 invalid-value: `.inf` is not a valid JSON number (write it in quotes, as text)"]
    );
}

#[test]
fn paths_must_stay_inside_the_root() {
    let task = in_task("pass: true\noutputs: [/etc/passwd, a/../../b, '..', ok/..x, 'x{{task.a}}/..', '']\ndir: ../x");
    assert_eq!(
        diagnostics(&task),
        [
            "7:19 path-traversal: the output `/etc/passwd` is an absolute path (write a relative path without `..`)",
            "7:32 path-traversal: the output `a/../../b` leads upwards with `..` (write a relative path without `..`)",
            "7:43 path-traversal: the output `..` leads upwards with `..` (write a relative path without `..`)",
            "7:57 path-traversal: the output `x{{task.a}}/..` leads upwards with `..` (write a relative path without `..`)",
            "7:75 empty-value: the output is empty",
            "8:14 path-traversal: `dir` `../x` leads upwards with `..` (write a relative path without `..`)",
        ]
    );
    assert_eq!(
        diagnostics(
            "name: x\noutput_dir: /tmp\nphases: [{id: a, checkpoint: {show_files: /etc/shadow}, gates: [{id: g, run: x, dir: /}]}]"
        ),
        [
            "2:13 path-traversal: `output_dir` `/tmp` is an absolute path (write a relative path without `..`)",
            "3:43 path-traversal: the file to show `/etc/shadow` is an absolute path (write a relative path without `..`)",
            "3:86 path-traversal: `dir` `/` is an absolute path (write a relative path without `..`)",
        ]
    );
}

#[test]
fn environment_variables_have_names_and_values() {
    assert_eq!(
        diagnostics(&in_task("pass: true\nenv: {1A: x, 'A=B': y, C: , D: [1]}")),
        [
            "7:15 invalid-env-name: an environment variable cannot be called `1A` (use letters, digits and `_`, not starting with a digit)",
            "7:22 invalid-env-name: an environment variable cannot be called `A=B` (use letters, digits and `_`, not starting with a digit)",
            "7:32 missing-env-value: `C` has no value (write `''` for an empty one)",
            "7:40 wrong-type: `D` must be text, not a list",
        ]
    );
    assert_eq!(
        diagnostics(&in_task(
            "pass: true\nenv: {LOCKGATE_RUN: x, LOCKGATE_MINE: y, MY_LOCKGATE_X: z}\nsecrets: [LOCKGATE_PHASE]"
        )),
        [
            "7:15 invalid-env-name: `LOCKGATE_RUN` would replace a variable that Lockgate sets (names that start with `LOCKGATE_` are set by Lockgate; choose another name)",
            "7:32 invalid-env-name: `LOCKGATE_MINE` would replace a variable that Lockgate sets (names that start with `LOCKGATE_` are set by Lockgate; choose another name)",
            "8:19 invalid-secret-name: a secret cannot be called `LOCKGATE_PHASE` (names that start with `LOCKGATE_` are set by Lockgate; choose another name)",
        ]
    );
    assert_eq!(diagnostics(&in_task("run: \"a\\0b\"")), ["6:14 nul-character: `run` contains a NUL character (remove `\\0`)"]);
}

#[test]
fn a_secret_has_a_name_and_one_source() {
    let source = "name: x\nsecrets:\n  a-b: {env: X}\n  B: {}\n  C: {env: X, command: y}\n  D: hunter2\n  E: {env: a b}\nphases: [{id: a, tasks: [{id: t, pass: true, secrets: [X-1]}]}]";
    let help = "(use letters, digits and `_`, not starting with a digit)";
    assert_eq!(diagnostics(source), [
        format!("3:3 invalid-secret-name: a secret cannot be called `a-b` {help}"),
        "4:6 missing-key: a secret needs `env` or `command`".into(),
        "5:24 conflicting-keys: a secret comes from `env` or from `command`, not from both".into(),
        "6:6 wrong-type: the source of `D` must be a map with `env` or `command`, not a single value (write `D: { env: VARIABLE }` or `D: { command: … }`, never the secret itself)".into(),
        "7:12 invalid-env-name: an environment variable cannot be called `a b`".into(),
        format!("8:56 invalid-secret-name: a secret cannot be called `X-1` {help}"),
    ]);
    assert_eq!(
        diagnostics("name: x\nsecrets: A\nphases: [{id: a, gates: []}]"),
        ["2:10 wrong-type: `secrets` must be a map of names and sources, or a list of names, not a single value"]
    );
}

#[test]
fn an_empty_phase_gives_a_warning() {
    assert_eq!(
        diagnostics("name: x\nphases: [{id: a}]"),
        [
            "2:11 warning empty-phase: this phase does nothing (give it `tasks`, `subagents`, `gates`, a `main_agent` or a `checkpoint`)"
        ]
    );
}

#[test]
fn ambiguous_yaml_features_are_refused() {
    let phases = "phases: [{id: a, gates: []}]\n";
    assert_eq!(
        diagnostics(&format!("name: x\n{phases}name: y\n")),
        ["3:1 duplicate-key: key `name` is given twice in this map (the first one is on line 1; keep one of them)"]
    );
    assert_eq!(
        diagnostics(&format!("name: x\n{phases}---\nname: y\n")),
        ["3:1 multiple-documents: a second document starts here; a file may hold only one (put each into a file of its own)"]
    );
    assert_eq!(
        diagnostics(&format!("name: *nobody\n{phases}")),
        [
            "1:7 invalid-alias: alias `*nobody` refers to an anchor that is not defined before it",
            "1:1 missing-key: `name` has no value",
        ]
        .map(str::to_owned)
        .into_iter()
        .rev()
        .collect::<Vec<_>>()
    );
    assert_eq!(
        diagnostics(&format!("name: x\nvars: {{a: &a [*a]}}\n{phases}")),
        ["2:15 invalid-alias: this alias is inside the value that it refers to"]
    );
    assert_eq!(
        diagnostics(&format!("name: !secret x\n{phases}")),
        ["1:7 yaml-tag: the tag `!secret` has no meaning here (remove it)"]
    );
    assert_eq!(
        diagnostics(&format!("name: x\n? [a]\n: b\n{phases}")),
        ["2:3 invalid-key: a key must be a single value, not a list"]
    );
    assert_eq!(
        diagnostics(&format!("name: x\nvars: &v {{a: 1}}\n<<: *v\n{phases}")),
        ["3:1 unknown-key: merge keys (`<<`) are not supported (write the keys out, or use an alias for a whole value)"]
    );
}

#[test]
fn broken_yaml_is_reported_with_its_position() {
    assert_eq!(diagnostics("name: x\nphases:\n\t- id: a\n").len(), 1);
    let tab_error = diagnostics("name: x\nphases:\n\t- id: a\n").remove(0);
    assert!(
        tab_error.starts_with("3:2 invalid-yaml: this is not YAML: ") && tab_error.ends_with("(indent with spaces)"),
        "{tab_error}"
    );
    let colon_error = diagnostics("name: a: b\n").remove(0);
    assert!(colon_error.starts_with("1:8 invalid-yaml: this is not YAML: "), "{colon_error}");
    let quote_error = diagnostics("name: \"a\n").remove(0);
    assert!(quote_error.contains(" invalid-yaml: this is not YAML: "), "{quote_error}");
}

#[test]
fn all_problems_are_reported_in_file_order() {
    let source = "nam: x\nphases:\n  - id: b!\n    tasks:\n      - id: t\n        needs: [u]\n        timeout: 5\n        script: 'return ('\n  - id: c\n    checkpoint: {condition: 'a >', options: [{label: Go, on_select: {action: go}}]}\n";
    let places: Vec<String> =
        diagnostics(source).iter().map(|line| line.split(": ").next().unwrap_or_default().to_owned()).collect();
    assert_eq!(
        places,
        [
            "1:1 unknown-key",
            "1:1 missing-key",
            "3:9 invalid-id",
            "6:17 unknown-task",
            "7:18 invalid-duration",
            "8:26 script-syntax",
            "10:33 script-syntax",
            "10:78 unknown-action"
        ]
    );
}
