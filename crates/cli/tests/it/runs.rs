//! Listing runs by status, and removing finished ones: by hand, after the time that the settings keep them, and across kills.

use crate::project::{Project, finish, signal, until};
use crate::screen::Screen;
use serde_json::Value;
use std::time::Duration;

/// Completes, waits, fails or is aborted, depending on its feature.
const FLOW: &str = "
name: flow
phases:
  - id: work
    tasks:
      - { id: t, run: 'echo done > $LOCKGATE_OUTPUT_DIR/report.md; case {{feature.name}} in fails*) exit 1;; sleeps*) touch started; sleep 1000;; esac', outputs: [report.md], on_interrupt: rerun }
    checkpoint:
      prompt: Good?
      condition: \"!context.feature.name.startsWith('done')\"
";

fn run_of(project: &Project, feature: &str) -> String {
    let output = project.run(&["run", "flow.yaml", feature]);
    assert!(output.code.is_some_and(|code| code <= 3), "{output:?}");
    project.newest()
}

fn listed(project: &Project, arguments: &[&str]) -> Vec<String> {
    let runs = project.json(0, &[&["runs", "--json"], arguments].concat());
    runs.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect()
}

fn is_verified(project: &Project) {
    let verified = project.run(&["db", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

fn directory(project: &Project, run: &str) -> std::path::PathBuf {
    project.path(&format!(".lockgate/runs/{run}"))
}

/// A run that was interrupted while its task slept.
fn interrupted(project: &Project, feature: &str) -> String {
    let driver = project.start(&["run", "flow.yaml", feature]);
    until("the task has started", || project.path("started").exists());
    signal(&driver, rustix::process::Signal::KILL);
    finish(driver);
    std::fs::remove_file(project.path("started")).unwrap();
    project.newest()
}

#[test]
fn runs_are_listed_by_status() {
    let project = Project::with(FLOW);
    let complete = run_of(&project, "done");
    let waiting = run_of(&project, "waits");
    let failed = run_of(&project, "fails");
    let cancelled = run_of(&project, "cancelled");
    assert_eq!(project.run(&["cancel", &cancelled]).code, Some(0));
    let stopped = interrupted(&project, "sleeps");
    let driver = project.start(&["run", "flow.yaml", "sleeps-again"]);
    until("the task has started", || project.path("started").exists());
    let running = project.newest();
    for (status, expected) in [
        ("complete", vec![&complete]),
        ("waiting", vec![&waiting]),
        ("failed", vec![&failed]),
        ("cancelled", vec![&cancelled]),
        ("interrupted", vec![&stopped]),
        ("running", vec![&running]),
        ("aborted", vec![]),
        ("unfinished", vec![&running, &stopped, &failed, &waiting]),
        ("finished", vec![&cancelled, &complete]),
    ] {
        let found = listed(&project, &["--status", status]);
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{status}");
    }
    assert_eq!(listed(&project, &["--status", "failed", "--status", "complete"]), [failed.clone(), complete]);
    assert_eq!(listed(&project, &[]).len(), 6);
    let none = project.run(&["runs", "--status", "aborted"]);
    assert!(none.stdout.is_empty() && none.stderr.contains("no runs with this status"), "{none:?}");
    let wrong = project.run(&["runs", "--status", "done"]);
    assert!(wrong.code == Some(4) && wrong.stderr.contains("interrupted"), "{wrong:?}");
    signal(&driver, rustix::process::Signal::INT);
    finish(driver);
}

#[test]
fn pages_of_a_filtered_list_are_complete_and_in_order() {
    let project = Project::with(FLOW);
    let mut waiting = Vec::new();
    for number in 0..5 {
        run_of(&project, &format!("done-{number}"));
        waiting.insert(0, run_of(&project, &format!("waits-{number}")));
        if number % 2 == 0 {
            interrupted(&project, "sleeps");
        }
    }
    let (mut paged, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let mut arguments = vec!["runs", "--status", "waiting", "--limit", "2"];
        arguments.extend(after.iter().flat_map(|after| ["--after", after.as_str()]));
        let text = project.run(&arguments);
        let page: Vec<String> = text.stdout.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
        let Some(last) = page.last().cloned() else { break };
        let more = format!("lockgate runs --status waiting --limit 2 --after {last}");
        assert_eq!(text.stderr.contains(&more), paged.len() + page.len() < 5, "{text:?}");
        paged.extend(page);
        after = Some(last);
    }
    assert_eq!(paged, waiting);
    // Running and interrupted runs have the same stored status, so pages are read until they are full.
    assert_eq!(listed(&project, &["--status", "interrupted", "--limit", "2"]).len(), 2);
    assert_eq!(listed(&project, &["--status", "running", "--limit", "2"]).len(), 0);
}

#[test]
fn a_finished_run_is_removed_with_its_directory() {
    let project = Project::with(FLOW);
    let (gone, kept) = (run_of(&project, "done-1"), run_of(&project, "done-2"));
    let dry = project.json(0, &["runs", "rm", &gone, "--dry-run", "--json"]);
    assert_eq!((&dry["dry_run"], &dry["runs"][0]["rows"]), (&Value::Bool(true), &Value::Null));
    assert!(dry["runs"][0]["file_bytes"].as_u64().unwrap() > 0, "{dry}");
    assert_eq!(listed(&project, &[]).len(), 2, "a dry run removes nothing");
    let unconfirmed = project.run(&["runs", "rm", &gone]);
    assert!(unconfirmed.code == Some(3) && unconfirmed.stderr.contains("--yes"), "{unconfirmed:?}");
    let removed = project.run(&["runs", "rm", &gone, "--yes"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(removed.stdout.starts_with(&format!("removed run {gone} (flow, done-1, complete): ")), "{removed:?}");
    assert!(removed.stdout.contains(" rows, and ") && removed.stdout.contains("of logs and outputs"), "{removed:?}");
    assert_eq!(listed(&project, &[]), std::slice::from_ref(&kept));
    assert!(!directory(&project, &gone).exists() && directory(&project, &kept).exists());
    assert_eq!(project.run(&["status", &gone]).code, Some(4));
    assert_eq!(project.run(&["runs", "rm", &gone, "--yes"]).code, Some(4), "there is no such run any more");
    is_verified(&project);
    assert_eq!(project.run(&["db", "gc"]).stdout, "nothing to remove\n");
    let removed = project.json(0, &["runs", "rm", &kept, "--yes", "--json"]);
    assert_eq!((&removed["dry_run"], &removed["runs"][0]["run"]), (&Value::Bool(false), &Value::from(kept)));
    assert!(removed["runs"][0]["rows"].as_u64().unwrap() > 3, "{removed}");
    is_verified(&project);
    // Another run starts as always.
    run_of(&project, "done-3");
    is_verified(&project);
}

#[test]
fn unfinished_runs_are_not_removed() {
    let project = Project::with(FLOW);
    for feature in ["waits", "fails"] {
        let run = run_of(&project, feature);
        let refused = project.run(&["runs", "rm", &run, "--yes"]);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(
            refused.stderr.contains("run-not-ended") && refused.stderr.contains(&format!("lockgate cancel {run}")),
            "{refused:?}"
        );
        assert_eq!(project.run(&["cancel", &run]).code, Some(0));
        assert_eq!(project.run(&["runs", "rm", &run, "--yes"]).code, Some(0));
    }
    let driver = project.start(&["run", "flow.yaml", "sleeps"]);
    until("the task has started", || project.path("started").exists());
    let run = project.newest();
    let refused = project.run(&["runs", "rm", &run, "--yes"]);
    assert!(refused.code == Some(3) && refused.stderr.contains("run-not-ended"), "{refused:?}");
    signal(&driver, rustix::process::Signal::INT);
    finish(driver);
    assert_eq!(listed(&project, &[]), [run]);
    is_verified(&project);
}

#[test]
fn names_select_only_finished_runs_and_several_are_checked_before_any_is_removed() {
    let project = Project::with(FLOW);
    let first = run_of(&project, "done");
    let second = run_of(&project, "done");
    let waiting = run_of(&project, "waits");
    assert_eq!(project.run(&["runs", "rm"]).code, Some(4), "a run must be named");
    let dry = |named: &str| project.json(0, &["runs", "rm", named, "--dry-run", "--json"])["runs"][0]["run"].clone();
    assert_eq!(dry("@"), second.as_str(), "the newest finished run");
    assert_eq!(dry("done"), second.as_str());
    assert_eq!(dry("flow"), second.as_str());
    assert_eq!(dry(&first[..5]), first.as_str());
    let refused = project.run(&["runs", "rm", &first, &waiting, "--yes"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert_eq!(listed(&project, &[]).len(), 3, "none is removed if one of them cannot be");
    let removed = project.json(0, &["runs", "rm", &first, &second, &first, "--yes", "--json"]);
    assert_eq!(removed["runs"].as_array().unwrap().len(), 2);
    assert_eq!(listed(&project, &[]), [waiting]);
    is_verified(&project);
}

#[test]
fn a_task_that_removes_a_run_is_refused_and_the_attempt_is_recorded() {
    let project = Project::with(FLOW);
    let victim = run_of(&project, "done");
    project.write("attempt.sh", format!("\"$LOCKGATE\" runs rm {victim} --yes; echo code $?"));
    project.write("attack.yaml", "name: attack\nphases: [{ id: act, tasks: [{ id: try, run: 'sh attempt.sh > said 2>&1' }] }]\n");
    assert_eq!(project.run(&["run", "attack.yaml"]).code, Some(0));
    let said = project.read("said");
    assert!(said.contains("code 3") && said.contains("inside task"), "{said}");
    let refused = project.events(&victim, "attempt_refused");
    assert_eq!(refused.len(), 1, "{said}");
    assert_eq!(refused[0]["what"], "remove a run");
}

#[test]
fn a_terminal_is_required_and_asks_before_anything_is_removed() {
    let project = Project::with_terminal_required();
    project.write("flow.yaml", FLOW);
    let run = run_of(&project, "done");
    let refused = project.run(&["runs", "rm", &run, "--yes"]);
    assert!(refused.code == Some(3) && refused.stderr.contains("terminal-required"), "{refused:?}");
    let ask = format!("\"$LOCKGATE\" runs rm {run}; echo \"ended with $?\"");
    let mut screen = Screen::shell(&project, (100, 24), &ask, &[]);
    screen.shows("Remove this run? [y/N]");
    screen.send("n\r");
    screen.shows("ended with 3");
    assert_eq!(listed(&project, &[]), std::slice::from_ref(&run));
    let mut screen = Screen::shell(&project, (100, 24), &ask, &[]);
    screen.shows("logs and outputs cannot be restored");
    screen.shows("Remove this run? [y/N]");
    screen.send("y\r");
    screen.shows("ended with 0");
    assert_eq!(listed(&project, &[]).len(), 0);
}

#[test]
fn a_fork_survives_the_removal_of_its_parent() {
    let project = Project::with(
        "
name: fork
phases:
  - id: plan
    tasks:
      - { id: draft, run: 'echo plan > $LOCKGATE_OUTPUT_DIR/plan.md', outputs: [plan.md] }
      - { id: way, needs: [draft], decision: { question: Which?, options: [{ id: a }, { id: b }] }, blocking: false }
  - id: build
    tasks: [{ id: make, run: 'echo {{outputs.plan.way.option}} >> built.txt' }]
",
    );
    assert_eq!(project.run(&["run", "flow.yaml", "shop"]).code, Some(0));
    let parent = project.newest();
    let hold = project.events(&parent, "answered")[0]["hold"].as_str().unwrap().to_owned();
    let changed = project.json(0, &["change", &hold, "b", "--yes", "--json"]);
    let fork = changed["run"].as_str().unwrap().to_owned();
    assert_eq!(project.run(&["runs", "rm", &parent, "--yes"]).code, Some(0));
    let resumed = project.run(&["resume", &fork]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(project.read("built.txt"), "a\nb\n");
    assert_eq!(project.run(&["log", &fork]).code, Some(0));
    assert_eq!(project.run(&["summary", &fork]).code, Some(0));
    is_verified(&project);
}

#[test]
fn a_worktree_with_work_stays_and_keeps_its_run_from_being_removed_by_age() {
    let project = Project::with(
        "name: trees\nworktree: true\nphases: [{ id: work, tasks: [{ id: change, run: 'echo second >> code.txt; git commit --quiet -am second' }] }]\n",
    );
    project.init_git();
    project.write(".gitignore", ".lockgate/\n");
    project.write("code.txt", "first\n");
    project.git(&["add", "-A"]);
    project.git(&["commit", "--quiet", "-m", "first"]);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    let run = project.newest();
    project.write(".lockgate/config.yaml", "people: { require_terminal: false }\nretention: { finished: 1ms }\n");
    assert_eq!(project.run(&["db", "gc"]).code, Some(0));
    assert_eq!(listed(&project, &[]), std::slice::from_ref(&run), "a run with unmerged work is not removed because of its age");
    let removed = project.run(&["runs", "rm", &run, "--yes"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(removed.stderr.contains(&format!(".lockgate/worktrees/{run} stays")), "{removed:?}");
    assert!(removed.stderr.contains(&format!("git merge lockgate/{run}")), "{removed:?}");
    project.git(&["merge", "--quiet", &format!("lockgate/{run}")]);
    assert_eq!(project.read("code.txt"), "first\nsecond\n");
    is_verified(&project);
}

#[test]
fn a_removal_that_is_killed_can_be_finished() {
    let project = Project::with(FLOW);
    for round in 0..10_u64 {
        let run = run_of(&project, "done");
        let removal = project.start(&["runs", "rm", &run, "--yes"]);
        std::thread::sleep(Duration::from_millis(5 * round));
        signal(&removal, rustix::process::Signal::KILL);
        finish(removal);
        is_verified(&project);
        match listed(&project, &[]).as_slice() {
            [] => {}
            [left] => assert_eq!(project.run(&["runs", "rm", left, "--yes"]).code, Some(0), "round {round}"),
            more => panic!("{more:?}"),
        }
        assert_eq!(project.run(&["db", "gc"]).code, Some(0));
        assert!(!directory(&project, &run).exists(), "round {round}: nothing is left of it");
        is_verified(&project);
    }
}

#[test]
fn gc_removes_the_marked_directory_of_a_removed_run() {
    let project = Project::with(FLOW);
    run_of(&project, "waits");
    let left = directory(&project, "aaaaaaaa");
    std::fs::create_dir_all(left.join("out")).unwrap();
    std::fs::write(left.join("out/report.md"), "text").unwrap();
    let kept = project.run(&["db", "gc"]);
    assert!(left.exists(), "outputs of a run that no one removed stay: {kept:?}");
    std::fs::write(left.join("removed"), "").unwrap();
    let gone = project.run(&["db", "gc"]);
    assert!(gone.stdout.starts_with("removed 1 directory of a run that no longer exists"), "{gone:?}");
    assert!(!left.exists());
}

/// A project with these settings.
fn keeping(settings: &str) -> Project {
    let project = Project::with(FLOW);
    project.write(".lockgate/config.yaml", format!("people: {{ require_terminal: false }}\n{settings}\n"));
    project
}

/// Makes runs look as if they had not changed for a long time.
fn age(project: &Project, runs: &[&String]) {
    for (number, run) in runs.iter().enumerate() {
        project.change(
            &format!("UPDATE runs SET changed_at = {number} WHERE run = '{run}'"),
            &format!("UPDATE lockgate.runs SET changed_at = {number} WHERE run = '{run}'"),
        );
    }
}

#[test]
fn gc_removes_finished_runs_that_the_settings_no_longer_keep() {
    let project = keeping("retention: { finished: 30d, keep: 2 }");
    let old: Vec<String> = (0..3).map(|number| run_of(&project, &format!("done-{number}"))).collect();
    let waiting = run_of(&project, "waits");
    let young = run_of(&project, "done-young");
    age(&project, &[&old[0], &old[1], &old[2], &waiting]);
    let dry = project.json(0, &["db", "gc", "--dry-run", "--json"]);
    let planned: Vec<&str> = dry["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(planned, [&old[0], &old[1]], "the newest two are kept: {dry}");
    assert_eq!(listed(&project, &[]).len(), 5, "a dry run removes nothing");
    let text = project.run(&["db", "gc", "--dry-run"]);
    assert!(text.stdout.contains(&format!("would remove run {} (flow, done-0, complete)", old[0])), "{text:?}");
    let removed = project.run(&["db", "gc"]);
    assert!(removed.stdout.contains(&format!("removed run {} ", old[1])), "{removed:?}");
    assert_eq!(listed(&project, &[]), [young, waiting, old[2].clone()], "an unfinished run is never removed");
    assert!(!directory(&project, &old[0]).exists());
}

#[test]
fn a_worker_removes_finished_runs_that_the_settings_no_longer_keep() {
    let project = keeping("retention: { finished: 30d }");
    let (old, young) = (run_of(&project, "done-old"), run_of(&project, "done-young"));
    age(&project, &[&old]);
    let worked = project.run(&["worker"]);
    assert_eq!(worked.code, Some(0), "{worked:?}");
    assert_eq!(listed(&project, &[]), [young]);
    is_verified(&project);
}

#[test]
fn a_run_with_undelivered_notices_is_not_removed_by_age() {
    let project = keeping("retention: { finished: 1d }\nnotify: { command: 'false' }");
    let unnotified = run_of(&project, "done");
    age(&project, &[&unnotified]);
    let kept = project.run(&["db", "gc"]);
    assert_eq!(listed(&project, &[]), std::slice::from_ref(&unnotified), "{kept:?}");
    project.change("DELETE FROM outbox", "DELETE FROM lockgate.outbox");
    project.write(".lockgate/config.yaml", "people: { require_terminal: false }\nretention: { finished: 1d }\n");
    assert_eq!(project.run(&["db", "gc"]).code, Some(0));
    assert_eq!(listed(&project, &[]).len(), 0);
}

#[test]
fn by_default_every_run_is_kept() {
    let project = Project::with(FLOW);
    let old = run_of(&project, "done");
    age(&project, &[&old]);
    assert_eq!(project.run(&["worker"]).code, Some(0));
    assert_eq!(project.run(&["db", "gc"]).code, Some(0));
    assert_eq!(listed(&project, &[]), [old]);
}

#[test]
fn a_watcher_learns_that_its_run_was_removed() {
    let project = Project::with(FLOW);
    let run = run_of(&project, "done");
    let ended = project.run(&["watch", &run]);
    assert_eq!(ended.code, Some(0), "a finished run ends the watch: {ended:?}");
    assert_eq!(project.run(&["runs", "rm", &run, "--yes"]).code, Some(0));
    let gone = project.run(&["watch", &run]);
    assert!(gone.code == Some(4) && gone.stderr.contains("run-not-found"), "{gone:?}");
}

#[test]
fn runs_are_removed_on_postgresql_too() {
    let project = Project::on_postgresql_with(FLOW);
    let (gone, waiting) = (run_of(&project, "done"), run_of(&project, "waits"));
    let removed = project.json(0, &["runs", "rm", &gone, "--yes", "--json"]);
    assert!(removed["runs"][0]["rows"].as_u64().unwrap() > 3, "{removed}");
    assert_eq!(project.run(&["runs", "rm", &waiting, "--yes"]).code, Some(3));
    assert_eq!(listed(&project, &[]), [waiting]);
    is_verified(&project);
}

#[test]
fn removing_a_run_never_follows_a_symbolic_link() {
    let project = Project::with(FLOW);
    let outside = tempfile::tempdir().unwrap();
    let precious = outside.path().join("precious.lock");
    let write = || std::fs::write(&precious, "precious").unwrap();
    let is_kept = || assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    write();
    // The mark of a removed run.
    let run = run_of(&project, "done-1");
    std::os::unix::fs::symlink(&precious, directory(&project, &run).join("removed")).unwrap();
    assert_eq!(project.run(&["runs", "rm", &run, "--yes"]).code, Some(0));
    is_kept();
    assert!(!directory(&project, &run).exists());
    // The directory of the run.
    let run = run_of(&project, "done-2");
    std::fs::rename(directory(&project, &run), outside.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(outside.path(), directory(&project, &run)).unwrap();
    assert_eq!(project.run(&["runs", "rm", &run, "--yes"]).code, Some(0));
    is_kept();
    assert!(outside.path().join("moved/out/report.md").exists());
    assert!(directory(&project, &run).symlink_metadata().is_err());
    // Directories in it, which the garbage collection reads.
    let run = run_of(&project, "done-3");
    for name in ["locks", "logs"] {
        let path = directory(&project, &run).join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path).unwrap();
        }
        std::os::unix::fs::symlink(outside.path(), &path).unwrap();
    }
    assert_eq!(project.run(&["db", "gc"]).code, Some(0));
    is_kept();
    is_verified(&project);
}
