//! Printed commands work when they are pasted into a shell.

use crate::project::{Output, Project};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// The commands in a text: from `lockgate` to the end of the line or of the code span.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some(at) = rest.find("lockgate ") {
            let in_code = rest[..at].ends_with('`');
            let command = &rest[at..];
            let end = if in_code { command.find('`').unwrap_or(command.len()) } else { command.len() };
            // A mere mention of the program is not a command.
            if in_code || rest[..at].trim_end().ends_with(':') || rest[..at].trim().is_empty() {
                found.push(command[..end].trim().to_owned());
            }
            rest = &command[end..];
        }
    }
    found.sort();
    found.dedup();
    found
}

fn copied(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// Pastes a command into each shell, in a copy of the project, and returns the outputs.
fn pasted(project: &Project, command: &str) -> Vec<(String, Output)> {
    let shells = ["sh", "bash", "zsh"];
    let there =
        shells.into_iter().filter(|shell| Command::new(shell).args(["-c", "true"]).status().is_ok_and(|code| code.success()));
    there
        .map(|shell| {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("project");
            copied(&project.root(), &root);
            symlink(crate::project::program(), folder.path().join("lockgate")).unwrap();
            let mut run = Command::new(shell);
            run.args(["-c", command]).current_dir(&root).env_clear().env("USER", "tester");
            run.env("PATH", format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap()));
            crate::project::without_terminal(&mut run);
            let output = run.stdin(std::process::Stdio::null()).output().unwrap();
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            let (stdout, stderr) = (text(output.stdout), text(output.stderr));
            (shell.to_owned(), Output { code: output.status.code(), stdout, stderr })
        })
        .collect()
}

/// Pastes all commands in these texts. None may be misread or refer to something that does not exist.
fn all_work(project: &Project, texts: &[String]) -> Vec<String> {
    let found: Vec<String> = texts.iter().flat_map(|text| commands(text)).collect();
    for command in &found {
        for (shell, output) in pasted(project, command) {
            let wrong = [
                "invalid-usage",
                "no-such-",
                "ambiguous",
                "revision-required",
                "no matches found",
                "unexpected argument",
                "Usage:",
            ];
            let said = wrong.iter().find(|wrong| output.stderr.contains(**wrong));
            assert!(said.is_none() && output.code != Some(127), "{shell}: {command}: {output:?}");
        }
    }
    found
}

fn reported(project: &Project, commands: &[&[&str]]) -> Vec<String> {
    let run = |command: &&[&str]| {
        let output = project.run(command);
        format!("{}\n{}", output.stdout, output.stderr)
    };
    commands.iter().map(run).collect()
}

#[test]
fn printed_answer_commands_work_when_pasted() {
    let project = Project::on_sqlite();
    project.write("page.md", "page\n");
    project.write(
        "flow.yaml",
        "
name: flow
phases:
  - id: build
    tasks: [{ id: make, run: 'true' }]
    checkpoint: { show_files: [page.md], verify: { built: the page } }
",
    );
    let first = project.run(&["run", "flow.yaml", "it's [new]"]);
    assert_eq!(first.code, Some(3), "{first:?}");
    let (run, hold) = (project.newest(), project.waiting_hold());
    let bare = hold.split('@').next().unwrap().to_owned();
    let mut texts = reported(
        &project,
        &[
            &["why", &run],
            &["status", &run],
            &["inbox"],
            &["agent", "handover", &run],
            &["answer", &hold, "lgtm", "--no-resume"],
            &["answer", &bare, "approved", "--no-resume"],
            &["change", &bare, "issues"],
            &["agent", "continuation", &run],
        ],
    );
    texts.push(first.stderr);
    let found = all_work(&project, &texts);
    assert!(found.contains(&format!("lockgate answer {hold} issues --feedback lgtm")), "{found:?}");
    assert!(found.iter().any(|command| command.contains(&format!("{hold} abort"))), "{found:?}");
}

#[test]
fn printed_commands_about_failed_items_work_when_pasted() {
    let project = Project::on_sqlite();
    project.write(
        "flow.yaml",
        "
name: flow
phases:
  - id: p
    tasks: [{ id: try, for_each: [fast, 'a b*'], run: 'false' }]
",
    );
    let first = project.run(&["run", "flow.yaml"]);
    assert_eq!(first.code, Some(1), "{first:?}");
    let run = project.newest();
    let mut texts = reported(
        &project,
        &[
            &["why", &run],
            &["status", &run],
            &["inbox"],
            &["log", &run],
            &["skip", &run, "p/none", "--reason", "x", "--no-resume"],
        ],
    );
    texts.push(first.stderr);
    let found = all_work(&project, &texts);
    assert!(found.iter().any(|command| command.starts_with(&format!("lockgate skip {run} 'p/try[fast]'"))), "{found:?}");
}

#[test]
fn printed_commands_about_task_worktrees_work_when_pasted() {
    let project = Project::on_sqlite();
    project.init_git();
    project.write(".gitignore", ".lockgate/\n");
    project.git(&["add", "-A"]);
    project.git(&["commit", "--quiet", "-m", "first"]);
    project.write(
        "flow.yaml",
        "
name: flow
phases:
  - id: p
    tasks: [{ id: try, for_each: [fast, slow], worktree: true, run: 'echo {{item}} > {{item}}.txt && git add . && git -c user.name=a -c user.email=b@c commit -qm {{item}}' }]
",
    );
    let first = project.run(&["run", "flow.yaml"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let run = project.newest();
    let texts = vec![first.stderr, reported(&project, &[&["worktrees", "remove", &run, "p/try[fast]"]]).remove(0)];
    let merges: Vec<String> = commands(&texts[0]).into_iter().filter(|command| command.contains("worktrees merge")).collect();
    assert_eq!(merges.len(), 2, "{texts:?}");
    assert!(merges.iter().all(|command| command.contains("'p/try[")), "{merges:?}");
    assert!(
        commands(&texts[1]).iter().any(|command| command.contains("worktrees merge") && command.contains("'p/try[fast]'")),
        "{texts:?}"
    );
}

#[test]
fn printed_commands_after_a_definition_change_work_when_pasted() {
    let project = Project::on_sqlite();
    let flow = "name: flow\nphases: [{ id: a, checkpoint: { prompt: Good? } }, { id: b, tasks: [{ id: t, run: 'true' }] }]\n";
    project.write("flow.yaml", flow);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let run = project.newest();
    project.write("flow.yaml", flow.replace("id: a,", "id: other,"));
    let texts = reported(
        &project,
        &[
            &["resume", &run],
            &["resume", &run, "--changed", "accept"],
            &["pipeline", "review", &run, "--verdict", "ship", "--p0", "0", "--p1", "0"],
        ],
    );
    let found = all_work(&project, &texts);
    assert!(found.contains(&format!("lockgate resume {run} --changed keep")), "{found:?}\n{texts:?}");
}
