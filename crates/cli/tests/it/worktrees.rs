//! Git worktrees of runs and tasks, with real git: which are kept, merged and removed.

use crate::project::Project;
use std::process::Command;

/// Runs git in a directory of the project, with its own settings.
fn git(project: &Project, folder: &str, arguments: &[&str]) -> String {
    let settings = ["-c", "user.name=tester", "-c", "user.email=tester@example.invalid", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").args(settings).args(arguments).current_dir(project.path(folder)).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A project in a repository with one commit, and git settings for all processes that Lockgate starts.
fn project(flow: &str) -> Project {
    let project = Project::with(flow);
    project.init_git();
    project.write(".gitignore", ".lockgate/\n");
    project.write("code.txt", "first\n");
    git(&project, "", &["add", "-A"]);
    git(&project, "", &["commit", "--quiet", "-m", "first"]);
    project
}

fn flow(run: &str) -> String {
    format!(
        "name: trees\nworktree: true\nphases:\n  - id: work\n    tasks:\n      - {{ id: change, run: {run:?} }}\n    checkpoint: {{ prompt: Good? }}\n"
    )
}

const COMMITS: &str =
    "echo second >> code.txt; git commit --quiet -am second; touch new-file; git add new-file; git commit -qm third";

/// A run that waits at its checkpoint.
fn waiting(flow: &str) -> (Project, String) {
    let project = project(flow);
    assert_eq!(project.run(&["run", "flow.yaml", "trees"]).code, Some(3));
    let run = project.newest();
    (project, run)
}

fn folder(run: &str) -> String {
    format!(".lockgate/worktrees/{run}")
}

fn branches(project: &Project) -> String {
    git(project, "", &["branch", "--list", "lockgate/*", "--format=%(refname:short)"])
}

#[test]
fn a_worktree_without_changes_is_removed_with_its_branch_when_the_run_succeeds() {
    let (project, run) = waiting(&flow("test -f code.txt"));
    assert!(project.path(&folder(&run)).join("code.txt").is_file(), "it is kept while the run waits");
    let view = project.status(&run);
    assert_eq!(view["worktrees"][0]["branch"], format!("lockgate/{run}"));
    assert_eq!((&view["worktrees"][0]["commits"], &view["worktrees"][0]["uncommitted"]), (&0.into(), &0.into()));
    let gone = project.run(&["db", "gc"]);
    assert!(project.path(&folder(&run)).is_dir(), "a run that is not over keeps its worktree: {gone:?}");
    let refused = project.run(&["worktrees", "remove", &run]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("error[run-not-ended]"), "{refused:?}");
    let done = project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.stderr.contains("worktree"), "{done:?}");
    assert!(!project.path(&folder(&run)).exists());
    assert_eq!(branches(&project), "");
    assert_eq!(project.json(0, &["worktrees", "--json"]), serde_json::json!([]));
}

#[test]
fn a_worktree_with_changes_is_kept_reported_and_merged() {
    let (project, run) = waiting(&flow(COMMITS));
    let done = project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]);
    let reported = format!("worktree {} on branch lockgate/{run}: 2 commits", folder(&run));
    assert!(done.stderr.contains(&reported), "{done:?}");
    assert!(done.stderr.contains(&format!("lockgate worktrees merge {run}")), "{done:?}");
    assert!(project.run(&["status", &run]).stdout.contains(&reported));
    assert!(project.run(&["summary", &run]).stdout.contains("## Worktrees\n\n- .lockgate/worktrees/"));
    assert!(project.run(&["worktrees"]).stdout.contains("2 commits"));
    let kept = project.run(&["db", "gc"]);
    assert!(kept.stderr.contains("it contains work"), "{kept:?}");
    assert_eq!(project.json(0, &["worktrees", "--json"])[0]["commits"], 2, "gc leaves it alone");
    let refused = project.run(&["worktrees", "remove", &run]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("error[work-would-be-lost]"), "{refused:?}");

    project.write("code.txt", "mine\n");
    let refused = project.run(&["worktrees", "merge", &run]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("error[uncommitted-changes]") && refused.stderr.contains("code.txt"), "{refused:?}");
    git(&project, "", &["checkout", "--quiet", "code.txt"]);

    project.write(&format!("{}/note.txt", folder(&run)), "not committed\n");
    let refused = project.run(&["worktrees", "merge", &run]);
    assert!(refused.stderr.contains("1 uncommitted file"), "{refused:?}");
    std::fs::remove_file(project.path(&folder(&run)).join("note.txt")).unwrap();

    let merged = project.run(&["worktrees", "merge", &run]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    assert_eq!(project.read("code.txt"), "first\nsecond\n");
    assert!(!project.path(&folder(&run)).exists());
    assert_eq!(branches(&project), "");
}

#[test]
fn a_merge_conflict_is_aborted_and_names_the_files() {
    let (project, run) = waiting(&flow(COMMITS));
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]).code, Some(0));
    project.write("code.txt", "other\n");
    git(&project, "", &["commit", "--quiet", "-am", "other"]);
    let before = git(&project, "", &["rev-parse", "HEAD"]);
    let refused = project.run(&["worktrees", "merge", &run]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("error[merge-conflict]") && refused.stderr.contains("in: code.txt"), "{refused:?}");
    assert_eq!(project.read("code.txt"), "other\n");
    assert_eq!(git(&project, "", &["status", "--porcelain"]), "");
    assert_eq!(git(&project, "", &["rev-parse", "HEAD"]), before);
    assert_eq!(project.json(0, &["worktrees", "--json"])[0]["commits"], 2);
    let removed = project.run(&["worktrees", "remove", &run, "--force"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert_eq!(branches(&project), "");
}

#[test]
fn a_task_worktree_branches_off_the_run_branch_and_is_named_by_its_address() {
    let own = "name: trees\nworktree: true\nvars: { parts: [a/b, c] }\nphases:\n  - id: work\n    tasks:\n      \
        - { id: first, run: 'echo run >> code.txt; git commit -qam run' }\n      \
        - { id: own, needs: [first], worktree: true, run: 'echo own > own.txt; git add own.txt; git commit -qm own' }\n      \
        - { id: each, needs: [first], worktree: true, for_each: parts, run: 'test -f code.txt; echo > left.txt' }\n";
    let project = project(own);
    let ended = project.run(&["run", "flow.yaml", "trees"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let run = project.newest();
    let trees = project.json(0, &["worktrees", &run, "--json"]);
    let reported: Vec<_> = trees.as_array().unwrap().iter().map(|tree| (tree["task"].clone(), tree["commits"].clone())).collect();
    let (each, one) = (|item: &str| format!("work/each[{item}]").into(), 1);
    assert_eq!(
        reported,
        [(serde_json::Value::Null, one.into()), (each("a_b"), 0.into()), (each("c"), 0.into()), ("work/own".into(), one.into())],
        "{trees:#}"
    );
    assert_eq!(trees[1]["uncommitted"], 1, "{trees:#}");
    let unknown = project.run(&["worktrees", "merge", &run, "nobody"]);
    assert_eq!(unknown.code, Some(4), "{unknown:?}");
    assert!(unknown.stderr.contains("error[worktree-not-found]") && unknown.stderr.contains("of work/own"), "{unknown:?}");
    assert_eq!(project.run(&["worktrees", "remove", &run, "work/each[a/b]", "--force"]).code, Some(0));
    assert_eq!(project.run(&["worktrees", "remove", &run, "each[c]", "--force"]).code, Some(0));
    assert_eq!(project.run(&["worktrees", "merge", &run, "own"]).code, Some(0));
    assert_eq!(project.read("own.txt"), "own\n");
    let left = project.json(0, &["worktrees", "--json"]);
    assert_eq!(left.as_array().unwrap().len(), 1, "{left:#}");
    assert_eq!(left[0]["commits"], 0, "its commits came with the branch of the task");
    assert_eq!(project.run(&["db", "gc"]).code, Some(0));
    assert_eq!(branches(&project), "");
}

#[test]
fn commits_on_a_detached_head_also_keep_the_worktree() {
    let (project, run) = waiting(&flow("git checkout --quiet --detach; echo x > x; git add x; git commit -qm x"));
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]).code, Some(0));
    assert_eq!(project.json(0, &["worktrees", &run, "--json"])[0]["commits"], 1);
}

#[test]
fn a_task_may_neither_merge_nor_remove_a_worktree() {
    let (project, run) = waiting(&flow(COMMITS));
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]).code, Some(0));
    let tries = format!(
        "\"$LOCKGATE\" --root {root} worktrees merge {run} 2>> {root}/stderr.txt || true; \"$LOCKGATE\" --root {root} worktrees remove {run} --force 2>> {root}/stderr.txt || true",
        root = project.root().display()
    );
    project.write("tries.yaml", format!("name: tries\nphases: [{{ id: a, tasks: [{{ id: t, run: {tries:?} }}] }}]\n"));
    assert_eq!(project.run(&["run", "tries.yaml"]).code, Some(0));
    assert_eq!(project.read("stderr.txt").matches("error[inside-task]").count(), 2, "{}", project.read("stderr.txt"));
    assert_eq!(project.json(0, &["worktrees", "--json"])[0]["commits"], 2);
    assert_eq!(project.events(&run, "attempt_refused").len(), 2);
}

#[test]
fn a_background_run_removes_its_worktrees() {
    let project = project(&flow("true").replace("    checkpoint: { prompt: Good? }\n", ""));
    assert_eq!(project.run(&["run", "flow.yaml", "trees", "--detach"]).code, Some(0));
    assert_eq!(project.run(&["wait", "trees"]).code, Some(0));
    crate::project::until("the worktree is gone", || branches(&project).is_empty());
}

#[test]
fn a_directory_unknown_to_git_is_kept() {
    let (project, run) = waiting(&flow("true"));
    std::fs::remove_file(project.path(&folder(&run)).join(".git")).unwrap();
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]).code, Some(0));
    assert_eq!(project.json(0, &["worktrees", &run, "--json"])[0]["uncommitted"], serde_json::Value::Null);
    assert_eq!(project.run(&["db", "gc"]).code, Some(0));
    let refused = project.run(&["worktrees", "remove", &run]);
    assert!(refused.stderr.contains("error[work-would-be-lost]"), "{refused:?}");
    assert!(project.path(&folder(&run)).join("code.txt").is_file());
    assert_eq!(project.run(&["worktrees", "remove", &run, "--force"]).code, Some(0));
    assert!(!project.path(&folder(&run)).exists());
    assert_eq!(branches(&project), "");
}

#[test]
fn a_checkpoint_shows_the_changes_of_the_run_and_is_bound_to_them() {
    let flow = "name: trees\nworktree: true\nphases:\n  - id: work\n    tasks: [{ id: change, run: echo second >> code.txt }]\n    \
         checkpoint: { prompt: Good?, show_files: [code.txt] }\n";
    let (project, run) = waiting(flow);
    let shown = &project.status(&run)["holds"][0]["files"];
    let path = format!("{}/code.txt", folder(&run));
    assert_eq!((shown.as_array().unwrap().len(), shown[0]["path"].as_str()), (1, Some(path.as_str())), "{shown}");
    project.write(&path, "first\nsomething else\n");
    let hold = project.waiting_hold();
    let output = project.run(&["answer", &hold, "Continue", "--foreground"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.contains("the shown content has changed"), "{output:?}");
}

#[test]
fn until_commands_run_in_the_worktree() {
    let flow = "name: trees\nworktree: true\nphases:\n  - id: work\n    tasks:\n      \
         - { id: make, run: echo x >> made.txt, until: { run: test $(wc -l < made.txt) -ge 2, limit: 3 } }\n    checkpoint: { prompt: Good? }\n";
    let (project, run) = waiting(flow);
    assert_eq!(project.read(&format!("{}/made.txt", folder(&run))), "x\nx\n");
}

#[test]
fn the_first_task_commits_in_its_worktree_and_not_in_the_root() {
    let flow = "name: trees\nworktree: true\nphases:\n  - id: work\n    tasks:\n      \
         - { id: change, commit: true, run: 'echo mine > mine.txt; echo theirs > \"$(git rev-parse --git-common-dir)/../theirs.txt\"' }\n    \
         checkpoint: { prompt: Good? }\n";
    let (project, run) = waiting(flow);
    assert_eq!(project.read("theirs.txt"), "theirs\n");
    assert_eq!(git(&project, "", &["log", "--format=%s", "main"]), "first\n", "the root's branch is left alone");
    assert_eq!(git(&project, "", &["status", "--porcelain", "theirs.txt"]), "?? theirs.txt\n");
    let changed = git(&project, "", &["diff", "--name-only", "main", &format!("lockgate/{run}")]);
    assert_eq!(changed, "mine.txt\n");
    assert_eq!(git(&project, &folder(&run), &["status", "--porcelain"]), "");
}

#[test]
fn tasks_with_similar_names_have_different_worktrees() {
    let long = "x".repeat(60);
    let task = |id: &str| format!("      - {{ id: {id}, worktree: true, run: 'test ! -e taken; touch taken' }}\n");
    let phase =
        |id: &str, tasks: &[&str]| format!("  - id: {id}\n    tasks:\n{}", tasks.iter().map(|id| task(id)).collect::<String>());
    let (one, two) = (format!("{long}1"), format!("{long}2"));
    let phases = [
        phase("a", &["b.c", "b_c"]),
        phase("z", &["b-c"]),
        phase("z-b", &["c"]),
        phase("long", &[&one, &two]),
        "  - id: list\n    tasks:\n      - { id: each, worktree: true, for_each: [c, 'c!', c_], run: 'test ! -e taken; touch taken' }\n"
            .to_owned(),
    ];
    let project = project(&format!("name: trees\nphases:\n{}", phases.concat()));
    let ended = project.run(&["run", "flow.yaml", "trees"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let run = project.newest();
    let listed = || -> std::collections::BTreeSet<String> {
        let trees = project.json(0, &["worktrees", &run, "--json"]);
        trees.as_array().unwrap().iter().map(|tree| tree["task"].as_str().unwrap().to_owned()).collect()
    };
    let mut expected: std::collections::BTreeSet<String> =
        ["a/b.c", "a/b_c", "z/b-c", "z-b/c", "list/each[c]", "list/each[c_]"].map(str::to_owned).into();
    expected.extend([format!("long/{one}"), format!("long/{two}")]);
    assert_eq!(listed(), expected);
    assert_eq!(branches(&project).lines().count(), 9);
    for task in ["z/b-c", "a/b.c", "list/each[c]"] {
        let removed = project.run(&["worktrees", "remove", &run, task, "--force"]);
        assert_eq!(removed.code, Some(0), "{removed:?}");
        expected.remove(task);
        assert_eq!(listed(), expected);
    }
}

#[test]
fn without_a_task_only_the_worktree_of_the_run_is_merged_or_removed() {
    let flow = "name: trees\nphases:\n  - id: work\n    tasks:\n      \
         - { id: own, worktree: true, run: 'echo own > own.txt; git add own.txt; git commit -qm own' }\n";
    let project = project(flow);
    assert_eq!(project.run(&["run", "flow.yaml", "trees"]).code, Some(0));
    let run = project.newest();
    for arguments in [&["worktrees", "remove", &run, "--force"][..], &["worktrees", "merge", &run]] {
        let refused = project.run(arguments);
        assert_eq!(refused.code, Some(4), "{refused:?}");
        assert!(refused.stderr.contains("error[worktree-not-found]") && refused.stderr.contains("of work/own"), "{refused:?}");
    }
    assert_eq!(project.json(0, &["worktrees", &run, "--json"])[0]["commits"], 1);
    assert_eq!(git(&project, "", &["log", "--format=%s", "main"]), "first\n");
}

#[test]
fn a_failing_hook_is_reported_with_its_output_and_reruns() {
    const HOOK: &str = ".git/hooks/post-checkout";
    let project = project(&flow("test -f prepared"));
    project.script(HOOK, "echo the license server is unreachable >&2\necho ask Ada >&2\nexit 3");
    let failed = project.run(&["run", "flow.yaml", "trees"]);
    let run = project.newest();
    let message = project.events(&run, "task_failed")[0]["failure"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("post-checkout") && !message.contains("Preparing worktree"), "{message}: {failed:?}");
    assert!(message.contains("the license server is unreachable") && message.contains("ask Ada"), "{message}");
    project.script(HOOK, "touch prepared");
    let resumed = project.run(&["resume", &run]);
    assert_eq!(resumed.code, Some(3), "{resumed:?}");
    assert!(project.path(&folder(&run)).join("prepared").is_file());
}

/// A driver is killed while git checks out a new worktree; the first process that `slow` starts takes long.
fn is_created_again_after_a_kill(prepare: impl FnOnce(&Project, &str)) {
    let project =
        project(&flow("cat a.txt b.txt code.txt z.txt prepared; echo made > made.txt; git add made.txt; git commit -qm made"));
    for name in ["a.txt", "b.txt", "z.txt", "prepared"] {
        project.write(name, name);
    }
    let state = project.root().join(".lockgate").to_string_lossy().into_owned();
    let slow = format!("if mkdir {state}/slow 2> {state}/null; then echo $$ > {state}/pid; sleep 20; fi");
    prepare(&project, &slow);
    git(&project, "", &["add", "-A"]);
    git(&project, "", &["commit", "--quiet", "-m", "more"]);
    let driver = project.start(&["run", "flow.yaml", "trees"]);
    crate::project::until("git checks out", || project.read(".lockgate/pid").ends_with('\n'));
    crate::project::signal(&driver, rustix::process::Signal::KILL);
    crate::project::finish(driver);
    let run = project.newest();
    let resumed = project.run(&["resume", &run, "--rerun"]);
    assert_eq!(resumed.code, Some(3), "{resumed:?}");
    assert!(!crate::project::lives(&project.read(".lockgate/pid")), "nothing runs alongside the new attempt");
    assert_eq!(git(&project, &folder(&run), &["status", "--porcelain"]), "");
    let changed = git(&project, "", &["diff", "--name-only", "main", &format!("lockgate/{run}")]);
    assert_eq!(changed, "made.txt\n");
    let ended = project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(git(&project, "", &["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_worktree_with_an_interrupted_checkout_is_recreated() {
    is_created_again_after_a_kill(|project, slow| {
        project.write(".gitattributes", "*.txt filter=slow\n");
        project.script(".lockgate/smudge", &format!("{slow}\ncat"));
        let smudge = project.root().join(".lockgate/smudge");
        git(project, "", &["config", "filter.slow.smudge", &smudge.to_string_lossy()]);
    });
}

#[test]
fn a_worktree_with_an_interrupted_hook_is_recreated() {
    is_created_again_after_a_kill(|project, slow| {
        std::fs::remove_file(project.path("prepared")).unwrap();
        project.write(".gitignore", ".lockgate/\nprepared\n");
        project.script(".git/hooks/post-checkout", &format!("{slow}\ntouch prepared"));
    });
}

#[test]
fn an_interrupt_while_git_creates_worktrees_stops_git_and_creates_no_more() {
    let flow = "name: trees\nphases:\n  - id: base\n    tasks:\n      \
         - { id: each, for_each: [a, b, c], worktree: true, run: 'test -f prepared' }\n";
    let project = project(flow);
    let state = project.root().join(".lockgate").to_string_lossy().into_owned();
    project
        .script(".git/hooks/post-checkout", &format!("echo $$ > {state}/pid; echo started >> {state}/started; exec sleep 1000"));
    let driver = project.start(&["run", "flow.yaml", "trees"]);
    crate::project::until("a hook", || project.read(".lockgate/pid").ends_with('\n'));
    crate::project::signal(&driver, rustix::process::Signal::INT);
    let ended = crate::project::finish(driver);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(!crate::project::lives(&project.read(".lockgate/pid")), "the hook is ended with git");
    assert_eq!(project.read(".lockgate/started"), "started\n", "the other worktrees are not started");
    project.script(".git/hooks/post-checkout", "touch prepared");
    let resumed = project.run(&["resume", &project.newest(), "--rerun"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(project.events(&project.newest(), "task_failed"), Vec::<serde_json::Value>::new());
}

#[test]
fn a_fork_starts_from_the_work_of_the_run_that_it_continues() {
    let flow = "name: trees\nworktree: true\nphases:\n  - id: base\n    tasks:\n      \
         - { id: base, run: 'echo base > base.txt; git add base.txt; git commit -qm base' }\n      \
         - { id: own, worktree: true, run: 'echo own > own.txt; git add own.txt; git commit -qm own' }\n  \
         - id: plan\n    tasks:\n      \
         - { id: database, blocking: false, decision: { question: Which?, options: [{ id: sqlite }, { id: postgres }] } }\n      \
         - { id: build, needs: [database], run: 'cat base.txt; echo {{outputs.plan.database.option}} > built.txt; git add built.txt; git commit -qm built' }\n";
    let project = project(flow);
    assert_eq!(project.run(&["run", "flow.yaml", "trees"]).code, Some(0));
    let parent = project.newest();
    let hold = project.events(&parent, "answered")[0]["hold"].as_str().unwrap().to_owned();
    let changed = project.json(0, &["change", &hold, "postgres", "--yes", "--json"]);
    let fork = changed["run"].as_str().unwrap();
    assert_ne!(fork, parent);
    git(&project, &folder(&parent), &["commit", "--quiet", "--allow-empty", "-m", "later"]);
    let resumed = project.run(&["resume", fork]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(project.read(&format!("{}/base.txt", folder(fork))), "base\n");
    assert_eq!(project.read(&format!("{}/built.txt", folder(fork))), "postgres\n");
    assert_eq!(project.read(&format!("{}/built.txt", folder(&parent))), "sqlite\n");
    let subjects = git(&project, "", &["log", "--format=%s", &format!("main..lockgate/{fork}")]);
    assert_eq!(subjects, "built\nbuilt\nbase\n", "what came after the fork is not in it");
    let trees = project.json(0, &["worktrees", fork, "--json"]);
    assert_eq!((&trees[1]["task"], &trees[1]["commits"]), (&"base/own".into(), &1.into()), "{trees:#}");
}

#[test]
fn git_environment_variables_do_not_reach_tasks() {
    let flow = "name: trees\nworktree: true\nphases:\n  - id: base\n    tasks:\n      \
         - { id: base, run: 'echo base > base.txt; git add -A; git commit -qm task' }\n";
    let project = project(flow);
    project.write("private.txt", "mine\n");
    let before = git(&project, "", &["rev-parse", "main"]);
    let root = project.root();
    let mut command = project.command(&["run", "flow.yaml", "trees"]);
    command.env("GIT_DIR", root.join(".git")).env("GIT_WORK_TREE", &root).env("GIT_INDEX_FILE", root.join(".git/index"));
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(git(&project, "", &["rev-parse", "main"]), before, "nothing is committed on the user's branch");
    let run = project.newest();
    assert_eq!(git(&project, "", &["diff", "--name-only", "main", &format!("lockgate/{run}")]), "base.txt\n");
}

#[test]
fn commits_on_a_detached_head_are_not_reported_as_merged() {
    let flow = "name: trees\nworktree: true\nphases:\n  - id: base\n    tasks:\n      \
         - { id: base, run: 'git checkout -q --detach; echo base > base.txt; git add base.txt; git commit -qm base' }\n";
    let project = project(flow);
    assert_eq!(project.run(&["run", "flow.yaml", "trees"]).code, Some(0));
    let run = project.newest();
    let merged = project.run(&["worktrees", "merge", &run]);
    assert_eq!(merged.code, Some(1), "{merged:?}");
    assert!(merged.stderr.contains(&format!("does not have its branch lockgate/{run} checked out")), "{}", merged.stderr);
    let path = folder(&run);
    let commit = git(&project, &path, &["rev-parse", "HEAD"]);
    git(&project, &path, &["switch", "--quiet", &format!("lockgate/{run}")]);
    git(&project, &path, &["merge", "--quiet", commit.trim()]);
    assert_eq!(project.run(&["worktrees", "merge", &run]).code, Some(0));
    assert_eq!(project.read("base.txt"), "base\n");
}

#[test]
fn a_worktree_with_work_that_git_was_told_to_overlook_is_kept() {
    for mark in ["--assume-unchanged", "--skip-worktree"] {
        let (project, run) = waiting(&flow(&format!("echo work > code.txt; git update-index {mark} code.txt")));
        let done = project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]);
        assert!(done.stderr.contains("1 uncommitted"), "{done:?}");
        assert_eq!(std::fs::read_to_string(project.path(&folder(&run)).join("code.txt")).unwrap(), "work\n");
    }
}
