//! Plans from their first task to their summary, with a scripted agent that makes real commits.

use crate::project::{Project, lives, until, user};

const PLAN: &str = r#"---
phase: 08-login
plan: 01
wave: 1
autonomous: false
must_haves:
  truths: ["People can log in"]
  artifacts:
    - path: "login.txt"
      contains: "checked"
  key_links:
    - from: "login.txt"
      to: "store"
      via: "its name"
      pattern: "store: (pg|sqlite)"
---

<objective>
People can log in.
</objective>

<tasks>
<task type="auto">
  <name>Task 1: Write the login</name>
  <action>Write `login.txt` with style={{ color: 1 }}.</action>
  <verify><automated>grep -q checked login.txt</automated></verify>
</task>
<task type="checkpoint:decision">
  <decision>Which store?</decision>
  <context>It stays.</context>
  <options>
    <option id="sqlite"><name>SQLite</name></option>
    <option id="pg"><name>PostgreSQL</name></option>
  </options>
</task>
<task type="auto">
  <name>Task 3: Add the store</name>
  <action>Add the store.</action>
</task>
<task type="checkpoint:human-verify" gate="blocking">
  <what-built>The login with its store</what-built>
  <how-to-verify>
    1. Open it
    2. Log in
  </how-to-verify>
  <resume-signal>Type "works" or describe issues</resume-signal>
</task>
<task type="checkpoint:human-action" gate="blocking">
  <action>Click the link in the letter</action>
  <instructions>Open your mail.</instructions>
  <verification><automated>test -f clicked</automated></verification>
</task>
<task type="auto">
  <name>Task 6: Deploy it</name>
  <action>Deploy.</action>
  <done>It is deployed</done>
</task>
</tasks>

<output>
After completion, create `plans/08-login/08-01-SUMMARY.md`
</output>
"#;

const AGENT: &str = r#"#!/bin/sh
set -e
prompt=$(cat)
has() { printf '%s' "$prompt" | grep -q "$1"; }
case $LOCKGATE_TASK in
*task-1)
    if has 'A check after it failed'; then echo checked >> login.txt; else echo started > login.txt; fi ;;
*task-3)
    store=$(printf '%s' "$prompt" | sed -n 's/^The answer: \([a-z]*\) .*/\1/p')
    echo "store: $store" >> login.txt
    if has 'too small'; then echo larger >> login.txt; fi ;;
*task-6)
    test -f token || { echo 'Error: Not authenticated. Please run cloud login' >&2; exit 1; }
    echo deployed >> login.txt ;;
esac
git add login.txt
git commit -q -m "$LOCKGATE_TASK, attempt $LOCKGATE_ATTEMPT"
echo "Done."
"#;

/// A git repository with the plan and the agent.
fn project() -> Project {
    let project = Project::new();
    let settings = project.read(".lockgate/config.yaml");
    project.write(
        ".lockgate/config.yaml",
        format!("{settings}logins:\n  cloud: {{ pattern: not authenticated, login: cloud login, probe: test -f token }}\n"),
    );
    project.write("plans/08-login/08-01-PLAN.md", PLAN);
    project.write("agent.sh", AGENT);
    project.write(".gitignore", ".lockgate\n");
    project.init_git();
    project.git(&["add", ".gitignore"]);
    project.git(&["commit", "-q", "-m", "begin"]);
    project
}

/// Kills the background process.
fn kill_driver(project: &Project) {
    let pid = project.read(".lockgate/background.lock");
    assert!(lives(&pid), "nothing drives any more");
    let process = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    until("its end", || !lives(&pid));
}

/// Waits for a question, kills the driver, performs the requested work, and answers. Another process then continues.
fn killed_at(project: &Project, (kind, revision): (&str, u64), made: Option<&str>, answer: &[&str]) {
    let mut hold = String::new();
    until(&format!("a hold to {kind}, opening {revision}"), || {
        let inbox = project.json(0, &["inbox", "--json"]);
        let found = inbox.as_array().unwrap().iter().find(|hold| hold["kind"] == kind && hold["revision"] == revision);
        hold = found.map(|hold| format!("{}@{revision}", hold["id"].as_str().unwrap())).unwrap_or_default();
        !hold.is_empty()
    });
    kill_driver(project);
    made.into_iter().for_each(|file| project.write(file, ""));
    let answered = project.run(&[&["answer", &hold, "--no-resume"], answer].concat());
    assert_eq!(answered.code, Some(0), "{answered:?}");
}

/// A summary with run-specific parts redacted.
fn redacted(project: &Project, run: &str, text: &str) -> String {
    let mut text = text.replace(run, "[RUN]").replace(&format!("by {} by", user()), "by [USER] by");
    for line in project.git(&["log", "--format=%h %s"]).lines() {
        let (commit, subject) = line.split_once(' ').unwrap();
        text = text.replace(commit, &format!("[{}]", subject.trim_start_matches("08-01/")));
    }
    let lines = text.lines().map(|line| match (line.starts_with("It started "), line.split_once(" by command, after ")) {
        (true, _) => "It started [THEN]".to_owned(),
        (false, Some((before, after))) => {
            let again = after.split_once(" (").map(|(_, again)| format!(" ({again}")).unwrap_or_default();
            format!("{before}{again}")
        }
        (false, None) => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

#[test]
fn a_plan_survives_kills_at_every_hold_and_its_summary_is_complete() {
    let project = project();
    let started = project.run(&["run", "plans/08-login/08-01-PLAN.md", "--agent", "sh ./agent.sh", "--detach"]);
    assert_eq!(started.code, Some(0), "{started:?}");
    killed_at(&project, ("decision", 1), None, &["pg"]);
    killed_at(&project, ("verify", 1), None, &["issues", "--feedback", "too small"]);
    killed_at(&project, ("verify", 1), None, &["works"]);
    killed_at(&project, ("action", 1), None, &["done"]);
    killed_at(&project, ("action", 2), Some("clicked"), &["done"]);
    killed_at(&project, ("authentication", 1), Some("token"), &["done"]);
    killed_at(&project, ("verify", 1), None, &["approved"]);
    let run = project.newest();
    let summary = project.path("plans/08-login/08-01-SUMMARY.md");
    until("the summary", || summary.exists());
    kill_driver(&project);
    assert_eq!(project.status(&run)["status"], "complete");
    assert_eq!(project.read("login.txt"), "started\nchecked\nstore: pg\nstore: pg\nlarger\ndeployed\n", "nothing was done twice");
    let expected = "\
---
lockgate_run: [RUN]
summary_of: 08-01
---

# Plan 08-01: complete

People can log in.

It started [THEN]

## Tasks

| task | name | result | attempts | commit | files |
| --- | --- | --- | --- | --- | --- |
| 1 | Write the login | done | 2 | [task-1, attempt 2] | login.txt |
| 2 | Which store? | done | 1 | - | - |
| 3 | Add the store | done | 2 | [task-3, attempt 1], [task-3, attempt 2] | login.txt |
| 4 | The login with its store | done | 2 | - | - |
| 5 | Click the link in the letter | done | 1 | - | - |
| 6 | Deploy it | done | 2 | [task-6, attempt 2] | login.txt |

## Must-haves

| gate | result |
| --- | --- |
| artifact-1 | passed |
| link-1 | passed |

## Authentication Gates

During execution, these authentication requirements were handled:

1. Task Deploy it: authentication was required
   - Paused for `cloud login`
   - Resumed after authentication
   - Finished successfully

These are normal gates, not errors.

## Decisions

- decision in 08-01: Which store?
  - **PostgreSQL** by [USER]
- action in 08-01: Click the link in the letter
  - **Done** by [USER] (opening 2)

## Verifications

- verify in 08-01: Does this work as it should? The login with its store
  - **Report issues** by [USER]
  - feedback: too small
- verify in 08-01: Does this work as it should? The login with its store
  - **Approve** by [USER]
- verify in 08-01: Does this work as it should? Plan 08-01: People can log in. (Deploy it)
  - **Approve** by [USER]

## Deviations

- task 1 (Write the login), of 2 attempts: 1 did not pass its check
- task 3 (Add the store), of 2 attempts: 1 done again because of issues
";
    assert_eq!(redacted(&project, &run, &project.read("plans/08-login/08-01-SUMMARY.md")), expected);
}

#[test]
fn a_plan_is_recognized_by_its_content_and_every_task_is_listed() {
    let project = project();
    let reported = project.run(&["validate", "plans/08-login/08-01-PLAN.md"]);
    assert_eq!((reported.code, reported.stdout.as_str()), (Some(0), "plans/08-login/08-01-PLAN.md: valid plan\n"));
    project.write("notes", PLAN.replace("checkpoint:decision", "checkpoint:choose"));
    let read = project.json(0, &["validate", "notes", "--json"]);
    let kinds: Vec<&str> = read[0]["tasks"].as_array().unwrap().iter().map(|task| task["kind"].as_str().unwrap()).collect();
    assert_eq!(read[0]["format"], "plan");
    assert_eq!(kinds, ["agent", "checkpoint:verify", "agent", "checkpoint:verify", "checkpoint:action", "agent"]);
    assert_eq!(
        (&read[0]["problems"][0]["code"], &read[0]["problems"][0]["severity"]),
        (&"invalid-value".into(), &"warning".into())
    );
    assert_eq!(read[0]["gates"].as_array().unwrap().len(), 2);
    let drawn = project.run(&["graph", "plans/08-login"]);
    assert!(drawn.code == Some(0) && drawn.stdout.contains("08-01-task-1"), "{drawn:?}");
}

const SMALL: &str = "---\nphase: 09-small\nplan: NUMBER\nautonomous: true\nWAVE---\n<task type=\"auto\"><name>Do it</name><action>x</action>\
                     <done>It is done</done></task>\n";

fn small(number: &str, wave: &str) -> String {
    SMALL.replace("NUMBER", number).replace("WAVE", wave)
}

#[test]
fn a_directory_of_plans_runs_wave_by_wave_and_each_plan_gets_a_summary() {
    let project = Project::new();
    project.write("p/09-03-PLAN.md", small("03", "wave: 2\ndepends_on: [09-01]\n"));
    project.write("p/09-01-PLAN.md", small("01", "wave: 1\n"));
    project.write("p/09-02-PLAN.md", small("02", "wave: 1\n"));
    project.write("p/09-02-SUMMARY.md", "---\nphase: 9\nplan: 02\n---\nMine.\n");
    project.write("p/README.md", "# Plans\n");
    let agent = "echo $LOCKGATE_TASK >> order.txt; cat > /dev/null";
    let output = project.run(&["run", "p", "--include-done", "--agent", agent]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let order = project.read("order.txt");
    let (first, last) = order.rsplit_once("09-03-task-1").unwrap();
    assert!(first.contains("09-01-task-1") && first.contains("09-02-task-1") && last == "\n", "{order}");
    assert!(
        project.read("p/09-01-SUMMARY.md").contains("| 1 | Do it | done | 1 | - | - |"),
        "{}",
        project.read("p/09-01-SUMMARY.md")
    );
    assert!(project.read("p/09-03-SUMMARY.md").contains("by default"), "automatic answers are marked: {output:?}");
    assert_eq!(project.read("p/09-02-SUMMARY.md"), "---\nphase: 9\nplan: 02\n---\nMine.\n");
    assert!(output.stderr.contains("p/09-02-SUMMARY.md was not written by Lockgate and is not overwritten"), "{output:?}");
    std::fs::remove_file(project.path("p/09-01-SUMMARY.md")).unwrap();
    assert_eq!(project.run(&["summary", &project.newest()]).code, Some(0));
    assert!(project.path("p/09-01-SUMMARY.md").exists(), "a command that reads the run writes the missing summary");
}

#[test]
fn a_directory_of_plans_with_an_impossible_order_does_not_start() {
    let project = Project::new();
    project.write("p/09-01-PLAN.md", small("01", "wave: 1\ndepends_on: [09-02]\n"));
    project.write("p/09-02-PLAN.md", small("02", "wave: 1\ndepends_on: [09-01]\n"));
    let output = project.run(&["run", "p", "--agent", "cat"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("these plans depend on each other: 09-01 → 09-02 → 09-01"), "{output:?}");
    assert!(output.stderr.contains("p/09-01-PLAN.md:6:1"), "{output:?}");
    let read = project.json(4, &["validate", "p", "--json"]);
    assert_eq!(read[0]["problems"][0]["file"], "09-01-PLAN.md");
}

#[test]
fn a_check_that_never_succeeds_fails_its_task_with_its_output() {
    let project = Project::new();
    let plan = small("01", "").replace("<done>", "<verify><automated>echo it is broken; false</automated></verify><done>");
    project.write("PLAN.md", plan);
    let output = project.run(&["run", "PLAN.md", "--agent", "cat >> prompt.txt"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("its check did not succeed after 3 rounds: echo it is broken; false"), "{output:?}");
    let reported = project.read("prompt.txt");
    let failed = "A check after it failed: echo it is broken; false: it ended with exit code 1\nit is broken";
    assert_eq!(reported.matches(failed).count(), 2, "{reported}");
    let several = "<automated>true</automated><automated>false | tail -1</automated>";
    project.write("PLAN.md", small("01", "").replace("<done>", &format!("<verify>{several}</verify><done>")));
    let output = project.run(&["run", "PLAN.md", "--agent", "cat > prompt.txt"]);
    assert!(output.stderr.contains("one of its checks did not succeed after 3 rounds: false | tail -1"), "{output:?}");
    let reported = project.read("prompt.txt");
    assert!(reported.contains("this check failed: false | tail -1"), "{reported}");
}

#[test]
fn each_task_is_committed_if_requested_and_a_changed_plan_is_detected() {
    let project = project();
    let plan = small("01", "").replace(
        "It is done</done></task>",
        "It is done</done></task>\n<task type=\"checkpoint:human-verify\"><what-built>x</what-built></task>",
    );
    project.write("PLAN.md", &plan);
    let output = project.run(&["run", "PLAN.md", "--commits", "--agent", "cat >> prompt.txt"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert_eq!(project.git(&["log", "-1", "--format=%s"]), "09-01/task-1: Do it\n");
    let run = project.newest();
    project.write("PLAN.md", plan.replace("Do it", "Do it well"));
    let changed = project.run(&["resume", &run]);
    assert!(changed.code == Some(3) && changed.stderr.contains("PLAN.md"), "{changed:?}");
    assert_eq!(project.run(&["resume", &run, "--changed", "keep"]).code, Some(3));
}

#[test]
fn the_questions_of_a_plan_accept_preset_answers() {
    let project = Project::new();
    project.write("PLAN.md", include_str!("../../../../examples/plan/08-01-PLAN.md"));
    let answers = ["--answer", "task-2=file", "--answer", "08-01/task-4=approved"];
    let output = project.run(&[&["run", "PLAN.md", "--agent", "cat >> notes.md"][..], &answers].concat());
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(project.read("notes.md").contains("The answer: file (In one file)"), "{}", project.read("notes.md"));
    assert!(project.path("08-01-SUMMARY.md").exists());
    let wrong = project.run(&["run", "PLAN.md", "--agent", "cat", "--answer", "task-2=fil"]);
    assert!(wrong.code == Some(4) && wrong.stderr.contains("\"In one file\""), "{wrong:?}");
}

#[test]
fn a_plan_with_commits_does_not_start_outside_git() {
    let project = Project::new();
    project.write("PLAN.md", small("01", "commits: true\n"));
    let output = project.run(&["run", "PLAN.md", "--agent", "touch worked"]);
    assert!(output.code == Some(1) && output.stderr.contains("is not in a git repository"), "{output:?}");
    assert!(!project.path("worked").exists(), "the agent did not work for nothing");
}

#[test]
fn a_directory_without_plans_and_a_plan_without_tasks_are_reported() {
    let project = Project::new();
    project.write("p/README.md", "# Nothing\n");
    let output = project.run(&["run", "p"]);
    assert!(output.code == Some(4) && output.stderr.contains("is a directory without plans"), "{output:?}");
    assert!(output.stderr.contains("neither YAML files nor plans"), "{output:?}");
    project.write("PLAN.md", "\n");
    let output = project.run(&["validate", "PLAN.md"]);
    assert!(output.code == Some(4) && output.stderr.contains("the plan has no tasks"), "{output:?}");
}

#[test]
fn a_dry_run_handles_a_decision_without_options() {
    let project = Project::new();
    let decision = "<task type=\"checkpoint:decision\"><decision>Which?</decision></task>\n";
    project.write("PLAN.md", small("01", "") + decision);
    let output = project.run(&["run", "PLAN.md", "--dry-run"]);
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn an_unplanned_question_of_an_agent_is_recorded_as_a_deviation_of_its_task() {
    let project = Project::new();
    project.write("PLAN.md", small("01", ""));
    project.write(
        "asked.md",
        "## CHECKPOINT REACHED\n\n**Type:** decision\n**Plan:** 09-01\n**Progress:** 0/1 tasks complete\n\n### Completed Tasks\n\n\
         | Task | Name | Commit | Files |\n|------|------|--------|-------|\n\n### Current Task\n\n**Task 1:** Do it\n\
         **Status:** awaiting decision\n**Blocked by:** you\n\n### Checkpoint Details\n\n1. red: Red paint\n2. blue: Blue paint\n\n\
         ### Awaiting\n\nWhich colour?\n",
    );
    let agent = "cat > prompt.txt; if [ -f once ]; then echo Done.; else touch once; cat asked.md; fi";
    let output = project.run(&["run", "PLAN.md", "--agent", agent]);
    assert_eq!(output.code, Some(3), "{output:?}");
    let output = project.run(&["answer", &project.waiting_hold(), "blue", "--foreground"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let summary = project.read("09-01-SUMMARY.md");
    assert!(summary.contains("- decision in 09-01, by the agent of task-1 (Do it): "), "{summary}");
    assert!(summary.contains("- task 1 (Do it), of 2 attempts: 1 stopped to ask a person\n"), "{summary}");
}

fn small_plan(number: &str, depends_on: &str) -> String {
    format!(
        "---\nphase: 08-login\nplan: {number}\nautonomous: true\ndepends_on: [{depends_on}]\nmust_haves:\n  artifacts:\n    - path: agent.sh\n---\n\
         <task type=\"auto\"><name>Work {number}</name><action>Do it.</action><verify><automated>true</automated><automated>test -f agent.sh</automated></verify></task>\n"
    )
}

#[test]
fn plans_with_an_existing_summary_are_skipped_unless_requested() {
    let project = Project::new();
    project.write("agent.sh", "#!/bin/sh\ncat > /dev/null\necho \"$LOCKGATE_TASK\" >> worked.txt\n");
    project.write("plans/08-01-PLAN.md", small_plan("01", ""));
    project.write("plans/08-02-PLAN.md", small_plan("02", "'01'"));
    project.write("plans/08-01-SUMMARY.md", "# Done\n");
    let output = project.run(&["run", "plans", "--agent", "sh agent.sh"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("skipped because a summary exists: 08-01-PLAN.md"), "{output:?}");
    assert_eq!(project.read("worked.txt"), "08-02-task-1\n");
    let nothing = project.run(&["run", "plans", "--agent", "sh agent.sh"]);
    assert_eq!(nothing.code, Some(4), "{nothing:?}");
    assert!(nothing.stderr.contains("all 2 plans in plans are done") && nothing.stderr.contains("--include-done"), "{nothing:?}");
    assert_eq!(project.run(&["run", "plans", "--include-done", "--agent", "sh agent.sh"]).code, Some(0));
    assert_eq!(project.read("worked.txt"), "08-02-task-1\n08-01-task-1\n08-02-task-1\n");
}

#[test]
fn a_dry_run_of_a_plan_shows_its_checks_verbatim() {
    let project = Project::new();
    project.write("08-01-PLAN.md", small_plan("01", ""));
    let walked = project.run(&["run", "08-01-PLAN.md", "--dry-run"]).stdout;
    assert!(walked.contains("until this succeeds: true && test -f agent.sh"), "{walked}");
    assert!(walked.contains("agent.sh exists"), "{walked}");
    for generated in ["printf", "set -e", "trap", "f='./"] {
        assert!(!walked.contains(generated), "{generated}: {walked}");
    }
}
