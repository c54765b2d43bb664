//! Naming runs: `@`, workflows, features, and the default.

use crate::project::Project;

const FLOW: &str = "
name: NAME
phases:
  - id: review
    tasks: [{ id: work, run: 'echo NAME works' }]
    checkpoint: { prompt: 'Good?' }
";

fn start(project: &Project, workflow: &str, feature: Option<&str>, code: i32) -> String {
    let file = format!("{workflow}.yaml");
    project.write(&file, FLOW.replace("NAME", workflow));
    let mut arguments = vec!["run", &file, "--json"];
    arguments.extend(feature);
    project.json(code, &arguments)["run"].as_str().unwrap().to_owned()
}

#[test]
fn without_a_name_the_newest_run_is_meant_unfinished_ones_first() {
    let project = Project::new();
    let output = project.run(&["status"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    let first = start(&project, "build", None, 3);
    let second = start(&project, "deploy", None, 3);
    for named in [&["status", "--json"][..], &["status", "@", "--json"]] {
        assert_eq!(project.json(0, named)["run"], second.as_str());
    }
    assert_eq!(project.run(&["cancel", &second]).code, Some(0));
    assert_eq!(project.json(0, &["status", "--json"])["run"], first.as_str(), "an unfinished run comes before a newer ended one");
    assert_eq!(project.run(&["cancel", &first]).code, Some(0));
    assert_eq!(project.json(0, &["status", "--json"])["run"], second.as_str(), "then the newest of all");
    let output = project.run(&["resume"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("error[run-ended]: every run has ended"), "{output:?}");
}

#[test]
fn reading_and_continuing_commands_need_no_name() {
    let project = Project::new();
    let run = start(&project, "build", None, 3);
    for command in ["status", "why", "log", "logs", "summary", "graph", "wait", "resume"] {
        let output = project.run(&[command]);
        assert!(matches!(output.code, Some(0 | 3)), "{command}: {output:?}");
        let reported = format!("{}{}", output.stdout, output.stderr);
        assert!(reported.contains(&run) || ["logs", "summary", "graph", "log"].contains(&command), "{command}: {output:?}");
    }
    let block = project.run(&["agent", "handover"]);
    assert_eq!(block.code, Some(0), "{block:?}");
}

#[test]
fn ending_a_run_always_needs_a_name() {
    let project = Project::new();
    start(&project, "build", None, 3);
    let output = project.run(&["cancel"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("<RUN>"), "{output:?}");
}

#[test]
fn a_workflow_or_feature_names_its_newest_run() {
    let project = Project::new();
    let first = start(&project, "build", Some("login"), 3);
    let second = start(&project, "build", None, 3);
    let third = start(&project, "deploy", None, 3);
    let status = |name: &str| project.json(0, &["status", name, "--json"])["run"].as_str().unwrap().to_owned();
    assert_eq!([status("build"), status("login"), status("deploy"), status("@")], [second, first, third.clone(), third]);
    assert_eq!(project.run(&["cancel", "deploy"]).code, Some(0), "a name is enough");
    let output = project.run(&["cancel", "deploy"]);
    assert_eq!(output.code, Some(4), "a run that has ended is cancelled by its id only: {output:?}");
}

#[test]
fn retry_and_skip_take_a_task_of_the_newest_run() {
    let project = Project::with("name: x\nphases: [{ id: p, tasks: [{ id: broken, run: 'test -e fixed' }] }]\n");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(1));
    project.write("fixed", "");
    assert_eq!(project.run(&["retry", "broken", "--foreground"]).code, Some(0));
    assert_eq!(project.status("@")["status"], "complete");
}

#[test]
fn logs_without_a_task_show_every_attempt() {
    let project = Project::with(
        "name: x\nphases: [{ id: p, tasks: [{ id: one, run: 'echo first' }, { id: two, needs: [one], run: 'echo second' }] }]\n",
    );
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    assert_eq!(project.run(&["logs"]).stdout, "== p/one (attempt 1)\nfirst\n== p/two (attempt 1)\nsecond\n");
    assert_eq!(project.run(&["logs", "two"]).stdout, "second\n", "a task of the newest run");
    assert_eq!(project.run(&["logs", "x", "one"]).stdout, "first\n");
    assert_eq!(project.run(&["logs", "--follow"]).stdout, project.run(&["logs"]).stdout, "an ended run is not followed");
    let listed = project.json(0, &["logs", "--json"]);
    assert_eq!((&listed[0]["task"], &listed[1]["text"]), (&"one".into(), &"second\n".into()));
    let output = project.run(&["logs", "--attempt", "1"]);
    assert!(output.code == Some(4) && output.stderr.contains("need a task"), "{output:?}");
    let output = project.run(&["logs", "three"]);
    assert!(output.code == Some(4) && output.stderr.contains("no task or gate \"three\""), "{output:?}");
}

#[test]
fn a_complete_run_says_where_its_outputs_are() {
    let project = Project::with(
        "name: x\nphases: [{ id: p, tasks: [{ id: one, run: 'echo it > $LOCKGATE_OUTPUT_DIR/a.txt', outputs: a.txt }] }]\n",
    );
    let output = project.run(&["run", "flow.yaml"]);
    let run = project.newest();
    assert!(output.stderr.contains(&format!("  outputs: .lockgate/runs/{run}/out\n")), "{output:?}");
    project.write("flow.yaml", "name: x\nphases: [{ id: p, tasks: [{ id: one, run: 'true' }] }]\n");
    let output = project.run(&["run", "flow.yaml"]);
    assert!(output.code == Some(0) && !output.stderr.contains("outputs:"), "nothing was written: {output:?}");
}

#[test]
fn tests_are_found_below_a_directory() {
    let project = Project::with("name: x\nphases: [{ id: p, tasks: [{ id: one, run: 'true' }] }]\n");
    let output = project.run(&["test"]);
    assert!(output.code == Some(4) && output.stderr.contains("no *.test.yaml file in"), "{output:?}");
    let case =
        |workflow: &str| format!("workflow: {workflow}\ncases:\n  - name: runs\n    expect: {{ status: complete, path: [p] }}\n");
    project.write("flow.test.yaml", case("flow.yaml"));
    project.write("more/deep/flow.test.yml", case("../../flow.yaml"));
    project.write("node_modules/x/bad.test.yaml", "nonsense");
    project.write(".hidden/bad.test.yaml", "nonsense");
    let output = project.run(&["test"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("flow.test.yaml\n") && output.stdout.ends_with("2 passed, 0 failed\n"), "{output:?}");
    assert_eq!(project.run(&["test", "more"]).stdout.lines().last(), Some("1 passed, 0 failed"));
}
