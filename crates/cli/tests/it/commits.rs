//! `commit: true` with real git: only the changes of the task are committed, and the user's own changes stay untouched.

use crate::project::{Project, finish, until};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

/// A project in a repository with one commit, whose only phase has these tasks.
pub(crate) fn project(tasks: &[&str]) -> Project {
    let tasks: String = tasks.iter().map(|task| format!("      - {task}\n")).collect();
    let project = Project::with(&format!("name: commits\nphases:\n  - id: work\n    tasks:\n{tasks}"));
    project.init_git();
    project.write(".gitignore", ".lockgate/\nflow.yaml\n");
    project.write("lines.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    project.write("gone.txt", "x\n");
    project.git(&["add", "-A"]);
    project.git(&["commit", "--quiet", "-m", "first"]);
    project
}

/// A task `t` that runs a command.
pub(crate) fn task(command: &str) -> String {
    format!("{{ id: t, commit: true, run: {command:?} }}")
}

pub(crate) fn hook(project: &Project, name: &str, script: &str) {
    project.script(&format!(".git/hooks/{name}"), script);
}

/// The files of the last commit.
pub(crate) fn committed(project: &Project) -> String {
    project.git(&["show", "--name-only", "--format=", "HEAD"])
}

pub(crate) fn status(project: &Project) -> String {
    project.git(&["status", "--porcelain", "--untracked-files=all"])
}

/// The subjects of all commits, newest first.
pub(crate) fn subjects(project: &Project) -> Vec<String> {
    project.git(&["log", "--format=%s"]).lines().map(str::to_owned).collect()
}

/// Why the last attempt failed.
fn failure(project: &Project) -> String {
    let failed = project.events(&project.newest(), "task_failed");
    failed.last().unwrap()["failure"]["message"].as_str().unwrap().to_owned()
}

pub(crate) fn runs_well(project: &Project) {
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn earlier_uncommitted_lines_stay_uncommitted_in_a_file_that_the_task_changed() {
    let project = project(&[&task("sed -i 's/^9$/nine/' lines.txt; rm gone.txt; echo new > new.txt")]);
    project.write("lines.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    project.write("mine.txt", "mine\n");
    runs_well(&project);
    assert_eq!(project.git(&["show", "HEAD:lines.txt"]), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    assert_eq!(committed(&project), "gone.txt\nlines.txt\nnew.txt\n");
    assert_eq!(project.read("lines.txt"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    assert_eq!(status(&project), " M lines.txt\n?? mine.txt\n");
    assert_eq!(project.git(&["for-each-ref", "refs/lockgate"]), "", "nothing is left of the snapshots");
}

#[test]
fn changes_staged_by_the_user_stay_staged() {
    let project = project(&[&task("sed -i 's/^9$/nine/' lines.txt; echo new > new.txt; git add new.txt; echo more >> new.txt")]);
    project.write("lines.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    project.write("staged.txt", "staged\n");
    project.git(&["add", "lines.txt", "staged.txt"]);
    runs_well(&project);
    assert_eq!(committed(&project), "lines.txt\nnew.txt\n");
    assert_eq!(project.git(&["show", "HEAD:new.txt"]), "new\nmore\n");
    assert_eq!(status(&project), "M  lines.txt\nA  staged.txt\n");
    assert_eq!(project.git(&["show", ":lines.txt"]), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

#[test]
fn a_commit_is_refused_while_user_and_task_changes_cannot_be_separated() {
    for (file, before) in [("lines.txt", "one\n2\n3\n"), ("notes.txt", "untracked\n"), ("gone.txt", "y\n")] {
        let project = project(&[&task("sed -i 's/one/two/' lines.txt; echo more >> notes.txt; rm -f gone.txt")]);
        project.write("lines.txt", "0\n");
        project.write("notes.txt", "");
        project.git(&["add", "-A"]);
        project.git(&["commit", "--quiet", "-m", "second"]);
        if file == "notes.txt" {
            project.git(&["rm", "--quiet", "--cached", file]);
            project.git(&["commit", "--quiet", "-m", "third"]);
        }
        project.write(file, before);
        let head = project.git(&["rev-parse", "HEAD"]);
        let output = project.run(&["run", "flow.yaml"]);
        assert_ne!(output.code, Some(0), "{file}: {output:?}");
        let why = failure(&project);
        assert!(
            why.contains("cannot be committed") && why.contains(file) && why.contains("commit these files yourself"),
            "{why}"
        );
        assert_eq!(project.git(&["rev-parse", "HEAD"]), head, "{file}");
        project.git(&["add", "-A"]);
        project.git(&["commit", "--quiet", "-m", "by hand"]);
        let resumed = project.run(&["resume", &project.newest()]);
        assert_eq!(resumed.code, Some(0), "{file}: {resumed:?}");
        assert!(!status(&project).contains(file), "{file}: {}", status(&project));
    }
}

#[test]
fn changes_of_failed_attempts_are_committed_and_user_changes_between_them_are_not() {
    let project = project(&[&task(
        "echo $LOCKGATE_ATTEMPT >> tries.txt; echo $LOCKGATE_ATTEMPT > try-$LOCKGATE_ATTEMPT.txt; test -e ready",
    )]);
    assert_ne!(project.run(&["run", "flow.yaml"]).code, Some(0));
    project.write("ready", "");
    project.write("lines.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let resumed = project.run(&["resume", &project.newest()]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(committed(&project), "tries.txt\ntry-1.txt\ntry-2.txt\n");
    assert_eq!(project.git(&["show", "HEAD:tries.txt"]), "1\n2\n");
    assert_eq!(status(&project), " M lines.txt\n?? ready\n");
}

#[test]
fn parallel_tasks_commit_only_their_own_changes() {
    let work = |id: &str| format!("{{ id: {id}, commit: true, run: 'echo 1 > {id}-1; sleep 0.2; echo 2 > {id}-2' }}");
    let half = "{ id: half, run: 'echo 1 > half-1; sleep 0.4; echo 2 > half-2' }";
    let project = project(&[&work("a"), half, &work("b"), &work("c")]);
    runs_well(&project);
    for commit in project.git(&["log", "--format=%H %s", "--max-count=3"]).lines() {
        let (commit, subject) = commit.split_once(' ').unwrap();
        let id = subject.strip_prefix("work/").unwrap().split(':').next().unwrap().to_owned();
        let files = project.git(&["show", "--name-only", "--format=", commit]);
        assert_eq!(files, format!("{id}-1\n{id}-2\n"), "{subject}");
    }
    assert_eq!(subjects(&project).len(), 4);
    assert_eq!(status(&project), "?? half-1\n?? half-2\n");
}

#[test]
fn parallel_runs_commit_only_their_own_changes() {
    let project = project(&[&task("echo 1 > $LOCKGATE_RUN-1; sleep 0.3; echo 2 > $LOCKGATE_RUN-2")]);
    let runs = [0, 1].map(|_| project.start(&["run", "flow.yaml"]));
    for output in runs.map(finish) {
        assert_eq!(output.code, Some(0), "{output:?}");
    }
    for commit in ["HEAD", "HEAD^"] {
        let files = project.git(&["show", "--name-only", "--format=", commit]);
        let runs: Vec<&str> = files.lines().map(|file| file.rsplit_once('-').unwrap().0).collect();
        assert!(runs.len() == 2 && runs[0] == runs[1], "{files}");
    }
    assert_eq!(status(&project), "");
}

#[test]
fn the_hooks_of_the_repository_run_and_may_refuse_and_change_files() {
    let project = project(&[&task("printf 'new  \\n' > new.txt; echo kept > kept.txt")]);
    hook(
        &project,
        "pre-commit",
        "sed -i 's/ *$//' new.txt; git add new.txt; test -e allowed || { echo Ada must allow it >&2; exit 1; }",
    );
    hook(&project, "commit-msg", "echo 'Signed-off-by: hook' >> \"$1\"");
    project.write("lines.txt", "one\n");
    assert_ne!(project.run(&["run", "flow.yaml"]).code, Some(0));
    assert!(failure(&project).contains("Ada must allow it"), "{}", failure(&project));
    assert_eq!(subjects(&project), ["first"]);
    assert_eq!(status(&project), " M lines.txt\n?? kept.txt\n?? new.txt\n", "nothing is left staged");
    project.write("allowed", "");
    let resumed = project.run(&["resume", &project.newest()]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(project.git(&["show", "HEAD:new.txt"]), "new\n", "as the hook changed it");
    assert!(project.git(&["log", "--format=%B", "--max-count=1"]).contains("Signed-off-by: hook"));
    assert_eq!(status(&project), " M lines.txt\n?? allowed\n");
}

#[test]
fn hooks_can_be_skipped_by_the_task_or_the_settings() {
    let flow = |how: &str| format!("{{ id: t, commit: {how}, run: 'echo new > new.txt' }}");
    let refusing = |how: &str| {
        let project = project(&[&flow(how)]);
        for name in ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"] {
            hook(&project, name, "echo ran >> .lockgate/hooks; exit 1");
        }
        project
    };
    let by_task = refusing("{ hooks: false }");
    runs_well(&by_task);
    let by_settings = refusing("true");
    let settings = by_settings.read(".lockgate/config.yaml");
    by_settings.write(".lockgate/config.yaml", format!("{settings}commit: {{ hooks: false }}\n"));
    runs_well(&by_settings);
    for project in [by_task, by_settings] {
        assert_eq!(committed(&project), "new.txt\n");
        assert!(!project.path(".lockgate/hooks").exists());
    }
}

#[test]
fn commit_messages_are_templates_from_the_task_or_the_settings() {
    let project = project(&[
        "{ id: a, name: Write a, commit: { message: 'fix({{phase.id}}): {{task.name}}' }, run: 'echo a > a.txt' }",
        "{ id: b, name: Write b, needs: a, commit: true, run: 'echo b > b.txt' }",
    ]);
    let settings = project.read(".lockgate/config.yaml");
    project.write(
        ".lockgate/config.yaml",
        format!("{settings}commit: {{ message: \"feat: {{{{task.name}}}}\\n\\nRun {{{{run}}}}\" }}\n"),
    );
    runs_well(&project);
    assert_eq!(subjects(&project), ["feat: Write b", "fix(work): Write a", "first"]);
    assert!(project.git(&["log", "--format=%b", "--max-count=1"]).contains(&format!("Run {}", project.newest())));
}

#[test]
fn problems_that_prevent_a_commit_are_reported_before_the_task_starts() {
    let refused = |prepare: &dyn Fn(&Project), said: &str| {
        let project = project(&[&task("touch started")]);
        prepare(&project);
        assert_ne!(project.run(&["run", "flow.yaml"]).code, Some(0));
        let why = failure(&project);
        assert!(why.contains(said), "{why}");
        assert!(!project.path("started").exists());
    };
    refused(
        &|project| {
            project.git(&["config", "--unset", "user.name"]);
            project.git(&["config", "--unset", "user.email"]);
            project.git(&["config", "user.useConfigOnly", "true"]);
        },
        "git has no identity to commit with; set one with `git config user.name",
    );
    refused(
        &|project| {
            let head = project.git(&["rev-parse", "HEAD"]);
            project.write(".git/MERGE_HEAD", head);
        },
        "a merge is in progress",
    );
}

#[test]
fn a_missing_signing_key_is_reported_and_nothing_is_lost() {
    let project = project(&[&task("echo new > new.txt")]);
    project.git(&["config", "commit.gpgsign", "true"]);
    project.git(&["config", "gpg.program", "/bin/false"]);
    assert_ne!(project.run(&["run", "flow.yaml"]).code, Some(0));
    assert!(failure(&project).contains("gpg failed to sign"), "{}", failure(&project));
    project.git(&["config", "commit.gpgsign", "false"]);
    assert_eq!(project.run(&["resume", &project.newest()]).code, Some(0));
    assert_eq!(committed(&project), "new.txt\n");
}

#[test]
fn a_repository_that_disappears_fails_the_task() {
    let project = project(&[&task("rm -rf .git; echo new > new.txt")]);
    assert_ne!(project.run(&["run", "flow.yaml"]).code, Some(0));
    assert!(failure(&project).contains("cannot be committed"), "{}", failure(&project));
}

#[test]
fn every_kind_of_change_and_file_name_is_committed() {
    let make = "rm -r folder; echo file > folder; rm plain; mkdir plain; echo inside > plain/inside; chmod +x tool; ln -sf gone.txt link; \
        printf x > \"$(printf 'n\\377me')\"; echo y > 'with space\"and\\quote'; echo z > :magic; printf '\\000bin' > binary; echo ignored > flow.yaml.bak";
    let project = project(&[&task(make)]);
    project.write("folder/inside", "x\n");
    project.write("plain", "x\n");
    project.write("tool", "#!/bin/sh\n");
    std::os::unix::fs::symlink("lines.txt", project.path("link")).unwrap();
    project.write(".gitignore", ".lockgate/\nflow.yaml*\n");
    project.git(&["add", "-A"]);
    project.git(&["commit", "--quiet", "-m", "second"]);
    runs_well(&project);
    assert_eq!(status(&project), "");
    let listed =
        std::process::Command::new("git").args(["ls-tree", "-r", "-z", "HEAD"]).current_dir(project.root()).output().unwrap();
    let listed: Vec<&[u8]> = listed.stdout.split(|byte| *byte == 0).collect();
    let has = |mode: &str, name: &[u8]| {
        let found = listed.iter().any(|line| line.starts_with(mode.as_bytes()) && line.ends_with(&[b"\t", name].concat()));
        assert!(found, "{mode} {:?}", std::ffi::OsStr::from_bytes(name));
    };
    for (mode, name) in [("100644", &b"folder"[..]), ("100644", b"plain/inside"), ("100755", b"tool"), ("120000", b"link")] {
        has(mode, name);
    }
    for name in [&b"n\xffme"[..], b"with space\"and\\quote", b":magic", b"binary"] {
        has("100644", name);
    }
    assert_eq!(subjects(&project), ["work/t: t", "second", "first"]);
}

#[test]
fn commits_made_by_the_agent_or_the_user_meanwhile_are_left_unchanged() {
    let project = project(&[&task(
        "echo by-agent > agent.txt; git add agent.txt; git commit -qm agent; echo rest > rest.txt; touch waiting; until test -e go; do sleep 0.02; done; rm waiting go",
    )]);
    let driver = project.start(&["run", "flow.yaml"]);
    until("the agent's commit", || project.path("waiting").exists());
    project.write("gone.txt", "by the user\n");
    project.git(&["commit", "--quiet", "-am", "user"]);
    project.write("go", "");
    let output = finish(driver);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(subjects(&project), ["work/t: t", "user", "agent", "first"]);
    assert_eq!(committed(&project), "rest.txt\n");
    assert_eq!((status(&project), project.git(&["show", "HEAD:gone.txt"])), (String::new(), "by the user\n".into()));
}

#[test]
fn only_files_under_the_root_are_committed() {
    let project = Project::with(
        "name: c\nphases: [{ id: w, tasks: [{ id: t, run: 'echo in > in.txt; echo out > \"$OUTSIDE/out.txt\"', env: { OUTSIDE: '{{vars.outside}}' }, commit: true }] }]\n",
    );
    let inner = project.path("inner");
    std::fs::create_dir_all(&inner).unwrap();
    project.init_git();
    project.write("first.txt", "first\n");
    project.git(&["add", "first.txt"]);
    project.git(&["commit", "--quiet", "-m", "first"]);
    for name in [".lockgate", "flow.yaml"] {
        std::fs::rename(project.path(name), inner.join(name)).unwrap();
    }
    let mut command = project.command(&["run", "flow.yaml", "--var", &format!("outside={}", project.root().display())]);
    let output = command.current_dir(&inner).stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(committed(&project), "inner/in.txt\n");
    assert_eq!(project.read("out.txt"), "out\n");
}

#[test]
fn commits_are_created_only_for_tasks_that_request_them() {
    let project = Project::with(
        "
name: commits
phases:
  - id: work
    tasks:
      - { id: first, name: Write it, run: 'echo 1 > one.txt', commit: true }
      - { id: nothing, needs: [first], pass: true, commit: true }
",
    );
    let git = |arguments: &[&str]| project.git(arguments);
    project.init_git();
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    assert_eq!(git(&["log", "--format=%s"]), "work/first: Write it\n");
    assert!(!git(&["ls-files"]).contains(".lockgate"), "{}", git(&["ls-files"]));
    let finished = project.events(&project.newest(), "task_finished");
    assert_eq!(finished[0]["commit"].as_str().unwrap(), git(&["rev-parse", "--short", "HEAD"]).trim());
    assert!(finished[1]["commit"].is_null());
}

#[test]
fn commits_work_when_the_lockgate_directory_is_ignored() {
    let project = Project::with("name: c\nphases: [{ id: w, tasks: [{ id: t, run: 'echo 1 > one.txt', commit: true }] }]\n");
    project.write(".gitignore", ".lockgate\n");
    project.init_git();
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(project.events(&project.newest(), "task_finished")[0]["commit"].is_string());
}

#[test]
fn only_changes_of_the_task_are_committed() {
    let project =
        Project::with("name: c\nphases: [{ id: w, tasks: [{ id: t, run: 'echo 1 > one.txt; rm gone.txt', commit: true }] }]\n");
    let git = |arguments: &[&str]| project.git(arguments);
    project.init_git();
    project.write("gone.txt", "x");
    git(&["add", "gone.txt"]);
    git(&["commit", "-qm", "first"]);
    project.write("secret key.txt", "mine");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    let committed = git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(committed, "gone.txt\none.txt\n");
    assert!(git(&["status", "--porcelain"]).contains("?? \"secret key.txt\""), "changes of others stay uncommitted");
}

#[test]
fn other_commits_made_while_hooks_run_are_neither_lost_nor_mixed_in() {
    let by_hook = project(&[&task("echo new > new.txt")]);
    hook(
        &by_hook,
        "post-commit",
        "test -e .git/once && exit; touch .git/once; echo log >> changelog.txt; git add changelog.txt; git commit -qm changelog",
    );
    runs_well(&by_hook);
    assert_eq!(subjects(&by_hook), ["changelog", "work/t: t", "first"]);
    assert_eq!(status(&by_hook), "");

    for name in ["pre-commit", "post-commit"] {
        let project = project(&[&task("echo new > new.txt")]);
        hook(&project, name, "test -e .git/slow && exit; touch .git/slow; until test -e .git/go; do sleep 0.02; done");
        let driver = project.start(&["run", "flow.yaml"]);
        until("the hook", || project.path(".git/slow").exists());
        project.write("user.txt", "user\n");
        let add = std::process::Command::new("git").args(["add", "user.txt"]).current_dir(project.root()).output().unwrap();
        assert!(String::from_utf8_lossy(&add.stderr).contains("index.lock"), "the index is locked as git does it: {add:?}");
        // A commit is still possible with a separate index, as some tools use.
        let tree = project.git(&["rev-parse", "HEAD^{tree}"]);
        let commit = project.git(&["commit-tree", tree.trim(), "-p", "HEAD", "-m", "user"]);
        project.git(&["update-ref", "HEAD", commit.trim()]);
        project.write(".git/go", "");
        let output = finish(driver);
        assert_eq!(output.code, Some(0), "{name}: {output:?}");
        let mut made = subjects(&project);
        made.sort();
        assert_eq!(made, ["first", "user", "work/t: t"], "{name}");
        assert_eq!(status(&project), "?? user.txt\n", "{name}");
    }
}

#[test]
fn previously_ignored_files_are_not_committed() {
    let project = project(&[&task("echo build > .gitignore; rm -rf nested/.git; mv folder moved; echo new > new.txt")]);
    project.write(".gitignore", ".lockgate/\nflow.yaml\nsecret.env\nignored/\n");
    project.git(&["commit", "--quiet", "-am", "second"]);
    for name in ["secret.env", "ignored/a", "ignored/deep/b", "nested/n", "folder/user"] {
        project.write(name, "mine\n");
    }
    project.git(&["init", "--quiet", "nested"]);
    // File timestamps have a resolution of a few milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(50));
    runs_well(&project);
    assert_eq!(committed(&project), ".gitignore\nnew.txt\n");
}

#[test]
fn changes_of_a_failed_attempt_that_the_user_reverted_are_not_committed() {
    let script = "if test -e .lockgate/second; then sed -i 's/.*/second/' lines.txt; else touch .lockgate/second junk.txt; sed -i 's/.*/first/' lines.txt; exit 1; fi";
    let project = project(&[&task(script)]);
    assert_ne!(project.run(&["run", "flow.yaml"]).code, Some(0));
    project.git(&["checkout", "--quiet", "--", "lines.txt"]);
    project.git(&["clean", "--quiet", "--force"]);
    let resumed = project.run(&["resume", &project.newest()]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(committed(&project), "lines.txt\n");
    assert_eq!(status(&project), "");
}

#[test]
fn commits_work_with_any_branch_name_and_index_mode() {
    let project = project(&[&task("echo new > new.txt")]);
    project.git(&["checkout", "--quiet", "-b", "we]ird"]);
    std::fs::set_permissions(project.path(".git/index"), std::fs::Permissions::from_mode(0o664)).unwrap();
    runs_well(&project);
    // Git itself would rewrite it with another mode.
    assert_eq!(project.path(".git/index").metadata().unwrap().permissions().mode() & 0o777, 0o664);
    assert_eq!((status(&project), committed(&project)), (String::new(), "new.txt\n".to_owned()));
    assert!(project.events(&project.newest(), "task_finished")[0]["commit"].is_string());
}

#[test]
fn new_files_next_to_ignored_ones_are_committed_and_moved_ignored_files_are_not() {
    let project = project(&[&task("git mv gone.txt cache/moved.txt; echo new > cache/new.txt; mv secret.env secret.txt")]);
    project.write(".gitignore", ".lockgate/\nflow.yaml\n*.pyc\n*.env\n");
    project.git(&["commit", "--quiet", "-am", "second"]);
    project.write("cache/a.pyc", "x");
    project.write("secret.env", "mine\n");
    runs_well(&project);
    assert_eq!(committed(&project), "cache/moved.txt\ncache/new.txt\n", "git reports a renamed file by its new name");
    assert_eq!(status(&project), "?? secret.txt\n");
}

#[test]
fn a_change_in_the_same_second_and_of_the_same_size_is_committed() {
    // Git compares times in whole seconds.
    let project = project(&[&task("printf aaaa > f; git add f; git commit -qm own; printf bbbb > f; sleep 1.1")]);
    runs_well(&project);
    assert_eq!((project.git(&["show", "HEAD:f"]), status(&project)), ("bbbb".to_owned(), String::new()));
}
