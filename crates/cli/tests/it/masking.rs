//! Secrets stay masked even in processes in which no task received them.

use crate::project::Project;

const FLOW: &str = r#"
name: secret
secrets: { TOKEN: { env: MY_TOKEN } }
phases:
  - id: make
    tasks: [{ id: leak, secrets: [TOKEN], run: 'echo "$TOKEN" > "$LOCKGATE_OUTPUT_DIR/token.txt"' }]
    checkpoint: { approval_required: true }
  - id: later
    tasks:
      - { id: print, run: 'cat "$LOCKGATE_OUTPUT_DIR/token.txt"; exit 1', on_fail: ask }
      - { id: give, script: "return { text: readFile('token.txt'), number: Number('1234' + '5678'), ok: true }" }
    checkpoint: { prompt: See, show_files: ["{{output_dir}}/token.txt"] }
"#;

#[test]
fn secrets_stay_masked_after_a_resume() {
    let project = Project::with(FLOW);
    let run = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        crate::project::without_terminal(&mut command);
        let output = command.env("MY_TOKEN", "12345678").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("12345678"), "{text}");
        text
    };
    run(&["run", "flow.yaml"]);
    run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]);
    run(&["answer", &project.waiting_hold(), "Count as done", "--foreground"]);
    let text = run(&["status", &project.newest(), "--json"]);
    let status: serde_json::Value = serde_json::from_str(&text).unwrap();
    let given = &status["context"]["outputs"]["later"]["give"];
    assert_eq!(given["ok"], true, "a masked result is still a result: {given}");
    assert_eq!(given["number"], "***TOKEN***");
    let everywhere =
        std::process::Command::new("grep").args(["-rlaF", "12345678"]).arg(project.path(".lockgate")).output().unwrap();
    let found = String::from_utf8_lossy(&everywhere.stdout).into_owned();
    assert!(found.lines().all(|file| file.ends_with("out/token.txt")), "{found}");
}

#[test]
fn a_task_directory_outside_the_root_is_refused() {
    let project =
        Project::with("name: out\nvars: { d: x }\nphases: [{ id: p, tasks: [{ id: t, dir: '{{vars.d}}', run: pwd }] }]\n");
    for dir in ["/etc", "../.."] {
        let refused = project.run(&["run", "flow.yaml", "--var", &format!("d={dir}")]);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("inside the root"), "{refused:?}");
    }
}

#[test]
fn a_problem_far_into_a_long_line_is_reported() {
    let long = "x".repeat(70_000);
    let project =
        Project::with(&format!("name: t\nphases: [{{id: p, description: '{long}', zzz: 1, tasks: [{{id: a, pass: true}}]}}]\n"));
    let reported = project.run(&["validate", "flow.yaml"]);
    assert_eq!(reported.code, Some(4), "{reported:?}");
    assert!(reported.stderr.contains("zzz") && reported.stderr.len() < 2_000, "{}", reported.stderr.len());
}
