//! Commits that are interrupted by a kill, Ctrl+C or hanging hooks: nothing is lost, and the repository stays consistent.

use crate::commits::{committed, hook, project, status, subjects, task};
use crate::project::{Project, finish, lives, signal, until};
use rustix::process::Signal;

#[test]
fn files_of_a_killed_attempt_are_committed_with_the_next_one() {
    let project =
        project(&[&task("echo $LOCKGATE_ATTEMPT > try-$LOCKGATE_ATTEMPT.txt; test $LOCKGATE_ATTEMPT = 2 || sleep 1000")]);
    let driver = project.start(&["run", "flow.yaml"]);
    until("the first attempt", || project.read("try-1.txt") == "1\n");
    signal(&driver, Signal::KILL);
    finish(driver);
    let resumed = project.run(&["resume", &project.newest(), "--rerun"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(committed(&project), "try-1.txt\ntry-2.txt\n");
    assert_eq!(status(&project), "");
}

#[test]
fn a_kill_while_a_hook_runs_leaves_neither_the_hook_nor_a_lock_behind() {
    let project = project(&[&task("echo new > new.txt")]);
    hook(&project, "pre-commit", "test -e .lockgate/again && exit 0; echo $$ > .lockgate/pid; exec sleep 1000");
    let driver = project.start(&["run", "flow.yaml"]);
    until("the hook", || project.read(".lockgate/pid").ends_with('\n'));
    signal(&driver, Signal::KILL);
    finish(driver);
    project.write(".lockgate/again", "");
    let resumed = project.run(&["resume", &project.newest(), "--rerun"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(!lives(&project.read(".lockgate/pid")));
    assert_eq!((subjects(&project), status(&project)), (vec!["work/t: t".to_owned(), "first".to_owned()], String::new()));
}

#[test]
fn changes_staged_during_a_commit_stay_staged() {
    let flow = "sed -i 's/^9$/nine/' lines.txt; echo $LOCKGATE_ATTEMPT > new.txt; test -e .lockgate/ready";
    let project = project(&[&task(flow)]);
    assert_ne!(project.run(&["run", "flow.yaml"]).code, Some(0));
    let worked = project.read("lines.txt");
    project.write("lines.txt", worked.replace("1\n2", "only staged\n2"));
    project.git(&["add", "lines.txt"]);
    project.write("lines.txt", worked);
    project.write(".lockgate/ready", "");
    hook(&project, "pre-commit", "test -e .lockgate/again && exit 0; echo $$ > .lockgate/pid; exec sleep 1000");
    let driver = project.start(&["resume", &project.newest()]);
    until("the hook", || project.read(".lockgate/pid").ends_with('\n'));
    signal(&driver, Signal::KILL);
    finish(driver);
    project.write(".lockgate/again", "");
    let resumed = project.run(&["resume", &project.newest(), "--rerun"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(project.git(&["show", ":lines.txt"]), "only staged\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    assert_eq!(project.git(&["show", "HEAD:lines.txt"]), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

#[test]
fn a_kill_after_the_commit_leaves_a_matching_index_regardless_of_the_task_outcome() {
    let project = project(&[&task("echo new > new.txt; rm gone.txt")]);
    hook(&project, "post-commit", "echo $$ > .lockgate/pid; exec sleep 1000");
    let driver = project.start(&["run", "flow.yaml"]);
    until("the hook", || project.read(".lockgate/pid").ends_with('\n'));
    signal(&driver, Signal::KILL);
    finish(driver);
    // A person is asked about the interrupted attempt, and answers that it is done.
    assert_eq!(project.run(&["resume", &project.newest()]).code, Some(3));
    assert_eq!(status(&project), "", "nothing appears staged or reverted");
    assert_eq!(committed(&project), "gone.txt\nnew.txt\n");
    let done = project.run(&["answer", &project.waiting_hold(), "Count as done", "--foreground"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(project.git(&["for-each-ref", "refs/lockgate"]), "", "no snapshot is left");
}

#[test]
fn programs_started_by_git_for_a_snapshot_end_with_the_run() {
    let project = project(&[&task("echo new > new.txt")]);
    project.write(".gitattributes", "*.slow filter=slow\n");
    project.write("a.slow", "a\n");
    project.git(&["add", "-A"]);
    project.git(&["commit", "--quiet", "-m", "second"]);
    project.git(&["config", "filter.slow.clean", "echo $$ > .lockgate/pid; exec sleep 1000"]);
    project.write("a.slow", "changed\n");
    for kill in [Signal::INT, Signal::KILL] {
        let driver = project.start(&["run", "flow.yaml"]);
        until("the filter", || project.read(".lockgate/pid").ends_with('\n'));
        signal(&driver, kill);
        finish(driver);
        let pid = project.read(".lockgate/pid");
        if kill == Signal::KILL {
            project.run(&["resume", &project.newest()]);
        }
        assert!(!lives(&pid), "{kill:?}");
        std::fs::remove_file(project.path(".lockgate/pid")).unwrap();
    }
}

#[test]
fn stopping_after_the_commit_leaves_a_matching_index() {
    let run = |how: Signal, prepare: &dyn Fn(&Project)| {
        let project = project(&[&task("echo new > new.txt; rm gone.txt; echo 10 >> lines.txt")]);
        hook(&project, "pre-commit", "echo formatted >> lines.txt; git add lines.txt");
        hook(&project, "post-commit", "echo $$ > .lockgate/pid; exec sleep 1000");
        let driver = project.start(&["run", "flow.yaml"]);
        until("the hook", || project.read(".lockgate/pid").ends_with('\n'));
        signal(&driver, how);
        finish(driver);
        prepare(&project);
        project.run(&["resume", &project.newest()]);
        assert_eq!(status(&project), "", "{how:?}");
        assert_eq!(committed(&project), "gone.txt\nlines.txt\nnew.txt\n");
    };
    run(Signal::INT, &|_| {});
    run(Signal::KILL, &|_| {});
    // As git advises when it finds a stale lock.
    run(Signal::KILL, &|project| std::fs::remove_file(project.path(".git/index.lock")).unwrap());
    run(Signal::KILL, &|project| {
        std::fs::remove_file(project.path(".git/index.lock")).unwrap();
        status(project);
    });
    run(Signal::KILL, &|project| drop(project.run(&["cancel", &project.newest()])));
}

/// A run that was killed during a commit hook, which keeps running until the file `go` exists.
fn killed_in_a_hook() -> Project {
    let project = project(&[&task("echo new > new.txt; echo 10 >> lines.txt")]);
    hook(
        &project,
        "pre-commit",
        "test -e .lockgate/pid && exit 0; echo $$ > .lockgate/pid; until test -e .lockgate/go; do sleep 0.02; done",
    );
    let driver = project.start(&["run", "flow.yaml"]);
    until("the hook", || project.read(".lockgate/pid").ends_with('\n'));
    signal(&driver, Signal::KILL);
    finish(driver);
    project
}

#[test]
fn another_run_finishes_a_commit_that_a_killed_run_left_behind() {
    let project = killed_in_a_hook();
    let first = project.newest();
    project.write(
        "other.yaml",
        "name: other\nphases: [{ id: p, tasks: [{ id: o, commit: true, run: 'echo other > other.txt' }] }]\n",
    );
    let other = project.run(&["run", "other.yaml"]);
    assert_eq!(other.code, Some(0), "{other:?}");
    assert!(!lives(&project.read(".lockgate/pid")), "what the killed run left is ended first");
    project.write(".lockgate/go", "");
    assert_eq!(subjects(&project), ["p/o: o", "first"]);
    let resumed = project.run(&["resume", &first, "--rerun"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!((subjects(&project).len(), status(&project)), (3, "?? other.yaml\n".to_owned()));
}

#[test]
fn a_branch_moved_by_the_user_is_not_mistaken_for_a_commit() {
    let project = killed_in_a_hook();
    let pid = project.read(".lockgate/pid").trim().parse().unwrap();
    project.write("z.txt", "z\n");
    project.git(&["reset", "--quiet", "--soft", "HEAD"]);
    let empty = project.git(&["commit-tree", "HEAD^{tree}", "-m", "another root"]);
    project.git(&["update-ref", "HEAD", empty.trim()]);
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    assert_eq!(project.run(&["resume", &project.newest()]).code, Some(3));
    assert_eq!(status(&project), " M lines.txt\n?? new.txt\n?? z.txt\n", "nothing is staged");
    assert!(!project.path(".git/index.lock").exists());
}
