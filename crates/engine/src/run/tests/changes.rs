//! Changed answers: what is skipped, what is done again, what stays as it was, in place and in forks.

use super::questions::{decision, verify, with_waits};
use super::*;
use crate::run::fork::{ForkAs, fork};
use crate::run::refusal::Instead;
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
    let waits = Waits { default: Some(OptionId::from(default)), ..Waits::default() };
    one.checkpoint = Some(Checkpoint { waits, ..checkpoint(options).unwrap() });
    let mut four = phase("four", vec![task("d", &[])]);
    four.checkpoint = checkpoint(vec![choice("Continue", Action::Continue)]).filter(|_| last_waits);
    workflow(vec![one, phase("two", vec![task("b", &[])]), phase("three", vec![task("c", &[])]), four])
}

fn change(bench: &mut Bench, option: &str) {
    let hold = bench.run.decisions.iter().find(|decision| !decision.void).unwrap().hold.clone();
    bench.tell(person(), CommandKind::ChangeAnswer(AnswerChange { hold, option: option.into(), feedback: None }), true).unwrap();
    bench.work();
}

fn changed(default: &str, option: &str) -> (Bench, Vec<String>) {
    let mut bench = Bench::new(skipping(default, true));
    bench.work();
    let before = bench.started().len();
    change(&mut bench, option);
    let again = bench.started().split_off(before);
    (bench, again)
}

#[test]
fn changing_go_to_skip_passes_over_the_phase() {
    let (bench, again) = changed("go", "skip");
    assert_eq!(again, ["three/c", "four/d"]);
    assert_eq!(bench.run.skip_list, [PhaseId::from("two")]);
    let completed: Vec<&str> = bench.run.completed.iter().map(PhaseId::as_str).collect();
    assert_eq!(completed, ["one", "three"]);
}

#[test]
fn changing_skip_to_go_runs_the_phase() {
    let (bench, again) = changed("skip", "go");
    assert_eq!(again, ["two/b", "three/c", "four/d"]);
    assert_eq!(bench.run.skip_list, [], "the old answer takes what it listed with it");
}

#[test]
fn changing_one_skip_to_another_lists_only_what_the_new_one_names() {
    let (bench, again) = changed("skip-both", "skip");
    assert_eq!(again, ["three/c", "four/d"]);
    assert_eq!(bench.run.skip_list, [PhaseId::from("two")]);
}

#[test]
fn a_fork_skips_what_the_changed_answer_says() {
    for (default, option, again) in
        [("go", "skip", vec!["three/c", "four/d"]), ("skip", "go", vec!["two/b", "three/c", "four/d"])]
    {
        let mut parent = Bench::new(skipping(default, false));
        parent.work();
        assert_eq!(parent.run.end, Some(End::Complete));
        let hold = parent.run.decisions[0].hold.clone();
        let found = consequences(&parent.run, &hold, option).unwrap();
        assert_eq!(found.phase.as_ref().map(PhaseId::as_str), again[0].split('/').next());
        assert_eq!(found.skipped.len(), usize::from(option == "skip"));
        let change = AnswerChange { hold, option: option.into(), feedback: None };
        let own = ForkAs { run: RunId::from("run00001"), output_dir: "out2".into(), driver: DriverId::from("d") };
        let made = fork(&envelope(person(), 10_000_000, true), &change, &parent.run, own).unwrap();
        let mut forked = Bench { run: made.run, entries: made.entries, now: 20_000_000 };
        forked.outcome(CommandKind::Look);
        forked.work();
        assert_eq!(forked.started(), again);
        assert_eq!(forked.run.status(), Status::Complete);
    }
}

#[test]
fn a_void_answer_takes_its_skipped_phases_with_it() {
    let mut asked = skipping("go", true);
    let options = vec![choice("Skip", Action::SkipPhases(vec![PhaseId::from("three")])), choice("Go", Action::Continue)];
    asked.phases[1].checkpoint = checkpoint(options);
    let mut bench = Bench::new(asked);
    bench.work();
    bench.answer("skip", None);
    bench.work();
    assert_eq!(bench.run.skip_list, [PhaseId::from("three")]);
    change(&mut bench, "skip");
    assert_eq!(bench.run.skip_list, [PhaseId::from("two")], "the answer at two no longer counts");
    assert!(bench.started().contains(&"three/c".to_owned()));
}

#[test]
fn what_was_carried_stays_as_it_ended() {
    let waits = Waits { default: Some(OptionId::from("sqlite")), ..Waits::default() };
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
        let mut bench = Bench::new(workflow(vec![one, last]));
        bench.fail("one/shaky");
        bench.work();
        if leaves_the_phase {
            bench.answer("continue", None);
            bench.work();
        }
        let before = bench.started().len();
        change(&mut bench, "postgres");
        assert_eq!(bench.started().split_off(before), ["one/build"], "left: {leaves_the_phase}");
        let state = |task: &str| bench.run.task_run(&key("one", 2, task)).unwrap().state.clone();
        assert!(matches!(state("shaky"), TaskState::Tolerated(_)));
        assert!(matches!(state("on-shaky"), TaskState::LeftOut { failed: true, .. }));
        assert!(matches!(state("on-both"), TaskState::LeftOut { failed: true, .. }));
    }
}

#[test]
fn issues_found_by_changing_an_answer_redo_what_was_built_on_the_work() {
    let waits = Waits { default: Some(OptionId::from("approved")), ..Waits::default() };
    let mut look = with_waits(verify("look", "build", 3), waits);
    look.needs = vec![TaskId::from("mid")];
    let tasks = vec![task("build", &[]), decision("mid", &["build"]), look, task("docs", &[]), task("ship", &["look"])];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks), phase("two", vec![decision("last", &[])])]));
    bench.work();
    bench.answer_task("one/mid", "postgres", None);
    bench.work();
    let hold = bench.run.decisions.iter().find(|decision| decision.option.as_str() == "approved").unwrap().hold.clone();
    let before = bench.started().len();
    bench
        .tell(
            person(),
            CommandKind::ChangeAnswer(AnswerChange { hold, option: "issues".into(), feedback: Some("no".into()) }),
            true,
        )
        .unwrap();
    bench.work();
    assert_eq!(bench.asked(), ["one/mid"], "the decision between is asked again");
    assert_eq!(bench.hold().previous_choice().map(|choice| choice.id.as_str()), Some("postgres"));
    assert_eq!(bench.started().split_off(before), ["one/build", "one/mid"]);
}

#[test]
fn answering_a_hold_that_was_taken_back_says_why_and_what_took_its_place() {
    let mut other = verify("other", "build", 3);
    other.needs = vec![TaskId::from("build")];
    let tasks = vec![task("build", &[]), verify("look", "build", 3), other];
    let mut bench = Bench::new(workflow(vec![phase("one", tasks)]));
    bench.work();
    let is_other = |hold: &&&Hold| hold.scope.addresses() == ["one/other"];
    let lost = bench.run.open_holds().iter().find(is_other).unwrap().id.clone();
    bench.answer_task("one/look", "issues", Some("no"));
    let late = CommandKind::Answer { hold: lost.clone(), revision: None, option: "approved".into(), feedback: None };
    let Err(Refusal::HoldVoided { reason, now: None, .. }) = bench.tell(person(), late.clone(), true) else {
        panic!("it was taken back")
    };
    assert_eq!(reason, "what it is about is done again");
    bench.work();
    let now = bench.run.open_holds().iter().find(is_other).unwrap().id.clone();
    let refused = bench.tell(person(), late, true).unwrap_err();
    assert!(matches!(&refused, Refusal::HoldVoided { now: Some(Instead::Open(hold)), .. } if *hold == now), "{refused}");
    let body = CommandKind::ChangeAnswer(AnswerChange { hold: lost, option: "approved".into(), feedback: None });
    assert!(matches!(bench.tell(person(), body, true), Err(Refusal::HoldVoided { .. })));
    bench.answer_task("one/other", "approved", None);
    let text = refused.to_string();
    assert!(text.contains("taken back at") && text.contains(now.as_str()), "{text}");
}

#[test]
fn changing_an_answer_that_no_longer_counts_says_what_changed_it() {
    let mut asked = skipping("go", true);
    let waits = Waits { default: Some(OptionId::from("go")), ..Waits::default() };
    asked.phases[2].checkpoint =
        Some(Checkpoint { waits, ..checkpoint(vec![choice("Go", Action::Continue), choice("On", Action::Continue)]).unwrap() });
    let mut bench = Bench::new(asked);
    bench.work();
    let (first, later) = (bench.run.decisions[0].hold.clone(), bench.run.decisions[1].hold.clone());
    change(&mut bench, "skip");
    let now = bench.run.decisions.last().unwrap().hold.clone();
    let body = CommandKind::ChangeAnswer(AnswerChange { hold: later.clone(), option: "on".into(), feedback: None });
    let refused = bench.tell(person(), body, true).unwrap_err();
    let Refusal::AnswerSuperseded { by, now: Some(Instead::Answered(instead)), .. } = refused else { panic!("{refused}") };
    assert_eq!((by, instead), (first, now));
    let body = CommandKind::Answer { hold: later, revision: None, option: "on".into(), feedback: None };
    assert!(matches!(bench.tell(person(), body, true), Err(Refusal::AnswerSuperseded { .. })));
}
