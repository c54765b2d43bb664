//! `notify.command`: its input, when and from which process it runs, and how failures are handled.

use crate::json_schema;
use crate::project::{Output, Project, finish, signal, until};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;

const FLOW: &str = "
name: flow
phases:
  - id: build
    tasks: [{ id: make, run: 'echo made >> trace' }]
    checkpoint:
      prompt: Ship it?
      options:
        - { label: Ship, on_select: { action: continue } }
        - { label: Stop, on_select: { action: abort } }
  - id: ship
    tasks: [{ id: send, run: 'echo sent >> trace' }]
";

/// Appends each notice to a file, one per line.
const TO_FILE: &str = "cat >> notices";

fn notify(project: &Project, command: &str) {
    project.write(
        ".lockgate/config.yaml",
        format!(
            "people: {{ require_terminal: false }}\nbackground: {{ idle_timeout: 1s }}\nnotify: {{ command: {} }}\n",
            quoted(command)
        ),
    );
}

/// A text as YAML.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn project(flow: &str, command: &str) -> Project {
    let project = Project::with(flow);
    notify(&project, command);
    project
}

/// The notices that the command received, in the order of the events. Each must match its documented schema.
fn notices(project: &Project) -> Vec<Value> {
    let mut notices: Vec<Value> = project
        .read("notices")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    notices.iter().for_each(json_schema::check_notice);
    notices.sort_by_key(seq);
    notices
}

fn seq(notice: &Value) -> (String, u64) {
    let (run, seq) = notice["id"].as_str().unwrap().rsplit_once('-').unwrap();
    (run.to_owned(), seq.parse().unwrap())
}

fn types(notices: &[Value]) -> Vec<&str> {
    notices.iter().map(|notice| notice["type"].as_str().unwrap()).collect()
}

fn code(output: &Output, code: i32) {
    assert_eq!(output.code, Some(code), "{output:?}");
}

#[test]
fn the_command_receives_a_hold_its_answer_and_the_end_of_the_run() {
    let project = project(FLOW, TO_FILE);
    code(&project.run(&["run", "flow.yaml", "login"]), 3);
    let run = project.newest();
    let opened = notices(&project);
    assert_eq!(types(&opened), ["hold_opened"]);
    let opened = &opened[0];
    let event = &project.events(&run, "hold_opened")[0];
    assert_eq!(opened["id"], format!("{run}-{}", event["seq"]));
    assert_eq!((&opened["at"], &opened["run"]), (&event["at"], &Value::from(run.as_str())));
    assert_eq!(
        (&opened["workflow"], &opened["feature"], &opened["status"]),
        (&"flow".into(), &"login".into(), &"waiting".into())
    );
    assert_eq!(opened["root"], project.root().to_str().unwrap());
    assert_eq!(opened["text"], "flow (login) waits: Ship it?");
    let hold = &opened["hold"];
    assert_eq!((&hold["id"], &hold["revision"], &hold["phase"]), (&event["hold"], &1.into(), &"build".into()));
    assert_eq!(
        (&hold["kind"], &hold["prompt"], &hold["options"][0]["label"]),
        (&"checkpoint".into(), &"Ship it?".into(), &"Ship".into())
    );
    let command = opened["commands"][0].as_str().unwrap();
    assert!(command.ends_with(&format!("answer {}@1 Ship", hold["id"].as_str().unwrap())), "{command}");
    assert!(command.contains(project.root().to_str().unwrap()), "it works anywhere: {command}");

    code(&project.run(&["answer", &project.waiting_hold(), "Ship", "--foreground"]), 0);
    let all = notices(&project);
    assert_eq!(types(&all), ["hold_opened", "hold_answered", "run_ended"]);
    let answer = &all[1]["answer"];
    assert_eq!(
        (&answer["option"], &answer["label"], &answer["by"]["channel"]),
        (&"ship".into(), &"Ship".into(), &"command".into())
    );
    assert_eq!((&all[2]["status"], &all[2]["text"]), (&"complete".into(), &"flow (login) is complete".into()));
}

#[test]
fn every_kind_of_run_end_is_notified() {
    let failing = "name: flow\nphases: [{ id: a, tasks: [{ id: t, run: 'echo no such host >&2; exit 3' }] }]\n";
    let project = project(failing, TO_FILE);
    code(&project.run(&["run", "flow.yaml"]), 1);
    let failed = &notices(&project)[0];
    assert_eq!((&failed["type"], &failed["status"]), (&"run_ended".into(), &"failed".into()));
    assert!(failed["reason"].as_str().unwrap().contains("exit code 3"), "{failed}");
    assert!(failed["commands"][0].as_str().unwrap().contains(&format!("resume {}", project.newest())), "{failed}");

    project.write("flow.yaml", FLOW);
    code(&project.run(&["run", "flow.yaml"]), 3);
    code(&project.run(&["cancel", &project.newest(), "--reason", "too late"]), 0);
    code(&project.run(&["run", "flow.yaml"]), 3);
    code(&project.run(&["answer", &project.waiting_hold(), "Stop", "--foreground"]), 2);
    let ends: BTreeSet<(String, Option<String>)> = notices(&project)
        .iter()
        .filter(|notice| notice["type"] == "run_ended")
        .map(|notice| (notice["status"].as_str().unwrap().to_owned(), notice["reason"].as_str().map(str::to_owned)))
        .filter(|(status, _)| status != "failed")
        .collect();
    let expected = [("aborted".to_owned(), None), ("cancelled".to_owned(), Some("too late".to_owned()))];
    assert_eq!(ends, expected.into_iter().collect());
}

#[test]
fn reminders_and_escalations_are_sent_by_the_process_that_fires_them() {
    let flow = "
name: flow
phases:
  - id: plan
    tasks: [{ id: draft, pass: true }]
    checkpoint: { prompt: Good?, deadline: 1s, remind: 1s, on_deadline: { escalate: ann } }
";
    let project = project(flow, TO_FILE);
    code(&project.run(&["run", "flow.yaml"]), 3);
    until("a reminder and an escalation", || {
        code(&project.run(&["tick"]), 0);
        let reported = notices(&project);
        types(&reported).contains(&"hold_reminder") && types(&reported).contains(&"hold_escalated")
    });
    let reported = notices(&project);
    let escalated = reported.iter().find(|notice| notice["type"] == "hold_escalated").unwrap();
    assert_eq!(escalated["hold"]["escalated"], true);
    assert_eq!(escalated["hold"]["on_deadline"]["to"], "ann");
    let ids: BTreeSet<&str> = reported.iter().map(|notice| notice["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), reported.len(), "each event is delivered once");
}

#[test]
fn a_reopened_hold_is_notified_with_its_changes() {
    let flow = "
name: flow
phases:
  - id: plan
    tasks: [{ id: draft, run: 'echo one > $LOCKGATE_OUTPUT_DIR/plan.md', outputs: [plan.md] }]
    checkpoint: { prompt: Good?, show_files: [plan.md] }
";
    let project = project(flow, TO_FILE);
    code(&project.run(&["run", "flow.yaml"]), 3);
    let hold = project.waiting_hold();
    let out = project.status(&project.newest())["output_dir"].as_str().unwrap().to_owned();
    project.write(&format!("{out}/plan.md"), "two\n");
    code(&project.run(&["answer", &hold, "Continue", "--foreground"]), 3);
    let reported = notices(&project);
    assert_eq!(types(&reported), ["hold_opened", "hold_answered", "hold_reopened"]);
    assert_eq!(reported[2]["hold"]["revision"], 2);
    assert!(reported[2]["differences"][0].as_str().unwrap().contains("plan.md"), "{}", reported[2]);
}

#[test]
fn only_events_listed_in_the_settings_are_notified() {
    let project = Project::with(FLOW);
    project.write(
        ".lockgate/config.yaml",
        "people: { require_terminal: false }\nnotify: { command: { run: cat >> notices, on: [run_ended], timeout: 10s } }\n",
    );
    code(&project.run(&["run", "flow.yaml"]), 3);
    assert!(notices(&project).is_empty());
    code(&project.run(&["answer", &project.waiting_hold(), "Ship", "--foreground"]), 0);
    assert_eq!(types(&notices(&project)), ["run_ended"]);
}

#[test]
fn a_notice_whose_deliverer_was_killed_is_delivered_on_resume_with_the_same_id() {
    let project = project(FLOW, "echo $LOCKGATE_NOTICE >> deliveries; until test -e go; do sleep 0.02; done; cat >> notices");
    let mut started = project.start(&["run", "flow.yaml"]);
    until("the delivery starts", || !project.read("deliveries").is_empty());
    signal(&started, Signal::KILL);
    started.wait().unwrap();
    assert!(notices(&project).is_empty());
    let run = project.newest();
    assert_eq!(project.status(&run)["status"], "waiting", "the commit is durable");
    project.write("go", "");
    notify(&project, TO_FILE);
    code(&project.run(&["resume", &run]), 3);
    let reported = notices(&project);
    let ids: BTreeSet<&str> = reported.iter().map(|notice| notice["id"].as_str().unwrap()).collect();
    assert_eq!(ids, BTreeSet::from([project.read("deliveries").lines().next().unwrap()]), "{reported:?}");
}

#[test]
fn a_failing_command_fails_no_run_and_doctor_reports_it_until_it_works() {
    let project = project(FLOW, "echo the server is down >&2; exit 7");
    code(&project.run(&["run", "flow.yaml"]), 3);
    let doctor = project.run(&["doctor"]);
    code(&doctor, 1);
    assert!(doctor.stdout.contains("1 notification was not delivered yet"), "{doctor:?}");
    assert!(doctor.stdout.contains("exit code 7: the server is down"), "{doctor:?}");
    code(&project.run(&["tick"]), 0);
    assert!(project.read("notices").is_empty(), "it is not due yet");

    notify(&project, TO_FILE);
    due_now(&project, 1);
    code(&project.run(&["tick"]), 0);
    assert_eq!(types(&notices(&project)), ["hold_opened"]);
    assert!(!project.run(&["doctor"]).stdout.contains("notification was"));
}

/// Makes all notices due, after this number of attempts.
fn due_now(project: &Project, attempts: u32) {
    let change = |table: &str| format!("UPDATE {table} SET due = 0, attempts = {attempts}");
    project.change(&change("outbox"), &change("lockgate.outbox"));
}

#[test]
fn a_notice_that_fails_again_and_again_is_given_up() {
    let project = project(FLOW, "exit 7");
    code(&project.run(&["run", "flow.yaml"]), 3);
    due_now(&project, 7);
    let last = project.run(&["tick", "-v"]);
    assert!(last.stderr.contains("giving up"), "{last:?}");
    let doctor = project.run(&["doctor"]);
    assert!(doctor.stdout.contains("1 notification was given up") && doctor.stdout.contains("after 8 attempts"), "{doctor:?}");
    notify(&project, TO_FILE);
    code(&project.run(&["tick"]), 0);
    assert!(notices(&project).is_empty(), "it is not sent any more");
}

#[test]
fn a_command_that_hangs_is_ended_after_its_time() {
    let project = Project::with(FLOW);
    project.write(
        ".lockgate/config.yaml",
        "people: { require_terminal: false }\nnotify: { command: { run: echo $$ > pid; sleep 1000, timeout: 300ms } }\n",
    );
    code(&project.run(&["run", "flow.yaml"]), 3);
    assert!(!crate::project::lives(&project.read("pid")));
    let doctor = project.run(&["doctor"]).stdout;
    assert!(doctor.contains("it took longer than 0.3 s"), "{doctor}");
}

#[test]
fn a_command_that_prints_megabytes_works_and_its_output_is_logged_in_part() {
    let project = project(FLOW, "echo first; head -c 5000000 /dev/zero | tr '\\0' '\\n'; cat >> notices");
    let ran = project.run(&["run", "flow.yaml", "-vv"]);
    code(&ran, 3);
    assert_eq!(types(&notices(&project)), ["hold_opened"]);
    assert!(ran.stderr.contains("\"first\"") && ran.stderr.len() < 200_000, "{} bytes", ran.stderr.len());
}

#[test]
fn a_command_that_does_not_exist_is_found_by_doctor() {
    let project = project(FLOW, "./nowhere.sh --fast");
    code(&project.run(&["run", "flow.yaml"]), 3);
    let doctor = project.run(&["doctor"]).stdout;
    assert!(doctor.contains("`notify.command`: `./nowhere.sh` is not found"), "{doctor}");
    notify(&project, TO_FILE);
    assert!(project.run(&["doctor"]).stdout.contains("`notify.command` is `cat >> notices`"));
}

#[test]
fn a_notify_command_cannot_answer() {
    let script = r#"hold=$(sed 's/.*"hold":{"id":"\([a-z0-9]*\)".*/\1/'); "$LOCKGATE" answer "$hold" Ship > refused 2>&1; echo "exit $?" >> refused"#;
    let project = project(FLOW, script);
    code(&project.run(&["run", "flow.yaml"]), 3);
    let refused = project.read("refused");
    assert!(refused.contains("error[inside-task]") && refused.contains("notify.command"), "{refused}");
    let run = project.newest();
    assert_eq!(project.status(&run)["status"], "waiting");
    assert_eq!(project.events(&run, "attempt_refused").len(), 1);
}

#[test]
fn secrets_reach_neither_the_json_nor_the_environment_of_the_command() {
    let flow = "
name: flow
secrets: { TOKEN: { env: MY_TOKEN } }
phases:
  - id: plan
    tasks: [{ id: draft, run: 'echo $TOKEN', secrets: [TOKEN] }]
    checkpoint: { prompt: Good?, options: [{ label: Again, with_feedback: true, on_select: { action: repeat_phase, target: current } }] }
";
    let project = project(flow, "env > environment; cat >> notices");
    let run = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        crate::project::without_terminal(&mut command);
        command.env("MY_TOKEN", "hunter2-hunter2").env("OTHER", "stays").output().unwrap().status.code()
    };
    assert_eq!(run(&["run", "flow.yaml"]), Some(3));
    assert_eq!(
        run(&["answer", &project.waiting_hold(), "Again", "--feedback", "is hunter2-hunter2 right?", "--no-resume"]),
        Some(0)
    );
    let reported = project.read("notices");
    assert_eq!(types(&notices(&project)), ["hold_opened", "hold_answered"]);
    assert!(reported.contains("right?") && !reported.contains("hunter2"), "{reported}");
    let environment = project.read("environment");
    assert!(environment.contains("OTHER=stays") && !environment.contains("hunter2"), "{environment}");
}

#[test]
fn detached_runs_notify_from_the_background_and_answers_from_where_they_are_given() {
    let project = project(FLOW, TO_FILE);
    let view = project.json(0, &["run", "flow.yaml", "--detach", "--json"]);
    let run = view["run"].as_str().unwrap();
    code(&project.run(&["wait", run]), 3);
    until("the notice of the hold", || types(&notices(&project)) == ["hold_opened"]);
    code(&project.run(&["answer", &project.waiting_hold(), "Ship", "--no-resume"]), 0);
    assert!(types(&notices(&project)).contains(&"hold_answered"), "the answering process delivers it before it exits");
    code(&project.run(&["wait", run]), 0);
    until("the notice of the end", || notices(&project).len() == 3);
    assert_eq!(types(&notices(&project)), ["hold_opened", "hold_answered", "run_ended"]);
}

#[test]
fn concurrent_processes_deliver_each_event_once() {
    let project = project(FLOW, TO_FILE);
    let runs: Vec<_> = (0..6).map(|_| project.start(&["run", "flow.yaml"])).collect();
    runs.into_iter().for_each(|run| code(&finish(run), 3));
    let inbox = project.json(0, &["inbox", "--json"]);
    let holds: Vec<&str> = inbox.as_array().unwrap().iter().map(|hold| hold["id"].as_str().unwrap()).collect();
    let answers: Vec<_> = holds.iter().map(|hold| project.start(&["answer", hold, "Ship", "--foreground"])).collect();
    answers.into_iter().for_each(|answer| code(&finish(answer), 0));
    let reported = notices(&project);
    let ids: BTreeSet<&str> = reported.iter().map(|notice| notice["id"].as_str().unwrap()).collect();
    assert_eq!((reported.len(), ids.len()), (18, 18), "{:?}", types(&reported));
}

#[test]
fn notices_are_delivered_on_postgresql_too() {
    let project = Project::on_postgresql_with(FLOW);
    notify(&project, TO_FILE);
    code(&project.run(&["run", "flow.yaml", "login"]), 3);
    code(&project.run(&["answer", &project.waiting_hold(), "Ship", "--foreground"]), 0);
    assert_eq!(types(&notices(&project)), ["hold_opened", "hold_answered", "run_ended"]);
    notify(&project, "exit 7");
    code(&project.run(&["run", "flow.yaml", "other"]), 3);
    assert!(project.run(&["doctor"]).stdout.contains("1 notification was not delivered yet"));
    code(&project.run(&["db", "verify"]), 0);
}

/// A script of the guide, by its heading.
fn recipe(heading: &str) -> String {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/notifications.md")).unwrap();
    let section = guide.split_once(&format!("### {heading}\n")).expect("the guide has the recipe").1;
    let script = section.split_once("#!/bin/sh\n").expect("the recipe is a script").1;
    script.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_recipes_of_the_guide_send_what_people_need() {
    for (heading, variable, expected) in [
        (
            "Slack",
            "SLACK_WEBHOOK_URL",
            vec!["{\n  \"text\": \"flow (login) waits: Ship it?\\n`lockgate --root ", "https://example.invalid/x"],
        ),
        (
            "ntfy",
            "NTFY_URL",
            vec!["flow (login) waits: Ship it?\nlockgate --root ", "Priority: high", "https://example.invalid/x"],
        ),
        (
            "Mail",
            "MAIL_TO",
            vec!["To: https://example.invalid/x\n", "Subject: [lockgate] flow (login) waits: Ship it?\n", " Ship\n"],
        ),
    ] {
        let project = project(FLOW, "PATH=$PWD/bin:$PATH ./notify.sh");
        project.script("notify.sh", &recipe(heading));
        for program in ["curl", "sendmail"] {
            project.script(&format!("bin/{program}"), "(echo \"$@\"; cat) >> sent");
        }
        let mut command = project.command(&["run", "flow.yaml", "login"]);
        crate::project::without_terminal(&mut command);
        assert_eq!(command.env(variable, "https://example.invalid/x").output().unwrap().status.code(), Some(3));
        let sent = project.read("sent");
        for part in expected {
            assert!(sent.contains(part), "{heading}: {part:?} is not in {sent}");
        }
    }
}
