//! Completions in shells: the scripts, and what they get from the program.

use crate::project::Project;

const FLOW: &str = "
name: flow
phases:
  - id: review
    tasks: [{ id: work, run: 'true' }]
    gates: [{ id: clean, run: 'true' }]
    checkpoint:
      prompt: Is it good?
      options:
        - { label: Looks good, on_select: { action: continue } }
        - { label: Stop, on_select: { action: abort } }
";

/// What fish would offer for the last word of a command line.
fn offered(project: &Project, words: &[&str]) -> Vec<String> {
    let mut command = project.command(&["--", "lockgate"]);
    let output = command.args(words).env("LOCKGATE_COMPLETE", "fish").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| line.split('\t').next().unwrap_or_default().to_owned())
        .filter(|word| !word.starts_with('-'))
        .collect()
}

#[test]
fn runs_holds_options_and_tasks_are_completed() {
    let project = Project::with(FLOW);
    assert_eq!(project.run(&["run", "flow.yaml", "login"]).code, Some(3));
    let (run, hold) = (project.newest(), project.waiting_hold());
    assert_eq!(offered(&project, &["status", ""]), [run.as_str(), "login", "flow"]);
    assert_eq!(offered(&project, &["cancel", "lo"]), ["login"]);
    assert_eq!(offered(&project, &["answer", ""]), [hold.as_str()]);
    assert_eq!(offered(&project, &["answer", &hold, ""]), ["1", "Stop"]);
    assert_eq!(offered(&project, &["answer", &hold, "st"]), ["Stop"]);
    assert_eq!(offered(&project, &["retry", &run, "review/"]), ["review/work", "review/clean"]);
    assert_eq!(offered(&project, &["logs", "review/w"]), ["review/work"]);
    assert_eq!(offered(&project, &["pipe"]), ["pipeline"]);
    let root = project.root();
    let elsewhere = Project::new();
    assert_eq!(offered(&elsewhere, &["--root", root.to_str().unwrap(), "cancel", "lo"]), ["login"]);
}

#[test]
fn nothing_is_offered_where_there_is_no_project_and_nothing_fails() {
    let empty = tempfile::tempdir().unwrap();
    let project = Project::new();
    let mut command = project.command(&["--", "lockgate", "status", ""]);
    let output = command.current_dir(empty.path()).env("LOCKGATE_COMPLETE", "fish").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    project.write(".lockgate/config.yaml", "nonsense: true\n");
    assert_eq!(offered(&project, &["status", ""]), Vec::<String>::new());
}

#[test]
fn every_shell_has_a_script_that_asks_the_program() {
    let project = Project::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = project.run(&["completions", shell]);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stdout.contains("LOCKGATE_COMPLETE"), "{shell}: {output:?}");
    }
    assert_eq!(project.run(&["completions", "tcsh"]).code, Some(4));
}

#[test]
fn the_bash_script_completes_in_bash() {
    let project = Project::with(FLOW);
    assert_eq!(project.run(&["run", "flow.yaml", "login"]).code, Some(3));
    let script = project.run(&["completions", "bash"]).stdout;
    let dir = crate::project::program().parent().unwrap().to_str().unwrap();
    let ask = "COMP_WORDS=(lockgate cancel lo); COMP_CWORD=2; COMP_TYPE=9; f=$(complete -p lockgate | sed 's/.*-F \\([^ ]*\\).*/\\1/'); \
               $f lockgate lo cancel; printf '%s\\n' \"${COMPREPLY[@]}\"";
    project.write("complete.sh", format!("PATH={dir}:$PATH\n{script}\n{ask}\n"));
    let output = std::process::Command::new("bash").arg("complete.sh").current_dir(project.root()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "login", "{output:?}");
}

#[test]
fn names_that_a_shell_would_execute_are_not_offered() {
    let project = Project::with(FLOW);
    for feature in ["x$(touch pwned)", "x`touch pwned`", "x;touch pwned", "x y", "--yes", "@"] {
        project.run(&["run", "flow.yaml", "--", feature]);
    }
    let runs = offered(&project, &["status", "x"]);
    assert!(runs.iter().all(|run| run.chars().all(char::is_alphanumeric)), "{runs:?}");
    assert!(!offered(&project, &["status", ""]).contains(&"@".to_owned()));
}
