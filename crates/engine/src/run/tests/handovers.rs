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

fn working() -> Bench {
    Bench::new(workflow(vec![phase("one", vec![Task::new(TaskId::from("plan"), Work::Agent(Box::default()))])]))
}

fn end(bench: &mut Bench, outcome: TaskOutcome) -> Vec<Event> {
    let Effect::Task { key, attempt } = bench.effect_of("one/plan") else { unreachable!() };
    bench.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None })
}

fn asking(handover: Handover) -> Bench {
    let mut bench = working();
    end(&mut bench, TaskOutcome::HandsOver(Box::new(handover)));
    bench
}

fn exchange(bench: &Bench) -> &Exchange {
    bench.run.task_run(&key("one", 1, "plan")).unwrap().exchange.as_ref().expect("something was said")
}

/// What the agent is told after an answer.
fn told(kind: HandoverKind, option: &str, words: Option<&str>) -> Response {
    let way = |id: &str, name: &str| question::Way { id: OptionId::from(id), name: name.into(), pros: None, cons: None };
    let options = match kind {
        HandoverKind::Decision => vec![way("fast", "The quick one"), way("sure", "sure")],
        HandoverKind::Verify | HandoverKind::Action => Vec::new(),
    };
    let mut bench = asking(Handover { options, ..handover(kind, "") });
    bench.answer(option, words);
    let mut reasons = bench.entries.iter().filter_map(|entry| match &entry.event {
        Event::TaskStarted { reason, .. } => Some(*reason),
        _ => None,
    });
    assert_eq!(reasons.next_back(), Some(AttemptReason::Answered), "it continues because of the answer");
    exchange(&bench).response.clone().expect("it is told what a person said")
}

#[test]
fn an_agent_is_told_the_answer_in_the_words_that_it_can_use() {
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
        assert_eq!(told(kind, option, words), expected, "{kind:?} {option} {words:?}");
    }
}

#[test]
fn what_agents_completed_is_kept_over_several_handovers() {
    let mut bench = asking(handover(HandoverKind::Verify, "Look."));
    bench.answer("approved", None);
    let same = Handover { completed: vec![completed("1", "schema", "bbb")], ..handover(HandoverKind::Verify, "Again.") };
    end(&mut bench, TaskOutcome::HandsOver(Box::new(same)));
    let known = |bench: &Bench| exchange(bench).handover.as_ref().unwrap().completed.clone();
    assert_eq!(known(&bench), [completed("1", "schema", "bbb")], "the same task is listed once, as it was named last");
    assert_eq!(exchange(&bench).response, None, "the last answer was for the last question");
    bench.answer("approved", None);
    let others = vec![completed("1", "seeds", "ccc"), completed("2", "schema", "ddd")];
    let next = Handover { completed: others.clone(), ..handover(HandoverKind::Verify, "Again.") };
    end(&mut bench, TaskOutcome::HandsOver(Box::new(next)));
    let completed = [vec![completed("1", "schema", "bbb")], others].concat();
    assert_eq!(known(&bench), completed, "another number or another name is another task");
    bench.answer("approved", None);
    let last = Handover { completed: Vec::new(), ..handover(HandoverKind::Verify, "Once more.") };
    end(&mut bench, TaskOutcome::HandsOver(Box::new(last)));
    assert_eq!(known(&bench), completed, "an agent need not repeat what was done before it");
}

#[test]
fn the_question_of_an_agent_starts_with_its_first_words_or_with_what_it_waits_for() {
    let prompt = |details: &str| asking(handover(HandoverKind::Action, details)).hold().prompt.clone();
    assert_eq!(prompt("\n  Log in.\nThen wait."), "one/plan asks: Log in.");
    assert_eq!(prompt(" \n"), "one/plan asks: a word");
}

/// A run whose agent cannot find these commits of the one before it.
fn without(commits: &[&str]) -> Bench {
    let mut bench = asking(handover(HandoverKind::Verify, "Look."));
    bench.answer("approved", None);
    let commits = commits.iter().map(|commit| (*commit).to_owned()).collect();
    end(&mut bench, TaskOutcome::CommitsMissing(commits));
    bench
}

#[test]
fn missing_commits_are_asked_about_and_a_person_may_go_on_without_them() {
    let mut bench = without(&["aaa"]);
    assert_eq!(bench.hold().kind, HoldKind::Handover);
    let work: Vec<&String> = bench.hold().notes.iter().skip(1).collect();
    assert_eq!(work, ["task 1 (schema) is said to be in aaa"]);
    bench.answer("go-on", None);
    assert!(exchange(&bench).unchecked, "the commits need not be there any more");
    assert_eq!(exchange(&bench).response.as_ref().map(|said| said.text.as_str()), Some("approved"), "the answer is not lost");
    bench.work();
    assert_eq!(bench.run.status(), crate::run::Status::Complete);
}

#[test]
fn a_question_about_missing_commits_names_eight_and_counts_the_others() {
    let asked = |commits: &[&str]| {
        let prompt = without(commits).hold().prompt.clone();
        prompt.split_once("does not know: ").unwrap().1.to_owned()
    };
    assert_eq!(asked(&["a", "b", "c", "d", "e", "f", "g", "h"]), "a, b, c, d, e, f, g, h. Shall it go on?");
    assert_eq!(asked(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]), "a, b, c, d, e, f, g, h and 1 more. Shall it go on?");
}

#[test]
fn an_agent_is_asked_nothing_anew_when_a_failed_attempt_of_it_runs_again() {
    let mut bench = asking(handover(HandoverKind::Verify, "Look."));
    bench.answer("approved", None);
    end(&mut bench, TaskOutcome::Failed(broken()));
    bench.outcome(CommandKind::TakeOver { driver: DriverId::from("driver-2"), detached: false });
    assert_eq!(exchange(&bench).response.as_ref().map(|said| said.text.as_str()), Some("approved"));
}
