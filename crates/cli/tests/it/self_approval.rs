//! F3: a process inside a task cannot decide about runs, and the attempt is recorded as an event.

use crate::project::{Project, finish, lives, signal, until, user, without_terminal};

/// A waiting run, and another one whose task tries to answer its hold.
fn tried(attempt: &str) -> (Project, String, String) {
    let project = Project::with(
        "name: waits\nphases:\n  - id: review\n    tasks: [{ id: t, pass: true }]\n    checkpoint: { approval_required: true }\n",
    );
    assert_eq!(project.run(&["run", "flow.yaml", "victim"]).code, Some(3));
    let (hold, victim) = (project.waiting_hold(), project.newest());
    let attempt = attempt.replace("HOLD", &hold).replace("VICTIM", &victim);
    project.write("attempt.sh", attempt);
    project.write(
        "attack.yaml",
        "name: attack\nphases:\n  - id: act\n    tasks: [{ id: try, run: 'sh attempt.sh > said 2>&1 || true' }]\n",
    );
    let output = project.run(&["run", "attack.yaml"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    (project, victim, hold)
}

fn was_refused(project: &Project, victim: &str, what: &str) {
    let said = project.read("said");
    assert!(said.contains("code 3"), "{said}");
    assert!(said.contains("inside task"), "{said}");
    assert!(project.events(victim, "answered").is_empty(), "{said}");
    let refused = project.events(victim, "attempt_refused");
    assert_eq!(refused.len(), 1, "{said}: {refused:?}");
    assert_eq!(refused[0]["what"], what);
    assert_eq!(refused[0]["actor"]["credential"], "agent");
    assert!(refused[0]["actor"]["inside_task"].is_string());
    let warnings = project.status(victim)["warnings"].to_string();
    assert!(warnings.contains("was refused"), "{warnings}");
}

#[test]
fn a_task_that_answers_is_refused() {
    let (project, victim, hold) = tried("\"$LOCKGATE\" answer HOLD Continue; echo code $?");
    was_refused(&project, &victim, "answer a hold");
    let refused = project.events(&victim, "attempt_refused");
    assert_eq!(refused[0]["hold"], hold.split('@').next().unwrap());
    assert!(project.read("said").contains("act/try"));
}

#[test]
fn a_task_that_answers_with_a_cleaned_environment_is_refused() {
    let (project, victim, _) = tried("env -i \"$LOCKGATE\" answer HOLD Continue; echo code $?");
    was_refused(&project, &victim, "answer a hold");
}

#[test]
fn a_double_fork_in_its_own_session_with_a_cleaned_environment_is_refused() {
    // The answering process waits until it has lost its parent. The task waits for it, because it would otherwise end with the
    // task.
    let attempt = "
rm -f done
cat > daemon.sh <<'END'
parent=$1
while [ \"$parent\" = \"$1\" ]; do sleep 0.02; read -r pid name state parent rest < /proc/$$/stat; done
env -i \"$2\" answer HOLD Continue > inner 2>&1; echo code $? >> inner; touch done
END
sh -c 'setsid sh daemon.sh $$ \"$LOCKGATE\" > /dev/null 2>&1 < /dev/null &'
while [ ! -e done ]; do sleep 0.02; done
cat inner
";
    let (project, victim, _) = tried(attempt);
    was_refused(&project, &victim, "answer a hold");
}

/// A daemon that has closed and cleared everything acts once the file `go` exists.
const DETACHED_DAEMON: &str = "
cat > daemon.sh <<'END'
for descriptor in /proc/self/fd/*; do descriptor=${descriptor##*/}; test \"$descriptor\" -le 2 || eval \"exec $descriptor>&-\"; done
echo $$ > daemon.pid
until [ -e go ]; do sleep 0.02; done
\"$1\" cancel \"$2\" > said 2>&1; echo code $? >> said
\"$1\" answer HOLD Continue >> said 2>&1; echo code $? >> said
\"$1\" resume \"$2\" > resumed 2>&1; echo code $? >> resumed
touch done
sleep 1000
END
(setsid env -i PATH=\"$PATH\" bash daemon.sh \"$LOCKGATE\" \"$LOCKGATE_RUN\" > /dev/null 2>&1 < /dev/null &)
until [ -s daemon.pid ]; do sleep 0.02; done
sleep 1000
";

#[test]
fn a_fully_detached_daemon_cannot_decide_and_is_stopped_after_a_kill() {
    let project =
        Project::with("name: waits\nphases: [{ id: review, tasks: [{ id: t, pass: true }], checkpoint: { prompt: Good? } }]\n");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let (victim, hold) = (project.newest(), project.waiting_hold());
    project.write("attempt.sh", DETACHED_DAEMON.replace("HOLD", &hold));
    project.write("attack.yaml", "name: attack\nphases: [{ id: act, tasks: [{ id: try, run: sh attempt.sh }] }]\n");
    let driver = project.start(&["run", "attack.yaml"]);
    until("the daemon", || project.read("daemon.pid").ends_with('\n'));
    signal(&driver, rustix::process::Signal::KILL);
    finish(driver);
    let attack = project.newest();
    project.write("go", "");
    until("its attempts", || project.path("done").exists());
    let said = project.read("said");
    assert_eq!(said.matches("code 3").count(), 2, "{said}");
    let resumed = project.read("resumed");
    assert!(resumed.contains("code 1") && resumed.contains("resume the run from another terminal"), "{resumed}");
    assert!(lives(&project.read("daemon.pid")));
    assert_eq!(project.status(&attack)["status"], "interrupted");
    assert!(project.events(&victim, "answered").is_empty());
    let resumed = project.run(&["resume", &attack]);
    assert_eq!(resumed.code, Some(3), "it asks about the interrupted attempt: {resumed:?}");
    assert!(!lives(&project.read("daemon.pid")), "the process that resumes the run ends the daemon first");
}

#[test]
fn a_task_that_cancels_is_refused() {
    let (project, victim, _) = tried("\"$LOCKGATE\" cancel VICTIM; echo code $?");
    was_refused(&project, &victim, "cancel a run");
    assert_eq!(project.status(&victim)["status"], "waiting");
}

#[test]
fn a_task_that_resumes_with_preset_answers_is_refused() {
    let (project, victim, _) = tried("\"$LOCKGATE\" resume VICTIM --answer review=Continue; echo code $?");
    was_refused(&project, &victim, "answer in advance");
    let (project, victim, _) = tried("\"$LOCKGATE\" resume VICTIM --rerun; echo code $?");
    was_refused(&project, &victim, "answer a hold");
}

#[test]
fn a_task_that_starts_a_run_with_preset_answers_is_refused() {
    let (project, _, _) = tried("\"$LOCKGATE\" run flow.yaml --answer review=Continue; echo code $?");
    let said = project.read("said");
    assert!(said.contains("code 3") && said.contains("inside task"), "{said}");
    let attack = project.newest();
    assert_eq!(project.events(&attack, "attempt_refused")[0]["what"], "answer in advance");
}

#[test]
fn the_person_is_the_operating_system_user_regardless_of_the_environment() {
    let project = Project::with(
        "name: waits\nphases:\n  - id: review\n    tasks: [{ id: t, pass: true }]\n    checkpoint: { approval_required: true }\n",
    );
    let pretend = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        without_terminal(&mut command);
        command.env("USER", "the-boss").env("LOGNAME", "the-boss").output().unwrap()
    };
    assert_eq!(pretend(&["run", "flow.yaml"]).status.code(), Some(3));
    assert!(pretend(&["answer", &project.waiting_hold(), "Continue", "--foreground"]).status.success());
    let run = project.newest();
    let uid = rustix::process::getuid().as_raw();
    for kind in ["created", "answered"] {
        let actor = &project.events(&run, kind)[0]["actor"];
        assert_eq!((&actor["name"], &actor["uid"]), (&user().into(), &uid.into()), "{kind}");
    }
    let summary = project.json(0, &["summary", &run, "--json"]);
    assert_eq!(summary["decisions"][0]["by"]["uid"], uid);
    assert_eq!(project.status(&run)["context"]["checkpoints"][0]["by"]["uid"], uid);
    assert!(!format!("{:?}", project.run(&["log", &run])).contains("the-boss"));
}

#[test]
fn answering_requires_a_terminal_unless_the_settings_allow_otherwise() {
    let project = Project::with_terminal_required();
    project.write(
        "flow.yaml",
        "name: waits\nphases:\n  - id: review\n    tasks: [{ id: t, pass: true }]\n    checkpoint: { approval_required: true }\n",
    );
    let output = project.run(&["run", "flow.yaml", "--answer", "review=Continue"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(!output.stderr.contains("require_terminal"), "an agent reads how to get around it: {output:?}");
    assert!(!project.run(&["explain", "terminal-required"]).stdout.contains("require_terminal"));
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let (hold, run) = (project.waiting_hold(), project.newest());
    for attempt in
        [vec!["answer", &hold, "Continue", "--no-resume"], vec!["cancel", &run], vec!["resume", &run, "--answer", "review=1"]]
    {
        let output = project.run(&attempt);
        assert_eq!(output.code, Some(3), "{attempt:?}: {output:?}");
        assert!(output.stderr.contains("there is no controlling terminal"), "{output:?}");
        assert!(!output.stderr.contains("require_terminal"), "{output:?}");
    }
    assert_eq!(project.events(&run, "attempt_refused").len(), 3);
    assert!(project.events(&run, "answered").is_empty());
    project.write(".lockgate/config.yaml", "people: { require_terminal: false }\n");
    assert_eq!(project.run(&["answer", &hold, "Continue", "--foreground"]).code, Some(0));
}

/// The attempts of a task, as events of the run that recorded them.
fn refused_attempts(project: &Project, run: &str) -> Vec<String> {
    let refused = project.events(run, "attempt_refused");
    refused.iter().map(|event| event["what"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn no_command_lets_a_task_decide_about_a_run() {
    let attempts = [
        ("change HOLD 1 --yes", "change an answer"),
        ("retry VICTIM t", "retry a task"),
        ("skip VICTIM t --reason x", "skip a task"),
        ("resume VICTIM --changed accept", "accept a changed definition"),
        ("resume VICTIM --continue", "answer a hold"),
        ("resume VICTIM --restart", "run a phase again"),
        ("resume VICTIM --fixed", "retry a failed run"),
        ("pipeline review VICTIM --override x", "override a review"),
        ("worktrees merge VICTIM", "merge a worktree"),
        ("worktrees remove VICTIM --force", "remove a worktree"),
    ];
    let script = attempts.map(|(command, _)| format!("\"$LOCKGATE\" {command}; echo code $?\n")).concat();
    let (project, victim, _) = tried(&script);
    let said = project.read("said");
    assert_eq!(said.matches("code 3\n").count(), attempts.len(), "{said}");
    assert_eq!(refused_attempts(&project, &victim), attempts.map(|(_, what)| what));
    assert!(said.contains(&format!("this attempt is recorded in the history of run {victim}")), "{said}");
}

#[test]
fn a_task_may_not_manage_the_project_and_the_attempt_is_recorded_in_its_run() {
    let attempts = [
        ("db restore some.backup --force", "restore a backup"),
        ("worker", "drive runs"),
        ("worker --in-background", "drive runs"),
        ("tick", "fire deadlines"),
        ("db gc", "remove files and values that no run needs"),
        ("pipeline import state.json", "import a state file"),
        ("pipeline import state.json --new", "import a state file"),
    ];
    let script = attempts.map(|(command, _)| format!("\"$LOCKGATE\" {command}; echo code $?\n")).concat();
    let (project, victim, _) = tried(&script);
    let said = project.read("said");
    assert_eq!(said.matches("code 3\n").count(), attempts.len(), "{said}");
    assert_eq!(refused_attempts(&project, &project.newest()), attempts.map(|(_, what)| what));
    assert!(refused_attempts(&project, &victim).is_empty());
}

#[test]
fn a_task_may_read_runs_and_start_one_that_only_waits() {
    let (project, _, _) = tried(
        "for command in runs inbox 'db gc --dry-run' 'run flow.yaml inner' 'db backup copy.db'; do\n\"$LOCKGATE\" $command; echo code $?\ndone",
    );
    let said = project.read("said");
    assert_eq!(said.matches("code 0\n").count(), 4, "{said}");
    assert_eq!(said.matches("code 3\n").count(), 1, "the inner run waits: {said}");
}

#[test]
fn a_run_detached_by_a_task_is_not_reported_as_continuing_without_a_driver() {
    let (project, _, _) = tried("\"$LOCKGATE\" run flow.yaml inner --detach; echo code $?");
    let said = project.read("said");
    assert!(said.contains("no process drives it") && said.contains("code 0"), "{said}");
    assert!(!said.contains("continues in the background"), "{said}");
}

#[test]
fn a_task_that_resumes_a_failed_run_is_refused_and_the_attempt_is_recorded() {
    let project = Project::with("name: fails\nphases: [{ id: a, tasks: [{ id: t, run: 'exit 1' }] }]\n");
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(1));
    let failed = project.newest();
    let attempt = format!("\"$LOCKGATE\" resume {failed} || true; \"$LOCKGATE\" resume {failed} --detach || true");
    project.write(
        "attack.yaml",
        format!("name: attack\nphases:\n  - id: act\n    tasks:\n      - id: try\n        run: '{attempt}'\n"),
    );
    assert_eq!(project.run(&["run", "attack.yaml"]).code, Some(0));
    assert_eq!(refused_attempts(&project, &failed), ["retry a failed run", "retry a failed run"]);
}
