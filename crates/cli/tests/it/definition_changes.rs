//! Requirement F10: the definition is frozen with the run, and changes to its files are detected, reported and asked about.

use crate::project::{Output, Project};

const FLOW: &str = "
name: flow
phases:
  - id: plan
    subagents: [scout]
    checkpoint: { approval_required: true }
  - id: build
    tasks: [{ id: make, run: echo old > made.txt }]
finalization: { template: final.md.tmpl }
";

fn ended(output: &Output, code: i32) {
    assert_eq!(output.code, Some(code), "{}\n{}", output.stdout, output.stderr);
}

fn waiting() -> Project {
    let project = Project::with(FLOW);
    project.write("final.md.tmpl", "old");
    project.write("subagents/scout.md", "old");
    ended(&project.run(&["run", "flow.yaml", "--agent", "cat >/dev/null; echo x"]), 3);
    let hold = project.waiting_hold();
    ended(&project.run(&["answer", &hold, "Continue", "--no-resume"]), 0);
    project
}

#[test]
fn f10_a_change_in_any_definition_file_is_detected_and_asked_about() {
    for (file, text) in [
        ("flow.yaml", FLOW.replace("echo old", "echo new")),
        ("final.md.tmpl", "new".to_owned()),
        ("subagents/scout.md", "new".to_owned()),
    ] {
        let project = waiting();
        project.write(file, text);
        let output = project.run(&["resume", &project.newest()]);
        ended(&output, 3);
        let reported =
            format!("error[definition-changed]: the files of run {} have changed since it started: {file}", project.newest());
        assert!(output.stderr.contains(&reported), "{}", output.stderr);
        assert!(!project.path("made.txt").exists(), "nothing has started");
        ended(&project.run(&["resume", &project.newest(), "--changed", "keep"]), 0);
        assert_eq!(project.read("made.txt"), "old\n");
        assert_eq!(project.read(&format!(".lockgate/runs/{}/out/final.md", project.newest())), "old");
    }
}

#[test]
fn f10_a_prompt_file_that_is_added_later_is_detected() {
    let project = Project::with(&FLOW.replace("finalization: { template: final.md.tmpl }\n", ""));
    ended(&project.run(&["run", "flow.yaml", "--agent", "cat >/dev/null; echo x"]), 3);
    ended(&project.run(&["answer", &project.waiting_hold(), "Continue", "--no-resume"]), 0);
    project.write("subagents/scout.md", "new");
    let output = project.run(&["resume", &project.newest()]);
    ended(&output, 3);
    assert!(output.stderr.contains("have changed since it started: subagents/scout.md"), "{}", output.stderr);
}

#[test]
fn f10_a_workflow_in_a_single_file_is_compared_with_that_file() {
    let flow = "name: flow\nphases: [{ id: plan, checkpoint: { prompt: Go? } }, { id: build, tasks: [{ id: make, run: echo old > made.txt }] }]\n";
    for (now, code) in [(flow.to_owned(), 0), (flow.replace("echo old", "echo new"), 3)] {
        let project = Project::with(flow);
        ended(&project.run(&["run", "flow.yaml"]), 3);
        ended(&project.run(&["answer", &project.waiting_hold(), "Continue", "--no-resume"]), 0);
        project.write("flow.yaml", now);
        ended(&project.run(&["resume", &project.newest()]), code);
        assert_eq!(project.path("made.txt").exists(), code == 0);
    }
}

#[test]
fn f10_an_accepted_change_is_an_event_and_takes_effect() {
    let project = waiting();
    project.write(
        "flow.yaml",
        FLOW.replace("tasks: [{ id: make, run: echo old > made.txt }]", "tasks: [{ id: other, run: echo new > made.txt }]"),
    );
    project.write("final.md.tmpl", "new {{phases.completed.length}}");
    ended(&project.run(&["resume", &project.newest(), "--changed", "accept"]), 0);
    assert_eq!(project.read("made.txt"), "new\n");
    assert_eq!(project.read(&format!(".lockgate/runs/{}/out/final.md", project.newest())), "new 2");
    assert_eq!(project.events(&project.newest(), "definition_accepted").len(), 1);
    ended(&project.run(&["db", "verify", &project.newest()]), 0);
    ended(&project.run(&["status", &project.newest()]), 0);
}

#[test]
fn f10_a_change_that_removes_finished_work_or_has_errors_is_refused() {
    let project = waiting();
    project.write("flow.yaml", FLOW.replace("id: plan", "id: planning"));
    let output = project.run(&["resume", &project.newest(), "--changed", "accept"]);
    ended(&output, 3);
    assert!(output.stderr.contains("the changed definition has no phase plan"), "{}", output.stderr);
    project.write("flow.yaml", "name: [");
    let output = project.run(&["resume", &project.newest(), "--changed", "accept"]);
    ended(&output, 3);
    assert!(output.stderr.contains("it has errors now"), "{}", output.stderr);
    ended(&project.run(&["resume", &project.newest(), "--changed", "keep"]), 0);
}

#[test]
fn f10_a_task_cannot_accept_a_definition_change() {
    let project = waiting();
    project.write("flow.yaml", FLOW.replace("echo old", "echo new"));
    let program = crate::project::program().display().to_string();
    project.write(
        "sneaky.yaml",
        format!(
            "name: sneaky\nphases: [{{ id: a, tasks: [{{ id: try, run: '{program} resume {} --changed accept' }}] }}]\n",
            project.newest()
        ),
    );
    let run = project.newest();
    let output = project.run(&["run", "sneaky.yaml"]);
    ended(&output, 1);
    assert!(output.stderr.contains("may not accept a changed definition"), "{}", output.stderr);
    assert_eq!(project.events(&run, "definition_accepted").len(), 0);
}
