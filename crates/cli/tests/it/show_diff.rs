//! A15 and F2: a question shows the git change, and an approval is bound to that exact change.

use crate::project::{Project, until, without_terminal};
use crate::screen::Screen;
use std::process::Command;

const FLOW: &str = "
name: change
phases:
  - id: build
    tasks: [{ id: edit, run: 'printf \"one\\ntwo\\nadded\\n\" > code.txt; echo new > new.txt' }]
    checkpoint:
      prompt: Ship it?
      show_diff: true
      options:
        - { label: Ship, on_select: { action: continue } }
        - { label: Again, on_select: { action: repeat_phase, target: current } }
  - id: ship
    tasks: [{ id: send, run: 'cat code.txt > sent' }]
";

fn git(project: &Project, arguments: &[&str]) -> String {
    let settings = ["-c", "user.name=tester", "-c", "user.email=tester@example.invalid", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").args(settings).args(arguments).current_dir(project.path("")).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A project in a repository with one commit.
fn project(flow: &str) -> Project {
    in_repository(Project::with(flow))
}

fn in_repository(project: Project) -> Project {
    project.init_git();
    project.write("code.txt", "one\ntwo\n");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "--quiet", "-m", "first"]);
    project
}

/// A run that waits at its checkpoint, and its hold.
fn waiting(flow: &str) -> (Project, String) {
    let project = project(flow);
    let output = project.run(&["run", "flow.yaml", "change"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    let hold = project.waiting_hold();
    (project, hold)
}

/// Answers, and checks that the answer was voided.
fn is_voided(project: &Project, hold: &str) -> String {
    let output = project.run(&["answer", hold, "Ship", "--foreground"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.contains("the shown content has changed, so the hold is reopened"), "{output:?}");
    assert!(!project.path("sent").exists());
    assert!(project.waiting_hold().ends_with("@2"));
    output.stderr
}

#[test]
fn the_change_is_shown_wherever_the_question_is() {
    let (project, hold) = waiting(FLOW);
    let run = project.newest();
    let headline = "the change since the phase started: 2 files, +2 -0 (digest ";
    let listed = ["modified code.txt, +1 -0", "added new.txt, +1 -0"];
    for command in [vec!["why", &run], vec!["status", &run]] {
        let output = project.run(&command);
        assert!(output.stdout.contains(headline), "{output:?}");
        assert!(listed.iter().all(|line| output.stdout.contains(line)), "{output:?}");
        assert!(output.stdout.contains("│ +added") && output.stdout.contains("│ +new"), "the patch: {output:?}");
    }
    let inbox = project.run(&["inbox"]);
    assert!(inbox.stdout.contains(headline) && inbox.stdout.contains(listed[1]), "{inbox:?}");
    assert!(inbox.stdout.contains(&format!("see details: lockgate why {run}")), "{inbox:?}");

    let diff = &project.status(&run)["holds"][0]["diff"];
    assert_eq!((&diff["since"], &diff["file_count"], &diff["added"]), (&"phase".into(), &2.into(), &2.into()));
    assert_eq!(diff["files"][0]["path"], "code.txt");
    let file = serde_json::json!({"path": "new.txt", "status": "added", "added": 1, "removed": 0, "binary": false});
    assert_eq!(diff["files"][1], file);
    assert!(diff["text"].as_str().unwrap().contains("+added\n"), "{diff}");
    assert_eq!(diff["digest"].as_str().map(str::len), Some(64), "{diff}");
    let in_list = &project.json(0, &["inbox", "--json"])[0]["diff"];
    assert_eq!((&in_list["digest"], &in_list["files"]), (&diff["digest"], &diff["files"]));
    assert_eq!(in_list.get("text"), None, "lists leave the patch out");

    let done = project.run(&["answer", &hold, "Ship", "--foreground"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let summary = project.run(&["summary", &run]).stdout;
    let digest = diff["digest"].as_str().unwrap();
    assert!(summary.contains(&format!("shown change since phase: 2 files, +2 -0, digest `{digest}`")), "{summary}");
    assert_eq!(project.json(0, &["summary", &run, "--json"])["decisions"][0]["diff"]["digest"], digest);
}

#[test]
fn approval_is_voided_when_a_tracked_file_changes() {
    let (project, hold) = waiting(FLOW);
    project.write("code.txt", "one\ntwo\nslipped in\n");
    let reported = is_voided(&project, &hold);
    assert!(reported.contains("the change since the phase started is different now: 2 files, +2 -0"), "{reported}");
    assert!(reported.contains("-added") && reported.contains("+slipped in"), "{reported}");
    let seen = project.waiting_hold();
    assert_eq!(project.run(&["answer", &seen, "Ship", "--foreground"]).code, Some(0));
    assert_eq!(project.read("sent"), "one\ntwo\nslipped in\n");
}

#[test]
fn approval_is_voided_when_an_untracked_file_appears() {
    let (project, hold) = waiting(FLOW);
    project.write("another.txt", "x\n");
    assert!(is_voided(&project, &hold).contains("3 files"));
}

#[test]
fn approval_is_voided_when_a_commit_changes_a_file() {
    let (project, hold) = waiting(FLOW);
    project.write("code.txt", "committed\n");
    git(&project, &["commit", "--quiet", "-am", "later"]);
    assert!(is_voided(&project, &hold).contains("+committed"));
}

#[test]
fn approval_stays_valid_when_exactly_the_shown_change_is_committed() {
    let (project, hold) = waiting(FLOW);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "--quiet", "-m", "what was shown"]);
    let done = project.run(&["answer", &hold, "Ship", "--foreground"]);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn approval_is_voided_when_the_branch_moves_under_a_change_since_head() {
    let (project, hold) = waiting(&FLOW.replace("show_diff: true", "show_diff: { since: HEAD }"));
    git(&project, &["commit", "--quiet", "-am", "half of it"]);
    let reported = is_voided(&project, &hold);
    assert!(reported.contains("it starts from"), "{reported}");
}

#[test]
fn an_answer_names_the_revision_of_the_change_that_was_seen() {
    let (project, hold) = waiting(FLOW);
    let bare = hold.split('@').next().unwrap();
    let output = project.run(&["answer", bare, "Ship", "--no-resume"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains(&format!("{bare}@1")), "{output:?}");
}

#[test]
fn a_repeated_phase_shows_all_that_it_changed() {
    let flow = FLOW.replace("echo new > new.txt", "echo $LOCKGATE_ITERATION >> new.txt");
    let (project, hold) = waiting(&flow);
    project.write("by-hand.txt", "x\n");
    let again = project.run(&["answer", &hold, "Again", "--foreground"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    let shown = project.run(&["why", &project.newest()]).stdout;
    assert!(shown.contains("3 files"), "{shown}");
    assert!(shown.contains("added by-hand.txt") && shown.contains("added new.txt, +2 -0"), "{shown}");
}

#[test]
fn the_change_of_the_run_starts_with_its_first_phase() {
    let flow = "
name: whole
phases:
  - { id: plan, tasks: [{ id: note, run: 'echo plan > plan.md' }] }
  - id: build
    tasks: [{ id: edit, run: 'echo built > built.txt' }]
    checkpoint: { prompt: Good?, show_diff: run, options: [{ label: Ship, on_select: { action: continue } }] }
";
    let project = project(flow);
    project.write("mine.txt", "not committed, and there before\n");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let shown = project.run(&["why", &project.newest()]).stdout;
    assert!(shown.contains("the change since the run started: 2 files, +2 -0"), "{shown}");
    assert!(shown.contains("added plan.md") && shown.contains("added built.txt") && !shown.contains("mine.txt"), "{shown}");
    let run = project.newest();
    assert_eq!(project.events(&run, "diff_base_recorded").len(), 1);
    let log = project.run(&["log", &run]).stdout;
    assert!(log.contains("the files at the start of phase plan were recorded as git tree"), "{log}");
}

#[test]
fn a_question_among_tasks_shows_a_change_with_values_filled_in() {
    let flow = "
name: asks
vars: { base: first-tag, part: src }
phases:
  - id: build
    tasks:
      - { id: edit, run: 'mkdir -p src; echo a > src/a.rs; echo b > other.txt' }
      - { id: look, needs: edit, verify: { built: the page }, show_diff: { since: '{{vars.base}}', paths: ['{{vars.part}}'] } }
";
    let project = project(flow);
    git(&project, &["tag", "first-tag"]);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let diff = &project.status(&project.newest())["holds"][0]["diff"];
    assert_eq!((&diff["since"], &diff["file_count"]), (&"first-tag".into(), &1.into()), "{diff}");
    assert_eq!(diff["files"][0]["path"], "src/a.rs");
    assert_eq!(diff["base"], git(&project, &["rev-parse", "first-tag"]));
    let hold = project.waiting_hold();
    project.write("other.txt", "does not matter\n");
    assert_eq!(project.run(&["answer", &hold, "approved", "--foreground"]).code, Some(0));
}

#[test]
fn the_change_is_that_of_the_runs_own_worktree() {
    let (project, hold) = waiting(&FLOW.replace("name: change", "name: change\nworktree: true"));
    project.write("code.txt", "changed in the root\n");
    let shown = project.run(&["why", &project.newest()]).stdout;
    assert!(shown.contains("2 files, +2 -0"), "{shown}");
    let done = project.run(&["answer", &hold, "Ship", "--foreground"]);
    assert_eq!(done.code, Some(0), "what happens in the root does not matter: {done:?}");

    let (project, hold) = waiting(&FLOW.replace("name: change", "name: change\nworktree: true"));
    let inside = format!(".lockgate/worktrees/{}/code.txt", project.newest());
    project.write(&inside, "changed in the worktree\n");
    is_voided(&project, &hold);
}

#[test]
fn a_change_that_cannot_be_shown_is_reported_and_never_answered_by_policy() {
    let flow = FLOW.replace("name: change", "name: change\npolicy: { checkpoint: auto }");
    let outside = Project::with(&flow);
    outside.write("code.txt", "one\n");
    let output = outside.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(
        output.stderr.contains("the change since the phase started cannot be shown, and the answer is not bound to it"),
        "{output:?}"
    );
    assert!(output.stderr.contains("not a git repository"), "{output:?}");
    let diff = &outside.status(&outside.newest())["holds"][0]["diff"];
    assert!(diff["error"].as_str().unwrap().contains("not a git repository") && diff["digest"].is_null(), "{diff}");

    let project = project(&flow);
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(0), "where it can be shown, policy answers: {output:?}");
    assert!(project.path("sent").exists());
}

#[test]
fn a_secret_in_a_change_is_masked() {
    let flow = FLOW
        .replace("name: change", "name: change\nsecrets: { TOKEN: { env: SHOW_DIFF_TOKEN } }")
        .replace("echo new > new.txt' }", "echo key=$TOKEN > new.txt', secrets: [TOKEN] }");
    let project = project(&flow);
    let mut command = project.command(&["run", "flow.yaml"]);
    without_terminal(&mut command);
    let output = command.env("SHOW_DIFF_TOKEN", "hunter2-hunter2-hunter2").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let status = project.run(&["status", &project.newest(), "--json"]).stdout;
    assert!(status.contains("+key=***TOKEN***"), "{status}");
    assert!(!status.contains("hunter2"), "{status}");
}

#[test]
fn file_names_and_content_with_control_characters_are_shown_and_not_obeyed() {
    let flow = FLOW.replace("echo new > new.txt", "printf \"\\\\033[2J\" > \"$(printf \"a\\\\033[31m\")\"");
    let (project, _) = waiting(&flow);
    let shown = project.run(&["why", &project.newest()]).stdout;
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    assert!(shown.contains("2 files"), "{shown:?}");
}

#[test]
fn a_dry_run_says_what_would_be_shown() {
    let project = project(&FLOW.replace("show_diff: true", "show_diff: { since: run, paths: [src] }"));
    let output = project.run(&["run", "flow.yaml", "--dry-run"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("shows the change since the run started, in src"), "{output:?}");
    let json = project.json(0, &["run", "flow.yaml", "--dry-run", "--json"]);
    assert_eq!(json["holds"][0]["diff"], serde_json::json!({"since": "run", "paths": ["src"]}));
    assert_eq!(git(&project, &["for-each-ref", "refs/lockgate"]), "");
}

#[test]
fn validate_warns_about_show_diff_outside_a_repository() {
    let outside = Project::with(FLOW);
    let output = outside.run(&["validate", "flow.yaml"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("show_diff") && output.stderr.contains("not in a git repository"), "{output:?}");
    let inside = project(FLOW).run(&["validate", "flow.yaml"]);
    assert!(!inside.stderr.contains("git repository"), "{inside:?}");
}

#[test]
fn git_objects_of_a_shown_change_are_kept_until_the_run_is_complete() {
    let (project, hold) = waiting(FLOW);
    let run = project.newest();
    let refs = git(&project, &["for-each-ref", "--format=%(refname)", "refs/lockgate"]);
    assert_eq!(refs, format!("refs/lockgate/diffs/{run}-phase"));
    git(&project, &["reflog", "expire", "--expire=now", "--all"]);
    git(&project, &["gc", "--quiet", "--prune=now"]);
    let done = project.run(&["answer", &hold, "Ship", "--foreground"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!project.path(&format!(".lockgate/runs/{run}/diff")).exists());
    project.run(&["db", "gc"]);
    assert_eq!(git(&project, &["for-each-ref", "refs/lockgate"]), "");
}

#[test]
fn the_prompt_shows_the_change_in_colours_and_the_pager_shows_all_of_it() {
    let project = Project::with_terminal_required();
    project.write("flow.yaml", FLOW.replace("added\\n", "added\\n$(seq 1 80)\\n"));
    let project = in_repository(project);
    // The pager writes to a path that git ignores.
    let pager = [("LOCKGATE_PAGER", "cat > .git/paged; touch .git/read")];
    let mut screen = Screen::shell(&project, (80, 24), "exec \"$LOCKGATE\" run flow.yaml", &pager);
    screen.shows("the change since the phase started: 2 files, +82 -0");
    screen.shows("modified code.txt, +81 -0");
    screen.shows("Ctrl+O shows the change in full.");
    screen.shows("then Enter: ");
    screen.send("\x0f");
    until("the pager", || project.path(".git/read").exists());
    let paged = project.read(".git/paged");
    assert!(paged.contains("\u{1b}[32m+80\u{1b}[0m"), "all of it, in colours: {paged:?}");
    assert!(paged.contains("diff --git a/new.txt b/new.txt"), "{paged:?}");
    screen.until("the prompt", |screen| String::from_utf8_lossy(&screen.bytes).matches("then Enter: ").count() > 1);
    screen.send("1\r");
    assert_eq!(screen.end(), 0, "{}", screen.text());
    assert!(project.path("sent").exists());
}

#[test]
fn a_task_cannot_hide_a_change_with_a_file_monitor_or_replaced_objects() {
    let edit = "git config core.fsmonitor \"$PWD/monitor.sh\"; git update-index --fsmonitor; git status >/dev/null; git status >/dev/null; \
        sleep 1.1; echo evil > code.txt; git replace $(git hash-object -w code.txt) $(echo nice | git hash-object -w --stdin)";
    let project = Project::with(
        &FLOW.replace("printf \"one\\ntwo\\nadded\\n\" > code.txt; echo new > new.txt", &edit.replace('"', "\\\"")),
    );
    let project = in_repository(project);
    project.write("monitor.sh", "#!/bin/sh\nprintf 'token\\0'\n");
    std::fs::set_permissions(project.path("monitor.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = project.run(&["run", "flow.yaml", "change"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    let why = project.run(&["why"]).stdout;
    assert!(why.contains("+evil") && !why.contains("+nice"), "{why}");
    let hold = project.waiting_hold();
    project.write("code.txt", "another evil\n");
    is_voided(&project, &hold);
}

/// Programs that git starts in Lockgate's own calls are not the person at the terminal.
#[test]
fn a_program_that_git_starts_is_marked_and_has_no_terminal() {
    let filter = "#!/bin/sh\nps -o tty= -p $$ >> \"$(dirname \"$0\")/seen\"; grep 'file locks' /proc/$$/limits >> \"$(dirname \"$0\")/seen\"; cat\n";
    let project = in_repository(Project::with(FLOW));
    project.write("filter.sh", filter);
    std::fs::set_permissions(project.path("filter.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    git(&project, &["config", "filter.f.clean", project.path("filter.sh").to_str().unwrap()]);
    project.write(".gitattributes", "code.txt filter=f\n");
    let mut screen = Screen::start(&project, (100, 30), &["run", "flow.yaml", "change"]);
    screen.shows("Choose 1-2");
    screen.send("\x04");
    assert_eq!(screen.end(), 3);
    let seen = std::fs::read_to_string(project.path("seen")).unwrap();
    for line in seen.lines() {
        assert!(line.trim() == "?" || (line.contains("file locks") && !line.contains("unlimited")), "{seen}");
    }
    assert!(seen.contains("file locks"), "{seen}");
}
