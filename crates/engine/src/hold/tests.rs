//! The meaning of options, and the texts of holds.

use super::*;
use crate::id::GateId;
use crate::run::budget::BudgetScope;
use crate::run::command::{Channel, Credential};
use crate::run::handover::{CurrentTask, Handover, HandoverKind, HandoverStatus};
use crate::spec::workflow::question;
use std::time::Duration;

fn hold(kind: HoldKind, options: Vec<Choice>, chosen: Option<&str>) -> Hold {
    let actor = Actor {
        credential: Credential::Person,
        name: "ada".into(),
        channel: Channel::Command,
        terminal: true,
        inside_task: None,
        uid: Some(1000),
    };
    let at = Timestamp::from_millis(0);
    let answers = chosen.map(|option| Answer { option: OptionId::from(option), feedback: None, actor, at }).into_iter().collect();
    Hold {
        id: HoldId::from("hold0000"),
        kind,
        scope: Scope::Run,
        prompt: "Good?".into(),
        notes: Vec::new(),
        files: Vec::new(),
        options,
        blocking: true,
        quorum: 1,
        revision: 1,
        state: HoldState::Open,
        answers,
        opened_at: at,
        since: at,
        question: None,
        terms: Terms::default(),
        previous: None,
        diff: None,
    }
}

fn task(phase: &str, task: &str) -> TaskKey {
    TaskKey { phase: PhaseId::from(phase), iteration: 1, task: task.into(), item: None }
}

#[test]
fn a_selector_matches_a_hold_by_id_or_by_subject() {
    let (phase, gate) = (PhaseId::from("build"), GateId::from("lint"));
    let scopes = [
        (Scope::Run, None, None),
        (Scope::Phase { phase: phase.clone(), iteration: 1 }, Some("build"), None),
        (Scope::Tasks(vec![task("build", "a"), task("build", "b")]), Some("build/b"), Some("build/a")),
        (Scope::Gate { phase: phase.clone(), iteration: 1, gate }, Some("build/lint"), None),
        (Scope::Gaps { phase, iteration: 1 }, Some("build/gap_check"), None),
    ];
    for (scope, meant, also) in scopes {
        assert_eq!(scope.phase().map(PhaseId::as_str), meant.map(|_| "build"));
        let hold = Hold { scope, ..hold(HoldKind::Failed, task_options(), None) };
        assert!(hold.is_selected_by("hold0000") && !hold.is_selected_by("hold") && !hold.is_selected_by("elsewhere"));
        for selector in ["build", "build/a", "build/b", "build/lint", "build/gap_check"] {
            let expected = Some(selector) == meant || Some(selector) == also;
            assert_eq!(hold.is_selected_by(selector), expected, "{selector}: {:?}", hold.scope);
        }
        let addresses = hold.scope.addresses();
        assert_eq!(addresses.last().map(String::as_str), meant.filter(|meant| meant.contains('/')));
    }
}

#[test]
fn a_deadline_escalates_only_after_it_passed_and_only_if_configured() {
    let due = |then, over| {
        let deadline = Due { timer: TimerId::from("timer000"), at: Timestamp::from_millis(1), then, over };
        let terms = Terms { deadline: Some(deadline), ..Terms::default() };
        Hold { terms, ..hold(HoldKind::Decision, Vec::new(), None) }.is_escalated()
    };
    assert!(due(OnDeadline::Escalate(None), true));
    assert!(!due(OnDeadline::Escalate(None), false));
    assert!(!due(OnDeadline::Abort, true));
    assert!(!hold(HoldKind::Decision, Vec::new(), None).is_escalated());
}

#[test]
fn only_a_continuing_answer_is_checked_and_only_once() {
    let check = Check { run: "true".into(), timeout: Some(Duration::from_secs(1)), description: None };
    let terms = Terms { check: Some(check), ..Terms::default() };
    let with = |options: Vec<Choice>, chosen: Option<&str>, terms: &Terms| {
        Hold { terms: terms.clone(), ..hold(HoldKind::Action, options, chosen) }.needs_check()
    };
    assert!(with(action_options(None), Some("done"), &terms));
    assert!(with(authentication_options(), Some("done"), &terms));
    assert!(!with(authentication_options(), Some("failure"), &terms));
    assert!(!with(authentication_options(), Some("abort"), &terms));
    assert!(!with(action_options(None), None, &terms), "nothing was answered");
    assert!(!with(action_options(None), Some("done"), &Terms { checked: true, ..terms }));
    assert!(!with(action_options(None), Some("done"), &Terms::default()), "there is nothing to check");
}

#[test]
fn issues_come_from_a_verification_that_reported_some() {
    let options = || verify_options(Action::Fail, None);
    assert!(hold(HoldKind::Verify, options(), Some("issues")).found_issues());
    assert!(!hold(HoldKind::Verify, options(), Some("approved")).found_issues());
    assert!(!hold(HoldKind::Verify, options(), None).found_issues());
    assert!(!hold(HoldKind::Decision, options(), Some("issues")).found_issues());
}

#[test]
fn an_option_is_found_by_id_before_number_and_number_before_label() {
    let plain = |id: &str, label: &str| Choice::plain(id, label, Action::Continue);
    let options = vec![plain("a", "2"), plain("b", "Bee"), Choice { signals: vec!["ready".into()], ..plain("3", "See") }];
    let hold = hold(HoldKind::Decision, options, None);
    let named = |named: &str| hold.option(named).map(|choice| choice.id.to_string());
    assert_eq!(named("3").as_deref(), Some("3"), "the id, which is also the number of the same");
    assert_eq!(named("2").as_deref(), Some("b"), "the number before the label of another");
    assert_eq!(named("\"BEE\"").as_deref(), Some("b"));
    assert_eq!(named("Ready").as_deref(), Some("3"));
    assert_eq!((named("0"), named("4"), named("be"), named("")), (None, None, None, None));
}

#[test]
fn only_continuing_options_are_bound_to_the_shown_files() {
    let phase = PhaseId::from("a");
    let all = [
        (Action::Continue, true),
        (Action::SkipPhases(vec![phase.clone()]), true),
        (Action::CountAsDone, true),
        (Action::RepeatPhase(phase), false),
        (Action::Abort, false),
        (Action::Rerun, false),
        (Action::RaiseBudget(BudgetScope::Run), false),
        (Action::Redo(Vec::new()), false),
        (Action::Fail, false),
    ];
    let words: std::collections::BTreeSet<&str> = all.iter().map(|(action, _)| action.as_str()).collect();
    assert_eq!(words.len(), all.len(), "each has a word of its own");
    for (action, continues) in all {
        assert_eq!(action.continues(), continues, "{action:?}");
        assert!(!action.as_str().is_empty());
    }
}

#[test]
fn each_kind_and_state_has_a_name_and_questions_are_asked() {
    let put = [HoldKind::Checkpoint, HoldKind::Verify, HoldKind::Decision, HoldKind::Action];
    let came_up =
        [HoldKind::Interrupted, HoldKind::Failed, HoldKind::Gaps, HoldKind::Budget, HoldKind::Authentication, HoldKind::Handover];
    assert!(put.iter().all(|kind| kind.is_declared()) && !came_up.iter().any(|kind| kind.is_declared()));
    let words: Vec<&str> = put.iter().chain(&came_up).map(|kind| kind.as_str()).collect();
    let expected =
        ["checkpoint", "verify", "decision", "action", "interrupted", "failed", "gaps", "budget", "authentication", "handover"];
    assert_eq!(words, expected);
    let states = [HoldState::Open, HoldState::Checking, HoldState::Settled, HoldState::Void].map(HoldState::as_str);
    assert_eq!(states, ["open", "checking", "settled", "void"]);
    assert_eq!(HoldKind::of(None), HoldKind::Checkpoint);
}

#[test]
fn an_observation_has_a_digest_and_size_only_if_the_file_exists() {
    let digest = Digest::of(b"x");
    let all = [
        (Seen::Absent, None, None),
        (Seen::File { digest, bytes: 7, mode: 0o644 }, Some(digest), Some(7)),
        (Seen::Directory { digest, files: 7, mode: 0o755 }, Some(digest), None),
        (Seen::Unreadable("no".into()), None, None),
    ];
    for (seen, digest, bytes) in all {
        assert_eq!((seen.digest(), seen.bytes()), (digest, bytes), "{seen:?}");
    }
}

#[test]
fn options_map_to_actions_and_require_feedback_where_it_matters() {
    let rows = |options: Vec<Choice>| -> Vec<(String, &'static str, bool, bool)> {
        let of =
            |choice: &Choice| (choice.id.to_string(), choice.action.as_str(), choice.with_feedback, choice.requires_feedback);
        options.iter().map(of).collect()
    };
    let row = |id: &str, word, with_feedback, requires_feedback| (id.to_owned(), word, with_feedback, requires_feedback);
    let abort = || row("abort", "abort", false, false);
    let phase = PhaseId::from("a");
    assert_eq!(
        rows(verify_options(Action::Fail, Some("ok"))),
        [row("approved", "continue", false, false), row("issues", "fail", true, true)]
    );
    assert!(verify_options(Action::Fail, Some("ok"))[0].is_selected_by("OK"));
    assert!(action_options(Some("sent"))[0].is_selected_by("sent"));
    assert_eq!(
        rows(authentication_options()),
        [row("done", "rerun", false, false), row("failure", "fail", false, false), abort()]
    );
    assert_eq!(rows(commit_options()), [row("continue", "rerun", false, false), abort()]);
    assert_eq!(
        rows(gap_options(&phase)),
        [row("retry", "repeat_phase", true, false), row("continue", "count_as_done", false, false), abort()]
    );
    assert_eq!(
        rows(budget_options(&BudgetScope::Run)),
        [row("raise-budget", "raise_budget", false, false), row("count-as-done", "count_as_done", false, false), abort()]
    );
    let task = [row("rerun", "rerun", false, false), row("count-as-done", "count_as_done", false, false), abort()];
    assert_eq!(rows(task_options()), task);
    assert_eq!(rows(gate_options(&phase))[..3], task);
    assert_eq!(rows(gate_options(&phase))[3], row("repeat", "repeat_phase", true, false));
}

fn handed_over(kind: HandoverKind, details: &str) -> Handover {
    Handover {
        kind,
        plan: "07-01".into(),
        done: 0,
        total: 0,
        completed: Vec::new(),
        current: CurrentTask { number: "1".into(), name: "a".into(), status: HandoverStatus::Blocked, blocked_by: String::new() },
        details: details.to_owned(),
        awaiting: String::new(),
        options: Vec::new(),
    }
}

fn decision(ways: &[(&str, &str)]) -> Handover {
    let way = |(id, name): &(&str, &str)| question::DecisionOption {
        id: OptionId::from(*id),
        name: (*name).to_owned(),
        pros: None,
        cons: None,
    };
    Handover { options: ways.iter().map(way).collect(), ..handed_over(HandoverKind::Decision, "Which?") }
}

fn decided(ways: &[(&str, &str)]) -> Vec<(String, String)> {
    let options = handover_options(&decision(ways));
    options.iter().map(|choice| (choice.id.to_string(), choice.label.clone())).collect()
}

#[test]
fn options_listed_by_an_agent_come_before_built_in_ones() {
    let options = handover_options(&decision(&[("fast", "The quick one"), ("sure", "The sure one")]));
    let listed: Vec<(&str, &str)> = options.iter().map(|choice| (choice.id.as_str(), choice.label.as_str())).collect();
    let expected = [("fast", "The quick one"), ("sure", "The sure one"), ("answer", "Answer in words"), ("abort", "Abort")];
    assert_eq!(listed, expected);
    assert!(options[0].action == Action::Rerun && !options[0].requires_feedback);
    assert!(options[2].requires_feedback && options[2].with_feedback && options[2].action == Action::Rerun);
    assert_eq!(options[3].action, Action::Abort);
}

#[test]
fn an_agent_option_never_replaces_a_built_in_one() {
    let shown = decided(&[("abort", "Leave it"), ("other", "Abort")]);
    assert_eq!(shown[0], ("option-abort".to_owned(), "Leave it".to_owned()));
    assert_eq!(shown[1], ("other".to_owned(), "Abort (agent's option)".to_owned()));
    assert_eq!(shown[3], ("abort".to_owned(), "Abort".to_owned()));
    let shown = decided(&[("abort", "Leave it"), ("option-abort", "Another")]);
    assert_eq!(shown[0].0, "option-1", "an id that is free");
    let shown = decided(&[("abort", "Leave it"), ("option-abort", "Another"), ("option-1", "One more")]);
    assert_eq!(shown[0].0, "agent-option-1");
}

#[test]
fn an_agent_question_for_a_verification_or_action_gets_default_text() {
    let of = |kind| -> Vec<(String, bool)> {
        let options = handover_options(&handed_over(kind, ""));
        options.iter().map(|choice| (choice.id.to_string(), choice.requires_feedback)).collect()
    };
    let expected =
        |all: &[(&str, bool)]| -> Vec<(String, bool)> { all.iter().map(|(id, needs)| ((*id).to_owned(), *needs)).collect() };
    assert_eq!(of(HandoverKind::Verify), expected(&[("approved", false), ("issues", true), ("abort", false)]));
    assert_eq!(of(HandoverKind::Action), expected(&[("done", false), ("abort", false)]));
}

fn asked(topic: Topic) -> HoldQuestion {
    HoldQuestion { task: "Deploy".into(), done: 2, total: 8, topic, signal: None }
}

#[test]
fn an_agent_that_reports_plan_progress_is_shown_with_it() {
    let counted = |done, total| {
        let handover = Handover { done, total, ..handed_over(HandoverKind::Verify, "Look at it.") };
        asked(Topic::Handover(Box::new(handover))).prompt()
    };
    assert_eq!(counted(1, 3), "Progress: 1/3 tasks complete\nTask: a\n\nLook at it.\n");
    assert_eq!(counted(0, 0), "Progress: 2/8 tasks complete\nTask: Deploy\n\nLook at it.\n", "it counted nothing");
}

#[test]
fn the_awaited_input_of_an_agent_is_shown_if_reported() {
    let details = |awaiting: &str| {
        let handover = Handover { awaiting: awaiting.into(), ..handed_over(HandoverKind::Action, " Log in. ") };
        asked(Topic::Handover(Box::new(handover))).details()
    };
    assert_eq!(details("the token\n"), "Log in.\n\nAwaiting: the token\n");
    assert_eq!(details(" "), "Log in.\n");
}

#[test]
fn each_question_states_the_expected_answer() {
    use crate::spec::workflow::question::{Action, Decision, DecisionOption, Verify};
    let way = |id: &str| DecisionOption { id: OptionId::from(id), name: id.to_uppercase(), pros: None, cons: None };
    let decision = Decision { question: "Which?".into(), context: None, options: vec![way("one"), way("two")] };
    let action = |needed: &str| Question::Action(Action { needed: needed.into(), ..Action::default() });
    let awaiting = |question: Question| asked(Topic::Question(question)).awaiting();
    assert_eq!(awaiting(Question::Verify(Verify::default())), "\"approved\", or the issues found");
    assert_eq!(awaiting(Question::Decision(decision)), "One of: one, two");
    assert_eq!(awaiting(action("Click the link")), "Click the link. Then \"done\".");
    assert_eq!(awaiting(action("Click the link! ")), "Click the link! Then \"done\".");
    let handover = Handover { awaiting: "the token".into(), ..handed_over(HandoverKind::Action, "") };
    assert_eq!(asked(Topic::Handover(Box::new(handover))).awaiting(), "the token");
}

#[test]
fn options_are_listed_with_their_pros_and_cons() {
    let fast = Choice { pros: Some("quick".into()), cons: Some("risky".into()), ..Choice::plain("a", "Fast", Action::Continue) };
    let listed = offered_text(&[fast, Choice::plain("b", "Sure", Action::Continue)]);
    assert_eq!(listed, "Options:\n1. a: Fast\n   Pros: quick\n   Cons: risky\n\n2. b: Sure\n");
}

#[test]
fn only_repeating_a_phase_or_its_tasks_counts_as_a_rerun() {
    let phase = PhaseId::from("a");
    assert!(Action::RepeatPhase(phase.clone()).repeats() && Action::Redo(Vec::new()).repeats());
    let others = [
        Action::Continue,
        Action::SkipPhases(vec![phase]),
        Action::Abort,
        Action::Rerun,
        Action::CountAsDone,
        Action::RaiseBudget(BudgetScope::Run),
        Action::Fail,
    ];
    for action in others {
        assert!(!action.repeats(), "{action:?}");
    }
}

#[test]
fn the_word_stop_stops_the_run_at_any_hold() {
    let hold = hold(HoldKind::Decision, vec![Choice::plain("a", "A", Action::Continue)], None);
    for word in ["stop", "abort", "Stop the run"] {
        assert_eq!(hold.option(word).map(|choice| &choice.action), Some(&Action::Abort), "{word}");
    }
}
