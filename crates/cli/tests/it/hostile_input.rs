//! Text from files and tasks neither controls the terminal nor reveals secrets.

use crate::project::Project;
use crate::screen::Screen;

fn is_control(text: &str) -> bool {
    text.chars().any(|character| {
        (character.is_control() && character != '\n') || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

#[test]
fn control_characters_in_prompts_labels_and_files_are_made_visible() {
    let flow = r#"
name: "evil \e[2J name"
phases:
  - id: review
    name: "phase \e]0;title\a"
    tasks: [{ id: t, run: 'printf "out \033[31mred\033[0m\n"; exit 1', on_fail: ask }]
    checkpoint:
      prompt: "look \e[1A\e[2K at \u202Ethis\u202C \x9B31m"
      show_files: [evil.txt]
      options:
        - { label: "Con\e[8mtinue", on_select: { action: continue } }
        - { label: "Stop\u202E", on_select: { action: abort } }
"#;
    let project = Project::with(flow);
    project.write("evil.txt", "first \x1b[2J line\n\u{202e}second\rthird\n");
    let run = project.run(&["run", "flow.yaml", "feature \x1b[31m", "--answer", "review/t=count-as-done"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    let id = project.newest();
    let mut outputs = vec![run];
    for arguments in [
        &["status", &id][..],
        &["status", &id, "--json"],
        &["why", &id],
        &["why", &id, "--json"],
        &["log", &id],
        &["log", &id, "--json"],
        &["inbox"],
        &["inbox", "--json"],
        &["runs"],
        &["runs", "--json"],
        &["answer", &project.waiting_hold(), "\x1b[31mwrong"],
        &["status", "\x1b[31mwrong"],
        &["validate", "\x1b[31mwrong"],
        &["run", "flow.yaml", "--answer", "\x1b[31m=\x1b[0m"],
        &["--\x1b[31m"],
    ] {
        outputs.push(project.run(arguments));
    }
    for output in &outputs {
        assert!(!is_control(&output.stdout) && !is_control(&output.stderr), "{output:?}");
    }
    assert!(outputs[0].stderr.contains("look ␛[1A␛[2K at \\u{202e}this"), "{:?}", outputs[0]);
    let status = project.status(&id);
    assert_eq!(
        status["holds"][0]["prompt"], "look \x1b[1A\x1b[2K at \u{202e}this\u{202c} \u{9b}31m",
        "JSON keeps the original text"
    );
}

#[test]
fn diagnostics_sanitize_control_characters_of_the_workflow_file() {
    let project = Project::with("name: x\nphases:\n  - id: a\n    \"ta\\esks\": 1\n    tasks: [] # \u{202e} \u{9b}31m\n");
    let output = project.run(&["validate", "flow.yaml"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(!is_control(&output.stderr), "{output:?}");
}

#[test]
fn secrets_appear_in_no_output_event_or_log() {
    let flow = "
name: secret
secrets: { TOKEN: { env: MY_TOKEN } }
phases:
  - id: use
    tasks:
      - { id: with, secrets: [TOKEN], run: 'echo \"token $TOKEN\"; echo \"$TOKEN\" > shown.txt; exit 1', on_fail: ask }
      - { id: without, run: 'test -z \"$TOKEN$MY_TOKEN\"' }
    checkpoint: { prompt: Fine?, show_files: [shown.txt] }
";
    let project = Project::with(flow);
    let secret = "s3cr3t-0123456789";
    let mut command = project.command(&["run", "flow.yaml", "--answer", "use/with=count-as-done"]);
    crate::project::without_terminal(&mut command);
    let output = command.env("MY_TOKEN", secret).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let run = project.newest();
    let mut all = String::from_utf8_lossy(&output.stderr).into_owned();
    for arguments in [&["status", &run, "--json"][..], &["log", &run, "--json"], &["inbox", "--json"], &["why", &run]] {
        all += &project.run(arguments).stdout;
    }
    assert!(all.contains("token "), "{all}");
    assert!(!all.contains(secret), "{all}");
    for file in files_below(&project.path(".lockgate")) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{} holds the secret", file.display());
    }
}

fn files_below(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() { files.extend(files_below(&entry.path())) } else { files.push(entry.path()) }
    }
    files
}

#[test]
fn a_hostile_feature_name_is_treated_as_text() {
    let project = Project::with(
        "name: tiny\noutput_dir: 'out/{{feature.name}}'\nphases: [{ id: a, tasks: [{ id: t, run: 'echo x > \"$LOCKGATE_OUTPUT_DIR/x\"' }] }]\n",
    );
    let output = project.run(&["run", "flow.yaml", "../../escape"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("must be a directory inside the root"), "{output:?}");
    assert!(!project.path("../escape").exists());
}

#[test]
fn with_very_many_problems_the_first_are_shown_the_rest_counted_and_json_lists_all() {
    let flow = |count: usize| {
        let keys: String = (0..count).map(|at| format!("wrong{at}: 1\n")).collect();
        format!("name: x\nphases: [{{ id: a, tasks: [{{ id: t, pass: true }}] }}]\n{keys}")
    };
    let shown = |text: &str| text.matches("error[unknown-key]").count();
    for (count, reported) in [
        (20, "\nflow.yaml: 20 errors\n"),
        (21, "\nflow.yaml: 21 errors\n… and 1 more problem (lockgate validate flow.yaml --json lists them all)\n"),
        (60, "\nflow.yaml: 60 errors\n… and 40 more problems (lockgate validate flow.yaml --json lists them all)\n"),
        (
            250,
            "\nflow.yaml: 200 errors and 50 more problems\n… and 230 more problems (lockgate validate flow.yaml --json lists 200 of all)\n",
        ),
    ] {
        let project = Project::with(&flow(count));
        for command in ["validate", "run"] {
            let output = project.run(&[command, "flow.yaml"]);
            assert_eq!(output.code, Some(4), "{}", output.stderr);
            assert!(output.stderr.ends_with(reported), "{command} {count}: {}", output.stderr);
            assert_eq!(shown(&output.stderr), count.min(20));
            assert!(output.stderr.contains("`wrong0` is not a key"), "{}", output.stderr);
        }
        let output = project.run(&["validate", "flow.yaml", "--json"]);
        let files: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        let listed = files[0]["problems"].as_array().unwrap();
        assert_eq!(listed.iter().filter(|problem| problem["code"] == "unknown-key").count(), count.min(200));
        assert_eq!(listed.iter().any(|problem| problem["code"] == "too-many-problems"), count > 200);
    }
    let project = Project::with(&flow(60));
    let mut screen = Screen::start(&project, (80, 24), &["validate", "flow.yaml"]);
    screen.end();
    let history = screen.history().join("\n");
    assert_eq!(shown(&history), 20, "{history}");
    assert!(history.contains("… and 40 more problems ("), "{history}");
}

#[test]
fn an_error_is_shown_even_after_many_warnings() {
    let mut flow = String::from("name: flow\nvars: { known: 1 }\nphases:\n  - id: p\n    tasks:\n");
    for number in 0..300 {
        flow += &format!("      - {{ id: t{number}, run: 'echo {{{{vars.v{number}}}}}' }}\n");
    }
    let project = Project::with(&flow);
    let warned = project.run(&["validate", "flow.yaml"]);
    assert_eq!(warned.code, Some(0), "{warned:?}");
    let reported = format!("{}{}", warned.stdout, warned.stderr);
    assert!(reported.contains("200 warnings and 100 more problems"), "{reported}");
    // These problems are found last, in separate checks of keys and ids.
    for (wrong, code) in [
        ("      - { id: last, run: x, on_fial: ask }\n", "unknown-key"),
        ("      - { id: t7, run: x }\n", "duplicate-id"),
        ("      - { id: last, run: x, run: y }\n", "duplicate-key"),
    ] {
        project.write("flow.yaml", format!("{flow}{wrong}"));
        let refused = project.run(&["validate", "flow.yaml"]);
        assert_eq!(refused.code, Some(4), "{code}: {refused:?}");
        assert!(format!("{}{}", refused.stdout, refused.stderr).contains(&format!("error[{code}]")), "{refused:?}");
    }
}
