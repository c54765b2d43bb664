//! Handovers: an agent that reaches a checkpoint asks, and the next attempt continues with the answer.

use super::*;
use crate::hold::HoldKind;
use crate::run::event::AttemptReason;
use crate::run::handover::{CompletedTask, CurrentTask, Handover, HandoverKind, HandoverStatus};
use crate::run::phase::{Exchange, Response};

fn completed(number: &str, name: &str, commit: &str) -> CompletedTask {
    CompletedTask { number: number.into(), name: name.into(), commit: Some(commit.into()), files: Vec::new() }
}

fn handover(kind: HandoverKind, details: &str) -> Handover {
    Handover {
        kind,
        plan: "07-01".into(),
        done: 1,
        total: 3,
        completed: vec![completed("1", "schema", "aaa")],
        current: CurrentTask {
            number: "2".into(),
            name: "api".into(),
            status: HandoverStatus::Blocked,
            blocked_by: String::new(),
        },
        details: details.into(),
        awaiting: "a word".into(),
        options: Vec::new(),
    }
}

fn working() -> Harness {
    Harness::new(workflow(vec![phase("one", vec![Task::new(TaskId::from("plan"), Work::Agent(Box::default()))])]))
}

fn end(harness: &mut Harness, outcome: TaskOutcome) -> Vec<Event> {
    let Effect::Task { key, attempt } = harness.effect_of("one/plan") else { unreachable!() };
    harness.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None })
}

fn asking(handover: Handover) -> Harness {
    let mut harness = working();
    end(&mut harness, TaskOutcome::HandsOver(Box::new(handover)));
    harness
}

fn exchange(harness: &Harness) -> &Exchange {
    harness.run.task_run(&key("one", 1, "plan")).unwrap().exchange.as_ref().expect("the task has an exchange")
}

/// The response that the agent gets after an answer.
fn response_after(kind: HandoverKind, option: &str, words: Option<&str>) -> Response {
    let way =
        |id: &str, name: &str| question::DecisionOption { id: OptionId::from(id), name: name.into(), pros: None, cons: None };
    let options = match kind {
        HandoverKind::Decision => vec![way("fast", "The quick one"), way("sure", "sure")],
        HandoverKind::Verify | HandoverKind::Action => Vec::new(),
    };
    let mut harness = asking(Handover { options, ..handover(kind, "") });
    harness.answer(option, words);
    let mut reasons = harness.entries.iter().filter_map(|entry| match &entry.event {
        Event::TaskStarted { reason, .. } => Some(*reason),
        _ => None,
    });
    assert_eq!(reasons.next_back(), Some(AttemptReason::Answered), "it continues because of the answer");
    exchange(&harness).response.clone().expect("the agent gets the response")
}

#[test]
fn the_answer_is_passed_to_the_agent_in_its_own_terms() {
    use HandoverKind::{Action, Decision, Verify};
    let all = [
        (Verify, "approved", None, "approved", false),
        (Verify, "approved", Some(" "), "approved", false),
        (Verify, "approved", Some(" nice "), "approved (nice)", false),
        (Verify, "issues", Some(" too slow "), "too slow", true),
        (Decision, "fast", None, "fast: The quick one", false),
        (Decision, "fast", Some("but log it"), "fast: The quick one (but log it)", false),
        (Decision, "sure", None, "sure", false),
        (Decision, "answer", Some("neither"), "neither", false),
        (Action, "done", None, "done", false),
        (Action, "done", Some("as root"), "done (as root)", false),
    ];
    for (kind, option, words, text, issues) in all {
        let expected = Response { text: text.into(), issues };
        assert_eq!(response_after(kind, option, words), expected, "{kind:?} {option} {words:?}");
    }
}

#[test]
fn completed_work_is_kept_over_several_handovers() {
    let mut harness = asking(handover(HandoverKind::Verify, "Look."));
    harness.answer("approved", None);
    let same = Handover { completed: vec![completed("1", "schema", "bbb")], ..handover(HandoverKind::Verify, "Again.") };
    end(&mut harness, TaskOutcome::HandsOver(Box::new(same)));
    let known = |harness: &Harness| exchange(harness).handover.as_ref().unwrap().completed.clone();
    assert_eq!(known(&harness), [completed("1", "schema", "bbb")], "the same task is listed once, as last reported");
    assert_eq!(exchange(&harness).response, None, "the last answer was for the last question");
    harness.answer("approved", None);
    let others = vec![completed("1", "seeds", "ccc"), completed("2", "schema", "ddd")];
    let next = Handover { completed: others.clone(), ..handover(HandoverKind::Verify, "Again.") };
    end(&mut harness, TaskOutcome::HandsOver(Box::new(next)));
    let completed = [vec![completed("1", "schema", "bbb")], others].concat();
    assert_eq!(known(&harness), completed, "a different number or name is a different task");
    harness.answer("approved", None);
    let last = Handover { completed: Vec::new(), ..handover(HandoverKind::Verify, "Once more.") };
    end(&mut harness, TaskOutcome::HandsOver(Box::new(last)));
    assert_eq!(known(&harness), completed, "an agent need not repeat work of earlier agents");
}

#[test]
fn an_agent_question_starts_with_its_first_line_or_its_awaited_input() {
    let prompt = |details: &str| asking(handover(HandoverKind::Action, details)).hold().prompt.clone();
    assert_eq!(prompt("\n  Log in.\nThen wait."), "one/plan asks: Log in.");
    assert_eq!(prompt(" \n"), "one/plan asks: a word");
}

/// A run in which the commits of the previous agent do not exist.
fn without(commits: &[&str]) -> Harness {
    let mut harness = asking(handover(HandoverKind::Verify, "Look."));
    harness.answer("approved", None);
    let commits = commits.iter().map(|commit| (*commit).to_owned()).collect();
    end(&mut harness, TaskOutcome::CommitsMissing(commits));
    harness
}

#[test]
fn missing_commits_are_asked_about_and_a_person_may_continue_without_them() {
    let mut harness = without(&["aaa"]);
    assert_eq!(harness.hold().kind, HoldKind::Handover);
    let work: Vec<&String> = harness.hold().notes.iter().skip(1).collect();
    assert_eq!(work, ["task 1 (schema) was reported as commit aaa"]);
    harness.answer("continue", None);
    assert!(exchange(&harness).unchecked, "missing commits are accepted");
    assert_eq!(exchange(&harness).response.as_ref().map(|said| said.text.as_str()), Some("approved"), "the answer is not lost");
    harness.work();
    assert_eq!(harness.run.status(), crate::run::Status::Complete);
}

#[test]
fn a_question_about_missing_commits_names_eight_and_counts_the_rest() {
    let asked = |commits: &[&str]| {
        let prompt = without(commits).hold().prompt.clone();
        prompt.split_once("do not exist in git: ").unwrap().1.to_owned()
    };
    assert_eq!(asked(&["a", "b", "c", "d", "e", "f", "g", "h"]), "a, b, c, d, e, f, g, h. Continue anyway?");
    assert_eq!(asked(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]), "a, b, c, d, e, f, g, h and 1 more. Continue anyway?");
}

#[test]
fn a_retried_attempt_keeps_the_answer_to_its_handover() {
    let mut harness = asking(handover(HandoverKind::Verify, "Look."));
    harness.answer("approved", None);
    end(&mut harness, TaskOutcome::Failed(broken()));
    harness.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(exchange(&harness).response.as_ref().map(|said| said.text.as_str()), Some("approved"));
}
