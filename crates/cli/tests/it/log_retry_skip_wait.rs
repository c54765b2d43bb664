//! Daily commands for running and failed runs: log --follow, logs, retry, skip, wait.

use crate::project::{Output, Project, finish, lives, signal, until, user};
use rustix::process::Signal;
use serde_json::Value;
use snapbox::{assert_data_eq, str};
use std::io::{BufRead, BufReader};
use std::process::Child;

/// A task that fails until `fixed` exists, a parallel task, a dependent one, and a gate.
const BROKEN: &str = "
name: broken
phases:
  - id: work
    tasks:
      - { id: broken, run: 'echo broken >> ran; echo out; echo err >&2; test -e fixed' }
      - { id: fine, run: 'echo fine >> ran' }
      - { id: after, needs: [broken], run: 'echo after >> ran' }
    gates: [{ id: check, run: 'echo checking; test -e checked' }]
  - id: ship
    tasks: [{ id: fine, run: 'echo shipped >> ran' }]
";

/// Runs until it is stopped.
const SLOW: &str = "
name: slow
phases:
  - id: work
    tasks: [{ id: wait, run: 'echo $$ > pid; echo one; while [ ! -e go ]; do sleep 0.02; done; echo two', on_interrupt: ask }]
";

/// A failed run for `job`.
fn failed() -> Project {
    let project = Project::with(BROKEN);
    assert_eq!(project.run(&["run", "flow.yaml", "job"]).code, Some(1));
    project
}

/// A process that drives a run for `job` whose task is running, and the process of that task.
fn start_slow_task(flow: &str) -> (Project, Child, String) {
    let project = Project::with(flow);
    let child = project.start(&["run", "flow.yaml", "job"]);
    until("the task", || project.read("pid").ends_with('\n'));
    let task = project.read("pid");
    (project, child, task)
}

/// Checks that the store is intact.
fn fine(project: &Project) {
    let output = project.run(&["db", "verify"]);
    assert_eq!(output.code, Some(0), "{output:?}");
}

fn kill(child: Child) {
    signal(&child, Signal::KILL);
    finish(child);
}

fn expect(output: &Output, code: i32, said: &[&str]) {
    assert_eq!(output.code, Some(code), "{output:?}");
    for said in said {
        assert!(output.stderr.contains(said), "{said}: {output:?}");
    }
}

#[test]
fn log_follow_ends_with_the_run() {
    let (project, driver, _) = start_slow_task(SLOW);
    let mut follower = project.start(&["log", "job", "--follow", "--json"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut kinds = Vec::new();
    let mut next = || {
        let event: Value = serde_json::from_str(&lines.next()?.unwrap()).unwrap();
        Some(event["type"].as_str().unwrap().to_owned())
    };
    while kinds.last().is_none_or(|kind| kind != "task_started") {
        kinds.extend(next());
    }
    project.write("go", "");
    kinds.extend(std::iter::from_fn(next));
    assert_eq!(kinds, project.kinds(&project.newest()));
    assert_eq!(kinds.last().unwrap(), "completed");
    assert_eq!((finish(follower).code, finish(driver).code), (Some(0), Some(0)));
    let run = project.newest();
    let (once, followed) = (project.run(&["log", &run]), project.run(&["log", &run, "-f"]));
    assert_eq!((followed.code, followed.stdout), (Some(0), once.stdout), "an ended run has nothing to follow");
    fine(&project);
}

#[test]
fn log_follow_reports_a_run_without_a_driver_and_continues_when_it_resumes() {
    let (project, driver, _) = start_slow_task(SLOW);
    kill(driver);
    let mut follower = project.start(&["log", "job", "--follow"]);
    let mut reported = BufReader::new(follower.stderr.take().unwrap()).lines();
    let run = project.newest();
    let note = reported.next().unwrap().unwrap();
    assert_eq!(note, format!("note: no process drives run {run}; continue it with `lockgate resume {run}`"));
    project.write("go", "");
    assert_eq!(project.run(&["resume", "job", "--rerun"]).code, Some(0));
    let output = finish(follower);
    assert_eq!(output.code, Some(0));
    assert!(output.stdout.lines().last().unwrap().contains("the run is complete"), "{output:?}");
}

#[test]
fn logs_shows_the_output_of_a_task_or_gate() {
    let project = failed();
    assert_data_eq!(
        project.snapshot(&project.run(&["logs", "job", "work/broken"])),
        str![[r#"
exit 0
--- stdout
out
err
--- stderr

"#]]
    );
    let output = project.run(&["logs", "job", "broken", "-f"]);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (Some(0), "out\nerr\n", ""), "it has ended");
    let output = project.run(&["logs", "job", "work/fine"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), ""), "{output:?}");
    expect(&output, 0, &["note: work/fine has printed nothing (attempt 1)"]);
    project.write("fixed", "");
    assert_eq!(project.run(&["resume", "job"]).code, Some(1), "the gate");
    assert_eq!(project.run(&["logs", "job", "check"]).stdout, "checking\n");
    let log = project.json(0, &["logs", "job", "broken", "--json"]);
    assert_eq!(
        (&log["phase"], &log["task"], &log["attempt"], &log["status"]),
        (&"work".into(), &"broken".into(), &2.into(), &"done".into())
    );
    assert_eq!((&log["iteration"], &log["text"]), (&1.into(), &"out\nerr\n".into()));
    assert_eq!(std::fs::read_to_string(log["path"].as_str().unwrap()).unwrap(), "out\nerr\n");
    let statuses: Vec<&str> = log["attempts"].as_array().unwrap().iter().map(|known| known["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["failed", "done"]);
    let first = project.json(0, &["logs", "job", "broken", "--attempt", "1", "--json"]);
    assert_eq!((&first["attempt"], &first["status"]), (&1.into(), &"failed".into()));
    assert_eq!(project.json(0, &["logs", "job", "check", "--json"])["gate"], "check");
    fine(&project);
}

#[test]
fn logs_reports_an_unknown_task_or_attempt() {
    let project = failed();
    assert_data_eq!(
        project.snapshot(&project.run(&["logs", "job", "fine"])),
        str![[r#"
exit 4
--- stdout
--- stderr
error[ambiguous-name]: several tasks or gates are called "fine"
help: name one of them:
      work/fine
      ship/fine

"#]]
    );
    assert_data_eq!(
        project.snapshot(&project.run(&["logs", "job", "work/brokn"])),
        str![[r#"
exit 4
--- stdout
--- stderr
error[task-not-found]: the workflow has no task or gate "work/brokn"
help: did you mean "work/broken"?

"#]]
    );
    expect(&project.run(&["logs", "job", "after"]), 4, &["work/after has not started, so it has printed nothing"]);
    expect(
        &project.run(&["logs", "job", "broken", "--attempt", "7"]),
        4,
        &["work/broken has no such attempt", "iteration 1, attempt 1  failed", "--iteration N --attempt N"],
    );
}

#[test]
fn logs_distinguishes_a_task_and_a_gate_with_the_same_name() {
    let project = Project::with(
        "name: same\nphases: [{ id: a, tasks: [{ id: lint, run: echo task }], gates: [{ id: lint, run: echo gate }] }]\n",
    );
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    let run = project.newest();
    expect(&project.run(&["logs", &run, "a/lint"]), 4, &["a/task:lint\n", "a/gate:lint\n"]);
    assert_eq!(project.run(&["logs", &run, "a/task:lint"]).stdout, "task\n");
    assert_eq!(project.run(&["logs", &run, "gate:lint"]).stdout, "gate\n");
}

#[test]
fn task_output_is_sanitized_unless_raw_output_is_requested() {
    let project =
        Project::with("name: e\nphases: [{ id: a, tasks: [{ id: t, run: 'printf \"\\033[2Jgr\\303\\266\\377\\r\\nx\"' }] }]\n");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    let run = project.newest();
    assert_eq!(project.run(&["logs", &run, "t"]).stdout, "␛[2Jgrö\u{fffd}\nx");
    let raw = project.command(&["logs", &run, "t", "--raw"]).output().unwrap();
    assert_eq!(raw.stdout, b"\x1b[2Jgr\xc3\xb6\xff\r\nx");
}

#[test]
fn logs_follows_the_output_of_a_running_task_until_it_ends() {
    let (project, driver, _) = start_slow_task(SLOW);
    until("the first line", || project.run(&["logs", "job", "wait"]).stdout == "one\n");
    let mut follower = project.start(&["logs", "job", "work/wait", "-f"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    assert_eq!(project.json(0, &["logs", "job", "wait", "--json"])["status"], "running");
    project.write("go", "");
    assert_eq!(lines.next().unwrap().unwrap(), "two");
    assert!(lines.next().is_none());
    assert_eq!((finish(follower).code, finish(driver).code), (Some(0), Some(0)));
}

#[test]
fn logs_follow_ends_when_the_driver_dies() {
    let (project, driver, _) = start_slow_task(SLOW);
    let mut follower = project.start(&["logs", "job", "wait", "-f"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    kill(driver);
    let output = finish(follower);
    expect(&output, 0, &["so its output is not recorded; continue it with `lockgate resume"]);
    assert_eq!(project.run(&["cancel", "job"]).code, Some(0), "ends the task too");
}

#[test]
fn a_failed_task_can_be_retried() {
    let project = failed();
    assert_data_eq!(
        project.snapshot(&project.run(&["retry", "job", "broken", "--no-resume"])),
        str![[r#"
exit 0
--- stdout
--- stderr
work/broken will be retried
note: no process drives run [RUN]; continue it with `lockgate resume [RUN]`

"#]]
    );
    let status = project.status("job");
    assert_eq!((&status["status"], &status["tasks"][0]["status"]), (&"interrupted".into(), &"waiting".into()));
    assert!(status.get("error").is_none(), "the failure is dealt with");
    assert_eq!(project.json(0, &["runs", "--json"])[0]["status"], "interrupted");
    assert!(project.run(&["why", "job"]).stdout.contains("lockgate resume"));
    assert_eq!(project.read("ran").lines().count(), 2, "nothing was started");
    fine(&project);
    expect(&project.run(&["retry", "job", "broken", "--no-resume"]), 0, &["work/broken is already scheduled to run again"]);
    project.write("fixed", "");
    project.write("checked", "");
    let output = project.run(&["retry", "job", "work/broken", "--foreground"]);
    expect(&output, 0, &["already", "work/broken started (attempt 2: the previous one failed)", "is complete"]);
    assert_eq!(project.events(&project.newest(), "retry_requested").len(), 1);
    assert_eq!(project.events(&project.newest(), "retry_requested")[0]["task"], "broken");
    assert!(project.read("ran").ends_with("broken\nafter\nshipped\n"));
    fine(&project);
}

#[test]
fn a_failed_gate_can_be_retried_or_waived() {
    let project = failed();
    project.write("fixed", "");
    assert_eq!(project.run(&["resume", "job"]).code, Some(1));
    let recorded = project.json(0, &["retry", "job", "check", "--json", "--no-resume"]);
    assert_eq!((&recorded["phase"], &recorded["gate"], &recorded["recorded"]), (&"work".into(), &"check".into(), &true.into()));
    expect(&project.run(&["resume", "job"]), 1, &["gate check failed"]);
    fine(&project);
    let output = project.run(&["skip", "job", "work/check", "--reason", "known to be flaky", "--foreground"]);
    expect(&output, 0, &["work/check counts as passed", "is complete"]);
    let run = project.newest();
    assert_eq!(project.events(&run, "gate_waived")[0]["reason"], "known to be flaky");
    assert_eq!(project.events(&run, "gate_waived")[0]["actor"]["name"], user());
    fine(&project);
}

#[test]
fn a_skipped_task_counts_as_done() {
    let project = failed();
    let why = project.run(&["why", "job"]).stdout;
    let run = project.newest();
    assert!(why.contains(&format!("lockgate skip {run} work/broken --reason \"…\"")), "{why}");
    assert_data_eq!(
        project.snapshot(&project.run(&["skip", "job", "broken", "--reason", "done by hand", "--no-resume"])),
        str![[r#"
exit 0
--- stdout
--- stderr
work/broken counts as done
note: no process drives run [RUN]; continue it with `lockgate resume [RUN]`

"#]]
    );
    assert_eq!(project.status("job")["tasks"][0]["status"], "skipped");
    assert_eq!(project.events(&run, "task_skipped")[0]["reason"], "done by hand");
    fine(&project);
    let again = project.json(0, &["skip", "job", "broken", "--reason", "again", "--json", "--no-resume"]);
    assert_eq!(again["recorded"], false);
    project.write("checked", "");
    assert_eq!(project.run(&["resume", "job"]).code, Some(0));
    assert_eq!(project.events(&run, "task_started").len(), 4, "the skipped one did not run again");
    fine(&project);
}

#[test]
fn skipping_requires_a_reason() {
    let project = failed();
    expect(&project.run(&["skip", "job", "broken", "--no-resume"]), 4, &["--reason <TEXT>"]);
    expect(&project.run(&["skip", "job", "broken", "--reason", " ", "--no-resume"]), 4, &["requires a reason", "help: say why"]);
    assert_eq!(project.status("job")["status"], "failed");
}

#[test]
fn an_impossible_retry_is_refused_with_help() {
    let project = failed();
    expect(
        &project.run(&["retry", "job", "work/fine", "--no-resume"]),
        4,
        &["work/fine is already done", "repeat its phase at a checkpoint"],
    );
    expect(&project.run(&["skip", "job", "work/fine", "--reason", "x", "--no-resume"]), 4, &["work/fine is already done"]);
    expect(&project.run(&["retry", "job", "after", "--no-resume"]), 4, &["work/after has not run yet", "lockgate skip "]);
    expect(
        &project.run(&["retry", "job", "ship/fine", "--no-resume"]),
        4,
        &["ship/fine is not in the current phase (work)", "`lockgate status "],
    );
    assert_eq!(project.status("job")["status"], "failed", "none of this changed anything");
    assert_eq!(project.run(&["cancel", "job"]).code, Some(0));
    expect(&project.run(&["retry", &project.newest(), "broken", "--no-resume"]), 4, &["the run is already cancelled"]);
    fine(&project);
}

#[test]
fn a_question_about_a_task_is_voided_when_the_task_is_retried_or_skipped() {
    let project = Project::with(&BROKEN.replace("test -e fixed'", "test -e fixed', on_fail: ask"));
    project.write("checked", "");
    assert_eq!(project.run(&["run", "flow.yaml", "job"]).code, Some(3));
    let hold = project.waiting_hold();
    assert_eq!(project.run(&["retry", "job", "broken", "--no-resume"]).code, Some(0));
    assert_eq!(project.json(0, &["inbox", "--json"]), serde_json::json!([]));
    expect(&project.run(&["answer", &hold, "rerun", "--no-resume"]), 3, &["was voided", "a person asked for a new attempt"]);
    fine(&project);
    assert_eq!(project.run(&["resume", "job"]).code, Some(3), "it failed again, and is asked about again");
    assert_ne!(project.waiting_hold(), hold);
    let output = project.run(&["skip", "job", "broken", "--reason", "enough", "--foreground"]);
    expect(&output, 0, &["is complete"]);
    fine(&project);
}

#[test]
fn an_earlier_answer_wins_over_a_retry_or_skip() {
    let project = Project::with(&BROKEN.replace("test -e fixed'", "test -e fixed', on_fail: ask"));
    assert_eq!(project.run(&["run", "flow.yaml", "job"]).code, Some(3));
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Count as done", "--no-resume"]).code, Some(0));
    expect(
        &project.run(&["retry", "job", "broken", "--no-resume"]),
        3,
        &["answered \"Count as done\"", "\"Run again\" came later"],
    );
    expect(
        &project.run(&["skip", "job", "broken", "--reason", "x", "--no-resume"]),
        0,
        &[&format!("this answer was already given by {}", user())],
    );
    fine(&project);
}

#[test]
fn retry_and_skip_reach_the_driving_process() {
    let flow = "
name: both
phases:
  - id: work
    tasks:
      - { id: broken, run: 'test -e fixed', on_fail: ask }
      - { id: worse, run: 'exit 1', on_fail: ask }
      - { id: long, run: 'touch began; while [ ! -e go ]; do sleep 0.02; done' }
";
    let project = Project::with(flow);
    let driver = project.start(&["run", "flow.yaml", "job"]);
    until("all tasks", || project.path("began").exists() && project.run(&["inbox"]).stdout.matches("@1  run").count() == 2);
    project.write("fixed", "");
    let output = project.run(&["retry", "job", "broken", "--no-resume"]);
    expect(&output, 0, &["work/broken will be retried\n", &format!("note: process {} on ", driver.id())]);
    let run = project.newest();
    until("the new attempt", || project.events(&run, "task_finished").len() == 1);
    let output = project.run(&["skip", "job", "worse", "--reason", "not today", "--foreground"]);
    expect(&output, 0, &["work/worse counts as done", "and continues it"]);
    expect(&project.run(&["retry", "job", "long", "--no-resume"]), 3, &["work/long is running", "`lockgate cancel "]);
    expect(&project.run(&["skip", "job", "long", "--reason", "x", "--no-resume"]), 3, &["work/long is running"]);
    project.write("go", "");
    let output = finish(driver);
    expect(&output, 0, &["is complete"]);
    fine(&project);
}

#[test]
fn retrying_a_task_whose_driver_was_killed_stops_its_orphan() {
    let (project, driver, task) = start_slow_task(SLOW);
    kill(driver);
    assert!(lives(&task), "the orphan works on");
    let output = project.run(&["retry", "job", "wait", "--no-resume"]);
    expect(&output, 0, &["work/wait will be retried"]);
    assert!(!lives(&task), "nothing may run alongside the new attempt");
    fine(&project);
    project.write("go", "");
    let output = project.run(&["resume", "job"]);
    expect(&output, 0, &["work/wait started (attempt 2: the previous one was interrupted)"]);
    let run = project.newest();
    assert!(project.events(&run, "hold_opened").is_empty(), "a person had said already what becomes of it");
    assert_eq!(project.events(&run, "task_interrupted").len(), 1);
    fine(&project);
}

#[test]
fn a_gate_whose_driver_was_stopped_or_killed_can_be_waived() {
    let flow = "name: g\nphases:\n  - id: work\n    tasks: [{ id: t, pass: true }]\n    gates: [{ id: check, run: 'echo $$ > pid; while :; do sleep 0.02; done' }]\n";
    for by in [Signal::KILL, Signal::TERM] {
        let (project, driver, gate) = start_slow_task(flow);
        expect(&project.run(&["skip", "job", "check", "--reason", "x", "--no-resume"]), 3, &["work/check is running"]);
        signal(&driver, by);
        finish(driver);
        let output = project.run(&["skip", "job", "check", "--reason", "it hangs", "--foreground"]);
        expect(&output, 0, &["work/check counts as passed", "is complete"]);
        assert!(!lives(&gate));
        fine(&project);
    }
}

#[test]
fn a_task_may_neither_retry_nor_skip_and_the_attempt_is_recorded() {
    let project = failed();
    let victim = project.newest();
    project.write(
        "attack.yaml",
        "name: attack\nphases:\n  - id: act\n    tasks: [{ id: try, run: '(\"$LOCKGATE\" retry VICTIM broken || echo $?; \"$LOCKGATE\" skip VICTIM broken --reason x || echo $?) > said 2>&1' }]\n"
            .replace("VICTIM", &victim),
    );
    assert_eq!(project.run(&["run", "attack.yaml"]).code, Some(0));
    let said = project.read("said");
    assert_eq!(said.matches("inside task").count(), 2, "{said}");
    assert_eq!(said.lines().filter(|line| *line == "3").count(), 2, "{said}");
    let refused = project.events(&victim, "attempt_refused");
    let tried: Vec<&str> = refused.iter().map(|event| event["what"].as_str().unwrap()).collect();
    assert_eq!(tried, ["retry a task", "skip a task"]);
    assert!(refused.iter().all(|event| event["actor"]["credential"] == "agent"));
    assert_eq!(project.status(&victim)["status"], "failed");
    fine(&project);
}

#[test]
fn retry_and_skip_require_a_terminal_unless_the_settings_allow_otherwise() {
    let project = Project::with_terminal_required();
    project.write("flow.yaml", BROKEN);
    assert_eq!(project.run(&["run", "flow.yaml", "job"]).code, Some(1));
    for arguments in [&["retry", "job", "broken"][..], &["skip", "job", "broken", "--reason", "x", "--foreground"]] {
        let output = project.run(arguments);
        expect(&output, 3, &["there is no controlling terminal", "run the command yourself, from a terminal"]);
    }
    let run = project.newest();
    assert_eq!(project.events(&run, "attempt_refused").len(), 2);
    assert_eq!(project.status(&run)["status"], "failed");
}

#[test]
fn wait_exits_with_the_outcome_of_the_run() {
    let (project, driver, _) = start_slow_task(SLOW);
    let waiter = project.start(&["wait", "job"]);
    let impatient = project.run(&["wait", "job", "--timeout", "50ms"]);
    expect(&impatient, 3, &["still runs after 50 ms"]);
    project.write("go", "");
    let output = finish(waiter);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 0
--- stdout
--- stderr
run [RUN] is complete

"#]]
    );
    assert_eq!(finish(driver).code, Some(0));
    assert_eq!(project.json(0, &["wait", "job", "--json"])["status"], "complete", "an ended run by its feature's name");
    expect(&project.run(&["wait", "job", "--timeout", "soon"]), 4, &["is not a duration"]);
    expect(&project.run(&["wait", "nobody"]), 4, &["no run \"nobody\""]);
}

#[test]
fn wait_ends_when_a_run_fails_is_cancelled_or_needs_a_person() {
    let project = failed();
    expect(&project.run(&["wait", "job"]), 1, &["failed: work/broken failed", "lockgate resume"]);
    assert_eq!(project.run(&["cancel", "job"]).code, Some(0));
    expect(&project.run(&["wait", &project.newest()]), 2, &["was cancelled"]);
    let project = Project::with(
        "name: asks\nphases: [{ id: a, tasks: [{ id: t, run: 'while [ ! -e go ]; do sleep 0.02; done' }], checkpoint: { approval_required: true } }]\n",
    );
    let driver = project.start(&["run", "flow.yaml", "job"]);
    until("the run", || project.run(&["runs"]).stdout.contains("running"));
    let waiter = project.start(&["wait", "job"]);
    project.write("go", "");
    expect(&finish(waiter), 3, &["waits for a person: hold", "lockgate answer"]);
    assert_eq!(finish(driver).code, Some(3));
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Abort", "--foreground"]).code, Some(2));
    expect(&project.run(&["wait", &project.newest()]), 2, &[&format!("was aborted by {} by command", user())]);
}

#[test]
fn wait_returns_immediately_for_an_interrupted_run() {
    let (project, driver, _) = start_slow_task(SLOW);
    let waiter = project.start(&["wait", "job"]);
    kill(driver);
    let output = finish(waiter);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 3
--- stdout
--- stderr
run [RUN] was interrupted; its state is saved
  continue: lockgate resume [RUN]

"#]]
    );
    assert_eq!(project.json(3, &["wait", "job", "--json"])["status"], "interrupted");
    assert_eq!(project.run(&["cancel", "job"]).code, Some(0), "ends the task too");
}
