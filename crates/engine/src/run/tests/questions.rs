//! Questions of three kinds, logins that are missing, deadlines, and answers without a person.

use super::*;
use crate::hold::{
    Authentication, HoldKind, HoldState, action_options, authentication_options, decision_options, verify_options,
};
use crate::run::Status;
use crate::run::event::AttemptReason;
use crate::spec::workflow::question::{Action as Needed, Decision, Verify, Way as Path};
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
    let check = Some(Check { run: "test -f clicked".into(), timeout: None, told: None });
    let asked = Needed { needed: "the link".into(), check, ..Needed::default() };
    question(id, needs, Question::Action(asked), action_options(None))
}

pub(super) fn with_waits(mut task: Task, waits: Waits) -> Task {
    if let Work::Checkpoint(checkpoint) = &mut task.work {
        checkpoint.waits = waits;
    }
    task
}

fn bench(tasks: Vec<Task>) -> Bench {
    let mut bench = Bench::new(workflow(vec![phase("one", tasks), phase("two", vec![task("after", &[])])]));
    bench.work();
    bench
}

#[test]
fn a_verification_takes_approved_or_issues_and_nothing_else() {
    let mut bench = bench(vec![task("make", &[]), verify("look", "make", 3), task("ship", &["look"])]);
    assert_eq!((bench.hold().kind, bench.run.status()), (HoldKind::Verify, Status::Waiting));
    assert_eq!(bench.hold().asked.as_ref().map(|asked| (asked.done, asked.total)), Some((1, 4)));
    for near in ["lgtm", "approve it", "ok", "yes", "approved?", ""] {
        let body = bench.answer_body(near, None);
        assert!(matches!(bench.tell(person(), body, true), Err(Refusal::NoSuchOption { .. })), "{near}");
    }
    for words in [None, Some(""), Some("  ")] {
        let body = bench.answer_body("issues", words);
        assert!(matches!(bench.tell(person(), body, true), Err(Refusal::WordsNeeded { .. })), "{words:?}");
    }
    assert_eq!(bench.started(), ["one/make", "one/look"]);
    bench.answer("\"Ship It\"", None);
    assert_eq!(bench.started(), ["one/make", "one/look", "one/ship"], "the plan's own signal is an approval");
}

#[test]
fn every_question_can_be_answered_by_stopping_the_run() {
    for asked in [verify("look", "make", 3), decision("look", &["make"]), action("look", &["make"])] {
        for word in ["abort", "Stop the run", "stop"] {
            let mut bench = bench(vec![task("make", &[]), asked.clone(), task("ship", &["look"])]);
            let options = bench.hold().options.len();
            assert!(bench.hold().options.iter().all(|choice| choice.action != Action::Abort), "it is apart from the options");
            assert!(bench.hold().option(&(options + 1).to_string()).is_none(), "it has no number");
            bench.answer(word, None);
            assert_eq!(bench.run.status(), Status::Aborted, "{word}");
            let decided = bench.run.decisions.last().unwrap();
            assert_eq!((decided.label.as_str(), decided.action.as_str()), ("Stop the run", "abort"));
            assert_eq!(decided.actor.name, person().name, "it is this person who stopped it");
            assert_eq!(bench.started(), ["one/make", "one/look"]);
        }
    }
}

#[test]
fn an_option_that_is_called_abort_keeps_its_meaning() {
    let way = |id: &str| Path { id: OptionId::from(id), name: id.to_uppercase(), pros: None, cons: None };
    let options = vec![way("merge"), way("abort"), way("stop")];
    let asked = Decision { question: "Which?".into(), context: None, options: options.clone() };
    let mut bench = bench(vec![question("look", &[], Question::Decision(asked), decision_options(&options))]);
    assert!(bench.hold().stop().is_none());
    bench.answer("abort", None);
    assert_ne!(bench.run.status(), Status::Aborted);
}

#[test]
fn issues_make_a_new_attempt_with_them_at_hand_and_then_the_question_again() {
    let mut bench = bench(vec![task("make", &[]), verify("look", "make", 3)]);
    bench.answer("issues", Some("the button is off"));
    let made = bench.run.task_run(&key("one", 1, "make")).unwrap();
    assert_eq!((made.attempts, made.feedback(), made.failures), (2, Some("the button is off"), 0));
    let again = |event: &Event| matches!(event, Event::TaskStarted { key, attempt: 2, reason: AttemptReason::Feedback, .. } if key.task.as_str() == "make");
    assert!(bench.has(again));
    assert!(bench.run.open_holds().is_empty(), "it is asked again only when the work is done");
    bench.work();
    assert_eq!(bench.hold().kind, HoldKind::Verify);
    assert_eq!(bench.run.current.as_ref().unwrap().id.as_str(), "one", "issues never count as approval");
}

#[test]
fn issues_without_end_fail_the_run_and_resuming_asks_again() {
    let mut bench = bench(vec![task("make", &[]), verify("look", "make", 1)]);
    bench.answer("issues", Some("first"));
    bench.work();
    bench.answer("issues", Some("second"));
    assert_eq!(bench.run.status(), Status::Failed);
    bench.tell(person(), CommandKind::TakeOver { driver: DriverId::from("d2"), detached: false }, true).unwrap();
    bench.work();
    assert_eq!((bench.run.status(), bench.hold().kind), (Status::Waiting, HoldKind::Verify));
    bench.answer("issues", Some("third"));
    assert_eq!(bench.run.status(), Status::Running, "the count begins anew");
}

#[test]
fn a_decision_is_what_later_tasks_see() {
    let mut bench = bench(vec![decision("db", &[]), task("build", &["db"])]);
    bench.answer("Postgres", None);
    assert_eq!(bench.run.full_context(&|_| None)["outputs"]["one"]["db"]["option"], "postgres");
    assert_eq!(bench.started(), ["one/db", "one/build"]);
}

#[test]
fn done_is_believed_only_when_the_check_passes() {
    let mut bench = bench(vec![action("mail", &[]), task("after", &["mail"])]);
    bench.answer("done", None);
    let Some(Effect::Check { hold, revision }) = bench.run.pending().into_iter().next() else { panic!("a check is due") };
    bench.outcome(CommandKind::Checked { hold: hold.clone(), revision, failure: Some(broken()) });
    assert_eq!((bench.hold().revision, bench.hold().state), (2, HoldState::Open));
    assert!(bench.hold().notes.iter().any(|note| note.contains("it broke")), "{:?}", bench.hold().notes);
    assert_eq!(bench.started(), ["one/mail"]);
    bench.outcome(CommandKind::Checked { hold, revision, failure: None });
    assert_eq!(bench.hold().revision, 2, "a late result changes nothing");
    bench.answer("done", None);
    bench.work();
    assert!(bench.started().contains(&"one/after".to_owned()));
}

fn lacks_login(bench: &mut Bench, address: &str, probe: Option<&str>) -> Vec<Event> {
    let missing = Authentication {
        attempted: "deploy".into(),
        error: "Not authenticated".into(),
        steps: vec!["Run: deploy login".into()],
        verified_by: "deploy whoami".into(),
        message: "it ended with exit code 1".into(),
        tail: String::new(),
    };
    let running = bench.run.pending().into_iter().find_map(|effect| match effect {
        Effect::Task { key, attempt } if key.address() == address => Some((key, attempt)),
        _ => None,
    });
    let (key, attempt) = running.expect("it runs");
    let probe = probe.map(|run| Check { run: run.into(), timeout: None, told: None });
    let outcome = TaskOutcome::Unauthenticated { missing: Box::new(missing), probe };
    bench.outcome(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None })
}

#[test]
fn a_missing_login_is_no_failure_and_costs_no_attempt() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![task("deploy", &[]), task("beside", &[])])]));
    lacks_login(&mut bench, "one/deploy", Some("deploy whoami"));
    assert_eq!(bench.run.status(), Status::Running, "others go on");
    assert_eq!(bench.hold().options, authentication_options());
    bench.work();
    assert_eq!(bench.run.status(), Status::Waiting);
    bench.answer("done", None);
    assert!(matches!(bench.run.pending()[..], [Effect::Check { .. }]), "the probe comes first");
    bench.perform(&bench.run.pending()[0].clone());
    let again = |event: &Event| matches!(event, Event::TaskStarted { attempt: 2, reason: AttemptReason::Auth, .. });
    assert!(bench.has(again));
    assert_eq!(bench.run.task_run(&key("one", 1, "deploy")).unwrap().failures, 0);
    lacks_login(&mut bench, "one/deploy", None);
    bench.answer("failure", None);
    assert_eq!(bench.run.status(), Status::Failed, "a person may say that it is a failure after all");
}

#[test]
fn what_nobody_has_to_wait_for_goes_on_with_its_default_and_a_person_may_change_it() {
    let waits = Waits { default: Some(OptionId::from("sqlite")), ..Waits::default() };
    let tasks = vec![with_waits(decision("db", &[]), waits), task("build", &["db"]), task("beside", &[])];
    let mut last = phase("two", vec![task("after", &[])]);
    last.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let mut bench = Bench::new(workflow(vec![phase("one", tasks), last]));
    bench.work();
    assert_eq!(bench.run.decisions.len(), 1);
    let decided = bench.run.decisions[0].clone();
    assert_eq!((decided.option.as_str(), decided.actor.channel), ("sqlite", Channel::Default));
    assert_eq!(bench.run.current.as_ref().unwrap().id.as_str(), "two", "nobody waited");
    let found = crate::run::consequences(&bench.run, &decided.hold, "postgres").unwrap();
    assert_eq!(found.tasks, [TaskId::from("build")]);
    assert_eq!(found.carried, [TaskId::from("db"), TaskId::from("beside")]);
    let change =
        CommandKind::ChangeAnswer(AnswerChange { hold: decided.hold.clone(), option: "postgres".into(), feedback: None });
    assert!(matches!(bench.tell(Actor::driver(), change.clone(), true), Err(Refusal::NotAPerson { .. })));
    let before = bench.started().len();
    bench.tell(person(), change.clone(), true).unwrap();
    bench.work();
    assert_eq!(bench.started()[before..], ["one/build", "two/after"], "only what depends on it is done again");
    assert_eq!(bench.run.full_context(&|_| None)["outputs"]["one"]["db"]["option"], "postgres");
    assert!(bench.run.decisions[0].void);
    assert!(matches!(bench.tell(person(), change, true), Err(Refusal::AnswerStands { .. })), "now a person gave it");
}

#[test]
fn policy_answers_so_often_in_a_row_and_marks_it() {
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
    asked.policy.verify = Some(Automatic { when: None, at_most: Some(2) });
    let mut bench = Bench::new(asked);
    bench.work();
    let ways: Vec<Channel> = bench.run.decisions.iter().map(|decision| decision.actor.channel).collect();
    assert_eq!(ways, [Channel::Policy, Channel::Policy]);
    assert_eq!(bench.hold().kind, HoldKind::Verify, "the third is for a person");
    bench.answer("approved", None);
    bench.work();
    assert_eq!(bench.hold().kind, HoldKind::Action, "what only a person can do is never answered without one");
}

#[test]
fn a_deadline_answers_escalates_or_aborts_unless_somebody_was_first() {
    let waits = |then| Waits { deadline: Some(Deadline { after: Duration::from_secs(3600), then }), ..Waits::default() };
    let timer = |bench: &Bench| bench.hold().terms.deadline.as_ref().unwrap().timer.clone();
    let due = |bench: &mut Bench, seconds: i64| {
        let timer = timer(bench);
        bench.now += seconds * 1000;
        bench.tell(Actor::driver(), CommandKind::TimerDue { timer }, false).unwrap()
    };
    let answer = || OnDeadline::Answer(OptionId::from("postgres"));
    let mut first = bench(vec![with_waits(decision("db", &[]), waits(answer()))]);
    assert!(due(&mut first, 10).is_empty(), "it is not time yet");
    assert_eq!(due(&mut first, 3600).len(), 2);
    let late = CommandKind::Answer {
        hold: first.run.holds.keys().next().unwrap().clone(),
        revision: None,
        option: "sqlite".into(),
        feedback: None,
    };
    assert!(matches!(first.tell(person(), late, true), Err(Refusal::AnswerConflicts { .. })), "the deadline was first");
    first.tell(Actor::driver(), CommandKind::Look, true).unwrap();
    assert_eq!(first.run.decisions[0].actor.channel, Channel::Deadline);

    let mut second = bench(vec![with_waits(decision("db", &[]), waits(answer()))]);
    let timer = timer(&second);
    second.answer("sqlite", None);
    second.now += 7_200_000;
    assert!(second.tell(Actor::driver(), CommandKind::TimerDue { timer }, false).unwrap().is_empty(), "the answer was first");

    let mut third = bench(vec![with_waits(decision("db", &[]), waits(OnDeadline::Escalate(None)))]);
    due(&mut third, 3600);
    assert!(third.hold().is_escalated());
    third.answer("sqlite", None);
    assert_eq!(third.run.status(), Status::Running);

    let mut fourth = bench(vec![with_waits(decision("db", &[]), waits(OnDeadline::Abort))]);
    due(&mut fourth, 3600);
    assert_eq!(fourth.run.status(), Status::Aborted);
}

#[test]
fn people_are_reminded_again_and_again() {
    let waits = Waits { remind: Some(Duration::from_secs(60)), ..Waits::default() };
    let mut bench = bench(vec![with_waits(decision("db", &[]), waits)]);
    for number in 1..=3 {
        let remind = bench.hold().terms.remind.clone().unwrap();
        assert_eq!(remind.sent, number - 1);
        bench.now = remind.at.as_millis();
        bench.tell(Actor::driver(), CommandKind::TimerDue { timer: remind.timer }, false).unwrap();
    }
    assert_eq!(bench.hold().terms.remind.as_ref().unwrap().sent, 3);
}

#[test]
fn a_timer_fires_only_what_it_was_set_for() {
    let deadline = Some(Deadline { after: Duration::from_secs(60), then: OnDeadline::Escalate(None) });
    let waits = Waits { deadline, remind: Some(Duration::from_secs(60)), ..Waits::default() };
    let mut bench = bench(vec![with_waits(decision("db", &[]), waits)]);
    bench.now += 3_600_000;
    let due = |bench: &Bench, timer: &crate::id::TimerId| {
        let body = CommandKind::TimerDue { timer: timer.clone() };
        crate::run::decide(&bench.run, &command(Actor::driver(), body, bench.now, false)).unwrap()
    };
    assert_eq!(due(&bench, &crate::id::TimerId::from("none")), []);
    let (remind, timer) = (bench.hold().terms.remind.clone().unwrap().timer, bench.hold().terms.deadline.clone().unwrap().timer);
    assert!(matches!(&due(&bench, &remind)[..], [Event::Reminded { number: 1, .. }]));
    assert!(matches!(&due(&bench, &timer)[..], [Event::DeadlinePassed { .. }]));
    bench.tell(Actor::driver(), CommandKind::Look, false).unwrap();
    assert!(bench.hold().is_escalated());
    assert_eq!(due(&bench, &timer), [], "it has passed already");
}

#[test]
fn a_killed_run_finds_its_open_questions_again() {
    let mut bench = bench(vec![task("make", &[]), verify("look", "make", 3), action("mail", &[])]);
    let before: Vec<HoldId> = bench.run.open_holds().iter().map(|hold| hold.id.clone()).collect();
    bench.tell(person(), CommandKind::TakeOver { driver: DriverId::from("d2"), detached: false }, true).unwrap();
    bench.work();
    let after: Vec<HoldId> = bench.run.open_holds().iter().map(|hold| hold.id.clone()).collect();
    assert_eq!((before.len(), before), (2, after));
    let bytes = bench.run.to_bytes();
    let mut read = Run::from_bytes(&bytes).unwrap();
    read.attach(bench.run.workflow.clone()).unwrap();
    assert_eq!(read.open_holds(), bench.run.open_holds());
}

#[test]
fn a_changed_answer_carries_only_what_has_ended() {
    let waits = Waits { default: Some(OptionId::from("sqlite")), ..Waits::default() };
    let tasks = vec![
        with_waits(decision("db", &[]), waits),
        task("build", &["db"]),
        task("tests", &[]),
        decision("other", &[]),
        task("ship", &["tests", "other"]),
    ];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    let db =
        bench.run.pending().into_iter().find(|effect| matches!(effect, Effect::Task { key, .. } if key.task.as_str() == "db"));
    bench.perform(&db.unwrap());
    bench.fail("one/tests");
    bench.work();
    let hold = bench.run.decisions[0].hold.clone();
    let found = crate::run::consequences(&bench.run, &hold, "postgres").unwrap();
    assert_eq!(found.carried, [TaskId::from("db")], "what failed or waits is not done");
    bench
        .tell(person(), CommandKind::ChangeAnswer(AnswerChange { hold, option: "postgres".into(), feedback: None }), true)
        .unwrap();
    assert!(bench.run.task_run(&key("one", 2, "tests")).unwrap().attempts == 1, "it is done in the new execution");
}

#[test]
fn issues_with_a_list_do_its_items_again_and_what_was_built_on_it() {
    let mut each = task("make", &[]);
    each.for_each = Some(ForEach { over: Over::List(vec!["a".into(), "b".into()]), max_parallel: None });
    let tasks = vec![each, task("pack", &["make"]), verify("look", "make", 3), task("ship", &["look", "pack"])];
    let mut tasks = tasks;
    tasks[2].needs = vec![TaskId::from("pack")];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    let spread = |attempt| CommandKind::TaskEnded {
        key: key("one", 1, "make"),
        attempt,
        outcome: TaskOutcome::Items(
            ["a", "b"]
                .map(|name| crate::run::command::Item { key: name.into(), value: Datum::Inline(format!("\"{name}\"")) })
                .into(),
        ),
        agent: None,
        commit: None,
    };
    bench.outcome(spread(1));
    bench.work();
    assert_eq!(bench.started(), ["one/make", "one/make[a]", "one/make[b]", "one/pack", "one/look"]);
    bench.answer("issues", Some("both are wrong"));
    assert!(bench.run.open_holds().is_empty(), "it is asked when all is done again");
    bench.outcome(spread(2));
    bench.work();
    assert_eq!(bench.started()[5..], ["one/make", "one/make[a]", "one/make[b]", "one/pack", "one/look"]);
    bench.answer("approved", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_question_about_work_that_is_done_again_is_asked_again() {
    let mut both = vec![task("one", &[]), verify("look-one", "one", 3), task("two", &["one"]), verify("look-two", "two", 3)];
    both[1].needs = vec![TaskId::from("one"), TaskId::from("two")];
    both[3].needs = both[1].needs.clone();
    let mut bench = bench(both);
    let holds: Vec<Hold> = bench.run.open_holds().into_iter().cloned().collect();
    assert_eq!(holds.len(), 2);
    let of_one = holds.iter().find(|hold| hold.scope.addresses() == ["one/look-one"]).unwrap();
    let issues =
        CommandKind::Answer { hold: of_one.id.clone(), revision: None, option: "issues".into(), feedback: Some("no".into()) };
    bench.tell(person(), issues, true).unwrap();
    assert!(bench.run.open_holds().is_empty());
    bench.work();
    assert_eq!(bench.started()[4..], ["one/one", "one/two", "one/look-one", "one/look-two"]);
    assert_eq!(bench.run.open_holds().len(), 2);
}

#[test]
fn a_deadline_is_waited_for_while_other_work_is_under_way() {
    let waits =
        Waits { deadline: Some(Deadline { after: Duration::from_secs(60), then: OnDeadline::Abort }), ..Waits::default() };
    let mut bench = Bench::new(workflow(vec![phase("one", vec![with_waits(decision("db", &[]), waits), task("slow", &[])])]));
    let asks =
        bench.run.pending().into_iter().find(|effect| matches!(effect, Effect::Task { key, .. } if key.task.as_str() == "db"));
    bench.perform(&asks.unwrap());
    let wake = bench.run.pending().into_iter().find(|effect| matches!(effect, Effect::Wake { .. }));
    bench.perform(&wake.expect("somebody waits for it"));
    assert_eq!(bench.run.status(), Status::Aborted);
}

#[test]
fn no_option_of_an_agent_takes_the_place_of_ours() {
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
    assert!(of_agent.iter().all(|choice| choice.action == Action::Rerun && !choice.needs_words && choice.signals.is_empty()));
    // No word that means one of ours means one of the agent's.
    for choice in ours {
        for word in [choice.id.as_str(), &choice.label] {
            assert!(!of_agent.iter().any(|other| other.is_meant_by(word)), "{word}");
        }
    }
}

#[test]
fn policy_leaves_to_people_what_must_be_said_with_a_question() {
    let mut first = phase("one", vec![task("make", &[])]);
    first.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
    let mut asked = workflow(vec![first]);
    asked.policy.checkpoint = Some(Automatic::default());
    let mut bench = Bench::new(asked);
    bench.perform(&bench.run.pending()[0].clone());
    let shown = Showing { automatic: true, notes: vec!["plan.md does not exist".into()], ..Showing::default() };
    bench.outcome(CommandKind::Shown { phase: PhaseId::from("one"), iteration: 1, shown: Box::new(shown) });
    assert_eq!(bench.run.status(), Status::Waiting);
}

#[test]
fn issues_at_the_end_of_a_phase_do_some_of_its_tasks_again_and_then_it_is_asked_again() {
    let asked = Verify { built: "it".into(), rounds: 3, ..Verify::default() };
    let options = verify_options(Action::Redo(vec![TaskId::from("second")]), None);
    let mut one = phase("one", vec![task("first", &[]), task("second", &["first"])]);
    one.checkpoint = Some(Checkpoint { question: Some(Question::Verify(asked)), ..checkpoint(options).unwrap() });
    let mut bench = Bench::new(workflow(vec![one]));
    bench.work();
    bench.answer("issues", Some("too small"));
    bench.work();
    assert_eq!(bench.started(), ["one/first", "one/second", "one/second"], "what was well done is not done again");
    assert_eq!(bench.run.current.as_ref().and_then(|phase| phase.feedback.as_deref()), Some("too small"));
    bench.answer("approved", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn issues_without_end_at_the_end_of_a_phase_fail_the_run_and_resuming_asks_again() {
    let asked = Verify { built: "it".into(), rounds: 1, ..Verify::default() };
    let options = verify_options(Action::RepeatPhase(PhaseId::from("one")), None);
    let mut one = phase("one", vec![task("make", &[])]);
    one.checkpoint = Some(Checkpoint { question: Some(Question::Verify(asked)), ..checkpoint(options).unwrap() });
    let mut bench = Bench::new(workflow(vec![one]));
    bench.work();
    let shows = |bench: &mut Bench| {
        assert_eq!(bench.run.open_holds().len(), 1);
        assert_eq!(bench.run.status(), Status::Waiting);
    };
    bench.answer("issues", Some("first"));
    bench.work();
    shows(&mut bench);
    bench.answer("issues", Some("second"));
    assert_eq!(bench.run.status(), Status::Failed);
    assert!(bench.has(|event| matches!(event, Event::Failed { message } if message.contains("done again 1 time: second"))));
    assert_eq!(bench.started(), ["one/make", "one/make"]);
    bench.tell(person(), CommandKind::TakeOver { driver: DriverId::from("d2"), detached: false }, true).unwrap();
    bench.work();
    shows(&mut bench);
    bench.answer("approved", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn what_only_a_person_may_answer_is_answered_by_nothing_else() {
    let waits = Waits { default: Some(OptionId::from("sqlite")), only_person: true, ..Waits::default() };
    let mut asked = workflow(vec![phase("one", vec![with_waits(decision("db", &[]), waits)])]);
    asked.policy.decision = Some(Automatic::default());
    let mut bench = Bench::new(asked);
    let preset = Preset { selector: "one/db".into(), option: "sqlite".into(), feedback: None };
    bench.tell(person(), CommandKind::GivePresets { presets: vec![preset] }, true).unwrap();
    let ask = bench.run.pending()[0].clone();
    bench.perform(&ask);
    assert_eq!((bench.run.status(), bench.run.open_holds().len()), (Status::Waiting, 1));
    assert!(bench.hold().blocking);
    bench.answer("sqlite", None);
    assert_eq!(bench.run.status(), Status::Complete);
}
