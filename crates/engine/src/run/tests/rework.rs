//! Rework: what is done again when a person finds issues, and what waits for it.

use super::questions::{action, decision, verify, with_waits};
use super::*;
use crate::hold::verify_options;
use crate::run::Status;
use crate::run::state::TaskState;
use crate::spec::workflow::question::Verify;
use std::time::Duration;

/// `look` verifies `build`, and needs these tasks.
fn look(needs: &[&str]) -> Task {
    Task { needs: needs.iter().map(|need| TaskId::from(*need)).collect(), ..verify("look", "build", 3) }
}

fn bench(tasks: Vec<Task>) -> Bench {
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    bench.work();
    bench
}

fn state(bench: &Bench, task: &str) -> TaskState {
    bench.run.task_run(&key("one", 1, task)).unwrap().state.clone()
}

/// What was folded is what a process that reads it from the store would have.
fn reloads(bench: &Bench) {
    let mut read = Run::from_bytes(&bench.run.to_bytes()).unwrap();
    read.attach(bench.run.workflow.clone()).unwrap();
    assert_eq!(read.current, bench.run.current);
}

#[test]
fn a_verification_opens_again_only_after_the_decision_between_was_asked_again() {
    let tasks = vec![task("build", &[]), decision("mid", &["build"]), look(&["mid"]), task("ship", &["look"])];
    let mut bench = bench(tasks);
    bench.answer_task("one/mid", "postgres", None);
    bench.work();
    bench.answer_task("one/look", "issues", Some("the colour is wrong"));
    reloads(&bench);
    assert!(bench.run.open_holds().is_empty(), "build is being done again");
    assert_eq!(bench.effect_of("one/build"), Effect::Task { key: key("one", 1, "build"), attempt: 2 });
    bench.work();
    assert_eq!(bench.asked(), ["one/mid"], "the decision comes first");
    let hold = bench.hold();
    assert_eq!(hold.previous_choice().map(|choice| choice.id.as_str()), Some("postgres"), "the earlier answer is offered");
    assert!(hold.blocking && hold.answers.is_empty(), "and not taken");
    assert!(hold.notes.is_empty());
    bench.answer_task("one/mid", "sqlite", None);
    bench.work();
    assert_eq!(bench.asked(), ["one/look"]);
    assert_eq!(bench.hold().previous.as_ref().and_then(|answer| answer.feedback.as_deref()), Some("the colour is wrong"));
    assert!(!bench.started().contains(&"one/ship".to_owned()));
    bench.answer_task("one/look", "approved", None);
    bench.work();
    assert_eq!(bench.started(), ["one/build", "one/mid", "one/look", "one/build", "one/mid", "one/look", "one/ship"]);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn an_action_between_is_asked_and_checked_again() {
    let mut bench = bench(vec![task("build", &[]), action("mail", &["build"]), look(&["mail"])]);
    bench.answer_task("one/mail", "done", None);
    bench.work();
    bench.answer_task("one/look", "issues", Some("no"));
    bench.work();
    assert_eq!(bench.asked(), ["one/mail"]);
    bench.answer_task("one/mail", "done", None);
    assert!(matches!(bench.run.pending()[..], [Effect::Check { .. }]));
    bench.work();
    assert_eq!(bench.asked(), ["one/look"]);
}

#[test]
fn the_question_waits_for_rework_that_it_does_not_need() {
    let redo = vec![TaskId::from("build"), TaskId::from("docs")];
    let mut asks = look(&["build"]);
    if let Work::Checkpoint(checkpoint) = &mut asks.work {
        checkpoint.options = verify_options(Action::Redo(redo), None);
    }
    let mut bench = bench(vec![task("build", &[]), task("docs", &[]), asks, task("ship", &["look"])]);
    bench.answer_task("one/look", "issues", Some("both"));
    bench.perform(&bench.effect_of("one/build"));
    assert!(bench.run.pending().iter().all(|effect| *effect == Effect::Task { key: key("one", 1, "docs"), attempt: 2 }));
    reloads(&bench);
    bench.work();
    assert_eq!(bench.asked(), ["one/look"]);
    reloads(&bench);
}

#[test]
fn one_need_of_several_does_not_let_the_question_open_early() {
    let any = Task { join: Join::Any, ..look(&["build", "other"]) };
    let between = Task { join: Join::Any, ..task("pack", &["build", "other"]) };
    let mut bench = bench(vec![task("build", &[]), task("other", &[]), between, any]);
    bench.answer_task("one/look", "issues", Some("no"));
    assert_eq!(bench.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }]);
    bench.work();
    let again = bench.started().split_off(4);
    assert_eq!(again, ["one/build", "one/pack", "one/look"]);
}

#[test]
fn a_task_that_needs_any_of_several_waits_while_a_question_among_them_has_its_work_redone() {
    let any = |id: &str, needs: &[&str]| Task { join: Join::Any, ..task(id, needs) };
    let tasks = || {
        let other = vec![task("build", &[]), look(&["build"]), task("other", &[]), task("late", &[])];
        other.into_iter().chain([any("early", &["look", "other"]), any("ship", &["look", "late"])]).collect::<Vec<_>>()
    };
    let mut bench = Bench::new(workflow(vec![phase("one", tasks())]));
    for task in ["build", "look", "other", "early"] {
        bench.perform(&bench.effect_of(&format!("one/{task}")));
    }
    assert_eq!((state(&bench, "early"), state(&bench, "ship")), (TaskState::Done, TaskState::Waiting));
    bench.answer_task("one/look", "issues", Some("no"));
    bench.perform(&bench.effect_of("one/late"));
    reloads(&bench);
    assert_eq!(bench.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }], "both wait for the rework");
    bench.work();
    assert_eq!(bench.asked(), ["one/look"]);
    assert_eq!((state(&bench, "early"), state(&bench, "ship")), (TaskState::Waiting, TaskState::Waiting));
    bench.answer_task("one/look", "approved", None);
    bench.work();
    assert_eq!(bench.started().split_off(5), ["one/build", "one/look", "one/early", "one/ship"]);
    assert_eq!(bench.run.status(), Status::Complete);
}

#[test]
fn a_task_that_needs_any_of_several_waits_for_all_that_two_questions_have_redone() {
    let check = |id: &str, of: &str| Task { needs: vec![TaskId::from(of)], ..verify(id, of, 3) };
    let ship = Task { join: Join::Any, ..task("ship", &["left", "right"]) };
    let tasks = vec![task("left", &[]), task("right", &[]), check("look-left", "left"), check("look-right", "right"), ship];
    let mut bench = bench(tasks);
    bench.answer_task("one/look-left", "issues", Some("no"));
    bench.answer_task("one/look-right", "issues", Some("no"));
    bench.perform(&bench.effect_of("one/right"));
    assert_eq!((state(&bench, "right"), state(&bench, "ship")), (TaskState::Done, TaskState::Waiting));
    reloads(&bench);
    let pending = bench.run.pending();
    assert!(
        !pending.iter().any(|effect| matches!(effect, Effect::Task { key, .. } if key.task.as_str() == "ship")),
        "{pending:?}"
    );
    bench.perform(&bench.effect_of("one/left"));
    bench.perform(&bench.effect_of("one/ship"));
    assert_eq!(state(&bench, "ship"), TaskState::Done);
}

#[test]
fn parallel_branches_are_done_again_wherever_they_stand() {
    let mut tolerated = task("tolerated", &["build"]);
    tolerated.continue_on_error = true;
    let mut backoff = task("backoff", &["build"]);
    backoff.retry = Retry { attempts: 3, backoff: Duration::from_secs(60) };
    let mut asks = task("asks", &["build"]);
    asks.on_fail = OnFail::Ask;
    let tasks = vec![
        task("build", &[]),
        task("done", &["build"]),
        tolerated,
        task("needs-tolerated", &["tolerated"]),
        task("running", &["build"]),
        backoff,
        asks,
        verify("other", "build", 3),
        look(&["build"]),
    ];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    bench.perform(&bench.effect_of("one/build"));
    bench.perform(&bench.effect_of("one/done"));
    bench.fail("one/tolerated");
    bench.fail("one/backoff");
    bench.fail("one/asks");
    bench.perform(&bench.effect_of("one/other"));
    bench.perform(&bench.effect_of("one/look"));
    assert_eq!(bench.asked(), ["one/asks", "one/look", "one/other"]);
    assert!(matches!(state(&bench, "needs-tolerated"), TaskState::LeftOut { .. }));
    let before = bench.started().len();
    bench.answer_task("one/look", "issues", Some("no"));
    reloads(&bench);
    assert_eq!(bench.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }], "nothing else goes on");
    assert!(bench.run.open_holds().is_empty(), "what was asked about the old work no longer matters");
    bench.work();
    let again: BTreeSet<String> = bench.started().split_off(before).into_iter().collect();
    let all = ["asks", "backoff", "build", "done", "look", "needs-tolerated", "other", "running", "tolerated"];
    assert_eq!(again.into_iter().collect::<Vec<_>>(), all.map(|task| format!("one/{task}")));
    assert_eq!(bench.asked(), ["one/look", "one/other"], "both are asked again, neither waits for the other");
}

#[test]
fn gates_of_redone_tasks_run_again() {
    let of = |id: &str, task: &str| Gate { task: Some(TaskId::from(task)), ..gate(id) };
    let mut one = phase("one", vec![task("build", &[]), task("pack", &["build"]), look(&["pack"])]);
    one.gates = vec![of("tests", "build"), of("size", "pack")];
    let mut bench = Bench::new(workflow(vec![one]));
    bench.work();
    bench.answer_task("one/look", "issues", Some("no"));
    bench.perform(&bench.effect_of("one/build"));
    assert!(matches!(&bench.run.pending()[..], [Effect::Gate { attempt: 2, .. }]), "{:?}", bench.run.pending());
    bench.work();
    assert_eq!(bench.asked(), ["one/look"]);
    assert_eq!(bench.run.current.as_ref().unwrap().gates.iter().map(|gate| gate.attempts).collect::<Vec<_>>(), [2, 2]);
}

fn each(needs: &[&str]) -> Task {
    Task { for_each: Some(ForEach { over: Over::List(Vec::new()), max_parallel: None }), ..task("each", needs) }
}

/// The list of `each` was computed.
fn list(bench: &mut Bench, attempt: u32, names: &[&str]) {
    let item = |name: &&str| crate::run::command::Item { key: (*name).into(), value: Datum::Inline("1".into()) };
    let outcome = TaskOutcome::Items(names.iter().map(item).collect());
    bench.outcome(CommandKind::TaskEnded { key: key("one", 1, "each"), attempt, outcome, agent: None, commit: None });
}

fn item(name: &str) -> TaskKey {
    TaskKey { item: Some(name.into()), ..key("one", 1, "each") }
}

#[test]
fn a_list_that_depends_on_redone_work_is_made_again() {
    let mut bench = Bench::new(workflow(vec![phase("one", vec![task("build", &[]), each(&["build"]), look(&["each"])])]));
    bench.perform(&bench.effect_of("one/build"));
    list(&mut bench, 1, &["a", "b"]);
    bench.work();
    bench.answer_task("one/look", "issues", Some("no"));
    reloads(&bench);
    bench.perform(&bench.effect_of("one/build"));
    assert_eq!(bench.run.pending(), [Effect::Task { key: key("one", 1, "each"), attempt: 2 }]);
    list(&mut bench, 2, &["b", "c"]);
    let again = [Effect::Task { key: item("b"), attempt: 2 }, Effect::Task { key: item("c"), attempt: 1 }];
    assert_eq!(bench.run.pending(), again, "no attempt has the number of an earlier one");
    bench.work();
    assert_eq!(bench.asked(), ["one/look"]);
    reloads(&bench);
}

#[test]
fn the_list_of_a_redone_task_is_made_again() {
    let tasks = vec![each(&[]), verify("look", "each", 3), verify("second", "each", 3)];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    list(&mut bench, 1, &["a", "b"]);
    bench.work();
    bench.record_answer("one/look", "issues", Some("too slow"));
    bench.record_answer("one/second", "issues", Some("too big"));
    bench.take_over();
    reloads(&bench);
    assert_eq!(bench.run.pending(), [Effect::Task { key: key("one", 1, "each"), attempt: 2 }]);
    list(&mut bench, 2, &["b", "c"]);
    reloads(&bench);
    let again = [Effect::Task { key: item("b"), attempt: 2 }, Effect::Task { key: item("c"), attempt: 1 }];
    assert_eq!(bench.run.pending(), again, "a is no longer in the list");
    let feedback = |name: &str| bench.run.task_run(&item(name)).unwrap().feedback().map(str::to_owned);
    assert!(feedback("b").is_some_and(|said| said.contains("too slow") && said.contains("too big")), "{:?}", feedback("b"));
    bench.perform(&again[1]);
    let failed = bench.fail("one/each[b]");
    assert!(failed.iter().any(|event| matches!(event, Event::Failed { .. })), "{failed:?}");
    bench.take_over();
    bench.work();
    assert_eq!(bench.asked(), ["one/look", "one/second"]);
    assert_eq!(bench.started().iter().filter(|task| *task == "one/each[a]").count(), 1);
}

#[test]
fn items_that_are_no_longer_in_a_list_do_not_count() {
    let tolerant = Task { continue_on_error: true, ..each(&[]) };
    let mut bench = Bench::new(workflow(vec![phase("one", vec![tolerant, verify("look", "each", 3)])]));
    list(&mut bench, 1, &["a", "b"]);
    bench.work();
    bench.answer_task("one/look", "issues", Some("no"));
    list(&mut bench, 2, &["b", "c"]);
    let gone = bench.run.task_run(&item("a")).unwrap().state.clone();
    assert_eq!(gone, TaskState::LeftOut { reason: "it is no longer in the list".into(), failed: false });
    bench.fail("one/each[b]");
    bench.perform(&bench.effect_of("one/each[c]"));
    let said = |event: &Event| matches!(event, Event::TaskFailed { failure, .. } if failure.message == "1 of its 2 tasks failed");
    assert!(bench.has(said));
}

#[test]
fn a_task_skipped_before_it_ran_stays_skipped_and_still_waits_for_the_rework() {
    let tasks = vec![task("build", &[]), task("lint", &["build"]), look(&["lint"]), task("ship", &["look"])];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    for skipped in ["lint", "ship"] {
        let step = crate::id::StepKey::Task(key("one", 1, skipped));
        bench.tell(person(), CommandKind::SkipTask { step, reason: "not today".into(), cut_off: None }, true).unwrap();
    }
    bench.work();
    bench.answer_task("one/look", "issues", Some("no"));
    assert_eq!(bench.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }]);
    assert!(bench.run.open_holds().is_empty());
    bench.work();
    assert_eq!(bench.asked(), ["one/look"]);
    bench.answer_task("one/look", "approved", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
    assert!(!bench.started().iter().any(|task| task == "one/lint" || task == "one/ship"));
}

#[test]
fn a_default_does_not_replace_what_a_person_decided_before_the_rework() {
    let waits = Waits { default: Some(OptionId::from("sqlite")), ..Waits::default() };
    let tasks = vec![task("build", &[]), with_waits(decision("mid", &["build"]), waits), look(&["mid"])];
    let mut bench = bench(tasks);
    assert_eq!(bench.run.decisions[0].actor.channel, Channel::Default);
    bench.answer_task("one/look", "issues", Some("no"));
    bench.work();
    assert_eq!(bench.run.decisions[2].actor.channel, Channel::Default, "nobody has decided, so nobody is asked");
    let hold = bench.run.decisions[2].hold.clone();
    bench
        .tell(person(), CommandKind::ChangeAnswer(AnswerChange { hold, option: "postgres".into(), feedback: None }), true)
        .unwrap();
    bench.work();
    bench.answer_task("one/look", "issues", Some("still not"));
    bench.work();
    assert_eq!(bench.asked(), ["one/mid"], "a person decided");
    assert_eq!(bench.hold().previous_choice().map(|choice| choice.id.as_str()), Some("postgres"));
    assert!(bench.hold().blocking);
}

#[test]
fn issues_at_the_end_of_a_phase_redo_what_was_built_on_the_work() {
    let asked = Verify { built: "it".into(), rounds: 3, ..Verify::default() };
    let options = verify_options(Action::Redo(vec![TaskId::from("build")]), None);
    let mut one = phase("one", vec![task("docs", &[]), task("build", &[]), task("pack", &["build"])]);
    one.checkpoint = Some(Checkpoint { question: Some(Question::Verify(asked)), ..checkpoint(options).unwrap() });
    let mut bench = Bench::new(workflow(vec![one]));
    bench.work();
    bench.answer("issues", Some("too small"));
    bench.work();
    assert_eq!(bench.started(), ["one/docs", "one/build", "one/pack", "one/build", "one/pack"]);
}

#[test]
fn a_second_report_while_work_is_redone_adds_to_the_first() {
    let mut second = verify("second", "build", 3);
    second.needs = vec![TaskId::from("docs")];
    let mut bench = bench(vec![task("build", &[]), task("docs", &[]), look(&["build"]), second]);
    bench.answer_task("one/look", "issues", Some("too slow"));
    bench.answer_task("one/second", "issues", Some("too big"));
    let build = bench.run.task_run(&key("one", 1, "build")).unwrap();
    assert_eq!((build.attempts, build.feedback()), (3, Some("too slow\n\ntoo big")));
    bench.work();
    assert_eq!(bench.asked(), ["one/look", "one/second"]);
    bench.answer_task("one/look", "issues", Some("red"));
    assert_eq!(bench.run.task_run(&key("one", 1, "build")).unwrap().feedback(), Some("red"), "what was dealt with is over");
}

/// The tasks that are asked to be redone, with the question that asks for it.
fn redone(bench: &Bench) -> Vec<(String, Vec<String>)> {
    let redone = bench.entries.iter().filter_map(|entry| match &entry.event {
        Event::RedoAsked { by, keys, .. } => Some((by.address(), keys.iter().map(TaskKey::address).collect())),
        _ => None,
    });
    redone.collect()
}

/// Two runs whose last two questions are asked in either order: which answer takes effect first depends on the ids of their holds.
fn in_both_orders(tasks: Vec<Task>) -> [Bench; 2] {
    let mut swapped = tasks.clone();
    let last = tasks.len() - 1;
    swapped.swap(last - 1, last);
    [bench(tasks), bench(swapped)]
}

#[test]
fn issues_recorded_at_two_questions_before_a_process_drives_the_run_are_both_redone() {
    let second = Task { needs: vec![TaskId::from("build"), TaskId::from("docs")], ..verify("second", "docs", 3) };
    for mut bench in in_both_orders(vec![task("build", &[]), task("docs", &[]), look(&["build", "docs"]), second]) {
        bench.record_answer("one/look", "issues", Some("too slow"));
        bench.record_answer("one/second", "issues", Some("a typo"));
        bench.take_over();
        reloads(&bench);
        let mut asked = redone(&bench);
        asked.sort();
        let of = |by: &str, task: &str| (format!("one/{by}"), vec![format!("one/{task}")]);
        assert_eq!(asked, [of("look", "build"), of("second", "docs")]);
        let feedback = |task: &str| bench.run.task_run(&key("one", 1, task)).unwrap().feedback().map(str::to_owned);
        assert_eq!(feedback("build").as_deref(), Some("too slow"));
        assert_eq!(feedback("docs").as_deref(), Some("a typo"));
        assert_eq!(bench.run.pending().len(), 2, "both are done again, and nothing else starts");
        assert!(bench.run.open_holds().is_empty());
        bench.work();
        assert_eq!(bench.asked(), ["one/look", "one/second"]);
        bench.answer_task("one/look", "approved", None);
        bench.answer_task("one/second", "approved", None);
        assert_eq!(bench.run.status(), Status::Complete);
    }
}

#[test]
fn issues_recorded_at_two_questions_about_the_same_task_reach_one_attempt_of_it() {
    for mut bench in in_both_orders(vec![task("build", &[]), look(&["build"]), verify("second", "build", 3)]) {
        bench.record_answer("one/look", "issues", Some("too slow"));
        bench.record_answer("one/second", "issues", Some("too big"));
        bench.take_over();
        let build = bench.run.task_run(&key("one", 1, "build")).unwrap();
        let feedback = build.feedback().unwrap();
        assert!(feedback.contains("too slow") && feedback.contains("too big"), "{feedback}");
        assert_eq!(build.attempts, 2);
        bench.work();
        assert_eq!(bench.asked(), ["one/look", "one/second"]);
    }
}

#[test]
fn issues_recorded_at_an_item_of_a_list_count_although_the_list_is_made_again() {
    let mut asks = verify("each", "docs", 3);
    asks.needs = vec![TaskId::from("build")];
    asks.for_each = each(&[]).for_each;
    let mut bench = Bench::new(workflow(vec![phase("one", vec![task("build", &[]), task("docs", &[]), asks, look(&["build"])])]));
    bench.perform(&bench.effect_of("one/build"));
    bench.perform(&bench.effect_of("one/docs"));
    list(&mut bench, 1, &["a", "b"]);
    bench.work();
    bench.record_answer("one/look", "issues", Some("too slow"));
    bench.record_answer("one/each[a]", "issues", Some("a typo"));
    bench.take_over();
    reloads(&bench);
    let pending: Vec<Effect> = ["build", "docs"].map(|task| Effect::Task { key: key("one", 1, task), attempt: 2 }).into();
    assert_eq!(bench.run.pending(), pending);
    bench.perform(&pending[1]);
    assert_eq!(bench.run.pending(), pending[..1], "no item is asked before its list is made again");
    bench.perform(&pending[0]);
    list(&mut bench, 2, &["a"]);
    bench.work();
    assert_eq!(bench.asked(), ["one/each[a]", "one/look"]);
}

#[test]
fn other_recorded_answers_take_effect_before_issues_take_their_questions_back() {
    let tasks = || vec![task("build", &[]), decision("mid", &["build"]), look(&["build"])];
    for mut bench in in_both_orders(tasks()) {
        bench.record_answer("one/look", "issues", Some("too slow"));
        bench.record_answer("one/mid", "postgres", None);
        bench.take_over();
        bench.work();
        assert_eq!(bench.asked(), ["one/look", "one/mid"]);
        let open = bench.run.open_holds();
        let mid = open.iter().find(|hold| hold.scope.addresses() == ["one/mid"]).unwrap();
        assert_eq!(mid.previous_choice().map(|choice| choice.id.as_str()), Some("postgres"), "the answer is offered again");
    }
    for mut bench in in_both_orders(tasks()) {
        bench.record_answer("one/look", "issues", Some("too slow"));
        bench.record_answer("one/mid", "abort", None);
        bench.take_over();
        assert_eq!(bench.run.status(), Status::Aborted);
    }
}

#[test]
fn questions_that_redo_each_others_work_never_block_each_other() {
    let mut first = verify("first", "late", 3);
    first.needs = vec![TaskId::from("build")];
    let mut second = verify("second", "last", 3);
    second.needs = vec![TaskId::from("build")];
    let tasks = vec![task("build", &[]), first, second, task("late", &["second"]), task("last", &["first"])];
    let mut bench = bench(tasks);
    bench.answer_task("one/first", "issues", Some("a"));
    bench.work();
    assert_eq!(bench.asked(), ["one/second"], "the first waits for work that needs the second");
    bench.answer_task("one/second", "issues", Some("b"));
    bench.work();
    assert_eq!(bench.asked(), ["one/second"], "the second cannot wait for what needs the first");
    bench.answer_task("one/second", "approved", None);
    bench.work();
    assert_eq!(bench.asked(), ["one/first"]);
    bench.answer_task("one/first", "approved", None);
    bench.work();
    assert_eq!(bench.run.status(), Status::Complete);
}
