//! Answers: who may give them, which one counts, and preset answers.

use crate::project::{Project, finish};
use serde_json::json;
use snapbox::{assert_data_eq, str};

const FLOW: &str = "
name: flow
phases:
  - id: review
    tasks: [{ id: read, run: 'echo once >> ran' }]
    checkpoint:
      prompt: Good?
      options:
        - { label: Looks good, on_select: { action: continue } }
        - { label: Again, with_feedback: true, on_select: { action: repeat_phase, target: current } }
        - { label: Stop, on_select: { action: abort } }
  - id: ship
    tasks: [{ id: send, run: 'echo sent >> ran' }]
";

fn waiting() -> (Project, String) {
    let project = Project::with(FLOW);
    assert_eq!(project.run(&["run", "flow.yaml", "login"]).code, Some(3));
    let hold = project.waiting_hold();
    (project, hold)
}

#[test]
fn an_answer_is_recorded_and_the_run_continues_when_resumed() {
    let (project, hold) = waiting();
    let output = project.run(&["answer", &hold, "looks good", "--no-resume"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 0
--- stdout
--- stderr
hold [HOLD] is answered: "Looks good"
note: no process drives run [RUN]; continue it with `lockgate resume [RUN]`

"#]]
    );
    assert_eq!(project.read("ran"), "once\n", "recording does not drive");
    assert_eq!(project.run(&["resume", "login"]).code, Some(0));
    assert_eq!(project.read("ran"), "once\nsent\n", "finished work is not repeated");
}

#[test]
fn repeating_an_answer_succeeds_and_a_different_one_shows_the_recorded_answer() {
    let (project, hold) = waiting();
    assert_eq!(project.run(&["answer", &hold, "1", "--no-resume"]).code, Some(0));
    let again = project.run(&["answer", &hold, "Looks good", "--no-resume"]);
    assert_data_eq!(
        project.snapshot(&again),
        str![[r#"
exit 0
--- stdout
--- stderr
hold [HOLD] already has this answer, by [USER] by command at [TIME]
note: no process drives run [RUN]; continue it with `lockgate resume [RUN]`

"#]]
    );
    let other = project.run(&["answer", &hold, "Stop", "--no-resume"]);
    assert_data_eq!(
        project.snapshot(&other),
        str![[r#"
exit 3
--- stdout
--- stderr
error[answer-conflict]: [USER] answered "Looks good" at [TIME]; "Stop" came later and was not recorded
help: see what happened to it with `lockgate log [RUN]`

"#]]
    );
    assert_eq!(project.run(&["resume", "login"]).code, Some(0));
    assert_eq!(project.run(&["answer", &hold, "Looks good", "--no-resume"]).code, Some(0), "also when the run is complete");
    assert_eq!(project.run(&["answer", &hold, "Stop", "--no-resume"]).code, Some(3));
    assert_eq!(project.events(&project.newest(), "answered").len(), 1);
}

#[test]
fn one_of_two_concurrent_answers_wins() {
    for _ in 0..4 {
        let (project, hold) = waiting();
        let one = project.start(&["answer", &hold, "Looks good", "--no-resume"]);
        let other = project.start(&["answer", &hold, "Stop", "--no-resume"]);
        let (one, other) = (finish(one), finish(other));
        let mut codes = [one.code, other.code];
        codes.sort();
        assert_eq!(codes, [Some(0), Some(3)], "{one:?} {other:?}");
        let recorded = project.events(&project.newest(), "answered");
        assert_eq!(recorded.len(), 1);
        let expected = if one.code == Some(0) { "looks-good" } else { "stop" };
        assert_eq!(recorded[0]["option"], expected);
    }
}

#[test]
fn an_unknown_option_is_bad_input_and_lists_the_options() {
    let (project, hold) = waiting();
    let output = project.run(&["answer", &hold, "lgtm", "--no-resume"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 4
--- stdout
--- stderr
error[option-not-found]: "lgtm" is not an option of hold [HOLD]
help: its options are
      1. Looks good
      2. Again (with feedback)
      3. Stop

"#]]
    );
}

#[test]
fn holds_and_runs_can_be_named_by_any_unambiguous_prefix() {
    let (project, hold) = waiting();
    let run = project.newest();
    assert_eq!(project.run(&["status", &run[..4]]).code, Some(0));
    assert_eq!(project.run(&["status", &run.to_uppercase()]).code, Some(0));
    let (id, revision) = hold.split_once('@').unwrap();
    assert_eq!(project.run(&["answer", &format!("{}@{revision}", &id[..5]), "1", "--no-resume"]).code, Some(0));
    for nothing in ["status", "why", "log", "resume", "cancel"] {
        let output = project.run(&[nothing, "zzzzzzzzz"]);
        assert_eq!(output.code, Some(4), "{output:?}");
        assert!(output.stderr.contains("no run \"zzzzzzzzz\""), "{output:?}");
    }
    assert_eq!(project.run(&["answer", "zzzzzzzzz", "1", "--no-resume"]).code, Some(4));
    assert_eq!(project.run(&["answer", &format!("{id}@new"), "1", "--no-resume"]).code, Some(4));
}

#[test]
fn an_ambiguous_prefix_is_an_error_that_lists_the_matches() {
    // Ids have 32 possible first characters, so two of 33 runs share one.
    let project = Project::with("name: tiny\nphases: [{ id: a, tasks: [{ id: t, pass: true }] }]\n");
    for _ in 0..33 {
        assert_eq!(project.run(&["run", "flow.yaml"]).code, Some(0));
    }
    let runs = project.json(0, &["runs", "--json"]);
    let ids: Vec<&str> = runs.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    let beginning =
        ids.iter().map(|id| &id[..1]).find(|begin| ids.iter().filter(|id| id.starts_with(begin)).count() > 1).unwrap();
    let output = project.run(&["status", beginning]);
    assert_eq!(output.code, Some(4), "{output:?}");
    for id in ids.iter().filter(|id| id.starts_with(beginning)).take(5) {
        assert!(output.stderr.contains(id), "{output:?}");
    }
}

#[test]
fn a_feature_names_its_newest_unfinished_run() {
    let project = Project::with(FLOW);
    assert_eq!(project.run(&["run", "flow.yaml", "login"]).code, Some(3));
    let first = project.newest();
    assert_eq!(project.run(&["run", "flow.yaml", "login", "--answer", "review=1"]).code, Some(0));
    assert_ne!(project.newest(), first);
    assert_eq!(project.status("login")["run"], first.as_str());
    assert_eq!(project.run(&["cancel", "login"]).code, Some(0));
    let output = project.run(&["resume", "login"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("all runs of \"login\" have ended"), "{output:?}");
    assert_eq!(project.status("login")["run"], project.newest(), "views select the newest run");
}

#[test]
fn preset_answers_are_used_in_order_and_recorded_as_preset() {
    let project = Project::with(FLOW);
    let arguments = [
        "run",
        "flow.yaml",
        "--answer",
        "review=Again",
        "--answer",
        "review=2",
        "--answer",
        "review=1",
        "--feedback",
        "review=more",
    ];
    let output = project.run(&arguments);
    assert_eq!(output.code, Some(0), "{output:?}");
    let answered = project.events(&project.newest(), "answered");
    let said: Vec<_> = answered.iter().map(|event| (event["option"].as_str().unwrap(), event.get("feedback").cloned())).collect();
    assert_eq!(said, [("again", Some(json!("more"))), ("again", None), ("looks-good", None)]);
    assert!(answered.iter().all(|event| event["actor"]["channel"] == "preset"));
}

#[test]
fn preset_answers_can_come_from_a_file() {
    let project = Project::with(FLOW);
    project.write("answers.yaml", "review: [{ option: Again, feedback: more }, Looks good]\n");
    assert_eq!(project.run(&["run", "flow.yaml", "--answers", "answers.yaml"]).code, Some(0));
    assert_eq!(project.events(&project.newest(), "answered")[0]["feedback"], "more");
    project.write("answers.yaml", "- { at: review }\n");
    let output = project.run(&["run", "flow.yaml", "--answers", "answers.yaml"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert_eq!(project.run(&["run", "flow.yaml", "--answers", "missing.yaml"]).code, Some(4));
}

#[test]
fn unused_preset_answers_are_reported() {
    let project = Project::with(FLOW);
    let output =
        project.run(&["run", "flow.yaml", "--answer", "review=Stop", "--answer", "review=Again", "--answer", "ship/send=rerun"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("warning: the answer \"review=Again\" given in advance was not used"), "{output:?}");
    assert!(output.stderr.contains("\"ship/send=rerun\""), "{output:?}");
}

#[test]
fn preset_answers_for_unknown_targets_are_refused_before_anything_runs() {
    let project = Project::with(FLOW);
    let output = project.run(&["run", "flow.yaml", "--answer", "reveiw=Stop"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 4
--- stdout
--- stderr
error[invalid-preset]: the workflow has no phase or task "reveiw"
help: did you mean "review"?

"#]]
    );
    let output = project.run(&["run", "flow.yaml", "--answer", "review=Look good"]);
    assert_data_eq!(
        project.snapshot(&output),
        str![[r#"
exit 4
--- stdout
--- stderr
error[invalid-preset]: "Look good" is not an option of "review"
help: did you mean "Looks good"?
help: its options are "Looks good", "Again", "Stop"

"#]]
    );
    for wrong in ["ship=Continue", "review/raed=rerun", "nowhere/read=rerun", "review/read=Continue", "review=9", "review=0"] {
        let output = project.run(&["run", "flow.yaml", "--answer", wrong]);
        assert_eq!(output.code, Some(4), "{wrong}: {output:?}");
    }
    assert!(!project.path("ran").exists());
}

#[test]
fn a_waiting_run_accepts_preset_answers() {
    let (project, _) = waiting();
    let output = project.run(&["resume", "login", "--answer", "review=1"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(project.events(&project.newest(), "answered")[0]["actor"]["channel"], "preset");
}

#[test]
fn a_hold_about_a_failed_task_is_answered_by_the_task_address() {
    let flow = "
name: asks
phases:
  - id: build
    tasks: [{ id: make, run: 'test -e ready', on_fail: ask }]
";
    let project = Project::with(flow);
    let output = project.run(&["run", "flow.yaml"]);
    assert_eq!(output.code, Some(3), "{output:?}");
    let run = project.newest();
    assert_eq!(project.status(&run)["holds"][0]["kind"], "failed");
    let output = project.run(&["resume", &run, "--answer", "build/make=count-as-done"]);
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn a_hold_about_repeating_a_phase_for_a_gate_ignores_preset_answers() {
    let flow = "
name: flow
phases:
  - id: a
    tasks: [{ id: work, run: 'true' }]
    gates: [{ id: chk, run: 'false', on_fail: ask }]
";
    let project = Project::with(flow);
    for option in ["4", "repeat", "Run the phase again with its findings"] {
        for selector in ["a/chk", "chk"] {
            let output = project.run(&["run", "flow.yaml", "--answer", &format!("{selector}={option}")]);
            assert_eq!(output.code, Some(4), "{output:?}");
            assert!(
                output.stderr.contains("cannot be answered in advance") && output.stderr.contains("on_fail: repeat"),
                "{output:?}"
            );
        }
    }
    let unknown = project.run(&["run", "flow.yaml", "--answer", "a/chk=5"]);
    assert!(unknown.stderr.contains("is not an option") && !unknown.stderr.contains("Report issues"), "{unknown:?}");
    assert_eq!(project.run(&["run", "flow.yaml", "--answer", "a/chk=2"]).code, Some(0));
}
