//! Every event and its notification, and information from earlier events.

use super::*;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{Action, Choice, HoldKind, Scope};
use lockgate_engine::id::{ConflictId, DriverId, GateId, RunId, TimerId};
use lockgate_engine::id::{OptionId, SnapshotId, TaskId};
use lockgate_engine::run::budget::BudgetScope;
use lockgate_engine::run::command::{Caller, Channel, Create, Credential, Envelope, TerminalRule};
use lockgate_engine::run::event::{ConditionOutcome, Created, DiffBase, Entry, Event, FailureKind};
use lockgate_engine::run::event::{Failure, GapsChecked, OutputFile, RefusedAttempt, Rewound};
use lockgate_engine::run::handover::{CurrentTask, Handover, HandoverKind, HandoverStatus};
use lockgate_engine::run::pipeline::PipelineEvent;
use lockgate_engine::run::state::StepStatus;
use lockgate_engine::run::team::TeamEvent;
use lockgate_engine::run::{Run, create};
use lockgate_engine::spec::workflow::GapAction;
use lockgate_engine::spec::workflow::OnDeadline;
use lockgate_engine::stored_value::StoredValue;
use std::collections::BTreeSet;
use std::sync::Arc;

#[test]
fn every_event_becomes_its_notification() {
    let run = run();
    let (key, phase, gate, hold, option) = (key(), PhaseId::new("p"), GateId::new("g"), HoldId::new("h"), OptionId::new("go"));
    let (task, gate_step) = (Step::Task(&key), Step::Gate { phase: &phase, iteration: 2, gate: &gate });
    let (other, target) = (TaskKey { item: Some("x".into()), ..key.clone() }, PhaseId::new("q"));
    let failure = Failure { kind: FailureKind::Exit(1), message: "exit code 1".into(), tail: "tail".into() };
    let file = OutputFile { path: "out.md".into(), digest: Digest::of(b"x"), bytes: 1, stored: false };
    let agent = AgentReport { agent: "scribe".into(), ..AgentReport::default() };
    let planned = PlannedTask::declared(key.task.clone());
    let (handover, checked, opened, refused) = (handover(), gaps_checked(), hold_opened(), refused());
    let (requester, stored_value) = (Requester::Task(key.clone()), StoredValue::Inline("1".into()));
    let (scope, pipeline_event) = (BudgetScope::Run, PipelineEvent::Noted(Default::default()));
    let (due, timer) = (Timestamp::from_millis(5000), TimerId::new("t"));
    let reason = || "because".to_owned();
    let differences = vec![reason()];
    let team = TeamEvent::RoundStarted { conflict: ConflictId::new("c"), round: 2 };
    let rewound = Rewound { snapshot: SnapshotId::new("s"), to_seq: 7, state: Digest::of(b"s"), definition: None };

    let ended = |step, outcome, agent| Kind::StepEnded { step, attempt: 3, took: None, outcome, agent };
    let answer = |label: &str| Answer { hold: &hold, option: &option, label: label.into(), feedback: Some("well done") };
    let feedback = || Some("well done".to_owned());
    let report = || Some(Box::new(agent.clone()));
    let cases: Vec<(Event, Kind<'_>)> = vec![
        (Event::Created(Box::new(created())), Kind::RunStarted { workflow: "flow", feature: Some("search") }),
        (Event::Resumed { driver: DriverId::from("d"), detached: false }, Kind::RunResumed),
        (Event::Interrupted { signal: "SIGTERM".into() }, Kind::RunInterrupted),
        (Event::Completed, Kind::RunEnded(RunEnd::Completed)),
        (Event::Failed { message: reason() }, Kind::RunEnded(RunEnd::Failed)),
        (Event::Aborted { hold: hold.clone() }, Kind::RunEnded(RunEnd::Aborted)),
        (Event::Cancelled { reason: Some(reason()) }, Kind::RunEnded(RunEnd::Cancelled { reason: Some("because") })),
        (
            Event::PhaseStarted { phase: phase.clone(), iteration: 2, feedback: feedback() },
            Kind::PhaseStarted { phase: &phase, iteration: 2, feedback: Some("well done") },
        ),
        (Event::PhaseSkipped { phase: phase.clone() }, Kind::PhaseEnded { phase: &phase, end: PhaseEnd::Skipped }),
        (
            Event::PhaseCompleted { phase: phase.clone(), iteration: 2 },
            Kind::PhaseEnded { phase: &phase, end: PhaseEnd::Completed { iteration: 2 } },
        ),
        (
            Event::PhaseRepeated {
                from: phase.clone(),
                target: target.clone(),
                feedback: feedback(),
                by_failure: true,
                gaps: false,
                carry: vec![key.task.clone()],
                restores: Vec::new(),
            },
            Kind::PhaseEnded {
                phase: &phase,
                end: PhaseEnd::Repeated {
                    target: &target,
                    feedback: Some("well done"),
                    by_failure: true,
                    carry: std::slice::from_ref(&key.task),
                },
            },
        ),
        (
            Event::TasksPlanned { phase: phase.clone(), iteration: 2, tasks: vec![planned.clone()] },
            Kind::TasksPlanned { phase: &phase, iteration: 2, tasks: std::slice::from_ref(&planned) },
        ),
        (
            Event::TaskStarted { key: key.clone(), attempt: 3, reason: AttemptReason::Retry, session: None },
            Kind::StepStarted { step: task, attempt: 3, reason: Some(AttemptReason::Retry) },
        ),
        (
            Event::TaskFinished {
                key: key.clone(),
                attempt: 3,
                result: None,
                outputs: vec![file.clone()],
                agent: report(),
                commit: Some("c0ffee".into()),
            },
            ended(task, StepOutcome::Done { outputs: std::slice::from_ref(&file), commit: Some("c0ffee") }, Some(&agent)),
        ),
        (
            Event::TaskRepeated {
                key: key.clone(),
                attempt: 3,
                result: None,
                outputs: vec![file.clone()],
                agent: report(),
                why: reason(),
            },
            ended(task, StepOutcome::Repeated { outputs: std::slice::from_ref(&file) }, Some(&agent)),
        ),
        (
            Event::TaskFannedOut { key: key.clone(), attempt: 3, tasks: vec![planned.clone()] },
            ended(task, StepOutcome::FannedOut { tasks: std::slice::from_ref(&planned) }, None),
        ),
        (
            Event::HandedOver { key: key.clone(), attempt: 3, handover: Box::new(handover.clone()), agent: report() },
            ended(task, StepOutcome::HandedOver(&handover), Some(&agent)),
        ),
        (
            Event::TaskFailed { key: key.clone(), attempt: 3, failure: failure.clone(), agent: report() },
            ended(task, StepOutcome::Failed(&failure), Some(&agent)),
        ),
        (Event::TaskInterrupted { key: key.clone(), attempt: 3 }, ended(task, StepOutcome::Interrupted, None)),
        (
            Event::TaskStopped { key: key.clone(), attempt: 3, reason: reason(), agent: report(), by_budget: true },
            ended(task, StepOutcome::Stopped { reason: "because" }, Some(&agent)),
        ),
        (
            Event::TaskSkipped { key: key.clone(), reason: reason() },
            Kind::StepSkipped { step: task, skip: Skip::CountsAsDone { reason: "because" } },
        ),
        (
            Event::TaskOmitted { key: key.clone(), reason: reason(), failed: true },
            Kind::StepSkipped { step: task, skip: Skip::Omitted { reason: "because" } },
        ),
        (Event::FailureTolerated { key: key.clone() }, Kind::StepSkipped { step: task, skip: Skip::Tolerated }),
        (
            Event::RetryScheduled { key: key.clone(), timer: timer.clone(), due },
            Kind::StepRetry { step: task, retry: Retry::Scheduled { due } },
        ),
        (Event::RetryRequested { key: key.clone() }, Kind::StepRetry { step: task, retry: Retry::Requested }),
        (
            Event::ReworkRequested {
                keys: vec![key.clone()],
                by: key.clone(),
                issues: "too slow".into(),
                stale: vec![other.clone()],
                after: Vec::new(),
            },
            Kind::ReworkRequested {
                tasks: std::slice::from_ref(&key),
                stale: std::slice::from_ref(&other),
                question: &key,
                issues: "too slow",
            },
        ),
        (
            Event::GateStarted { phase: phase.clone(), iteration: 2, gate: gate.clone(), attempt: 3 },
            Kind::StepStarted { step: gate_step, attempt: 3, reason: None },
        ),
        (
            Event::GatePassed { phase: phase.clone(), iteration: 2, gate: gate.clone(), attempt: 3 },
            ended(gate_step, StepOutcome::Passed, None),
        ),
        (
            Event::GateFailed { phase: phase.clone(), iteration: 2, gate: gate.clone(), attempt: 3, failure: failure.clone() },
            ended(gate_step, StepOutcome::Failed(&failure), None),
        ),
        (
            Event::GateWaived { phase: phase.clone(), iteration: 2, gate: gate.clone(), reason: None },
            Kind::StepSkipped { step: gate_step, skip: Skip::Waived { reason: None, by_person: true } },
        ),
        (
            Event::GateRetryRequested { phase: phase.clone(), iteration: 2, gate: gate.clone() },
            Kind::StepRetry { step: gate_step, retry: Retry::Requested },
        ),
        (
            Event::AgentQueryStarted { requester: requester.clone(), prompt: stored_value.clone() },
            Kind::AgentQuery { by: &requester, query: AgentQuery::Started },
        ),
        (
            Event::AgentQueryAnswered { requester: requester.clone(), text: stored_value.clone(), agent: report() },
            Kind::AgentQuery { by: &requester, query: AgentQuery::Answered { agent: Some(&agent) } },
        ),
        (Event::GapsChecked(Box::new(checked.clone())), Kind::GapCheck(GapCheck::Ended(&checked))),
        (
            Event::GapsWaived { phase: phase.clone(), iteration: 2 },
            Kind::GapCheck(GapCheck::Waived { phase: &phase, iteration: 2 }),
        ),
        (
            Event::Answered { hold: hold.clone(), option: option.clone(), feedback: feedback(), revision: 4 },
            Kind::HoldAnswered { answer: answer("go"), revision: 4 },
        ),
        (
            Event::AnswerChanged { hold: hold.clone(), option: option.clone(), feedback: feedback() },
            Kind::AnswerChanged(answer("go")),
        ),
        (Event::HoldOpened(Box::new(opened.clone())), Kind::HoldOpened(&opened)),
        (
            Event::HoldReopened {
                hold: hold.clone(),
                revision: 4,
                files: Vec::new(),
                differences: differences.clone(),
                by_check: true,
                deadline: None,
                remind: None,
                diff: None,
                restored: false,
            },
            Kind::HoldReopened { hold: &hold, revision: 4, differences: &differences, by_check: true, restored: false },
        ),
        (Event::HoldVoided { hold: hold.clone(), reason: reason() }, Kind::HoldVoided { hold: &hold, reason: "because" }),
        (
            Event::ConditionEvaluated { phase: phase.clone(), iteration: 2, outcome: ConditionOutcome::True },
            Kind::Recorded { task: None },
        ),
        (
            Event::ConditionEvaluated { phase: phase.clone(), iteration: 2, outcome: ConditionOutcome::False },
            Kind::Note(Note::CheckpointSkipped { phase: &phase, iteration: 2 }),
        ),
        (
            Event::ConditionEvaluated { phase: phase.clone(), iteration: 2, outcome: ConditionOutcome::Error(reason()) },
            Kind::Warning(Warning::ConditionFailed { phase: &phase, iteration: 2, error: "because" }),
        ),
        (Event::CheckPassed { hold: hold.clone() }, Kind::Note(Note::CheckPassed)),
        (
            Event::DeadlinePassed { hold: hold.clone(), then: OnDeadline::Abort },
            Kind::Note(Note::DeadlinePassed { hold: &hold, then: &OnDeadline::Abort }),
        ),
        (
            Event::Reminded { hold: hold.clone(), number: 1, timer: timer.clone(), next: due },
            Kind::Note(Note::Reminder { hold: &hold }),
        ),
        (Event::BudgetRaised { scope: scope.clone() }, Kind::Note(Note::BudgetRaised { scope: &scope })),
        (Event::Finalized { file: file.clone() }, Kind::Note(Note::Finalized { file: &file })),
        (Event::Pipeline(Box::new(pipeline_event.clone())), Kind::Note(Note::Pipeline(&pipeline_event))),
        (Event::AgentChanged { agent: "scribe".into() }, Kind::Note(Note::AgentChanged { agent: "scribe" })),
        (Event::DefinitionAccepted { definition: Digest::of(b"d"), files: Vec::new() }, Kind::Note(Note::DefinitionAccepted)),
        (Event::Rewound(Box::new(rewound.clone())), Kind::Note(Note::Rewound(&rewound))),
        (Event::Team(Box::new(team.clone())), Kind::Note(Note::Team(&team))),
        (
            Event::PhasesSkipListed { phases: vec![phase.clone()] },
            Kind::Note(Note::PhasesSkipListed { phases: std::slice::from_ref(&phase) }),
        ),
        (Event::AttemptRefused(refused.clone()), Kind::Warning(Warning::AttemptRefused(&refused))),
        (
            Event::DiffBaseRecorded { phase: phase.clone(), iteration: 2, base: DiffBase::Missing(reason()), starts_run: false },
            Kind::Recorded { task: None },
        ),
        (Event::TaskAdmitted { key: key.clone() }, Kind::Recorded { task: Some(&key) }),
        (Event::RetryDue { key: key.clone() }, Kind::Recorded { task: Some(&key) }),
        (
            Event::SessionNamed { key: key.clone(), attempt: 3, session: "s".into(), dir: None },
            Kind::Recorded { task: Some(&key) },
        ),
        (Event::AnswersPreset { presets: Vec::new() }, Kind::Recorded { task: None }),
        (Event::TasksBlocked { keys: vec![key.clone()], hold: hold.clone() }, Kind::Recorded { task: None }),
        (Event::HoldSettled { hold: hold.clone() }, Kind::Recorded { task: None }),
    ];

    let listed: BTreeSet<String> = cases.iter().map(|(event, _)| tag(event)).collect();
    assert_eq!(listed, all_tags(), "the table lists every event");
    for (event, kind) in cases {
        let entries = [entry(1, event)];
        let reported = Reporter::default().report(&run, &entries);
        assert_eq!(reported, [Notification { at: entries[0].at, actor: None, kind }], "{:?}", entries[0].event);
    }
}

#[test]
fn the_duration_of_a_step_is_measured_from_its_start() {
    let run = run();
    let start = || Event::TaskStarted { key: key(), attempt: 1, reason: AttemptReason::First, session: None };
    let finish = || Event::TaskFinished { key: key(), attempt: 1, result: None, outputs: Vec::new(), agent: None, commit: None };
    let fan_out = || Event::TaskFannedOut { key: key(), attempt: 1, tasks: Vec::new() };
    let took = |events: &[(i64, Event)]| {
        let entries: Vec<Entry> = events.iter().map(|(at, event)| entry(*at, event.clone())).collect();
        let reported = Reporter::default().report(&run, &entries);
        let Some(Kind::StepEnded { took, .. }) = reported.last().map(|last| &last.kind) else { panic!("nothing ended") };
        took.map(|took| took.as_secs())
    };
    assert_eq!(took(&[(10, start()), (25, finish())]), Some(15));
    assert_eq!(took(&[(10, start()), (20, finish()), (30, start()), (35, finish())]), Some(5));
    assert_eq!(took(&[(25, finish())]), None);
    assert_eq!(took(&[(10, start()), (20, finish()), (30, finish())]), None, "the start belongs to one attempt");
    assert_eq!(took(&[(10, start()), (12, fan_out()), (40, finish())]), Some(30), "a fanned-out task ends with its items");
}

#[test]
fn an_answer_carries_the_label_of_its_option() {
    let run = run();
    let mut reporter = Reporter::default();
    let opened = [entry(1, Event::HoldOpened(Box::new(hold_opened())))];
    reporter.report(&run, &opened);
    for (option, expected) in [("go", "Go ahead"), ("abort", "Stop the run"), ("unknown", "unknown")] {
        let option = OptionId::new(option);
        let answered = [entry(2, Event::Answered { hold: HoldId::new("h"), option, feedback: None, revision: 1 })];
        let reported = reporter.report(&run, &answered);
        let Kind::HoldAnswered { answer, .. } = &reported[0].kind else { panic!("{reported:?}") };
        assert_eq!(answer.label, expected);
    }
}

#[test]
fn a_gate_that_passed_before_an_import_was_not_waived_by_a_person() {
    let run = run();
    let waived = |reason: Option<&str>, actor: Option<Actor>| {
        let (phase, gate) = (PhaseId::new("p"), GateId::new("g"));
        let event = Event::GateWaived { phase, iteration: 1, gate, reason: reason.map(str::to_owned) };
        let entries = [Entry { actor: actor.map(Box::new), ..entry(1, event) }];
        let reported = Reporter::default().report(&run, &entries);
        let Kind::StepSkipped { skip: Skip::Waived { by_person, .. }, .. } = reported[0].kind else { panic!() };
        by_person
    };
    assert!(!waived(Some("passed before"), None));
    assert!(waived(Some("it is flaky"), Some(person())));
    assert!(waived(None, None));
}

#[test]
fn start_times_come_from_earlier_events_or_the_state() {
    let run = run();
    let mut reporter = Reporter::default();
    let (phase, gate) = (PhaseId::new("p"), GateId::new("g"));
    let started = Event::GateStarted { phase: phase.clone(), iteration: 1, gate: gate.clone(), attempt: 1 };
    reporter.recall(&run, &[entry(10, started)]);
    let failure = Failure { kind: FailureKind::Timeout, message: "timeout".into(), tail: String::new() };
    let failed = [
        entry(14, Event::GateFailed { phase, iteration: 1, gate, attempt: 1, failure: failure.clone() }),
        entry(15, Event::TaskFailed { key: key(), attempt: 1, failure, agent: None }),
    ];
    let took = reporter.report(&run, &failed).into_iter().map(|reported| {
        let Kind::StepEnded { took, outcome, .. } = reported.kind else { panic!("{reported:?}") };
        (took.map(|took| took.as_secs()), outcome.status(), outcome.error())
    });
    assert_eq!(
        took.collect::<Vec<_>>(),
        [(Some(4), StepStatus::Failed, Some("timeout")), (Some(15), StepStatus::Failed, Some("timeout"))]
    );
}

#[test]
fn a_notification_names_the_only_task_that_it_changes() {
    let run = run();
    let only_task = |event: Event| {
        let entries = [entry(1, event)];
        Reporter::default().report(&run, &entries)[0].only_task().cloned()
    };
    assert_eq!(only_task(Event::RetryDue { key: key() }), Some(key()));
    assert_eq!(only_task(Event::TaskInterrupted { key: key(), attempt: 1 }), Some(key()));
    let fanned_out = Event::TaskFannedOut { key: key(), attempt: 1, tasks: Vec::new() };
    assert_eq!(only_task(fanned_out), None, "new tasks appear next to it");
    let (phase, gate) = (PhaseId::new("p"), GateId::new("g"));
    assert_eq!(only_task(Event::GatePassed { phase, iteration: 1, gate, attempt: 1 }), None);
}

/// The names of all events, which serde lists when it parses an unknown one.
fn all_tags() -> BTreeSet<String> {
    let error = serde_json::from_str::<Event>("\"no such event\"").expect_err("there is no such event").to_string();
    let (_, expected) = error.split_once("expected one of ").expect("the names are listed");
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn tag(event: &Event) -> String {
    match serde_json::to_value(event).expect("events are JSON") {
        serde_json::Value::String(tag) => tag,
        value => value.as_object().and_then(|tagged| tagged.keys().next().cloned()).expect("events are tagged"),
    }
}

fn entry(second: i64, event: Event) -> Entry {
    Entry { at: Timestamp::from_millis(second * 1000), actor: None, cause: None, event }
}

fn key() -> TaskKey {
    TaskKey { phase: PhaseId::new("p"), iteration: 2, task: TaskId::new("t"), item: None }
}

fn created() -> Created {
    let created = Created::new(RunId::from("k3f9x2ab"), Digest::of(b"definition"), "out".into(), DriverId::from("d"));
    Created { feature: Some("search".into()), ..created }
}

fn run() -> Run {
    let source = "name: flow\nphases:\n  - { id: p, tasks: [{ id: t, run: 'true' }] }\n";
    let workflow = lockgate_engine::spec::read(source).workflow.expect("the workflow is valid");
    let (caller, at) = (Caller::new(person(), TerminalRule::Required), Timestamp::from_millis(0));
    let envelope = Envelope { id: None, caller, at, seed: [7; 16], driving: true };
    let given = Create { created: created(), presets: Vec::new() };
    create(&envelope, &given, Arc::new(workflow)).expect("the run starts").0
}

fn person() -> Actor {
    let (credential, channel) = (Credential::Person, Channel::Prompt);
    Actor { credential, name: "ada".into(), channel, terminal: true, inside_task: None, uid: Some(1000) }
}

fn hold_opened() -> HoldOpened {
    HoldOpened {
        hold: HoldId::new("h"),
        kind: HoldKind::Checkpoint,
        scope: Scope::Run,
        prompt: "Continue?".into(),
        files: Vec::new(),
        options: vec![Choice::plain("go", "Go ahead", Action::Continue)],
        notes: Vec::new(),
        blocking: true,
        quorum: 1,
        question: None,
        terms: Default::default(),
        previous: None,
        diff: None,
    }
}

fn gaps_checked() -> GapsChecked {
    GapsChecked {
        phase: PhaseId::new("p"),
        iteration: 2,
        round: 1,
        status: "incomplete".into(),
        gaps: vec!["no tests".into()],
        action: Some(GapAction::Escalate),
        message: None,
        agents: Vec::new(),
    }
}

fn refused() -> RefusedAttempt {
    RefusedAttempt::new("answer a hold", None, "only a person may".into())
}

fn handover() -> Handover {
    Handover {
        kind: HandoverKind::Decision,
        plan: "07".into(),
        done: 1,
        total: 2,
        completed: Vec::new(),
        current: CurrentTask {
            number: "2".into(),
            name: "build".into(),
            status: HandoverStatus::Blocked,
            blocked_by: String::new(),
        },
        details: String::new(),
        awaiting: String::new(),
        options: Vec::new(),
    }
}
