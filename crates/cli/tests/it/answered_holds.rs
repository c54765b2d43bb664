//! Views of answered holds, and the revisions and options that an answer may name.

use crate::project::{Project, finish, until, user};

const FLOW: &str = "
name: flow
phases:
  - id: review
    tasks: [{ id: read, pass: true }]
    checkpoint:
      prompt: Good?
      options:
        - { label: Looks good, on_select: { action: continue } }
        - { label: Again, with_feedback: true, on_select: { action: repeat_phase, target: current } }
  - id: ship
    tasks: [{ id: send, pass: true }]
";

fn waiting() -> (Project, String) {
    let project = Project::with(FLOW);
    assert_eq!(project.run(&["run", "flow.yaml", "login"]).code, Some(3));
    let hold = project.waiting_hold();
    (project, hold)
}

#[test]
fn an_answered_hold_is_shown_as_answered_and_no_longer_asks() {
    let (project, hold) = waiting();
    assert_eq!(project.run(&["answer", &hold, "Again", "--feedback", "shorter", "--no-resume"]).code, Some(0));
    let run = project.newest();
    let status = project.status(&run);
    let answer = &status["holds"][0]["answer"];
    assert_eq!((&answer["option"], &answer["label"]), (&"again".into(), &"Again".into()), "{status}");
    assert_eq!((&answer["feedback"], &answer["by"]["name"]), (&"shorter".into(), &user().into()), "{status}");
    assert!(answer["at"].is_string(), "{status}");
    for command in ["status", "why"] {
        let text = project.run(&[command, &run]).stdout;
        let answered = format!("is answered \"Again\" (feedback: shorter) by {} by command at 20", user());
        assert!(text.contains(&answered), "{text}");
        assert!(text.contains(&format!("lockgate resume {run}")), "{text}");
        assert!(!text.contains("lockgate answer") && !text.contains("it was interrupted"), "{text}");
    }
    let why = project.json(0, &["why", &run, "--json"]);
    assert_eq!(why["reasons"].as_array().unwrap().len(), 1, "{why}");
    assert_eq!(why["reasons"][0]["hold"]["answer"]["option"], "again", "{why}");
    assert_eq!(project.json(0, &["inbox", "--json"]), serde_json::json!([]));
}

#[test]
fn printed_commands_have_a_feedback_placeholder_and_resume_only_undriven_runs() {
    let (project, hold) = waiting();
    for command in [&["why", "login"][..], &["status", "login"], &["inbox"]] {
        let text = project.run(command).stdout;
        assert!(text.contains(&format!("lockgate answer {hold} Again --feedback \"…\"\n")), "{text}");
    }
    let flow = "
name: both
phases:
  - id: work
    tasks:
      - { id: broken, run: 'test -e mended', on_fail: ask }
      - { id: long, run: 'touch began; while [ ! -e go ]; do sleep 0.02; done' }
";
    let project = Project::with(flow);
    let child = project.start(&["run", "flow.yaml"]);
    until("both tasks", || project.path("began").exists() && project.run(&["inbox"]).stdout.contains("@1"));
    let (hold, run) = (project.waiting_hold(), project.newest());
    for command in [&["why", &run][..], &["status", &run], &["inbox"]] {
        let text = project.run(command).stdout;
        assert!(text.contains(&format!("lockgate answer {hold} \"Run again\"\n")) && !text.contains("--resume"), "{text}");
    }
    project.write("go", "");
    assert_eq!(finish(child).code, Some(3));
}

#[test]
fn a_nonexistent_revision_is_bad_input_before_and_after_the_answer() {
    let (project, hold) = waiting();
    let id = hold.split('@').next().unwrap();
    let refused = |project: &Project, when: &str| {
        for revision in ["0", "2", "7"] {
            let output = project.run(&["answer", &format!("{id}@{revision}"), "Looks good", "--no-resume"]);
            assert_eq!(output.code, Some(4), "{when}: {output:?}");
            let said = format!("hold {id} has no revision {revision}; the latest is 1");
            assert!(output.stderr.contains(&said), "{when}: {output:?}");
        }
    };
    refused(&project, "open");
    assert_eq!(project.run(&["answer", &hold, "Looks good", "--no-resume"]).code, Some(0));
    refused(&project, "answered");
    assert_eq!(project.run(&["resume", "login"]).code, Some(0));
    refused(&project, "settled");
    assert_eq!(project.events(&project.newest(), "answered").len(), 1);
}

#[test]
fn a_nonexistent_option_is_bad_input_even_after_the_hold_is_decided() {
    let (project, hold) = waiting();
    assert_eq!(project.run(&["answer", &hold, "Looks good", "--foreground"]).code, Some(0));
    let output = project.run(&["answer", &hold, "lgtm", "--no-resume"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    assert!(output.stderr.contains("\"lgtm\" is not an option of hold"), "{output:?}");
    assert!(output.stderr.contains("1. Looks good") && output.stderr.contains("2. Again"), "{output:?}");
    assert_eq!(
        project.run(&["answer", &hold, "1", "--no-resume"]).code,
        Some(0),
        "the number of the answered option is the same answer"
    );
    assert_eq!(project.run(&["answer", &hold, "2", "--no-resume"]).code, Some(3));
}
