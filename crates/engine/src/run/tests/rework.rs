//! Rework: which tasks are redone when a person finds issues, and which wait for them.

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

fn harness(tasks: Vec<Task>) -> Harness {
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    harness.work();
    harness
}

fn state(harness: &Harness, task: &str) -> TaskState {
    harness.run.task_run(&key("one", 1, task)).unwrap().state.clone()
}

/// The state in memory equals the state that a process would read from the store.
fn reloads(harness: &Harness) {
    let mut read = Run::from_bytes(&harness.run.to_bytes()).unwrap();
    read.attach(harness.run.workflow.clone()).unwrap();
    assert_eq!(read.current, harness.run.current);
}

#[test]
fn a_verification_reopens_only_after_the_intermediate_decision_was_asked_again() {
    let tasks = vec![task("build", &[]), decision("mid", &["build"]), look(&["mid"]), task("ship", &["look"])];
    let mut harness = harness(tasks);
    harness.answer_task("one/mid", "postgres", None);
    harness.work();
    harness.answer_task("one/look", "issues", Some("the colour is wrong"));
    reloads(&harness);
    assert!(harness.run.open_holds().is_empty(), "build is being redone");
    assert_eq!(harness.effect_of("one/build"), Effect::Task { key: key("one", 1, "build"), attempt: 2 });
    harness.work();
    assert_eq!(harness.asked(), ["one/mid"], "the decision comes first");
    let hold = harness.hold();
    assert_eq!(hold.previous_choice().map(|choice| choice.id.as_str()), Some("postgres"), "the earlier answer is offered");
    assert!(hold.blocking && hold.answers.is_empty(), "and not taken");
    assert!(hold.notes.is_empty());
    harness.answer_task("one/mid", "sqlite", None);
    harness.work();
    assert_eq!(harness.asked(), ["one/look"]);
    assert_eq!(harness.hold().previous.as_ref().and_then(|answer| answer.feedback.as_deref()), Some("the colour is wrong"));
    assert!(!harness.started().contains(&"one/ship".to_owned()));
    harness.answer_task("one/look", "approved", None);
    harness.work();
    assert_eq!(harness.started(), ["one/build", "one/mid", "one/look", "one/build", "one/mid", "one/look", "one/ship"]);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn an_intermediate_action_is_asked_and_checked_again() {
    let mut harness = harness(vec![task("build", &[]), action("mail", &["build"]), look(&["mail"])]);
    harness.answer_task("one/mail", "done", None);
    harness.work();
    harness.answer_task("one/look", "issues", Some("no"));
    harness.work();
    assert_eq!(harness.asked(), ["one/mail"]);
    harness.answer_task("one/mail", "done", None);
    assert!(matches!(harness.run.pending()[..], [Effect::Check { .. }]));
    harness.work();
    assert_eq!(harness.asked(), ["one/look"]);
}

#[test]
fn a_question_waits_for_rework_even_if_it_does_not_depend_on_it() {
    let redo = vec![TaskId::from("build"), TaskId::from("docs")];
    let mut asks = look(&["build"]);
    if let Work::Checkpoint(checkpoint) = &mut asks.work {
        checkpoint.options = verify_options(Action::Redo(redo), None);
    }
    let mut harness = harness(vec![task("build", &[]), task("docs", &[]), asks, task("ship", &["look"])]);
    harness.answer_task("one/look", "issues", Some("both"));
    harness.perform(&harness.effect_of("one/build"));
    assert!(harness.run.pending().iter().all(|effect| *effect == Effect::Task { key: key("one", 1, "docs"), attempt: 2 }));
    reloads(&harness);
    harness.work();
    assert_eq!(harness.asked(), ["one/look"]);
    reloads(&harness);
}

#[test]
fn a_join_any_question_waits_for_all_redone_needs() {
    let any = Task { join: Join::Any, ..look(&["build", "other"]) };
    let between = Task { join: Join::Any, ..task("pack", &["build", "other"]) };
    let mut harness = harness(vec![task("build", &[]), task("other", &[]), between, any]);
    harness.answer_task("one/look", "issues", Some("no"));
    assert_eq!(harness.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }]);
    harness.work();
    let again = harness.started().split_off(4);
    assert_eq!(again, ["one/build", "one/pack", "one/look"]);
}

#[test]
fn a_join_any_task_waits_while_a_needed_question_has_its_work_redone() {
    let any = |id: &str, needs: &[&str]| Task { join: Join::Any, ..task(id, needs) };
    let tasks = || {
        let other = vec![task("build", &[]), look(&["build"]), task("other", &[]), task("late", &[])];
        other.into_iter().chain([any("early", &["look", "other"]), any("ship", &["look", "late"])]).collect::<Vec<_>>()
    };
    let mut harness = Harness::new(workflow(vec![phase("one", tasks())]));
    for task in ["build", "look", "other", "early"] {
        harness.perform(&harness.effect_of(&format!("one/{task}")));
    }
    assert_eq!((state(&harness, "early"), state(&harness, "ship")), (TaskState::Done, TaskState::Waiting));
    harness.answer_task("one/look", "issues", Some("no"));
    harness.perform(&harness.effect_of("one/late"));
    reloads(&harness);
    assert_eq!(harness.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }], "both wait for the rework");
    harness.work();
    assert_eq!(harness.asked(), ["one/look"]);
    assert_eq!((state(&harness, "early"), state(&harness, "ship")), (TaskState::Waiting, TaskState::Waiting));
    harness.answer_task("one/look", "approved", None);
    harness.work();
    assert_eq!(harness.started().split_off(5), ["one/build", "one/look", "one/early", "one/ship"]);
    assert_eq!(harness.run.status(), Status::Complete);
}

#[test]
fn a_join_any_task_waits_for_the_rework_of_two_questions() {
    let check = |id: &str, of: &str| Task { needs: vec![TaskId::from(of)], ..verify(id, of, 3) };
    let ship = Task { join: Join::Any, ..task("ship", &["left", "right"]) };
    let tasks = vec![task("left", &[]), task("right", &[]), check("look-left", "left"), check("look-right", "right"), ship];
    let mut harness = harness(tasks);
    harness.answer_task("one/look-left", "issues", Some("no"));
    harness.answer_task("one/look-right", "issues", Some("no"));
    harness.perform(&harness.effect_of("one/right"));
    assert_eq!((state(&harness, "right"), state(&harness, "ship")), (TaskState::Done, TaskState::Waiting));
    reloads(&harness);
    let pending = harness.run.pending();
    assert!(
        !pending.iter().any(|effect| matches!(effect, Effect::Task { key, .. } if key.task.as_str() == "ship")),
        "{pending:?}"
    );
    harness.perform(&harness.effect_of("one/left"));
    harness.perform(&harness.effect_of("one/ship"));
    assert_eq!(state(&harness, "ship"), TaskState::Done);
}

#[test]
fn parallel_branches_are_redone_in_any_state() {
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
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    harness.perform(&harness.effect_of("one/build"));
    harness.perform(&harness.effect_of("one/done"));
    harness.fail("one/tolerated");
    harness.fail("one/backoff");
    harness.fail("one/asks");
    harness.perform(&harness.effect_of("one/other"));
    harness.perform(&harness.effect_of("one/look"));
    assert_eq!(harness.asked(), ["one/asks", "one/look", "one/other"]);
    assert!(matches!(state(&harness, "needs-tolerated"), TaskState::Omitted { .. }));
    let before = harness.started().len();
    harness.answer_task("one/look", "issues", Some("no"));
    reloads(&harness);
    assert_eq!(harness.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }], "nothing else continues");
    assert!(harness.run.open_holds().is_empty(), "questions about the old work are void");
    harness.work();
    let again: BTreeSet<String> = harness.started().split_off(before).into_iter().collect();
    let all = ["asks", "backoff", "build", "done", "look", "needs-tolerated", "other", "running", "tolerated"];
    assert_eq!(again.into_iter().collect::<Vec<_>>(), all.map(|task| format!("one/{task}")));
    assert_eq!(harness.asked(), ["one/look", "one/other"], "both are asked again, neither waits for the other");
}

#[test]
fn gates_of_redone_tasks_rerun() {
    let of = |id: &str, task: &str| Gate { task: Some(TaskId::from(task)), ..gate(id) };
    let mut one = phase("one", vec![task("build", &[]), task("pack", &["build"]), look(&["pack"])]);
    one.gates = vec![of("tests", "build"), of("size", "pack")];
    let mut harness = Harness::new(workflow(vec![one]));
    harness.work();
    harness.answer_task("one/look", "issues", Some("no"));
    harness.perform(&harness.effect_of("one/build"));
    assert!(matches!(&harness.run.pending()[..], [Effect::Gate { attempt: 2, .. }]), "{:?}", harness.run.pending());
    harness.work();
    assert_eq!(harness.asked(), ["one/look"]);
    assert_eq!(harness.run.current.as_ref().unwrap().gates.iter().map(|gate| gate.attempts).collect::<Vec<_>>(), [2, 2]);
}

fn each(needs: &[&str]) -> Task {
    Task { for_each: Some(ForEach { over: ItemSource::List(Vec::new()), max_parallel: None }), ..task("each", needs) }
}

/// The list of `each` was computed.
fn list(harness: &mut Harness, attempt: u32, names: &[&str]) {
    let item = |name: &&str| crate::run::command::Item { key: (*name).into(), value: StoredValue::Inline("1".into()) };
    let outcome = TaskOutcome::Items(names.iter().map(item).collect());
    harness.outcome(CommandKind::TaskEnded { key: key("one", 1, "each"), attempt, outcome, agent: None, commit: None });
}

fn item(name: &str) -> TaskKey {
    TaskKey { item: Some(name.into()), ..key("one", 1, "each") }
}

#[test]
fn a_fan_out_that_depends_on_redone_work_is_expanded_again() {
    let mut harness = Harness::new(workflow(vec![phase("one", vec![task("build", &[]), each(&["build"]), look(&["each"])])]));
    harness.perform(&harness.effect_of("one/build"));
    list(&mut harness, 1, &["a", "b"]);
    harness.work();
    harness.answer_task("one/look", "issues", Some("no"));
    reloads(&harness);
    harness.perform(&harness.effect_of("one/build"));
    assert_eq!(harness.run.pending(), [Effect::Task { key: key("one", 1, "each"), attempt: 2 }]);
    list(&mut harness, 2, &["b", "c"]);
    let again = [Effect::Task { key: item("b"), attempt: 2 }, Effect::Task { key: item("c"), attempt: 1 }];
    assert_eq!(harness.run.pending(), again, "no attempt has the number of an earlier one");
    harness.work();
    assert_eq!(harness.asked(), ["one/look"]);
    reloads(&harness);
}

#[test]
fn a_redone_fan_out_is_expanded_again() {
    let tasks = vec![each(&[]), verify("look", "each", 3), verify("second", "each", 3)];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    list(&mut harness, 1, &["a", "b"]);
    harness.work();
    harness.record_answer("one/look", "issues", Some("too slow"));
    harness.record_answer("one/second", "issues", Some("too big"));
    harness.take_over();
    reloads(&harness);
    assert_eq!(harness.run.pending(), [Effect::Task { key: key("one", 1, "each"), attempt: 2 }]);
    list(&mut harness, 2, &["b", "c"]);
    reloads(&harness);
    let again = [Effect::Task { key: item("b"), attempt: 2 }, Effect::Task { key: item("c"), attempt: 1 }];
    assert_eq!(harness.run.pending(), again, "a is no longer in the list");
    let feedback = |name: &str| harness.run.task_run(&item(name)).unwrap().feedback().map(str::to_owned);
    assert!(feedback("b").is_some_and(|said| said.contains("too slow") && said.contains("too big")), "{:?}", feedback("b"));
    harness.perform(&again[1]);
    let failed = harness.fail("one/each[b]");
    assert!(failed.iter().any(|event| matches!(event, Event::Failed { .. })), "{failed:?}");
    harness.take_over();
    harness.work();
    assert_eq!(harness.asked(), ["one/look", "one/second"]);
    assert_eq!(harness.started().iter().filter(|task| *task == "one/each[a]").count(), 1);
}

#[test]
fn items_removed_from_a_fan_out_do_not_count() {
    let tolerant = Task { continue_on_error: true, ..each(&[]) };
    let mut harness = Harness::new(workflow(vec![phase("one", vec![tolerant, verify("look", "each", 3)])]));
    list(&mut harness, 1, &["a", "b"]);
    harness.work();
    harness.answer_task("one/look", "issues", Some("no"));
    list(&mut harness, 2, &["b", "c"]);
    let gone = harness.run.task_run(&item("a")).unwrap().state.clone();
    assert_eq!(gone, TaskState::Omitted { reason: "it is no longer in the list".into(), failed: false });
    harness.fail("one/each[b]");
    harness.perform(&harness.effect_of("one/each[c]"));
    let said = |event: &Event| matches!(event, Event::TaskFailed { failure, .. } if failure.message == "1 of its 2 tasks failed");
    assert!(harness.has(said));
}

#[test]
fn a_task_skipped_before_it_ran_stays_skipped_and_still_waits_for_the_rework() {
    let tasks = vec![task("build", &[]), task("lint", &["build"]), look(&["lint"]), task("ship", &["look"])];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    for skipped in ["lint", "ship"] {
        let step = crate::id::StepKey::Task(key("one", 1, skipped));
        harness.tell(person(), CommandKind::SkipTask { step, reason: "not today".into(), cut_off: None }, true).unwrap();
    }
    harness.work();
    harness.answer_task("one/look", "issues", Some("no"));
    assert_eq!(harness.run.pending(), [Effect::Task { key: key("one", 1, "build"), attempt: 2 }]);
    assert!(harness.run.open_holds().is_empty());
    harness.work();
    assert_eq!(harness.asked(), ["one/look"]);
    harness.answer_task("one/look", "approved", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
    assert!(!harness.started().iter().any(|task| task == "one/lint" || task == "one/ship"));
}

#[test]
fn a_default_does_not_replace_a_decision_made_before_the_rework() {
    let waits = WaitSettings { default: Some(OptionId::from("sqlite")), ..WaitSettings::default() };
    let tasks = vec![task("build", &[]), with_waits(decision("mid", &["build"]), waits), look(&["mid"])];
    let mut harness = harness(tasks);
    assert_eq!(harness.run.decisions[0].actor.channel, Channel::Default);
    harness.answer_task("one/look", "issues", Some("no"));
    harness.work();
    assert_eq!(harness.run.decisions[2].actor.channel, Channel::Default, "no person has decided, so no one is asked");
    let hold = harness.run.decisions[2].hold.clone();
    harness
        .tell(person(), CommandKind::ChangeAnswer(AnswerChange { hold, option: "postgres".into(), feedback: None }), true)
        .unwrap();
    harness.work();
    harness.answer_task("one/look", "issues", Some("still not"));
    harness.work();
    assert_eq!(harness.asked(), ["one/mid"], "a person decided");
    assert_eq!(harness.hold().previous_choice().map(|choice| choice.id.as_str()), Some("postgres"));
    assert!(harness.hold().blocking);
}

#[test]
fn issues_at_the_end_of_a_phase_redo_dependents_of_the_work() {
    let asked = Verify { built: "it".into(), rounds: 3, ..Verify::default() };
    let options = verify_options(Action::Redo(vec![TaskId::from("build")]), None);
    let mut one = phase("one", vec![task("docs", &[]), task("build", &[]), task("pack", &["build"])]);
    one.checkpoint = Some(Checkpoint { question: Some(Question::Verify(asked)), ..checkpoint(options).unwrap() });
    let mut harness = Harness::new(workflow(vec![one]));
    harness.work();
    harness.answer("issues", Some("too small"));
    harness.work();
    assert_eq!(harness.started(), ["one/docs", "one/build", "one/pack", "one/build", "one/pack"]);
}

#[test]
fn a_second_report_while_work_is_redone_adds_to_the_first() {
    let mut second = verify("second", "build", 3);
    second.needs = vec![TaskId::from("docs")];
    let mut harness = harness(vec![task("build", &[]), task("docs", &[]), look(&["build"]), second]);
    harness.answer_task("one/look", "issues", Some("too slow"));
    harness.answer_task("one/second", "issues", Some("too big"));
    let build = harness.run.task_run(&key("one", 1, "build")).unwrap();
    assert_eq!((build.attempts, build.feedback()), (3, Some("too slow\n\ntoo big")));
    harness.work();
    assert_eq!(harness.asked(), ["one/look", "one/second"]);
    harness.answer_task("one/look", "issues", Some("red"));
    assert_eq!(
        harness.run.task_run(&key("one", 1, "build")).unwrap().feedback(),
        Some("red"),
        "issues that were addressed are gone"
    );
}

/// The tasks to redo, with the question that requested it.
fn redone(harness: &Harness) -> Vec<(String, Vec<String>)> {
    let redone = harness.entries.iter().filter_map(|entry| match &entry.event {
        Event::ReworkRequested { by, keys, .. } => Some((by.address(), keys.iter().map(TaskKey::address).collect())),
        _ => None,
    });
    redone.collect()
}

/// Two runs whose last two questions open in either order. Which answer takes effect first depends on the hold ids.
fn in_both_orders(tasks: Vec<Task>) -> [Harness; 2] {
    let mut swapped = tasks.clone();
    let last = tasks.len() - 1;
    swapped.swap(last - 1, last);
    [harness(tasks), harness(swapped)]
}

#[test]
fn issues_recorded_at_two_questions_before_a_process_drives_the_run_are_both_redone() {
    let second = Task { needs: vec![TaskId::from("build"), TaskId::from("docs")], ..verify("second", "docs", 3) };
    for mut harness in in_both_orders(vec![task("build", &[]), task("docs", &[]), look(&["build", "docs"]), second]) {
        harness.record_answer("one/look", "issues", Some("too slow"));
        harness.record_answer("one/second", "issues", Some("a typo"));
        harness.take_over();
        reloads(&harness);
        let mut asked = redone(&harness);
        asked.sort();
        let of = |by: &str, task: &str| (format!("one/{by}"), vec![format!("one/{task}")]);
        assert_eq!(asked, [of("look", "build"), of("second", "docs")]);
        let feedback = |task: &str| harness.run.task_run(&key("one", 1, task)).unwrap().feedback().map(str::to_owned);
        assert_eq!(feedback("build").as_deref(), Some("too slow"));
        assert_eq!(feedback("docs").as_deref(), Some("a typo"));
        assert_eq!(harness.run.pending().len(), 2, "both are redone, and nothing else starts");
        assert!(harness.run.open_holds().is_empty());
        harness.work();
        assert_eq!(harness.asked(), ["one/look", "one/second"]);
        harness.answer_task("one/look", "approved", None);
        harness.answer_task("one/second", "approved", None);
        assert_eq!(harness.run.status(), Status::Complete);
    }
}

#[test]
fn issues_recorded_at_two_questions_about_the_same_task_reach_one_attempt_of_it() {
    for mut harness in in_both_orders(vec![task("build", &[]), look(&["build"]), verify("second", "build", 3)]) {
        harness.record_answer("one/look", "issues", Some("too slow"));
        harness.record_answer("one/second", "issues", Some("too big"));
        harness.take_over();
        let build = harness.run.task_run(&key("one", 1, "build")).unwrap();
        let feedback = build.feedback().unwrap();
        assert!(feedback.contains("too slow") && feedback.contains("too big"), "{feedback}");
        assert_eq!(build.attempts, 2);
        harness.work();
        assert_eq!(harness.asked(), ["one/look", "one/second"]);
    }
}

#[test]
fn issues_recorded_for_an_item_survive_expanding_the_fan_out_again() {
    let mut asks = verify("each", "docs", 3);
    asks.needs = vec![TaskId::from("build")];
    asks.for_each = each(&[]).for_each;
    let mut harness =
        Harness::new(workflow(vec![phase("one", vec![task("build", &[]), task("docs", &[]), asks, look(&["build"])])]));
    harness.perform(&harness.effect_of("one/build"));
    harness.perform(&harness.effect_of("one/docs"));
    list(&mut harness, 1, &["a", "b"]);
    harness.work();
    harness.record_answer("one/look", "issues", Some("too slow"));
    harness.record_answer("one/each[a]", "issues", Some("a typo"));
    harness.take_over();
    reloads(&harness);
    let pending: Vec<Effect> = ["build", "docs"].map(|task| Effect::Task { key: key("one", 1, task), attempt: 2 }).into();
    assert_eq!(harness.run.pending(), pending);
    harness.perform(&pending[1]);
    assert_eq!(harness.run.pending(), pending[..1], "no item asks before its list is computed again");
    harness.perform(&pending[0]);
    list(&mut harness, 2, &["a"]);
    harness.work();
    assert_eq!(harness.asked(), ["one/each[a]", "one/look"]);
}

#[test]
fn other_recorded_answers_take_effect_before_issues_void_their_questions() {
    let tasks = || vec![task("build", &[]), decision("mid", &["build"]), look(&["build"])];
    for mut harness in in_both_orders(tasks()) {
        harness.record_answer("one/look", "issues", Some("too slow"));
        harness.record_answer("one/mid", "postgres", None);
        harness.take_over();
        harness.work();
        assert_eq!(harness.asked(), ["one/look", "one/mid"]);
        let open = harness.run.open_holds();
        let mid = open.iter().find(|hold| hold.scope.addresses() == ["one/mid"]).unwrap();
        assert_eq!(mid.previous_choice().map(|choice| choice.id.as_str()), Some("postgres"), "the answer is offered again");
    }
    for mut harness in in_both_orders(tasks()) {
        harness.record_answer("one/look", "issues", Some("too slow"));
        harness.record_answer("one/mid", "abort", None);
        harness.take_over();
        assert_eq!(harness.run.status(), Status::Aborted);
    }
}

#[test]
fn questions_that_redo_each_others_work_never_block_each_other() {
    let mut first = verify("first", "late", 3);
    first.needs = vec![TaskId::from("build")];
    let mut second = verify("second", "last", 3);
    second.needs = vec![TaskId::from("build")];
    let tasks = vec![task("build", &[]), first, second, task("late", &["second"]), task("last", &["first"])];
    let mut harness = harness(tasks);
    harness.answer_task("one/first", "issues", Some("a"));
    harness.work();
    assert_eq!(harness.asked(), ["one/second"], "the first waits for work that needs the second");
    harness.answer_task("one/second", "issues", Some("b"));
    harness.work();
    assert_eq!(harness.asked(), ["one/second"], "the second cannot wait for tasks that need the first");
    harness.answer_task("one/second", "approved", None);
    harness.work();
    assert_eq!(harness.asked(), ["one/first"]);
    harness.answer_task("one/first", "approved", None);
    harness.work();
    assert_eq!(harness.run.status(), Status::Complete);
}
