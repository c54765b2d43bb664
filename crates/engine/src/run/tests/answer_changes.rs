//! Changed answers: which phases are skipped, which work is redone and which is kept, in place and in forks.

use super::questions::{decision, verify, with_waits};
use super::*;
use crate::run::fork::{ForkAs, fork};
use crate::run::refusal::ReplacedBy;
use crate::run::state::{End, TaskState};
use crate::run::{Status, consequences};

/// Phase one asks without waiting; phase four waits for a person, so that the run is not complete.
fn skipping(default: &str, last_waits: bool) -> Workflow {
    let options = vec![
        choice("Go", Action::Continue),
        choice("Skip", Action::SkipPhases(vec![PhaseId::from("two")])),
        choice("Skip-both", Action::SkipPhases(vec![PhaseId::from("two"), PhaseId::from("three")])),
    ];
    let mut one = phase("one", vec![task("a", &[])]);
    let waits = WaitSettings { default: Some(OptionId::from(default)), ..WaitSettings::default() };
    one.checkpoint = Some(Checkpoint { waits, ..checkpoint(options).unwrap() });
    let mut four = phase("four", vec![task("d", &[])]);
    four.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]).filter(|_| last_waits);
    workflow(vec![one, phase("two", vec![task("b", &[])]), phase("three", vec![task("c", &[])]), four])
}

fn change(harness: &mut Harness, option: &str) {
    let hold = harness.run.decisions.iter().find(|decision| !decision.void).unwrap().hold.clone();
    harness
        .tell(person(), CommandKind::ChangeAnswer(AnswerChange { hold, option: option.into(), feedback: None }), true)
        .unwrap();
    harness.work();
}

fn changed(default: &str, option: &str) -> (Harness, Vec<String>) {
    let mut harness = Harness::new(skipping(default, true));
    harness.work();
    let before = harness.started().len();
    change(&mut harness, option);
    let again = harness.started().split_off(before);
    (harness, again)
}

#[test]
fn changing_go_to_skip_skips_the_phase() {
    let (harness, again) = changed("go", "skip");
    assert_eq!(again, ["three/c", "four/d"]);
    assert_eq!(harness.run.skip_list, [PhaseId::from("two")]);
    let completed: Vec<&str> = harness.run.completed.iter().map(PhaseId::as_str).collect();
    assert_eq!(completed, ["one", "three"]);
}

#[test]
fn changing_skip_to_go_runs_the_phase() {
    let (harness, again) = changed("skip", "go");
    assert_eq!(again, ["two/b", "three/c", "four/d"]);
    assert_eq!(harness.run.skip_list, [], "the phases that the old answer listed are taken off the list");
}

#[test]
fn changing_one_skip_to_another_skips_only_the_new_target() {
    let (harness, again) = changed("skip-both", "skip");
    assert_eq!(again, ["three/c", "four/d"]);
    assert_eq!(harness.run.skip_list, [PhaseId::from("two")]);
}

#[test]
fn a_fork_skips_the_phases_of_the_changed_answer() {
    for (default, option, again) in
        [("go", "skip", vec!["three/c", "four/d"]), ("skip", "go", vec!["two/b", "three/c", "four/d"])]
    {
        let mut parent = Harness::new(skipping(default, false));
        parent.work();
        assert_eq!(parent.run.end, Some(End::Complete));
        let hold = parent.run.decisions[0].hold.clone();
        let found = consequences(&parent.run, &hold, option).unwrap();
        assert_eq!(found.phase.as_ref().map(PhaseId::as_str), again[0].split('/').next());
        assert_eq!(found.skipped.len(), usize::from(option == "skip"));
        let change = AnswerChange { hold, option: option.into(), feedback: None };
        let own = ForkAs { run: RunId::from("run00001"), output_dir: "out2".into(), driver: DriverId::from("d") };
        let made = fork(&envelope(person(), 10_000_000, true), &change, &parent.run, own).unwrap();
        let mut forked = Harness { run: made.run, entries: made.entries, now: 20_000_000 };
        forked.outcome(CommandKind::Advance);
        forked.work();
        assert_eq!(forked.started(), again);
        assert_eq!(forked.run.status(), Status::Complete);
    }
}

#[test]
fn voiding_an_answer_restores_the_phases_it_skipped() {
    let mut asked = skipping("go", true);
    let options = vec![choice("Skip", Action::SkipPhases(vec![PhaseId::from("three")])), choice("Go", Action::Continue)];
    asked.phases[1].checkpoint = checkpoint(options);
    let mut harness = Harness::new(asked);
    harness.work();
    harness.answer("skip", None);
    harness.work();
    assert_eq!(harness.run.skip_list, [PhaseId::from("three")]);
    change(&mut harness, "skip");
    assert_eq!(harness.run.skip_list, [PhaseId::from("two")], "the answer at two no longer counts");
    assert!(harness.started().contains(&"three/c".to_owned()));
}

#[test]
fn carried_over_tasks_keep_their_outcome() {
    let waits = WaitSettings { default: Some(OptionId::from("sqlite")), ..WaitSettings::default() };
    let mut shaky = task("shaky", &[]);
    shaky.continue_on_error = true;
    let tasks = vec![
        with_waits(decision("db", &[]), waits),
        task("build", &["db"]),
        shaky,
        task("on-shaky", &["shaky"]),
        task("on-both", &["build", "shaky"]),
    ];
    for leaves_the_phase in [false, true] {
        let mut last = phase("two", vec![task("after", &[])]);
        last.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
        let mut one = phase("one", tasks.clone());
        one.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]);
        let mut harness = Harness::new(workflow(vec![one, last]));
        harness.fail("one/shaky");
        harness.work();
        if leaves_the_phase {
            harness.answer("continue", None);
            harness.work();
        }
        let before = harness.started().len();
        change(&mut harness, "postgres");
        assert_eq!(harness.started().split_off(before), ["one/build"], "left: {leaves_the_phase}");
        let state = |task: &str| harness.run.task_run(&key("one", 2, task)).unwrap().state.clone();
        assert!(matches!(state("shaky"), TaskState::Tolerated(_)));
        assert!(matches!(state("on-shaky"), TaskState::Omitted { failed: true, .. }));
        assert!(matches!(state("on-both"), TaskState::Omitted { failed: true, .. }));
    }
}

#[test]
fn issues_reported_by_changing_an_answer_redo_dependents_of_the_work() {
    let waits = WaitSettings { default: Some(OptionId::from("approved")), ..WaitSettings::default() };
    let mut look = with_waits(verify("look", "build", 3), waits);
    look.needs = vec![TaskId::from("mid")];
    let tasks = vec![task("build", &[]), decision("mid", &["build"]), look, task("docs", &[]), task("ship", &["look"])];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks), phase("two", vec![decision("last", &[])])]));
    harness.work();
    harness.answer_task("one/mid", "postgres", None);
    harness.work();
    let hold = harness.run.decisions.iter().find(|decision| decision.option.as_str() == "approved").unwrap().hold.clone();
    let before = harness.started().len();
    harness
        .tell(
            person(),
            CommandKind::ChangeAnswer(AnswerChange { hold, option: "issues".into(), feedback: Some("no".into()) }),
            true,
        )
        .unwrap();
    harness.work();
    assert_eq!(harness.asked(), ["one/mid"], "the decision in between is asked again");
    assert_eq!(harness.hold().previous_choice().map(|choice| choice.id.as_str()), Some("postgres"));
    assert_eq!(harness.started().split_off(before), ["one/build", "one/mid"]);
}

#[test]
fn answering_a_voided_hold_names_the_reason_and_its_replacement() {
    let mut other = verify("other", "build", 3);
    other.needs = vec![TaskId::from("build")];
    let tasks = vec![task("build", &[]), verify("look", "build", 3), other];
    let mut harness = Harness::new(workflow(vec![phase("one", tasks)]));
    harness.work();
    let is_other = |hold: &&&Hold| hold.scope.addresses() == ["one/other"];
    let lost = harness.run.open_holds().iter().find(is_other).unwrap().id.clone();
    harness.answer_task("one/look", "issues", Some("no"));
    let late = CommandKind::Answer { hold: lost.clone(), revision: None, option: "approved".into(), feedback: None };
    let Err(Refusal::HoldVoided { reason, now: None, .. }) = harness.tell(person(), late.clone(), true) else {
        panic!("the hold was voided")
    };
    assert_eq!(reason, "the work that it is about is redone");
    harness.work();
    let now = harness.run.open_holds().iter().find(is_other).unwrap().id.clone();
    let refused = harness.tell(person(), late, true).unwrap_err();
    assert!(matches!(&refused, Refusal::HoldVoided { now: Some(ReplacedBy::Open(hold)), .. } if *hold == now), "{refused}");
    let body = CommandKind::ChangeAnswer(AnswerChange { hold: lost, option: "approved".into(), feedback: None });
    assert!(matches!(harness.tell(person(), body, true), Err(Refusal::HoldVoided { .. })));
    harness.answer_task("one/other", "approved", None);
    let text = refused.to_string();
    assert!(text.contains("voided at") && text.contains(now.as_str()), "{text}");
}

#[test]
fn changing_a_voided_answer_names_what_voided_it() {
    let mut asked = skipping("go", true);
    let waits = WaitSettings { default: Some(OptionId::from("go")), ..WaitSettings::default() };
    asked.phases[2].checkpoint =
        Some(Checkpoint { waits, ..checkpoint(vec![choice("Go", Action::Continue), choice("On", Action::Continue)]).unwrap() });
    let mut harness = Harness::new(asked);
    harness.work();
    let (first, later) = (harness.run.decisions[0].hold.clone(), harness.run.decisions[1].hold.clone());
    change(&mut harness, "skip");
    let now = harness.run.decisions.last().unwrap().hold.clone();
    let body = CommandKind::ChangeAnswer(AnswerChange { hold: later.clone(), option: "on".into(), feedback: None });
    let refused = harness.tell(person(), body, true).unwrap_err();
    let Refusal::AnswerSuperseded { by, now: Some(ReplacedBy::Answered(instead)), .. } = refused else { panic!("{refused}") };
    assert_eq!((by, instead), (first, now));
    let body = CommandKind::Answer { hold: later, revision: None, option: "on".into(), feedback: None };
    assert!(matches!(harness.tell(person(), body, true), Err(Refusal::AnswerSuperseded { .. })));
}
