//! Questions of three kinds, missing logins, deadlines, and automatic answers.

use super::*;
use crate::hold::{
    Authentication, HoldKind, HoldState, action_options, authentication_options, decision_options, verify_options,
};
use crate::run::Status;
use crate::run::event::AttemptReason;
use crate::spec::workflow::question::{Action as Needed, Decision, DecisionOption as Path, Verify};
use std::time::Duration;

pub(super) fn question(id: &str, needs: &[&str], question: Question, options: Vec<Choice>) -> Task {
    let checkpoint = Checkpoint { question: Some(question), ..checkpoint(options).unwrap() };
    Task { work: Work::Checkpoint(Box::new(checkpoint)), ..task(id, needs) }
}

pub(super) fn verify(id: &str, of: &str, rounds: u32) -> Task {
    let redo = vec![TaskId::from(of)];
    let asked = Verify { built: "it".into(), redo: redo.clone(), rounds, ..Verify::default() };
    question(id, &[of], Question::Verify(asked), verify_options(Action::Redo(redo), Some("ship it")))
}

pub(super) fn decision(id: &str, needs: &[&str]) -> Task {
    let way = |id: &str| Path { id: OptionId::from(id), name: id.to_uppercase(), pros: None, cons: None };
    let options = vec![way("sqlite"), way("postgres")];
    let asked = Decision { question: "Which?".into(), context: None, options: options.clone() };
    question(id, needs, Question::Decision(asked), decision_options(&options))
}

pub(super) fn action(id: &str, needs: &[&str]) -> Task {
    let check = Some(Check { run: "test -f clicked".into(), timeout: None, description: None });
    let asked = Needed { needed: "the link".into(), check, ..Needed::default() };
    question(id, needs, Question::Action(asked), action_options(None))
}

pub(super) fn with_waits(mut task: Task, waits: WaitSettings) -> Task {
    if let Work::Checkpoint(checkpoint) = &mut task.work {
        checkpoint.waits = waits;
    }
    task
}

fn harness(tasks: Vec<Task>) -> Harness {
    let mut harness = Harness::new(workflow(vec![phase("one", tasks), phase("two", vec![task("after", &[])])]));
    harness.work();
    harness
}

#[test]
fn a_verification_accepts_only_approved_or_issues() {
    let mut harness = harness(vec![task("make", &[]), verify("look", "make", 3), task("ship", &["look"])]);
    assert_eq!((harness.hold().kind, harness.run.status()), (HoldKind::Verify, Status::Waiting));
    assert_eq!(harness.hold().question.as_ref().map(|asked| (asked.done, asked.total)), Some((1, 4)));
    for near in ["lgtm", "approve it", "ok", "yes", "approved?", ""] {
        let body = harness.answer_body(near, None);
        assert!(matches!(harness.tell(person(), body, true), Err(Refusal::OptionNotFound { .. })), "{near}");
    }
    for words in [None, Some(""), Some("  ")] {
        let body = harness.answer_body("issues", words);
        assert!(matches!(harness.tell(person(), body, true), Err(Refusal::FeedbackRequired { .. })), "{words:?}");
    }
    assert_eq!(harness.started(), ["one/make", "one/look"]);
    harness.answer("\"Ship It\"", None);
    assert_eq!(harness.started(), ["one/make", "one/look", "one/ship"], "the plan's own signal is an approval");
}

#[test]
fn every_question_can_be_answered_by_stopping_the_run() {
    for asked in [verify("look", "make", 3), decision("look", &["make"]), action("look", &["make"])] {
        for word in ["abort", "Stop the run", "stop"] {
            let mut harness = harness(vec![task("make", &[]), asked.clone(), task("ship", &["look"])]);
            let options = harness.hold().options.len();
            assert!(
                harness.hold().options.iter().all(|choice| choice.action != Action::Abort),
                "it is separate from the options"
            );
            assert!(harness.hold().option(&(options + 1).to_string()).is_none(), "it has no number");
            harness.answer(word, None);
            assert_eq!(harness.run.status(), Status::Aborted, "{word}");
            let decided = harness.run.decisions.last().unwrap();
            assert_eq!((decided.label.as_str(), decided.action.as_str()), ("Stop the run", "abort"));
            assert_eq!(decided.actor.name, person().name, "it is this person who stopped it");
            assert_eq!(harness.started(), ["one/make", "one/look"]);
        }
    }
}

#[test]
fn an_option_named_abort_keeps_its_declared_action() {
    let way = |id: &str| Path { id: OptionId::from(id), name: id.to_uppercase(), pros: None, cons: None };
    let options = vec![way("merge"), way("abort"), way("stop")];
    let asked = Decision { question: "Which?".into(), context: None, options: options.clone() };
    let mut harness = harness(vec![question("look", &[], Question::Decision(asked), decision_options(&options))]);
    assert!(harness.hold().stop().is_none());
    harness.answer("abort", None);
    assert_ne!(harness.run.status(), Status::Aborted);
}

#[test]
fn issues_start_a_new_attempt_with_the_issues_and_ask_again() {
    let mut harness = harness(vec![task("make", &[]), verify("look", "make", 3)]);
    harness.answer("issues", Some("the button is off"));
    let made = harness.run.task_run(&key("one", 1, "make")).unwrap();
    assert_eq!((made.attempts, made.feedback(), made.failures), (2, Some("the button is off"), 0));
    let again = |event: &Event| matches!(event, Event::TaskStarted { key, attempt: 2, reason: AttemptReason::Feedback, .. } if key.task.as_str() == "make");
    assert!(harness.has(again));
    assert!(harness.run.open_holds().is_empty(), "it is asked again only after the work is done");
    harness.work();
    assert_eq!(harness.hold().kind, HoldKind::Verify);
    assert_eq!(harness.run.current.as_ref().unwrap().id.as_str(), "one", "issues never count as approval");
}

#[test]
fn endless_issues_fail_the_run_and_resuming_asks_again() {
    let mut harness = harness(vec![task("make", &[]), verify("look", "make", 1)]);
    harness.answer("issues", Some("first"));
    harness.work();
    harness.answer("issues", Some("second"));
    assert_eq!(harness.run.status(), Status::Failed);
    harness.tell(person(), CommandKind::TakeOver { driver: DriverId::from("d2"), detached: false }, true).unwrap();
    harness.work();
    assert_eq!((harness.run.status(), harness.hold().kind), (Status::Waiting, HoldKind::Verify));
    harness.answer("issues", Some("third"));
    assert_eq!(harness.run.status(), Status::Running, "the count starts over");
}

#[test]
fn later_tasks_see_the_decision() {
    let mut harness = harness(vec![decision("db", &[]), task("build", &["db"])]);
    harness.answer("Postgres", None);
    assert_eq!(harness.run.full_context(&|_| None)["outputs"]["one"]["db"]["option"], "postgres");
    assert_eq!(harness.started(), ["one/db", "one/build"]);
}

#[test]
fn done_is_accepted_only_if_the_check_passes() {
    let mut harness = harness(vec![action("mail", &[]), task("after", &["mail"])]);
    harness.answer("done", None);
    let Some(Effect::Check { hold, revision }) = harness.run.pending().into_iter().next() else { panic!("a check is due") };
    harness.outcome(CommandKind::Checked { hold: hold.clone(), revision, failure: Some(broken()) });
    assert_eq!((harness.hold().revision, harness.hold().state), (2, HoldState::Open));
    assert!(harness.hold().notes.iter().any(|note| note.contains("it broke")), "{:?}", harness.hold().notes);
    assert_eq!(harness.started(), ["one/mail"]);
    harness.outcome(CommandKind::Checked { hold, revision, failure: None });
    assert_eq!(harness.hold().revision, 2, "a late result changes nothing");
    harness.answer("done", None);
    harness.work();
    assert!(harness.started().contains(&"one/after".to_owned()));
}

fn lacks_authentication(harness: &mut Harness, address: &str, probe: Option<&str>) -> Vec<Event> {
    let missing = Authentication {
        attempted: "deploy".into(),
        error: "Not authenticated".into(),
        steps: vec!["Run: deploy login".into()],
        verified_by: "deploy whoami".into(),
        message: "it ended with exit code 1".into(),
        tail: String::new(),
    };
    let running = harness.run.pending().into_iter().find_map(|effect| match effect {
        Effect::Task { key, attempt } if key.address() == address => Some((key, attempt)),
        _ => None,
    });
    let (key, attempt) = running.expect("it runs");
    let probe = probe.map(|run| Check { run: run.into(), timeout: None, description: None });
    let outcome = TaskOutcome::Unauthenticated { missing: Box::new(missing), probe };
    harness.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None })
}

#[test]
fn an_auth_gate_is_not_a_failure_and_spends_no_attempt() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![task("deploy", &[]), task("other", &[])])]));
    lacks_authentication(&mut harness, "one/deploy", Some("deploy whoami"));
    assert_eq!(harness.run.status(), Status::Running, "others continue");
    assert_eq!(harness.hold().options, authentication_options());
    harness.work();
    assert_eq!(harness.run.status(), Status::Waiting);
    harness.answer("done", None);
    assert!(matches!(harness.run.pending()[..], [Effect::Check { .. }]), "the probe comes first");
    harness.perform(&harness.run.pending()[0].clone());
    let again = |event: &Event| matches!(event, Event::TaskStarted { attempt: 2, reason: AttemptReason::Auth, .. });
    assert!(harness.has(again));
    assert_eq!(harness.run.task_run(&key("one", 1, "deploy")).unwrap().failures, 0);
    lacks_authentication(&mut harness, "one/deploy", None);
    harness.answer("failure", None);
    assert_eq!(harness.run.status(), Status::Failed, "a person may treat it as a failure");
}

#[test]
fn a_nonblocking_question_continues_with_its_default_and_a_person_may_change_it() {
    let waits = WaitSettings { default: Some(OptionId::from("sqlite")), ..WaitSettings::default() };
    let tasks = vec![with_waits(decision("db", &[]), waits), task("build", &["db"]), task("other", &[])];
    let mut last = phase("two", vec![task("after", &[])]);
    last.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let mut harness = Harness::new(workflow(vec![phase("one", tasks), last]));
    harness.work();
    assert_eq!(harness.run.decisions.len(), 1);
    let decided = harness.run.decisions[0].clone();
    assert_eq!((decided.option.as_str(), decided.actor.channel), ("sqlite", Channel::Default));
    assert_eq!(harness.run.current.as_ref().unwrap().id.as_str(), "two", "the run did not wait");
    let found = crate::run::consequences(&harness.run, &decided.hold, "postgres").unwrap();
    assert_eq!(found.tasks, [TaskId::from("build")]);
    assert_eq!(found.carried, [TaskId::from("db"), TaskId::from("other")]);
    let change =
        CommandKind::ChangeAnswer(AnswerChange { hold: decided.hold.clone(), option: "postgres".into(), feedback: None });
    assert!(matches!(harness.tell(Actor::driver(), change.clone(), true), Err(Refusal::PersonRequired { .. })));
    let before = harness.started().len();
    harness.tell(person(), change.clone(), true).unwrap();
    harness.work();
    assert_eq!(harness.started()[before..], ["one/build", "two/after"], "only its dependents are redone");
    assert_eq!(harness.run.full_context(&|_| None)["outputs"]["one"]["db"]["option"], "postgres");
    assert!(harness.run.decisions[0].void);
    assert!(matches!(harness.tell(person(), change, true), Err(Refusal::AnsweredByPerson { .. })), "now a person gave it");
}

#[test]
fn policy_answers_up_to_its_consecutive_limit_and_marks_each_answer() {
    let mut asked = workflow(vec![phase(
        "one",
        vec![
            task("make", &[]),
            verify("a", "make", 3),
            verify("b", "make", 3),
            verify("c", "make", 3),
            action("act", &["a", "b", "c"]),
        ],
    )]);
    asked.policy.verify = Some(Automatic { when: None, max_consecutive: Some(2) });
    let mut harness = Harness::new(asked);
    harness.work();
    let ways: Vec<Channel> = harness.run.decisions.iter().map(|decision| decision.actor.channel).collect();
    assert_eq!(ways, [Channel::Policy, Channel::Policy]);
    assert_eq!(harness.hold().kind, HoldKind::Verify, "the third is for a person");
    harness.answer("approved", None);
    harness.work();
    assert_eq!(harness.hold().kind, HoldKind::Action, "an action is never answered without a person");
}

#[test]
fn a_deadline_answers_escalates_or_aborts_unless_already_answered() {
    let waits =
        |then| WaitSettings { deadline: Some(Deadline { after: Duration::from_secs(3600), then }), ..WaitSettings::default() };
    let timer = |harness: &Harness| harness.hold().terms.deadline.as_ref().unwrap().timer.clone();
    let due = |harness: &mut Harness, seconds: i64| {
        let timer = timer(harness);
        harness.now += seconds * 1000;
        harness.tell(Actor::driver(), CommandKind::TimerDue { timer }, false).unwrap()
    };
    let answer = || OnDeadline::Answer(OptionId::from("postgres"));
    let mut first = harness(vec![with_waits(decision("db", &[]), waits(answer()))]);
    assert!(due(&mut first, 10).is_empty(), "it is not due yet");
    assert_eq!(due(&mut first, 3600).len(), 2);
    let late = CommandKind::Answer {
        hold: first.run.holds.keys().next().unwrap().clone(),
        revision: None,
        option: "sqlite".into(),
        feedback: None,
    };
    assert!(matches!(first.tell(person(), late, true), Err(Refusal::AnswerConflict { .. })), "the deadline was first");
    first.tell(Actor::driver(), CommandKind::Advance, true).unwrap();
    assert_eq!(first.run.decisions[0].actor.channel, Channel::Deadline);

    let mut second = harness(vec![with_waits(decision("db", &[]), waits(answer()))]);
    let timer = timer(&second);
    second.answer("sqlite", None);
    second.now += 7_200_000;
    assert!(second.tell(Actor::driver(), CommandKind::TimerDue { timer }, false).unwrap().is_empty(), "the answer was first");

    let mut third = harness(vec![with_waits(decision("db", &[]), waits(OnDeadline::Escalate(None)))]);
    due(&mut third, 3600);
    assert!(third.hold().is_escalated());
    third.answer("sqlite", None);
    assert_eq!(third.run.status(), Status::Running);

    let mut fourth = harness(vec![with_waits(decision("db", &[]), waits(OnDeadline::Abort))]);
    due(&mut fourth, 3600);
    assert_eq!(fourth.run.status(), Status::Aborted);
}

#[test]
fn reminders_repeat() {
    let waits = WaitSettings { remind: Some(Duration::from_secs(60)), ..WaitSettings::default() };
    let mut harness = harness(vec![with_waits(decision("db", &[]), waits)]);
    for number in 1..=3 {
        let remind = harness.hold().terms.remind.clone().unwrap();
        assert_eq!(remind.sent, number - 1);
        harness.now = remind.at.as_millis();
        harness.tell(Actor::driver(), CommandKind::TimerDue { timer: remind.timer }, false).unwrap();
    }
    assert_eq!(harness.hold().terms.remind.as_ref().unwrap().sent, 3);
}

#[test]
fn a_timer_fires_only_for_its_target() {
    let deadline = Some(Deadline { after: Duration::from_secs(60), then: OnDeadline::Escalate(None) });
    let waits = WaitSettings { deadline, remind: Some(Duration::from_secs(60)), ..WaitSettings::default() };
    let mut harness = harness(vec![with_waits(decision("db", &[]), waits)]);
    harness.now += 3_600_000;
    let due = |harness: &Harness, timer: &crate::id::TimerId| {
        let body = CommandKind::TimerDue { timer: timer.clone() };
        crate::run::decide(&harness.run, &command(Actor::driver(), body, harness.now, false)).unwrap()
    };
    assert_eq!(due(&harness, &crate::id::TimerId::from("none")), []);
    let (remind, timer) =
        (harness.hold().terms.remind.clone().unwrap().timer, harness.hold().terms.deadline.clone().unwrap().timer);
    assert!(matches!(&due(&harness, &remind)[..], [Event::Reminded { number: 1, .. }]));
    assert!(matches!(&due(&harness, &timer)[..], [Event::DeadlinePassed { .. }]));
    harness.tell(Actor::driver(), CommandKind::Advance, false).unwrap();
    assert!(harness.hold().is_escalated());
    assert_eq!(due(&harness, &timer), [], "it has already passed");
}

#[test]
fn a_killed_run_keeps_its_open_questions() {
    let mut harness = harness(vec![task("make", &[]), verify("look", "make", 3), action("mail", &[])]);
    let before: Vec<HoldId> = harness.run.open_holds().iter().map(|hold| hold.id.clone()).collect();
    harness.tell(person(), CommandKind::TakeOver { driver: DriverId::from("d2"), detached: false }, true).unwrap();
    harness.work();
    let after: Vec<HoldId> = harness.run.open_holds().iter().map(|hold| hold.id.clone()).collect();
    assert_eq!((before.len(), before), (2, after));
    let bytes = harness.run.to_bytes();
    let mut read = Run::from_bytes(&bytes).unwrap();
    read.attach(harness.run.workflow.clone()).unwrap();
    assert_eq!(read.open_holds(), harness.run.open_holds());
}

#[test]
fn a_changed_answer_carries_over_only_ended_tasks() {
    let waits = WaitSettings { default: Some(OptionId::from("sqlite")), ..WaitSettings::default() };
    let tasks = vec![
        with_waits(decision("db", &[]), waits),
        task("build", &["db"]),
        task("tests", &[]),
        decision("other", &[]),
        task("ship", &["tests", "other"]),
    ];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    let db =
        harness.run.pending().into_iter().find(|effect| matches!(effect, Effect::Task { key, .. } if key.task.as_str() == "db"));
    harness.perform(&db.unwrap());
    harness.fail("one/tests");
    harness.work();
    let hold = harness.run.decisions[0].hold.clone();
    let found = crate::run::consequences(&harness.run, &hold, "postgres").unwrap();
    assert_eq!(found.carried, [TaskId::from("db")], "failed and waiting tasks are not done");
    harness
        .tell(person(), CommandKind::ChangeAnswer(AnswerChange { hold, option: "postgres".into(), feedback: None }), true)
        .unwrap();
    assert!(harness.run.task_run(&key("one", 2, "tests")).unwrap().attempts == 1, "it is done in the new execution");
}

#[test]
fn issues_with_a_fan_out_redo_its_items_and_dependents() {
    let mut each = task("make", &[]);
    each.for_each = Some(ForEach { over: ItemSource::List(vec!["a".into(), "b".into()]), max_parallel: None });
    let tasks = vec![each, task("pack", &["make"]), verify("look", "make", 3), task("ship", &["look", "pack"])];
    let mut tasks = tasks;
    tasks[2].needs = vec![TaskId::from("pack")];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    let fan_out = |attempt| CommandKind::TaskEnded {
        key: key("one", 1, "make"),
        attempt,
        outcome: TaskOutcome::Items(
            ["a", "b"]
                .map(|name| crate::run::command::Item { key: name.into(), value: StoredValue::Inline(format!("\"{name}\"")) })
                .into(),
        ),
        agent: None,
        commit: None,
    };
    harness.outcome(fan_out(1));
    harness.work();
    assert_eq!(harness.started(), ["one/make", "one/make[a]", "one/make[b]", "one/pack", "one/look"]);
    harness.answer("issues", Some("both are wrong"));
    assert!(harness.run.open_holds().is_empty(), "it is asked when all work is redone");
    harness.outcome(fan_out(2));
    harness.work();
    assert_eq!(harness.started()[5..], ["one/make", "one/make[a]", "one/make[b]", "one/pack", "one/look"]);
    harness.answer("approved", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_question_about_redone_work_is_asked_again() {
    let mut both = vec![task("one", &[]), verify("look-one", "one", 3), task("two", &["one"]), verify("look-two", "two", 3)];
    both[1].needs = vec![TaskId::from("one"), TaskId::from("two")];
    both[3].needs = both[1].needs.clone();
    let mut harness = harness(both);
    let holds: Vec<Hold> = harness.run.open_holds().into_iter().cloned().collect();
    assert_eq!(holds.len(), 2);
    let of_one = holds.iter().find(|hold| hold.scope.addresses() == ["one/look-one"]).unwrap();
    let issues =
        CommandKind::Answer { hold: of_one.id.clone(), revision: None, option: "issues".into(), feedback: Some("no".into()) };
    harness.tell(person(), issues, true).unwrap();
    assert!(harness.run.open_holds().is_empty());
    harness.work();
    assert_eq!(harness.started()[4..], ["one/one", "one/two", "one/look-one", "one/look-two"]);
    assert_eq!(harness.run.open_holds().len(), 2);
}

#[test]
fn a_deadline_is_waited_for_while_other_work_runs() {
    let waits = WaitSettings {
        deadline: Some(Deadline { after: Duration::from_secs(60), then: OnDeadline::Abort }),
        ..WaitSettings::default()
    };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![with_waits(decision("db", &[]), waits), task("slow", &[])])]));
    let asks =
        harness.run.pending().into_iter().find(|effect| matches!(effect, Effect::Task { key, .. } if key.task.as_str() == "db"));
    harness.perform(&asks.unwrap());
    let wake = harness.run.pending().into_iter().find(|effect| matches!(effect, Effect::Wake { .. }));
    harness.perform(&wake.expect("it has a timer"));
    assert_eq!(harness.run.status(), Status::Aborted);
}

#[test]
fn agent_options_never_replace_built_in_ones() {
    use crate::run::handover::{CurrentTask, Handover, HandoverKind, HandoverStatus};
    let handover = Handover {
        kind: HandoverKind::Decision,
        plan: String::new(),
        done: 0,
        total: 1,
        completed: Vec::new(),
        current: CurrentTask {
            number: "1".into(),
            name: "x".into(),
            status: HandoverStatus::AwaitingDecision,
            blocked_by: String::new(),
        },
        details: "Which?".into(),
        awaiting: String::new(),
        options: [("deploy-now", "Abort"), ("option-1", "Keep everything"), ("abort", "go on"), ("approved", "Answer in words")]
            .map(|(id, name)| Path { id: OptionId::from(id), name: name.into(), pros: None, cons: None })
            .into(),
    };
    let options = crate::hold::handover_options(&handover);
    let ids: Vec<&str> = options.iter().map(|choice| choice.id.as_str()).collect();
    assert_eq!(ids, ["deploy-now", "option-1", "option-abort", "approved", "answer", "abort"]);
    let (ours, of_agent): (Vec<_>, Vec<_>) = options.iter().partition(|choice| ["answer", "abort"].contains(&choice.id.as_str()));
    assert!(
        of_agent.iter().all(|choice| choice.action == Action::Rerun && !choice.requires_feedback && choice.signals.is_empty())
    );
    // No word selects both one of our options and one of the agent's.
    for choice in ours {
        for word in [choice.id.as_str(), &choice.label] {
            assert!(!of_agent.iter().any(|other| other.is_selected_by(word)), "{word}");
        }
    }
}

#[test]
fn policy_does_not_answer_a_question_with_notes() {
    let mut first = phase("one", vec![task("make", &[])]);
    first.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let mut asked = workflow(vec![first]);
    asked.policy.checkpoint = Some(Automatic::default());
    let mut harness = Harness::new(asked);
    harness.perform(&harness.run.pending()[0].clone());
    let shown = Presentation { automatic: true, notes: vec!["plan.md does not exist".into()], ..Presentation::default() };
    harness.outcome(CommandKind::Shown { phase: PhaseId::from("one"), iteration: 1, shown: Box::new(shown) });
    assert_eq!(harness.run.status(), Status::Waiting);
}

#[test]
fn issues_at_the_end_of_a_phase_redo_some_tasks_and_ask_again() {
    let asked = Verify { built: "it".into(), rounds: 3, ..Verify::default() };
    let options = verify_options(Action::Redo(vec![TaskId::from("second")]), None);
    let mut one = phase("one", vec![task("first", &[]), task("second", &["first"])]);
    one.checkpoint = Some(Checkpoint { question: Some(Question::Verify(asked)), ..checkpoint(options).unwrap() });
    let mut harness = Harness::new(workflow(vec![one]));
    harness.work();
    harness.answer("issues", Some("too small"));
    harness.work();
    assert_eq!(harness.started(), ["one/first", "one/second", "one/second"], "the task that succeeded is not redone");
    assert_eq!(harness.run.current.as_ref().and_then(|phase| phase.feedback.as_deref()), Some("too small"));
    harness.answer("approved", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn endless_issues_at_the_end_of_a_phase_fail_the_run_and_resuming_asks_again() {
    let asked = Verify { built: "it".into(), rounds: 1, ..Verify::default() };
    let options = verify_options(Action::RepeatPhase(PhaseId::from("one")), None);
    let mut one = phase("one", vec![task("make", &[])]);
    one.checkpoint = Some(Checkpoint { question: Some(Question::Verify(asked)), ..checkpoint(options).unwrap() });
    let mut harness = Harness::new(workflow(vec![one]));
    harness.work();
    let shows = |harness: &mut Harness| {
        assert_eq!(harness.run.open_holds().len(), 1);
        assert_eq!(harness.run.status(), Status::Waiting);
    };
    harness.answer("issues", Some("first"));
    harness.work();
    shows(&mut harness);
    harness.answer("issues", Some("second"));
    assert_eq!(harness.run.status(), Status::Failed);
    assert!(harness.has(|event| matches!(event, Event::Failed { message } if message.contains("redone 1 time: second"))));
    assert_eq!(harness.started(), ["one/make", "one/make"]);
    harness.tell(person(), CommandKind::TakeOver { driver: DriverId::from("d2"), detached: false }, true).unwrap();
    harness.work();
    shows(&mut harness);
    harness.answer("approved", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn only_person_questions_ignore_defaults_policy_and_presets() {
    let waits = WaitSettings { default: Some(OptionId::from("sqlite")), person_only: true, ..WaitSettings::default() };
    let mut asked = workflow(vec![phase("one", vec![with_waits(decision("db", &[]), waits)])]);
    asked.policy.decision = Some(Automatic::default());
    let mut harness = Harness::new(asked);
    let preset = PresetAnswer { selector: "one/db".into(), option: "sqlite".into(), feedback: None };
    harness.tell(person(), CommandKind::PresetAnswers { presets: vec![preset] }, true).unwrap();
    let ask = harness.run.pending()[0].clone();
    harness.perform(&ask);
    assert_eq!((harness.run.status(), harness.run.open_holds().len()), (Status::Waiting, 1));
    assert!(harness.hold().blocking);
    harness.answer("sqlite", None);
    assert_eq!(harness.run.status(), Status::Complete);
}
