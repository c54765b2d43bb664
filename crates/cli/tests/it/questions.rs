//! Questions to verify, decide, act and log in, and who or what may answer them.

use crate::project::{Project, finish, until, user};
use std::time::Duration;

const THREE: &str = "
name: three questions
phases:
  - id: build
    tasks:
      - { id: make, run: 'echo \"made $LOCKGATE_FEEDBACK\" >> made.txt' }
      - id: look
        name: Look at the page
        needs: [make]
        verify: { built: 'The page of {{feature.name}}', steps: [open it, click] }
        resume_signal: ship it
      - id: database
        needs: [look]
        decision:
          question: Which database?
          context: It stays.
          options:
            - { id: sqlite, name: SQLite, pros: simple, cons: one machine }
            - { id: postgres, name: PostgreSQL }
      - id: mail
        needs: [database]
        action: { automated: the account, needed: the link in the mail, instructions: Click it., check: 'test -f clicked' }
      - { id: last, needs: [mail], run: 'echo {{outputs.build.database.option}} > chosen.txt' }
";

#[test]
fn the_three_question_kinds_are_shown_and_answered_as_the_protocol_specifies() {
    let project = Project::with(THREE);
    let output = project.run(&["run", "flow.yaml", "shop"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    let shown = "    CHECKPOINT: Verification Required\n    \n    Progress: 1/5 tasks complete\n    Task: Look at the page\n    \n    \
                 Built: The page of shop\n    \n    How to verify:\n      1. open it\n      2. click\n    \n    ---\n    \
                 YOUR ACTION: Type \"approved\" (or \"ship it\") or describe issues\n    ---\n";
    assert!(output.stderr.contains(shown), "{}", output.stderr);
    let hold = project.waiting_hold();
    let near = project.run(&["answer", &hold, "lgtm", "--no-resume"]);
    assert_eq!(near.code, Some(4), "{near:?}");
    assert!(near.stderr.contains("only the listed options count"), "{near:?}");
    assert_eq!(project.run(&["answer", &hold, "issues", "--no-resume"]).code, Some(4), "issues require feedback");
    assert_eq!(project.run(&["answer", &hold, "issues", "--feedback", "too small", "--foreground"]).code, Some(3));
    assert_eq!(project.read("made.txt"), "made \nmade too small\n", "the work was repeated with the issues");
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Ship it", "--foreground"]).code, Some(3), "the signal counts");
    let inbox = project.json(0, &["inbox", "--json"]);
    assert_eq!(inbox[0]["kind"], "decision");
    assert!(inbox[0]["text"].as_str().unwrap().contains("1. sqlite: SQLite\n   Pros: simple\n   Cons: one machine"), "{inbox}");
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "postgres", "--foreground"]).code, Some(3));
    let early = project.run(&["answer", &project.waiting_hold(), "done", "--foreground"]);
    assert_eq!(early.code, Some(3), "{early:?}");
    assert!(early.stderr.contains("the check failed: `test -f clicked`"), "{early:?}");
    project.write("clicked", "");
    let hold = project.waiting_hold();
    assert!(hold.ends_with("@2"), "{hold}");
    assert_eq!(project.run(&["answer", &hold, "done", "--foreground"]).code, Some(0));
    assert_eq!(project.read("chosen.txt"), "postgres\n");
    let run = project.newest();
    assert_eq!(project.events(&run, "rework_requested").len(), 1);
    let summary = project.run(&["summary", &run]).stdout;
    for part in [
        "## Verified\n\n- verify in build: ",
        &format!("  - **Report issues** by {}", user()),
        "## Decided\n\n- decision in build: Which database?",
    ] {
        assert!(summary.contains(part), "{part:?} is not in\n{summary}");
    }
}

const LOGIN: &str = "
name: deploy
phases:
  - id: ship
    tasks:
      - id: deploy
        name: Deploy to the cloud
        run: './cloud --yes'
";

/// A program that requires a login until a token exists.
fn cloud(project: &Project) {
    let program = "#!/bin/sh\necho call >> calls.txt\n[ \"$1\" = whoami ] && { test -f token; exit; }\n\
                   test -f token || { echo 'Error: Not authenticated. Please run cloud login' >&2; exit 1; }\necho deployed > deployed.txt\n";
    project.write("cloud", program);
    std::process::Command::new("chmod").arg("+x").arg(project.path("cloud")).status().unwrap();
}

#[test]
fn an_auth_gate_is_probed_and_the_task_retried_without_spending_an_attempt() {
    let project = Project::with(LOGIN);
    cloud(&project);
    let settings = project.read(".lockgate/config.yaml");
    project.write(
        ".lockgate/config.yaml",
        format!("{settings}logins:\n  cloud: {{ pattern: not authenticated, login: cloud login, probe: ./cloud whoami }}\n"),
    );
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    for part in [
        "CHECKPOINT: Authentication Required",
        "Task: Deploy to the cloud",
        "Attempted: ./cloud --yes",
        "Error: Not authenticated. Please run cloud login",
        "1. Run: cloud login",
        "I'll verify: ./cloud whoami succeeds",
    ] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    let early = project.run(&["answer", &project.waiting_hold(), "done", "--foreground"]);
    assert_eq!(early.code, Some(3), "the probe is believed, not the word: {early:?}");
    assert_eq!(project.read("calls.txt"), "call\ncall\n", "the task itself was not retried");
    project.write("token", "");
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "done", "--foreground"]).code, Some(0));
    assert_eq!(project.read("deployed.txt"), "deployed\n");
    let run = project.newest();
    assert_eq!(project.events(&run, "task_failed").len(), 0, "it was no failure");
    let started = project.events(&run, "task_started");
    assert_eq!(started.last().unwrap()["reason"], "auth", "{started:?}");
    let summary = project.run(&["summary", &run]).stdout;
    let gates = "## Authentication Gates\n\nDuring execution, these authentication requirements were handled:\n\n\
                 1. Task Deploy to the cloud: authentication was required\n   - Paused for `cloud login`\n   \
                 - Resumed after authentication\n   - Finished successfully\n\nThese are normal gates, not errors.\n";
    assert!(summary.contains(gates), "{summary}");
}

#[test]
fn printing_403_while_succeeding_or_failing_a_test_opens_no_auth_gate() {
    let project = Project::with(
        "
name: tests
phases:
  - id: test
    tasks:
      - { id: well, run: 'echo \"HTTP 403 Forbidden\"' }
      - { id: badly, needs: [well], run: 'echo \"expected status 403, got 200\"; echo \"1 test failed\"; exit 1' }
",
    );
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(project.events(&project.newest(), "hold_opened").is_empty());
}

const DEFAULTS: &str = "
name: defaults
phases:
  - id: plan
    tasks:
      - id: database
        decision: { question: Which?, options: [{ id: sqlite }, { id: postgres }] }
        blocking: false
      - { id: build, needs: [database], run: 'echo \"{{outputs.plan.database.option}}\" >> built.txt' }
      - { id: independent, run: 'echo once >> independent.txt' }
  - id: ship
    checkpoint: { approval_required: true }
";

#[test]
fn a_default_answers_immediately_and_changing_it_reruns_dependents() {
    let project = Project::with(DEFAULTS);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let run = project.newest();
    let answered = &project.events(&run, "answered")[0];
    assert_eq!((&answered["option"], &answered["actor"]["channel"]), (&"sqlite".into(), &"default".into()), "{answered}");
    let hold = answered["hold"].as_str().unwrap().to_owned();
    let asked = project.run(&["change", &hold, "postgres"]);
    assert_eq!(asked.code, Some(3), "no one can confirm it: {asked:?}");
    assert!(asked.stderr.contains("and reruns:\n  plan/build\n  all of phase ship"), "{asked:?}");
    let changed = project.json(0, &["change", &hold, "postgres", "--yes", "--json"]);
    assert_eq!((&changed["phase"], &changed["tasks"]), (&"plan".into(), &serde_json::json!(["build"])), "{changed}");
    assert_eq!(project.run(&["resume", &run]).code, Some(3));
    assert_eq!(project.read("built.txt"), "sqlite\npostgres\n");
    assert_eq!(project.read("independent.txt"), "once\n", "independent work is not repeated");
    assert_eq!(project.run(&["change", &hold, "sqlite", "--yes"]).code, Some(4), "a person's answer cannot be changed");
    assert_eq!(project.run(&["db", "verify"]).code, Some(0));
}

#[test]
fn policy_approves_under_its_condition_marks_it_and_never_acts_for_a_person() {
    let project = Project::with(
        "
name: policy
policy: { verify: { when: \"context.feature.name === 'small'\", max_consecutive: 5 }, decision: auto }
phases:
  - id: work
    tasks:
      - { id: make, pass: true }
      - { id: look, needs: [make], verify: { built: it } }
      - { id: way, needs: [look], decision: { question: Which?, options: [{ id: a }, { id: b }] } }
      - { id: act, needs: [way], action: { needed: your hand, check: 'true' } }
",
    );
    assert_eq!(project.run(&["run", "flow.yaml", "small"]).code, Some(3));
    let run = project.newest();
    let ways: Vec<String> = project.events(&run, "answered").iter().map(|event| event["actor"]["channel"].to_string()).collect();
    assert_eq!(ways, ["\"policy\"", "\"policy\""]);
    assert_eq!(project.json(0, &["inbox", "--json"])[0]["kind"], "action");
    assert_eq!(project.run(&["run", "flow.yaml", "large"]).code, Some(3));
    let kinds: Vec<String> =
        project.json(0, &["inbox", "--json"]).as_array().unwrap().iter().map(|hold| hold["kind"].to_string()).collect();
    assert_eq!(kinds, ["\"action\"", "\"verify\""], "the condition does not hold");
    project.write("flow.yaml", "name: x\npolicy: { action: auto }\nphases: [{ id: a, checkpoint: { prompt: x } }]\n");
    let refused = project.run(&["validate", "flow.yaml"]);
    assert_eq!(refused.code, Some(4));
    assert!(refused.stderr.contains("`action` is never answered without a person"), "{refused:?}");
}

#[test]
fn verifications_are_collected_at_the_end_of_their_phase() {
    let project = Project::with(
        "
name: collect
policy: { collect: phase }
phases:
  - id: work
    tasks:
      - { id: one, run: 'echo one >> done.txt' }
      - { id: look-one, needs: [one], verify: { built: one } }
      - { id: two, needs: [look-one], run: 'echo two >> done.txt' }
      - { id: look-two, needs: [two], verify: { built: two } }
",
    );
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    assert_eq!(project.read("done.txt"), "one\ntwo\n", "nothing waits for a verification");
    let inbox = project.json(0, &["inbox", "--json"]);
    assert_eq!(inbox.as_array().unwrap().len(), 2, "{inbox}");
    let hold = |index: usize| format!("{}@1", inbox[index]["id"].as_str().unwrap());
    assert_eq!(project.run(&["answer", &hold(0), "approved", "--foreground"]).code, Some(3));
    assert_eq!(project.run(&["answer", &hold(1), "approved", "--foreground"]).code, Some(0));
}

/// A run that waits for an answer after its deadline has passed.
fn with_deadline(then: &str) -> Project {
    let project = waits_until("50ms", then);
    std::thread::sleep(Duration::from_millis(80));
    project
}

fn waits_until(deadline: &str, then: &str) -> Project {
    let project = Project::with(&format!(
        "
name: deadline
phases:
  - id: plan
    tasks: [{{ id: draft, pass: true }}]
    checkpoint: {{ prompt: Good?, deadline: {deadline}, remind: 1s, on_deadline: {then} }}
  - id: build
    tasks: [{{ id: make, run: 'echo built > built.txt' }}]
"
    ));
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    project
}

#[test]
fn tick_fires_due_timers_and_the_first_durable_answer_wins() {
    let project = with_deadline("{ answer: continue }");
    let fired = project.json(0, &["tick", "--json"]);
    assert_eq!(fired.as_array().unwrap().iter().filter(|fired| fired["kind"] == "deadline").count(), 1, "{fired}");
    let run = project.newest();
    let late = project.run(&["answer", project.events(&run, "answered")[0]["hold"].as_str().unwrap(), "Abort", "--no-resume"]);
    assert_eq!(late.code, Some(3), "the deadline was first: {late:?}");
    assert_eq!(project.run(&["resume", &run]).code, Some(0));
    assert_eq!(project.read("built.txt"), "built\n");
    assert_eq!(project.events(&run, "answered")[0]["actor"]["channel"], "deadline");

    let project = waits_until("1h", "{ answer: continue }");
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Abort", "--no-resume"]).code, Some(0));
    assert_eq!(project.run(&["tick"]).code, Some(0));
    assert_eq!(project.run(&["resume", &project.newest()]).code, Some(2), "the answer was first");

    let project = with_deadline("abort");
    project.run(&["tick"]);
    assert_eq!(project.status(&project.newest())["status"], "aborted");

    let project = with_deadline("{ escalate: ann }");
    project.run(&["tick"]);
    let inbox = project.json(0, &["inbox", "--json"]);
    assert_eq!(inbox[0]["escalated"], true, "{inbox}");
    assert_eq!(inbox[0]["on_deadline"], serde_json::json!({"action": "escalate", "to": "ann"}), "{inbox}");
    let run = project.newest();
    for command in [&["inbox"][..], &["why", &run], &["status", &run], &["agent", "handover", &run]] {
        let text = project.run(command).stdout;
        assert!(text.contains("escalated to ann, overdue since 20"), "{command:?}: {text}");
    }
    let log = project.run(&["log", &run]).stdout;
    assert!(log.contains("in time: escalated to ann") && !log.contains("(by deadline"), "{log}");
    until("a reminder", || {
        project.run(&["tick"]);
        !project.events(&run, "reminded").is_empty()
    });
    let log = project.run(&["log", &run]).stdout;
    let reminder = log.lines().find(|line| line.contains("reminder 1 of hold")).unwrap();
    assert!(!reminder.contains("(by "), "{reminder}");
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Continue", "--foreground"]).code, Some(0));
}

#[test]
fn resume_fires_a_deadline_that_has_passed() {
    let project = with_deadline("{ answer: continue }");
    let run = project.newest();
    let why = project.run(&["why", &run]).stdout;
    assert!(why.contains("past its deadline") && !why.contains("until"), "{why}");
    let resumed = project.run(&["resume", &run]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(project.read("built.txt"), "built\n");
    assert_eq!(project.events(&run, "answered")[0]["actor"]["channel"], "deadline");

    let project = with_deadline("abort");
    let run = project.newest();
    assert_eq!(project.run(&["resume", &run]).code, Some(4), "there is nothing to resume any more");
    assert_eq!(project.status(&run)["status"], "aborted");
}

#[test]
fn an_abort_by_a_deadline_is_reported_as_one() {
    for then in ["abort", "{ answer: abort }"] {
        let project = with_deadline(then);
        let (run, hold) = (project.newest(), project.waiting_hold());
        let hold = hold.split('@').next().unwrap();
        let late = project.run(&["resume", &run]);
        let why = project.run(&["why", &run]).stdout;
        let resumed = project.run(&["resume", &run]);
        let waited = project.run(&["wait", &run]);
        assert_eq!((resumed.code, waited.code), (Some(4), Some(2)), "{then}: {resumed:?} {waited:?}");
        for reported in [&late.stderr, &why, &resumed.stderr, &waited.stderr] {
            assert!(reported.contains(&format!("no one answered hold {hold} before its deadline")), "{then}: {reported}");
            assert!(!reported.contains("a person"), "{then}: {reported}");
        }
    }
    let project = waits_until("1h", "abort");
    assert_eq!(project.run(&["answer", &project.waiting_hold(), "Abort", "--foreground"]).code, Some(2));
    let why = project.run(&["why", &project.newest()]).stdout;
    assert!(why.contains("a person aborted it"), "{why}");
}

#[test]
fn a_hold_past_its_deadline_offers_only_valid_actions() {
    for (then, works) in [("{ answer: continue }", "lockgate resume RUN"), ("abort", "lockgate tick")] {
        let project = with_deadline(then);
        let run = project.newest();
        let works = works.replace("RUN", &run);
        for command in [&["inbox"][..], &["why", &run], &["status", &run]] {
            let text = project.run(command).stdout;
            assert!(text.contains("past its deadline"), "{then}: {command:?}: {text}");
            assert!(text.contains(&works) && !text.contains("lockgate answer"), "{then}: {command:?}: {text}");
        }
        let handover = project.run(&["agent", "handover", &run]).stdout;
        assert!(handover.contains("lockgate tick") && !handover.contains("lockgate answer"), "{then}: {handover}");
        let reason = project.json(0, &["why", &run, "--json"])["reasons"][0].clone();
        assert_eq!(reason["commands"], serde_json::json!([works]), "{reason}");
        let hold = project.waiting_hold();
        let refused = project.run(&["change", &hold, "Continue", "--yes"]);
        assert!(!refused.stderr.contains("lockgate answer"), "{refused:?}");
    }
    let project = with_deadline("escalate");
    let why = project.run(&["why", &project.newest()]).stdout;
    assert!(why.contains("past its deadline") && why.contains("lockgate answer"), "a late answer counts: {why}");
}

#[test]
fn an_answer_after_the_deadline_is_refused_even_if_the_timer_never_fired() {
    let project = with_deadline("{ answer: continue }");
    let (run, hold) = (project.newest(), project.waiting_hold());
    let late = project.run(&["answer", &hold, "Abort", "--no-resume"]);
    assert_eq!(late.code, Some(3), "{late:?}");
    assert!(late.stderr.contains("deadline"), "{late:?}");
    assert_eq!(project.events(&run, "answered").len(), 1);
    assert_eq!(project.run(&["resume", &run]).code, Some(0));
    assert_eq!(project.read("built.txt"), "built\n");
}

#[test]
fn every_view_of_a_hold_shows_its_deadline_and_the_consequence() {
    for (then, words, json) in [
        ("{ answer: continue }", "answered with \"Continue\" in 1h 59m unless", r#"{"action": "answer", "option": "continue"}"#),
        ("{ escalate: ann }", "escalates to ann in 1h 59m unless", r#"{"action": "escalate", "to": "ann"}"#),
        ("abort", "the run aborts in 1h 59m unless", r#"{"action": "abort"}"#),
    ] {
        let checkpoint = format!("{{ prompt: Good?, deadline: 7199s, on_deadline: {then} }}");
        let project = Project::with(&format!("name: flow\nphases: [{{ id: plan, checkpoint: {checkpoint} }}]\n"));
        let waits = project.run(&["run", "flow.yaml"]);
        assert!(waits.code == Some(3) && waits.stderr.contains(words), "{waits:?}");
        let run = project.newest();
        for command in [&["inbox"][..], &["why", &run], &["status", &run], &["agent", "handover", &run]] {
            let text = project.run(command).stdout;
            assert!(text.contains(words), "{command:?}: {text}");
        }
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(project.json(0, &["inbox", "--json"])[0]["on_deadline"], json);
        assert_eq!(project.status(&run)["holds"][0]["on_deadline"], json);
        assert_eq!(project.json(0, &["why", &run, "--json"])["reasons"][0]["hold"]["on_deadline"], json);
    }
}

#[test]
fn a_deadline_of_a_detached_run_fires_unattended() {
    let project = Project::with(
        "
name: deadline
phases:
  - id: plan
    checkpoint: { prompt: Good?, deadline: 300ms, on_deadline: { answer: continue } }
  - id: build
    tasks: [{ id: make, run: 'echo built > built.txt' }]
",
    );
    assert_eq!(project.run(&["run", "flow.yaml", "--detach"]).code, Some(0));
    until("the deadline", || project.read("built.txt") == "built\n");
    let waited = finish(project.start(&["wait", &project.newest()]));
    assert_eq!(waited.code, Some(0), "{waited:?}");
}

#[test]
fn changing_an_answer_to_abort_says_that_the_run_is_aborted() {
    let flow = "
name: stop
phases:
  - id: plan
    tasks:
      - id: way
        decision: { question: Which?, options: [{ id: a }, { id: b }] }
        blocking: false
  - id: build
    checkpoint: { prompt: Good? }
    tasks: [{ id: make, pass: true }]
";
    let project = Project::with(flow);
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    let run = project.newest();
    let hold = project.events(&run, "answered")[0]["hold"].as_str().unwrap().to_owned();
    let changed = project.run(&["change", &hold, "abort", "--yes"]);
    assert_eq!(changed.code, Some(0), "{changed:?}");
    assert!(changed.stderr.contains(&format!("run {run} is aborted")), "{changed:?}");

    let project = Project::with(&flow.replace("    checkpoint: { prompt: Good? }\n", ""));
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    let run = project.newest();
    let hold = project.events(&run, "answered")[0]["hold"].as_str().unwrap().to_owned();
    let unconfirmed = project.run(&["change", &hold, "abort"]).stderr;
    assert!(!unconfirmed.contains("done again") && unconfirmed.contains("aborted"), "{unconfirmed}");
    let changed = project.run(&["change", &hold, "abort", "--yes", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&changed.stdout).unwrap();
    assert_eq!((&json["phase"], &json["tasks"]), (&serde_json::Value::Null, &serde_json::json!([])), "nothing is done again");
    let fork = json["run"].as_str().unwrap();
    assert_eq!(project.status(fork)["status"], "aborted");
    assert!(changed.stderr.contains(&format!("the changed answer aborts its fork {fork}")), "{changed:?}");
    assert!(!changed.stderr.contains("goes on") && !changed.stderr.contains("resume"), "{changed:?}");
    assert_eq!(project.status(&run)["status"], "complete");
}

#[test]
fn changing_an_answer_of_a_complete_run_creates_a_fork_that_continues_from_it() {
    let project = Project::with(
        "
name: fork
phases:
  - id: plan
    tasks:
      - { id: draft, run: 'echo drafted >> drafts.txt; echo plan > $LOCKGATE_OUTPUT_DIR/plan.md', outputs: [plan.md] }
      - id: way
        needs: [draft]
        decision: { question: Which?, options: [{ id: a }, { id: b }] }
        blocking: false
  - id: build
    tasks: [{ id: make, run: 'cat $LOCKGATE_OUTPUT_DIR/plan.md && echo {{outputs.plan.way.option}} >> built.txt' }]
",
    );
    assert_eq!(project.run(&["run", "flow.yaml", "shop"]).code, Some(0));
    let parent = project.newest();
    let before = project.log(&parent);
    let hold = project.events(&parent, "answered")[0]["hold"].as_str().unwrap().to_owned();
    let changed = project.json(0, &["change", &hold, "b", "--yes", "--json"]);
    let fork = changed["run"].as_str().unwrap().to_owned();
    assert_ne!(fork, parent);
    let resumed = project.run(&["resume", &fork]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(project.read("built.txt"), "a\nb\n");
    assert_eq!(project.read("drafts.txt"), "drafted\n", "what does not depend on it is not done again");
    assert_eq!(project.log(&parent), before, "a complete run stays unchanged");
    let created = &project.events(&fork, "created")[0];
    assert_eq!(created["origin"]["forked"]["parent"], parent.as_str(), "{created}");
    assert_eq!(project.run(&["db", "verify"]).code, Some(0));
    assert_eq!(project.run(&["db", "gc"]).code, Some(0));
    assert_eq!(project.run(&["status", &fork]).code, Some(0));
}

#[test]
fn questions_accept_preset_answers_and_yes_matches_no_other_option() {
    let project = Project::with(THREE);
    project.write("clicked", "");
    let arguments = ["run", "flow.yaml", "shop", "--answer", "build/look=approved", "--answer", "database=postgres"];
    assert_eq!(project.run(&[&arguments[..], &["--answer", "build/mail=done"]].concat()).code, Some(0));
    assert_eq!(project.read("chosen.txt"), "postgres\n");
    assert_eq!(project.run(&["run", "flow.yaml", "--answer", "build/look=lgtm"]).code, Some(4));
    for signal in ["issues", "'2'", "'\"\"'"] {
        project.write("flow.yaml", THREE.replace("resume_signal: ship it", &format!("resume_signal: {signal}")));
        let reported = project.run(&["validate", "flow.yaml"]);
        assert_eq!(reported.code, Some(4), "{signal}: {reported:?}");
    }
}

#[test]
fn the_settings_may_allow_answers_without_a_person() {
    let project = Project::with(
        "
name: settings
phases:
  - id: work
    tasks:
      - { id: make, pass: true }
      - { id: look, needs: [make], verify: { built: it } }
      - { id: way, needs: [look], decision: { question: Which?, options: [{ id: a }, { id: b }] } }
",
    );
    let settings = project.read(".lockgate/config.yaml");
    project.write(".lockgate/config.yaml", format!("{settings}policy: {{ verify: auto }}\n"));
    assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(3));
    assert_eq!(project.json(0, &["inbox", "--json"])[0]["kind"], "decision");
    assert_eq!(project.events(&project.newest(), "answered")[0]["actor"]["channel"], "policy");
}
