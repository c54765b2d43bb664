//! Fan-outs, conditions, loops and inputs.

use crate::project::{Output, Project, signal, until};
use serde_json::json;

fn ended(output: &Output, code: i32) {
    assert_eq!(output.code, Some(code), "{}\n{}", output.stdout, output.stderr);
}

fn tasks(flow: &str) -> String {
    format!("name: flow\nvars: {{ files: [a.rs, b.rs] }}\nphases:\n  - id: work\n    tasks:\n{flow}")
}

fn items(project: &Project, kind: &str) -> Vec<String> {
    let events = project.events(&project.newest(), kind);
    let mut items: Vec<String> = events.iter().filter_map(|event| Some(event["item"].as_str()?.to_owned())).collect();
    items.sort();
    items
}

#[test]
fn a_fan_out_runs_one_task_per_item_from_a_literal_variable_script_or_lines() {
    for (list, expected) in [
        ("[x, y, x]", vec!["x", "x#2", "y"]),
        ("files", vec!["a.rs", "b.rs"]),
        ("{ script: \"return [{ id: 'p', n: 1 }, { id: 'q', n: 2 }]\" }", vec!["p", "q"]),
        ("{ lines: list.txt, max_parallel: 1 }", vec!["one two", "three"]),
    ] {
        let project = Project::with(&tasks(&format!(
            "      - {{ id: each, for_each: {list}, env: {{ ITEM: '{{{{item}}}}' }}, run: 'echo \"$ITEM\" >> seen.txt' }}\n      - {{ id: after, needs: each, run: 'wc -l < seen.txt > count.txt' }}\n"
        )));
        project.write("list.txt", "one two\n\n  three\n");
        ended(&project.run(&["run", "flow.yaml"]), 0);
        let mut expected: Vec<&str> = expected;
        expected.sort();
        assert_eq!(items(&project, "task_finished"), expected, "{list}");
        assert_eq!(project.read("count.txt").trim(), expected.len().to_string(), "{list}");
    }
}

#[test]
fn item_results_are_in_the_context_by_item_key() {
    let project = Project::with(&tasks(
        "      - { id: each, for_each: files, script: 'return item.toUpperCase()' }\n      - { id: all, needs: each, script: 'return context.outputs.work.each' }\n",
    ));
    ended(&project.run(&["run", "flow.yaml"]), 0);
    let outputs = &project.status(&project.newest())["context"]["outputs"]["work"];
    assert_eq!(outputs["all"], json!({"a.rs": "A.RS", "b.rs": "B.RS"}));
}

#[test]
fn fanning_out_over_a_non_list_fails_and_over_an_empty_list_succeeds() {
    let project = Project::with(&tasks("      - { id: each, for_each: { script: 'return 3' }, pass: true }\n"));
    let output = project.run(&["run", "flow.yaml"]);
    ended(&output, 1);
    assert!(output.stderr.contains("`for_each` needs a list, but got: 3"), "{}", output.stderr);
    project.write("flow.yaml", tasks("      - { id: each, for_each: [], pass: true }\n"));
    ended(&project.run(&["run", "flow.yaml"]), 0);
    project.write("flow.yaml", tasks("      - { id: each, for_each: { lines: gone.txt }, pass: true }\n"));
    let output = project.run(&["run", "flow.yaml"]);
    ended(&output, 1);
    assert!(output.stderr.contains("there is no file \"gone.txt\""), "{}", output.stderr);
}

#[test]
fn items_have_task_addresses_and_failed_items_affect_dependents_of_the_fan_out() {
    let project = Project::with(&tasks(
        "      - { id: each, for_each: [one, two], run: 'echo about {{item}}; test {{item}} = one', on_fail: ask }\n",
    ));
    ended(&project.run(&["run", "flow.yaml"]), 3);
    let run = project.newest();
    let output = project.run(&["logs", &run, "work/each[two]"]);
    ended(&output, 0);
    assert_eq!(output.stdout, "about two\n");
    ended(&project.run(&["retry", &run, "each[two]", "--no-resume"]), 0);
    ended(&project.run(&["resume", &run]), 3);
    ended(&project.run(&["skip", &run, "each[two]", "--reason", "no need", "--no-resume"]), 0);
    ended(&project.run(&["resume", &run]), 0);
    project.write(
        "flow.yaml",
        tasks("      - { id: each, for_each: [one, two], run: 'test {{item}} = one', continue_on_error: true }\n      - { id: all, needs: each, run: touch all }\n      - { id: done, needs: each, join: done, run: touch done }\n"),
    );
    let output = project.run(&["run", "flow.yaml"]);
    ended(&output, 0);
    assert!(output.stderr.contains("1 of its 2 tasks failed"), "{}", output.stderr);
    assert!(!project.path("all").exists() && project.path("done").exists());
}

#[test]
fn a_killed_run_resumes_with_exactly_the_missing_items() {
    let project = Project::with(&tasks(
        "      - id: each\n        for_each: { script: 'return Array.from({ length: 12 }, (_, n) => n)', max_parallel: 3 }\n        on_interrupt: rerun\n        env: { N: '{{item}}' }\n        run: '{ test \"$N\" -lt 5 || test -e go || { touch \"at-$N\"; sleep 60; }; } && echo \"$N\" >> done.txt'\n",
    ));
    // When orphans are ended, `sleep` may exit before its shell, which must not then continue as if the task had succeeded.
    let mut child = project.start(&["run", "flow.yaml"]);
    until("five items are done", || project.path("done.txt").exists() && project.read("done.txt").lines().count() == 5);
    until("they are recorded", || items(&project, "task_finished").len() == 5);
    until("the start of the next three", || (5..8).all(|n| project.path(&format!("at-{n}")).exists()));
    signal(&child, rustix::process::Signal::KILL);
    child.wait().unwrap();
    project.write("go", "");
    ended(&project.run(&["resume", &project.newest()]), 0);
    let mut done: Vec<u32> = project.read("done.txt").lines().map(|line| line.parse().unwrap()).collect();
    done.sort_unstable();
    assert_eq!(done, (0..12).collect::<Vec<u32>>(), "each was done once");
}

#[test]
fn a_false_condition_skips_a_task_and_its_dependents_still_run() {
    let project = Project::with(&tasks(
        "      - { id: maybe, when: \"context.feature.flags.includes('deep')\", run: touch deep }\n      - { id: each, for_each: files, when: \"item !== 'a.rs'\", pass: true }\n      - { id: after, needs: [maybe, each], run: touch after }\n",
    ));
    let output = project.run(&["run", "flow.yaml"]);
    ended(&output, 0);
    assert!(output.stderr.contains("work/maybe left out: its `when` is false"), "{}", output.stderr);
    assert!(!project.path("deep").exists() && project.path("after").exists());
    assert_eq!(items(&project, "task_omitted"), ["a.rs"]);
    ended(&project.run(&["run", "flow.yaml", "--flag", "deep"]), 0);
    assert!(project.path("deep").exists());
    project.write("flow.yaml", tasks("      - { id: odd, when: nowhere.x, pass: true }\n"));
    let output = project.run(&["run", "flow.yaml"]);
    ended(&output, 1);
    assert!(output.stderr.contains("its `when` could not be evaluated"), "{}", output.stderr);
}

#[test]
fn a_tolerated_failure_skips_dependents_unless_their_join_allows_it() {
    let project = Project::with(&tasks(
        "      - { id: bad, run: 'false', continue_on_error: true }\n      - { id: good, pass: true }\n      - { id: all, needs: [bad, good], run: touch all }\n      - { id: any, needs: [bad, good], join: any, run: touch any }\n      - { id: done, needs: [bad, good], join: done, run: touch done }\n      - { id: further, needs: all, run: touch further }\n",
    ));
    let output = project.run(&["run", "flow.yaml"]);
    ended(&output, 0);
    let made: Vec<bool> = ["all", "any", "done", "further"].iter().map(|name| project.path(name).exists()).collect();
    assert_eq!(made, [false, true, true, false], "{}", output.stderr);
    assert!(output.stderr.contains("work/all left out: it depends on bad, good, which did not succeed"), "{}", output.stderr);
}

#[test]
fn a_task_repeats_until_its_condition_holds_and_sees_the_last_output() {
    let project = Project::with(&tasks(
        "      - { id: count, script: \"return (previous ?? 0) + task.round\", until: { condition: 'output >= 6', limit: 5 } }\n      - { id: make, run: 'echo x >> made.txt', until: { run: 'test $(wc -l < made.txt) -ge 2' } }\n",
    ));
    ended(&project.run(&["run", "flow.yaml"]), 0);
    assert_eq!(project.status(&project.newest())["context"]["outputs"]["work"]["count"], 6);
    assert_eq!(project.read("made.txt").lines().count(), 2);
    project.write("flow.yaml", tasks("      - { id: never, pass: true, until: { condition: 'false', limit: 3 } }\n"));
    let output = project.run(&["run", "flow.yaml"]);
    ended(&output, 1);
    assert!(output.stderr.contains("`until` did not hold after 3 rounds"), "{}", output.stderr);
    assert_eq!(project.events(&project.newest(), "task_started").len(), 3);
}

#[test]
fn inputs_are_checked_before_anything_starts() {
    let project = Project::with(
        "
name: flow
inputs:
  ticket: { description: The ticket }
  size: { choices: [small, large], default: small }
  count: { type: number, default: 2 }
  names: { type: list, required: false }
phases:
  - id: work
    tasks: [{ id: show, script: 'return context.vars' }]
",
    );
    let output = project.run(&["run", "flow.yaml"]);
    ended(&output, 4);
    assert!(
        output.stderr.contains("error[invalid-input]: the workflow needs the input `ticket` (The ticket)"),
        "{}",
        output.stderr
    );
    let output = project.run(&["run", "flow.yaml", "--var", "ticket=7", "--var", "size=huge"]);
    ended(&output, 4);
    assert!(output.stderr.contains("the input `size` must be one of small, large, not \"huge\""), "{}", output.stderr);
    assert!(!project.path(".lockgate/runs").exists(), "nothing has started");
    ended(&project.run(&["run", "flow.yaml", "--var", "ticket=7", "--var", "names=a,b"]), 0);
    let vars = &project.status(&project.newest())["context"]["outputs"]["work"]["show"];
    assert_eq!(*vars, json!({"ticket": "7", "size": "small", "count": 2, "names": ["a", "b"]}));
}

#[test]
fn a_phase_may_use_another_workflow_with_its_own_inputs() {
    let project = Project::with(
        "
name: outer
vars: { word: outer }
phases:
  - { id: first, use: inner.yaml, with: { word: one } }
  - { id: second, use: inner.yaml, with: { word: two } }
  - id: last
    tasks: [{ id: say, run: 'echo {{vars.word}} >> said.txt' }]
    checkpoint:
      prompt: Again?
      options:
        - { label: Redo, on_select: { action: repeat_phase, target: second } }
        - { label: Continue }
",
    );
    project.write(
        "inner.yaml",
        "name: inner\ninputs: { word: }\nphases:\n  - id: say\n    tasks: [{ id: say, run: 'echo {{vars.word}} >> said.txt' }]\n",
    );
    ended(&project.run(&["run", "flow.yaml", "--answer", "last=Redo", "--answer", "last=Continue"]), 0);
    assert_eq!(project.read("said.txt"), "one\ntwo\nouter\ntwo\nouter\n");
    assert_eq!(project.status(&project.newest())["context"]["phases"]["completed"], json!(["first.say", "second.say", "last"]));
    project.write(
        "flow.yaml",
        "name: x\nphases: [{ id: a, use: iner.yaml }, { id: b, use: inner.yaml }, { id: c, use: flow.yaml }]\n",
    );
    let output = project.run(&["validate", "flow.yaml"]);
    ended(&output, 4);
    for reported in ["there is no workflow `iner.yaml`", "did you mean `inner.yaml`?", "the used workflow needs the input `word`"]
    {
        assert!(output.stderr.contains(reported), "{reported}: {}", output.stderr);
    }
}
